"""What of one request is for its sender to decide and for the transport to keep: how long the upstream may take over
it, at which of several endpoints it belongs, and whether it may be sent again."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from gateway.exchange import Exchange
from policies.errors import UpstreamFault
from policies.settings import Timeouts


@dataclass(frozen=True, slots=True)
class Patience:
    """`long_lived`: a stream that may be silent for as long as it likes; retiring the upstream ends it, unless a call
    that may end first has `needed` it. `waited()`: until when, by the loop's clock, the upstream itself has waited for
    an answer of the client's (now, while it does): its silence is none before. `limits`: time-outs other than the
    upstream's own. `endpoint`: the key of the one that must have it, where a session lives there. `repeatable`: it only
    reads, and may go to another endpoint where its connection broke before an answer."""

    long_lived: bool = False
    needed: bool = False
    waited: Callable[[], float] | None = None
    limits: Timeouts | None = None
    endpoint: str = ""
    repeatable: bool = False


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
async def within_own(seconds: float, name: str, exchange: Exchange) -> AsyncIterator[None]:
    """As `within`, for the leg of `exchange`: while a question to its client is open, no time passes."""
    loop = asyncio.get_running_loop()
    left_s, since = seconds, loop.time()
    is_asking = exchange.is_asking
    try:
        async with asyncio.timeout(None if is_asking else seconds) as scope:

            def on_asking(asking: bool) -> None:
                nonlocal left_s, since, is_asking
                if asking and not is_asking:
                    left_s -= loop.time() - since
                    scope.reschedule(None)
                elif is_asking and not asking:
                    since = loop.time()
                    scope.reschedule(since + left_s)
                is_asking = asking

            exchange.on_asking = on_asking
            try:
                yield
            finally:
                exchange.on_asking = lambda _: None
    except TimeoutError as error:
        raise UpstreamFault(f"upstream {name} did not answer within {seconds:g} s", http=504) from error


@asynccontextmanager
async def unless_silent(seconds: float, waited: Callable[[], float] | None) -> AsyncIterator[None]:
    """Ends the block with a `TimeoutError` after `seconds`, counted from `waited()` on where that is later. (No task of
    its own: what has come before a connection breaks must be read before that is noticed.)"""
    loop = asyncio.get_running_loop()
    began = loop.time()
    timer: asyncio.TimerHandle
    async with asyncio.timeout(None) as scope:

        def look() -> None:
            nonlocal timer
            left = seconds - (loop.time() - max(began, waited() if waited is not None else began))
            if left > 0:
                timer = loop.call_later(left, look)
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
    waited: Callable[[], float] | None
