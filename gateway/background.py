"""Work in the background: tasks that nobody awaits, of one owner, who ends them with itself.

The event loop alone would let such a task be collected while it runs, and would tell what it raised at some later time,
of nobody in particular.
"""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

log = logging.getLogger(__name__)

T = TypeVar("T")


class Background:
    """The tasks of one owner. What one raises is logged; it ends no other."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def running(self) -> frozenset[asyncio.Task[Any]]:
        """The tasks that have not ended."""
        return frozenset(self._tasks)

    def start(self, work: Coroutine[Any, Any, T], name: str | None = None) -> asyncio.Task[T]:
        """Runs `work` to its end, whoever leaves meanwhile."""
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def over(self) -> None:
        """Waits until all have ended, those that are started meanwhile too. Cancel-safe: they go on."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def close(self) -> None:
        """Cancels all, those that are started meanwhile too, and waits until they have let go. Cancel-safe: they are
        cancelled in any case. Not for one of the tasks themselves, which would wait for itself."""
        while self._tasks:
            for task in tuple(self._tasks):
                task.cancel()
            await asyncio.wait(self._tasks)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("work in the background failed: %s", task.get_name(), exc_info=error)


async def finished(work: Coroutine[Any, Any, T], grace_s: float) -> T:
    """Runs `work`, which a cancel lets go on for up to `grace_s` before it is cancelled itself: for what must be known
    to the end by whoever then takes it back. The cancel is raised in any case, and a second one ends the wait."""
    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if not task.done():
            await asyncio.wait({task}, timeout=grace_s)
        raise
    finally:
        task.cancel()
