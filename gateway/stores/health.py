"""Whether a store answers, as its last operations tell: a breaker, and one line of log for each change.

`FAILURES_IN_A_ROW` failures open it: operations then fail at once, so that no caller waits for what does not answer.
From there on one probe at a time is let through, every `PROBE_EVERY_S`, until one succeeds. What a store refuses while
it answers (it is full, say) opens nothing, since reading still works.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final

from gateway.stores.base import StoreUnavailable

log = logging.getLogger(__name__)

FAILURES_IN_A_ROW: Final = 3
"""One lost connection is no outage; each of these costs its caller the time-out."""
PROBE_EVERY_S: Final = 1.0


def unavailable(why: str) -> str:
    """For a caller: without what only an operator can do about it, which stands behind a semicolon."""
    return f"the store can't be used: {why.partition(';')[0]}"


class Health:
    """`where` names the store in the log, without credentials; `probe(key)` asks it for a sign of life where that key
    is, and raises `StoreUnavailable`."""

    def __init__(self, where: str, probe: Callable[[str], Awaitable[None]]) -> None:
        self._where = where
        self._probe = probe
        self._failures = FAILURES_IN_A_ROW - 1  # what has never answered is down at its first failure
        self._why = ""
        self._no_writes: set[str] = set()
        self._told: set[str] = set()
        self._probing: asyncio.Task[None] | None = None

    @property
    def up(self) -> bool:
        return self._probing is None

    def admit(self) -> None:
        """Raises `StoreUnavailable` while the store does not answer."""
        if self._probing is not None:
            raise StoreUnavailable(self._why)

    def succeeded(self, *, wrote: bool) -> None:
        self._failures = 0
        if wrote and self._no_writes:
            self._no_writes.clear()
            log.warning("store %s: takes writes again", self._where)

    def refused(self, why: str, *, writes: bool) -> None:
        """It answered, with a no: to all writes, or to what will always get it, which is told once."""
        self._failures = 0
        told = self._no_writes if writes else self._told
        if why not in told:
            told.add(why)
            log.error("store %s: %s", self._where, why)

    def failed(self, why: str, key: str) -> None:
        """It did not answer, or can't serve."""
        self._failures += 1
        self._why = unavailable(why)
        if self._failures >= FAILURES_IN_A_ROW and self._probing is None:
            log.error("store %s: down: %s", self._where, why)
            self._probing = asyncio.create_task(self._recover(key), name="store probe")

    async def close(self) -> None:
        if self._probing is not None:
            self._probing.cancel()
            await asyncio.wait([self._probing])

    async def _recover(self, key: str) -> None:
        began_s = time.monotonic()
        while True:
            await asyncio.sleep(PROBE_EVERY_S)
            try:
                await self._probe(key)
            except StoreUnavailable:
                continue
            self._failures = 0
            self._probing = None
            log.warning("store %s: up again after %.0f s", self._where, time.monotonic() - began_s)
            return
