"""Many messages of one client over one long-lived channel: a host's pipes, or a stream and an address to POST to.

Specification: 2026-07-28 basic/transports/stdio, basic/patterns/{cancellation,subscriptions}; 2025-11-25
basic/transports (stdio), basic/lifecycle; 2024-11-05 basic/transports (HTTP with SSE). Each request is of the era that
it claims: `initialize` opens a legacy session, which is the channel's; a request with an envelope is a modern one. What
is done with a message is decided where those of Streamable HTTP are: in `gateway/front/{modern,legacy}.py`.
"""

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any

from gateway.background import Background
from gateway.exchange import Exchange
from gateway.front import legacy, lifecycle, modern
from gateway.front.drive import refused
from gateway.front.elsewhere import Followed, Written
from gateway.front.gathering import Gathered
from gateway.front.rounds import Rounds
from gateway.front.service import Caller, Service
from policies import era, inline, jsonrpc
from policies.admission import Head, meta_of
from policies.delivery import Addressee, Message, error, farewell
from policies.errors import Fault, Rejection
from policies.exchange import Fail, FrontSession
from policies.mcp import CANCELLED, INTERNAL_ERROR, INVALID_REQUEST, LISTEN
from policies.settings_routes import Route

log = logging.getLogger(__name__)

FAREWELL_S = 1.0
"""How long the end of a session may take at its server: a host that shuts down waits for about 2 s."""

MAX_CALLS = 256
"""Requests in flight: as many as a session has over Streamable HTTP."""

MAX_TAKEN = 2 * MAX_CALLS
"""Messages of any kind that are being dealt with, the refusals of further requests among them."""

_LISTEN_AGAIN_S = (1.0, 2.0, 5.0, 10.0, 30.0)


@dataclass(frozen=True, slots=True)
class Via:
    """How a message came: the configuration then in service, its route, and who sent it."""

    service: Service
    head: Head
    caller: Caller


class Talk:
    """`write` sends one message, and waits until it is out. `has_modern`: whether 2026-07-28 is spoken here at all."""

    def __init__(self, write: Callable[[bytes], Awaitable[None]], *, has_modern: bool) -> None:
        self._write = write
        self._has_modern = has_modern
        self._via: Via | None = None
        self._opening: asyncio.Task[None] | None = None
        self._listening: asyncio.Task[None] | None = None
        self._may_listen = True
        self._calls: dict[tuple[type, Any], asyncio.Task[None]] = {}
        self._listens: set[asyncio.Task[None]] = set()
        self._background = Background()
        self.owner: FrontSession | None = None
        """The session that was opened here."""
        self.on_gone: Callable[[], object] = lambda: None
        """Told when a server has lost that session."""

    async def idle(self) -> None:
        """Waits until no call is under way; what only listens is none."""
        while calls := self._background.running - self._listens - {self._listening}:
            await asyncio.wait(calls)

    @property
    def is_full(self) -> bool:
        """Whether so many messages are being dealt with that no further one may be taken, but for a cancel."""
        return len(self._background.running) >= MAX_TAKEN

    def renew(self, service: Service, route: Route) -> None:
        """Another configuration is in service: what no request opened goes on with that."""
        if self._via is not None:
            self._via = replace(self._via, service=service, head=replace(self._via.head, route=route))

    def stop_listening(self) -> None:
        """Ends what no request opened, for good."""
        self._may_listen = False
        if self._listening is not None:
            self._listening.cancel()

    async def close(self) -> None:
        """Cancels what is still under way, and ends the session at the server."""
        await self._background.close()
        if self.owner is not None and self._via is not None:
            with contextlib.suppress(TimeoutError, Fault):
                async with asyncio.timeout(FAREWELL_S):
                    await lifecycle.end_everywhere(self._via.service, self._via.caller, self._via.head, self.owner)

    # in

    def on(self, message: jsonrpc.Message, raw: bytes, via: Via) -> None:
        """Takes one message; whatever is said to it is written in its own time."""
        self._via = via
        match message:
            case jsonrpc.Request():
                self._on_request(message, raw, via)
            case jsonrpc.Notification(method=method) if method == CANCELLED:
                self._cancel(message.params.get("requestId"))
            case _ if self.owner is not None:
                self._background.start(self._take(message, self.owner, via))
            case _:
                return  # 2026-07-28 has no other notifications of clients, and no responses

    def _on_request(self, message: jsonrpc.Request, raw: bytes, via: Via) -> None:
        key = (type(message.id), message.id)
        if len(self._calls) >= MAX_CALLS:
            why = Rejection(INVALID_REQUEST, f"{MAX_CALLS} requests are in flight; wait for one to end")
            self._background.start(self._say(error(why, message.id).raw))
            return
        has_session = self.owner is not None or self._opening is not None
        claimed = era.of_request(None, has_session, False, message.method, meta_of(message.params))
        if claimed == "modern" and self._has_modern:
            task = self._background.start(self._answered(message, self._modern(message, raw, via)))
        elif message.method == "initialize":
            task = self._opening = self._background.start(
                self._answered(message, self._initialize(message, self._opening, via))
            )
        else:
            task = self._background.start(self._answered(message, self._legacy(message, self._opening, via)))
        if message.method == LISTEN:
            self._listens.add(task)
            task.add_done_callback(self._listens.discard)
        self._calls[key] = task
        task.add_done_callback(lambda done: self._calls.pop(key, None) if self._calls.get(key) is done else None)

    def _cancel(self, request_id: object) -> None:
        task = self._calls.get((type(request_id), request_id))
        if task is not None and task is not self._opening:  # basic/lifecycle: `initialize` can't be cancelled
            task.cancel()

    # requests

    async def _answered(self, message: jsonrpc.Request, work: Coroutine[Any, Any, None]) -> None:
        """Whatever goes wrong, the request is answered."""
        try:
            await work
        except Fault as fault:
            await self._write(error(fault.rejection(), message.id).raw)
        except Exception:  # a task root
            number = secrets.token_hex(4)
            log.exception("request failed, id %s", number)
            await self._write(error(Rejection(INTERNAL_ERROR, f"internal error {number}"), message.id).raw)

    async def _modern(self, message: jsonrpc.Request, raw: bytes, via: Via) -> None:
        duplicate = jsonrpc.duplicate_member(raw)
        rejection = inline.judge(message)
        if duplicate is not None:
            rejection = Rejection(INVALID_REQUEST, f"member {duplicate!r} is given twice")
        if rejection is not None:
            return await self._write(error(rejection, message.id).raw)
        return await self._drive(await modern.start(via.service, via.caller, via.head, message, headless=True), via)

    async def _initialize(self, message: jsonrpc.Request, before: "asyncio.Task[None] | None", via: Via) -> None:
        if before is not None:
            await asyncio.wait({before})  # the session that it opens is to be ended
        if self._listening is not None:
            self._listening.cancel()
            self._listening = None
        if self.owner is not None:
            ended, self.owner = self.owner, None
            await lifecycle.end_everywhere(via.service, via.caller, via.head, ended)
        try:
            opened, result = await lifecycle.open_session(via.service, via.caller, via.head, message)
        except Fault:
            if self._opening is asyncio.current_task():
                self._opening = None  # there is no session, and none is to come
            raise
        self.owner = opened
        await self._write(jsonrpc.response(message.id, result))

    async def _legacy(self, message: jsonrpc.Request, opening: "asyncio.Task[None] | None", via: Via) -> None:
        if message.method == "ping":  # allowed before a session is there
            return await self._write(jsonrpc.response(message.id, {}))
        if opening is not None:
            await asyncio.wait({opening})
        if self.owner is None:
            why = "no session: start with initialize"
            why += ", or describe the request in params._meta" if self._has_modern else ""
            return await self._write(error(Rejection(INVALID_REQUEST, why), message.id).raw)
        self._listen(self.owner, via)
        return await self._drive(await legacy.start(via.service, via.caller, via.head, self.owner, message), via)

    async def _take(self, message: jsonrpc.Notification | jsonrpc.Response, owner: FrontSession, via: Via) -> None:
        """A notification in the session, or the answer to a question put to this client."""
        try:
            await legacy.take(via.service, via.caller, via.head, owner, message)
        except Fault as fault:
            log.debug("a message of the client's was not taken: %s", fault.message)
        if isinstance(message, jsonrpc.Notification) and owner is self.owner:
            self._listen(owner, via)

    # out

    async def _drive(
        self, started: Message | Rounds | Followed | Gathered | Written | tuple[Exchange, Addressee], via: Via
    ) -> None:
        """Writes what an exchange says until it is over. Cancelled, so is the exchange."""
        if isinstance(started, Message):
            return await self._write(started.raw)
        if isinstance(started, Rounds):
            return await self._drive_rounds(started)
        assert isinstance(started, tuple)  # there is one upstream, and whatever is open for it is in this process
        exchange, to = started
        cursor = 0
        try:
            while items := await exchange.read(cursor):
                for cursor, event in items:  # noqa: B007 - where to read on
                    if not refused(via.service, exchange, event):
                        await self._deliver(via.service.deliver(event, to, exchange.upstream), to)
        finally:
            if not exchange.ended:
                exchange.cancel()
            via.service.exchanges.forget(exchange)
        if isinstance(exchange.last, Fail) and exchange.last.http == legacy.GONE:
            self.on_gone()
        return None

    async def _drive_rounds(self, rounds: Rounds) -> None:
        try:
            while not rounds.parked and (messages := await rounds.step(lambda source: source())) is not None:
                for message in messages:
                    await self._deliver(message, rounds.to)
        finally:
            rounds.leave()

    async def _deliver(self, message: Message | None, to: Addressee) -> None:
        if message is None or (message.last and to.id is None):  # a stream that no request opened has no end
            return
        await self._write(message.raw)
        if to.id is not None and message.last and message.rejection is None and to.method == LISTEN:
            # the result first: a client reads a cancel that comes before it as a lost stream
            await self._write(farewell(to.id)[1])

    async def _say(self, raw: bytes) -> None:
        await self._write(raw)

    # the stream of a session

    def _listen(self, owner: FrontSession, via: Via) -> None:
        """What over Streamable HTTP is the GET stream: read from the first message after `initialize` on."""
        if self._listening is None and self._may_listen:
            self._listening = self._background.start(self._stream(owner, via))

    async def _stream(self, owner: FrontSession, via: Via) -> None:
        tries = 0
        while True:
            via = self._via or via
            exchange, to = await legacy.standalone(via.service, via.caller, via.head, owner)
            await self._drive((exchange, to), via)
            last = (await exchange.read())[-1][1]
            if isinstance(last, Fail) and last.http in (404, 405):
                return  # the server has no such stream
            await asyncio.sleep(_LISTEN_AGAIN_S[min(tries, len(_LISTEN_AGAIN_S) - 1)])
            tries += 1
