"""The admin listener: whether the process lives, and whether it wants traffic. Never on the public listener."""

from aiohttp import web

from gateway.drain import Drain


class Status:
    def __init__(self, drain: Drain) -> None:
        self._drain = drain

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/healthz":
            return web.json_response({"status": "ok"})
        if request.path == "/readyz":
            ready = not self._drain.begun
            return web.json_response({"status": "ready" if ready else "draining"}, status=200 if ready else 503)
        return web.json_response({"error": "not found; see /healthz and /readyz"}, status=404)
