"""One request that fills the cache: what there is in the store, or what the upstream says to this replica's request or
to another's; and what is done with the answer.

What may be kept, for how long and for whom is decided in `policies/cache.py`. The request is the gateway's own: it
carries the capabilities of its key and nothing else of its caller, and is of nobody's connection.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Literal

from gateway.cache.depot import Depot, Turn
from gateway.cache.marks import Marks
from gateway.cache.shelf import Held, Shelf
from gateway.cache.watching import Watching
from gateway.exchange import Exchange
from gateway.upstreams.pool import Upstream
from policies import cache, cache_keys
from policies.cache_debts import Name
from policies.cache_entry import Entry
from policies.cache_keys import Key
from policies.exchange import Answer, Ask, Call, Cancelled, Event, Fail, is_last
from policies.jsonrpc import dumps
from policies.mcp import INVALID_PARAMS, LISTS
from policies.settings_cache import Cache as Settings

PASS_S: Final = 60.0
"""How long requests go past the cache whose like was answered by what is not kept, before one is tried again."""

MAX_PASSED: Final = 8192
"""Keys of which that is remembered."""

RETRY_S: Final = 5.0
"""How long what is stale is given without another try, after one that failed."""

_FAILURES: Final = frozenset({429, 500, 502, 503, 504})

Renew = Callable[[str, tuple[str, ...]], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Asked:
    """One request that the cache may answer. `call` is as it goes upstream. `wants_progress`: it asks to be told of
    that, as only a request of its own can tell it; `wants_more`: the same of log messages, or its host can be asked for
    something."""

    upstream: Upstream
    call: Call
    key: Key
    wants_progress: bool = False
    wants_more: bool = False

    @property
    def marks(self) -> tuple[str, ...]:
        return cache.marks_of(self.call.method, self.call.params)

    @property
    def names(self) -> tuple[Name, ...]:
        return tuple((self.upstream.name, mark) for mark in self.marks)

    @property
    def keys(self) -> tuple[str, ...]:
        """Where its answer may be, the caller's own first."""
        settings = self.upstream.settings.cache
        public = self.key.public if settings.trust_public or settings.scope == "public" else None
        return (self.key.private,) if public is None else (self.key.private, public)


class Past:
    """Keys whose requests go past the cache for a while."""

    def __init__(self) -> None:
        self._until: OrderedDict[str, float] = OrderedDict()

    def add(self, key: str) -> None:
        self._until[key] = asyncio.get_running_loop().time() + PASS_S
        self._until.move_to_end(key)
        while len(self._until) > MAX_PASSED:
            self._until.popitem(last=False)

    def remove(self, key: str) -> None:
        self._until.pop(key, None)

    def clear(self) -> None:
        self._until.clear()

    def state(self, key: str) -> Literal["past", "trial", "unknown"]:
        """`trial`: one of them is to be tried again."""
        until_s = self._until.get(key)
        if until_s is None:
            return "unknown"
        return "past" if asyncio.get_running_loop().time() < until_s else "trial"


class Filling:
    """`run` does the whole of it; what it has brought is in `shelf` and `depot` then, if it is kept. `renew` ends what
    stands under marks of an upstream."""

    def __init__(
        self, settings: Settings, shelf: Shelf, marks: Marks, depot: Depot, watching: Watching, renew: Renew
    ) -> None:
        self.settings = settings
        self.past = Past()
        self._shelf = shelf
        self._marks = marks
        self._depot = depot
        self._watching = watching
        self._renew = renew
        self._keeps: dict[tuple[str, str], bool] = {}
        """Of each upstream and method, whether the last answer was kept."""

    async def run(self, asked: Asked, key: str) -> Held | Event:
        """The answer, for all who want what is under `key`. Cancel-safe: the request upstream is called off."""
        looks = True
        while True:
            found = await self._look(asked) if looks else None
            if found is not None:
                return found
            # once something has ended, nobody waits for the turn of who had begun before
            turn_key = cache_keys.digest([key, await self._depot.values(asked.upstream.name, asked.marks)])
            async with self._depot.turn(turn_key) as turn:
                if isinstance(turn, Turn):
                    return await self._look(asked) or await self._fetch(asked, key, turn)
                kept = await self._depot.taken(turn_key, turn)
            if kept is False:  # there is nothing to be shared
                return await self._fetch(asked, key, None)
            looks = kept is True

    def is_kept(self, asked: Asked, *, unknown: bool) -> bool:
        """Whether the answer is likely to be one that is kept; `unknown` where nothing is known."""
        upstream, described = asked.upstream, asked.upstream.description
        hints = cache.may_hint(described.raw if described is not None else None, upstream.settings.cache)
        return hints or self._keeps.get((upstream.name, asked.call.method), unknown)

    async def _look(self, asked: Asked) -> Held | None:
        """What is good in the store. What is no longer fresh is held, for the time that the upstream fails."""
        moment = self._marks.moment
        entry = await self._depot.look(asked.keys, asked.upstream.name, asked.marks, self.settings.max_entry_bytes)
        if entry is None or self._marks.changed_since(moment, asked.upstream.name, asked.marks):
            return None
        held = Held(entry, asked.upstream.name, asked.marks, asked.call, asked.key)
        state = state_of(asked.upstream, held)
        if state == "fresh":
            self._shelf.put(held)
            self._watching.extend(asked.upstream, asked.call, _lasts_s(asked.upstream, entry))
            return held
        if state != "over" and self._shelf.get(entry.key) is None:
            self._shelf.put(held)
        return None

    async def _fetch(self, asked: Asked, key: str, turn: Turn | None) -> Held | Event:
        if not self.is_kept(asked, unknown=True):
            return await self._fetch_now(asked, key, turn)
        async with self._watching.fetching(asked.upstream, asked.call):
            return await self._fetch_now(asked, key, turn)

    async def _fetch_now(self, asked: Asked, key: str, turn: Turn | None) -> Held | Event:
        upstream, call = asked.upstream, asked.call
        was_heard, moment = self._watching.hears(upstream, call), self._marks.moment
        values = await self._depot.values(upstream.name, asked.marks)
        event = await _run(upstream, call)
        entry = self._entry(asked, event, values or ()) if isinstance(event, Answer) else None
        await self._supersede(asked, event, entry)
        if entry is None:
            if turn is not None:
                turn.kept = False
            await self._not_kept(asked, key, event)
            return event
        self._keeps[(upstream.name, call.method)] = True
        self.past.remove(key)
        held = Held(entry, upstream.name, asked.marks, call, asked.key)
        if self._marks.changed_since(moment, upstream.name, asked.marks):
            return held  # for those who have asked; it may not be what the upstream has now
        if not was_heard and self._watching.hears(upstream, call):
            if turn is not None:
                turn.kept = False
            return held  # what changed before anybody listened is not known
        self._shelf.put(held)
        self._watching.extend(upstream, call, _lasts_s(upstream, entry), unheard=not was_heard)
        if values is not None and turn is not None:
            await self._store(held, asked, turn, moment)
        return held

    async def _store(self, held: Held, asked: Asked, turn: Turn, moment: int) -> None:
        """Puts into the store what was fetched, unless something has ended it meanwhile."""
        name, marks = asked.upstream.name, asked.marks
        if await self._depot.values(name, marks) != held.entry.marks or self._marks.changed_since(moment, name, marks):
            self._shelf.drop(held.entry.key)
            return
        ttl_s = _lasts_s(asked.upstream, held.entry)
        turn.kept = await self._depot.put(held, ttl_s, self.settings.compress_from_bytes)

    def _entry(self, asked: Asked, answer: Answer, marks: tuple[str, ...]) -> Entry | None:
        """What is kept of an answer, if anything."""
        call, settings = asked.call, asked.upstream.settings.cache
        dialect = answer.dialect
        if dialect.version != asked.key.shown["version"]:
            return None  # it turned out to be of another era than the key says
        may_share = asked.key.public is not None
        kept = cache.keep(call.method, answer.result, dialect.era, settings, may_share=may_share)
        if kept is None:
            return None

        def own(key: Key) -> str:
            return (key.public or "") if kept.shared else key.private

        cursor = answer.result.get("nextCursor") if call.method in LISTS else None
        entry = Entry(
            key=own(asked.key),
            received_s=time.time(),
            ttl_ms=kept.ttl_ms,
            scope=kept.scope,
            shared=kept.shared,
            marks=marks,
            era=dialect.era,
            version=dialect.version,
            server_info=dumps(answer.server_info) if answer.server_info is not None else b"",
            result=dumps(answer.result),
            next=own(asked.key.page(cursor)) if isinstance(cursor, str) else "",
        )
        return entry if entry.size <= min(self.settings.max_entry_bytes, self.settings.max_bytes) else None

    async def _supersede(self, asked: Asked, event: Event, entry: Entry | None) -> None:
        """What is stale is given on while the upstream fails, for as long as it may be. Whatever else the upstream says
        stands in its place, also where that is not kept, or is kept for others."""
        failed, ended = is_failure(event), []
        for key in asked.keys:
            held = self._shelf.get(key)
            if held is None or state_of(asked.upstream, held) == "fresh" or (entry is not None and entry.key == key):
                continue
            if failed and may_stand_in(asked.upstream, held):
                held.retry_at_s = asyncio.get_running_loop().time() + RETRY_S
            else:
                self._shelf.drop(key)
                ended.append(key)
        if ended:
            await self._depot.drop(ended)

    async def _not_kept(self, asked: Asked, key: str, event: Event) -> None:
        call, name = asked.call, asked.upstream.name
        if isinstance(event, Answer | Ask):
            self._keeps.setdefault((name, call.method), False)
            self.past.add(key)
        elif isinstance(event, Fail) and event.code == INVALID_PARAMS and "cursor" in call.params:
            # a cursor that leads nowhere any more ends all pages (Interaction with Pagination); one that no page has
            # named is its client's own mistake
            is_named = any(self._shelf.is_named(name, key) for key in asked.keys)
            if is_named or await self._depot.names(asked.keys, name, asked.marks):
                await self._renew(name, asked.marks)


def is_failure(event: Event) -> bool:
    """Whether the upstream was not able to answer, rather than answer so."""
    return isinstance(event, Cancelled) or (
        isinstance(event, Fail) and (event.dialect is None or event.http in _FAILURES)
    )


def state_of(upstream: Upstream, held: Held) -> cache.State:
    entry = held.entry
    return cache.state(entry.received_s, entry.ttl_ms, time.time(), upstream.settings.cache)


def may_stand_in(upstream: Upstream, held: Held) -> bool:
    entry = held.entry
    return cache.may_stand_in(entry.received_s, entry.ttl_ms, time.time(), upstream.settings.cache)


def _lasts_s(upstream: Upstream, entry: Entry) -> float:
    return cache.lasts_s(entry.received_s, entry.ttl_ms, time.time(), upstream.settings.cache)


async def _run(upstream: Upstream, call: Call) -> Event:
    """What becomes of a request of the gateway's own: the last event, or the first question, which nobody is there to
    answer."""
    exchange = Exchange(call)
    exchange.start(upstream.leg)
    cursor = 0
    try:
        while items := await exchange.read(cursor):
            for cursor, event in items:  # noqa: B007 - where to read on
                if is_last(event) or isinstance(event, Ask):
                    return event
    finally:
        if not exchange.ended:
            exchange.cancel()
    assert exchange.last is not None
    return exchange.last
