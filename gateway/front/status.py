"""The admin listener: whether the process lives, whether it wants traffic, its metrics. Never on the public listener.

Health is told to anybody who reaches it, as probes carry no credentials; metrics want the admin token where one is set.
"""

import hmac
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from aiohttp import web

from policies import routing, wellformed
from policies.settings import Settings

READY: Final = "ready"


class Status:
    """`health` is what `/readyz` says: its `status` is `READY`, or the word for what it is instead. `render` writes the
    metrics in a form for an `Accept`."""

    def __init__(
        self,
        current: Callable[[], Settings],
        health: Callable[[], Awaitable[Mapping[str, str]]],
        render: Callable[[str], Awaitable[tuple[bytes, str]]],
    ) -> None:
        self._current = current
        self._health = health
        self._render = render

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
            challenge = {"WWW-Authenticate": 'Bearer realm="admin"'}
            return web.json_response({"error": "needs the admin token"}, status=401, headers=challenge)
        if request.path == "/metrics":
            body, content_type = await self._render(request.headers.get("Accept", ""))
            return web.Response(body=body, headers={"Content-Type": content_type})
        return web.json_response({"error": "not found; see /healthz, /readyz and /metrics"}, status=404)


def _is_local(host: str) -> bool:
    """Whether a Host names this machine: a web page that had another name point here must not read on."""
    return wellformed.is_loopback(routing.host_name(host).strip("[]"))


def _admitted(settings: Settings, request: web.BaseRequest) -> bool:
    if settings.admin_token is None:
        return True
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    wanted = settings.admin_token.get_secret_value()
    return scheme.lower() == "bearer" and hmac.compare_digest(
        token.strip().encode(errors="surrogateescape"), wanted.encode()
    )
