"""What each caller's hosts were given of MCP Apps, remembered so that it is told again in what goes to an LLM API.

Fed by the MCP plane as answers pass to hosts that show Apps, read by the provider plane; by caller and upstream. Nobody
waits for the store to be told: what could not be written is owed, and written once the store is back. A reader takes
what others have written since it last looked, within a bound of time; where the store is down or slow, what this
process has seen itself counts alone. Which marks there are is decided in `policies/sightings.py`.
"""

import asyncio
import logging
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import Final

import msgspec

from gateway.background import Background
from gateway.exchange import Exchange
from gateway.stores.base import MAX_READ, Store, StoreUnavailable
from policies import identity, sightings
from policies.apps_marks import might_show
from policies.exchange import Answer, Event, Notify
from policies.jsonrpc import loads
from policies.mcp import Json
from policies.provider import Inspected, Known
from policies.provider_heads import gathered
from policies.sightings import Book, Kind, Mark

log = logging.getLogger(__name__)

TTL_S: Final = 7 * 86_400.0
"""How long a mark counts after it was last seen; one that is found in a conversation counts as seen."""

MAX_MARKS: Final = 4096
"""Of one caller at one upstream: several large lists of tools, and as many interfaces."""

MAX_ALL: Final = 65_536
"""Of all callers here: some 20 MB. Those of whoever was not heard of for longest go first."""

MAX_LOG: Final = 8192
"""Of one caller in the store, about 100 bytes each."""

LOOK_S: Final = 0.1
"""How long a request waits for the store; on a healthy network that is a millisecond."""

PAUSE_S: Final = 1.0
"""How long a store that took longer is not asked."""

_RETRY_S: Final = 0.5


class _Told(msgspec.Struct, array_like=True):
    upstream: str
    kind: Kind
    word: str
    seen_s: float


_told = msgspec.msgpack.Decoder(_Told)


class Ledger:
    """`on`: whether any LLM API is configured; without, nothing is remembered."""

    def __init__(self, store: Store) -> None:
        self.on = False
        self._store = store
        self._books: dict[str, dict[str, Book]] = {}
        """By caller, then by upstream; whoever was heard of last stands last."""
        self._size = 0
        self._cursors: dict[str, str] = {}
        self._reading: dict[str, asyncio.Task[None]] = {}
        self._owed: dict[tuple[str, str, Mark], None] = {}
        self._background = Background()
        self._telling = False
        self._until_s = 0.0

    def __len__(self) -> int:
        """Marks held here."""
        return self._size

    # what is seen

    def heard(self, upstream: str, exchange: Exchange, event: Event) -> None:
        """What comes of a call goes to whoever made it."""
        call = exchange.call
        if not self.on or not exchange.profile.shows_apps:
            return
        client = identity.client_of(call.principal)
        if isinstance(event, Answer) and sightings.can_show(call.method):
            self.see(client, upstream, call.method, call.params, event.result)
        elif isinstance(event, Notify) and event.method.startswith("notifications/tasks"):
            self.see(client, upstream, "tasks/get", {}, event.params)  # a task that is over, in the same words

    def see_raw(self, client: str | None, upstream: str, method: str, params: Json, raw: bytes) -> None:
        """The same of an answer that passes as it came, to a host that shows Apps."""
        if not self.on or not sightings.can_show(method) or not might_show(raw):
            return
        with suppress(ValueError):  # what cannot be read is no interface to whoever reads it
            message = loads(raw)
            if isinstance(message, dict) and isinstance(message.get("result"), dict):
                self.see(client, upstream, method, params, message["result"])

    def see(self, client: str | None, upstream: str, method: str, params: Json, result: Json) -> None:
        self.note(client, upstream, sightings.marks_of(method, params, result))

    def note(self, client: str | None, upstream: str, marks: Iterable[Mark]) -> None:
        """These marks of what this upstream says were given to this client's host."""
        if self.on:
            self._note(principal_of(client), upstream, marks)

    def _note(self, principal: str, upstream: str, marks: Iterable[Mark]) -> None:
        now_s = time.time()
        for mark in marks:
            if self._put(principal, upstream, mark, now_s) and self._store.shared:
                self._owed[principal, upstream, mark] = None
        while len(self._owed) > MAX_ALL:
            self._owed.pop(next(iter(self._owed)))
        if self._owed and not self._telling:
            self._telling = True
            self._background.start(self._tell(), name="ledger")

    # what is known

    async def has_any(self, client: str | None) -> bool:
        """Whether this client's hosts were given any interface, by all that can be known now. Cancel-safe."""
        principal = principal_of(client)
        await self._catch_up(principal)
        return principal in self._books

    def known(self, client: str | None, inspected: Inspected) -> Known:
        """What of a body is known to be of an interface that this client's hosts were given. It counts as seen again,
        so that the same part of a conversation stays the same for as long as the conversation lasts."""
        principal, now_s = principal_of(client), time.time()
        bodies: dict[str, list[Book]] = {}
        hidden: set[str] = set()
        shown: set[str] = set()
        heads: list[str] = []
        again: list[tuple[str, list[Mark]]] = []
        for upstream, book in self._books.get(principal, {}).items():
            found: list[Mark] = []
            for digest in book.among("body", inspected.digests, now_s):
                bodies.setdefault(digest, []).append(book)
                found.append(("body", digest))
            begun = book.beginning(inspected.digests, now_s)
            for head in begun:
                bodies.setdefault(head.rpartition(":")[2], []).append(book)
            heads += begun
            found += [("head", head) for head in begun]
            definitions = book.among("definition", inspected.digests, now_s)
            hides = book.among("hidden", inspected.tools, now_s)
            shows = book.among("shown", inspected.tools, now_s)
            found += [("definition", digest) for digest in definitions]
            found += [("hidden", name) for name in hides]
            found += [("shown", name) for name in shows]
            hidden |= definitions | hides
            shown |= shows
            again.append((upstream, found))
        for upstream, marks in again:
            self._note(principal, upstream, marks)
        return Known(
            frozenset(bodies),
            frozenset(hidden),
            frozenset(shown),
            _only_in(bodies, inspected.tools, now_s),
            gathered(heads),
        )

    def configure(self, clients: Collection[str], *, on: bool) -> None:
        """Another configuration has these clients: what was remembered of others goes."""
        self.on = on
        wanted = {principal_of(None), *map(principal_of, clients)} if self.on else set()
        for principal in [one for one in self._books if one not in wanted]:
            self._size -= sum(map(len, self._books.pop(principal).values()))
        for cursors in (self._cursors, self._reading):
            for principal in [one for one in cursors if one not in wanted]:
                cursors.pop(principal)
        self._owed = {key: None for key in self._owed if key[0] in wanted}

    async def close(self) -> None:
        await self._background.close()

    # the books

    def _put(self, principal: str, upstream: str, mark: Mark, seen_s: float) -> bool:
        """Takes a mark down; whether the others must be told."""
        books = self._books[principal] = self._books.pop(principal, {})
        book = books.pop(upstream, None) or Book(MAX_MARKS, TTL_S)
        books[upstream] = book
        before = len(book)
        is_news = book.add(mark, seen_s)
        self._size += len(book) - before
        while self._size > MAX_ALL:
            self._drop_oldest()
        return is_news

    def _drop_oldest(self) -> None:
        principal, books = next(iter(self._books.items()))
        upstream, book = next(iter(books.items()))
        book.drop_oldest()
        self._size -= 1
        if not book:
            del books[upstream]
        if not books:
            del self._books[principal]
            self._cursors.pop(principal, None)  # what it had is in the store, and read again when it is asked for

    # the store

    async def _tell(self) -> None:
        try:
            while self._owed:
                principal, upstream, mark = next(iter(self._owed))
                told = msgspec.msgpack.encode(_Told(upstream, *mark, round(time.time())))
                try:
                    await self._store.append(_key(principal), told, TTL_S, MAX_LOG)
                    self._owed.pop((principal, upstream, mark), None)
                except StoreUnavailable:
                    await asyncio.sleep(_RETRY_S)
        finally:
            self._telling = False

    async def _catch_up(self, principal: str) -> None:
        """Reads what other replicas have seen, for as long as a request may wait; the rest is read meanwhile."""
        now_s = asyncio.get_running_loop().time()
        if not (self._store.shared and self._store.up) or now_s < self._until_s:
            return
        task = self._reading.get(principal)
        if task is None or task.done():
            task = self._reading[principal] = self._background.start(self._read(principal), name="ledger read")
        done, _ = await asyncio.wait({task}, timeout=LOOK_S)
        if not done:
            self._until_s = asyncio.get_running_loop().time() + PAUSE_S

    async def _read(self, principal: str) -> None:
        with suppress(StoreUnavailable):
            while True:
                found = await self._store.read(_key(principal), self._cursors.get(principal, ""), 0)
                for cursor, raw in found:
                    self._cursors[principal] = cursor
                    with suppress(msgspec.MsgspecError):  # of another version
                        told = _told.decode(raw)
                        self._put(principal, told.upstream, (told.kind, told.word), min(told.seen_s, time.time()))
                if len(found) < MAX_READ:
                    return


def _only_in(bodies: Mapping[str, list[Book]], called: Collection[str], now_s: float) -> dict[str, frozenset[str]]:
    """By digest, those tools of the upstreams with its books that are called; no entry where one of these has told of
    no tools. Each book is asked once, and each set made once: there may be thousands of both digests and names."""
    names: dict[int, frozenset[str] | None] = {}
    unions: dict[tuple[int, ...], frozenset[str] | None] = {}
    found: dict[str, frozenset[str]] = {}
    for digest, books in bodies.items():
        key = tuple(map(id, books))
        if key not in unions:
            for book in books:
                if id(book) not in names:
                    names[id(book)] = _names(book, called, now_s)
            told = [one for book in books if (one := names[id(book)]) is not None]
            unions[key] = frozenset().union(*told) if len(told) == len(books) else None
        if (union := unions[key]) is not None:
            found[digest] = union
    return found


def _names(book: Book, called: Collection[str], now_s: float) -> frozenset[str] | None:
    """Those tools of an upstream that are called; None where it has told of none."""
    if not book.has_names(now_s):
        return None
    return frozenset().union(*(book.among(kind, called, now_s) for kind in ("hidden", "shown", "plain")))


def principal_of(client: str | None) -> str:
    """Whose hosts and whose conversations belong together: a client's, or those of everybody without a key."""
    return identity.principal((), client)


def _key(principal: str) -> str:
    return f"ledger:{principal}"
