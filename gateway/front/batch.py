"""The answer to a batch: every element's messages on one stream, or the final ones as one array.

Specification: 2025-03-26 basic/transports. The elements run side by side; one that is cancelled gets no answer.
"""

import asyncio
from collections.abc import Sequence
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


async def drive_batch(
    service: Service, request: web.BaseRequest, started: Sequence[Started], accept: Acceptance
) -> web.StreamResponse:
    """202 where nothing is to be answered. Elements that are not under way yet answer at once."""
    if not started:
        return reply.accepted()
    out: asyncio.Queue[Message | None] = asyncio.Queue(_AHEAD if accept.sse else 0)
    readers = [asyncio.create_task(_read(service, one, out, accept.sse)) for one in started]
    here = [one[0] for one in started if isinstance(one, tuple)]
    for exchange in here:
        service.exchanges.watch(exchange)
    try:
        if all(isinstance(one, Message) for one in started) and accept.json:
            return reply.json(_array([one.raw for one in started if isinstance(one, Message)]))
        if accept.sse:
            return await _stream(service, request, out, len(readers))
        await asyncio.wait(readers)
        final = [message.raw for message in _drained(out) if message.last]
        return reply.json(_array(final)) if final else reply.accepted()
    finally:
        for reader in readers:
            reader.cancel()
        for exchange in here:
            service.exchanges.unwatch(exchange)


async def _read(service: Service, one: Started, out: "asyncio.Queue[Message | None]", can_ask: bool) -> None:
    """Puts the element's messages into `out`, and None at its end."""
    match one:
        case Message():
            await out.put(one)
        case Far():
            await _follow(one.feed, one.id, out, can_ask)
        case (exchange, to):
            await _run(service, exchange, to, out, can_ask)
    await out.put(None)


async def _run(
    service: Service, exchange: Exchange, to: Addressee, out: "asyncio.Queue[Message | None]", can_ask: bool
) -> None:
    cursor = 0
    while items := await exchange.read(cursor):
        cursor = items[-1][0]
        for _, event in items:
            if refused(service, exchange, event, can_ask=can_ask):
                continue
            message = service.deliver(event, to, exchange.upstream)
            if message is not None and (message.last or can_ask):  # as JSON, only the answers are sent
                await out.put(message)


async def _follow(feed: Feed, ident: RequestId, out: "asyncio.Queue[Message | None]", can_ask: bool) -> None:
    try:
        while items := await feed.read():
            for message, _ in map(unpack, items):
                if message.last or can_ask:
                    await out.put(message)
    except Fault as fault:
        await out.put(error(fault.rejection(), ident))
    finally:
        feed.leave()


async def _stream(
    service: Service, request: web.BaseRequest, out: "asyncio.Queue[Message | None]", running: int
) -> web.StreamResponse:
    stream = reply.Stream(request, service.settings.streams.keep_alive_s)
    await stream.open()
    while running:
        message = await stream.waiting(out.get())
        if message is None:
            running -= 1
        else:
            await stream.message(message)
    return await stream.end()


def _drained(out: "asyncio.Queue[Message | None]") -> list[Message]:
    messages = []
    while not out.empty():
        message = out.get_nowait()
        if message is not None:
            messages.append(message)
    return messages


def _array(messages: Sequence[bytes]) -> bytes:
    return b"[" + b",".join(messages) + b"]"
