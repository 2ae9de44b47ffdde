"""The embedded store of a single process: the default, and what tests of one process run on.

Expired entries are dropped when they are met and, so that abandoned ones do not stay, a few at a time at each write.
"""

import time
from collections.abc import Callable
from itertools import islice

_SWEEP = 16
"""Entries looked at per write: more than one, so that the sweep overtakes any mix of writes."""


class MemoryStore:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._entries: dict[str, tuple[bytes, float]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    async def get(self, key: str) -> bytes | None:
        return self._live(key)

    async def set(self, key: str, value: bytes, ttl_s: float) -> None:
        self._sweep()
        self._entries[key] = (value, self._clock() + ttl_s)

    async def set_nx(self, key: str, value: bytes, ttl_s: float) -> bool:
        if self._live(key) is not None:
            return False
        await self.set(key, value, ttl_s)
        return True

    async def delete(self, key: str) -> None:
        self._entries.pop(key, None)

    async def close(self) -> None:
        self._entries.clear()

    def _live(self, key: str) -> bytes | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        if entry[1] <= self._clock():
            del self._entries[key]
            return None
        return entry[0]

    def _sweep(self) -> None:
        now = self._clock()
        for key in list(islice(self._entries, _SWEEP)):
            value, expires = self._entries.pop(key)
            if expires > now:
                self._entries[key] = (value, expires)  # to the end of the order, so that the sweep moves on
