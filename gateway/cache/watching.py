"""The streams on which the gateway itself hears what changes at an upstream, for as long as anything of it is kept.

What is heard ends entries wherever it is heard (`gateway/cache/cache.py`); here it is only seen to that there is
somebody who listens. A stream that an upstream refuses is asked for again after a while; until then, and where it tells
of no changes, entries end when their time is over.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

from gateway.exchange import Exchange
from gateway.upstreams.pool import Upstream, Upstreams
from policies import cache
from policies.cache_keys import digest
from policies.exchange import Answer, Call, Dialect, Fail, Notify
from policies.forwarded import lasting
from policies.identity import principal
from policies.mcp import ACKNOWLEDGED, LATEST_MODERN, LISTEN, Json

MAX_RESOURCES: Final = 64
"""Streams at one upstream that are the gateway's own, each for one resource that was read: what is read beyond them
ends with its time."""

MAX_CALLERS: Final = 64
"""Streams for lists at one upstream, each with the headers of one caller, which decide what it is told of. The one that
needs none of those, and does for all other lists, is always there."""

LOOK_S: Final = 1.0
"""How often it is looked whether anybody still fetches."""

READY_S: Final = 2.0
"""How long a request that fills the cache waits until changes of its answer can be heard; once, where a server neither
agrees nor refuses in that time, or does not say what it tells of."""

DESCRIBE_S: Final = 60.0
"""How long it is then taken to tell of nothing."""

AGAIN_S: Final = (1.0, 5.0, 30.0, 60.0)
"""Pauses before a stream that ended is asked for again; the last one repeats."""


@dataclass(eq=False, slots=True)
class Watch:
    """`until_s`: by the loop's clock, how long anything is kept whose changes it tells; `fetching`: how much is fetched
    meanwhile. `settled`: it has been agreed to or refused, or waited for, once. `unheard`: something was kept that may
    have changed before it could be heard."""

    upstream: Upstream
    call: Call
    until_s: float
    fetching: int = 0
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    is_heard: bool = False
    marks: tuple[str, ...] = ()
    unheard: bool = False
    task: asyncio.Task[None] | None = None

    def extend(self, lasts_s: float) -> None:
        """Something is kept for so long."""
        self.until_s = max(self.until_s, asyncio.get_running_loop().time() + lasts_s)

    @property
    def is_wanted(self) -> bool:
        return self.fetching > 0 or asyncio.get_running_loop().time() < self.until_s


class Watching:
    """`renew` ends what stands under marks of an upstream."""

    def __init__(self, renew: Callable[[str, tuple[str, ...]], Awaitable[bool]]) -> None:
        self._renew = renew
        self._watches: dict[tuple[str, str], Watch] = {}
        self._silent_until_s: dict[Upstream, float] = {}
        """Upstreams that did not describe themselves."""

    def __len__(self) -> int:
        return len(self._watches)

    @asynccontextmanager
    async def fetching(self, upstream: Upstream, call: Call) -> AsyncIterator[None]:
        """Listens for what may change the answer to `call`, if anybody tells of it, while it is fetched: from before,
        or soon after."""
        await self._describe(upstream)
        watch = self._watch(upstream, call)
        if watch is None:
            yield
            return
        watch.fetching += 1
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(READY_S):
                    await watch.settled.wait()
            watch.settled.set()
            yield
        finally:
            watch.fetching -= 1

    def hears(self, upstream: Upstream, call: Call) -> bool:
        """Whether a change of the answer to `call` can be heard now."""
        watch = self._watches.get((upstream.name, digest(_listening(upstream, call))))
        wanted = set(cache.marks_of(call.method, call.params))
        return watch is not None and watch.is_heard and bool(wanted & set(watch.marks))

    def extend(self, upstream: Upstream, call: Call, lasts_s: float, *, unheard: bool = False) -> None:
        """What answers `call` is kept for so long. `unheard`: nobody listened when it was asked for."""
        watch = self._watch(upstream, call)
        if watch is not None:
            watch.extend(lasts_s)
            watch.unheard = watch.unheard or unheard

    def keep(self, upstreams: Upstreams) -> None:
        """Listens no more to upstreams that are gone or configured anew."""
        for key, watch in list(self._watches.items()):
            if upstreams.get(watch.upstream.name) is not watch.upstream:
                self._end(key)
        self._silent_until_s.clear()

    async def close(self) -> None:
        tasks = [watch.task for watch in self._watches.values() if watch.task is not None]
        for key in list(self._watches):
            self._end(key)
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _describe(self, upstream: Upstream) -> None:
        """Asks what an upstream tells of where that is not known: it may have been down when the gateway came up."""
        now_s = asyncio.get_running_loop().time()
        if upstream.description is None and now_s >= self._silent_until_s.get(upstream, 0.0):
            await upstream.describe(READY_S)
            if upstream.description is None:
                self._silent_until_s[upstream] = asyncio.get_running_loop().time() + DESCRIBE_S

    def _watch(self, upstream: Upstream, call: Call) -> Watch | None:
        known = _listening(upstream, call)
        if not known[0]:
            return None
        key = (upstream.name, digest(known))
        watch = self._watches.get(key)
        if watch is None or watch.upstream is not upstream:
            forwarded = lasting(call.forwarded)
            if not self._has_room(upstream, known[0], forwarded):
                return None
            listen = Call(
                LISTEN,
                {"notifications": known[0]},
                {},
                {},
                None,
                principal(forwarded),
                Dialect("modern", LATEST_MODERN),
                forwarded=forwarded,
            )
            watch = self._watches[key] = Watch(upstream, listen, asyncio.get_running_loop().time() + LOOK_S)
            watch.task = asyncio.create_task(self._run(key, watch), name=f"cache: listen {upstream.name}")
        return watch

    def _has_room(self, upstream: Upstream, wanted: Json, forwarded: Sequence[tuple[str, str]]) -> bool:
        """Whether one more stream with this filter and these headers may be opened. However many resources are read,
        lists are heard."""
        about_one = _is_about_one(wanted)
        if not about_one and not forwarded:
            return True
        alike = (
            watch
            for (name, _), watch in self._watches.items()
            if name == upstream.name and _is_about_one(watch.call.params["notifications"]) is about_one
        )
        return sum(1 for _ in alike) < (MAX_RESOURCES if about_one else MAX_CALLERS)

    def _end(self, key: tuple[str, str]) -> None:
        watch = self._watches.pop(key)
        if watch.task is not None:
            watch.task.cancel()

    async def _run(self, key: tuple[str, str], watch: Watch) -> None:
        """Listens until nothing is kept any more."""
        tries = 0
        try:
            while watch.is_wanted:
                await self._listen_while_wanted(watch)
                tries = 0 if watch.is_heard else tries + 1
                watch.is_heard, watch.unheard = False, True  # whatever changes until it is heard again
                watch.settled.set()
                if watch.is_wanted:
                    await asyncio.sleep(AGAIN_S[min(tries, len(AGAIN_S) - 1)])
        finally:
            if self._watches.get(key) is watch:
                del self._watches[key]

    async def _listen_while_wanted(self, watch: Watch) -> None:
        listening = asyncio.create_task(self._listen(watch))
        try:
            while watch.is_wanted and not listening.done():
                left_s = watch.until_s - asyncio.get_running_loop().time()
                await asyncio.wait({listening}, timeout=max(left_s, LOOK_S))
        finally:
            listening.cancel()
            await asyncio.wait({listening})

    async def _listen(self, watch: Watch) -> None:
        """One stream to its end."""
        exchange = Exchange(watch.call)
        exchange.start(watch.upstream.leg)
        cursor = 0
        try:
            while items := await exchange.read(cursor):
                for cursor, event in items:  # noqa: B007 - where to read on
                    if isinstance(event, Notify) and event.method == ACKNOWLEDGED:
                        await self._agreed(watch, event.params)
                    elif isinstance(event, Answer | Fail):
                        return
        finally:
            if not exchange.ended:
                exchange.cancel()
            await exchange.finished()

    async def _agreed(self, watch: Watch, acknowledged: Json) -> None:
        agreed = acknowledged.get("notifications")
        watch.marks = cache.marks_heard(agreed if isinstance(agreed, dict) else {})
        unheard, watch.unheard = watch.unheard, False
        watch.is_heard = True
        watch.settled.set()
        if unheard and watch.marks:
            await self._renew(watch.upstream.name, watch.marks)


def _is_about_one(wanted: Json) -> bool:
    """Whether a filter is that of one resource, and not of lists."""
    return "resourceSubscriptions" in wanted


def _listening(upstream: Upstream, call: Call) -> tuple[Json, list[list[str]]]:
    """What tells one stream from another: its filter, and the callers' headers that it is opened with."""
    described = upstream.description
    capabilities = described.capabilities if described is not None else {}
    return cache.filter_for(call.method, call.params, capabilities), sorted(map(list, lasting(call.forwarded)))
