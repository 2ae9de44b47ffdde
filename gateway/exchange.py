"""One request, from its start to its last event.

An `Exchange` is a numbered log of events, written by the upstream's connector alone, and the client's inputs on the
way back. Fronts attach to it at a cursor, so that it is at once the answer, the stream, and what `Last-Event-ID`
replays. The task in it runs the connector's leg; whoever started the exchange decides with `cancel` whether losing the
client ends it. Era, method and profile are not known here: they are values in the call and in its connector.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from itertools import islice

from policies import jsonrpc
from policies.delivery import Addressee
from policies.errors import Fault, GatewayFault
from policies.exchange import Answer, Ask, Call, Cancelled, Event, Fail, Notify, Opened, Reply, Withdraw, is_last
from policies.mcp import INTERNAL_ERROR, Json
from policies.profiles import Profile

log = logging.getLogger(__name__)

MAX_EVENTS = 10_000
"""Events kept for one exchange: a chatty tool sends hundreds, and a client that lags further loses the oldest."""

MAX_BYTES = 8 << 20
"""What the notifications among them may take: the same for the few that are large. The newest event always stays."""


class Exchange:
    """`read(cursor)` may be called by several at once. Nothing follows the last event, whatever the connector emits."""

    def __init__(self, call: Call, ident: str = "") -> None:
        self.id = ident or secrets.token_hex(8)
        self.call = call
        self._events: list[Event] = []
        self._sizes: list[int] = []
        self._bytes = 0
        self._dropped = 0
        self._grown = asyncio.Event()
        self._asks: dict[str, asyncio.Future[Reply]] = {}
        self._task: asyncio.Task[None] | None = None
        self.ended = False
        self.answered_by = ""
        """The key of the endpoint that had the call, where there are several."""
        self.upstream = ""
        """The upstream that has the call, once its leg has begun."""
        self._began_s: float | None = None
        self._took_s: float | None = None
        self.refiltered = asyncio.Event()
        self.agreed: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self.last: Event | None = None
        self.on_end: Callable[[], None] = lambda: None
        self.on_growth: Callable[[], None] = lambda: None
        """Told after each event."""
        self.on_event: Callable[[Event], None] = lambda _: None
        """Told each event before anybody can read it."""
        self.on_asking: Callable[[bool], None] = lambda _: None
        """Told True when the first question is put, False when none is open any more."""
        self.on_asked: Callable[[Ask, Reply | None], None] = lambda *_: None
        """Told of each question what was answered, None where nobody waits for that any more."""

    # what a leg notes

    def begins(self, upstream: str) -> None:
        """Its call goes to that upstream now."""
        self.upstream, self._began_s = upstream, time.perf_counter()

    def comes_back(self) -> None:
        """The upstream is done with it."""
        if self._began_s is not None:
            self._took_s = time.perf_counter() - self._began_s

    @property
    def upstream_s(self) -> float:
        """How long the upstream has had the call so far, questions to the client among it; 0 where it never had it."""
        if self._took_s is None and self._began_s is not None:
            return time.perf_counter() - self._began_s
        return self._took_s or 0.0

    # what a connector writes

    def emit(self, event: Event) -> None:
        """Appends `event`, unless the exchange has ended: exactly one last event reaches the client."""
        if self.ended:
            return
        self.ended = is_last(event)
        if self.ended:
            self.last = event
        self.on_event(event)
        size = len(jsonrpc.dumps(event.params)) if isinstance(event, Notify) else 0
        self._events.append(event)
        self._sizes.append(size)
        self._bytes += size
        while len(self._events) > MAX_EVENTS or (self._bytes > MAX_BYTES and len(self._events) > 1):
            self._dropped += 1
            self._events.pop(0)
            self._bytes -= self._sizes.pop(0)
        self._grown.set()
        self._grown = asyncio.Event()  # readers that wait hold the old one
        if self.ended:
            self.agreed.cancel()
            for future in self._asks.values():
                future.cancel()
        self.on_growth()

    def weight(self) -> int:
        """Bytes of what is kept here: the notifications, and the outcome if there is one."""
        return self._bytes + sum(_outcome_bytes(event) for event in self._events[-1:])

    def thin(self, instead: Fail) -> None:
        """Lets go of the notifications, or where there are none, of the outcome: `instead` stands in its place."""
        had = self._bytes
        for at, event in enumerate(self._events):
            if isinstance(event, Notify):
                self._events[at], self._sizes[at] = Opened(), 0
        self._bytes = 0
        if self.ended and not had:
            self.last = self._events[-1] = instead

    async def ask(self, ask: Ask) -> Reply:
        """Emits `ask` and waits for the client's reply. Cancelled when the exchange ends first."""
        future = self._asks.setdefault(ask.key, asyncio.get_running_loop().create_future())
        self.on_asking(True)
        self.emit(ask)
        if self.ended:
            future.cancel()
        reply: Reply | None = None
        try:
            reply = await future
            return reply
        finally:
            self.on_asked(ask, reply)
            self._asks.pop(ask.key, None)
            if not self._asks:
                self.on_asking(False)

    def withdraw(self, withdraw: Withdraw) -> None:
        """The upstream no longer waits: the client is told, and a late reply is dropped."""
        future = self._asks.pop(withdraw.key, None)
        if future is not None:
            future.cancel()
            self.emit(withdraw)

    @property
    def profile(self) -> Profile:
        """What its client can show now: the retry of a call that waited may say otherwise than the call did."""
        return self.call.profile

    @property
    def is_asking(self) -> bool:
        """Whether the upstream waits for its client's answer to anything."""
        return bool(self._asks)

    # what a front does

    def start(self, leg: Callable[[Call, "Exchange"], Awaitable[None]]) -> None:
        """Runs the connector's leg in a task of its own until it has emitted the last event."""
        self._task = asyncio.create_task(self._run(leg), name=f"exchange {self.id}")
        self._task.add_done_callback(lambda _: self.on_end())  # also where it was cancelled before its first step

    async def read(self, after: int = 0) -> list[tuple[int, Event]]:
        """The events after the cursor, numbered from 1; waits until there is one. Empty: the last one is read.

        Cancel-safe. A reader that lags by more than `MAX_EVENTS` or `MAX_BYTES` loses the oldest."""
        while True:
            first = max(after, self._dropped)
            found = self._events[first - self._dropped :]
            if found or self.ended:
                return list(enumerate(found, first + 1))
            await self._grown.wait()

    def reply(self, reply: Reply) -> bool:
        """Delivers the client's answer to an ask, once; whether anybody was waiting for it."""
        future = self._asks.get(reply.key)
        if future is None or future.done():
            return False
        future.set_result(reply)
        return True

    def refilter(self, params: Json) -> asyncio.Future[Json]:
        """Another filter for a listen stream: its connector opens a stream for that one before it ends the old. What
        comes back is the part of it that the upstream honours; cancelled where there is none."""
        self.agreed.cancel()
        if self.ended:
            return self.agreed
        self.agreed = asyncio.get_running_loop().create_future()
        self.call = replace(self.call, params=params)
        self.refiltered.set()
        return self.agreed

    def cancel(self) -> None:
        """The client called it off: the leg is cancelled, which tells the upstream; nothing more is delivered."""
        self.emit(Cancelled())
        if self._task is not None:
            self._task.cancel()

    async def finished(self) -> None:
        """Waits until the leg has let go of everything."""
        if self._task is not None:
            await asyncio.wait({self._task})

    async def _run(self, leg: Callable[[Call, "Exchange"], Awaitable[None]]) -> None:
        try:
            await leg(self.call, self)
            self.emit(Fail(INTERNAL_ERROR, "the upstream ended without an answer", http=502))
        except Fault as fault:
            self.emit(Fail(fault.code, fault.message, fault.data, fault.http, headers=fault.headers))
        except asyncio.CancelledError:
            self.emit(Cancelled())
        except Exception:  # a task root: whatever it is, the client gets an answer and the log an id
            log.exception("exchange %s failed", self.id)
            self.emit(Fail(INTERNAL_ERROR, f"internal error {self.id}", http=500))


def _outcome_bytes(event: Event) -> int:
    match event:
        case Answer(result=said) | Fail(data=said):
            return len(jsonrpc.dumps(said))
        case _:
            return 0


_LOOK = 64
"""Exchanges looked at for a finished one to drop: the oldest are finished unless somebody reads them for long."""


@dataclass(slots=True)
class _Kept:
    exchange: Exchange
    session: str
    to: Addressee
    watchers: int = 0
    expiry: asyncio.TimerHandle | None = None


@dataclass(slots=True)
class Exchanges:
    """The exchanges of legacy sessions in this process: for cancels, replies and resumption.

    A finished one, or a listen stream that nobody reads, is kept for `resume_ttl_s`; of finished ones no more than
    `max_per_session` and, over all, about `max_kept`, since each holds its result.
    """

    resume_ttl_s: float
    max_per_session: int = 256
    max_kept: int = 8192
    _kept: dict[str, _Kept] = field(default_factory=dict)
    _by_session: dict[str, list[str]] = field(default_factory=dict)
    _standalone: dict[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, exchange: Exchange, session: str, to: Addressee, *, standalone: bool = False) -> None:
        """Remembers an exchange of `session`. A second standalone stream supersedes the first.

        Raises `GatewayFault` (429) where the session has `max_per_session` running."""
        if standalone and session in self._standalone:
            self._drop(self._standalone[session])
        if len(self._by_session.get(session, ())) >= self.max_per_session:
            self._make_room(session)
        if len(self._kept) >= self.max_kept:
            oldest = next((one for one in islice(self._kept.values(), _LOOK) if self._is_over(one)), None)
            if oldest is not None:
                self._drop(oldest.exchange.id)
        if standalone:
            self._standalone[session] = exchange.id
        self._kept[exchange.id] = _Kept(exchange, session, to)
        self._by_session.setdefault(session, []).append(exchange.id)
        exchange.on_end = lambda: self._expire_later(exchange.id)

    def find(self, session: str, exchange_id: str) -> Exchange | None:
        """The exchange, if it is one of this session's."""
        kept = self._kept.get(exchange_id)
        return kept.exchange if kept is not None and kept.session == session else None

    def reply(self, session: str, exchange_id: str, reply: Reply) -> None:
        """Delivers a client's answer to an ask of one of its session's exchanges; dropped where that is none, or does
        not wait."""
        kept = self._kept.get(exchange_id)
        if kept is None or kept.session != session:
            return
        if kept.to.tasks is not None and reply.result is not None:  # it may name the task that asked
            reply = replace(reply, result=kept.to.tasks.related_to_upstream(reply.result))
        kept.exchange.reply(reply)

    def standalone(self, session: str) -> Exchange | None:
        """The session's standalone stream, if it has one."""
        exchange_id = self._standalone.get(session)
        return self._kept[exchange_id].exchange if exchange_id is not None else None

    def addressee(self, exchange: Exchange) -> Addressee:
        """Whom a kept exchange answers."""
        return self._kept[exchange.id].to

    def cancel(self, session: str, request: str | int) -> bool:
        """Cancels the running call that the client knows as `request`; the youngest where it used an id twice."""
        for exchange_id in reversed(self._by_session.get(session, [])):
            kept = self._kept[exchange_id]
            known = kept.to.id
            if type(known) is type(request) and known == request and not kept.exchange.ended:
                kept.exchange.cancel()
                return True
        return False

    def is_asking(self) -> bool:
        """Whether any of them waits for its client's answer."""
        return any(kept.exchange.is_asking for kept in self._kept.values())

    def watch(self, exchange: Exchange) -> None:
        """A client reads it: it does not expire meanwhile."""
        kept = self._kept.get(exchange.id)
        if kept is not None:
            kept.watchers += 1
            if kept.expiry is not None:
                kept.expiry.cancel()

    def unwatch(self, exchange: Exchange, abandon: bool = False) -> None:
        """A client no longer reads it. `abandon`: a stream without an answer is ended if nobody comes back."""
        kept = self._kept.get(exchange.id)
        if kept is None:
            return
        kept.watchers -= 1
        if kept.watchers == 0 and (exchange.ended or abandon):
            self._expire_later(exchange.id)

    def forget(self, exchange: Exchange) -> None:
        """Its client has the whole answer and no event id to resume from: nothing of it is needed any more."""
        self._drop(exchange.id)

    def end_session(self, session: str) -> None:
        """Cancels and forgets everything of a session."""
        for exchange_id in list(self._by_session.get(session, ())):
            self._drop(exchange_id)

    def standalones(self) -> list[Exchange]:
        """Every session's standalone stream."""
        return [self._kept[exchange_id].exchange for exchange_id in self._standalone.values()]

    def end_stream(self, session: str) -> None:
        """Ends the standalone stream of a session: another has superseded it, or is to."""
        if session in self._standalone:
            self._drop(self._standalone[session])

    def end_streams(self) -> None:
        """Ends the standalone streams: they have no end of their own."""
        for exchange_id in list(self._standalone.values()):
            self._drop(exchange_id)

    async def close(self) -> None:
        """Cancels everything and waits for the legs to let go."""
        exchanges = [kept.exchange for kept in self._kept.values()]
        for session in list(self._by_session):
            self.end_session(session)
        for exchange in exchanges:
            await exchange.finished()

    def _is_over(self, kept: _Kept) -> bool:
        return kept.exchange.ended and not kept.watchers

    def _expire_later(self, exchange_id: str) -> None:
        kept = self._kept.get(exchange_id)
        if kept is None or kept.watchers:
            return
        if kept.expiry is not None:
            kept.expiry.cancel()
        kept.expiry = asyncio.get_running_loop().call_later(self.resume_ttl_s, self._drop, exchange_id)

    def _drop(self, exchange_id: str) -> None:
        kept = self._kept.pop(exchange_id, None)
        if kept is None:
            return
        if kept.expiry is not None:
            kept.expiry.cancel()
        if self._standalone.get(kept.session) == exchange_id:
            del self._standalone[kept.session]
        ids = self._by_session[kept.session]
        ids.remove(exchange_id)
        if not ids:
            del self._by_session[kept.session]
        if not kept.exchange.ended:
            kept.exchange.cancel()

    def _make_room(self, session: str) -> None:
        """Drops the session's oldest finished exchange; running ones are not touched."""
        over = next((one for one in self._by_session[session] if self._is_over(self._kept[one])), None)
        if over is None:
            why = f"this session has {self.max_per_session} calls in flight; wait for one to end"
            raise GatewayFault(why, http=429)
        self._drop(over)
