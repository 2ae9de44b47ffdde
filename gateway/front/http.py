"""The server side of HTTP/1.1: aiohttp's, with bounds on slow and silent peers, and errors in the project's own form.

Specification: RFC 9110, RFC 9112. aiohttp parses; what it refuses is answered here as a JSON-RPC error that quotes
nothing, and is no line in the log. What can be answered from its bytes alone is, before aiohttp sees it
(`gateway/front/repeats.py`). One sweep over all connections sees to heads and bodies that don't arrive and to
clients that don't read, so that a request costs no timer.
"""

import asyncio
import logging
import re
import socket
import struct
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, cast

from aiohttp import StreamReader, http_exceptions, web
from aiohttp.http import RawRequestMessage

from policies.delivery import error
from policies.edge import head_too_large
from policies.errors import Rejection
from policies.mcp import INVALID_REQUEST
from policies.settings_edge import Connections

LINGER_S: Final = 1.0
"""How long a connection stays after it was refused, its input thrown away: closed at once, its reset would overtake
the answer (RFC 9112, section 9.6)."""

MAX_LINE_BYTES: Final = 8190
"""One line of a head. Apache's default, and aiohttp's."""

MAX_LINES: Final = 128
"""Header lines. Twice what any client sends."""

BODY_BYTES_PER_S: Final = 1024
"""A body that comes slower than this for longer than `connections.body_s` is given up. Apache's mod_reqtimeout asks
for 500."""

MAX_KNOWN_BYTES: Final = 8192
"""How much of a request is remembered as it came, for one like it to be answered at once. Lists and reads take less."""

_END: Final = b"\r\n\r\n"
_SPLIT_BYTES: Final = 1 << 16
_REASONS: Final = {400: "Bad Request", 408: "Request Timeout", 431: "Request Header Fields Too Large"}
_NAMED: Final = re.compile(r"(?:Duplicate|Missing) '[A-Za-z-]{1,40}' header[a-z. ]*")


_SILENT: Final = logging.getLogger("gateway.front.http")
_SILENT.setLevel(logging.CRITICAL + 1)
"""What aiohttp logs itself: requests that are no HTTP, with a traceback and their bytes. Their client is told."""


Quick = Callable[[str, bytes], Sequence[bytes] | None]
"""What answers some requests at once. It is given the peer's address and all that has come of one request, on a
connection on which nothing else is under way; it gives the whole response in pieces, none where there is more to come
of the request, and None for what aiohttp is to read."""


class TooSlow(Exception):
    """The body of a request did not arrive in time."""


class Handler(web.RequestHandler):
    """One connection."""

    __slots__ = (
        "_arrived",
        "_body",
        "_broken",
        "_came",
        "_early",
        "_head_bytes",
        "_line",
        "_server",
        "_since",
        "_unread",
        "_unread_since",
        "lost",
        "peer",
    )

    def __init__(self, server: "HttpServer", loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(
            server,
            loop=loop,
            access_log=None,  # type: ignore[arg-type]
            logger=_SILENT,
            auto_decompress=False,
            keepalive_timeout=server.bounds.idle_s,
            max_line_size=MAX_LINE_BYTES,
            max_field_size=MAX_LINE_BYTES,
            max_headers=MAX_LINES,
        )
        self._server = server
        self._line: asyncio.Transport | None = None
        self._body: StreamReader | None = None
        self._broken = False
        self._head_bytes = 0
        self._since = 0.0  # of the head or body that is arriving, by the loop's clock; 0 where nothing is
        self._arrived = 0
        self._unread = 0
        self._unread_since = 0.0
        self._early = b""
        self._came = b""
        self.peer = ""
        self.lost: Callable[[], None] | None = None

    # what arrives

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._line = cast("asyncio.Transport", transport)
        name = transport.get_extra_info("peername")
        self.peer = str(name[0] if isinstance(name, tuple) else name)
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if self._broken:
            return
        if data and self._server.quick is not None:  # without any, aiohttp goes on with what it has
            data, self._early = self._early + data, b""
            if self._is_between:
                pieces = self._server.quick(self.peer, data)
                if pieces is not None:
                    self._answer(pieces, data)
                    return
                self._came = data if len(data) <= MAX_KNOWN_BYTES else b""
            elif self._came:
                is_part = self.is_receiving and len(self._came) + len(data) <= MAX_KNOWN_BYTES
                self._came = self._came + data if is_part else b""
        self._read(data)

    def _answer(self, pieces: Sequence[bytes], data: bytes) -> None:
        """Sends a response in aiohttp's stead; without one, `data` waits for the rest of its request."""
        if not pieces:
            self._early = data
            return
        assert self._line is not None
        self._line.writelines(pieces)
        self._next_keepalive_close_time = until = self._loop.time() + self._keepalive_timeout
        if self._keepalive_handle is None:
            self._keepalive_handle = self._loop.call_at(until, self._process_keepalive)

    def take(self) -> bytes:
        """The request under way as it came, b"" where it is large or came with another. Once."""
        came, self._came = self._came, b""
        return came

    def _catch_up(self) -> None:
        """Gives aiohttp what waits."""
        data, self._early = self._early, b""
        if data:
            self._read(data)

    def _read(self, data: bytes) -> None:
        if len(data) > _SPLIT_BYTES or data.count(_END) < 2:
            self._feed(data)
            return
        # several requests at once: fed one by one, since a broken one would take those before it with it
        *parts, rest = data.split(_END)
        for part in (*(part + _END for part in parts), rest):
            if part and not self._broken:
                self._feed(part)

    def _feed(self, data: bytes) -> None:
        heads = self._request_count
        in_body = self._body is not None and not _ended(self._body)
        super().data_received(data)
        if self._request_count != heads:
            message, body = self._messages[-1] if self._messages else (None, None)
            if message is not None and not hasattr(message, "headers"):  # what is no HTTP, in the form of an error
                self._broken = True
                if self._body is not None and not _ended(self._body):
                    self._body.set_exception(web.RequestPayloadError())  # aiohttp would leave its reader waiting
                return
            if isinstance(message, RawRequestMessage) and body is not None and self._server.leaving:
                # its answer says that the connection ends with it
                self._messages[-1] = (message._replace(should_close=True), body)
            self._body = body if body is not None and not body.is_eof() else None
            self._head_bytes = self._arrived = 0
            self._since = self._loop.time() if self._body is not None else 0.0
        elif in_body:  # also where this was its end
            self._arrived += len(data)
        elif data and not (self._buffer_paused or self._upgraded or self._close):
            self._body = None
            self._head_bytes += len(data)
            self._since = self._since if self._head_bytes > len(data) else self._loop.time()
            if self._head_bytes > self._server.max_head_bytes and self._idle:
                self.refuse(head_too_large(self._server.max_head_bytes))

    def eof_received(self) -> bool:  # type: ignore[override]
        """A client that will send no more. What it had begun is refused; what it had asked is cancelled, like that of
        one who has hung up: the two can't be told apart."""
        self._catch_up()
        if self._idle and self._head_bytes:
            self.refuse(Rejection(INVALID_REQUEST, "the request ends within its head", http=400))
        elif self._body is not None and not _ended(self._body):
            self._body.set_exception(EOFError())
        else:
            return False
        return self.ssl_context is None  # TLS closes both ways at once

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        self._line = self._body = None
        if self.lost is not None:
            self.lost()

    @property
    def is_receiving(self) -> bool:
        """Whether the body of a request still arrives."""
        return bool(self._early) or (self._body is not None and not _ended(self._body))

    @property
    def _is_between(self) -> bool:
        """Whether the next byte begins a request, all earlier ones are answered, and the connection goes on."""
        if self._messages or self._head_bytes or self._close or self._force_close or self._upgraded:
            return False
        if (self._waiter is None or self._waiter.done()) and self._request_count:
            return False
        if self._server.leaving or self._line is None or (self._body is not None and not _ended(self._body)):
            return False
        return self._line.get_write_buffer_size() == 0  # the answers have been read, too

    @property
    def _idle(self) -> bool:
        """Whether no request is being answered."""
        return self._waiter is not None and not self._messages

    # what takes too long

    def sweep(self, now: float) -> None:
        """Ends what has taken too long by `now`, the loop's clock."""
        bounds = self._server.bounds
        self._catch_up()  # with its own timers
        if self._body is not None:
            if _ended(self._body):
                self._body, self._since = None, 0.0
            elif now - self._since > bounds.body_s + self._arrived / BODY_BYTES_PER_S:
                self._body.set_exception(TooSlow())
        elif self._head_bytes and self._idle and now - self._since > bounds.head_s:
            why = f"the request head did not arrive within {bounds.head_s:g} s (connections.head_s)"
            self.refuse(Rejection(INVALID_REQUEST, why, http=408))
        line = self._line
        unread = line.get_write_buffer_size() if line is not None else 0
        if line is None or unread == 0 or unread < self._unread or not self._unread:
            self._unread, self._unread_since = unread, now
        elif now - self._unread_since > bounds.write_stall_s:
            # with a reset: the system would keep what it could not send, as long as the client stays
            line.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            line.abort()

    # what is refused

    def refuse(self, rejection: Rejection) -> None:
        """Answers in aiohttp's stead, and ends the connection. Only while no request is being answered."""
        line = self._line
        self._head_bytes = 0
        if line is None or line.is_closing() or self._close:
            return
        self._close = True  # aiohttp then throws away what still comes
        line.write(answer(rejection))
        if line.can_write_eof():
            line.write_eof()
        self._loop.call_later(LINGER_S, line.close)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,  # noqa: ARG002 - aiohttp's signature
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 - aiohttp's signature
    ) -> web.StreamResponse:
        """What aiohttp itself refuses: a head or body that is no HTTP."""
        rejection = _rejection(exc)
        if request.writer.output_size > 0:
            raise ConnectionError("a part of another answer is out")
        self._close = True
        response = _Farewell(self, rejection)
        response.force_close()
        return response

    async def linger(self) -> None:
        """Waits for the client to hang up, but not for long."""
        line = self._line
        if line is not None and not line.is_closing():
            if line.can_write_eof():
                line.write_eof()
            await asyncio.sleep(LINGER_S)


class _Farewell(web.Response):
    """The last answer on a connection."""

    def __init__(self, handler: Handler, rejection: Rejection) -> None:
        body = error(rejection, None).raw
        super().__init__(body=body, status=rejection.status, content_type="application/json")
        self._handler = handler

    async def write_eof(self, data: bytes = b"") -> None:
        await super().write_eof(data)
        await self._handler.linger()


class HttpServer(web.Server):
    """Makes a `Handler` for each connection."""

    def __init__(
        self,
        handle: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
        bounds: Connections,
        max_head_bytes: int,
    ) -> None:
        # handler_cancellation: a client that closes its connection cancels its handler; off by default in aiohttp
        super().__init__(handle, handler_cancellation=True)
        self.bounds = bounds
        self.max_head_bytes = max_head_bytes
        self.leaving = False
        """Whether each connection ends with the next answer on it."""
        self.quick: Quick | None = None
        """What is tried first."""
        self._every_s = max(0.05, min(5.0, bounds.head_s / 4, bounds.body_s / 4, bounds.write_stall_s / 4))
        self._sweeping = self._loop.call_later(self._every_s, self._sweep)

    def __call__(self) -> Handler:
        return Handler(self, self._loop)

    def _sweep(self) -> None:
        now = self._loop.time()
        for connection in tuple(self._connections):
            cast("Handler", connection).sweep(now)
        self._sweeping = self._loop.call_later(self._every_s, self._sweep)

    def close_idle(self) -> bool:
        """Ends each connection, at once or after the request that is under way on it; whether that could be done with
        all of them. aiohttp throws away what comes on a closed one, so that a body that still arrives goes first."""
        handlers = [cast("Handler", connection) for connection in self._connections]
        receiving = [handler for handler in handlers if handler.is_receiving]
        for handler in handlers:
            if handler not in receiving:
                handler.close()
        return not receiving

    async def shutdown(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - aiohttp's signature
        self._sweeping.cancel()
        await super().shutdown(timeout)


def answer(rejection: Rejection) -> bytes:
    """A whole response that ends its connection."""
    body = error(rejection, None).raw
    reason = _REASONS.get(rejection.status, "Service Unavailable")
    lines = [
        f"HTTP/1.1 {rejection.status} {reason}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Connection: close",
        *(f"{name}: {value}" for name, value in rejection.headers if name != "Connection"),
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


def _ended(body: StreamReader) -> bool:
    return bool(body.is_eof()) or body.exception() is not None


def _rejection(exc: BaseException | None) -> Rejection:
    """Without a byte of what came: it may hold a credential."""
    said = exc.message if isinstance(exc, http_exceptions.HttpProcessingError) else ""
    if isinstance(exc, http_exceptions.LineTooLong):
        why = f"the request line or a header line is longer than {MAX_LINE_BYTES} bytes"
        return Rejection(INVALID_REQUEST, why, http=431)
    if said.startswith("Too many headers"):
        return Rejection(INVALID_REQUEST, f"the request has more than {MAX_LINES} header lines", http=431)
    if "HTTPS traffic" in said:
        return Rejection(INVALID_REQUEST, "this port speaks http, not https", http=400)
    named = _NAMED.match(said)
    why = f": {named[0].rstrip('. ')}" if named is not None else ""
    return Rejection(INVALID_REQUEST, f"the request is not well-formed HTTP/1.1{why}", http=400)
