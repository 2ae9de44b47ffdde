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
from gateway.front.service import CALLER, Relayed, Service
from gateway.front.talk import MAX_TAKEN, Talk, Via
from gateway.stores.mail import ReplicaGone
from policies import http_sse, jsonrpc, session, sse
from policies.admission import Acceptance, Head, admit_head
from policies.errors import ClientFault, GatewayFault, Rejection, SessionGone
from policies.forwarded import prefix_of
from policies.http_sse import PARAMETER, Ticket
from policies.identity import ANONYMOUS
from policies.mcp import CANCELLED, INVALID_REQUEST
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


@dataclass(eq=False, slots=True)
class _Channel:
    """`request`: the GET that is answered. `address`: where its client POSTs to. `ending`: waits until the stream may
    end, once that has been decided."""

    request: web.BaseRequest
    address: str
    principal: str
    talk: Talk
    out: "asyncio.Queue[bytes | None]"
    ending: asyncio.Task[None] | None = None

    def end_soon(self) -> None:
        """Ends the stream once what was asked on it is answered."""
        self.ending = self.ending or asyncio.create_task(self._ends())

    async def _ends(self) -> None:
        self.talk.stop_listening()
        await self.talk.idle()
        await self.out.put(None)

    def end(self) -> None:
        """Ends it at once: a client that does not read loses what it has not read."""
        while self.out.full():
            self.out.get_nowait()
        self.out.put_nowait(None)


class HttpSse:
    """The streams of this process. `current` gives the configuration in service."""

    def __init__(self, current: Callable[[], Service]) -> None:
        self._current = current
        self._open: dict[str, _Channel] = {}
        self._counts: Counter[str] = Counter()
        self._background = Background()
        current().state.mail.answer("http-sse", self._passed_on)

    def __len__(self) -> int:
        return len(self._open)

    async def stream(self, service: Service, request: web.BaseRequest, head: Head) -> web.StreamResponse:
        """GET: the stream, until its client goes, its session is over, or the gateway shuts down and what was asked is
        answered."""
        principal, prefix = service.principal(head, request.headers), prefix_of(request[CALLER])
        if isinstance(prefix, Rejection):
            return reply.rejected(prefix)
        if service.drain.begun:
            return reply.rejected(REFUSED)
        # callers that nothing tells apart may be many users: each address is one, as where connections are counted
        who, whose = (principal, "client") if principal != ANONYMOUS else (request[CALLER].chain[0], "address")
        bound = service.settings.streams.max_http_sse
        if self._counts[who] >= bound:
            why = f"{bound} streams of this {whose} are open (streams.max_http_sse); close one"
            return reply.rejected(Rejection(INVALID_REQUEST, why, http=429))
        name, key, ttl_s = service.state.mail.new_id(), session.route_key(head.route), service.settings.sessions.ttl_s
        ticket, nonce = Ticket(name, principal, int(time.time()) + ttl_s), secrets.token_bytes(NONCE_BYTES)
        where = http_sse.address(service.ring, key, f"{prefix}{head.route.http_sse}", ticket, nonce)
        out: asyncio.Queue[bytes | None] = asyncio.Queue(_AHEAD)
        channel = self._open[name] = _Channel(request, where, principal, Talk(out.put, has_modern=False), out)
        self._counts[who] += 1
        channel.talk.on_gone = channel.end_soon
        expiry = asyncio.get_running_loop().call_later(ttl_s, channel.end)
        draining = asyncio.create_task(_drained(service, channel))
        try:
            return await _write(reply.Stream(request, service.settings.streams.keep_alive_s), where, out)
        finally:
            expiry.cancel()
            channel.talk.on_gone = lambda: None
            for task in (draining, channel.ending):
                if task is not None:
                    task.cancel()
            del self._open[name]
            self._counts[who] -= 1
            if not self._counts[who]:
                del self._counts[who]
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

    def renew(self, service: Service) -> None:
        """Another configuration is in service. A stream that it would not open, or to another caller, ends: what its
        client POSTs is refused from now on."""
        for channel in self._open.values():
            head = _still_served(service, channel)
            if head is None:
                channel.end_soon()
            else:
                channel.talk.renew(service, head.route)

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
        is_cancel = isinstance(message, jsonrpc.Notification) and message.method == CANCELLED
        if channel.talk.is_full and not is_cancel:
            raise ClientFault(f"{MAX_TAKEN} messages of this stream are being dealt with; wait for one", http=429)
        channel.talk.on(message, raw, via)


async def _drained(service: Service, channel: _Channel) -> None:
    await service.drain.beginning()
    channel.end_soon()


def _still_served(service: Service, channel: _Channel) -> Head | None:
    """The head of the GET, where this configuration would serve it alike and knows the address that it was told."""
    request = channel.request
    path, caller = request.rel_url.raw_path, request[CALLER]
    head = admit_head(request.method, path, request.headers, caller, service.settings.routes, service.doorman)
    if isinstance(head, Head):
        head = service.identify(head, request.headers)
    if isinstance(head, Rejection) or not head.http_sse:
        return None
    ticket = http_sse.unseal(service.ring, session.route_key(head.route), channel.address.rpartition("=")[2])
    principal = service.principal(head, request.headers)
    return head if ticket is not None and ticket.principal == principal else None


async def _write(stream: reply.Stream, where: str, out: "asyncio.Queue[bytes | None]") -> web.StreamResponse:
    await stream.raw(sse.encode(where.encode(), event="endpoint"))
    while (raw := await stream.waiting(out.get())) is not None:
        await stream.raw(sse.encode(raw, event="message"))
    return await stream.end()
