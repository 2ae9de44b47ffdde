"""What the client may see of an exchange: one event in, at most one JSON-RPC message out.

The response ladder, once, at the front: (1) take out what this host is not shown, before the next rung can make plain
text of it; (2) translate from the upstream's dialect to the front's, the same dialect being the identity; (3) put back
what was the client's own: id, progress token, subscription id; (4) frame. What an HTTP status or an SSE frame looks
like is `gateway/front/reply.py`'s business.
"""

from dataclasses import dataclass, replace
from typing import Any

from policies import apps, jsonrpc, task_ids
from policies.errors import Rejection
from policies.exchange import Answer, Ask, Cancelled, Dialect, Event, Fail, Notify, Opened, RequestId, Withdraw
from policies.mcp import (
    ACKNOWLEDGED,
    CANCELLED,
    LISTEN,
    META_PROGRESS_TOKEN,
    META_SUBSCRIPTION_ID,
    PROGRESS,
    Json,
)
from policies.stripped import Items, taken_out
from policies.task_ids import TaskIds
from policies.translation import messages


@dataclass(frozen=True, slots=True)
class Addressee:
    """Whom an exchange answers: the client's own id (None for a stream that no request opened), method, parameters
    and progress token, its dialect, the prefix that makes our ask ids unique (`prefix.key`), how it knows tasks
    where that is not as the upstream does, whether its host shows Apps, and how large an App it may read."""

    dialect: Dialect
    id: RequestId | None
    method: str
    params: Json
    token: Any = None
    prefix: str = ""
    tasks: TaskIds | None = None
    shows_apps: bool = False
    max_app_bytes: int = apps.MAX_READ_BYTES


@dataclass(frozen=True, slots=True)
class Message:
    """One JSON-RPC message for the client. `rejection` is set where the message is an error response, `tool_error`
    where it is a tool's result that says it failed, `is_narrowed` where this host is not shown all of a result, and
    `stripped` says what, to be counted."""

    raw: bytes
    last: bool = False
    rejection: Rejection | None = None
    tool_error: bool = False
    is_narrowed: bool = False
    stripped: Items = ()


def deliver(event: Event, to: Addressee) -> Message | None:
    """The message for `event`, or None where this client gets none."""
    match event:
        case Notify():
            return _notification(event, to)
        case Ask():  # in the words of its addressee already: whether it can be put to it had to be known before
            shown = event.params if to.shows_apps else apps.strip_ask(event.method, event.params)
            params = shown if to.tasks is None else to.tasks.related(shown)
            raw = jsonrpc.request(f"{to.prefix}.{event.key}", event.method, params)
            return Message(raw, stripped=taken_out(event.params, shown))
        case Withdraw():
            params = {**event.params, "requestId": f"{to.prefix}.{event.key}"}
            return Message(jsonrpc.notification(CANCELLED, params))
        case Answer():
            return _answer(event, to)
        case Fail():
            return _failure(event, to)
        case Cancelled() | Opened():
            return None


def _notification(event: Notify, to: Addressee) -> Message | None:
    shown = event.params if to.shows_apps else apps.strip_notification(event.method, event.params)
    if shown is None:
        return None
    params = shown
    if to.tasks is not None:
        told = to.tasks.notification(event.method, params, listens=_listens(to))
        if told is None:
            return None
        params = told
    if to.dialect.era == "legacy" and event.dialect.era == "modern":
        if event.method == ACKNOWLEDGED:
            return None
        params = messages.notification_to_legacy(params)
    if event.method == PROGRESS:
        if to.token is None:
            return None  # nobody asked for progress (basic/patterns/progress, Behavior Requirements)
        params = {**params, META_PROGRESS_TOKEN: to.token}
    if _listens(to):
        params = _with_meta(params, META_SUBSCRIPTION_ID, to.id)
    return Message(jsonrpc.notification(event.method, params), stripped=taken_out(event.params, shown))


def _answer(event: Answer, to: Addressee) -> Message:
    result: Json | Rejection = event.result
    if not to.shows_apps:
        result = apps.strip_result(to.method, to.params, event.result, to.dialect.era)
    is_narrowed = result is not event.result
    stripped = taken_out(event.result, result if isinstance(result, dict) else None)
    if isinstance(result, dict):
        result = _translated(replace(event, result=result), to)
    if to.tasks is not None and isinstance(result, dict):
        try:
            there = event.endpoint or to.tasks.endpoint
            result = replace(to.tasks, endpoint=there).result(to.method, to.params, result)
        except ValueError:
            result = task_ids.NO_NAME
    if isinstance(result, Rejection):
        return replace(error(result, to.id), stripped=stripped)
    if _listens(to):
        result = _with_meta(result, META_SUBSCRIPTION_ID, to.id)
    assert to.id is not None  # a stream that no request opened has no answer
    raw = jsonrpc.response(to.id, result)
    large = apps.too_large(to.method, to.params.get("uri"), len(raw), to.max_app_bytes)
    if large:
        return error(large, to.id)
    failed = result.get("isError") is True
    return Message(raw, last=True, tool_error=failed, is_narrowed=is_narrowed, stripped=stripped)


def _translated(event: Answer, to: Addressee) -> Json | Rejection:
    if event.dialect.era != to.dialect.era:
        if to.dialect.era == "modern":
            return messages.result_to_modern(to.method, event.result, event.server_info)
        return messages.result_to_legacy(to.method, event.result, to.dialect.version)
    if to.dialect.era == "legacy" and event.dialect.version != to.dialect.version:
        return messages.result_to_older(to.method, event.result, to.dialect.version)
    return event.result


def _failure(event: Fail, to: Addressee) -> Message:
    rejection = Rejection(event.code, event.message, event.data, event.http, event.headers)
    if event.dialect is not None and event.dialect.era != to.dialect.era:
        if to.dialect.era == "modern":
            rejection = messages.error_to_modern(to.method, to.params, event.code, event.message, event.data)
        else:
            rejection = messages.error_to_legacy(to.method, event.code, event.message, event.data)
    return error(rejection, to.id)


def _listens(to: Addressee) -> bool:
    """Whether it is a stream of 2026-07-28, which a client asks for with a filter."""
    return to.method == LISTEN and to.dialect.era == "modern"


def farewell(listener: RequestId) -> tuple[bytes, bytes]:
    """How a listen stream that the gateway ends is ended: the result, then the cancel that servers MUST send. A client
    that reads the cancel first takes the stream for lost (basic/patterns/subscriptions, Graceful Closure)."""
    tag = {META_SUBSCRIPTION_ID: listener}
    result = jsonrpc.response(listener, {"resultType": "complete", "_meta": tag})
    return result, jsonrpc.notification(CANCELLED, {"requestId": listener, "_meta": tag})


def error(rejection: Rejection, request_id: RequestId | None) -> Message:
    """The error response for `rejection`; without an id where the request's could not be read."""
    raw = jsonrpc.error_response(request_id, rejection.code, rejection.message, rejection.data)
    return Message(raw, last=True, rejection=rejection)


def _with_meta(value: Json, key: str, item: Any) -> Json:
    meta = value.get("_meta")
    return {**value, "_meta": {**(meta if isinstance(meta, dict) else {}), key: item}}
