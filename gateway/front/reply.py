"""The only writer to clients: JSON, event streams and errors; the one place that turns exceptions into wire.

Specification: 2026-07-28 and 2025-11-25 basic/transports. Statuses come from `policies/errors.py`.
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from aiohttp import HttpVersion11, web

from gateway.front import operation
from policies import coding, sse
from policies.admission import Acceptance
from policies.delivery import Message, error
from policies.edge import CLOSE
from policies.errors import Fault, Rejection
from policies.exchange import RequestId
from policies.mcp import INTERNAL_ERROR, INVALID_REQUEST
from policies.metrics import CANCELLED_CALL, error_type, outcome

log = logging.getLogger(__name__)

T = TypeVar("T")

_OPENED: "web.RequestKey[Stream]" = web.RequestKey("stream")
"""Where a request keeps the stream that answers it, once that is open: no second answer may follow it."""


class Answer(web.Response):
    """A whole answer."""

    error = ""
    """How the request went, if that is known here: an `error.type` (`policies/metrics.py`)."""
    refused = False
    """Whether the request was not let through."""


_STREAM_HEADERS = {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-cache, no-transform",
    "X-Accel-Buffering": "no",  # streamable-http, Receiving Messages: nginx must not hold events back
}


def json(raw: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    return Answer(body=raw, status=status, content_type="application/json", headers=headers)


def accepted() -> web.Response:
    """202 with no body: a notification or a response was taken."""
    return web.Response(status=202)


def rejected(rejection: Rejection, request_id: RequestId | None = None) -> Answer:
    """The answer to a request that is not let through: an error response with the status of the rejection itself."""
    response = _refusal(rejection, request_id)
    response.refused = True
    return response


def _refusal(rejection: Rejection, request_id: RequestId | None) -> Answer:
    response = json(error(rejection, request_id).raw, rejection.status, dict(rejection.headers))
    response.error = error_type(rejection.code, rejection.http)
    if set(CLOSE) <= set(rejection.headers):
        response.force_close()
    return response


def final(message: Message, *, in_session: bool) -> web.Response:
    """The last message of an exchange as one JSON answer. In a live legacy session a JSON-RPC error is HTTP 200: some
    clients take any other status for the end of their transport. 404 means only that the session is gone."""
    rejection = message.rejection
    status = 200 if rejection is None else status_of(rejection, in_session=in_session)
    response = json(message.raw, status, None if rejection is None else dict(rejection.headers))
    response.error = outcome(message)
    return response


def status_of(rejection: Rejection, *, in_session: bool) -> int:
    """The status of an error that is the one JSON answer."""
    if not in_session:
        return rejection.status
    return rejection.http if rejection.http in (401, 403, 404, 413) else 200


async def single(request: web.BaseRequest, message: Message, accept: Acceptance, **headers: str) -> web.StreamResponse:
    """One message that is at hand, in the form the client reads."""
    if accept.json:
        status = message.rejection.status if message.rejection is not None else 200
        response = json(message.raw, status, headers)
        response.error = outcome(message)
        return response
    stream = Stream(request, 60.0)
    await stream.open(headers)
    await stream.message(message)
    return await stream.end()


def refused_stream(message: Message) -> web.Response:
    """A standalone stream that the upstream does not serve: 405 with what is, as for a route without streams."""
    status = message.rejection.http if message.rejection is not None else None
    allow = {"Allow": "POST, DELETE"} if status in (405, None) else None
    response = json(message.raw, status or 405, allow)
    response.error = outcome(message)
    return response


async def failed(request: web.BaseRequest, rejection: Rejection, request_id: RequestId | None) -> web.StreamResponse:
    """An error, as the answer where there is none yet, as the last event of a stream that has been opened."""
    stream: Stream | None = request.get(_OPENED)
    if stream is None:
        shape = request.get(SHAPE)
        return _refusal(rejection, request_id) if shape is None else shape(rejection)
    operation.of(request).error = error_type(rejection.code, rejection.http)
    if request_id is not None:
        await stream.event(error(rejection, request_id).raw)
    return await stream.end()


Shape = Callable[[Rejection], web.Response]
SHAPE: web.RequestKey[Shape] = web.RequestKey("shape of errors")
"""The key under which a request holds what makes its errors, where they are not JSON-RPC's."""

EXTRA = web.RequestKey("extra headers", dict[str, str])
"""The key under which a request holds headers for whatever answers it."""

COMPRESS = web.RequestKey("compress from bytes", int)
"""The key under which a request holds the size from which its answer may be compressed."""

_IN_A_THREAD_BYTES = 1 << 20
"""From here on compression takes longer than the loop may be held up: some 10 ms a MiB."""


async def finished(request: web.BaseRequest, response: web.StreamResponse) -> web.StreamResponse:
    """A response that has not begun yet with what every response has; large JSON compressed for those who ask."""
    if response.prepared or not isinstance(response, web.Response):
        return response
    response.headers.update(request.get(EXTRA, {}))
    raw = response.body
    if not isinstance(raw, bytes) or response.content_type != "application/json":
        return response
    if len(raw) < request.get(COMPRESS, len(raw) + 1):
        return response
    response.headers.add("Vary", "Accept-Encoding")
    wanted = coding.wanted(request.headers.getall("Accept-Encoding", ()))
    if wanted is not None:
        small = len(raw) < _IN_A_THREAD_BYTES
        response.body = coding.encode(raw, wanted) if small else await asyncio.to_thread(coding.encode, raw, wanted)
        response.headers["Content-Encoding"] = wanted
    return response


class ClientGone(Exception):
    """The client closed its connection; there is nobody to answer."""


class Stream:
    """An event stream to a client: opened late, so that an error may still have a status of its own.

    `first` is an event that it begins with, if any; comments go out after `keep_alive_s` of silence. Raises
    `ClientGone` once the client is.
    """

    def __init__(self, request: web.BaseRequest, keep_alive_s: float, first: bytes = b"") -> None:
        self._request = request
        self._keep_alive_s = keep_alive_s
        self._first = first
        self.response: web.StreamResponse | None = None

    async def open(self, headers: Mapping[str, str] | None = None) -> None:
        if self.response is None:
            extra = self._request.get(EXTRA, {})
            self.response = web.StreamResponse(headers={**_STREAM_HEADERS, **extra, **(headers or {})})
            if self._request.version >= HttpVersion11:  # to HTTP/1.0 it ends with the connection
                self.response.enable_chunked_encoding()
            self._request[_OPENED] = self
            try:
                await self.response.prepare(self._request)
            except ConnectionError as error:  # the client's, and not that of an upstream whose answer is being read
                raise ClientGone from error
            if self._first:
                await self.raw(self._first)

    async def message(self, message: Message, event_id: str | None = None) -> None:
        """Writes a message; the last one of an answer says how the request went."""
        if message.last:
            operation.of(self._request).end(message)
        await self.event(message.raw, event_id)

    async def event(self, data: bytes, event_id: str | None = None) -> None:
        await self.raw(sse.encode(data, event="message", id=event_id))

    async def raw(self, block: bytes) -> None:
        """Writes whole events as they are."""
        await self.open()
        assert self.response is not None
        try:
            await self.response.write(block)
        except ConnectionError as error:
            raise ClientGone from error

    async def end(self) -> web.StreamResponse:
        await self.open()
        assert self.response is not None
        try:
            await self.response.write_eof()
        except ConnectionError as error:
            raise ClientGone from error
        return self.response

    async def waiting(self, work: Awaitable[T]) -> T:
        """Awaits `work`, keeping an open stream alive meanwhile. Cancel-safe: `work` is cancelled with it."""
        task = asyncio.ensure_future(work)
        try:
            while True:
                done, _ = await asyncio.wait({task}, timeout=self._keep_alive_s)
                if done:
                    return task.result()
                if self.response is not None:
                    await self.raw(sse.KEEP_ALIVE)
        finally:
            task.cancel()


async def rescue(
    request: web.BaseRequest, handle: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Runs a handler; whatever it raises becomes an answer. A client that has gone is no error."""
    try:
        return await handle(request)
    except Fault as fault:
        rejection = fault.rejection()
    except (ClientGone, ConnectionError):
        operation.of(request).error = CANCELLED_CALL
        return web.Response(status=499)
    except web.HTTPException as refused:
        rejection = Rejection(INVALID_REQUEST, refused.reason, http=refused.status)
    except Exception:
        number = secrets.token_hex(4)
        log.exception("request failed, id %s", number)
        rejection = Rejection(INTERNAL_ERROR, f"internal error {number}", http=500)
    try:
        return await failed(request, rejection, None)
    except ClientGone:
        return web.Response(status=499)
