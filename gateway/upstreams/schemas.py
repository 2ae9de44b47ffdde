"""What each tool mirrors into headers, as its upstream last listed it, remembered by caller.

Specification: 2026-07-28 basic/transports/streamable-http (Custom Headers from Tool Parameters). A caller's list is
walked at its first tool call and again when it is known to have changed; never for each call.
"""

import logging
from collections.abc import Awaitable, Callable

from policies import headers
from policies.exchange import Call
from policies.headers import InvalidAnnotation, ParamHeader
from policies.mcp import Json

log = logging.getLogger(__name__)

MAX_PAGES = 100
"""Pages of one list that are walked; a list that goes on longer repeats its cursors."""

MAX_CALLERS = 1024
"""Callers whose lists are remembered; the longest known is forgotten first."""

_Tools = dict[str, tuple[ParamHeader, ...]]


class Schemas:
    """`page(call, cursor)` asks for one page of `tools/list` as the caller of `call`: its result, None for an error."""

    def __init__(self, page: Callable[[Call, str | None], Awaitable[Json | None]]) -> None:
        self._page = page
        self._by_caller: dict[str, _Tools] = {}

    async def of(self, call: Call, *, fresh: bool = False) -> tuple[ParamHeader, ...]:
        """The parameters that the tool named in `call` mirrors; none for a tool that is not listed."""
        tools = self._by_caller.get(call.principal)
        if tools is None or fresh:
            tools = await self._walk(call)
            if len(self._by_caller) >= MAX_CALLERS:
                self._by_caller.pop(next(iter(self._by_caller)))
            self._by_caller[call.principal] = tools
        return tools.get(str(call.params.get("name")), ())

    def forget(self) -> None:
        """The list has changed."""
        self._by_caller.clear()

    async def _walk(self, call: Call) -> _Tools:
        tools: _Tools = {}
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            result = await self._page(call, cursor)
            if result is None:
                break
            tools |= mirrored(result)
            cursor = result.get("nextCursor")
            if not cursor:
                break
        return tools


def mirrored(result: Json) -> _Tools:
    """What each tool of a `tools/list` result mirrors; one with an invalid annotation mirrors nothing, and is not
    shown to any client."""
    found: _Tools = {}
    for tool in result.get("tools") or ():
        if isinstance(tool, dict) and isinstance(tool.get("name"), str):
            try:
                found[tool["name"]] = headers.param_headers(tool.get("inputSchema"))
            except InvalidAnnotation as error:
                log.warning("tool %r has an invalid x-mcp-header and is left out: %s", tool["name"], error)
                found[tool["name"]] = ()
    return found
