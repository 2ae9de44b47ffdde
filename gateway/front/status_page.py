"""The status page: `/status` for people, `/status.json` for programs, and `/status/events`, by which an open page keeps
up (WHATWG HTML, server-sent events). `gateway/front/status.py` has let the request in.

What is shown is written by `policies/status_html.py`, without a script and as a whole; events carry the parts that have
changed. Everything the page loads comes from here, and its Content-Security-Policy allows nothing else.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib import resources
from typing import Final

from aiohttp import web

from policies import jsonrpc, sse
from policies.mcp import Json
from policies.settings import Settings
from policies.status import Process, Seen, told
from policies.status_html import page, parts

MAX_STREAMS: Final = 8
"""Pages that are kept up at once: operators, each with a tab or two."""

EVERY_S: Final = 1.0
"""How often is looked: what fails is on the page within two seconds."""

KEEP_ALIVE_S: Final = 15.0
"""Silence that no proxy takes for an end: most wait 60 s, the strictest 20 s and more."""

CLOSE_S: Final = 0.5
"""How long streams may take to end when the gateway stops."""

_EVENTS: Final = "/status/events"
_FILES: Final = {
    "/status/page.css": ("page.css", "text/css"),
    "/status/page.mjs": ("page.mjs", "text/javascript"),
    "/status/icon.svg": ("icon.svg", "image/svg+xml"),
}

PATHS: Final = frozenset({"/status", "/status.json", _EVENTS, *_FILES})

CSP: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
    "frame-ancestors 'none'; form-action 'self'"
)
_HEADERS: Final = {
    "Content-Security-Policy": CSP,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True, slots=True)
class _Look:
    """What was seen, and when, by the loop's clock."""

    told: Json
    at_s: float


class StatusPage:
    """`look` says who we are and what is seen; it is asked once for all pages that are open. `close` once, before the
    listener goes."""

    def __init__(self, current: Callable[[], Settings], look: Callable[[], Awaitable[tuple[Process, Seen]]]) -> None:
        self._current = current
        self._ask = look
        self._files = {
            path: (resources.files("gateway").joinpath("front", "page", name).read_bytes(), kind)
            for path, (name, kind) in _FILES.items()
        }
        self._last: _Look | None = None
        self._looking = asyncio.Lock()
        self._closing = asyncio.Event()
        self._streams: set[asyncio.Future[None]] = set()

    async def handle(self, request: web.BaseRequest, admitted: Callable[[], bool]) -> web.StreamResponse:
        """Answers a request for one of `PATHS`. `admitted`: whether its token still holds."""
        if request.method not in ("GET", "HEAD"):
            return web.json_response({"error": "use GET"}, status=405, headers={**_HEADERS, "Allow": "GET, HEAD"})
        if _is_foreign(request):
            return web.json_response({"error": "not for the pages of other sites"}, status=403, headers=_HEADERS)
        if request.path in self._files:
            body, kind = self._files[request.path]
            return web.Response(body=body, headers={**_HEADERS, "Content-Type": f"{kind}; charset=utf-8"})
        if request.path == _EVENTS:
            return await self._events(request, admitted)
        seen = (await self._look()).told
        if request.path == "/status.json":
            return web.Response(body=jsonrpc.dumps(seen), headers=_HEADERS, content_type="application/json")
        return web.Response(text=page(seen), headers=_HEADERS, content_type="text/html")

    async def close(self) -> None:
        """Ends the streams, each with its proper end, and begins no more."""
        self._closing.set()
        if self._streams:
            await asyncio.wait(self._streams, timeout=CLOSE_S)

    async def _look(self, older_s: float = 0.0) -> _Look:
        """What is seen now, or was not longer ago than `older_s`."""
        async with self._looking:
            now_s = asyncio.get_running_loop().time()
            if self._last is None or now_s - self._last.at_s > older_s:
                process, seen = await self._ask()
                self._last = _Look(told(self._current(), process, seen, time.time()), now_s)
            return self._last

    async def _events(self, request: web.BaseRequest, admitted: Callable[[], bool]) -> web.StreamResponse:
        if self._closing.is_set() or len(self._streams) >= MAX_STREAMS:
            why = "the gateway is stopping" if self._closing.is_set() else f"{MAX_STREAMS} pages are open already"
            return web.json_response({"error": why}, status=503, headers={**_HEADERS, "Retry-After": "5"})
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._streams.add(over)
        try:
            response = web.StreamResponse(headers={**_HEADERS, "Content-Type": "text/event-stream"})
            response.headers["X-Accel-Buffering"] = "no"
            await response.prepare(request)
            if request.method == "GET":
                await self._follow(response, admitted)
            await response.write_eof()
            return response
        finally:
            self._streams.discard(over)
            over.set_result(None)

    async def _follow(self, response: web.StreamResponse, admitted: Callable[[], bool]) -> None:
        """Writes what changes until the gateway stops, the token is another, or the page goes."""
        shown: dict[str, str] = {}
        written_s = 0.0
        while admitted():
            seen = await self._look(EVERY_S / 2)
            now = parts(seen.told)
            changed = {name: part for name, part in now.items() if shown.get(name) != part}
            shown.update(changed)
            if changed:
                await response.write(sse.encode(jsonrpc.dumps(changed)))
                written_s = seen.at_s
            elif seen.at_s - written_s >= KEEP_ALIVE_S:
                await response.write(sse.KEEP_ALIVE)
                written_s = seen.at_s
            try:
                async with asyncio.timeout(EVERY_S):
                    await self._closing.wait()
                return
            except TimeoutError:
                continue


def _is_foreign(request: web.BaseRequest) -> bool:
    """Whether a page of another site asks, as browsers tell (Fetch Metadata): it could not read the answer, and would
    take the place of a stream. A link to the page may stand anywhere."""
    site, mode = request.headers.get("Sec-Fetch-Site"), request.headers.get("Sec-Fetch-Mode")
    is_link = mode == "navigate" and request.path in ("/status", "/status.json")
    return site in ("cross-site", "same-site") and not is_link
