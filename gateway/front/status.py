"""The admin listener: whether the process lives, whether it wants traffic, its metrics, the status page, and what ends
what the cache holds. Never on the public listener.

Health is told to anybody who reaches it, as probes carry no credentials; the rest wants the admin token where one is
set: as `Bearer`, and for the status page, which only reads, also as the password of `Basic`, which browsers ask for.
What changes something is refused to web pages, which may send a POST to any address unasked.
"""

import base64
import binascii
import hmac
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from aiohttp import web

from gateway.cache.cache import Done, Order
from gateway.front import explained
from gateway.front.status_page import PATHS, StatusPage
from policies import routing, wellformed
from policies.settings import Settings

READY: Final = "ready"

_BASIC: Final = 'Basic realm="mcp-front-door", charset="UTF-8"'

CACHE: Final[Mapping[str, Order]] = {"/admin/cache/purge": "purge", "/admin/cache/refresh": "refresh"}


class Status:
    """`health` is what `/readyz` says: its `status` is `READY`, or the word for what it is instead. `render` writes the
    metrics in a form for an `Accept`. `order` does what is asked of the cache for an upstream, or for all; None where
    that cannot be had now. `explain` says what would happen to a request."""

    def __init__(
        self,
        current: Callable[[], Settings],
        health: Callable[[], Awaitable[Mapping[str, str]]],
        render: Callable[[str], Awaitable[tuple[bytes, str]]],
        order: Callable[[Order, str | None], Awaitable[Done | None]],
        page: StatusPage,
        explain: explained.Explain,
    ) -> None:
        self._current = current
        self._health = health
        self._render = render
        self._order = order
        self._page = page
        self._explain = explain

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        settings = self._current()
        admin = settings.admin
        if admin is not None and admin.is_loopback and not _is_local(request.headers.get("Host", "")):
            return web.json_response({"error": "Host is not one this address serves"}, status=403)
        if request.path == "/healthz":
            return web.json_response({"status": "ok"})
        if request.path == "/readyz":
            said = await self._health()
            return web.json_response(said, status=200 if said["status"] == READY else 503)
        if not _admitted(settings, request):
            challenge = {"WWW-Authenticate": _BASIC if request.path in PATHS else 'Bearer realm="admin"'}
            return web.json_response({"error": "needs the admin token"}, status=401, headers=challenge)
        if request.path in PATHS:
            return await self._page.handle(request, lambda: _admitted(self._current(), request))
        if request.path == "/metrics":
            body, content_type = await self._render(request.headers.get("Accept", ""))
            return web.Response(body=body, headers={"Content-Type": content_type})
        if request.path in CACHE:
            return await self._cache(settings, request, CACHE[request.path])
        if request.path == explained.PATH:
            return await explained.answer(request, self._explain)
        known = ", ".join(["/healthz", "/readyz", "/metrics", "/status", "/status.json", *CACHE, explained.PATH])
        return web.json_response({"error": f"not found; there are {known}"}, status=404)

    async def _cache(self, settings: Settings, request: web.BaseRequest, order: Order) -> web.StreamResponse:
        if request.method != "POST":
            return web.json_response({"error": "use POST"}, status=405, headers={"Allow": "POST"})
        if "Origin" in request.headers:
            return web.json_response({"error": "not for web pages: there is an Origin"}, status=403)
        unknown = [given for given in request.rel_url.query if given != "upstream"]
        if unknown:
            return web.json_response({"error": f"{unknown[0]}: is no parameter; there is upstream"}, status=400)
        name = request.rel_url.query.get("upstream")
        if name is not None and name not in settings.upstreams:
            known = ", ".join(sorted(settings.upstreams))
            return web.json_response({"error": f"upstream: there is none of that name; known: {known}"}, status=404)
        done = await self._order(order, name)
        if done is None:
            return web.json_response({"error": "no worker has done it; try again"}, status=503)
        said: dict[str, object] = {"upstreams": [name] if name is not None else sorted(settings.upstreams)}
        if order == "refresh":
            said |= {"fetched": done.fetched, "failed": done.failed}
        if not done.everywhere:
            said["error"] = "the store is down: done in this process, and in the others once it is back"
        return web.json_response(said, status=200 if done.everywhere else 503)


def _is_local(host: str) -> bool:
    """Whether a Host names this machine: a web page that had another name point here must not read on."""
    return wellformed.is_loopback(routing.host_name(host).strip("[]"))


def _admitted(settings: Settings, request: web.BaseRequest) -> bool:
    if settings.admin_token is None:
        return True
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    token = given.strip().encode(errors="surrogateescape")
    if scheme.lower() == "basic" and request.path in PATHS:
        token = _password(token)
    elif scheme.lower() != "bearer":
        return False
    return hmac.compare_digest(token, settings.admin_token.get_secret_value().encode())


def _password(credentials: bytes) -> bytes:
    """Of `Basic` (RFC 7617), whoever the user says to be; none where that is not well-formed."""
    try:
        return base64.b64decode(credentials, validate=True).partition(b":")[2]
    except binascii.Error:
        return b""
