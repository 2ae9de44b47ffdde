"""What must be known of a tool to call it, as its upstream last listed it, remembered by caller.

Specification: 2026-07-28 basic/transports/streamable-http (Custom Headers from Tool Parameters); 2025-11-25
basic/utilities/tasks (Tool-Level Negotiation); MCP Apps 2026-01-26 (Resource Discovery, Visibility). A caller's list is
walked at its first tool call and again when it is known to have changed; never for each call.
"""

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial

from policies import headers
from policies.apps_marks import is_app_only
from policies.exchange import Call
from policies.headers import InvalidAnnotation, ParamHeader
from policies.jsonrpc import dumps
from policies.mcp import Json
from policies.request_state import canonical
from policies.translation import tasks

log = logging.getLogger(__name__)

MAX_PAGES = 100
"""Pages of one list that are walked; a list that goes on longer repeats its cursors."""

MAX_CALLERS = 4096
"""Callers and sessions whose lists are remembered; the longest known is forgotten first."""

TRUSTED_S = 300.0
"""How long a list tells which tools are hidden, where nobody has heard that it changed: not every upstream says so."""


@dataclass(frozen=True, slots=True)
class Tool:
    """`mirrors`: the parameters that go into headers; `is_task`: it runs only as a task of 2025-11-25; `is_app_only`: a
    host without Apps does not know it."""

    mirrors: tuple[ParamHeader, ...] = ()
    is_task: bool = False
    is_app_only: bool = False


_Tools = dict[str, Tool]
_UNKNOWN = Tool()


@dataclass(slots=True)
class _Listed:
    """`is_whole`: every page of the list is in it; `read_s`: since when, by the loop's clock."""

    tools: _Tools
    is_whole: bool
    hides: bool = field(init=False)
    read_s: float = field(init=False)

    def __post_init__(self) -> None:
        self.hides = any(tool.is_app_only for tool in self.tools.values())
        self.read_s = asyncio.get_running_loop().time()


class Schemas:
    """`page(call, cursor)` asks for one page of `tools/list` as the caller of `call`: its result, None for an error.
    `upstream`: its name, for the log; `by_session`: whether each of its sessions may have a list of its own."""

    def __init__(
        self, upstream: str, page: Callable[[Call, str | None], Awaitable[Json | None]], *, by_session: bool = False
    ) -> None:
        self._upstream = upstream
        self._page = page
        self._by_session = by_session
        self._by_caller: dict[str, _Listed] = {}
        self._walks: dict[str, asyncio.Future[_Listed]] = {}
        self._nothing_hidden: dict[str, float] = {}
        """Callers, of whatever session, whose list last hid nothing, and when it was read."""

    async def of(self, call: Call, *, fresh: bool = False) -> tuple[ParamHeader, ...]:
        """The parameters that the tool named in `call` mirrors; none for a tool that is not listed."""
        return (await self._tool(call, fresh=fresh)).mirrors

    async def is_task(self, call: Call) -> bool:
        """Whether the tool named in `call` runs only as a task."""
        return (await self._tool(call, fresh=False)).is_task

    async def hides(self, call: Call) -> bool:
        """Whether `call` is that of a tool which its host, being without Apps, does not know: it is for interfaces
        alone, or it is not listed where others are, so that every name outside of what is visible gets one and the same
        answer. Where nothing is hidden, the upstream tells what it does not have; a session that has yet to ask for its
        list is then taken to be like the last of the same caller, since many clients open one for each call."""
        at_hand = self.hides_at_hand(call)
        if at_hand is not None:
            return at_hand
        fresh = self._caller(call) in self._by_caller  # what is remembered is old, or the tool may be new
        return _hides(await self._listed(call, fresh=fresh), call.params.get("name"))

    def hides_at_hand(self, call: Call) -> bool | None:
        """The same from what is remembered; None where the upstream has to be asked for its list."""
        if call.method != "tools/call" or call.profile.shows_apps:
            return False
        name, known = call.params.get("name"), self._by_caller.get(self._caller(call))
        if known is None:
            return False if self._hid_nothing(call) else None
        is_old = asyncio.get_running_loop().time() - known.read_s > TRUSTED_S
        return None if is_old or (known.hides and name not in known.tools) else _hides(known, name)

    def learn(self, call: Call, result: Json) -> None:
        """A caller without Apps is given an answer. Its list need not be walked then, if this is all of it. A page that
        contradicts what is remembered has the list walked at the next call. Without `tools`, it is known that none is
        for interfaces."""
        if call.method != "tools/list" or call.profile.shows_apps:
            return
        known = self._by_caller.get(self._caller(call))
        is_whole = not call.params.get("cursor") and not result.get("nextCursor")
        if not isinstance(result.get("tools"), list):
            if known is not None and known.hides:
                self.forget_of(call)
            if is_whole:
                self._note_nothing_hidden(call, asyncio.get_running_loop().time())
            return
        page = self._read(result)
        if is_whole:
            self._remember(call, _Listed(page, is_whole=True))
        elif any(tool.is_app_only != _hidden(known, name) for name, tool in page.items()):
            self.forget_of(call)

    async def _tool(self, call: Call, *, fresh: bool) -> Tool:
        return (await self._listed(call, fresh=fresh)).tools.get(str(call.params.get("name")), _UNKNOWN)

    async def _listed(self, call: Call, *, fresh: bool) -> _Listed:
        """The list of this caller: one that is remembered, or that is being walked for another of its calls; else, or
        where `fresh`, it is walked now. Cancel-safe: others may wait for the same."""
        caller = self._caller(call)
        found = self._by_caller.get(caller)
        if found is not None and not fresh:
            return found
        walk = self._walks.get(caller) if not fresh else None
        if walk is None:
            walk = self._walks[caller] = asyncio.ensure_future(self._walk(call))
            walk.add_done_callback(partial(self._walked, caller))
        found = await asyncio.shield(walk)
        self._remember(call, found)
        return found

    def _walked(self, caller: str, walk: "asyncio.Future[_Listed]") -> None:
        if self._walks.get(caller) is walk:
            del self._walks[caller]
        if not walk.cancelled():
            walk.exception()  # told to whoever still waits

    def _remember(self, call: Call, found: _Listed) -> None:
        if len(self._by_caller) >= MAX_CALLERS:
            self._by_caller.pop(next(iter(self._by_caller)))
        self._by_caller[self._caller(call)] = found
        self._nothing_hidden.pop(_alike(call), None)
        if found.is_whole and not found.hides:
            self._note_nothing_hidden(call, found.read_s)

    def _note_nothing_hidden(self, call: Call, read_s: float) -> None:
        if len(self._nothing_hidden) >= MAX_CALLERS:
            self._nothing_hidden.pop(next(iter(self._nothing_hidden)))
        self._nothing_hidden[_alike(call)] = read_s

    def _hid_nothing(self, call: Call) -> bool:
        read_s = self._nothing_hidden.get(_alike(call))
        return read_s is not None and asyncio.get_running_loop().time() - read_s <= TRUSTED_S

    def forget(self) -> None:
        """The list has changed."""
        self._by_caller.clear()
        self._nothing_hidden.clear()

    def forget_of(self, call: Call) -> None:
        """The list of this caller, or session, has changed."""
        self._by_caller.pop(self._caller(call), None)
        self._nothing_hidden.pop(_alike(call), None)

    def _caller(self, call: Call) -> str:
        """Whose list it is: a session's, or that of all who are alike."""
        return call.owner.id if self._by_session and call.owner is not None else _alike(call)

    async def _walk(self, call: Call) -> _Listed:
        tools: _Tools = {}
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            result = await self._page(call, cursor)
            if result is None:
                break
            for name, tool in self._read(result).items():
                _add(tools, name, tool)
            cursor = result.get("nextCursor")
            if not cursor:
                return _Listed(tools, is_whole=True)
        return _Listed(tools, is_whole=False)

    def _read(self, result: Json) -> _Tools:
        found, invalid = listed(result)
        if invalid:
            log.warning("upstream %s: %d tools have an invalid x-mcp-header and are left out", self._upstream, invalid)
        return found


def _hides(known: _Listed, name: object) -> bool:
    if not known.hides or not isinstance(name, str):
        return known.hides
    tool = known.tools.get(name)
    return tool.is_app_only if tool is not None else known.is_whole


def _add(tools: _Tools, name: str, tool: Tool) -> None:
    """The last of one name counts; but where a host without Apps is shown any of them, it may call it."""
    seen = tools.get(name)
    tools[name] = replace(tool, is_app_only=False) if seen is not None and not seen.is_app_only else tool


def _hidden(known: _Listed | None, name: str) -> bool:
    return known is not None and known.tools.get(name, _UNKNOWN).is_app_only


def _alike(call: Call) -> str:
    """All callers who are alike to the upstream. Servers may list more tools to a host that can do more."""
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
            _add(found, tool["name"], Tool(mirrors, tasks.only_as_task(tool), is_app_only(tool)))
    return found, invalid
