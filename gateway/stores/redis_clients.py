"""Clients of a Redis or Valkey server, of the leader that Sentinels name, or of a cluster, as the settings say.

redis-py's own defaults suit a batch job: they try a refused connection ten times over seconds, and read for 5 s. Here
nothing is tried twice, as only a caller knows whether that would do harm, and each operation has one time-out, the
caller's. What is sent is not known here.
"""

from collections.abc import Awaitable, Callable, Iterable
from ssl import SSLContext
from typing import Any, Final

from redis.asyncio import Redis, RedisCluster
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.connection import AbstractConnection, Connection, ConnectionPool, SSLConnection
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import (
    Sentinel,
    SentinelConnectionPool,
    SentinelManagedConnection,
    SentinelManagedSSLConnection,
)
from redis.backoff import NoBackoff

from gateway import tls_files
from policies.settings_store import Store

CONNECT_S: Final = 1.0
"""For a connection: a probe may wait longer for one than an operation, whose own time-out is less."""

Client = Redis | RedisCluster


def client(settings: Store, read_s: float | None) -> Client:
    """A client that connects at its first use. `read_s` bounds the wait for one answer; None is for blocking reads.
    Raises `tls_files.TlsError`."""
    at = settings.address
    tls = tls_files.client_context(settings.tls) if at.tls else None
    options = {**_options(read_s), **_credentials(settings.username, settings.password)}
    if at.kind == "cluster":
        return _cluster(at.hosts, tls, options)
    if at.kind == "sentinel":
        own = {**_options(CONNECT_S), **_credentials(settings.sentinel_username, settings.sentinel_password)}
        asked: Any = Sentinel([], **options)  # type: ignore[no-untyped-call]
        asked.sentinels = [_single(host, port, tls, own) for host, port in at.hosts]
        kind = SentinelManagedConnection if tls is None else _over(tls, SentinelManagedSSLConnection)
        leader: Redis = asked.master_for(at.service, db=at.db, connection_class=kind)
        return leader
    host, port = at.hosts[0]
    return _single(host, port, tls, {**options, "db": at.db})


def _single(host: str, port: int, tls: SSLContext | None, options: dict[str, Any]) -> Redis:
    kind: type[Connection] = Connection if tls is None else _over(tls, SSLConnection)
    return Redis.from_pool(ConnectionPool(host=host, port=port, connection_class=kind, **options))


def _cluster(hosts: Iterable[tuple[str, int]], tls: SSLContext | None, options: dict[str, Any]) -> RedisCluster:
    """Redirections: a slot that has moved is noted; to read the whole map anew, as redis-py does after some of them,
    would cut off what is under way."""
    nodes = [ClusterNode(host, port) for host, port in hosts]
    made = RedisCluster(startup_nodes=nodes, reinitialize_steps=0, ssl=tls is not None, **options)
    if tls is not None:
        made.connection_kwargs["connection_class"] = kind = _over(tls, SSLConnection)
        for node in made.startup_nodes:
            node.connection_class = kind
    return made


def _over(tls: SSLContext, base: type[SSLConnection]) -> type[SSLConnection]:
    """Connections that share one context. redis-py makes one for each, which takes the event loop tens of milliseconds,
    and trusts the system's authorities whatever the settings say."""

    class Shared(base):  # type: ignore[valid-type, misc]
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self.ssl_context.context = tls

    return Shared


async def send(client: Client, command: tuple[bytes | str | int, ...]) -> Any:
    """The server's answer. Raises what redis-py does."""
    if isinstance(client, RedisCluster):
        await client.initialize()  # else the first commands go to any node, each to be sent on by it
    execute: Callable[..., Awaitable[Any]] = client.execute_command
    return await execute(*command)


async def close(client: Client) -> None:
    await client.aclose()
    if isinstance(client, Redis) and isinstance(client.connection_pool, SentinelConnectionPool):
        await client.connection_pool.sentinel_manager.aclose()


async def forget(client: Client) -> None:
    """Lets go of connections that lead to a server that leads no longer; the next use finds out who does."""
    if isinstance(client, RedisCluster):
        await client.aclose()
    else:
        await client.connection_pool.disconnect(inuse_connections=False)


async def connection(client: Client) -> AbstractConnection:
    """A connection outside the pool, for subscriptions; of a cluster to any node, as each hears what is published."""
    if isinstance(client, RedisCluster):
        await client.initialize()
        node = client.get_random_node()
        made: Any = node.connection_class(**{**node.connection_kwargs, "retry": _never()})
    else:
        pool: Any = client.connection_pool
        made = pool.make_connection()
    await made.connect()
    one: AbstractConnection = made
    return one


def _never() -> Retry:
    return Retry(NoBackoff(), 0)


def _options(read_s: float | None) -> dict[str, Any]:
    return {
        "retry": _never(),
        "socket_timeout": read_s,
        "socket_connect_timeout": CONNECT_S,
        "max_connections": 2**31,  # who asks takes turns; an error at the hundredth would be no bound but a fault
        "protocol": 2,  # one shape of answers from all versions
        "driver_info": None,
    }


def _credentials(username: str, password: Any) -> dict[str, Any]:
    return {"username": username or None, "password": None if password is None else password.get_secret_value()}
