"""From the signal to stop until the last call has ended: what is still served, and how streams are told.

Specification: 2026-07-28 basic/patterns/subscriptions (Graceful Closure), basic/patterns/cancellation.
"""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


class Draining(Exception):
    """The gateway shuts down: what would be waited for may take for ever."""


class Drain:
    """Whether the gateway is shutting down. One for the whole process, whatever the configuration in service."""

    def __init__(self) -> None:
        self._begun = asyncio.Event()

    @property
    def begun(self) -> bool:
        return self._begun.is_set()

    def begin(self) -> None:
        """Streams that have no end of their own end now; calls go on."""
        self._begun.set()

    async def unless_begun(self, work: Awaitable[T]) -> T:
        """Awaits `work`, raising `Draining` as soon as shutting down begins. Cancel-safe: `work` is cancelled too."""
        task, stop = asyncio.ensure_future(work), asyncio.ensure_future(self._begun.wait())
        try:
            await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise Draining
            return task.result()
        finally:
            task.cancel()
            stop.cancel()
