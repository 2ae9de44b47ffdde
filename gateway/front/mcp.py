"""The MCP endpoints: the ladder's head, the body, and then the front of the request's own era.

Specification: basic/transports of every revision. What a rung decides stands in `policies/admission.py`.
"""

import time
from collections.abc import Callable
from functools import partial

from aiohttp import web

from gateway.drain import REFUSED
from gateway.front import body, legacy, lifecycle, llm, modern, operation, reply
from gateway.front.http_sse import HttpSse
from gateway.front.repeats import BODY, Repeats
from gateway.front.service import CALLER, Service
from gateway.front.unread import is_read, serve_unread
from policies import cors, jsonrpc, routing
from policies.admission import NO_ENDPOINT, Head, admit_head, era_of
from policies.errors import Rejection
from policies.forwarded import Caller
from policies.mcp import HEADER_LAST_EVENT, HEADER_SESSION, INVALID_REQUEST, MAY_ASK, Era
from policies.metrics import CANCELLED_CALL

Body = jsonrpc.Message | list[jsonrpc.Message | Rejection]


class Mcp:
    """`current` gives the configuration in service; a request sees the one that it began with to its end."""

    def __init__(self, current: Callable[[], Service], http_sse: HttpSse, repeats: Repeats) -> None:
        self._current = current
        self._http_sse = http_sse
        self._repeats = repeats

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answers one request. Cancelled when the client closes its connection."""
        noted, metrics = operation.of(request), self._current().metrics
        metrics.in_flight += 1
        response: web.StreamResponse | None = None
        try:
            late = self._current().drain.refuses
            response = await reply.rescue(request, partial(self._serve, late=late))
            response = await reply.finished(request, response)
            await self._repeats.learn(request, response)
            return response
        finally:
            noted.leave(metrics)
            self._record(noted, response, time.perf_counter() - noted.began_s)

    def _record(self, noted: operation.Operation, response: web.StreamResponse | None, seconds: float) -> None:
        """Counts a request that is over; without a response its client hung up."""
        known = response.error if isinstance(response, reply.Answer) else ""
        error = CANCELLED_CALL if response is None else known or noted.error
        if isinstance(response, reply.Answer) and response.refused:
            noted.refused = True
        status, whole = 499 if response is None else response.status, isinstance(response, web.Response)
        noted.record(self._current().metrics, error, status, seconds, whole=whole)

    async def _serve(self, request: web.BaseRequest, *, late: bool) -> web.StreamResponse:
        """`late`: the gateway was shutting down when this came; only what belongs to a call under way is served."""
        service, noted = self._current(), operation.of(request)
        noted.rung = "head"
        request[reply.COMPRESS] = service.settings.limits.compress_from_bytes
        caller = service.caller(request)
        if isinstance(caller, Rejection):
            return reply.rejected(caller)
        request[CALLER] = caller
        noted.rung = "admission"
        doorman, origin = service.doorman, request.headers.get("Origin")
        if origin is not None and doorman.allows_origin(origin, caller.proto, caller.host):
            request[reply.EXTRA] = cors.response_headers(origin)
            if request.method == "OPTIONS":
                return self._preflight(service, request, caller)
        head = admit_head(
            request.method, request.rel_url.raw_path, request.headers, caller, service.settings.routes, doorman
        )
        if isinstance(head, Rejection):
            return reply.rejected(head)
        noted.route, noted.rung = head.route.address, "identity"
        if head.route.provider is not None:
            if origin is not None:
                request[reply.EXTRA] = cors.api_headers(origin)
            return await llm.serve(service, request, head, late=late)
        head = service.identify(head, request.headers)
        if isinstance(head, Rejection):
            return reply.rejected(head)
        noted.client, noted.rung = head.client or "", "session"
        if head.http_sse and request.method == "GET":
            noted.stay(service.metrics)
            return await self._http_sse.stream(service, request, head)
        if request.method == "GET":
            if late and HEADER_LAST_EVENT not in request.headers:
                noted.rung = "draining"
                return reply.rejected(REFUSED)
            noted.stay(service.metrics)
            return await legacy.stream(service, request, head)
        if request.method == "DELETE":
            return await lifecycle.delete(service, request, head)
        return await self._post(service, request, head, late=late)

    def _preflight(self, service: Service, request: web.BaseRequest, caller: Caller) -> web.StreamResponse:
        refused = service.doorman.host_refused(caller.host)
        route = routing.find_route(service.settings.routes, caller.host, request.rel_url.raw_path)
        if refused is not None or route is None:
            return reply.rejected(refused or NO_ENDPOINT)
        if route.provider is not None:
            return web.Response(
                status=204, headers=cors.preflight_headers(request.headers, cors.asked_for(request.headers))
            )
        forwardable = [n for _, name in route.references() for n in service.settings.upstreams[name].forward_headers]
        return web.Response(status=204, headers=cors.preflight_headers(request.headers, forwardable))

    async def _post(self, service: Service, request: web.BaseRequest, head: Head, *, late: bool) -> web.StreamResponse:
        noted = operation.of(request)
        noted.rung = "body"
        raw = await body.read(request, service.settings)
        if isinstance(raw, Rejection):
            return reply.rejected(raw)
        request[BODY] = raw
        if head.http_sse:
            noted.rung = "message"
            return await self._post_http_sse(service, request, head, raw)
        noted.rung = "message"
        if service.tracing.is_on:
            noted.trace(service.tracing, request.headers, raw)
        # the body of a traced request is to say which span it belongs to
        if noted.traced is not None or is_read(service, raw, late=late):
            unread = None
        else:
            unread = await serve_unread(service, request, head, raw)
        if unread is not None:
            return unread
        message = jsonrpc.parse(raw, max_depth=service.settings.limits.max_depth)
        if isinstance(message, Rejection):
            return reply.rejected(message, jsonrpc.readable_id(raw))
        noted.era, noted.rung = self._era(request, message), "draining"
        noted.method = "" if isinstance(message, list | jsonrpc.Response) else message.method
        noted.request_id = message.id if isinstance(message, jsonrpc.Request) else ""
        if service.drain.begun and begins(message, late=late, lasting=service.state.store.shared):
            return _refused(request, noted.era, message)
        if noted.era == "modern" and not isinstance(message, list):
            return await modern.serve(service, request, head, raw, message)
        return await legacy.serve(service, request, head, message)

    async def _post_http_sse(
        self, service: Service, request: web.BaseRequest, head: Head, raw: bytes
    ) -> web.StreamResponse:
        message = jsonrpc.parse(raw, max_depth=service.settings.limits.max_depth)
        if isinstance(message, list):
            message = Rejection(INVALID_REQUEST, "HTTP+SSE has no batches: one message a POST")
        if isinstance(message, Rejection):
            return reply.rejected(message, jsonrpc.readable_id(raw))
        noted = operation.of(request)
        noted.rung, noted.era = "session", "legacy"
        noted.method = "" if isinstance(message, jsonrpc.Response) else message.method
        return await self._http_sse.post(service, request, head, raw, message)

    def _era(self, request: web.BaseRequest, message: Body) -> Era:
        return era_of(request.headers, message)


def begins(message: Body, *, late: bool, lasting: bool) -> bool:
    """Whether it would begin something that a gateway which shuts down does not begin: a session, unless there are
    replicas where it lasts, or, where it came late, any call but the retry of one that waits here."""
    if not isinstance(message, jsonrpc.Request):
        return isinstance(message, list) and late
    is_retry = message.method in MAY_ASK and "requestState" in message.params
    return (message.method == "initialize" and not lasting) or (late and not is_retry)


def _refused(request: web.BaseRequest, era: Era, message: Body) -> web.StreamResponse:
    if not isinstance(message, jsonrpc.Request):
        return reply.rejected(REFUSED)
    response = reply.rejected(REFUSED, message.id)
    if era == "legacy" and HEADER_SESSION in request.headers and message.method != "initialize":
        response.set_status(200)  # in a session any other status ends some clients' transport
    return response
