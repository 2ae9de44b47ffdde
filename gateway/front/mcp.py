"""The MCP endpoints: the ladder's head, the body, and then the front of the request's own era.

Specification: basic/transports of every revision. What a rung decides stands in `policies/admission.py`.
"""

import asyncio
import logging
import time
from collections.abc import Callable

from aiohttp import HttpVersion11, web

from gateway.front import legacy, modern, operation, reply
from gateway.front.service import Service
from gateway.logs import fields
from policies import jsonrpc
from policies.admission import Head, admit_head, era_of
from policies.errors import Rejection
from policies.mcp import INVALID_REQUEST, PARSE_ERROR, Era
from policies.metrics import CANCELLED_CALL, method_label

log = logging.getLogger(__name__)

BODY_SILENCE_S = 30.0
"""How long a client may take from one piece of its body to the next: a phone that changes networks is back sooner."""


class Mcp:
    """`current` gives the configuration in service; a request sees the one that it began with to its end."""

    def __init__(self, current: Callable[[], Service]) -> None:
        self._current = current

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answers one request. Cancelled when the client closes its connection."""
        noted, metrics = operation.of(request), self._current().metrics
        began = time.perf_counter()
        metrics.in_flight += 1
        response: web.StreamResponse | None = None
        try:
            response = await reply.rescue(request, self._serve)
            return response
        finally:
            noted.leave(metrics)
            self._record(noted, response, time.perf_counter() - began)

    def _record(self, noted: operation.Operation, response: web.StreamResponse | None, seconds: float) -> None:
        """Counts a request that is over; without a response its client hung up."""
        known = response.error if isinstance(response, reply.Answer) else ""
        error = CANCELLED_CALL if response is None else known or noted.error
        method = method_label(noted.method)
        if not noted.stays or isinstance(response, web.Response):  # how long a stream was open says nothing
            self._current().metrics.served.observe((noted.route, noted.era, method, error), seconds)
        if log.isEnabledFor(logging.INFO):
            where = {"route": noted.route, "era": noted.era, "method": method, "upstream": noted.upstream}
            who = {"client": noted.client, "session": noted.session, "error": error}
            status = 499 if response is None else response.status
            log.info("request", extra=fields(status=status, duration_ms=round(seconds * 1000, 3), **where, **who))

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        service = self._current()
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
        noted = operation.of(request)
        noted.route = head.route.address
        head = service.identify(head, request.headers)
        if isinstance(head, Rejection):
            return reply.rejected(head)
        noted.client = head.client or ""
        if request.method == "GET":
            noted.stay(service.metrics)
            return await legacy.stream(service, request, head)
        if request.method == "DELETE":
            return await legacy.delete(service, request, head)
        return await self._post(service, request, head)

    async def _post(self, service: Service, request: web.BaseRequest, head: Head) -> web.StreamResponse:
        limits = service.settings.limits
        raw = await _body(request, limits.max_body_bytes)
        if isinstance(raw, Rejection):
            return reply.rejected(raw)
        unread = await modern.serve_unread(service, request, head, raw)
        if unread is not None:
            return unread
        message = jsonrpc.parse(raw, max_depth=limits.max_depth)
        if isinstance(message, Rejection):
            return reply.rejected(message, jsonrpc.readable_id(raw))
        noted = operation.of(request)
        noted.era = self._era(request, message)
        noted.method = "" if isinstance(message, list | jsonrpc.Response) else message.method
        if noted.era == "modern" and not isinstance(message, list):
            return await modern.serve(service, request, head, raw, message)
        return await legacy.serve(service, request, head, message)

    def _era(self, request: web.BaseRequest, message: jsonrpc.Message | list[jsonrpc.Message | Rejection]) -> Era:
        """The era of this request. A response or a batch has no method: both belong to legacy sessions."""
        if isinstance(message, list):
            return "legacy"
        if isinstance(message, jsonrpc.Response):
            message = jsonrpc.Notification("", {})
        return era_of(request.headers, message)


async def _body(request: web.BaseRequest, max_bytes: int) -> bytes | Rejection:
    """The body, or why it is not read to its end. A client that waits to be asked for it (`Expect`) is asked."""
    too_large = Rejection(
        INVALID_REQUEST, f"the request body is larger than {max_bytes} bytes (limits.max_body_bytes)", http=413
    )
    if (request.content_length or 0) > max_bytes:
        return too_large
    if request.headers.get("Expect", "").lower() == "100-continue" and request.version >= HttpVersion11:
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0  # nothing of the answer itself has been sent
    pieces: list[bytes] = []
    size = 0
    try:
        while not request.content.at_eof():
            async with asyncio.timeout(None if request.content.is_eof() else BODY_SILENCE_S):
                piece = await request.content.readany()
            size += len(piece)
            if size > max_bytes:
                return too_large
            pieces.append(piece)
    except web.RequestPayloadError:
        return Rejection(PARSE_ERROR, "Parse error: the body is not encoded as its headers say", http=400)
    except TimeoutError:
        return Rejection(INVALID_REQUEST, f"the body stopped for {BODY_SILENCE_S:g} s", http=408)
    return b"".join(pieces)
