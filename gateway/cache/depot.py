"""Entries in the store, which all replicas read and write: sealed, so that one that is cut short, another's, or made up
is no entry; and who of them fetches what is not there.

Whatever is wrong with the store is a miss. One that is slow is not asked for a moment: to look there must not take
longer than to ask the upstream. What this process has put there is bounded; what goes where there is too much of it is
decided in `policies/cache_room.py`.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, TypeVar

from gateway.cache.marks import Marks
from gateway.cache.shelf import Held
from gateway.stores.base import Store, StoreUnavailable
from policies import cache_entry, sealing
from policies.cache_entry import Entry
from policies.cache_room import Deposits
from policies.sealing import NONCE_BYTES, KeyRing

LOOK_S: Final = 0.1
"""How long the store may take; on a healthy network that is a millisecond."""

_SLICES: Final = 4
"""In so many pieces it is waited for. One that lasts twice its time says that this process is busy, not that the store
is slow, and does not count."""

_AT_ONCE: Final = 64
"""Entries that are removed at a time: a large one may take the place of thousands, and others use the store too."""

PAUSE_S: Final = 1.0
"""How long a store that took longer is not asked."""

LEASE_S: Final = 3.0
BEAT_S: Final = 1.0
"""Who fetches renews its lease so often; three missed beats and another does."""

_OVERHEAD_BYTES: Final = 1024
"""What an entry takes in the store beside its own bytes, with its marks and its line in the books here, at most."""

_SAID: Final[Mapping[bool | None, bytes]] = {True: b"1", False: b"0", None: b"-"}
_KEPT: Final = {said: kept for kept, said in _SAID.items()}

T = TypeVar("T")


class Depot:
    """`ring` gives the sealing keys in service; `max_bytes`: how much of what this process has put here may be here.
    Without a shared store there is nothing."""

    def __init__(self, store: Store, marks: Marks, ring: Callable[[], KeyRing], max_bytes: int) -> None:
        self._store = store
        self._marks = marks
        self._ring = ring
        self._deposits = Deposits(max_bytes)
        self._until_s = 0.0
        self._late: set[asyncio.Future[Any]] = set()

    @property
    def is_open(self) -> bool:
        """Whether it is worth a look."""
        is_used = self._store.shared and self._deposits.max_bytes > 0
        return is_used and self._store.up and asyncio.get_running_loop().time() >= self._until_s

    @property
    def max_bytes(self) -> int:
        return self._deposits.max_bytes

    @max_bytes.setter
    def max_bytes(self, most: int) -> None:
        """What is here already goes as soon as more is put here."""
        self._deposits.max_bytes = most

    async def look(self, keys: Sequence[str], upstream: str, marks: tuple[str, ...], max_bytes: int) -> Entry | None:
        """The entry under the first of these keys that has one, if it is good."""
        if not self.is_open:
            return None

        async def look() -> Entry | None:
            gets = asyncio.gather(*(self._store.get(_key(key)) for key in keys))
            values, found = await asyncio.gather(self._marks.values(upstream, marks), gets)
            if values is None:
                return None
            entries = (self._opened(key, raw, max_bytes) for key, raw in zip(keys, found, strict=True))
            return next((entry for entry in entries if entry is not None and entry.marks == values), None)

        return await self._within(look(), None)

    async def values(self, upstream: str, marks: tuple[str, ...]) -> tuple[str, ...] | None:
        """The values of marks now; None where they can't be had, and nothing can be put here."""
        return await self._within(self._marks.made(upstream, marks), None) if self.is_open else None

    async def put(self, held: Held, ttl_s: float, compress_from_bytes: int) -> bool:
        """Keeps an entry, which lasts `ttl_s`, in the place of others where there is no room; whether it did."""
        if not self.is_open:
            return False
        entry = held.entry
        packed = cache_entry.pack(entry, compress_from_bytes)
        sealed = sealing.seal_bytes(self._ring(), "cache", entry.key, packed, secrets.token_bytes(NONCE_BYTES))
        size = _OVERHEAD_BYTES + len(sealed)
        if size > self.max_bytes:
            return False

        async def put() -> bool:
            now_s = asyncio.get_running_loop().time()
            removed = self._deposits.add(entry.key, size, held.holder, now_s + ttl_s, now_s)
            for start in range(0, len(removed), _AT_ONCE):
                await asyncio.gather(*(self._store.delete(_key(key)) for key in removed[start : start + _AT_ONCE]))
            if entry.key not in removed:
                await self._store.set(_key(entry.key), sealed, ttl_s)
                if entry.next:
                    await self._store.set(_next(held.upstream, entry.next), _named(entry.next, entry.marks), ttl_s)
            return entry.key not in removed

        return await self._within(put(), instead=False)

    def use(self, key: str) -> None:
        """What is under this key was used again, here."""
        self._deposits.use(key)

    async def drop(self, keys: Sequence[str]) -> None:
        """Lets go of what is under these keys; or does not, where the store is away."""
        if self.is_open:
            for key in keys:
                self._deposits.drop(key)
            await self._within(asyncio.gather(*(self._store.delete(_key(key)) for key in keys)), [])

    async def names(self, keys: Sequence[str], upstream: str, marks: tuple[str, ...]) -> bool:
        """Whether a page that is good names what is under one of these keys as the page after it, as far as that is
        remembered."""
        if not self.is_open:
            return False

        async def look() -> bool:
            gets = asyncio.gather(*(self._store.get(_next(upstream, key)) for key in keys))
            values, found = await asyncio.gather(self._marks.values(upstream, marks), gets)
            pairs = zip(keys, found, strict=True)
            return values is not None and any(said == _named(key, values) for key, said in pairs)

        return await self._within(look(), False)

    @asynccontextmanager
    async def turn(self, key: str) -> AsyncIterator["Turn | str"]:
        """The turn to fetch what is under `key`: this replica's, or the name of another's."""
        own = secrets.token_hex(8)
        holder = await self._within(self._claim(key, own), own) if self.is_open else own
        if holder != own:
            yield holder
            return
        turn = Turn(self._store, key, own)
        beating = asyncio.create_task(turn.beat(), name="cache turn")
        try:
            yield turn
        finally:
            beating.cancel()
            await self._within(turn.end(), None)

    async def taken(self, key: str, holder: str) -> bool | None:
        """Waits until another's turn is over; whether it put something here. None where it has given up, or died in
        it, and the turn is to be had."""
        try:
            while True:
                said = await self._store.read(_done(holder), "", BEAT_S)
                if not said and await self._store.get(_turn(key)) != holder.encode():
                    said = await self._store.read(_done(holder), "", 0)
                    if not said:
                        return None
                if said:
                    return _KEPT.get(said[0][1])
        except StoreUnavailable:
            return False

    async def close(self) -> None:
        for task in tuple(self._late):
            task.cancel()
        await asyncio.gather(*self._late, return_exceptions=True)

    async def _claim(self, key: str, own: str) -> str:
        while not await self._store.set_nx(_turn(key), own.encode(), LEASE_S):
            holder = await self._store.get(_turn(key))
            if holder is not None:
                return holder.decode(errors="replace")
        return own

    def _opened(self, key: str, raw: bytes | None, max_bytes: int) -> Entry | None:
        packed = sealing.unseal_bytes(self._ring(), "cache", key, raw) if raw is not None else None
        return cache_entry.unpack(packed, key, max_bytes) if packed is not None else None

    async def _within(self, work: Awaitable[T], instead: T) -> T:
        """Its outcome, or `instead` where the store fails or is slow; what is late goes on, and nobody waits for it."""
        task = asyncio.ensure_future(work)
        self._late.add(task)
        task.add_done_callback(self._is_done)
        loop, slices, slice_s = asyncio.get_running_loop(), 0, LOOK_S / _SLICES
        while slices < _SLICES and not task.done():
            began_s = loop.time()
            await asyncio.wait({task}, timeout=slice_s)
            slices += loop.time() - began_s < 2 * slice_s
        if not task.done():
            self._until_s = loop.time() + PAUSE_S
            return instead
        return instead if isinstance(task.exception(), StoreUnavailable) else task.result()

    def _is_done(self, task: asyncio.Future[Any]) -> None:
        self._late.discard(task)
        if not task.cancelled():
            task.exception()  # of one that was late, nobody wants to know


class Turn:
    """A replica's turn to fetch. `kept` is what the others are told at its end: whether there is something to find;
    None where it has not come to that, and another may try."""

    def __init__(self, store: Store, key: str, own: str) -> None:
        self.kept: bool | None = None
        self._store = store
        self._key = key
        self._own = own

    async def beat(self) -> None:
        while self._store.shared:
            await asyncio.sleep(BEAT_S)
            with suppress(StoreUnavailable):
                await self._store.renew(_turn(self._key), self._own.encode(), LEASE_S)

    async def end(self) -> None:
        if self._store.shared and self._store.up:
            await self._store.append(_done(self._own), _SAID[self.kept], 2 * LEASE_S, 1)
            await self._store.delete_if(_turn(self._key), self._own.encode())


def _key(key: str) -> str:
    return f"cache:{key}"


def _next(upstream: str, key: str) -> str:
    """One place of 4096 that an upstream has for this: however many pages clients ask for, there are no more of them,
    and what another page has taken the place of is not known."""
    return f"cache-next:{upstream}:{key[:3]}"


def _named(key: str, marks: Sequence[str]) -> bytes:
    return " ".join([key, *marks]).encode()


def _turn(key: str) -> str:
    return f"cache-turn:{key}"


def _done(holder: str) -> str:
    return f"cache-done:{holder}"
