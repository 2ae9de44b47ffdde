"""The admin listener: whether the process lives, whether it wants traffic, its metrics. Never on the public listener.

Health is told to anybody who reaches it, as probes carry no credentials; metrics want the admin token where one is set.
"""

import hmac
from collections.abc import Callable

from aiohttp import web

from gateway.front.service import Service
from policies import routing, wellformed
from policies.settings import Settings


class Status:
    def __init__(self, current: Callable[[], Service]) -> None:
        self._current = current

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        service = self._current()
        admin = service.settings.admin
        if admin is not None and admin.is_loopback and not _is_local(request.headers.get("Host", "")):
            return web.json_response({"error": "Host is not one this address serves"}, status=403)
        if request.path == "/healthz":
            return web.json_response({"status": "ok"})
        if request.path == "/readyz":
            ready = not service.drain.begun
            said = {"status": "ready" if ready else "draining"}
            if service.state.store.shared:  # told, and no reason to send traffic elsewhere: all replicas share it
                said["store"] = "up" if service.state.store.up else "down"
            return web.json_response(said, status=200 if ready else 503)
        if not _admitted(service.settings, request):
            challenge = {"WWW-Authenticate": 'Bearer realm="admin"'}
            return web.json_response({"error": "needs the admin token"}, status=401, headers=challenge)
        if request.path == "/metrics":
            body, content_type = service.metrics.render(request.headers.get("Accept", ""))
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
