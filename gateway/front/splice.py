"""Modern to modern: the request goes out as the bytes that came in, and so does the answer.

Specification: 2026-07-28 basic/transports/streamable-http. No exchange is built. What is still seen to: hop-by-hop and
private headers stay behind, an answer is this request's, events are passed on whole, and exactly one last message
reaches the client, even where the upstream breaks off or goes on after its answer. A client that goes away closes the
upstream's response, which is the cancel.
"""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from aiohttp import web
from multidict import CIMultiDict

from gateway.front import operation, reply
from gateway.front.service import Service
from gateway.tracing import Traced
from gateway.upstreams.patience import Patience, within
from gateway.upstreams.pool import Upstream
from gateway.upstreams.reading import Blocks
from gateway.upstreams.wire import BOTH, Reception
from policies import apps, jsonrpc, task_ids
from policies.apps_marks import might_show
from policies.delivery import error
from policies.errors import Rejection, UpstreamFault
from policies.headers import name_in
from policies.mcp import HEADER_NAME, HEADER_SESSION, INVALID_REQUEST, LEGACY_SESSION_NOT_FOUND, MAY_ASK, READS, Json
from policies.metrics import CANCELLED_CALL, error_type
from policies.peek import NAMED_IN_LISTS, Splice, input_required, listed_names
from policies.profiles import Profile
from policies.request_state import Bond
from policies.routing import timeouts_for
from policies.sealing import NONCE_BYTES
from policies.stripped import taken_out
from policies.task_ids import TaskIds

_CURSOR = b'"nextCursor"'
_LEGACY_CODES = frozenset({-32000, LEGACY_SESSION_NOT_FOUND, INVALID_REQUEST})


@dataclass(frozen=True, slots=True)
class Relay:
    """One request of a modern client for a modern upstream. `forwarded`: the caller's headers that it gets; `bond`: to
    whom the upstream's `requestState` is sealed, if it is; `tasks`: how this caller knows the upstream's tasks,
    where that is not as the upstream does; `name`: what goes out in `Mcp-Name` where that is not what came in;
    `client`: whose key came;
    `profile`: what the client can show, which may have to be read in the request's body first; `uri`: of the resource
    that is read; `learn` is given the answer to a list of tools, before anything is left out of it, and without the
    tools where they hold nothing of an interface; `span`: of the call, where it is traced, begun and yet to end."""

    service: Service
    request: web.BaseRequest
    method: str
    upstream: Upstream
    forwarded: tuple[tuple[str, str], ...]
    profile: Callable[[], Profile]
    bond: Bond | None
    tasks: TaskIds | None = None
    name: str | None = None
    uri: str | None = None
    learn: Callable[[Json], None] | None = None
    client: str | None = None
    tool: str | None = None
    span: Traced | None = None

    def to_client(self, data: bytes, *, is_error: bool) -> bytes:
        """The last message as the client gets it."""
        max_bytes = self.service.settings.limits.max_app_bytes
        large = apps.too_large(self.method, self.uri, len(data), max_bytes)
        if large is not None:
            raise UpstreamFault(large.message, data=large.data)
        if not is_error:
            self._hear(data)
            if self.learn is not None:
                self._learn(data, self.learn)
        if self.service.ledger.on and not is_error and self.profile().shows_apps:
            params = {"uri": self.uri, "name": self.tool}
            self.service.ledger.see_raw(self.client, self.upstream.name, self.method, params, data)
        data = self._shown(data) or data
        if self.bond is not None:
            try:
                data = self.bond.response(data, secrets.token_bytes(NONCE_BYTES))
            except ValueError as large:
                raise UpstreamFault(f"the requestState of upstream {self.upstream.name} cannot be sealed") from large
        if self.tasks is None:
            return data
        try:
            return self.tasks.message(data, self.method) or data
        except ValueError as odd:
            raise UpstreamFault(task_ids.NO_NAME.message) from odd

    @property
    def called(self) -> str:
        """The name of what is called, as its client wrote it; empty for what has none."""
        return name_in(self.request.headers) or ""

    def on_the_way(self, data: bytes) -> bytes | None:
        """A notification as the client gets it, None where it does not."""
        shown = self._shown(data)
        return shown if self.tasks is None or shown is None else self.tasks.message(shown, self.method)

    def _hear(self, data: bytes) -> None:
        """Has what is to be counted of an answer taken down; most hold nothing of the kind."""
        counting = self.upstream.counting
        if self.method in NAMED_IN_LISTS:
            counting.names.learn_names(self.method, listed_names(data))
        elif self.method in MAY_ASK and (asks := input_required(data)) is not None:
            counting.heard(self.method, asks)

    def _learn(self, data: bytes, learn: Callable[[Json], None]) -> None:
        if not might_show(data):
            return learn({"nextCursor": "?"} if _CURSOR in data else {})  # not escaped: that is a mark, too
        try:
            message = jsonrpc.loads(data)
        except ValueError as odd:
            raise UpstreamFault(f"what upstream {self.upstream.name} says cannot be read") from odd
        if isinstance(message, dict) and isinstance(message.get("result"), dict):
            learn(message["result"])
        return None

    def _shown(self, data: bytes) -> bytes | None:
        """Less what this client's host does not show; None where it gets nothing of it."""
        if self.profile().shows_apps:
            return data
        try:
            shown = apps.strip_message(data, self.method, self.uri)
            if shown is not data:
                taken = taken_out(jsonrpc.loads(data), jsonrpc.loads(shown) if shown is not None else None)
                self.service.count_stripped(self.upstream.name, taken)
            return shown
        except ValueError as odd:
            raise UpstreamFault(f"what upstream {self.upstream.name} says cannot be read") from odd


async def splice(relay: Relay, raw: bytes) -> web.StreamResponse:
    """Raises `UpstreamFault` as long as nothing has been written to the client. Of the body, no more is looked at than
    what its answers are held against, and whether it goes on with an upstream's state."""
    sent = relay.bond.request(raw) if relay.bond is not None else raw
    answer = Splice(raw)
    if isinstance(sent, Rejection):
        return reply.rejected(sent, answer.id)
    began, went = time.perf_counter(), CANCELLED_CALL
    noted, counting = operation.of(relay.request), relay.upstream.counting
    relay.service.metrics.spliced.add(relay.upstream.name)
    try:
        response = await _splice(relay, sent, answer)
        went = noted.error
        return response
    except UpstreamFault as fault:
        went = error_type(fault.code, fault.http)
        raise
    finally:
        noted.upstream_s = time.perf_counter() - began
        counting.called((relay.method, relay.called), "modern", went, noted.upstream_s, relay.span)


async def _splice(relay: Relay, sent: bytes, answer: Splice) -> web.StreamResponse:
    request, service, upstream = relay.request, relay.service, relay.upstream
    passed = service.settings.tracing.passed
    head = CIMultiDict((k, v) for k, v in request.headers.items() if _passes(k.lower(), passed))  # each as it came
    head.update([*relay.forwarded, *BOTH.items()])
    if relay.name is not None:
        head[HEADER_NAME] = relay.name
    limits = timeouts_for(upstream.settings, relay.method, name_in(request.headers))
    assert upstream.http is not None  # a command's pipes have no head to pass on
    at = upstream.http.known_endpoint(relay.tasks.endpoint) if relay.tasks is not None else ""
    patience = Patience(limits=limits, endpoint=at, repeatable=relay.method in READS)
    stream = reply.Stream(request, service.settings.streams.keep_alive_s)
    async with upstream.http.request("POST", head, sent, patience) as reception:
        if relay.tasks is not None:  # a task that is made is where its call was answered
            there = upstream.http.known_endpoint(reception.endpoint)
            relay = replace(relay, tasks=replace(relay.tasks, endpoint=there))
        if reception.kind == "sse":
            response = await _stream(relay, reception.blocks(stream.waiting), stream, answer, limits.total_s)
        else:
            async with within(limits.total_s, upstream.name):
                response = await _json(relay, reception, answer)
        if answer.error:
            operation.of(request).error = _error(answer, reception.status)
        return response


async def _json(relay: Relay, reception: Reception, splice: Splice) -> web.Response:
    body = await reception.raw() if reception.kind == "json" else b""
    if splice.id is None and reception.status == 202:
        return reply.accepted()  # a notification, on its headers alone
    if splice.judge(body) != "last" or reception.status in (401, 403):
        raise reception.refusal()
    if reception.status in (400, 404) and _is_legacy(body):
        raise UpstreamFault("the upstream no longer answers modern requests", contradiction=True)
    headers = {k: v for k, v in reception.headers.items() if k == "Retry-After"}
    return reply.json(relay.to_client(body, is_error=bool(splice.error)), reception.status, headers)


async def _stream(
    relay: Relay, blocks: Blocks, stream: reply.Stream, splice: Splice, total_s: float
) -> web.StreamResponse:
    """Whole events as they come, until the last message. Without one, the client gets an error in its place."""
    await stream.open()
    try:
        async with within(total_s, relay.upstream.name):
            async for block, event in blocks:
                verdict = "pass"
                if event is not None and event.data:
                    verdict = splice.judge(event.data) if event.event == "message" else "drop"
                if verdict == "last":
                    assert event is not None
                    assert event.data is not None
                    data = relay.to_client(event.data, is_error=bool(splice.error))
                    await (stream.raw(block) if data is event.data else stream.event(data, event.id))
                    return await stream.end()
                if verdict == "pass" and event is not None and event.data:
                    told = relay.on_the_way(event.data)
                    if told is not None:
                        await (stream.raw(block) if told is event.data else stream.event(told, event.id))
                elif verdict != "drop":
                    await stream.raw(block)
        fault = UpstreamFault(f"upstream {relay.upstream.name} closed its stream without an answer")
    except UpstreamFault as failed:
        fault = failed
    await stream.message(error(fault.rejection(), splice.id))
    return await stream.end()


def _error(answer: Splice, status: int) -> str:
    return answer.error if isinstance(answer.error, str) else error_type(answer.error, status)


def _is_legacy(body: bytes) -> bool:
    """Whether an error is what servers that know only sessions say to a request without one."""
    failure = jsonrpc.loads(body).get("error")
    return isinstance(failure, dict) and failure.get("code") in _LEGACY_CODES


def _passes(name: str, passed: frozenset[str]) -> bool:
    """The protocol's own headers, and trace context; a session id is nothing here (Earlier Revisions)."""
    return (name.startswith("mcp-") and name != HEADER_SESSION.lower()) or name in passed
