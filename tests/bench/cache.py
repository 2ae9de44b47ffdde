"""What a list of 100 KiB costs from where: this process's memory, the store, the server, nginx passing it through, and
FastMCP's response cache.

    make bench-cache [ARGS="--requests 5000 --rounds 6"]

All of them run at once and are asked in turns, 16 connections each, so that what the machine does meanwhile hits all.
Told is the CPU time of a server's own processes for one request, and its ratio to nginx, which does not depend on the
machine as times do. Nothing is asserted.
"""

import argparse
import asyncio
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, cast

import uvloop

from tests.bench.listing import LISTED
from tests.fleet import KEYS
from tests.http_wire import header_bytes
from tests.raw_front import modern_headers, modern_request
from tests.valkey import free_port, started

CONNECTIONS: Final = 16
SHARES: Final = {"nginx": 8, "memory": 8, "FastMCP": 0.1}
"""How many of a round's requests what answers quickly gets, and what takes its time."""
LENGTH: Final = re.compile(rb"content-length: ?([0-9]+)", re.IGNORECASE)
START_S: Final = 180.0
"""For the slowest of them to start on a busy machine."""
NGINX: Final = """
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/nginx.err;
events {{ worker_connections 1024; }}
http {{
  access_log off; keepalive_requests 1000000000; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  upstream up {{ server 127.0.0.1:{up}; keepalive 64; keepalive_requests 1000000000; }}
  server {{ listen 127.0.0.1:{port}; location / {{
    proxy_pass http://up; proxy_http_version 1.1; proxy_set_header Connection "";
    proxy_buffers 16 64k; proxy_busy_buffers_size 256k; proxy_max_temp_file_size 0;
  }} }}
}}
"""


@contextmanager
def process(command: Sequence[str], port: int) -> Iterator[int]:
    """Runs a server until the end, and waits until it listens; its process group."""
    env = {**os.environ, "FASTMCP_LOG_LEVEL": "ERROR"}
    child = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True, env=env
    )
    try:
        asyncio.run(_listens(port))
        yield child.pid
    finally:
        os.killpg(child.pid, 15)
        child.wait()


async def _listens(port: int) -> None:
    async with asyncio.timeout(START_S):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return


def cpu_s(group: int) -> float:
    """The CPU time of every process of a group so far, as the scheduler has it: a clock tick is the time of many
    requests."""
    total = 0
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(entry.read_text().rpartition(")")[2].split()[2]) == group:
                total += sum(int(one.read_text().split()[0]) for one in entry.parent.glob("task/*/schedstat"))
        except OSError:
            continue  # it has just ended
    return total / 1e9


class Asking(asyncio.Protocol):
    """One connection, which asks again as soon as an answer is whole. It reads no more of that than how long it is,
    so that it keeps the server busy, and not itself."""

    def __init__(self, requests: Iterator[bytes], done: asyncio.Future[None]) -> None:
        self._requests = requests
        self._done = done
        self._head = b""
        self._left = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)
        self._ask()

    def data_received(self, data: bytes) -> None:
        try:
            self._received(data)
        except AssertionError as error:
            self._done.set_exception(error)
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._done.done():
            self._done.set_exception(exc or EOFError())

    def _received(self, data: bytes) -> None:
        if self._left == 0:
            self._head += data
            head, end, rest = self._head.partition(b"\r\n\r\n")
            if not end:
                return
            length = LENGTH.search(head)
            assert head.startswith(b"HTTP/1.1 200 "), head
            assert length is not None, head
            assert int(length[1]) > self.least, f"{int(length[1])} bytes are no list"
            self._head, self._left, data = b"", int(length[1]), rest
        self._left -= len(data)
        assert self._left >= 0
        if self._left == 0:
            self._ask()

    def _ask(self) -> None:
        raw = next(self._requests, None)
        if raw is not None:
            self._transport.write(raw)
        else:
            self._done.set_result(None)
            self._transport.close()

    least = len(LISTED) // 2


class AskingPacked(Asking):
    least = 256


async def load(port: int, requests: int, *, coding: str = "") -> None:
    """So many lists over `CONNECTIONS` connections, each whole."""

    def asked(number: int) -> bytes:
        message = modern_request("tools/list", {}, ident=number)
        body = json.dumps(message).encode()
        head = {
            "Host": f"127.0.0.1:{port}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Accept-Encoding": coding or None,
            "Content-Length": str(len(body)),
            **modern_headers(message),
        }
        lines = [(name, value) for name, value in head.items() if value is not None]
        return header_bytes("POST /mcp HTTP/1.1", lines) + body

    every, loop = iter([asked(1_000_000 + number) for number in range(requests)]), asyncio.get_running_loop()
    waited = [loop.create_future() for _ in range(CONNECTIONS)]
    kind = AskingPacked if coding else Asking
    for done in waited:
        await loop.create_connection(lambda done=done: kind(every, done), "127.0.0.1", port)  # type: ignore[misc]
    await asyncio.gather(*waited)


def gateway(folder: Path, name: str, up: int, store: str, **more: Any) -> tuple[list[str], int]:
    port = free_port()
    upstream = {"url": f"http://127.0.0.1:{up}/mcp", "era": "modern", **more.pop("upstream", {})}
    settings = {
        "listen": f"127.0.0.1:{port}",
        "keys": KEYS,
        "store": {"url": store, "prefix": name},
        "upstreams": {"up": upstream},
        "routes": [{"path": "/mcp", "upstream": "up"}],
        "cache": {"max_bytes": 64 << 20},
        **more,
    }
    path = folder / f"{name}.json"
    path.write_text(json.dumps(settings))
    return [sys.executable, "-m", "gateway", "serve", "-c", str(path)], port


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench-cache", description=__doc__)
    parser.add_argument(
        "--requests", type=int, default=2000, help="lists in a round, of what is quick four times so many"
    )
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        store = stack.enter_context(started()).url
        up = free_port()
        stack.enter_context(process([sys.executable, "-m", "tests.bench.listing", str(up)], up))
        rows: dict[str, tuple[int, int, str]] = {}

        def run(name: str, command: list[str], port: int) -> None:
            rows[name] = stack.enter_context(process(command, port)), port, ""

        nginx = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
        if nginx is None:
            print("nginx is missing; install the package nginx-light for what others are held against")
        else:
            port = free_port()
            (folder / "nginx.conf").write_text(NGINX.format(folder=folder, up=up, port=port))
            run("nginx, passed through", [nginx, "-c", str(folder / "nginx.conf"), "-e", "/dev/null"], port)
        run("from memory", *gateway(folder, "memory", up, store))
        rows["from memory, gzip"] = (*rows["from memory"][:2], "gzip")
        # what is held is smaller than one list with its answer, so that none stays
        run("from the store", *gateway(folder, "store", up, store, cache={"max_bytes": 150 * 1024}))
        off = {"cache": {"enabled": False}}
        run("from the server", *gateway(folder, "server", up, store, upstream=off))
        port = free_port()
        fastmcp = [sys.executable, "-m", "tests.bench.fastmcp_cache", str(port), f"http://127.0.0.1:{up}/mcp"]
        run("FastMCP's response cache", fastmcp, port)
        measure(rows, options.requests, options.rounds)
    return 0


def measure(rows: dict[str, tuple[int, int, str]], requests: int, rounds: int) -> None:
    spent: dict[str, list[float]] = {name: [] for name in rows}
    for turn in range(rounds + 1):
        for name, (group, port, coding) in rows.items():
            count = max(CONNECTIONS, int(requests * next((of for kind, of in SHARES.items() if kind in name), 1)))
            before = cpu_s(group)
            uvloop.run(load(port, count, coding=coding))
            if turn:  # the first one warms up
                spent[name].append((cpu_s(group) - before) / count * 1e6)
    base = next((statistics.median(us) for name, us in spent.items() if name.startswith("nginx")), None)
    print(f"a list of {len(LISTED) / 1024:.0f} KiB, {CONNECTIONS} connections, {rounds} rounds of {requests}")
    print(f"{'':28}{'CPU us/request':>16}{'x nginx':>10}")
    for name, us in spent.items():
        median = statistics.median(us)
        print(f"{name:28}{median:16.0f}{f'{median / base:10.2f}' if base else '':>10}")


if __name__ == "__main__":
    sys.exit(main())
