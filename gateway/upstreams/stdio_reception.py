"""What comes on a channel in answer to one message, in HTTP's form, and how long it may take.

Specification: 2026-07-28 basic/transports/stdio; 2025-11-25 basic/transports (stdio); 2024-11-05 basic/transports. What
carries the channel is not known here.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from gateway.upstreams.channel import Mailbox
from gateway.upstreams.patience import Patience, unless_silent
from gateway.upstreams.reading import Piece
from policies.errors import UpstreamFault
from policies.mcp import MAY_ASK, Json
from policies.routing import own_timeouts
from policies.settings import Upstream as UpstreamSettings


@dataclass(frozen=True, slots=True)
class Bounds:
    """Seconds to the first message, and between two; None is no bound. `waited` as in `Patience`."""

    first_s: float | None = None
    idle_s: float | None = None
    waited: Callable[[], float] | None = None


def bounds_of(message: Json, settings: UpstreamSettings, patience: Patience) -> Bounds:
    """How long the answer may take: a call, a prompt or a resource as long as it likes, unless its tool's own time-outs
    say otherwise."""
    method, params = message["method"], message.get("params")
    own = own_timeouts(settings, method, params.get("name") if isinstance(params, dict) else None)
    if own is not None:
        return Bounds(own.first_byte_s, own.idle_s, patience.waited)
    is_long = method in MAY_ASK or method.startswith("tasks/")
    bound_s = None if is_long else settings.timeouts.first_byte_s
    return Bounds(bound_s, bound_s)


class StdioReception:
    """What the other end answers, in HTTP's form."""

    endpoint = cookie = ""

    def __init__(
        self,
        name: str,
        status: int = 202,
        mailbox: Mailbox | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        kind: Literal["json", "sse", "other"] = "json",
        bounds: Bounds | None = None,
    ) -> None:
        self.name = name
        self.status = status
        self.headers: Mapping[str, str] = headers or {}
        self.kind: Literal["json", "sse", "other"] = kind
        self._mailbox = mailbox
        self._bounds = bounds or Bounds()

    async def pieces(self) -> AsyncIterator[Piece]:
        if self._mailbox is None:
            raise self.refusal()
        bound_s = self._bounds.first_s
        while True:
            message = await self._next(self._mailbox, bound_s)
            if message is None:
                return
            yield Piece(message)
            bound_s = self._bounds.idle_s

    async def _next(self, mailbox: Mailbox, bound_s: float | None) -> Json | None:
        if bound_s is None:
            return await mailbox.next()
        try:
            async with unless_silent(bound_s, self._bounds.waited):
                return await mailbox.next()
        except TimeoutError as error:
            raise UpstreamFault(f"upstream {self.name} did not answer within {bound_s:g} s", http=504) from error

    async def response(self) -> Json:
        async for piece in self.pieces():
            if piece.message is not None and "method" not in piece.message:
                return piece.message
        raise UpstreamFault(f"upstream {self.name} closed its stream without an answer")

    def refusal(self) -> UpstreamFault:
        return UpstreamFault(f"upstream {self.name} does not serve this", contradiction=400 <= self.status < 500)
