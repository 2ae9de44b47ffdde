"""Requests that fill the cache and are under way: one for all who want the same meanwhile, and how long it goes on.

A flight nobody waits for any more is called off, as a request is whose client leaves. One that is somebody's order, or
that brings what is given out already up to date, goes on; so does one that was waited for as long as anybody waits: its
answer is for those who come next. What it does is not known here: `gateway/cache/filling.py`.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection, Coroutine
from typing import Any, Final, Generic, TypeVar

from policies.cache_debts import Name

log = logging.getLogger(__name__)

T = TypeVar("T")

MAX_FLIGHTS: Final = 1024
MAX_OF_ONE: Final = 256
"""Flights at once, of all upstreams and of one: one that hangs leaves room for the others, and what is beyond goes to
its upstream by itself, as without a cache."""

LAST_S: Final = 60.0
"""How long a flight lasts at most: as long as a server may be silent before its answer."""


class Flight(Generic[T]):
    """`names`: of the marks that its answer will stand under. `is_trial`: nobody waits for it who did not begin it.
    `goes_on`: it is not called off when nobody waits."""

    def __init__(self, key: str, names: Collection[Name], task: "asyncio.Task[T]", *, is_trial: bool, goes_on: bool):
        self.key = key
        self.names = names
        self.task = task
        self.is_trial = is_trial
        self.goes_on = goes_on
        self.waiting = 0

    @property
    def upstream(self) -> str:
        return next(iter(self.names))[0]


class Flights(Generic[T]):
    """At most `MAX_FLIGHTS`, and `MAX_OF_ONE` of an upstream, those that nobody may join any more among them."""

    def __init__(self) -> None:
        self._open: dict[str, Flight[T]] = {}
        self._every: set[Flight[T]] = set()
        self._of: Counter[str] = Counter()

    def get(self, key: str) -> Flight[T] | None:
        """The one that whoever wants what is under this key may wait for."""
        return self._open.get(key)

    def begin(
        self,
        key: str,
        names: Collection[Name],
        work: Callable[[], Coroutine[Any, Any, T]],
        *,
        is_trial: bool = False,
        goes_on: bool = False,
    ) -> Flight[T] | None:
        """A new one in place of what is under this key; None where there are too many."""
        upstream = next(iter(names))[0]
        if len(self._every) >= MAX_FLIGHTS or self._of[upstream] >= MAX_OF_ONE:
            return None
        task = asyncio.create_task(work(), name=f"cache {upstream}")
        flight = Flight(key, names, task, is_trial=is_trial, goes_on=goes_on)
        self._open[key] = flight
        self._every.add(flight)
        self._of[upstream] += 1
        limit = asyncio.get_running_loop().call_later(LAST_S, task.cancel)
        task.add_done_callback(lambda _: self._landed(flight, limit))
        return flight

    async def wait(self, flight: Flight[T], wait_s: float) -> bool:
        """Waits for it, and says whether it is over. Cancel-safe: it goes on for the others who wait."""
        flight.waiting += 1
        try:
            await asyncio.wait({flight.task}, timeout=wait_s)
            flight.goes_on = flight.goes_on or self._open.get(flight.key) is flight
        finally:
            flight.waiting -= 1
            if not flight.waiting and not flight.goes_on:
                self._call_off(flight)
        return flight.task.done()

    def detach(self, names: Collection[Name] | None) -> None:
        """What stands under these marks has ended, None for all of them: whoever comes from now on waits for no answer
        that was asked for before. Who waits already is still given it."""
        ended = set(names) if names is not None else None
        for flight in list(self._open.values()):
            if ended is not None and ended.isdisjoint(flight.names):
                continue
            del self._open[flight.key]
            if not flight.waiting:  # its answer would not be kept either
                self._call_off(flight)

    async def close(self) -> None:
        """Calls all of them off, and waits until they have let go."""
        tasks = [flight.task for flight in self._every]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _call_off(self, flight: Flight[T]) -> None:
        self._close_to_others(flight)
        flight.task.cancel()

    def _close_to_others(self, flight: Flight[T]) -> None:
        if self._open.get(flight.key) is flight:
            del self._open[flight.key]

    def _landed(self, flight: Flight[T], limit: asyncio.TimerHandle) -> None:
        limit.cancel()
        self._close_to_others(flight)
        self._every.discard(flight)
        self._of -= Counter([flight.upstream])
        if not flight.task.cancelled() and (error := flight.task.exception()) is not None:
            log.error("a request that fills the cache failed", exc_info=error)
