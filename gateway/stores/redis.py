"""The store that several processes share: Redis 6.2 or later, or Valkey; one server, Sentinels, or a cluster.

Every operation is one command, or one script, on one key: one round trip, and atomic. A script is sent whole each time:
the server keeps what it made of it, and a restarted one needs no second try. Nothing is tried twice.

    PREFIX:1:KEY        1 is the version of what is kept; an incompatible change counts it up
"""

import asyncio
import contextlib
import math
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

from gateway.stores import redis_clients
from gateway.stores.base import MAX_READ, StoreUnavailable
from gateway.stores.health import Health, unavailable
from gateway.stores.reader import Reader
from gateway.stores.redis_errors import FAILURES, NO_WRITES, outage, refusal, refusal_words
from gateway.stores.redis_subscriptions import Subscriptions
from policies.settings_store import Store as Settings

VERSION: Final = 1
MAX_UNDER_WAY: Final = 16
"""Connections for operations, in a cluster to each node; more operations take turns. With 1 ms for each that is 16,000
operations a second, more than one process has use for."""
MAX_WAITING: Final = 256
"""Connections for reads that wait; one more waits without a connection, and reads once its time is over."""
PROBE_S: Final = 3.0
"""For a probe, which may have to find a new leader."""

# KEYS[1] is the key of every script. Times are in milliseconds; PEXPIRE with 0 removes.
_DELETE_IF: Final = "if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('DEL',KEYS[1]) end return 0"
_RENEW: Final = "if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('PEXPIRE',KEYS[1],ARGV[2]) end return 0"
_INCR: Final = """local n=redis.call('INCRBY',KEYS[1],ARGV[1])
if redis.call('PTTL',KEYS[1])<0 then redis.call('PEXPIRE',KEYS[1],ARGV[2]) end return n"""
_PUT_FIELD: Final = """redis.call('HSET',KEYS[1],ARGV[2],ARGV[3])
return redis.call('PEXPIRE',KEYS[1],ARGV[1])"""
_DROP_FIELD: Final = """redis.call('HDEL',KEYS[1],ARGV[2])
return redis.call('PEXPIRE',KEYS[1],ARGV[1])"""
_APPEND: Final = """redis.call('XADD',KEYS[1],'MAXLEN',ARGV[2],'*','v',ARGV[3])
return redis.call('PEXPIRE',KEYS[1],ARGV[1])"""

_SCRIPTS: Final[Mapping[bytes | str | int, str]] = {
    _DELETE_IF: "delete_if",
    _RENEW: "renew",
    _INCR: "incr",
    _PUT_FIELD: "put_field",
    _DROP_FIELD: "put_field",
    _APPEND: "append",
}
"""What each script is called in metrics."""

_WRITES: Final = frozenset({_INCR, _PUT_FIELD, _APPEND})
"""Scripts that a server without room refuses."""


class RedisStore:
    shared: Final = True

    def __init__(self, settings: Settings, observe: Callable[[tuple[str, str], float], None] = lambda *_: None) -> None:
        """`observe` is told of each operation that does not wait its name, an `error_type`, and how many seconds it
        took."""
        self._observe = observe
        self._prefix = f"{settings.prefix}:{VERSION}:"
        self._timeout_s = settings.timeout_ms / 1000
        self._client = redis_clients.client(settings, self._timeout_s)
        self._blocking = redis_clients.client(settings, None)
        self._under_way = asyncio.Semaphore(MAX_UNDER_WAY)
        self._waiting = asyncio.Semaphore(MAX_WAITING)
        self._health = Health(settings.url, self._probe)
        self._subscriptions = Subscriptions(lambda: redis_clients.connection(self._blocking), self._timeout_s)

    @property
    def up(self) -> bool:
        return self._health.up

    async def get(self, key: str) -> bytes | None:
        found: bytes | None = await self._do(key, "GET", self._key(key))
        return found

    async def set(self, key: str, value: bytes, ttl_s: float) -> None:
        if ttl_s <= 0:
            await self.delete(key)
        else:
            await self._do(key, "SET", self._key(key), value, "PX", _ms(ttl_s))

    async def set_nx(self, key: str, value: bytes, ttl_s: float) -> bool:
        if ttl_s <= 0:
            return not await self._do(key, "EXISTS", self._key(key))
        return bool(await self._do(key, "SET", self._key(key), value, "NX", "PX", _ms(ttl_s)))

    async def delete(self, key: str) -> None:
        await self._do(key, "DEL", self._key(key))

    async def delete_if(self, key: str, value: bytes) -> bool:
        return bool(await self._eval(_DELETE_IF, key, value))

    async def renew(self, key: str, value: bytes, ttl_s: float) -> bool:
        return bool(await self._eval(_RENEW, key, value, _ms(ttl_s)))

    async def incr(self, key: str, ttl_s: float, by: int = 1) -> int:
        return int(await self._eval(_INCR, key, by, _ms(ttl_s)))

    async def put_field(self, key: str, field: str, value: bytes | None, ttl_s: float) -> None:
        if value is None:
            await self._eval(_DROP_FIELD, key, _ms(ttl_s), field)
        else:
            await self._eval(_PUT_FIELD, key, _ms(ttl_s), field, value)

    async def fields(self, key: str) -> dict[str, bytes]:
        found = await self._do(key, "HGETALL", self._key(key))
        return {field.decode(): value for field, value in found.items()}

    async def append(self, key: str, value: bytes, ttl_s: float, bound: int) -> None:
        await self._eval(_APPEND, key, _ms(ttl_s), bound, value)

    async def read(self, key: str, after: str, wait_s: float) -> list[tuple[str, bytes]]:
        if wait_s <= 0:
            return await self._read(key, after)
        self._health.admit()
        loop = asyncio.get_running_loop()
        end_s = loop.time() + wait_s
        try:
            async with asyncio.timeout(wait_s):
                await self._waiting.acquire()
        except TimeoutError:
            return await self._read(key, after)
        try:
            left_s = max(0.001, end_s - loop.time())
            command = ("XREAD", "COUNT", MAX_READ, "BLOCK", _ms(left_s), "STREAMS", self._key(key), after or "0")
            found = await self._answer(self._blocking, key, left_s + self._timeout_s, command)
        finally:
            self._waiting.release()
        return _entries(found[0][1]) if found else []

    async def publish(self, channel: str, value: bytes) -> None:
        await self._do(channel, "PUBLISH", self._key(channel), value)

    def subscribe(self, channel: str) -> AbstractAsyncContextManager[Reader]:
        return self._subscriptions.subscribe(self._key(channel).encode())

    async def ping(self) -> None:
        await self._do("ping", "EXISTS", self._key("ping"))

    async def close(self) -> None:
        await self._health.close()
        await self._subscriptions.close()
        for client in (self._blocking, self._client):
            with contextlib.suppress(*FAILURES):  # a server that says nothing does not say goodbye either
                await redis_clients.close(client)

    async def _read(self, key: str, after: str) -> list[tuple[str, bytes]]:
        start = f"({after}" if after else "-"
        return _entries(await self._do(key, "XRANGE", self._key(key), start, "+", "COUNT", MAX_READ))

    async def _eval(self, script: str, key: str, *values: bytes | str | int) -> Any:
        return await self._do(key, "EVAL", script, 1, self._key(key), *values)

    async def _do(self, key: str, *command: bytes | str | int) -> Any:
        """What the server answers, within the time-out."""
        self._health.admit()
        began, error = time.perf_counter(), ""
        try:
            return await self._answer(self._client, key, self._timeout_s, command, self._under_way)
        except StoreUnavailable:
            error = "unavailable"
            raise
        except asyncio.CancelledError:
            error = "cancelled"
            raise
        finally:
            name = _SCRIPTS.get(command[1], "") if command[0] == "EVAL" else str(command[0]).lower()
            self._observe((name, error), time.perf_counter() - began)

    async def _answer(
        self,
        client: redis_clients.Client,
        key: str,
        timeout_s: float,
        command: tuple[bytes | str | int, ...],
        turns: AbstractAsyncContextManager[None] | None = None,
    ) -> Any:
        task = asyncio.current_task()
        cancels = 0 if task is None else task.cancelling()
        try:
            async with asyncio.timeout(timeout_s):
                if turns is None:
                    answer = await redis_clients.send(client, command)
                else:
                    async with turns:
                        answer = await redis_clients.send(client, command)
        except FAILURES as error:
            refused = refusal(error)
            if refused is not None:
                if refused == "READONLY":
                    await redis_clients.forget(client)
                words = refusal_words(refused)
                self._health.refused(words, writes=refused in NO_WRITES)
                raise StoreUnavailable(f"the store {words.partition(';')[0]}") from None
            why = outage(error)
            self._health.failed(why, key)
            raise StoreUnavailable(unavailable(why)) from None
        self._health.succeeded(wrote=command[0] == "SET" or command[1] in _WRITES)
        if task is not None and task.cancelling() > cancels:
            raise asyncio.CancelledError  # redis-py answers in its stead where both come at the same moment
        return answer

    async def _probe(self, key: str) -> None:
        try:
            async with asyncio.timeout(PROBE_S):
                await redis_clients.send(self._client, ("EXISTS", self._key(key)))
        except FAILURES as error:
            raise StoreUnavailable("the store does not answer") from error

    def _key(self, key: str) -> str:
        return self._prefix + key


def _ms(ttl_s: float) -> int:
    return max(0, math.ceil(ttl_s * 1000))


def _entries(found: Any) -> list[tuple[str, bytes]]:
    return [(cursor.decode(), members[b"v"]) for cursor, members in found]
