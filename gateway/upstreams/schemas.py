"""What must be known of a tool to call it, as its upstream last listed it, remembered by caller.

Specification: 2026-07-28 basic/transports/streamable-http (Custom Headers from Tool Parameters); 2025-11-25
basic/utilities/tasks (Tool-Level Negotiation). A caller's list is walked at its first tool call and again when it is
known to have changed; never for each call.
"""

import hashlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from policies import headers
from policies.exchange import Call
from policies.headers import InvalidAnnotation, ParamHeader
from policies.jsonrpc import dumps
from policies.mcp import Json
from policies.request_state import canonical
from policies.translation import tasks

log = logging.getLogger(__name__)

MAX_PAGES = 100
"""Pages of one list that are walked; a list that goes on longer repeats its cursors."""

MAX_CALLERS = 1024
"""Callers whose lists are remembered; the longest known is forgotten first."""


@dataclass(frozen=True, slots=True)
class Tool:
    """`mirrors`: the parameters that go into headers; `is_task`: it runs only as a task of 2025-11-25."""

    mirrors: tuple[ParamHeader, ...] = ()
    is_task: bool = False


_Tools = dict[str, Tool]
_UNKNOWN = Tool()


class Schemas:
    """`page(call, cursor)` asks for one page of `tools/list` as the caller of `call`: its result, None for an error.
    `upstream`: its name, for the log."""

    def __init__(self, upstream: str, page: Callable[[Call, str | None], Awaitable[Json | None]]) -> None:
        self._upstream = upstream
        self._page = page
        self._by_caller: dict[str, _Tools] = {}

    async def of(self, call: Call, *, fresh: bool = False) -> tuple[ParamHeader, ...]:
        """The parameters that the tool named in `call` mirrors; none for a tool that is not listed."""
        return (await self._tool(call, fresh=fresh)).mirrors

    async def is_task(self, call: Call) -> bool:
        """Whether the tool named in `call` runs only as a task."""
        return (await self._tool(call, fresh=False)).is_task

    async def _tool(self, call: Call, *, fresh: bool) -> Tool:
        caller = _caller(call)
        tools = self._by_caller.get(caller)
        if tools is None or fresh:
            tools = await self._walk(call)
            if len(self._by_caller) >= MAX_CALLERS:
                self._by_caller.pop(next(iter(self._by_caller)))
            self._by_caller[caller] = tools
        return tools.get(str(call.params.get("name")), _UNKNOWN)

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
            found, invalid = listed(result)
            if invalid:
                log.warning(
                    "upstream %s: %d tools have an invalid x-mcp-header and are left out", self._upstream, invalid
                )
            tools |= found
            cursor = result.get("nextCursor")
            if not cursor:
                break
        return tools


def _caller(call: Call) -> str:
    """Whose list it is. Servers may list more tools to a host that can do more."""
    return hashlib.sha256(dumps(canonical([call.principal, call.capabilities]))).hexdigest()


def listed(result: Json) -> tuple[_Tools, int]:
    """The tools of a `tools/list` result, and how many of them have an invalid annotation: those mirror nothing, and
    are not shown to any client."""
    found: _Tools = {}
    invalid = 0
    for tool in result.get("tools") or ():
        if isinstance(tool, dict) and isinstance(tool.get("name"), str):
            mirrors: tuple[ParamHeader, ...] = ()
            try:
                mirrors = headers.param_headers(tool.get("inputSchema"))
            except InvalidAnnotation:
                invalid += 1
            found[tool["name"]] = Tool(mirrors, tasks.only_as_task(tool))
    return found, invalid
