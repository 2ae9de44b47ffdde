"""The connector to an upstream that speaks sessions (2025-11-25 and before, Streamable HTTP).

Specification: 2025-11-25 basic/transports, basic/lifecycle. Request ids and progress tokens are minted here; a stream
that closes in mid-call is resumed by GET with `Last-Event-ID`, and a call is never posted again once it may have run.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from gateway.exchange import Exchange
from gateway.stores.base import Store
from gateway.upstreams.base import MAX_PAGES, Ids, Schemas
from gateway.upstreams.conversation import Conversation, refusal
from gateway.upstreams.modern import mirrored
from gateway.upstreams.sessions import Sessions, Shared
from gateway.upstreams.wire import EVENTS, Reception, Wire, within
from policies import jsonrpc
from policies.errors import Fault, SessionGone, UpstreamFault
from policies.exchange import Answer, Call, Dialect, FrontSession, Notify, UpstreamSession
from policies.headers import ParamHeader
from policies.mcp import (
    ACKNOWLEDGED,
    CANCELLED,
    HEADER_LAST_EVENT,
    LATEST_LEGACY,
    LEGACY_SESSION_NOT_FOUND,
    LISTEN,
    LOG_LEVELS,
    META_PROGRESS_TOKEN,
    PROGRESS,
    Json,
)
from policies.translation import subscriptions
from policies.translation.discover import Description

log = logging.getLogger(__name__)

_DEFAULT_RETRY_MS = 1000
"""The pause before a stream is resumed where the upstream names none (WHATWG: "a few seconds"; a call is waiting)."""
_MAX_RETRY_MS = 60_000
_FRUITLESS = 5
"""Resumptions in a row that bring nothing new before the call is given up."""


class LegacyConnector:
    def __init__(self, wire: Wire, store: Store, ids: Ids, session_ttl_s: float) -> None:
        self.dialect = Dialect("legacy", LATEST_LEGACY)
        self.sessions = Sessions(wire, store, ids, session_ttl_s)
        self.sessions.start_pump = self._start_pump
        self._wire = wire
        self._ids = ids
        self._schemas = Schemas()
        self._running: dict[int, Conversation] = {}
        self._background: set[asyncio.Task[None]] = set()

    async def leg(self, call: Call, exchange: Exchange) -> None:
        if call.owner is not None:
            await self._owned_leg(call, call.owner, exchange)
        else:
            await self._shared_leg(call, exchange)

    async def describe(self) -> Description:
        call = Call("initialize", {}, {}, {}, None, "anonymous", Dialect("modern", ""))
        shared = await self.sessions.shared(call)
        self.sessions.release(shared)
        return shared.description

    async def schema(self, call: Call, tool: str, *, fresh: bool = False) -> tuple[ParamHeader, ...]:
        found = None if fresh else self._schemas.get(call.principal, tool)
        if found is None:
            await self._learn(call)
            found = self._schemas.get(call.principal, tool)
        return found or ()

    async def notify(self, call: Call, owner: FrontSession) -> None:
        """A notification of a legacy client's, inside its own session."""
        session = await self.sessions.owned(owner, call.forwarded, call.capabilities)
        if call.method != "notifications/initialized":  # `owned` has sent that
            params = _with_meta(call.params, call.meta)
            await self.sessions.tell(session, jsonrpc.notification(call.method, params), call.forwarded)

    async def close(self) -> None:
        while self._background:
            await asyncio.wait(self._background)
        await self.sessions.close()

    # legs

    async def _owned_leg(self, call: Call, owner: FrontSession, exchange: Exchange) -> None:
        """In the caller's own session. If the upstream has lost it, its state is gone and the client must know, unless
        the operator has said that sessions here hold nothing (`heal`)."""
        session = await self.sessions.owned(owner, call.forwarded, call.capabilities)
        run = self._listen_owned if call.method == LISTEN else self._call_owned
        try:
            await run(call, session, exchange)
            return
        except SessionGone as gone:
            gone.code = LEGACY_SESSION_NOT_FOUND
            if not self._wire.settings.heal:
                raise
        session, _ = await self.sessions.open(call.capabilities, owner.client_info, owner.version, call.forwarded)
        await self.sessions.replace(owner, session)
        await self.sessions.initialized(owner, session, call.forwarded)
        await run(call, session, exchange)

    async def _shared_leg(self, call: Call, exchange: Exchange) -> None:
        """In a borrowed session. A 404 proves that nothing ran, so that one new session and one retry are safe."""
        run = self._listen_shared if call.method == LISTEN else self._call_shared
        for _ in range(2):
            shared = await self.sessions.shared(call)
            try:
                return await run(call, shared, exchange)
            except SessionGone:
                self.sessions.lost(shared)
            finally:
                self.sessions.release(shared)
        raise UpstreamFault(f"upstream {self._wire.name} refuses the session it has just opened")

    async def _call_owned(self, call: Call, session: UpstreamSession, exchange: Exchange) -> None:
        await self._call(call, session, Conversation(self.sessions, session, call, exchange, None, None))

    async def _call_shared(self, call: Call, shared: Shared, exchange: Exchange) -> None:
        if call.log_level is not None:
            await self._raise_level(shared, call.log_level)
        info = shared.description.server_info
        talk = Conversation(self.sessions, shared.session, call, exchange, info, shared.publish)
        await self._call(call, shared.session, talk)

    async def _call(self, call: Call, session: UpstreamSession, talk: Conversation) -> None:
        request_id = talk.request_id = self._ids.next()
        self._running[request_id] = talk
        meta = {**call.meta, META_PROGRESS_TOKEN: request_id} if call.wants_progress else call.meta
        body = jsonrpc.request(request_id, call.method, _with_meta(call.params, meta))
        try:
            async with within(self._wire.settings.timeouts.total_s, self._wire.name):
                await self._post_and_resume(body, session, call, talk)
        except asyncio.CancelledError:
            self._spawn(self._cancel_upstream(request_id, session, call))
            raise
        except UpstreamFault as fault:
            if fault.http == 504:  # it may still run: nobody waits for it any more
                self._spawn(self._cancel_upstream(request_id, session, call))
            raise
        finally:
            del self._running[request_id]
            await talk.close()

    async def _post_and_resume(self, body: bytes, session: UpstreamSession, call: Call, talk: Conversation) -> None:
        head = self.sessions.headers(session, call.forwarded)
        place = _Place()
        try:
            async with self._wire.request("POST", head, body) as reception:
                if reception.status == 404 and session.id is not None:
                    raise SessionGone
                await self._hear(reception, talk, place)
        except UpstreamFault:
            if place.event_id is None:
                raise
        await self._resume(session, call, talk, place)

    async def _resume(self, session: UpstreamSession, call: Call, talk: Conversation, place: "_Place") -> None:
        """Polls for the rest of a stream that closed before its answer (transports, Sending Messages, 6)."""
        fruitless = 0
        while not talk.done:
            if place.event_id is None or fruitless >= _FRUITLESS:
                raise UpstreamFault(f"upstream {self._wire.name} closed its stream without an answer")
            await asyncio.sleep(min(place.retry_ms, _MAX_RETRY_MS) / 1000)
            before = place.event_id
            head = self.sessions.headers(session, call.forwarded) | EVENTS | {HEADER_LAST_EVENT: before}
            head.pop("Content-Type", None)
            try:
                async with self._wire.request("GET", head) as reception:
                    if reception.status != 200:
                        raise UpstreamFault(f"upstream {self._wire.name} does not resume the stream it closed")
                    await self._hear(reception, talk, place)
            except UpstreamFault:
                if place.event_id == before:
                    raise
            fruitless = 0 if place.event_id != before else fruitless + 1

    async def _hear(self, reception: Reception, talk: Conversation, place: "_Place") -> None:
        async for piece in reception.pieces():
            place.event_id = piece.event_id or place.event_id
            place.retry_ms = piece.retry_ms if piece.retry_ms is not None else place.retry_ms
            if piece.message is not None:
                talk.on(piece.message)
                if talk.done:
                    return

    async def _cancel_upstream(self, request_id: int, session: UpstreamSession, call: Call) -> None:
        body = jsonrpc.notification(CANCELLED, {"requestId": request_id, "reason": "the client no longer waits"})
        try:
            await self.sessions.tell(session, body, call.forwarded)
        except Fault as fault:
            log.debug("a cancel did not reach upstream %s: %s", self._wire.name, fault.message)

    # streams

    async def _listen_owned(self, call: Call, session: UpstreamSession, exchange: Exchange) -> None:
        """The session's GET stream for its one owner, asks included; resumed when the upstream closes it."""
        talk = Conversation(self.sessions, session, call, exchange, None, None)
        place = _Place()
        try:
            await self._get(session, call, place, lambda message: self._on_stream(talk, message))
        finally:
            await talk.close()

    def _on_stream(self, talk: Conversation, message: Json) -> None:
        """Progress may come here for a call whose own stream is elsewhere; its token says which."""
        if not self._progress_elsewhere(message):
            talk.on(message)

    def _progress_elsewhere(self, message: Json) -> bool:
        if message.get("method") != PROGRESS or not isinstance(message.get("params"), dict):
            return False
        running = self._running.get(message["params"].get(META_PROGRESS_TOKEN))
        if running is not None:
            running.notification(PROGRESS, message["params"])
        return True

    async def _get(
        self,
        session: UpstreamSession,
        call: Call,
        place: "_Place",
        on: Callable[[Json], None],
        opened: Callable[[bool], None] = lambda _: None,
    ) -> None:
        """Reads the standalone stream of a session until it is refused, again and again where it ends or breaks.

        Raises `SessionGone` on 404, an `UpstreamFault` with HTTP 405 where the first request is refused otherwise.
        """
        first = True
        while True:
            head = self.sessions.headers(session, call.forwarded) | EVENTS
            head.pop("Content-Type", None)
            if place.event_id is not None:
                head[HEADER_LAST_EVENT] = place.event_id
            try:
                async with self._wire.request("GET", head, long_lived=True) as reception:
                    if reception.status == 404 and session.id is not None:
                        raise SessionGone
                    if reception.status != 200 or reception.kind != "sse":
                        raise UpstreamFault("the upstream serves no stream for this session", http=405)
                    first = False
                    opened(True)
                    async for piece in reception.pieces():
                        place.event_id = piece.event_id or place.event_id
                        place.retry_ms = piece.retry_ms if piece.retry_ms is not None else place.retry_ms
                        if piece.message is not None:
                            on(piece.message)
            except SessionGone:
                raise
            except UpstreamFault as fault:
                if first or fault.http == 405:
                    raise
            await asyncio.sleep(min(place.retry_ms, _MAX_RETRY_MS) / 1000)

    async def _listen_shared(self, call: Call, shared: Shared, exchange: Exchange) -> None:
        """`subscriptions/listen` over a session: acknowledged first, then what was asked for, until cancelled. A lost
        session is replaced and its subscriptions made again."""
        wanted = call.params.get("notifications")
        can_hear = shared.can_hear.done() and shared.can_hear.result()
        agreed = subscriptions.honoured(
            wanted if isinstance(wanted, dict) else {}, shared.description.capabilities, can_hear
        )
        uris = await self._subscribe(shared, agreed.pop("resourceSubscriptions", []), call)
        if uris:
            agreed["resourceSubscriptions"] = uris

        def heard(method: str, params: Json) -> None:
            if subscriptions.concerns(agreed, method, params):
                exchange.emit(Notify(method, params, self.dialect))

        shared.listeners.add(heard)
        try:
            exchange.emit(Notify(ACKNOWLEDGED, {"notifications": agreed}, self.dialect))
            await shared.gone.wait()
        finally:
            shared.listeners.discard(heard)
            self._spawn(self._unsubscribe(shared, uris, call))
        exchange.emit(Answer({}, self.dialect))  # a graceful end: the client listens anew

    async def _subscribe(self, shared: Shared, uris: list[str], call: Call) -> list[str]:
        """Those of `uris` that the upstream takes; counted, since others may listen to the same."""
        taken = []
        for uri in uris:
            if not shared.subscribed.get(uri):
                params = {"uri": uri}
                message = await self.sessions.request(shared.session, "resources/subscribe", params, call.forwarded)
                if "error" in message:
                    continue
            shared.subscribed[uri] = shared.subscribed.get(uri, 0) + 1
            taken.append(uri)
        return taken

    async def _unsubscribe(self, shared: Shared, uris: list[str], call: Call) -> None:
        for uri in uris:
            shared.subscribed[uri] -= 1
            if shared.subscribed[uri] == 0 and not shared.gone.is_set():
                await self._quietly(shared, "resources/unsubscribe", {"uri": uri}, call)

    async def _raise_level(self, shared: Shared, level: str) -> None:
        """The session's level only ever gets more verbose: each call filters for itself, and a level that went back
        would flap under calls in flight."""
        current = shared.level
        if current is not None and LOG_LEVELS.index(current) <= LOG_LEVELS.index(level):
            return
        shared.level = level
        if isinstance(shared.description.capabilities.get("logging"), dict):
            await self.sessions.request(shared.session, "logging/setLevel", {"level": level}, shared.forwarded)

    async def _quietly(self, shared: Shared, method: str, params: Json, call: Call) -> None:
        try:
            await self.sessions.request(shared.session, method, params, call.forwarded)
        except Fault as fault:
            log.debug("%s was not taken by upstream %s: %s", method, self._wire.name, fault.message)

    # the stream of a shared session

    def _start_pump(self, shared: Shared) -> asyncio.Task[None]:
        return asyncio.create_task(self._pump(shared), name=f"GET stream of {self._wire.name}")

    async def _pump(self, shared: Shared) -> None:
        call = Call(LISTEN, {}, {}, {}, None, "", self.dialect, forwarded=shared.forwarded)

        def opened(yes: bool) -> None:
            if not shared.can_hear.done():
                shared.can_hear.set_result(yes)

        def on(message: Json) -> None:
            if "method" not in message or self._progress_elsewhere(message):
                return
            if "id" in message:
                self._spawn(self._answer(shared, message))
            else:
                params = message.get("params")
                shared.publish(message["method"], params if isinstance(params, dict) else {})

        try:
            await self._get(shared.session, call, _Place(), on, opened)
        except SessionGone:
            self.sessions.lost(shared)
        except UpstreamFault as fault:
            log.debug("upstream %s: %s", self._wire.name, fault.message)
        finally:
            opened(False)

    async def _answer(self, shared: Shared, message: Json) -> None:
        try:
            await self.sessions.tell(shared.session, refusal(message), shared.forwarded)
        except Fault as fault:
            log.debug("an answer was not taken by upstream %s: %s", self._wire.name, fault.message)

    # schemas

    async def _learn(self, call: Call) -> None:
        """Walks `tools/list` as this caller, so that its Mcp-Param-* headers can be judged here: a legacy upstream
        compares nothing."""
        shared = await self.sessions.shared(call)
        try:
            cursor: str | None = None
            for _ in range(MAX_PAGES):
                params: Json = {} if cursor is None else {"cursor": cursor}
                message = await self.sessions.request(shared.session, "tools/list", params, call.forwarded)
                result = message.get("result")
                if not isinstance(result, dict):
                    return
                self._schemas.learn(call.principal, mirrored(result))
                cursor = result.get("nextCursor")
                if not cursor:
                    return
        finally:
            self.sessions.release(shared)

    def _spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)


class _Place:
    """Where in a stream we are, and how long to wait before it is resumed."""

    def __init__(self) -> None:
        self.event_id: str | None = None
        self.retry_ms = _DEFAULT_RETRY_MS


def _with_meta(params: Json, meta: Json) -> Json:
    return {**params, "_meta": meta} if meta else params
