"""The gateway as an MCP server on standard input and output, for a host that can only launch commands.

Specification: 2026-07-28 basic/transports/stdio; 2025-11-25 basic/transports (stdio). One line is one message, and
`gateway/front/talk.py` takes it. An answer to a batch of 2025-03-26 is one line an element.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

from multidict import CIMultiDict, CIMultiDictProxy

from gateway.front.service import Service
from gateway.front.talk import Talk, Via
from policies import jsonrpc
from policies.admission import Acceptance, Head
from policies.delivery import error
from policies.errors import Rejection
from policies.mcp import INVALID_REQUEST
from policies.settings_routes import Route

END_S = 1.0
"""How long calls may go on once the input has ended: a script that pipes its requests in still gets its answers, and a
host that shuts down waits for about 2 s (both official SDKs)."""

_BATCHES = "2025-03-26"


@dataclass(frozen=True, slots=True)
class _Launcher:
    """The host that launched this process; it sends no headers."""

    headers: CIMultiDictProxy[str] = field(default_factory=lambda: CIMultiDictProxy(CIMultiDict()))


class StdioFront:
    """`write` sends one line, and waits until it is out."""

    def __init__(self, service: Service, route: Route, write: Callable[[bytes], Awaitable[None]]) -> None:
        self._limits = service.settings.limits
        self._via = Via(service, Head(route, Acceptance(json=True, sse=True), None), _Launcher())
        self._write = write
        self._talk = Talk(write, has_modern=True)

    async def serve(self, lines: AsyncIterator[bytes | None]) -> None:
        """Until the input ends; calls under way get `END_S` more, streams and the session end then."""
        async for line in lines:
            await self._on_line(line)
        idle = asyncio.create_task(self._talk.idle())
        try:
            await asyncio.wait({idle}, timeout=END_S)
        finally:
            idle.cancel()

    async def close(self) -> None:
        """Cancels what is still under way, and ends the session at the server."""
        await self._talk.close()

    async def _on_line(self, line: bytes | None) -> None:
        if line is None:
            why = f"the message is larger than {self._limits.max_body_bytes} bytes (limits.max_body_bytes)"
            return await self._write(error(Rejection(INVALID_REQUEST, why), None).raw)
        if not line.strip():
            return None
        message = jsonrpc.parse(line, max_depth=self._limits.max_depth)
        if isinstance(message, Rejection):
            return await self._write(error(message, jsonrpc.readable_id(line)).raw)
        if not isinstance(message, list):
            return self._talk.on(message, line, self._via)
        owner = self._talk.owner
        if owner is None or owner.version != _BATCHES or len(message) > self._limits.max_batch:
            why = f"only {_BATCHES} has batches, and here they may hold {self._limits.max_batch} messages"
            return await self._write(error(Rejection(INVALID_REQUEST, why), None).raw)
        for one in message:
            if isinstance(one, Rejection):
                await self._write(error(one, None).raw)
            else:
                self._talk.on(one, b"", self._via)
        return None
