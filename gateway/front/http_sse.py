"""HTTP+SSE, the transport before Streamable HTTP: one event stream a client, and an address that it POSTs to.

Specification: 2024-11-05 basic/transports (HTTP with SSE). The stream, and the session on it, live at the replica that
the GET came to; a POST may come to any, which passes it on to that one. The stream's end ends the session and cancels
its calls. What is done with a message is `gateway/front/talk.py`'s business.
"""

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
from aiohttp import web

from gateway.background import Background
from gateway.drain import REFUSED
from gateway.front import reply
from gateway.front.hosting import route_of
from gateway.front.service import Relayed, Service
from gateway.front.talk import Talk, Via
from gateway.stores.mail import ReplicaGone
from policies import http_sse, jsonrpc, session, sse
from policies.admission import Acceptance, Head
from policies.errors import ClientFault, GatewayFault, Rejection, SessionGone
from policies.http_sse import PARAMETER, Ticket
from policies.mcp import INVALID_REQUEST
from policies.sealing import NONCE_BYTES

TAKE_S = 10.0
"""How long the replica that has a stream may take to take a message for it."""

_AHEAD = 16
"""Messages that wait for a client that reads slowly; the others stay in their exchanges, which are bounded."""

_SSE = Acceptance(json=False, sse=True)


class _Letter(msgspec.Struct, array_like=True):
    """A message that came to another replica than its stream."""

    route: str
    stream: str
    principal: str
    client: str | None
    sender: bytes
    raw: bytes


_letters = msgspec.msgpack.Decoder(_Letter)


@dataclass(slots=True)
class _Channel:
    principal: str
    talk: Talk
    out: "asyncio.Queue[bytes | None]"


class HttpSse:
    """The streams of this process. `current` gives the configuration in service."""

    def __init__(self, current: Callable[[], Service]) -> None:
        self._current = current
        self._open: dict[str, _Channel] = {}
        self._principals: Counter[str] = Counter()
        self._background = Background()
        current().state.mail.answer("http-sse", self._passed_on)

    def __len__(self) -> int:
        return len(self._open)

    async def stream(self, service: Service, request: web.BaseRequest, head: Head) -> web.StreamResponse:
        """GET: the stream, until its client goes, its session is over, or the gateway shuts down and what was asked is
        answered."""
        principal, bound = service.principal(head, request.headers), service.settings.streams.max_http_sse
        if service.drain.begun:
            return reply.rejected(REFUSED)
        if self._principals[principal] >= bound:
            why = f"{bound} streams of this client are open (streams.max_http_sse); close one"
            return reply.rejected(Rejection(INVALID_REQUEST, why, http=429))
        name, ttl_s = service.state.mail.new_id(), service.settings.sessions.ttl_s
        out: asyncio.Queue[bytes | None] = asyncio.Queue(_AHEAD)
        channel = self._open[name] = _Channel(principal, Talk(out.put, has_modern=False), out)
        self._principals[principal] += 1
        channel.talk.on_gone = lambda: self._background.start(_ends(channel))
        expiry = asyncio.get_running_loop().call_later(ttl_s, self._end, channel)
        draining = asyncio.create_task(self._drained(service, channel))
        ticket = Ticket(name, principal, int(time.time()) + ttl_s)
        key, nonce = session.route_key(head.route), secrets.token_bytes(NONCE_BYTES)
        assert head.route.http_sse is not None
        where = http_sse.address(service.ring, key, head.route.http_sse, ticket, nonce)
        try:
            return await _write(reply.Stream(request, service.settings.streams.keep_alive_s), where, out)
        finally:
            expiry.cancel()
            draining.cancel()
            del self._open[name]
            self._principals -= Counter([principal])
            # to its end, though the client, and with it this request, is gone
            self._background.start(channel.talk.close())

    async def post(
        self, service: Service, request: web.BaseRequest, head: Head, raw: bytes, message: jsonrpc.Message
    ) -> web.StreamResponse:
        """POST: 202 once the message is with the stream, on which it is answered; 404 where that is gone, or another's.
        Raises a `Fault` where it could not be passed on."""
        ident = message.id if isinstance(message, jsonrpc.Request) else None
        key, token = session.route_key(head.route), request.rel_url.query.get(PARAMETER)
        if token is None:  # what a client of Streamable HTTP tries first: a 4xx sends it to GET
            why = "a message goes to the address that the stream's endpoint event names; open it by GET"
            return reply.rejected(Rejection(INVALID_REQUEST, why, http=405, headers=(("Allow", "GET"),)), ident)
        ticket = http_sse.unseal(service.ring, key, token)
        principal = service.principal(head, request.headers)
        if ticket is None or ticket.principal != principal or ticket.expires_s <= time.time():
            return reply.rejected(session.NOT_FOUND, ident)
        sender = service.relayed(head.route, request)
        replica = service.state.mail.elsewhere(ticket.stream)
        try:
            if replica is None:
                self._take(ticket.stream, principal, message, raw, Via(service, head, sender))
            else:
                letter = _Letter(key, ticket.stream, principal, head.client, sender.pack(), raw)
                await service.state.mail.ask(replica, "http-sse", msgspec.msgpack.encode(letter), TAKE_S)
        except (SessionGone, ReplicaGone):
            return reply.rejected(session.NOT_FOUND, ident)
        return reply.accepted()

    async def close(self) -> None:
        """Waits until what was called off is."""
        await self._background.over()

    async def _passed_on(self, body: bytes) -> bytes:
        letter, service = _letters.decode(body), self._current()
        message = jsonrpc.parse(letter.raw, max_depth=service.settings.limits.max_depth)
        if isinstance(message, Rejection | list):
            raise GatewayFault("the replicas of the gateway have different limits", http=502)
        head = Head(route_of(service, letter.route), _SSE, None, letter.client, http_sse=True)
        via = Via(service, head, Relayed.unpack(letter.sender))
        self._take(letter.stream, letter.principal, message, letter.raw, via)
        return b""

    def _take(self, stream: str, principal: str, message: jsonrpc.Message, raw: bytes, via: Via) -> None:
        channel = self._open.get(stream)
        if channel is None or channel.principal != principal:
            raise SessionGone
        if via.service.drain.begun and isinstance(message, jsonrpc.Request):
            refused = ClientFault(REFUSED.message, code=REFUSED.code, http=REFUSED.http)
            refused.headers = REFUSED.headers
            raise refused
        channel.talk.on(message, raw, via)

    async def _drained(self, service: Service, channel: _Channel) -> None:
        await service.drain.beginning()
        await _ends(channel)

    def _end(self, channel: _Channel) -> None:
        try:
            channel.out.put_nowait(None)
        except asyncio.QueueFull:  # its client does not read, and loses what it has not read
            while not channel.out.empty():
                channel.out.get_nowait()
            channel.out.put_nowait(None)


async def _ends(channel: _Channel) -> None:
    """Ends a stream once what was asked on it is answered."""
    channel.talk.stop_listening()
    await channel.talk.idle()
    await channel.out.put(None)


async def _write(stream: reply.Stream, where: str, out: "asyncio.Queue[bytes | None]") -> web.StreamResponse:
    await stream.raw(sse.encode(where.encode(), event="endpoint"))
    while (raw := await stream.waiting(out.get())) is not None:
        await stream.raw(sse.encode(raw, event="message"))
    return await stream.end()
