"""The listen streams at one upstream of 2026-07-28, each shared by all who want the same of it, at every replica.

Specification: 2026-07-28 basic/patterns/subscriptions. Who has the same principal, credentials, capabilities and filter
hears one stream. The replica that is noted in the store as its holder reads it from the upstream, the others from the
holder; where that has died, another takes its place, and where the store is down, each reads its own. A stream that is
lost is opened again, and its listeners are told to look at everything, since what changed meanwhile nobody has heard.
"""

import asyncio
import hashlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

from gateway.background import Background
from gateway.exchange import Exchange
from gateway.stores.base import StoreUnavailable
from gateway.stores.feeds import Feed
from gateway.stores.shared import Shared
from policies import jsonrpc
from policies.errors import Fault, GatewayFault, UpstreamFault, UpstreamRetired
from policies.exchange import Answer, Call, Dialect, Notify
from policies.forwarded import lasting
from policies.mcp import ACKNOWLEDGED, LATEST_MODERN, LISTEN, TRACE_CONTEXT, Json
from policies.request_state import canonical
from policies.translation import subscriptions

log = logging.getLogger(__name__)

MAX_STREAMS: Final = 1024
"""Different streams at one upstream that this replica hears."""

MAX_BEHIND: Final = 1000
"""What another replica may leave unread of a stream: more, and it is sent away to begin anew."""

RECONNECT_S: Final = (1.0, 2.0, 5.0, 10.0, 30.0)
"""Pauses before a lost stream is opened again; the last one repeats."""

HOLDER_TTL_S: Final = 86_400.0
"""How long a holder is noted; whether it lives its lease tells."""

ASK_S: Final = 10.0

Heard = Callable[[str, Json], None]
Open = Callable[[Call, Heard], Awaitable[None]]
"""Reads one stream of an upstream's to its end. Raises the `Fault` that ended it, or refused it."""


@dataclass(eq=False, slots=True)
class _Stream:
    """`is_direct`: it is read from the upstream, and not at another replica. `agreed`: the acknowledgement, once there
    is one. `ended`: why there is nothing more, None where it ended in peace and may be listened to anew."""

    key: str
    call: Call
    on_change: Heard
    is_direct: bool = False
    listeners: set[Heard] = field(default_factory=set)
    agreed: Json | None = None
    ended: asyncio.Future[Fault | None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    tries: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    def hear(self, method: str, params: Json) -> None:
        if method != ACKNOWLEDGED:
            if self.is_direct:
                self.on_change(method, params)
            self._tell(method, params)
        elif self.agreed is None:
            self.agreed = params
            self.changed.set()
        elif _filter(params) != _filter(self.agreed):
            self.end(None)  # who listens anew is told what it gets now
        else:
            self.tries = 0
            for missed in subscriptions.missed(_filter(params)):
                self.on_change(*missed)
                self._tell(*missed)

    async def agreement(self) -> Json:
        """The acknowledgement. Raises the `Fault` that the stream was refused with."""
        while self.agreed is None:
            if self.ended.done():
                raise self.ended.result() or UpstreamFault("the upstream ends its streams; listen anew", http=503)
            await self.changed.wait()
        return self.agreed

    def end(self, why: Fault | None) -> None:
        if not self.ended.done():
            self.ended.set_result(why)
            self.changed.set()

    def _tell(self, method: str, params: Json) -> None:
        for listener in tuple(self.listeners):
            listener(method, params)


class Listening:
    """`open_` reads a stream from the upstream, which is called `name`."""

    def __init__(self, name: str, open_: Open, state: Shared) -> None:
        self.dialect = Dialect("modern", LATEST_MODERN)
        self._name = name
        self._open = open_
        self.on_change: Heard = lambda *_: None
        """Told what changed at the upstream, by the replica that reads it from there, or may have changed unheard."""
        self._store = state.store
        self._mail = state.mail
        self._streams: dict[str, _Stream] = {}
        self._ending = Background()

    def __len__(self) -> int:
        """How many streams are heard."""
        return len(self._streams)

    async def listen(self, call: Call, exchange: Exchange) -> None:
        """The leg of a listener: the acknowledgement first, then what is heard, until cancelled. A changed filter gets
        another stream, and the old one is left when that is acknowledged, so that no change falls between the two."""
        agreed = exchange.agreed  # of this filter: another may be wanted before this one is acknowledged
        seat = _Seat(self, self.join(call), exchange, self.dialect)
        changed = asyncio.create_task(exchange.refiltered.wait())
        try:
            acknowledged = await self._agreed(seat, call)
            exchange.emit(Notify(ACKNOWLEDGED, acknowledged, self.dialect))
            seat.begin(agreed)
            while not seat.stream.ended.done():
                ends: set[asyncio.Future[Any]] = {seat.stream.ended, changed}
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                if changed.done() and not seat.stream.ended.done():
                    exchange.refiltered.clear()
                    changed = asyncio.create_task(exchange.refiltered.wait())
                    seat = await self._moved(seat, replace(call, params=exchange.call.params), exchange)
            why = seat.stream.ended.result()
            if call.front.era == "legacy" and why is not None:
                raise why
            exchange.emit(Answer({"resultType": "complete"}, self.dialect))
        finally:
            changed.cancel()
            seat.leave()

    async def _agreed(self, seat: "_Seat", call: Call) -> Json:
        """The acknowledgement. To a client with a session, a stream that is refused is one that is not served: 404
        would say that its session has gone."""
        try:
            return await seat.agreement()
        except UpstreamFault as fault:
            if call.front.era == "legacy" and fault.http in (200, 400, 404):
                fault = UpstreamFault(fault.message, code=fault.code, http=405, data=fault.data)
            raise fault from None

    async def _moved(self, old: "_Seat", call: Call, exchange: Exchange) -> "_Seat":
        """The seat from now on: the new one once its stream is acknowledged, the old one where it is not, or where the
        filter changes again."""
        agreed = exchange.agreed
        new = _Seat(self, self.join(call), exchange, self.dialect)
        waiting = asyncio.create_task(new.agreement())
        left = new
        try:
            await asyncio.wait({waiting, agreed}, return_when=asyncio.FIRST_COMPLETED)
            if waiting.done() and waiting.exception() is None and not agreed.cancelled():
                left = old
                new.begin(agreed)
        finally:
            waiting.cancel()
            left.leave()
        if left is new:
            agreed.cancel()
        return old if left is new else new

    async def feed(self, call: Call, until: Awaitable[None]) -> AsyncGenerator[bytes, None]:
        """The same for another replica's listeners: `[method, params]` as JSON, the acknowledgement first. Ends with
        the stream, or with `until`; raises the `Fault` that refused it."""
        heard: asyncio.Queue[tuple[str, Json]] = asyncio.Queue()
        stream, hear = self.join(call), lambda method, params: heard.put_nowait((method, params))
        stream.listeners.add(hear)
        stopping = asyncio.ensure_future(until)
        try:
            yield jsonrpc.dumps([ACKNOWLEDGED, await stream.agreement()])
            while heard.qsize() < MAX_BEHIND:
                waiting = asyncio.create_task(heard.get())
                ends: set[asyncio.Future[Any]] = {waiting, stream.ended, stopping}
                try:
                    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                    if not waiting.done():
                        return
                finally:
                    waiting.cancel()
                yield jsonrpc.dumps(list(waiting.result()))
        finally:
            stopping.cancel()
            self.leave(stream, hear)

    async def close(self) -> None:
        for stream in list(self._streams.values()):
            stream.end(None)
            self._drop(stream)
        await self._ending.over()

    # joining and leaving

    def join(self, call: Call) -> _Stream:
        """The stream for this call's like, opened for the first of them. Raises `GatewayFault` at the bound."""
        call = _representative(call)
        key = _key(call)
        stream = self._streams.get(key)
        if stream is None:
            if len(self._streams) >= MAX_STREAMS:
                raise GatewayFault(f"upstream {self._name} is listened to in {MAX_STREAMS} ways already")
            stream = self._streams[key] = _Stream(key, call, self.on_change)
            stream.task = asyncio.create_task(self._run(stream), name=f"listen {self._name}")
        return stream

    def leave(self, stream: _Stream, heard: Heard) -> None:
        """One listener less; the last one ends the stream."""
        stream.listeners.discard(heard)
        if not stream.listeners and self._streams.get(stream.key) is stream:
            self._drop(stream)

    def _drop(self, stream: _Stream) -> None:
        del self._streams[stream.key]
        self._ending.start(self._let_go(stream))

    async def _let_go(self, stream: _Stream) -> None:
        assert stream.task is not None
        stream.task.cancel()
        await asyncio.wait({stream.task})
        if self._store.shared and stream.key not in self._streams:
            with suppress(StoreUnavailable):  # its lease tells that it has gone
                await self._store.delete_if(self._note(stream), self._mail.replica.encode())

    # one stream

    async def _run(self, stream: _Stream) -> None:
        """Reads it until nobody listens, from wherever it can be read."""
        while not stream.ended.done():
            try:
                await self._read(stream)
                fault: Fault = UpstreamFault(f"upstream {self._name} closed its stream without an answer")
            except UpstreamRetired as retired:
                return self._over(stream, retired)
            except Fault as broken:
                fault = broken
            if stream.agreed is None:
                return self._over(stream, fault)
            log.debug("a listen stream of upstream %s was lost", self._name)
            await asyncio.sleep(RECONNECT_S[min(stream.tries, len(RECONNECT_S) - 1)])
            stream.tries += 1
        return self._over(stream, None)

    def _over(self, stream: _Stream, why: Fault | None) -> None:
        if self._streams.get(stream.key) is stream:
            del self._streams[stream.key]  # who comes next begins anew
        stream.end(why)

    async def _read(self, stream: _Stream) -> None:
        holder = await self._holder(stream)
        stream.is_direct = holder is None
        if holder is None:
            return await self._open(stream.call, stream.hear)
        try:
            name = await self._mail.ask(holder, "listen", packed(self._name, stream.call), ASK_S)
        except StoreUnavailable:
            stream.is_direct = True
            return await self._open(stream.call, stream.hear)
        except Fault:  # it has gone, goes, or does not know this upstream: whoever asks next takes its place
            with suppress(StoreUnavailable):
                await self._store.delete_if(self._note(stream), holder.encode())
            return await self._read(stream)
        feed = Feed(self._mail, holder, name)
        try:
            while items := await feed.read():
                for item in items:
                    stream.hear(*jsonrpc.loads(item))
            return None
        finally:
            feed.leave()

    async def _holder(self, stream: _Stream) -> str | None:
        """The other replica that reads it from the upstream; None where this one does from now on."""
        if not self._store.shared:
            return None
        note, own = self._note(stream), self._mail.replica.encode()
        try:
            while not await self._store.set_nx(note, own, HOLDER_TTL_S):
                found = await self._store.get(note)
                if found == own:
                    return None
                if found is not None:
                    if await self._mail.lives(found.decode()):
                        return found.decode()
                    await self._store.delete_if(note, found)
        except StoreUnavailable:
            return None
        return None

    def _note(self, stream: _Stream) -> str:
        return f"listen:{self._name}:{stream.key}"


class _Seat:
    """One exchange's place at a stream. What is heard before `begin` is kept until then."""

    def __init__(self, listening: Listening, stream: _Stream, exchange: Exchange, dialect: Dialect) -> None:
        self.stream = stream
        self._listening = listening
        self._exchange = exchange
        self._dialect = dialect
        self._early: list[tuple[str, Json]] | None = []
        stream.listeners.add(self._heard)

    async def agreement(self) -> Json:
        return await self.stream.agreement()

    def begin(self, agreed: "asyncio.Future[Json]") -> None:
        """From now on its exchange hears everything; whoever waits for the filter is told what of it is honoured."""
        early, self._early = self._early or [], None
        for method, params in early:
            self._heard(method, params)
        if not agreed.done():
            agreed.set_result(_filter(self.stream.agreed or {}))

    def leave(self) -> None:
        self._listening.leave(self.stream, self._heard)

    def _heard(self, method: str, params: Json) -> None:
        if self._early is not None:
            self._early.append((method, params))
        else:
            self._exchange.emit(Notify(method, params, self._dialect))


def packed(upstream: str, call: Call) -> bytes:
    """What another replica needs to listen in this caller's place; sealed on its way, and kept nowhere."""
    content = [call.principal, call.params, call.meta, call.capabilities, call.log_level, [*map(list, call.forwarded)]]
    return jsonrpc.dumps([upstream, *content, call.endpoint])


def unpacked(raw: bytes) -> tuple[str, Call]:
    upstream, principal, params, meta, capabilities, level, forwarded, at = jsonrpc.loads(raw)
    headers = tuple((name, value) for name, value in forwarded)
    front = Dialect("modern", LATEST_MODERN)
    return upstream, Call(
        LISTEN, params, meta, capabilities, None, principal, front, level, forwarded=headers, endpoint=at
    )


def _representative(call: Call) -> Call:
    """The call of all who may share its stream: without what is one request's own."""
    meta = {key: value for key, value in call.meta.items() if key not in TRACE_CONTEXT}
    return replace(
        call, meta=meta, client_info=None, owner=None, wants_progress=False, forwarded=lasting(call.forwarded)
    )


def _key(call: Call) -> str:
    alike = [
        call.principal,
        call.params,
        call.meta,
        call.capabilities,
        call.log_level,
        sorted(call.forwarded),
        call.endpoint,
    ]
    return hashlib.sha256(jsonrpc.dumps(canonical(alike))).hexdigest()[:32]


def _filter(acknowledged: Json) -> Json:
    agreed = acknowledged.get("notifications")
    return agreed if isinstance(agreed, dict) else {}
