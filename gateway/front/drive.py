"""Writes an exchange to a client: JSON where the last event is the first, an event stream where something precedes it.

Specification: 2026-07-28 and 2025-11-25 basic/transports. Losing the client cancels a modern call (the closed stream is
the cancel); a legacy one goes on, and its stream can be resumed.
"""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from aiohttp import web

from gateway.drain import NOT_ASKED, Draining
from gateway.exchange import Exchange
from gateway.front import operation, reply
from gateway.front.elsewhere import Followed, Source, Written, unpack
from gateway.front.gathering import Gathered
from gateway.front.rounds import Items, Rounds
from gateway.front.service import Service
from policies import sse
from policies.admission import Acceptance
from policies.delivery import Addressee, Message, farewell
from policies.exchange import Ask, Cancelled, Event, Fail, Opened, Reply, is_last
from policies.mcp import INTERNAL_ERROR, LISTEN, METHOD_NOT_FOUND, at_least
from policies.metrics import CANCELLED_CALL
from policies.resumption import event_id

T = TypeVar("T")

FIRST_S = 0.05
"""How long a legacy call may take before its stream is opened: most answers come sooner and are plain JSON, and an
error's status does not matter in a session."""

OPEN_S = 5.0
"""How long a standalone stream waits for the upstream to open its side. After that the client gets its stream all the
same: what comes later is delivered."""

RETRY_MS = 1000
"""What a legacy client is told to wait before it resumes a stream."""


async def drive_modern(
    request: web.BaseRequest, rounds: Rounds | Followed | Gathered, accept: Acceptance
) -> web.StreamResponse:
    """Until the last event, until the client is asked for something, or until it goes, which cancels the exchange."""
    service, to = rounds.service, rounds.to
    keep_alive_s = service.settings.streams.keep_alive_s
    stream = reply.Stream(request, keep_alive_s)

    async def read(source: Source[T]) -> list[T]:
        return await _until_drained(service, to, _next(source, stream, keep_alive_s, accept))

    try:
        while not rounds.parked and (messages := await rounds.step(read)) is not None:
            for message in messages:
                if message.last and stream.response is None and accept.json:
                    return reply.final(message, in_session=False)
                if accept.sse:
                    await stream.message(message)
        return await stream.end()
    except Draining:
        assert to.id is not None
        for last in farewell(to.id):
            await stream.event(last)
        return await stream.end()
    finally:
        rounds.leave()
        if isinstance(rounds, Rounds):
            operation.of(request).upstream_s = rounds.exchange.upstream_s


async def drive_legacy(
    service: Service, request: web.BaseRequest, exchange: Exchange, to: Addressee, accept: Acceptance
) -> web.StreamResponse:
    """The answer to a legacy client's POST. A client that goes leaves the call running."""
    stream = _stream(service, request, prime(exchange, to, 0))
    service.exchanges.watch(exchange)
    try:
        if not accept.sse:
            answer = await _collect(service, exchange, to)
        else:
            first = await _within(FIRST_S, exchange) if accept.json else []
            if len(first) != 1 or not is_last(first[0][1]):
                return await _write(service, exchange, to, stream, 0)
            answer = _final(service, exchange, first[0][1], to)
        service.exchanges.forget(exchange)
        return answer
    finally:
        service.exchanges.unwatch(exchange)
        operation.of(request).upstream_s = exchange.upstream_s
        if isinstance(exchange.last, Cancelled):
            operation.of(request).error = CANCELLED_CALL


async def drive_standalone(
    service: Service, request: web.BaseRequest, exchange: Exchange, to: Addressee
) -> web.StreamResponse:
    """A legacy client's GET stream: a status of its own where the upstream refuses one."""
    stream = _stream(service, request, prime(exchange, to, 0))
    service.exchanges.watch(exchange)
    try:
        first = await _within(OPEN_S, exchange)
        opened = first[0][1] if first else Opened()
        if isinstance(opened, Fail):
            message = service.deliver(opened, to, exchange.upstream)
            assert message is not None
            return reply.refused_stream(message)
        return await _write(service, exchange, to, stream, 0)
    finally:
        service.exchanges.unwatch(exchange, abandon=True)


async def drive_feed(
    service: Service, request: web.BaseRequest, written: Written, accept: Acceptance | None = None
) -> web.StreamResponse:
    """What another replica writes for this client: a stream, or the answer to a POST (`accept`), which is plain JSON
    where it comes first or nothing else can be read."""
    feed, stream, answered = written.feed, _stream(service, request, written.prime), False
    try:
        if accept is None:
            await stream.open()
        while items := await _next(feed.read, stream, FIRST_S, accept or Acceptance(json=False, sse=True)):
            for message, ident in map(unpack, items):
                answered = answered or message.last
                if message.last and stream.response is None and accept is not None and accept.json:
                    return reply.final(message, in_session=True)
                if accept is None or accept.sse:
                    await stream.message(message, ident)
        if not answered:
            operation.of(request).error = CANCELLED_CALL
        return await stream.end() if accept is None or accept.sse else reply.accepted()
    finally:
        feed.leave()


async def resume(
    service: Service, request: web.BaseRequest, exchange: Exchange, to: Addressee, cursor: int
) -> web.StreamResponse:
    """The rest of the stream that `Last-Event-ID` names, and never another's."""
    stream = _stream(service, request, prime(exchange, to, cursor))
    service.exchanges.watch(exchange)
    try:
        return await _write(service, exchange, to, stream, cursor)
    finally:
        service.exchanges.unwatch(exchange, abandon=to.id is None)


def refused(service: Service, exchange: Exchange, event: Event, *, can_ask: bool = True) -> bool:
    """Whether `event` is an ask that cannot be put to this client, or not any more; it is answered then, so that the
    upstream does not wait for ever."""
    if not isinstance(event, Ask) or (can_ask and not service.drain.begun):
        return False
    code, why = (INTERNAL_ERROR, NOT_ASKED) if can_ask else (METHOD_NOT_FOUND, "this client cannot be asked here")
    exchange.reply(Reply(event.key, error={"code": code, "message": why}))
    return True


def prime(exchange: Exchange, to: Addressee, after: int) -> str:
    """The id of the event that a stream begins with, so that it can be resumed from its start; empty where it goes on
    after a cursor, or its client knows none. Priming events and `retry` are new in 2025-11-25; earlier TypeScript
    clients cannot read an empty one."""
    is_known = after == 0 and at_least(to.dialect.version, "2025-11-25")
    return event_id(exchange.id, 0, to.id) if is_known else ""


def said(service: Service, exchange: Exchange, to: Addressee, items: Items) -> list[tuple[Message, str]]:
    """What a client is sent of these events, each message with the id at which its stream can be resumed."""
    found = []
    for cursor, event in items:
        message = None if refused(service, exchange, event) else service.deliver(event, to, exchange.upstream)
        # a stream that no request opened just ends: it has no responses (transports, Listening for Messages)
        if message is not None and not (message.last and to.id is None):
            found.append((message, event_id(exchange.id, cursor, to.id)))
    return found


async def _write(
    service: Service, exchange: Exchange, to: Addressee, stream: reply.Stream, after: int
) -> web.StreamResponse:
    await stream.open()
    cursor = after
    while items := await stream.waiting(exchange.read(cursor)):
        cursor = items[-1][0]
        for message, ident in said(service, exchange, to, items):
            await stream.message(message, ident)
    return await stream.end()


async def _collect(service: Service, exchange: Exchange, to: Addressee) -> web.StreamResponse:
    """For a client that reads only JSON: the final response; what came before it is not sent, and asks are refused."""
    cursor = 0
    while items := await exchange.read(cursor):
        cursor = items[-1][0]
        for _, event in items:
            if not refused(service, exchange, event, can_ask=False) and is_last(event):
                return _final(service, exchange, event, to)
    return reply.accepted()


def _final(service: Service, exchange: Exchange, event: Event, to: Addressee) -> web.Response:
    """The last event as a JSON answer; a cancelled call has none, and its POST is merely accepted."""
    message = service.deliver(event, to, exchange.upstream)
    return reply.accepted() if message is None else reply.final(message, in_session=True)


async def _within(seconds: float, exchange: Exchange) -> Items:
    """The first events, empty where none comes in time."""
    try:
        async with asyncio.timeout(seconds):
            return await exchange.read(0)
    except TimeoutError:
        return []


async def _until_drained(service: Service, to: Addressee, work: Awaitable[T]) -> T:
    """A call goes on while the gateway shuts down; a listen stream, which has no end of its own, does not."""
    return await (service.drain.unless_begun(work) if to.method == LISTEN else work)


async def _next(source: Source[T], stream: reply.Stream, open_after_s: float, accept: Acceptance) -> list[T]:
    """The next events. A stream that may be opened is, after `open_after_s` without one."""
    if stream.response is None and accept.sse:
        try:
            async with asyncio.timeout(open_after_s):
                return await source()
        except TimeoutError:
            await stream.open()
    return await stream.waiting(source())


def _stream(service: Service, request: web.BaseRequest, primed: str) -> reply.Stream:
    """The stream to a legacy client, which begins with the priming event of that id, if there is one."""
    first = sse.encode(b"", id=primed, retry_ms=RETRY_MS) if primed else b""
    return reply.Stream(request, service.settings.streams.keep_alive_s, first)
