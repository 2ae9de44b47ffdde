"""The MCP endpoints: the ladder's head, the body, and then the front of the request's own era.

Specification: basic/transports of every revision. What a rung decides stands in `policies/admission.py`.
"""

from aiohttp import web

from gateway.front import legacy, modern, reply
from gateway.front.service import Service
from policies import jsonrpc
from policies.admission import Head, admit_head, era_of
from policies.errors import Rejection
from policies.mcp import INVALID_REQUEST, Era


class Mcp:
    def __init__(self, service: Service) -> None:
        self._service = service

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answers one request. Cancelled when the client closes its connection."""
        return await reply.rescue(request, self._serve)

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        service = self._service
        head = admit_head(
            request.method,
            request.headers.get("Host", ""),
            request.path,
            request.headers,
            service.settings.routes,
            service.loopback_only,
        )
        if isinstance(head, Rejection):
            return reply.rejected(head)
        if request.method == "GET":
            return await legacy.stream(service, request, head)
        if request.method == "DELETE":
            return await legacy.delete(service, request, head)
        return await self._post(request, head)

    async def _post(self, request: web.BaseRequest, head: Head) -> web.StreamResponse:
        limits = self._service.settings.limits
        raw = await _body(request, limits.max_body_bytes)
        if raw is None:
            why = f"the request body is larger than {limits.max_body_bytes} bytes (limits.max_body_bytes)"
            return reply.rejected(Rejection(INVALID_REQUEST, why, http=413))
        unread = await modern.serve_unread(self._service, request, head, raw)
        if unread is not None:
            return unread
        message = jsonrpc.parse(raw, max_depth=limits.max_depth)
        if isinstance(message, Rejection):
            return reply.rejected(message, jsonrpc.readable_id(raw))
        if self._era(request, message) == "modern" and not isinstance(message, list):
            return await modern.serve(self._service, request, head, raw, message)
        return await legacy.serve(self._service, request, head, message)

    def _era(self, request: web.BaseRequest, message: jsonrpc.Message | list[jsonrpc.Message | Rejection]) -> Era:
        """The era of this request. A response or a batch has no method: both belong to legacy sessions."""
        if isinstance(message, list):
            return "legacy"
        if isinstance(message, jsonrpc.Response):
            message = jsonrpc.Notification("", {})
        return era_of(request.headers, message)


async def _body(request: web.BaseRequest, max_bytes: int) -> bytes | None:
    """The body, None where it is larger than allowed: then no more of it is read."""
    if (request.content_length or 0) > max_bytes:
        return None
    pieces: list[bytes] = []
    size = 0
    async for piece in request.content.iter_any():
        size += len(piece)
        if size > max_bytes:
            return None
        pieces.append(piece)
    return b"".join(pieces)
