"""Clients of a Redis or Valkey server, of the leader that Sentinels name, or of a cluster, as the settings say.

redis-py's own defaults suit a batch job: they try a refused connection ten times over seconds, and read for 5 s. Here
nothing is tried twice, as only a caller knows whether that would do harm, and each operation has one time-out, the
caller's. What is sent is not known here.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from redis.asyncio import Redis, RedisCluster
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.connection import AbstractConnection
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool
from redis.backoff import NoBackoff

from policies.settings_store import Store

CONNECT_S: Final = 1.0
"""For a connection: a probe may wait longer for one than an operation, whose own time-out is less."""

Client = Redis | RedisCluster


def client(settings: Store, read_s: float | None) -> Client:
    """A client that connects at its first use. `read_s` bounds the wait for one answer; None is for blocking reads."""
    at = settings.address
    options = {**_options(settings, read_s), **_credentials(settings.username, settings.password)}
    if at.kind == "cluster":
        nodes = [ClusterNode(host, port) for host, port in at.hosts]
        # 0: a slot that has moved is noted; reading the whole map anew would cut off all that is under way
        return RedisCluster(startup_nodes=nodes, reinitialize_steps=0, **options)
    if at.kind == "sentinel":
        own = {**_options(settings, CONNECT_S), **_credentials(settings.sentinel_username, settings.sentinel_password)}
        sentinels: Any = Sentinel(at.hosts, sentinel_kwargs=own, db=at.db, **options)  # type: ignore[no-untyped-call]
        leader: Redis = sentinels.master_for(at.service)
        return leader
    host, port = at.hosts[0]
    return Redis(host=host, port=port, db=at.db, **options)


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


def _options(settings: Store, read_s: float | None) -> dict[str, Any]:
    options: dict[str, Any] = {
        "retry": _never(),
        "socket_timeout": read_s,
        "socket_connect_timeout": CONNECT_S,
        "max_connections": 2**31,  # who asks takes turns; an error at the hundredth would be no bound but a fault
        "protocol": 2,  # one shape of answers from all versions
        "driver_info": None,
    }
    if settings.address.tls:
        tls = settings.tls
        options |= {"ssl": True, "ssl_check_hostname": True, "ssl_ca_certs": tls.ca}
        options |= {"ssl_certfile": tls.client_cert, "ssl_keyfile": tls.client_key}
    return options


def _credentials(username: str, password: Any) -> dict[str, Any]:
    return {"username": username or None, "password": None if password is None else password.get_secret_value()}
