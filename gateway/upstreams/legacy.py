"""The connector to an upstream that speaks sessions (2025-11-25 and before, Streamable HTTP).

Specification: 2025-11-25 basic/transports, basic/lifecycle. Request ids and progress tokens are minted here; a stream
that closes in mid-call is resumed by GET with `Last-Event-ID`, and a call is never posted again once it may have run.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar

from multidict import CIMultiDict

from gateway.background import Background, finished
from gateway.exchange import Exchange
from gateway.stores.shared import Shared as State
from gateway.upstreams.asking import Visits
from gateway.upstreams.base import Ids
from gateway.upstreams.conversation import Conversation
from gateway.upstreams.patience import Patience, within_own
from gateway.upstreams.schemas import Schemas
from gateway.upstreams.sessions import Sessions
from gateway.upstreams.shared_session import Shared
from gateway.upstreams.streams import Place, Streams
from gateway.upstreams.transport import Reception, Transport
from gateway.upstreams.wire import EVENTS
from policies import apps, headers, jsonrpc
from policies.errors import Fault, SessionGone, UpstreamFault
from policies.exchange import Answer, Call, Dialect, Fail, FrontSession, UpstreamSession
from policies.identity import principal
from policies.mcp import (
    ASK_CAPABILITY,
    CANCELLED,
    HEADER_LAST_EVENT,
    INTERNAL_ERROR,
    LATEST_LEGACY,
    LEGACY_SESSION_NOT_FOUND,
    LISTEN,
    LOG_LEVELS,
    MAY_ASK,
    META_PROGRESS_TOKEN,
    METHOD_NOT_FOUND,
    READS,
    Json,
)
from policies.request_state import RETRY_MEMBERS
from policies.routing import timeouts_for
from policies.settings import Timeouts
from policies.translation import tasks
from policies.translation.discover import Description, offers

log = logging.getLogger(__name__)

T = TypeVar("T")

MADE_S = 10.0
"""How long the task is waited for that a call asked for whose client has gone. Servers make it at once."""

_FRUITLESS = 5
"""Resumptions in a row that bring nothing new before the call is given up."""


class LegacyConnector:
    def __init__(self, wire: Transport, state: State, ids: Ids, session_ttl_s: float) -> None:
        self.dialect = Dialect("legacy", LATEST_LEGACY)
        self.sessions = Sessions(wire, state, ids, session_ttl_s)
        self._wire = wire
        self._ids = ids
        self._schemas = Schemas(wire.name, self._page, by_session=True)
        self._running: dict[int, Conversation] = {}
        self._streams = Streams(wire, self.sessions, self._running, self._hear_for_all)
        self._streams.on_notice = self._notice
        self.sessions.start_pump = self._streams.start_pump
        self._background = Background()

    async def leg(self, call: Call, exchange: Exchange) -> None:
        if call.method == LISTEN:
            await self._leg(call, exchange)
            return
        async with within_own(self._limits(call).total_s, self._wire.name, exchange):
            await self._leg(call, exchange)

    @property
    def is_deaf(self) -> bool:
        """Whether the upstream is known to serve no stream on which it could tell of changes."""
        return self._streams.is_deaf

    async def describe(self, credentials: tuple[tuple[str, str], ...] = ()) -> Description:
        who = principal(credentials)
        call = Call("initialize", {}, {}, {}, None, who, Dialect("modern", ""), forwarded=credentials)

        async def described(shared: Shared) -> Description:
            return shared.description

        return await self._borrowed(call, described)

    async def notify(self, call: Call, owner: FrontSession) -> None:
        """A notification of a legacy client's, inside its own session."""
        session = await self.sessions.owned(owner, call.forwarded, call.capabilities)
        await self.sessions.initialized(owner, session, call.forwarded)
        if call.method != "notifications/initialized":  # that has been sent
            params = _with_meta(call.params, call.meta)
            await self.sessions.tell(session, jsonrpc.notification(call.method, params), call.forwarded)

    async def hides(self, call: Call) -> bool:
        return await self._schemas.hides(call)

    def hides_at_hand(self, call: Call) -> bool | None:
        return self._schemas.hides_at_hand(call)

    def learn(self, call: Call, result: Json) -> None:
        self._schemas.learn(call, result)

    async def close(self) -> None:
        await self._background.over()
        await self._streams.close()
        await self.sessions.close()

    # legs

    async def _leg(self, call: Call, exchange: Exchange) -> None:
        if call.owner is not None:
            await self._owned_leg(call, call.owner, exchange)
        else:
            await self._shared_leg(call, exchange)

    async def _owned_leg(self, call: Call, owner: FrontSession, exchange: Exchange) -> None:
        """In the caller's own session. If the upstream has lost it, its state is gone and the client must know, unless
        the operator has said that sessions here hold nothing (`heal`)."""
        session = await self.sessions.owned(owner, call.forwarded, call.capabilities)
        run = self._streams.listen_owned if call.method == LISTEN else self._call_owned
        try:
            await self.sessions.initialized(owner, session, call.forwarded)
            return await run(call, session, exchange)
        except SessionGone as gone:
            gone.code = LEGACY_SESSION_NOT_FOUND
            if not self._wire.settings.heal:
                raise
        session = await self.sessions.renewed(owner, session, call.forwarded, call.capabilities)
        try:
            await self.sessions.initialized(owner, session, call.forwarded)
            await run(call, session, exchange)
        except SessionGone as gone:
            raise self.sessions.refused() from gone

    async def _shared_leg(self, call: Call, exchange: Exchange) -> None:
        run = self._streams.listen_shared if call.method == LISTEN else self._call_shared
        exclusive = call.method in MAY_ASK and any(kind in call.capabilities for kind in ASK_CAPABILITY.values())
        await self._borrowed(call, lambda shared: run(call, shared, exchange), exclusive=exclusive)

    async def _borrowed(self, call: Call, run: Callable[[Shared], Awaitable[T]], *, exclusive: bool = False) -> T:
        """Runs something in a borrowed session. A 404 proves that nothing ran, so that one new session and one retry
        are safe; an endpoint that cannot be reached does too, so that each other one is tried once. What only reads is
        tried at one more where its connection broke before an answer."""
        tried: list[str] = []
        renewed, repeatable = False, call.method in READS
        while True:
            endpoint, shared = self._wire.next_endpoint(tried), None
            try:
                shared = await self.sessions.shared(call, endpoint, exclusive=exclusive)
                return await run(shared)
            except SessionGone as gone:
                if renewed or shared is None:
                    raise self.sessions.refused() from gone
                renewed = True
                self.sessions.lost(shared)
            except UpstreamFault as fault:
                at = shared.session.endpoint if shared is not None else endpoint
                tried.append(at)
                nowhere_else = not at or len(set(tried)) >= self._wire.endpoint_count
                if fault.contradiction or nowhere_else or (fault.executed and not (repeatable and fault.unanswered)):
                    raise
                repeatable = repeatable and not fault.executed
                if shared is not None:
                    self.sessions.lost(shared)
            finally:
                if shared is not None:
                    self.sessions.release(shared)

    async def _call_owned(self, call: Call, session: UpstreamSession, exchange: Exchange) -> None:
        talk = Conversation(self.sessions, session, call, exchange, None, None)
        talk.on_notice = partial(self._notice, call)
        if not await self._refused(call, exchange):
            await self._call(call, session, talk)
            self._learn(call, exchange)

    async def _call_shared(self, call: Call, shared: Shared, exchange: Exchange) -> None:
        if not offers(shared.description, call.method):
            exchange.emit(Fail(METHOD_NOT_FOUND, f"{call.method} is not offered here"))
            return
        if await self._refused(call, exchange):
            return
        if call.method == "tools/call" and call.mirrors:
            # a legacy upstream compares nothing, so what routed this call is compared here
            sent = CIMultiDict(call.param_headers)
            rejection = headers.check_params(sent, call.params.get("arguments") or {}, await self._schemas.of(call))
            if rejection is not None:
                exchange.emit(Fail(rejection.code, rejection.message, rejection.data, rejection.http))
                return
        if call.log_level is not None:
            await self._raise_level(shared, call.log_level)
        # answers that belong to a call that waits here come by its requestState; others are nobody's. A `task` of this
        # era is nothing that the caller could ask for.
        params = {k: v for k, v in call.params.items() if k not in (*RETRY_MEMBERS, "task")}
        if await self._is_task(call, shared):
            params = tasks.task_params(params, self._limits(call).total_s)
        call = replace(call, params=params)
        info = shared.description.server_info
        visits = Visits(exchange, self.dialect)
        while True:
            talk = Conversation(
                self.sessions, shared.session, call, exchange, info, partial(self._hear_for_all, shared)
            )
            await self._call(call, shared.session, talk)
            if talk.visits is None:
                self._learn(call, exchange)
                return
            if not await visits.agreed(talk.visits):
                exchange.emit(Fail(INTERNAL_ERROR, talk.visits.message, dialect=self.dialect))
                return

    async def _call(self, call: Call, session: UpstreamSession, talk: Conversation) -> None:
        request_id = talk.request_id = talk.token = self._ids.next()
        self._running[request_id] = talk
        meta = {**call.meta, META_PROGRESS_TOKEN: request_id} if call.wants_progress else call.meta
        body = jsonrpc.request(request_id, call.method, _with_meta(call.params, meta))
        try:
            posting = self._post_and_resume(body, session, call, talk)
            # by a task's id alone can it be cancelled: whoever goes before that is known waits for it
            await (finished(posting, MADE_S) if talk.makes_task else posting)
            if talk.task is not None:
                await self._finish(session, call, talk, talk.task)
        except asyncio.CancelledError:
            if talk.task is not None or not talk.done:
                self._background.start(self._cancel_upstream(request_id, session, call, talk.task))
            raise
        except UpstreamFault as fault:
            if fault.http == 504 or talk.task is not None:  # it may still run: nobody waits for it any more
                self._background.start(self._cancel_upstream(request_id, session, call, talk.task))
            fault.executed = fault.executed or talk.task is not None  # whatever became of what looked for its outcome
            raise
        finally:
            del self._running[request_id]
            await talk.close()

    async def _refused(self, call: Call, exchange: Exchange) -> bool:
        """Answers the call of a tool that its host is not to know of."""
        if not await self.hides(call):
            return False
        why = apps.unknown_tool(call.params.get("name"))
        exchange.emit(Fail(why.code, why.message))
        return True

    def _learn(self, call: Call, exchange: Exchange) -> None:
        if isinstance(exchange.last, Answer):
            self.learn(call, exchange.last.result)

    def _limits(self, call: Call) -> Timeouts:
        return timeouts_for(self._wire.settings, call.method, call.params.get("name"))

    async def _post_and_resume(self, body: bytes, session: UpstreamSession, call: Call, talk: Conversation) -> None:
        head = self.sessions.headers(session, call.forwarded)
        place = Place()
        try:
            patience = Patience(waited=talk.waited, limits=self._limits(call), endpoint=session.endpoint)
            async with self._wire.request("POST", head, body, patience) as reception:
                if reception.status == 404 and session.id is not None:
                    raise SessionGone
                await self._hear(reception, talk, place)
        except UpstreamFault:
            if place.event_id is None:
                raise
        await self._resume(session, call, talk, place)

    async def _resume(self, session: UpstreamSession, call: Call, talk: Conversation, place: "Place") -> None:
        """Polls for the rest of a stream that closed before its answer (transports, Sending Messages, 6)."""
        fruitless = 0
        patience = Patience(waited=talk.waited, limits=self._limits(call), endpoint=session.endpoint)
        while not talk.done:
            if place.event_id is None or fruitless >= _FRUITLESS:
                raise UpstreamFault(f"upstream {self._wire.name} closed its stream without an answer")
            await asyncio.sleep(place.retry_ms / 1000)
            before = place.event_id
            head = self.sessions.headers(session, call.forwarded) | EVENTS | {HEADER_LAST_EVENT: before}
            head.pop("Content-Type", None)
            try:
                async with self._wire.request("GET", head, None, patience) as reception:
                    if reception.status != 200:
                        raise UpstreamFault(f"upstream {self._wire.name} does not resume the stream it closed")
                    await self._hear(reception, talk, place)
            except UpstreamFault as fault:
                if place.event_id == before:
                    fault.executed = True  # this GET was not, perhaps, but the call was
                    raise
            fruitless = 0 if place.event_id != before else fruitless + 1

    async def _hear(self, reception: Reception, talk: Conversation, place: "Place") -> None:
        async for piece in reception.pieces():
            place.pass_by(piece.event_id, piece.retry_ms)
            if piece.message is not None:
                talk.on(piece.message)
                if talk.done:
                    return

    async def _is_task(self, call: Call, shared: Shared) -> bool:
        if call.method != "tools/call" or not tasks.takes_tasks(shared.description.capabilities):
            return False
        return await self._schemas.is_task(call)

    async def _finish(self, session: UpstreamSession, call: Call, talk: Conversation, task: tasks.Task) -> None:
        """To the end of a task (basic/utilities/tasks): looked at until there is an outcome, or a question, which comes
        on the stream on which the outcome is waited for. One that breaks off is waited for again."""
        try:
            for _ in range(_FRUITLESS):
                while task.is_working:
                    await asyncio.sleep(task.pause_s)
                    task = await self._look(task.id, session, call)
                talk.done, talk.request_id = False, self._ids.next()
                body = jsonrpc.request(talk.request_id, "tasks/result", {"taskId": task.id})
                try:
                    await self._post_and_resume(body, session, call, talk)
                    if talk.outcome is not None:
                        is_known = tasks.is_outcome(talk.outcome) or task.status not in ("", "input_required")
                        talk.settle(task if is_known else await self._look(task.id, session, call), talk.outcome)
                    return
                except SessionGone:
                    raise
                except UpstreamFault as fault:
                    broken = fault
                task = await self._look(task.id, session, call)
            raise broken
        except SessionGone as gone:  # what has made a task has run, so that it is not begun anew
            raise UpstreamFault(f"upstream {self._wire.name} has lost the session of this call, and its task") from gone

    async def _look(self, task_id: str, session: UpstreamSession, call: Call) -> tasks.Task:
        message = await self.sessions.request(session, "tasks/get", {"taskId": task_id}, call.forwarded)
        found = tasks.task_of(message.get("result"))
        if found is None or found.id != task_id:
            raise UpstreamFault(f"upstream {self._wire.name} no longer knows the task that it has made of this call")
        return found

    async def _cancel_upstream(
        self, request_id: int, session: UpstreamSession, call: Call, task: tasks.Task | None
    ) -> None:
        body = jsonrpc.notification(CANCELLED, {"requestId": request_id, "reason": "the client no longer waits"})
        try:
            if task is not None:  # a task is never cancelled by a notification (Task Cancellation)
                await self.sessions.request(session, "tasks/cancel", {"taskId": task.id}, call.forwarded)
            else:
                await self.sessions.tell(session, body, call.forwarded)
        except Fault as fault:
            log.debug("a cancel did not reach upstream %s: %s", self._wire.name, fault.message)

    async def _raise_level(self, shared: Shared, level: str) -> None:
        """The session's level only ever gets more verbose: each call filters for itself, and a level that went back
        would flap under calls in flight."""
        current = shared.level
        if current is not None and LOG_LEVELS.index(current) <= LOG_LEVELS.index(level):
            return
        shared.level = level
        if isinstance(shared.description.capabilities.get("logging"), dict):
            await self.sessions.request(shared.session, "logging/setLevel", {"level": level}, shared.forwarded)

    def _notice(self, call: Call, method: str) -> None:
        if method == "notifications/tools/list_changed":
            self._schemas.forget_of(call)

    def _hear_for_all(self, shared: Shared, method: str, params: Json) -> None:
        if method == "notifications/tools/list_changed":
            self._schemas.forget()
        self.sessions.on_change(method, params)
        shared.publish(method, params)

    async def _page(self, call: Call, cursor: str | None) -> Json | None:
        """One page of the tools as this caller sees them."""

        params: Json = {} if cursor is None else {"cursor": cursor}
        if call.owner is not None:
            session = await self.sessions.owned(call.owner, call.forwarded, call.capabilities)
            message = await self.sessions.request(session, "tools/list", params, call.forwarded)
            return _result(message)

        async def list_tools(shared: Shared) -> Json:
            return await self.sessions.request(shared.session, "tools/list", params, call.forwarded)

        return _result(await self._borrowed(call, list_tools))


def _result(message: Json) -> Json | None:
    result = message.get("result")
    return result if isinstance(result, dict) else None


def _with_meta(params: Json, meta: Json) -> Json:
    return {**params, "_meta": meta} if meta else params
