"""What many want at the same time and one upstream is asked for once: a session to be opened, an era to be found out.

It runs to its end whoever leaves: what an upstream has opened must not be forgotten half-way.
"""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, TypeVar

T = TypeVar("T")


class Once:
    """One run at a time for each key."""

    def __init__(self) -> None:
        self._running: dict[Hashable, asyncio.Task[Any]] = {}

    def __contains__(self, key: Hashable) -> bool:
        """Whether one runs for this key."""
        return key in self._running

    async def outcome(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, T]], name: str | None = None) -> T:
        """What comes of `work`, or of that which runs for this key already. Raises what it raised. Cancel-safe: it goes
        on for the others."""
        task = self._running.get(key)
        if task is None:
            task = self._running[key] = asyncio.create_task(self._run(key, work), name=name)
            task.add_done_callback(_heard)
        outcome: T = await asyncio.shield(task)
        return outcome

    async def close(self) -> None:
        """Cancels what runs, and waits until it has let go."""
        running = list(self._running.values())
        self._running.clear()
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _run(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Whoever comes when it is over begins anew."""
        try:
            return await work()
        finally:
            self._running.pop(key, None)


def _heard(task: "asyncio.Task[Any]") -> None:
    """What it raised was for those who waited; where all have left, asyncio need not report it."""
    if not task.cancelled():
        task.exception()
