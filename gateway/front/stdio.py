"""The gateway as an MCP server on standard input and output, for a host that can only launch commands.

Specification: 2026-07-28 basic/transports/stdio, basic/patterns/{cancellation,subscriptions}; 2025-11-25
basic/transports (stdio), basic/lifecycle. One channel carries everything, many requests at a time, and each is of the
era that it claims: `initialize` opens a legacy session, which is this process's; a request with an envelope is a modern
one. What is done with a message is decided where HTTP's are: in `gateway/front/{modern,legacy}.py`. An answer to a
batch of 2025-03-26 is one line an element.
"""

import asyncio
import contextlib
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from multidict import CIMultiDict, CIMultiDictProxy

from gateway.exchange import Exchange
from gateway.front import legacy, modern
from gateway.front.elsewhere import Followed
from gateway.front.rounds import Rounds
from gateway.front.service import Service
from gateway.stores.feeds import Feed
from policies import era, inline, jsonrpc
from policies.admission import Acceptance, Head, meta_of
from policies.delivery import Addressee, Message, deliver, error, farewell
from policies.errors import Fault, Rejection
from policies.exchange import Fail, FrontSession
from policies.mcp import CANCELLED, INTERNAL_ERROR, INVALID_REQUEST, LISTEN
from policies.settings_routes import Route

log = logging.getLogger(__name__)

END_S = 1.0
"""How long calls may go on once the input has ended: a script that pipes its requests in still gets its answers, and a
host that shuts down waits for about 2 s (both official SDKs)."""

MAX_CALLS = 256
"""Requests in flight: as many as a session has over HTTP."""

_LISTEN_AGAIN_S = (1.0, 2.0, 5.0, 10.0, 30.0)
_BATCHES = "2025-03-26"


@dataclass(frozen=True, slots=True)
class _Launcher:
    """The host that launched this process; it sends no headers."""

    headers: CIMultiDictProxy[str] = field(default_factory=lambda: CIMultiDictProxy(CIMultiDict()))


class StdioFront:
    """`write` sends one line, and waits until it is out."""

    def __init__(self, service: Service, route: Route, write: Callable[[bytes], Awaitable[None]]) -> None:
        self._service = service
        self._head = Head(route, Acceptance(json=True, sse=True), None)
        self._write = write
        self._host = _Launcher()
        self._owner: FrontSession | None = None
        self._opening: asyncio.Task[None] | None = None
        self._listening: asyncio.Task[None] | None = None
        self._calls: dict[tuple[type, Any], asyncio.Task[None]] = {}
        self._listens: set[asyncio.Task[None]] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, lines: AsyncIterator[bytes | None]) -> None:
        """Until the input ends; calls under way get `END_S` more, streams and the session end then."""
        async for line in lines:
            await self._on_line(line)
        calls = self._tasks - self._listens - {self._listening}
        if calls:
            await asyncio.wait(calls, timeout=END_S)

    async def close(self) -> None:
        """Cancels what is still under way, and ends the session at the server."""
        for task in tuple(self._tasks):
            task.cancel()
        while self._tasks:
            await asyncio.wait(self._tasks)
        if self._owner is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(END_S):
                    await legacy.end_everywhere(self._service, self._host, self._head, self._owner)

    # in

    async def _on_line(self, line: bytes | None) -> None:
        limits = self._service.settings.limits
        if line is None:
            why = f"the message is larger than {limits.max_body_bytes} bytes (limits.max_body_bytes)"
            return await self._write(error(Rejection(INVALID_REQUEST, why), None).raw)
        if not line.strip():
            return None
        message = jsonrpc.parse(line, max_depth=limits.max_depth)
        if isinstance(message, Rejection):
            return await self._write(error(message, jsonrpc.readable_id(line)).raw)
        if not isinstance(message, list):
            return await self._on_message(message, line)
        if self._owner is None or self._owner.version != _BATCHES or len(message) > limits.max_batch:
            why = f"only {_BATCHES} has batches, and here they may hold {limits.max_batch} messages"
            return await self._write(error(Rejection(INVALID_REQUEST, why), None).raw)
        for one in message:
            if isinstance(one, Rejection):
                await self._write(error(one, None).raw)
            else:
                await self._on_message(one, b"")
        return None

    async def _on_message(self, message: jsonrpc.Message, raw: bytes) -> None:
        match message:
            case jsonrpc.Request():
                await self._on_request(message, raw)
            case jsonrpc.Notification(method=method) if method == CANCELLED:
                self._cancel(message.params.get("requestId"))
            case _ if self._owner is not None:
                self._spawn(self._take(message, self._owner))
            case _:
                return  # 2026-07-28 has no other notifications of clients, and no responses

    async def _on_request(self, message: jsonrpc.Request, raw: bytes) -> None:
        key = (type(message.id), message.id)
        if len(self._calls) >= MAX_CALLS:
            why = Rejection(INVALID_REQUEST, f"{MAX_CALLS} requests are in flight; wait for one to end")
            return await self._write(error(why, message.id).raw)
        has_session = self._owner is not None or self._opening is not None
        if era.of_request(None, has_session, False, message.method, meta_of(message.params)) == "modern":
            task = self._spawn(self._answered(message, self._modern(message, raw)))
        elif message.method == "initialize":
            task = self._opening = self._spawn(self._answered(message, self._initialize(message)))
        else:
            task = self._spawn(self._answered(message, self._legacy(message, self._opening)))
        if message.method == LISTEN:
            self._listens.add(task)
            task.add_done_callback(self._listens.discard)
        self._calls[key] = task
        task.add_done_callback(lambda done: self._calls.pop(key, None) if self._calls.get(key) is done else None)
        return None

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

    async def _modern(self, message: jsonrpc.Request, raw: bytes) -> None:
        duplicate = jsonrpc.duplicate_member(raw)
        rejection = inline.judge(message)
        if duplicate is not None:
            rejection = Rejection(INVALID_REQUEST, f"member {duplicate!r} is given twice")
        if rejection is not None:
            return await self._write(error(rejection, message.id).raw)
        return await self._drive(await modern.start(self._service, self._host, self._head, message, headless=True))

    async def _initialize(self, message: jsonrpc.Request) -> None:
        if self._listening is not None:
            self._listening.cancel()
            self._listening = None
        if self._owner is not None:
            ended, self._owner = self._owner, None
            await legacy.end_everywhere(self._service, self._host, self._head, ended)
        try:
            opened, result = await legacy.open_session(self._service, self._host, self._head, message)
        except Fault:
            if self._opening is asyncio.current_task():
                self._opening = None  # there is no session, and none is to come
            raise
        self._owner = opened
        await self._write(jsonrpc.response(message.id, result))

    async def _legacy(self, message: jsonrpc.Request, opening: "asyncio.Task[None] | None") -> None:
        if message.method == "ping":  # allowed before a session is there
            return await self._write(jsonrpc.response(message.id, {}))
        if opening is not None:
            await asyncio.wait({opening})
        if self._owner is None:
            why = "no session: start with initialize, or describe the request in params._meta"
            return await self._write(error(Rejection(INVALID_REQUEST, why), message.id).raw)
        self._listen(self._owner)
        return await self._drive(await legacy.start(self._service, self._host, self._head, self._owner, message))

    async def _take(self, message: jsonrpc.Notification | jsonrpc.Response, owner: FrontSession) -> None:
        """A notification in the session, or the answer to a question put to this host."""
        try:
            await legacy.take(self._service, self._host, self._head, owner, message)
        except Fault as fault:
            log.debug("a message of the host's was not taken: %s", fault.message)
        if isinstance(message, jsonrpc.Notification) and owner is self._owner:
            self._listen(owner)

    # out

    async def _drive(self, started: Message | Rounds | Followed | Feed | tuple[Exchange, Addressee]) -> None:
        """Writes what an exchange says until it is over. Cancelled, so is the exchange."""
        if isinstance(started, Message):
            return await self._write(started.raw)
        if isinstance(started, Rounds):
            return await self._drive_rounds(started)
        assert isinstance(started, tuple)  # this process has no replicas
        exchange, to = started
        cursor = 0
        try:
            while items := await exchange.read(cursor):
                for cursor, event in items:  # noqa: B007 - where to read on
                    await self._deliver(deliver(event, to), to)
        finally:
            if not exchange.ended:
                exchange.cancel()
            self._service.exchanges.forget(exchange)
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

    # the stream of a session

    def _listen(self, owner: FrontSession) -> None:
        """What over HTTP is the GET stream: read from the first message after `initialize` on."""
        if self._listening is None:
            self._listening = self._spawn(self._stream(owner))

    async def _stream(self, owner: FrontSession) -> None:
        tries = 0
        while True:
            exchange, to = await legacy.standalone(self._service, self._host, self._head, owner)
            await self._drive((exchange, to))
            last = (await exchange.read())[-1][1]
            if isinstance(last, Fail) and last.http in (404, 405):
                return  # the server has no such stream
            await asyncio.sleep(_LISTEN_AGAIN_S[min(tries, len(_LISTEN_AGAIN_S) - 1)])
            tries += 1

    def _spawn(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
