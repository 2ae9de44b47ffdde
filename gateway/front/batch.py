"""The answer to a batch: every element's messages on one stream, or the final ones as one array.

Specification: 2025-03-26 basic/transports. The elements run side by side; one that is cancelled gets no answer.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from aiohttp import web

from gateway.exchange import Exchange
from gateway.front import reply
from gateway.front.drive import refused
from gateway.front.elsewhere import unpack
from gateway.front.service import Service
from gateway.stores.feeds import Feed
from policies.admission import Acceptance
from policies.delivery import Addressee, Message, error
from policies.errors import Fault
from policies.exchange import RequestId

_AHEAD = 16
"""Messages that wait for a client that reads slowly; the others stay in their exchanges, which are bounded."""


@dataclass(frozen=True, slots=True)
class Far:
    """A request that another replica answers."""

    id: RequestId
    feed: Feed


Started = Message | tuple[Exchange, Addressee] | Far
"""What answers a request: a message that is at hand, an exchange, or what comes from another replica."""


@dataclass(frozen=True, slots=True)
class Later:
    """A request that may have to wait before anything answers it: it keeps no other one of its batch waiting."""

    start: Callable[[], Awaitable[Started]]


Element = Started | Later
_Out = asyncio.Queue[Message | None]


async def drive_batch(
    service: Service, request: web.BaseRequest, elements: Sequence[Element], accept: Acceptance
) -> web.StreamResponse:
    """202 where nothing is to be answered. Elements that are at hand, all of them, are answered at once."""
    if not elements:
        return reply.accepted()
    if accept.json and all(isinstance(one, Message) for one in elements):
        return reply.json(_array([one.raw for one in elements if isinstance(one, Message)]))
    out: _Out = asyncio.Queue(_AHEAD if accept.sse else 0)
    readers = [asyncio.create_task(_read(service, one, out, accept.sse)) for one in elements]
    ending = asyncio.create_task(_end(readers, out))
    try:
        if accept.sse:
            answer = await _stream(service, request, out)
        else:
            await ending
            final = [message.raw for message in _drained(out) if message.last]
            answer = reply.json(_array(final)) if final else reply.accepted()
        for reader in readers:
            reader.result()  # nobody foresaw what it raises
        return answer
    finally:
        ending.cancel()
        for reader in readers:
            reader.cancel()


async def _end(readers: "Sequence[asyncio.Task[None]]", out: _Out) -> None:
    """Puts None into `out` when all have put what they read there."""
    await asyncio.wait(readers)
    await out.put(None)


async def _read(service: Service, one: Element, out: _Out, can_ask: bool) -> None:
    """Puts the element's messages into `out`."""
    if isinstance(one, Later):
        one = await one.start()
    match one:
        case Message():
            await out.put(one)
        case Far():
            await _follow(one.feed, one.id, out, can_ask)
        case (exchange, to):
            service.exchanges.watch(exchange)
            try:
                await _run(service, exchange, to, out, can_ask)
            finally:
                service.exchanges.unwatch(exchange)


async def _run(service: Service, exchange: Exchange, to: Addressee, out: _Out, can_ask: bool) -> None:
    cursor = 0
    while items := await exchange.read(cursor):
        cursor = items[-1][0]
        for _, event in items:
            if refused(service, exchange, event, can_ask=can_ask):
                continue
            message = service.deliver(event, to, exchange.upstream)
            if message is not None and (message.last or can_ask):  # as JSON, only the answers are sent
                await out.put(message)


async def _follow(feed: Feed, ident: RequestId, out: _Out, can_ask: bool) -> None:
    try:
        while items := await feed.read():
            for message, _ in map(unpack, items):
                if message.last or can_ask:
                    await out.put(message)
    except Fault as fault:
        await out.put(error(fault.rejection(), ident))
    finally:
        feed.leave()


async def _stream(service: Service, request: web.BaseRequest, out: _Out) -> web.StreamResponse:
    stream = reply.Stream(request, service.settings.streams.keep_alive_s)
    await stream.open()
    while (message := await stream.waiting(out.get())) is not None:
        await stream.message(message)
    return await stream.end()


def _drained(out: _Out) -> list[Message]:
    messages = []
    while not out.empty():
        message = out.get_nowait()
        if message is not None:
            messages.append(message)
    return messages


def _array(messages: Sequence[bytes]) -> bytes:
    return b"[" + b",".join(messages) + b"]"
