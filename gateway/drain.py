"""From the signal to stop until the last call has ended: what is still served, and how streams are told.

Calls go on, and what belongs to them is still taken: retries with a client's answers, responses, cancels. For a moment
so are new calls on connections that are there already, since they were on their way. From then on what would be a new
call is refused, and at once a question that would have to wait for its client longer than this process lives.

Specification: 2026-07-28 basic/patterns/subscriptions (Graceful Closure), basic/patterns/cancellation.
"""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from policies.errors import Rejection
from policies.mcp import INTERNAL_ERROR

T = TypeVar("T")

LOOK_S = 0.1
"""How often it is looked whether a call still waits for its client, or a request still arrives."""

REFUSED = Rejection(
    INTERNAL_ERROR, "shutting down; connect again", http=503, headers=(("Retry-After", "1"), ("Connection", "close"))
)
"""The answer to whatever would begin now."""


NOT_ASKED = "the server needs input from the user, and the gateway is shutting down; call again"
"""Why a call ends whose server has a question that its client could not come back to answer."""


class Draining(Exception):
    """The gateway shuts down: what would be waited for may take for ever."""


class Drain:
    """Whether the gateway is shutting down. One for the whole process, whatever the configuration in service."""

    def __init__(self) -> None:
        self._begun = asyncio.Event()
        self.refuses = False
        """Whether new calls come too late."""

    @property
    def begun(self) -> bool:
        return self._begun.is_set()

    def begin(self) -> None:
        """Streams that have no end of their own end now; calls go on."""
        self._begun.set()

    async def beginning(self) -> None:
        """Waits until shutting down begins."""
        await self._begun.wait()

    def refuse(self) -> None:
        """New calls come too late from now on."""
        self.refuses = True

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
