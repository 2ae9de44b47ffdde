"""The admin listener: whether the process lives, and whether it wants traffic. Never on the public listener."""

from aiohttp import web

from gateway.front.service import Service


class Status:
    def __init__(self, service: Service) -> None:
        self._service = service

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/healthz":
            return web.json_response({"status": "ok"})
        if request.path == "/readyz":
            ready = not self._service.draining
            return web.json_response({"status": "ready" if ready else "draining"}, status=200 if ready else 503)
        return web.json_response({"error": "not found; see /healthz and /readyz"}, status=404)
