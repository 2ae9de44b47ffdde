"""Requests to LLM APIs: whose they are, what is taken out of them, and their responses as they come.

A body is read whole before any of it is sent, since what may stand in it is told by the whole; uploads of files are
passed on as they come. A response's bytes are not looked at. The client's end is the end of the API's response too.
Errors of the gateway's own have the shape that clients of the API read. What passes is decided in
`policies/provider_http.py`, what is taken out in `policies/provider.py`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, Self, TypeVar

from aiohttp import HttpVersion11, web
from multidict import CIMultiDict

from gateway.drain import REFUSED
from gateway.front import body, operation, reply
from gateway.front.operation import Operation
from gateway.front.service import Service
from gateway.provider.line import Answer, Line
from policies import coding, provider, provider_http, routing
from policies.admission import Head
from policies.errors import Fault, Rejection, UpstreamFault
from policies.headers import Headers
from policies.identity import Clients
from policies.mcp import INVALID_REQUEST, PARSE_ERROR
from policies.metrics import CANCELLED_CALL, error_type
from policies.provider_errors import error_body
from policies.settings_providers import Provider
from policies.settings_routes import Route

T = TypeVar("T")

_IN_A_THREAD_BYTES: Final = 256 << 10
"""From here on to read a body takes longer than the loop may be held up: some milliseconds."""

MAX_BODIES: Final = 16
"""So many of the largest bodies may be held at a time; most are a hundredth of that."""

_SETTING: Final = "limits.max_provider_body_bytes"


@dataclass(frozen=True, slots=True)
class _Visit:
    """One request: `rest` is its path below the route's, `is_ours` whether a key is of the gateway's own clients."""

    service: Service
    request: web.BaseRequest
    noted: Operation
    line: Line
    rest: str
    is_ours: Callable[[str], bool]

    @property
    def provider(self) -> Provider:
        return self.line.settings

    @property
    def query(self) -> str:
        return self.request.rel_url.raw_query_string


async def serve(service: Service, request: web.BaseRequest, head: Head, *, late: bool) -> web.StreamResponse:
    """Answers one request on a route to an LLM API. Cancelled when the client closes its connection.

    `late`: the gateway was shutting down when this came."""
    assert head.route.provider is not None
    line = service.lines[head.route.provider]
    shape: reply.Shape = partial(refused, line.settings.dialect)
    request[reply.SHAPE] = shape
    noted = operation.of(request)
    noted.provider, noted.dialect, noted.outcome = line.name, line.settings.dialect, "failed"
    visit = _Visit(
        service,
        request,
        noted,
        line,
        routing.below(head.route, request.rel_url.raw_path),
        service.clients.is_ours,
    )
    client = identify(service.clients, head.route, request.headers, visit.query)
    if isinstance(client, Rejection):
        return _refuse(visit, client)
    noted.client, noted.rung = client or "", "request"
    why = provider_http.refusal(visit.provider, request.headers, visit.rest, visit.query)
    if why is None and late:
        noted.rung, why = "draining", REFUSED
    if why is not None:
        return _refuse(visit, why)
    noted.rung = "body"
    with Holding(service) as holding:
        return await _forward(visit, client if client is not None else head.route.principal, holding)


def refused(dialect: str, why: Rejection) -> reply.Answer:
    """An error of the gateway's own in the API's shape."""
    raw, headers = error_body(dialect, why)
    response = reply.json(raw, why.status)
    response.headers.extend(headers)
    response.error = error_type(why.code, why.http)
    if ("Connection", "close") in headers:
        response.force_close()
    return response


def _refuse(visit: _Visit, why: Rejection) -> web.Response:
    visit.noted.outcome = "refused"
    response = refused(visit.provider.dialect, why)
    response.refused = True
    return response


def identify(clients: Clients, route: Route, headers: Headers, query: str) -> str | Rejection | None:
    """The client whose key came, in the place that is meant for it or in one that the API has."""
    keys = list(provider_http.presented(headers, query))
    owner = next((name for key in keys if (name := clients.holder(key)) is not None), None)
    return clients.admit(route, owner, provider_http.UNKNOWN_KEY if keys else provider_http.NO_KEY)


# what is sent


class Holding:
    """The room that one request's body takes: until it is sent, or the request is over."""

    def __init__(self, service: Service) -> None:
        self._room = service.lines.room
        self._max_bytes = MAX_BODIES * service.settings.limits.max_provider_body_bytes
        self._held = 0

    def take(self, size: int) -> bool:
        """Whether there is room for so many bytes more."""
        if self._room.held + size > self._max_bytes:
            return False
        self._room.held += size
        self._held += size
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()

    def leave(self) -> None:
        self._room.held -= self._held
        self._held = 0


class Upload:
    """A body that is not read, as it comes."""

    def __init__(self, visit: _Visit) -> None:
        self._visit = visit
        self._moved_s = 0.0

    def moved(self) -> float:
        """When the last of it came, by the loop's clock."""
        return self._moved_s

    async def __aiter__(self) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        async for chunk in self._visit.request.content.iter_any():
            self._visit.noted.request_bytes += len(chunk)
            self._moved_s = loop.time()
            yield chunk
            self._moved_s = loop.time()


Body = bytes | Upload | None


async def _body(visit: _Visit, client: str | None, holding: Holding) -> tuple[Body, bool] | Rejection:
    """What is sent for the body that came, and whether its coding is still the one that the request names."""
    request, settings = visit.request, visit.service.settings
    if not request.body_exists:
        return None, True
    if not provider_http.reads(visit.provider.dialect, request.headers.get("Content-Type"), visit.rest):
        unwanted = body.want(request)
        return unwanted if unwanted is not None else (Upload(visit), True)
    content = coding.coding_of(request.headers.getall("Content-Encoding", ()))
    if content is None:
        accept = (("Accept-Encoding", coding.READABLE),)
        why = f"Content-Encoding must be one of {coding.READABLE}, or none: what is sent is read before it is passed on"
        return Rejection(INVALID_REQUEST, why, http=415, headers=accept)
    bound = body.Bound(settings.limits.max_provider_body_bytes, _SETTING, holding.take)
    raw = await body.read_coded(request, settings, bound)
    if isinstance(raw, Rejection):
        return raw
    visit.noted.request_bytes = len(raw)
    plain: bytes | None = raw
    if content != "identity":
        try:
            plain = await asyncio.to_thread(coding.decode, raw, content, bound.max_bytes)  # little may stand for much
        except coding.Malformed as error:
            return Rejection(PARSE_ERROR, f"the request body is not {content}: {error}", http=400)
    if plain is None:
        return bound.too_large()
    if plain is not raw and not holding.take(len(plain)):
        return body.FULL
    stripped = await _stripped(visit, client, plain)
    if isinstance(stripped, Rejection):
        return stripped
    return (raw, True) if stripped is plain else (stripped, content == "identity")


async def _stripped(visit: _Visit, client: str | None, plain: bytes) -> bytes | Rejection:
    dialect, path = visit.provider.dialect, visit.line.path + visit.rest
    ledger, size = visit.service.ledger, len(plain)
    try:
        has_ledger = await ledger.has_any(client)
        look = partial(provider.candidates, has_ledger=has_ledger, keeps_structured=visit.provider.keep_structured)
        inspected = await _worked(size, look, dialect, plain, path)
        known = ledger.known(client, inspected) if has_ledger else provider.Known()
        stripped = await _worked(size, provider.strip, inspected, known)
    except provider.Unreadable as error:
        return Rejection(PARSE_ERROR, str(error), http=400)
    for kind, count in stripped.removed.items():
        visit.service.metrics.provider_stripped.add(visit.line.name, dialect, kind, by=count)
        visit.noted.stripped += count
    visit.service.metrics.provider_bytes.add(visit.line.name, dialect, "stripped", by=max(0, size - len(stripped.body)))
    return stripped.body


async def _worked(size: int, work: Callable[..., T], *given: object) -> T:
    """What comes of work that takes time in proportion to `size`."""
    return work(*given) if size < _IN_A_THREAD_BYTES else await asyncio.to_thread(work, *given)


async def _forward(visit: _Visit, client: str | None, holding: Holding) -> web.StreamResponse:
    request = visit.request
    found = await _body(visit, client, holding)
    if isinstance(found, Rejection):
        return _refuse(visit, found)
    sent, as_coded = found
    del found
    lines = [(str(name), value) for name, value in request.headers.items()]
    headers = provider_http.sent(lines, request.headers, visit.provider, visit.is_ours)
    if not as_coded:
        headers = [pair for pair in headers if pair[0].lower() != "content-encoding"]
    if isinstance(sent, Upload) and request.content_length is not None:
        headers.append(("Content-Length", str(request.content_length)))
    query = provider_http.sent_query(visit.query, visit.provider, visit.is_ours)
    target = f"{visit.rest}?{query}" if query else visit.rest
    moved = sent.moved if isinstance(sent, Upload) else None
    out: web.StreamResponse | None = None
    try:
        async with visit.line.request(request.method, target, headers, sent, moved) as answer:
            sent = None  # it may be large, and the response may take minutes
            holding.leave()
            out = await _opened(visit, answer)
            await _relay(visit, answer, out)
    except (reply.ClientGone, asyncio.CancelledError):
        visit.noted.outcome, visit.noted.error = "cancelled", CANCELLED_CALL
        raise
    except Fault as fault:
        lost = request.content.exception()
        why = body.lost(lost, visit.service.settings) if lost is not None else fault.rejection()
        if out is None and (lost is not None or not isinstance(fault, UpstreamFault)):
            visit.noted.rung = "body" if lost is not None else "request"
            return _refuse(visit, why)
        if out is None:
            return refused(visit.provider.dialect, why)
        visit.noted.outcome = "failed" if lost is None else "refused"
        visit.noted.error = error_type(why.code, why.http)
        _break_off(request)
        return out
    visit.noted.outcome = "answered"
    return out


# what comes back


async def _opened(visit: _Visit, answer: Answer) -> web.StreamResponse:
    headers = CIMultiDict(provider_http.returned(answer.lines, answer.headers))
    headers.update(visit.request.get(reply.EXTRA, {}))
    out = web.StreamResponse(status=answer.status, reason=answer.reason, headers=headers)
    try:
        await out.prepare(visit.request)
    except ConnectionError as error:  # the client's, not the API's
        raise reply.ClientGone from error
    return out


async def _relay(visit: _Visit, answer: Answer, out: web.StreamResponse) -> None:
    while chunk := await answer.chunk():
        visit.noted.response_bytes += len(chunk)
        try:
            await out.write(chunk)
        except ConnectionError as error:
            raise reply.ClientGone from error
    try:
        await out.write_eof()
    except ConnectionError as error:
        raise reply.ClientGone from error


def _break_off(request: web.BaseRequest) -> None:
    """Ends the connection in the middle of a response, so that its client sees that there was to be more."""
    if request.transport is None:
        return
    if request.version >= HttpVersion11:
        request.transport.close()
    else:
        request.transport.abort()  # HTTP/1.0 has no other sign
