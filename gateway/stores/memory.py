"""The embedded store of a single process: the default, and what tests of one process run on.

Expired entries are dropped when they are met and, so that abandoned ones do not stay, a few at a time at each write.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count, islice
from typing import Final

from gateway.stores.base import MAX_READ
from gateway.stores.reader import Reader

_SWEEP = 16
"""Entries looked at per write: more than one, so that the sweep overtakes any mix of writes."""

Log = deque[tuple[int, bytes]]
Held = bytes | dict[str, bytes] | Log


class MemoryStore:
    shared: Final = False
    up: Final = True

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._entries: dict[str, tuple[Held, float]] = {}
        self._cursors = count(1)  # of all logs: one that is made anew goes on after the old one
        self._waiting: dict[str, set[asyncio.Event]] = {}
        self._readers: dict[str, set[Reader]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    async def get(self, key: str) -> bytes | None:
        return self._value(key)

    async def set(self, key: str, value: bytes, ttl_s: float) -> None:
        self._put(key, value, ttl_s)

    async def set_nx(self, key: str, value: bytes, ttl_s: float) -> bool:
        if self._live(key) is not None:
            return False
        self._put(key, value, ttl_s)
        return True

    async def delete(self, key: str) -> None:
        self._entries.pop(key, None)

    async def delete_if(self, key: str, value: bytes) -> bool:
        if self._value(key) != value:
            return False
        del self._entries[key]
        return True

    async def renew(self, key: str, value: bytes, ttl_s: float) -> bool:
        if self._value(key) != value:
            return False
        self._put(key, value, ttl_s)
        return True

    async def incr(self, key: str, ttl_s: float, by: int = 1) -> int:
        found = self._value(key)
        number = int(found or b"0") + by
        expires = self._clock() + ttl_s if found is None else self._entries[key][1]
        self._put(key, b"%d" % number, expires - self._clock())
        return number

    async def put_field(self, key: str, field: str, value: bytes | None, ttl_s: float) -> None:
        held = self._hash(key)
        if value is None:
            held.pop(field, None)
        else:
            held[field] = value
        self._put(key, held, ttl_s if held else 0)

    async def fields(self, key: str) -> dict[str, bytes]:
        return dict(self._hash(key))

    async def append(self, key: str, value: bytes, ttl_s: float, bound: int) -> None:
        log = self._log(key)
        log.append((next(self._cursors), value))
        while len(log) > bound:
            log.popleft()
        self._put(key, log, ttl_s)
        for event in self._waiting.get(key, ()):
            event.set()

    async def read(self, key: str, after: str, wait_s: float) -> list[tuple[str, bytes]]:
        found = self._after(key, after)
        if found or wait_s <= 0:
            return found
        event = asyncio.Event()
        waiting = self._waiting.setdefault(key, set())
        waiting.add(event)
        try:
            async with asyncio.timeout(wait_s):
                while not found:
                    await event.wait()
                    event.clear()
                    found = self._after(key, after)
        except TimeoutError:
            return self._after(key, after)
        finally:
            waiting.discard(event)
            if not waiting:
                self._waiting.pop(key, None)
        return found

    async def publish(self, channel: str, value: bytes) -> None:
        for reader in self._readers.get(channel, ()):
            reader.put(value)

    @asynccontextmanager
    async def subscribe(self, channel: str) -> AsyncIterator[Reader]:
        reader = Reader()
        readers = self._readers.setdefault(channel, set())
        readers.add(reader)
        try:
            yield reader
        finally:
            readers.discard(reader)
            if not readers and self._readers.get(channel) is readers:
                del self._readers[channel]

    async def ping(self) -> None:
        return

    async def close(self) -> None:
        self._entries.clear()
        for readers in self._readers.values():
            for reader in readers:
                reader.end()

    def _live(self, key: str) -> Held | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        if entry[1] <= self._clock():
            del self._entries[key]
            return None
        return entry[0]

    def _value(self, key: str) -> bytes | None:
        held = self._live(key)
        if held is not None and not isinstance(held, bytes):
            raise TypeError("the key holds no value")
        return held

    def _hash(self, key: str) -> dict[str, bytes]:
        held = self._live(key)
        if held is not None and not isinstance(held, dict):
            raise TypeError("the key holds no hash")
        return {} if held is None else held

    def _log(self, key: str) -> Log:
        held = self._live(key)
        if held is not None and not isinstance(held, deque):
            raise TypeError("the key holds no log")
        return Log() if held is None else held

    def _after(self, key: str, after: str) -> list[tuple[str, bytes]]:
        since = int(after or 0)
        found = ((str(cursor), value) for cursor, value in self._log(key) if cursor > since)
        return list(islice(found, MAX_READ))

    def _put(self, key: str, held: Held, ttl_s: float) -> None:
        self._sweep()
        if ttl_s > 0:
            self._entries[key] = (held, self._clock() + ttl_s)
        else:
            self._entries.pop(key, None)

    def _sweep(self) -> None:
        now = self._clock()
        for key in list(islice(self._entries, _SWEEP)):
            value, expires = self._entries.pop(key)
            if expires > now:
                self._entries[key] = (value, expires)  # to the end of the order, so that the sweep moves on
