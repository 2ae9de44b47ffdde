"""How long an upstream may take over one request: decided by who sends it, kept by the transport."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from policies.errors import UpstreamFault
from policies.settings import Timeouts


@dataclass(frozen=True, slots=True)
class Patience:
    """`long_lived`: a stream that may be silent for as long as it likes; retiring the upstream ends it, unless a call
    that may end first has `needed` it. While `asked()`, the upstream itself waits, for an answer of the client's: its
    silence is none then. `limits`: time-outs other than the upstream's own."""

    long_lived: bool = False
    needed: bool = False
    asked: Callable[[], bool] | None = None
    limits: Timeouts | None = None


USUAL = Patience()
STREAM = Patience(long_lived=True)


@asynccontextmanager
async def within(seconds: float | None, name: str) -> AsyncIterator[None]:
    """Ends the block after `seconds`, if any, with an `UpstreamFault` that says so."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise UpstreamFault(f"upstream {name} did not answer within {seconds:g} s", http=504) from error


@asynccontextmanager
async def unless_silent(seconds: float, asked: Callable[[], bool] | None) -> AsyncIterator[None]:
    """Ends the block with a `TimeoutError` after `seconds`, but not while `asked()`. (No task of its own: what has come
    before a connection breaks must be read before that is noticed.)"""
    loop = asyncio.get_running_loop()
    timer: asyncio.TimerHandle
    async with asyncio.timeout(None) as scope:

        def look() -> None:
            nonlocal timer
            if asked is not None and asked():
                timer = loop.call_later(seconds, look)
            else:
                scope.reschedule(loop.time())

        timer = loop.call_later(seconds, look)
        try:
            yield
        finally:
            timer.cancel()


@dataclass(frozen=True, slots=True)
class Silence:
    """How long this upstream may say nothing, and when that does not count."""

    limits: Timeouts
    asked: Callable[[], bool] | None
