"""An upstream over HTTP+SSE, the transport before Streamable HTTP: one event stream a session.

Specification: 2024-11-05 basic/transports (HTTP with SSE). Each `initialize` opens a stream, which lives in this
process and is the session: where it ends, the session is lost and its calls fail at once, and none is sent again.
Sessions are named here, since the upstream's own name for one is hidden in the address that its stream gave.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Final

from gateway.background import Background
from gateway.upstreams.base import Ids
from gateway.upstreams.channel import Channel, Mailbox
from gateway.upstreams.http_sse_line import HttpSseLine
from gateway.upstreams.patience import USUAL, Patience
from gateway.upstreams.rooms import Room, Rooms
from gateway.upstreams.stdio_reception import Bounds, StdioReception, bounds_of
from gateway.upstreams.underway import Underway
from gateway.upstreams.wire import Reception, Wire
from policies import jsonrpc
from policies.errors import UpstreamFault
from policies.mcp import HEADER_SESSION, HEADER_VERSION, Json

_PREFIX: Final = "sse-"
_NAME: Final = re.compile(_PREFIX + r"[0-9a-f]{16,24}")


class HttpSse:
    """`request` speaks as `gateway/upstreams/transport.py` says. `wire` is that of the configured address."""

    has_headers = False

    def __init__(self, wire: Wire, ids: Ids) -> None:
        self.name = wire.name
        self.settings = wire.settings
        self.limits = wire.limits
        self._wire = wire
        self._ids = ids
        self._rooms = Rooms(self._end_room, lambda room: room.channel is not None and room.channel.is_used_by(room))
        self._opening = 0
        self._ending = Background()
        self._underway = Underway(wire.name)

    @staticmethod
    def named(session: str) -> bool:
        """Whether a session's id is one that is given here."""
        return _NAME.fullmatch(session) is not None

    @property
    def endpoint_count(self) -> int:
        return self._wire.endpoint_count

    def next_endpoint(self, tried: Collection[str] = (), /) -> str:
        return self._wire.next_endpoint(tried)

    def known_endpoint(self, key: str, /) -> str:
        return self._wire.known_endpoint(key)

    def holder(self, session: str, /) -> str:
        return session.removeprefix(_PREFIX)

    @asynccontextmanager
    async def request(
        self, method: str, headers: Mapping[str, str], body: bytes | None = None, patience: Patience = USUAL
    ) -> AsyncIterator[StdioReception]:
        """Raises `UpstreamFault`, with `executed` False where nothing was sent."""
        with self._underway.unless_retired(patience):
            async with self._request(method, headers, body or b"", patience) as reception:
                yield reception

    async def is_spoken(self, headers: Mapping[str, str], endpoint: str) -> bool:
        """Whether the upstream opens a stream that names an endpoint, which is ended again. Takes `probe_s` at most."""
        line = HttpSseLine(self._wire, _outward(headers), endpoint)
        line.attend(lambda _: None, lambda: None)
        try:
            async with asyncio.timeout(self.settings.timeouts.probe_s):
                await line.opened()
        except (UpstreamFault, TimeoutError):
            return False
        finally:
            await line.close()
        return True

    async def retire(self) -> None:
        """Ends what only listens, waits for what is under way, and ends the sessions."""
        self._underway.retired = True
        for room in self._rooms:
            _channel(room).end_streams(self._underway.retirement())
        await self._underway.over()
        await self.close()

    async def close(self) -> None:
        for room in self._rooms:
            self._end_room(room)
        await self._ending.over()

    @asynccontextmanager
    async def _request(
        self, method: str, headers: Mapping[str, str], body: bytes, patience: Patience
    ) -> AsyncIterator[StdioReception]:
        session = headers.get(HEADER_SESSION)
        room = self._rooms.get(session) if session is not None else None
        message = jsonrpc.loads(body) if body else {}
        if session is not None and room is None:
            yield StdioReception(self.name, 404)
        elif method == "POST" and room is not None:
            async with self._post(room, message, body, _outward(headers), patience) as reception:
                yield reception
        elif method == "POST" and message.get("method") == "initialize":
            yield await self._initialize(message, body, _outward(headers), patience.endpoint)
        elif method == "GET" and room is not None:
            async with self._get(room) as reception:
                yield reception
        elif method == "DELETE" and room is not None:
            self._end_room(room)
            yield StdioReception(self.name, 200)
        else:
            yield StdioReception(self.name, 405)

    async def _initialize(self, message: Json, raw: bytes, headers: Mapping[str, str], endpoint: str) -> StdioReception:
        if not self._rooms.make_room(self.settings.max_streams - self._opening):
            why = f"upstream {self.name} has {len(self._rooms)} sessions with a stream each (max_streams); end one"
            raise UpstreamFault(why, http=503, executed=False)
        line = HttpSseLine(self._wire, headers, endpoint)
        room = Room(_PREFIX + self._ids.name(), Channel(line, is_shared=False))
        channel = _channel(room)
        channel.on_end = lambda: self._end_room(room)
        channel.attend()
        self._opening += 1
        answer: Json | None = None
        try:
            await line.opened()
            bounds = Bounds(self.settings.timeouts.first_byte_s, self.settings.timeouts.first_byte_s)
            async with self._sent(room, message, raw, headers, bounds) as reception:
                if reception.status == 404:
                    why = (
                        "is not there at the endpoint that its stream names (HTTP 404): does a proxy change its paths?"
                    )
                    raise UpstreamFault(f"upstream {self.name} {why}", executed=False)
                answer = await reception.response()
        finally:
            self._opening -= 1
            if answer is None or not isinstance(answer.get("result"), dict) or line.ended:
                self._close(line)
            else:
                self._rooms.add(room)
                self._rooms.used(room)
        mailbox = Mailbox()
        mailbox.put(answer)
        mailbox.end()
        return StdioReception(self.name, 200, mailbox, headers={HEADER_SESSION: room.id})

    @asynccontextmanager
    async def _post(
        self, room: Room, message: Json, raw: bytes, headers: Mapping[str, str], patience: Patience
    ) -> AsyncIterator[StdioReception]:
        line = _line(room)
        if "method" not in message or "id" not in message:
            status = await line.post(raw, headers)
            if status == 404:
                self._end_room(room)
            yield StdioReception(self.name, status)
            return
        silent_s = self.settings.timeouts.idle_s
        bounds = bounds_of(message, self.settings, patience)
        if bounds.first_s is None:  # a call: the stream may not be silent for longer than that of any other transport
            waited = patience.waited or (lambda: 0.0)
            bounds = Bounds(silent_s, silent_s, lambda: max(waited(), line.heard_s))
        async with self._sent(room, message, raw, headers, bounds) as reception:
            yield reception

    @asynccontextmanager
    async def _sent(
        self, room: Room, message: Json, raw: bytes, headers: Mapping[str, str], bounds: Bounds
    ) -> AsyncIterator[StdioReception]:
        """The block runs once the request is taken, or something has been said to it."""
        line, channel = _line(room), _channel(room)
        mailbox = channel.expect(message, room)
        posting = line.begin(raw, headers)
        saying = asyncio.create_task(mailbox.peek())
        try:
            await asyncio.wait({posting, saying}, return_when=asyncio.FIRST_COMPLETED)
            if not saying.done() and not posting.cancelled() and posting.result() == 404:
                self._end_room(room)
                yield StdioReception(self.name, 404)
            else:
                yield StdioReception(self.name, 200, mailbox, bounds=bounds)
        finally:
            saying.cancel()
            await asyncio.wait({saying})
            if not saying.cancelled():
                saying.exception()
            if not mailbox.answered:
                posting.cancel()
            channel.leave(mailbox)
            self._rooms.used(room)

    @asynccontextmanager
    async def _get(self, room: Room) -> AsyncIterator[StdioReception]:
        channel = _channel(room)
        mailbox = channel.read(room)
        try:
            yield StdioReception(self.name, 200, mailbox, kind="sse")
        finally:
            channel.stop_reading(room, mailbox)
            self._rooms.used(room)

    def _end_room(self, room: Room) -> None:
        if self._rooms.remove(room):
            self._close(_line(room))

    def _close(self, line: HttpSseLine) -> None:
        """In the background; `close` waits for it."""
        if not line.is_closing:
            line.is_closing = True
            self._ending.start(line.close(), f"ending a stream of {self.name}")


class EitherTransport:
    """Sessions of an upstream whose transport is to be found out: HTTP+SSE where `initialize` is refused with a 4xx and
    GET opens a stream that names an endpoint, Streamable HTTP where not (2025-03-26 basic/transports, Backwards
    Compatibility). What was found is forgotten where the upstream contradicts it."""

    has_headers = True

    def __init__(self, wire: Wire, ids: Ids) -> None:
        self.name = wire.name
        self.settings = wire.settings
        self.limits = wire.limits
        self.wire = wire
        self.http_sse = HttpSse(wire, ids)
        self.is_sse = False
        """Whether HTTP+SSE was found."""

    @property
    def endpoint_count(self) -> int:
        return self.wire.endpoint_count

    def next_endpoint(self, tried: Collection[str] = (), /) -> str:
        return self.wire.next_endpoint(tried)

    def known_endpoint(self, key: str, /) -> str:
        return self.wire.known_endpoint(key)

    def holder(self, session: str, /) -> str:
        return self.http_sse.holder(session) if HttpSse.named(session) else ""

    @asynccontextmanager
    async def request(
        self, method: str, headers: Mapping[str, str], body: bytes | None = None, patience: Patience = USUAL
    ) -> AsyncIterator[StdioReception | Reception]:
        session = headers.get(HEADER_SESSION)
        opens = session is None and body is not None and jsonrpc.loads(body).get("method") == "initialize"
        if not (self.http_sse.named(session) if session is not None else opens and self.is_sse):
            async with self.wire.request(method, headers, body, patience) as answer:
                if not (opens and _refused(answer.status) and await self.http_sse.is_spoken(headers, answer.endpoint)):
                    yield answer
                    return
            self.is_sse = True
        try:
            async with self.http_sse.request(method, headers, body, patience) as reception:
                yield reception
        except UpstreamFault as fault:
            self.is_sse = self.is_sse and not fault.contradiction
            raise

    async def retire(self) -> None:
        await self.http_sse.retire()
        await self.wire.retire()

    async def close(self) -> None:
        await self.http_sse.close()
        await self.wire.close()


def _refused(status: int) -> bool:
    return 400 <= status < 500 and status not in (401, 403, 408, 429)


def _outward(headers: Mapping[str, str]) -> Mapping[str, str]:
    """Without what this revision does not have: the session's name here, and the version."""
    ours = {HEADER_SESSION.lower(), HEADER_VERSION.lower()}
    return {name: value for name, value in headers.items() if name.lower() not in ours}


def _channel(room: Room) -> Channel:
    assert room.channel is not None
    return room.channel


def _line(room: Room) -> HttpSseLine:
    line = _channel(room).child
    assert isinstance(line, HttpSseLine)
    return line
