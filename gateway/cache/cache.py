"""The cache of upstreams' answers: what is held here, what is in the store, and one request upstream for all who want
the same meanwhile, at every replica.

What may be kept, for how long and for whom is decided in `policies/cache.py`, what an answer depends on in
`policies/cache_keys.py`. How a request goes on that fills the cache is the matter of `gateway/cache/flights.py`, what
it does that of `gateway/cache/filling.py`.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

from gateway.cache.depot import Depot
from gateway.cache.filling import Asked, Filling, is_failure, may_stand_in, state_of
from gateway.cache.flights import Flight, Flights
from gateway.cache.marks import Marks
from gateway.cache.shelf import Held, Shelf
from gateway.cache.watching import Watching
from gateway.logs import fields
from gateway.metrics import Metrics
from gateway.stores.shared import Shared
from gateway.upstreams.pool import Upstreams
from policies import cache
from policies.cache import Outcome
from policies.cache_debts import Name
from policies.cache_keys import Key
from policies.exchange import Answer, Event, Fail
from policies.mcp import MAY_ASK, Json
from policies.sealing import KeyRing
from policies.settings_cache import Cache as Settings

log = logging.getLogger(__name__)

WAIT_S: Final = 10.0
"""How long a request waits for what was asked for another, or for it and its like, before it goes past the cache."""

REFRESHES: Final = 16
"""How much is asked for at once by one order: upstreams are not to feel it."""


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
        self._filling = Filling(settings, self.shelf, self.marks, self._depot, self._watching, self.renew)
        self._flights: Flights[Held | Event] = Flights()

    def evolve(self, settings: Settings, upstreams: Upstreams) -> None:
        """Goes on under another configuration: with the upstreams that are still there."""
        self.settings = self._filling.settings = settings
        self.shelf.max_bytes = settings.max_bytes
        self._depot.max_bytes = settings.store_max_bytes
        self.shelf.clear()  # how answers look to clients may have changed; the store has them as they came
        self._filling.past.clear()
        self._watching.keep(upstreams)

    async def close(self) -> None:
        await self._watching.close()
        await self._flights.close()
        await self._depot.close()
        await self.marks.close()

    # what is asked

    async def find(self, asked: Asked) -> Found:
        """The answer to a request, from here, from the store, or fetched for it and its like. Cancel-safe."""
        found = self._at_hand(asked)
        # where answers are kept, log messages are missed: a request for each caller is what is to be saved there
        wants_own = asked.wants_progress or (asked.wants_more and not self._filling.is_kept(asked, unknown=False))
        if found is None and not wants_own:
            found = await self._fetched(asked)
        found = found or PAST
        self.note(asked.upstream.name, asked.key, found.outcome, found.held, found.ttl_ms)
        return found

    def state(self, asked: Asked) -> Literal["fresh", "revalidate", "on_error", "over", "past", "none"]:
        """What is held here for a request, and what it is good for: nothing is fetched, counted, or used more for it.
        `past`: its like goes past the cache for now."""
        for key in asked.keys:
            held = self.shelf.peek(key)
            if held is not None and (known := state_of(asked.upstream, held)) != "over":
                return known
        return "past" if any(self._filling.past.state(key) == "past" for key in asked.keys) else "none"

    def note(self, upstream: str, key: Key, outcome: Outcome, held: Held | None, ttl_ms: int) -> None:
        """Counts how a request was answered, and has it in the log with every part of its key."""
        self._metrics.cached.add(upstream, key.shown["method"], outcome)
        if log.isEnabledFor(logging.DEBUG):
            shared = held is not None and held.entry.shared
            log.debug("cache", extra=fields(outcome=outcome, ttl_ms=ttl_ms, **key.parts(shared=shared)))

    def _at_hand(self, asked: Asked) -> Found | None:
        """What is held here and may be given out now; a refresh may be begun for it."""
        for key in asked.keys:
            held = self.shelf.get(key)
            if held is None:
                continue
            match state_of(asked.upstream, held):
                case "fresh":
                    return Found("hit", held, _remaining_ms(held))
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
        key = asked.keys[-1]
        if self._flights.get(key) is None and asyncio.get_running_loop().time() >= held.retry_at_s:
            self._begin(asked, key, goes_on=True)

    async def _fetched(self, asked: Asked, *, goes_on: bool = False) -> Found | None:
        """Fetched by a flight that has begun already, or begins now. The flight of all callers is tried first where
        there may be one: only its outcome says whether they share it. None where the request is to go past."""
        for key in reversed(asked.keys):
            state, past = self._filling.past.state(key), self._filling.past
            if state == "past":
                return None
            flight, began = self._flights.get(key), False
            if flight is None:
                flight, began = self._begin(asked, key, is_trial=state == "trial", goes_on=goes_on), True
            elif flight.is_trial:
                return None
            if flight is None:
                return None
            if not await self._flights.wait(flight, WAIT_S):  # an upstream that hangs for one caller keeps no other
                past.add(key)
                return None
            if flight.task.cancelled():
                return None
            outcome = flight.task.result()
            if isinstance(outcome, Held):
                if outcome.entry.key in asked.keys:
                    return Found("miss", outcome, _remaining_ms(outcome))
            elif isinstance(outcome, Fail):
                return self._instead(asked, outcome)
            else:
                mine = began and isinstance(outcome, Answer) and not _asks_its_caller(asked, outcome)
                return Found("miss", event=outcome) if mine and isinstance(outcome, Answer) else None
        return None

    def _begin(
        self, asked: Asked, key: str, *, is_trial: bool = False, goes_on: bool = False
    ) -> Flight[Held | Event] | None:
        work = partial(self._filling.run, asked, key)
        return self._flights.begin(key, asked.names, work, is_trial=is_trial, goes_on=goes_on)

    def _instead(self, asked: Asked, failed: Fail) -> Found:
        """What is stale, where the upstream fails and it may still be given out; the failure where not."""
        if is_failure(failed):
            for key in asked.keys:
                held = self.shelf.get(key)
                if held is not None and may_stand_in(asked.upstream, held):
                    return Found("stale", held)
        return Found("miss", event=failed)

    # ends

    async def renew(self, upstream: str, marks: tuple[str, ...]) -> bool:
        """Ends what stands under these marks, at every replica; whether all know it. Goes on to its end whoever
        leaves: the store owes it until then."""
        return await self.marks.renew(upstream, marks)

    def heard(self, upstream: str, method: str, params: Json) -> None:
        """An upstream has said something, on whichever stream."""
        marks = cache.renewed_by(method, params)
        if marks and self.settings.max_bytes:
            self.marks.end(upstream, marks)

    async def obey(self, order: Order, upstreams: Upstreams, name: str | None) -> Done:
        """Ends everything of one upstream, or of all. `refresh` then asks again for what was held here, but for what
        takes a caller's credentials, and what was asked under another configuration."""
        again = [asked for held in self.shelf if (asked := _asked_again(held, upstreams, name)) is not None]
        names = [upstream.name for upstream in upstreams] if name is None else [name]
        self._filling.past.clear()
        told = all(await asyncio.gather(*(self.renew(one, cache.EVERY_MARK) for one in names)))
        if order == "purge":
            return Done(told)
        left = iter(again)
        fetched = sum(await asyncio.gather(*(self._fetch_again(left) for _ in range(REFRESHES))))
        return Done(told, fetched, len(again) - fetched)

    async def _fetch_again(self, left: Iterator[Asked]) -> int:
        """Fetches one after the other of what is left; how many there were to be had."""
        fetched = 0
        for asked in left:
            found = await self._fetched(asked, goes_on=True)
            fetched += found is not None and found.held is not None
        return fetched

    def _on_renewed(self, names: Sequence[Name] | None) -> None:
        self._flights.detach(names)
        if names is None:
            self.shelf.clear()
        else:
            self.shelf.drop_under(names)


def _asked_again(held: Held, upstreams: Upstreams, name: str | None) -> Asked | None:
    """What a held entry answers, if it can be asked again in nobody's name, and is the named upstream's."""
    upstream = upstreams.get(held.upstream)
    if upstream is None or name not in (None, held.upstream) or upstream.config != held.key.shown["config"]:
        return None
    if held.call is None:
        return None
    return Asked(upstream, held.call, held.key)


def _remaining_ms(held: Held) -> int:
    return cache.remaining_ms(held.entry.received_s, held.entry.ttl_ms, time.time())


def _asks_its_caller(asked: Asked, answer: Answer) -> bool:
    """Whether the caller must come back with something, in a request of its own."""
    return (
        asked.call.method in MAY_ASK
        and answer.dialect.era == "modern"
        and answer.result.get("resultType") == "input_required"
    )
