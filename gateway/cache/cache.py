"""The cache of upstreams' answers: what is held here, what is in the store, and one request upstream for all who want
the same meanwhile, at every replica.

What may be kept, for how long and for whom is decided in `policies/cache.py`, what an answer depends on in
`policies/cache_keys.py`. A request that fills the cache is the gateway's own: it carries the capabilities of its key
and nothing else of its caller, runs to its end whoever leaves, and is of nobody's connection.
"""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from gateway.background import Background
from gateway.cache.depot import Depot, Turn
from gateway.cache.marks import Marks
from gateway.cache.shelf import Held, Shelf
from gateway.cache.watching import Watching
from gateway.exchange import Exchange
from gateway.logs import fields
from gateway.metrics import Metrics
from gateway.stores.shared import Shared
from gateway.upstreams.pool import Upstream, Upstreams
from policies import cache
from policies.cache import Outcome
from policies.cache_entry import Entry
from policies.cache_keys import Key
from policies.exchange import Answer, Ask, Call, Event, Fail, is_last
from policies.jsonrpc import dumps
from policies.mcp import INVALID_PARAMS, LISTS, Json
from policies.sealing import KeyRing
from policies.settings_cache import Cache as Settings

log = logging.getLogger(__name__)

PASS_S: Final = 60.0
"""How long requests go past the cache whose like was answered by what is not kept, before one is tried again."""

WAIT_S: Final = 10.0
"""How long a request waits for what was asked for another, or for it and its like, before it goes past the cache."""

MAX_PASSED: Final = 8192
"""Keys of which that is remembered."""

RETRY_S: Final = 5.0
"""How long what is stale is given without another try, after one that failed."""

_FAILURES: Final = frozenset({429, 500, 502, 503, 504})


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
    def keys(self) -> tuple[str, ...]:
        """Where its answer may be, the caller's own first."""
        settings = self.upstream.settings.cache
        public = self.key.public if settings.trust_public or settings.scope == "public" else None
        return (self.key.private,) if public is None else (self.key.private, public)


@dataclass(frozen=True, slots=True)
class Found:
    """An answer: what is `held`, with the freshness that is left of it, or the `event` that came instead."""

    outcome: Outcome
    held: Held | None = None
    ttl_ms: int = 0
    event: Answer | Fail | None = None


Order = Literal["purge", "refresh"]


@dataclass(frozen=True, slots=True)
class Done:
    """What came of an order: whether every replica knows, how much was fetched, and how much could not be."""

    everywhere: bool
    fetched: int = 0
    failed: int = 0


PAST: Final = Found("bypass")
"""The request goes to the upstream as it is."""


@dataclass(eq=False, slots=True)
class _Flight:
    """`asked`: of the caller for whom it began. `is_trial`: nobody waits for it who did not begin it."""

    asked: Asked
    task: "asyncio.Task[Held | Event]"
    is_trial: bool


class Cache:
    def __init__(self, settings: Settings, state: Shared, ring: Callable[[], KeyRing], metrics: Metrics) -> None:
        self.settings = settings
        self.shelf = Shelf(settings.max_bytes)
        self.marks = Marks(state.store, state.mail)
        self.marks.on_renewed = self._on_renewed
        self._metrics = metrics
        self._depot = Depot(state.store, self.marks, ring, settings.store_max_bytes)
        self.shelf.on_used = self._depot.use
        self._watching = Watching(self.renew)
        self._flights: dict[str, _Flight] = {}
        self._passed: OrderedDict[str, float] = OrderedDict()
        self._keeps: dict[tuple[str, str], bool] = {}
        """Of each upstream and method, whether the last answer was kept."""
        self._background = Background()

    def evolve(self, settings: Settings, upstreams: Upstreams) -> None:
        """Goes on under another configuration: with the upstreams that are still there."""
        self.settings = settings
        self.shelf.max_bytes = settings.max_bytes
        self._depot.max_bytes = settings.store_max_bytes
        self.shelf.clear()  # how answers look to clients may have changed; the store has them as they came
        self._passed.clear()
        self._watching.keep(upstreams)

    async def close(self) -> None:
        await self._watching.close()
        flights = [flight.task for flight in self._flights.values()]
        for task in flights:
            task.cancel()
        await asyncio.gather(*flights, return_exceptions=True)
        await self._background.close()
        await self._depot.close()
        await self.marks.close()

    # what is asked

    async def find(self, asked: Asked) -> Found:
        """The answer to a request, from here, from the store, or fetched for it and its like. Cancel-safe."""
        found = self._at_hand(asked)
        # where answers are kept, log messages are missed: a request for each caller is what is to be saved there
        wants_own = asked.wants_progress or (asked.wants_more and not self._is_kept(asked, unknown=False))
        if found is None and not wants_own:
            found = await self._fetched(asked)
        found = found or PAST
        self._metrics.cached.add(asked.upstream.name, asked.call.method, found.outcome)
        if log.isEnabledFor(logging.DEBUG):
            shared = found.held is not None and found.held.entry.shared
            log.debug(
                "cache", extra=fields(outcome=found.outcome, ttl_ms=found.ttl_ms, **asked.key.parts(shared=shared))
            )
        return found

    def _at_hand(self, asked: Asked) -> Found | None:
        """What is held here and may be given out now; a refresh may be begun for it."""
        for key in asked.keys:
            held = self.shelf.get(key)
            if held is None:
                continue
            match self._state(asked.upstream, held):
                case "fresh":
                    return Found("hit", held, self._remaining_ms(held))
                case "revalidate":
                    self._refresh(asked, held)
                    return Found("stale", held)
                case "on_error" if asyncio.get_running_loop().time() < held.retry_at_s:
                    return Found("stale", held)
                case "over":
                    self.shelf.drop(key)
                case _:
                    pass  # it is no time yet to give it out
        return None

    def _refresh(self, asked: Asked, held: Held) -> None:
        if asked.keys[-1] not in self._flights and asyncio.get_running_loop().time() >= held.retry_at_s:
            self._begin(asked, asked.keys[-1], is_trial=False)

    async def _fetched(self, asked: Asked) -> Found | None:
        """Fetched by a flight that has begun already, or begins now. The flight of all callers is tried first where
        there may be one: only its outcome says whether they share it."""
        for key in reversed(asked.keys):
            flight, began = self._flights.get(key), False
            if flight is None:
                until_s = self._passed.get(key)
                if until_s is not None and asyncio.get_running_loop().time() < until_s:
                    return None
                flight, began = self._begin(asked, key, is_trial=until_s is not None), True
            elif flight.is_trial:
                return None
            await asyncio.wait({flight.task}, timeout=WAIT_S)
            if not flight.task.done():  # an upstream that hangs for one caller keeps no other
                self._pass_by(key)
                return None
            if flight.task.cancelled():
                return None
            outcome = flight.task.result()
            if isinstance(outcome, Held):
                if outcome.entry.key in asked.keys:
                    return Found("miss", outcome, self._remaining_ms(outcome))
            elif isinstance(outcome, Fail):
                return self._instead(asked, outcome)
            else:
                mine = began and isinstance(outcome, Answer) and not _is_question(outcome)
                return Found("miss", event=outcome) if mine and isinstance(outcome, Answer) else None
        return None

    def _instead(self, asked: Asked, failed: Fail) -> Found:
        """What is stale, where the upstream fails and it may still be given out; the failure where not."""
        if failed.dialect is None or failed.http in _FAILURES:
            for key in asked.keys:
                held = self.shelf.get(key)
                if held is not None and self._state(asked.upstream, held) != "over":
                    held.retry_at_s = asyncio.get_running_loop().time() + RETRY_S
                    return Found("stale", held)
        return Found("miss", event=failed)

    # fetching

    def _begin(self, asked: Asked, key: str, *, is_trial: bool) -> _Flight:
        task = asyncio.create_task(self._fly(asked, key), name=f"cache {asked.upstream.name}")
        flight = self._flights[key] = _Flight(asked, task, is_trial)
        task.add_done_callback(lambda done: self._landed(key, done))
        return flight

    def _landed(self, key: str, task: "asyncio.Task[Held | Event]") -> None:
        del self._flights[key]
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a request that fills the cache failed", exc_info=error)

    async def _fly(self, asked: Asked, key: str) -> Held | Event:
        """What there is in the store, or what the upstream says to this replica's request or another's."""
        moment, looked = self.marks.moment, True
        while True:
            found = await self._look(asked, moment) if looked else None
            if found is not None:
                return found
            async with self._depot.turn(key) as turn:
                if isinstance(turn, Turn):
                    return await self._look(asked, moment) or await self._fetch(asked, key, turn)
                looked = await self._depot.taken(key, turn)
            if not looked:  # there is nothing to be shared, or nobody is left who says so
                return await self._fetch(asked, key, None)

    async def _look(self, asked: Asked, moment: int) -> Held | None:
        entry = await self._depot.look(asked.keys, asked.upstream.name, asked.marks, self.settings.max_entry_bytes)
        if entry is None or self.marks.changed_since(moment, asked.upstream.name, asked.marks):
            return None
        held = Held(entry, asked.upstream.name, asked.marks, asked.call, asked.key)
        if self._state(asked.upstream, held) != "fresh":
            if self.shelf.get(entry.key) is None:
                self.shelf.put(held)  # for the time that the upstream fails
            return None
        self.shelf.put(held)
        self._watching.extend(asked.upstream, asked.call, self._lasts_s(asked.upstream, entry))
        return held

    async def _fetch(self, asked: Asked, key: str, turn: Turn | None) -> Held | Event:
        upstream, call = asked.upstream, asked.call
        if not self._is_kept(asked, unknown=True):
            return await self._fetch_now(asked, key, turn)
        async with self._watching.fetching(upstream, call):
            return await self._fetch_now(asked, key, turn)

    def _is_kept(self, asked: Asked, *, unknown: bool) -> bool:
        """Whether the answer is likely to be one that is kept; `unknown` where nothing is known."""
        upstream, described = asked.upstream, asked.upstream.description
        hints = cache.may_hint(described.raw if described is not None else None, upstream.settings.cache)
        return hints or self._keeps.get((upstream.name, asked.call.method), unknown)

    async def _fetch_now(self, asked: Asked, key: str, turn: Turn | None) -> Held | Event:
        upstream, call = asked.upstream, asked.call
        was_heard, moment = self._watching.hears(upstream, call), self.marks.moment
        values = await self._depot.values(upstream.name, asked.marks)
        event = await _run(upstream, call)
        entry = self._entry(asked, event, values or ()) if isinstance(event, Answer) else None
        if entry is None:
            self._not_kept(asked, key, event)
            return event
        self._keeps[(upstream.name, call.method)] = True
        self._passed.pop(key, None)
        held = Held(entry, upstream.name, asked.marks, call, asked.key)
        began_to_hear = not was_heard and self._watching.hears(upstream, call)
        if began_to_hear or self.marks.changed_since(moment, upstream.name, asked.marks):
            return held  # for those who have asked; it may not be what the upstream has now
        self.shelf.put(held)
        self._watching.extend(upstream, call, self._lasts_s(upstream, entry), unheard=not was_heard)
        if values is not None and turn is not None:
            await self._store(held, asked, turn, moment)
        return held

    async def _store(self, held: Held, asked: Asked, turn: Turn, moment: int) -> None:
        """Puts into the store what was fetched, unless something has ended it meanwhile."""
        name, marks = asked.upstream.name, asked.marks
        if await self._depot.values(name, marks) != held.entry.marks or self.marks.changed_since(moment, name, marks):
            self.shelf.drop(held.entry.key)
            return
        ttl_s = self._lasts_s(asked.upstream, held.entry)
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
        entry = Entry(
            key=(asked.key.public or "") if kept.shared else asked.key.private,
            received_s=time.time(),
            ttl_ms=kept.ttl_ms,
            scope=kept.scope,
            shared=kept.shared,
            marks=marks,
            era=dialect.era,
            version=dialect.version,
            server_info=dumps(answer.server_info) if answer.server_info is not None else b"",
            result=dumps(answer.result),
        )
        return entry if entry.size <= min(self.settings.max_entry_bytes, self.settings.max_bytes) else None

    def _not_kept(self, asked: Asked, key: str, event: Event) -> None:
        call = asked.call
        if isinstance(event, Answer | Ask):
            self._keeps.setdefault((asked.upstream.name, call.method), False)
            self._pass_by(key)
        elif (
            isinstance(event, Fail)
            and event.code == INVALID_PARAMS
            and call.method in LISTS
            and "cursor" in call.params
        ):
            # a cursor that leads nowhere any more ends all pages (Interaction with Pagination)
            self._background.start(self.renew(asked.upstream.name, asked.marks))

    def _pass_by(self, key: str) -> None:
        self._passed[key] = asyncio.get_running_loop().time() + PASS_S
        self._passed.move_to_end(key)
        while len(self._passed) > MAX_PASSED:
            self._passed.popitem(last=False)

    # ends

    async def renew(self, upstream: str, marks: tuple[str, ...]) -> bool:
        """Ends what stands under these marks, at every replica; whether all know it."""
        return await self.marks.renew(upstream, marks)

    def heard(self, upstream: str, method: str, params: Json) -> None:
        """An upstream has said something, on whichever stream."""
        marks = cache.renewed_by(method, params)
        if marks and self.settings.max_bytes:
            self.marks.end(upstream, marks)

    async def obey(self, order: Order, upstreams: Upstreams, name: str | None) -> Done:
        """Ends everything of one upstream, or of all. `refresh` then asks again for what was held here, but for what
        takes a caller's credentials."""
        wanted = [held for held in self.shelf if name in (None, held.upstream) and held.call is not None]
        names = [upstream.name for upstream in upstreams] if name is None else [name]
        self._passed.clear()
        told = all(await asyncio.gather(*(self.renew(one, cache.EVERY_MARK) for one in names)))
        if order == "purge":
            return Done(told)
        fetched = await asyncio.gather(*(self._fetch_again(upstreams, held) for held in wanted))
        return Done(told, sum(fetched), len(fetched) - sum(fetched))

    async def _fetch_again(self, upstreams: Upstreams, held: Held) -> bool:
        upstream = upstreams.get(held.upstream)
        if upstream is None or held.call is None:
            return False
        found = await self._fetched(Asked(upstream, held.call, held.key))
        return found is not None and found.held is not None

    def _on_renewed(self, names: Any) -> None:
        if names is None:
            self.shelf.clear()
        else:
            self.shelf.drop_under(names)

    # times

    def _state(self, upstream: Upstream, held: Held) -> cache.State:
        entry = held.entry
        return cache.state(entry.received_s, entry.ttl_ms, time.time(), upstream.settings.cache)

    def _remaining_ms(self, held: Held) -> int:
        return cache.remaining_ms(held.entry.received_s, held.entry.ttl_ms, time.time())

    def _lasts_s(self, upstream: Upstream, entry: Entry) -> float:
        return cache.lasts_s(entry.received_s, entry.ttl_ms, time.time(), upstream.settings.cache)


def _is_question(answer: Answer) -> bool:
    """Whether its caller must come back with something, in a request of its own."""
    return answer.dialect.era == "modern" and answer.result.get("resultType") == "input_required"


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
