"""What a legacy upstream says during one leg: responses, notifications, and requests of its own.

Specification: 2025-11-25 basic/transports, client/{elicitation,sampling,roots}, basic/utilities/{ping,progress,
cancellation}. Asks are relayed to the exchange and answered at the upstream when the client has replied; a `ping` is
answered here; whatever else it wants is refused at once, so that it never waits for nobody.
"""

import asyncio
import itertools
import logging
import secrets
from collections.abc import Callable
from typing import Any

from gateway.background import Background
from gateway.exchange import Exchange
from gateway.upstreams.sessions import Sessions
from policies import apps, jsonrpc
from policies.errors import Fault, Rejection, UpstreamFault
from policies.exchange import Answer, Ask, Call, Dialect, Fail, Notify, UpstreamSession, Withdraw
from policies.mcp import (
    ASK_CAPABILITY,
    CANCELLED,
    INTERNAL_ERROR,
    LEGACY_URL_ELICITATION,
    LOG_LEVELS,
    LOG_MESSAGE,
    MAY_ASK,
    META_PROGRESS_TOKEN,
    METHOD_NOT_FOUND,
    PROGRESS,
    Json,
    at_least,
)
from policies.translation import mrtr, tasks
from policies.translation.discover import can_ask

log = logging.getLogger(__name__)

WAKE_S = 15.0
"""Between signs of life for a waiting ask: the SDKs time a request out after 60 s without."""


class Conversation:
    """One leg's ear. `heard` is told what belongs to all who share the session."""

    def __init__(
        self,
        sessions: Sessions,
        session: UpstreamSession,
        call: Call,
        exchange: Exchange,
        server_info: Json | None,
        heard: Callable[[str, Json], None] | None,
    ) -> None:
        self.sessions = sessions
        self.session = session
        self._call = call
        self._exchange = exchange
        self._server_info = server_info
        self._heard = heard
        self._dialect = Dialect("legacy", session.version)
        self._asks: dict[tuple[type, Any], str] = {}
        self._waited = 0.0
        self._background = Background()
        self.token: int | None = None
        """The progress token of the call, which outlives the request where that made a task."""
        self.request_id: int | None = None
        self.done = False
        self.task: tasks.Task | None = None
        """The task that the upstream has made of the call, as last seen."""
        self.outcome: Json | None = None
        """The result of the task."""
        self.on_notice: Callable[[str], None] = lambda _: None
        """Told the method of each notification."""
        self.visits: Fail | None = None
        """The -32042 with which the upstream refused to run the call before its user has been somewhere."""

    @property
    def makes_task(self) -> bool:
        """Whether the gateway has asked the upstream to make a task of the call, which is its own to drive."""
        return self._heard is not None and "task" in self._call.params

    def on(self, message: Json) -> None:
        """Takes one message of the upstream's."""
        method = message.get("method")
        if not isinstance(method, str):
            self._response(message)
        elif "id" in message:
            self._request(message["id"], method, _params(message))
        else:
            self.notification(method, _params(message))

    def waited(self) -> float:
        """Until when, by the loop's clock, the upstream has waited for an answer of the client's; now, if it does."""
        if self._asks:
            self._waited = asyncio.get_running_loop().time()
        return self._waited

    async def close(self) -> None:
        """Ends what still runs for this leg."""
        await self._background.close()

    def notification(self, method: str, params: Json) -> None:
        """Takes a notification: this call's own go to its caller, what concerns everybody who shares the session to
        all of them. In the caller's own session everything is the caller's."""
        params = dict(params)
        self.on_notice(method)
        if method == CANCELLED:
            self._withdraw(params)
        elif method == PROGRESS:
            if self.token is not None and params.pop(META_PROGRESS_TOKEN, None) == self.token:
                self._exchange.emit(Notify(method, params, self._dialect))
        elif self._heard is None or (method == LOG_MESSAGE and self._wants_log(params)):
            self.sessions.on_change(method, params)
            self._exchange.emit(Notify(method, params, self._dialect))
        elif method != LOG_MESSAGE:
            self._heard(method, params)

    def _response(self, message: Json) -> None:
        """The answer; an error of the HTTP layer may carry no id. Another's response is not ours to give."""
        if self.request_id is None or message.get("id") not in (self.request_id, None):
            return
        self.done = True
        error = message.get("error")
        if isinstance(error, dict):
            code, text = error.get("code"), error.get("message")
            fail = Fail(
                code if isinstance(code, int) and not isinstance(code, bool) else INTERNAL_ERROR,
                text if isinstance(text, str) else "the upstream failed without saying why",
                error.get("data"),
                dialect=self._dialect,
            )
            if self._heard is not None and fail.code == LEGACY_URL_ELICITATION and self._can_visit(fail.data):
                self.visits = fail
            else:
                self._exchange.emit(fail)
        elif isinstance(message.get("result"), dict):
            self._result(message["result"])
        else:
            raise UpstreamFault("the upstream answered with neither a result nor an error")

    def _result(self, result: Json) -> None:
        created = tasks.task_of(result.get("task")) if self.makes_task and self.task is None else None
        if created is not None:
            self.task = created
            return
        if self.task is not None:
            self.outcome = result
        else:
            self._exchange.emit(Answer(result, self._dialect, self._server_info))

    def settle(self, task: tasks.Task, outcome: Json) -> None:
        """Emits what came of a task."""
        if tasks.is_outcome(outcome):
            result = tasks.outcome(outcome, task.status)
            self._exchange.emit(Answer(result, self._dialect, self._server_info))
        else:
            self._exchange.emit(Fail(INTERNAL_ERROR, tasks.no_outcome(task), dialect=self._dialect))

    def _request(self, request_id: Any, method: str, params: Json) -> None:
        if method == "ping":
            self._background.start(self._tell(jsonrpc.response(request_id, {})))
        elif method not in ASK_CAPABILITY:
            self._refuse(request_id, "Method not found")
        elif not self.may_be_asked(method, params):
            self._refuse(request_id, f"the client does not support {method}")
        elif isinstance(shown := self._shown(method, params), Rejection):
            if method == "elicitation/create":
                self._background.start(self._tell(jsonrpc.response(request_id, mrtr.CANCEL)))
            else:
                self._refuse(request_id, shown.message)
        else:
            key = secrets.token_hex(4)
            self._asks[(type(request_id), request_id)] = key
            self._background.start(self._relay(request_id, Ask(key, method, shown, self._dialect)))

    def _shown(self, method: str, params: Json) -> Json | Rejection:
        """The ask in the words of a client with a session that negotiated an older revision than this one has."""
        client = self._call.front
        if client.era == "modern" or at_least(client.version, self._dialect.version):
            return params
        shown = params if self._call.profile.shows_apps else apps.strip_ask(method, params)  # before it is made text
        return mrtr.ask_to_legacy(method, shown, client.version, self._call.capabilities)

    def _refuse(self, request_id: Any, why: str) -> None:
        self._background.start(self._tell(jsonrpc.error_response(request_id, METHOD_NOT_FOUND, why, None)))

    async def _relay(self, request_id: Any, ask: Ask) -> None:
        waking = asyncio.create_task(self._keep_awake(ask.params))
        try:
            reply = await self._exchange.ask(ask)
        finally:
            waking.cancel()
            self.waited()
            self._asks.pop((type(request_id), request_id), None)
        if reply.error is not None:
            body = jsonrpc.dumps({"jsonrpc": "2.0", "id": request_id, "error": reply.error})
        else:
            result = reply.result or {}
            body = jsonrpc.response(request_id, tasks.related(ask.params, result) if self.task is not None else result)
        await self._tell(body)

    async def _keep_awake(self, params: Json) -> None:
        """Progress for an ask that wants it, so that a slow human does not time it out at the upstream. In the
        caller's own session the caller does that itself."""
        meta = params.get("_meta")
        token = meta.get(META_PROGRESS_TOKEN) if isinstance(meta, dict) else None
        if token is None or self._heard is None:
            return
        for progress in itertools.count(1):
            await asyncio.sleep(WAKE_S)
            told = {META_PROGRESS_TOKEN: token, "progress": progress}
            await self._tell(jsonrpc.notification(PROGRESS, told))

    def _withdraw(self, params: Json) -> None:
        """The upstream gives up an ask; anything else it may cancel is not the client's."""
        request_id = params.get("requestId")
        if not isinstance(request_id, str | int):
            return
        key = self._asks.get((type(request_id), request_id))
        if key is not None:
            self._exchange.withdraw(Withdraw(key, params, self._dialect))

    def _can_visit(self, data: Any) -> bool:
        """Whether a -32042 can be put to the client. One of a task is what came of it: that has run."""
        asks = mrtr.url_asks(data).values() if self.task is None else ()
        return any(can_ask("elicitation/create", ask, self._call.capabilities) is None for ask in asks)

    def may_be_asked(self, method: str, params: Json) -> bool:
        """Whether a request of the upstream's can be meant for this call's client."""
        allowed = self._heard is None or self._call.method in MAY_ASK
        return allowed and can_ask(method, params, self._call.capabilities) is None

    def _wants_log(self, params: Json) -> bool:
        """Callers of a shared session each see log messages from their own level on, and none without a level."""
        wanted, level = self._exchange.call.log_level, params.get("level")
        return wanted in LOG_LEVELS and level in LOG_LEVELS and LOG_LEVELS.index(level) >= LOG_LEVELS.index(wanted)

    async def _tell(self, body: bytes) -> None:
        try:
            await self.sessions.tell(self.session, body, self._call.forwarded)
        except Fault as fault:
            log.debug("an answer to an upstream's request was not taken: %s", fault.message)


def refusal(message: Json) -> bytes:
    """The answer to a request that belongs to no call."""
    if message.get("method") == "ping":
        return jsonrpc.response(message["id"], {})
    why = "no call of this session is known to want this"
    return jsonrpc.error_response(message["id"], METHOD_NOT_FOUND, why)


def _params(message: Json) -> Json:
    params = message.get("params")
    return params if isinstance(params, dict) else {}
