"""The standalone streams of a legacy upstream's sessions: one owner's own, and a shared session's for all who listen.

Specification: 2025-11-25 basic/transports (Listening for Messages from the Server, Resumability and Redelivery).
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from gateway.background import Background
from gateway.exchange import Exchange
from gateway.upstreams.conversation import Conversation, refusal
from gateway.upstreams.patience import Patience
from gateway.upstreams.sessions import Sessions
from gateway.upstreams.shared_session import Shared
from gateway.upstreams.transport import Transport
from gateway.upstreams.wire import EVENTS
from policies.errors import Fault, SessionGone, UpstreamFault, UpstreamRetired
from policies.exchange import Answer, Call, Dialect, Notify, Opened, UpstreamSession
from policies.mcp import (
    ACKNOWLEDGED,
    ASK_CAPABILITY,
    CANCELLED,
    HEADER_LAST_EVENT,
    LATEST_LEGACY,
    LISTEN,
    LOG_MESSAGE,
    META_PROGRESS_TOKEN,
    PROGRESS,
    Json,
)
from policies.translation import subscriptions

log = logging.getLogger(__name__)

DEFAULT_RETRY_MS = 1000
"""The pause before a stream is resumed where the upstream names none (WHATWG: "a few seconds"; a call is waiting)."""

MIN_RETRY_MS = 100
"""The shortest pause that is kept: a stream that closes at once and asks for none would be opened without end."""

MAX_RETRY_MS = 60_000
"""The longest pause an upstream may ask for: a stream that is silent for longer is as good as none."""


_REFUSALS = 5
"""In a row, of a stream that has been open: servers refuse another (409) until they notice that the first broke."""


class Place:
    """Where in a stream we are, and how long to wait before it is resumed."""

    def __init__(self) -> None:
        self.event_id: str | None = None
        self.retry_ms = DEFAULT_RETRY_MS

    def pass_by(self, event_id: str | None, retry_ms: int | None) -> None:
        if event_id and event_id.isprintable():  # another one cannot be sent back in a header
            self.event_id = event_id
        if retry_ms is not None:
            self.retry_ms = max(MIN_RETRY_MS, min(retry_ms, MAX_RETRY_MS))


class Streams:
    """`running`: the conversations of calls in flight by progress token. `hear`: what concerns all of a session."""

    def __init__(
        self,
        wire: Transport,
        sessions: Sessions,
        running: dict[int, Conversation],
        hear: Callable[[Shared, str, Json], None],
    ) -> None:
        self.dialect = Dialect("legacy", LATEST_LEGACY)
        self.sessions = sessions
        self._wire = wire
        self._running = running
        self._hear_for_all = hear
        self._background = Background()
        self.on_notice: Callable[[Call, str], None] = lambda *_: None
        """Told the method of each notification to the owner of a session."""
        self.is_deaf = False
        """Whether the upstream has refused a stream to a session that is shared, as far as is known."""

    def start_pump(self, shared: Shared) -> asyncio.Task[None]:
        """Reads the stream of a shared session for as long as the session lives."""
        return asyncio.create_task(self._pump(shared), name=f"GET stream of {self._wire.name}")

    async def close(self) -> None:
        await self._background.over()

    async def listen_owned(self, call: Call, session: UpstreamSession, exchange: Exchange) -> None:
        """The session's GET stream for its one owner, asks included; resumed when the upstream closes it."""
        talk = Conversation(self.sessions, session, call, exchange, None, None)
        talk.on_notice = partial(self.on_notice, call)
        place = Place()
        try:
            await self._get(
                session, call, place, lambda message: self._on_stream(talk, message), lambda _: exchange.emit(Opened())
            )
        finally:
            await talk.close()

    def _on_stream(self, talk: Conversation, message: Json) -> None:
        """Progress may come here for a call whose own stream is elsewhere; its token says which."""
        if not self._progress_elsewhere(message):
            talk.on(message)

    def _progress_elsewhere(self, message: Json) -> bool:
        if message.get("method") != PROGRESS or not isinstance(message.get("params"), dict):
            return False
        token = message["params"].get(META_PROGRESS_TOKEN)
        running = self._running.get(token) if isinstance(token, int) else None
        if running is not None:
            running.notification(PROGRESS, message["params"])
        return True

    async def _get(
        self,
        session: UpstreamSession,
        call: Call,
        place: "Place",
        on: Callable[[Json], None],
        opened: Callable[[bool], None] = lambda _: None,
        *,
        needed: bool = False,
    ) -> None:
        """Reads the standalone stream of a session until it is refused, again and again where it ends or breaks.

        Raises `SessionGone` on 404, an `UpstreamFault` with HTTP 405 where the first request is refused otherwise, or
        later ones are again and again. A shared session's endpoint that cannot be reached is not waited for where there
        are others: who listens there is better served by them.
        """
        first, refused = True, 0
        patience = Patience(True, needed, endpoint=session.endpoint)
        may_move = call.owner is None and self._wire.endpoint_count > 1
        while True:
            head = self.sessions.headers(session, call.forwarded) | EVENTS
            head.pop("Content-Type", None)
            if place.event_id is not None:
                head[HEADER_LAST_EVENT] = place.event_id
            try:
                async with self._wire.request("GET", head, None, patience) as reception:
                    if reception.status == 404 and session.id is not None:
                        raise SessionGone
                    if reception.status != 200 or reception.kind != "sse":
                        raise UpstreamFault("the upstream serves no stream for this session", http=405)
                    if first:
                        opened(True)
                    first, refused = False, 0
                    async for piece in reception.pieces():
                        place.pass_by(piece.event_id, piece.retry_ms)
                        if piece.message is not None:
                            on(piece.message)
            except (SessionGone, UpstreamRetired):
                raise
            except UpstreamFault as fault:
                refused += fault.http == 405
                if first or refused >= _REFUSALS or (may_move and not fault.executed):
                    raise
            await asyncio.sleep(place.retry_ms / 1000 * 2 ** max(0, refused - 1))

    async def listen_shared(self, call: Call, shared: Shared, exchange: Exchange) -> None:
        """`subscriptions/listen` over a session: acknowledged first, then what was asked for, until cancelled. A lost
        session is replaced and its subscriptions made again."""
        wanted = call.params.get("notifications")
        can_hear = shared.can_hear.done() and shared.can_hear.result()
        agreed = subscriptions.honoured(
            wanted if isinstance(wanted, dict) else {}, shared.description.capabilities, can_hear
        )
        wanted_uris, uris = agreed.pop("resourceSubscriptions", []), list[str]()

        def heard(method: str, params: Json) -> None:
            if subscriptions.concerns(agreed, method, params):
                exchange.emit(Notify(method, params, self.dialect))

        try:
            await self._subscribe(shared, wanted_uris, call, uris)
            if uris:
                agreed["resourceSubscriptions"] = uris
            shared.listeners.add(heard)
            exchange.emit(Notify(ACKNOWLEDGED, {"notifications": agreed}, self.dialect))
            await shared.gone.wait()
        finally:
            shared.listeners.discard(heard)
            self._background.start(self._unsubscribe(shared, uris, call))
        exchange.emit(Answer({}, self.dialect))  # a graceful end: the client listens anew

    async def _subscribe(self, shared: Shared, uris: list[str], call: Call, taken: list[str]) -> None:
        """Those of `uris` that the upstream takes, into `taken`; counted, since others may listen to the same."""
        for uri in uris:
            if not shared.subscribed.get(uri):
                params = {"uri": uri}
                message = await self.sessions.request(shared.session, "resources/subscribe", params, call.forwarded)
                if "error" in message:
                    continue
            shared.subscribed[uri] = shared.subscribed.get(uri, 0) + 1
            taken.append(uri)

    async def _unsubscribe(self, shared: Shared, uris: list[str], call: Call) -> None:
        for uri in uris:
            shared.subscribed[uri] -= 1
            if shared.subscribed[uri] == 0 and not shared.gone.is_set():
                await self._quietly(shared, "resources/unsubscribe", {"uri": uri}, call)

    async def _quietly(self, shared: Shared, method: str, params: Json, call: Call) -> None:
        try:
            await self.sessions.request(shared.session, method, params, call.forwarded)
        except Fault as fault:
            log.debug("%s was not taken by upstream %s: %s", method, self._wire.name, fault.message)

    async def _pump(self, shared: Shared) -> None:
        call = Call(LISTEN, {}, {}, {}, None, "", self.dialect, forwarded=shared.forwarded)

        def opened(yes: bool) -> None:
            if yes:
                self.is_deaf = False
            if not shared.can_hear.done():
                shared.can_hear.set_result(yes)

        def on(message: Json) -> None:
            if "method" not in message or self._progress_elsewhere(message):
                return
            if message["method"] == LOG_MESSAGE:
                self._logged(shared, message)
            elif message["method"] == CANCELLED:
                for talk in self._talks(shared):
                    talk.on(message)
            elif "id" in message:
                if not self._asked_of_one(shared, message):
                    self._background.start(self._answer(shared, message))
            else:
                params = message.get("params")
                self._hear_for_all(shared, message["method"], params if isinstance(params, dict) else {})

        try:
            await self._get(shared.session, call, Place(), on, opened, needed=bool(shared.leased_as))
        except SessionGone:
            self.sessions.lost(shared)
        except UpstreamFault as fault:
            log.debug("upstream %s: %s", self._wire.name, fault.message)
            self.is_deaf = self.is_deaf or (fault.http == 405 and not shared.can_hear.done())
            deaf = shared.can_hear.done() or not fault.executed  # a server that refuses a stream has said all it will
            if deaf and not isinstance(fault, UpstreamRetired):
                self.sessions.lost(shared)  # who listens, or asks there, needs another
        finally:
            opened(False)

    def _asked_of_one(self, shared: Shared, message: Json) -> bool:
        """Servers on the TypeScript SDK v1 ask here, unrelated to the call that asks. A call that may be asked has its
        session for itself, so that it is meant."""
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        if message["method"] not in ASK_CAPABILITY:
            return False
        able = [talk for talk in self._talks(shared) if talk.may_be_asked(message["method"], params)]
        if len(able) == 1:
            able[0].on(message)
        return len(able) == 1

    def _talks(self, shared: Shared) -> list[Conversation]:
        """The calls in this very session. Upstreams that issue no ids have many that look alike."""
        return [talk for talk in self._running.values() if talk.session is shared.session]

    def _logged(self, shared: Shared, message: Json) -> None:
        """Servers on the TypeScript SDK v1 send a call's log messages here. They are that call's where only one runs,
        and nobody's where there are several: another caller must not read them."""
        talks = self._talks(shared)
        if len(talks) == 1 and isinstance(message.get("params"), dict):
            talks[0].notification(LOG_MESSAGE, message["params"])

    async def _answer(self, shared: Shared, message: Json) -> None:
        try:
            await self.sessions.tell(shared.session, refusal(message), shared.forwarded)
        except Fault as fault:
            log.debug("an answer was not taken by upstream %s: %s", self._wire.name, fault.message)
