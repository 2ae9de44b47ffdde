"""Requests of legacy clients in their sessions: calls, answers to asks, the standalone stream and its resumption. How
sessions begin and end: `gateway/front/lifecycle.py`.

Specification: 2025-11-25 basic/transports, and the revisions before it. In a live session every
JSON-RPC error that answers a request is HTTP 200.
"""

import contextlib
from dataclasses import replace
from functools import partial

from aiohttp import web

from gateway.exchange import Exchange
from gateway.front import elsewhere, operation, reply
from gateway.front.batch import Element, Far, Later, Started, drive_batch
from gateway.front.caching import Wanted, from_cache, may_fill
from gateway.front.drive import drive_feed, drive_legacy, drive_standalone
from gateway.front.elsewhere import Written
from gateway.front.lifecycle import initialize, owner_of, pinned_at
from gateway.front.resuming import resumed
from gateway.front.service import Caller, Service
from gateway.front.subscribing import SUBSCRIPTIONS, subscribe, subscribed
from gateway.stores.base import StoreUnavailable
from gateway.stores.changes import LEVEL, STREAM
from gateway.upstreams.legacy import LegacyConnector
from gateway.upstreams.pool import Upstream
from policies import apps, jsonrpc, task_ids
from policies.admission import Acceptance, Head, meta_of, progress_token
from policies.delivery import Addressee, Message, error
from policies.errors import Fault, Rejection, SessionGone
from policies.exchange import Call, Dialect, FrontSession, Reply
from policies.headers import name_of
from policies.mcp import (
    CANCELLED,
    HEADER_LAST_EVENT,
    INVALID_PARAMS,
    INVALID_REQUEST,
    LISTEN,
    LOG_LEVELS,
    META_LOG_LEVEL,
    META_PROGRESS_TOKEN,
    META_SERVER_INFO,
    META_SUBSCRIPTION_ID,
    META_VERSION,
    Json,
)
from policies.translation import subscriptions
from policies.translation.discover import client_capabilities

GONE = 404
"""The status of an error that says: the session is gone, start anew."""

_OWN_META = frozenset({META_VERSION, META_LOG_LEVEL, META_PROGRESS_TOKEN, META_SUBSCRIPTION_ID, META_SERVER_INFO})
_BATCHES = "2025-03-26"


async def serve(
    service: Service, request: web.BaseRequest, head: Head, message: jsonrpc.Message | list[jsonrpc.Message | Rejection]
) -> web.StreamResponse:
    """Answers one POST of a legacy client."""
    noted = operation.of(request)
    noted.rung = "session"
    if isinstance(message, jsonrpc.Request) and message.method == "initialize":
        return await initialize(service, request, head, message)
    owner = await owner_of(service, request, head)
    if isinstance(owner, Rejection):
        return reply.rejected(owner, message.id if isinstance(message, jsonrpc.Request) else None)
    noted.rung = "request"
    if isinstance(message, list):
        return await _batch(service, request, head, owner, message)
    if isinstance(message, jsonrpc.Request):
        return await _request(service, request, head, owner, message)
    await take(service, request, head, owner, message)
    return reply.accepted()


async def take(
    service: Service,
    request: Caller,
    head: Head,
    owner: FrontSession,
    message: jsonrpc.Notification | jsonrpc.Response,
) -> None:
    """A notification, or the client's answer to an ask: handed on once, and dropped quietly where nobody waits."""
    if isinstance(message, jsonrpc.Response):
        return await _answered(service, owner, message)
    if message.method == CANCELLED:
        request_id = message.params.get("requestId")
        if isinstance(request_id, str | int) and not service.exchanges.cancel(owner.id, request_id):
            with contextlib.suppress(StoreUnavailable):  # the call goes on, as it may after any cancel
                await service.state.mail.tell_all("cancel", jsonrpc.dumps([owner.id, request_id]))
        return None
    upstream = service.upstream_for(head.route, message.method, name_of(message.method, message.params))
    tasks = service.task_ids(head, upstream, request, "legacy")
    params = message.params if tasks is None else tasks.related_to_upstream(message.params)
    call = call_of(service, request, upstream, owner, message.method, params)
    try:
        connector = await upstream.connector("legacy", call.forwarded)
        if isinstance(connector, LegacyConnector):
            pinned = await pinned_at(service, request, head, upstream, owner)
            if pinned is not None:
                return await pinned.take(message.method, message.params)
            call = replace(call, capabilities=client_capabilities(call.capabilities, "legacy", connector.dialect))
            await connector.notify(call, owner)
    except SessionGone:
        await service.end_session(owner)
        raise
    except Fault:
        pass  # a notification has no answer, and the next request will say what is wrong
    return None


async def _answered(service: Service, owner: FrontSession, message: jsonrpc.Response) -> None:
    """Hands a client's answer to the exchange that asked, wherever that runs."""
    exchange_id, _, key = str(message.id).partition(".")
    answer = Reply(key, message.result, message.error)
    replica = service.state.mail.elsewhere(exchange_id)
    if replica is not None:
        return await elsewhere.reply(service, replica, owner, exchange_id, answer)
    return service.exchanges.reply(owner.id, exchange_id, answer)


async def stream(service: Service, request: web.BaseRequest, head: Head) -> web.StreamResponse:
    """GET: the standalone stream, or with `Last-Event-ID` the rest of the stream that it names."""
    owner = await owner_of(service, request, head)
    if isinstance(owner, Rejection):
        return reply.rejected(owner)
    last = request.headers.get(HEADER_LAST_EVENT)
    rest = None if last is None else await resumed(service, request, owner, last)
    if rest is not None:
        return rest
    pinned = await pinned_at(service, request, head, service.upstream_for(head.route, LISTEN, None), owner)
    if pinned is not None:
        return await drive_feed(service, request, await pinned.serve(None))
    exchange, to = await standalone(service, request, head, owner)
    return await drive_standalone(service, request, exchange, to)


async def standalone(service: Service, request: Caller, head: Head, owner: FrontSession) -> tuple[Exchange, Addressee]:
    """The stream of a session that no request opened, started."""
    upstream = service.upstream_for(head.route, LISTEN, None)
    async with service.locks.of(owner.id):  # a subscription made meanwhile is in this filter, or changes it
        params: Json = {"notifications": subscriptions.everything(await subscribed(service, owner.id))}
        exchange = service.exchange(call_of(service, request, upstream, owner, LISTEN, params))
        tasks = service.task_ids(head, upstream, request, "legacy")
        to = Addressee(exchange.call.front, None, LISTEN, {}, None, exchange.id, tasks)
        to = service.showing(to, exchange.profile)
        service.exchanges.keep(exchange, owner.id, to, standalone=True)
        await _announce(service, owner, exchange)
    exchange.start(upstream.leg)
    return exchange, to


async def _announce(service: Service, owner: FrontSession, stream: Exchange) -> None:
    """Tells the other replicas that the session's standalone stream is here now; one that is read at another ends."""
    state = service.state
    if not state.store.shared:
        return
    try:
        await state.changes.put(owner.id, STREAM, stream.id.encode(), service.settings.sessions.ttl_s)
        await state.mail.tell_all("superseded", owner.id.encode())
    except StoreUnavailable:
        return  # subscriptions that come to another replica meanwhile are not heard on it


async def _request(
    service: Service, request: web.BaseRequest, head: Head, owner: FrontSession, message: jsonrpc.Request
) -> web.StreamResponse:
    try:
        started = await start(service, request, head, owner, message)
    except Fault as fault:
        return reply.final(error(fault.rejection(), message.id), in_session=True)
    if isinstance(started, Message):
        return await _single(request, started, head.accept)
    if isinstance(started, Written):
        return await drive_feed(service, request, started, head.accept)
    exchange, to = started
    return await drive_legacy(service, request, exchange, to, head.accept)


async def start(
    service: Service, request: Caller, head: Head, owner: FrontSession, message: jsonrpc.Request
) -> Message | tuple[Exchange, Addressee] | Written:
    """What answers a request: a message that is at hand, an exchange that has been started for it, or what another
    replica says to it."""
    if message.method == "ping":
        return Message(jsonrpc.response(message.id, {}), last=True)
    upstream = service.upstream_for(head.route, message.method, routed_by(message))
    noted = operation.of(request)
    noted.goes_to(upstream, message.method, routed_by(message))
    call = call_of(service, request, upstream, owner, message.method, message.params)
    refusal = None if call.profile.shows_apps else apps.refusal(message.method, message.params, "legacy")
    if refusal is not None:
        noted.refuse("profile")
        return error(refusal, message.id)
    connector = await upstream.connector("legacy", call.forwarded)
    noted.upstream_era = connector.dialect.era
    if connector.dialect.era == "modern":
        if message.method == "logging/setLevel":
            return await _set_level(service, owner, message)
        if message.method in SUBSCRIPTIONS:
            return await subscribe(service, upstream, call, message)
        level = (await service.state.changes.of(owner.id)).get(LEVEL)
        call = replace(call, log_level=level.decode() if level is not None else None)
    elif (pinned := await pinned_at(service, request, head, upstream, owner)) is not None:
        return await pinned.serve(message)
    to = service.showing(Addressee(call.front, message.id, message.method, call.params), call.profile)
    wanted = Wanted(upstream, call, to, service.of_session(owner))
    kept = await from_cache(service, request, head.route, connector, wanted, meta_of(message.params))
    if kept is not None:
        return kept
    tasks = None
    if connector.dialect.era == "legacy" and (known := service.task_ids(head, upstream, request, "legacy")) is not None:
        found = known.of(message)
        if isinstance(found, Rejection):
            return error(found, message.id)
        sent, tasks = found
        call = call_of(service, request, upstream, owner, sent.method, sent.params)
    exchange = service.exchange(call)
    token = progress_token(meta_of(message.params))
    to = Addressee(call.front, message.id, message.method, call.params, token, exchange.id, tasks)
    to = service.showing(to, exchange.profile)
    service.exchanges.keep(exchange, owner.id, to)
    exchange.start(upstream.leg)
    return exchange, to


def call_of(
    service: Service, request: Caller, upstream: Upstream, owner: FrontSession, method: str, params: Json
) -> Call:
    meta = meta_of(params)
    effective = service.of_session(owner)
    sent, rest = service.sent(upstream, request, {k: v for k, v in meta.items() if k not in _OWN_META})
    return Call(
        method,
        {k: v for k, v in params.items() if k != "_meta"},
        rest,
        effective.capabilities,
        owner.client_info,
        owner.principal,
        Dialect("legacy", owner.version),
        wants_progress=progress_token(meta) is not None,
        owner=owner,
        forwarded=sent,
        profile=effective.profile,
    )


def routed_by(message: jsonrpc.Request) -> str | None:
    """What a request is routed by."""
    return task_ids.name_of(message.method, message.params) or name_of(message.method, message.params)


def refused_level(message: jsonrpc.Request) -> Rejection | None:
    if message.params.get("level") in LOG_LEVELS:
        return None
    return Rejection(INVALID_PARAMS, f"params.level is none of {', '.join(LOG_LEVELS)}")


async def _set_level(service: Service, owner: FrontSession, message: jsonrpc.Request) -> Message:
    why = refused_level(message)
    if why is not None:
        return error(why, message.id)
    level = str(message.params["level"])
    await service.state.changes.put(owner.id, LEVEL, level.encode(), service.settings.sessions.ttl_s)
    return Message(jsonrpc.response(message.id, {}), last=True)


def refused_batch(
    service: Service, owner: FrontSession, messages: list[jsonrpc.Message | Rejection]
) -> Rejection | None:
    if owner.version != _BATCHES:
        return Rejection(INVALID_REQUEST, f"{owner.version} has no batches: one message a POST")
    limit = service.settings.limits.max_batch
    return Rejection(INVALID_REQUEST, f"a batch may hold {limit} messages") if len(messages) > limit else None


async def _batch(
    service: Service,
    request: web.BaseRequest,
    head: Head,
    owner: FrontSession,
    messages: list[jsonrpc.Message | Rejection],
) -> web.StreamResponse:
    """Batches exist in 2025-03-26 alone. Each element is judged and run as if it had come by itself."""
    refused = refused_batch(service, owner, messages)
    if refused is not None:
        return reply.rejected(refused)
    elements: list[Element] = []
    for message in messages:
        match message:
            case Rejection():
                elements.append(error(message, None))
            case jsonrpc.Request(method="initialize"):
                elements.append(error(Rejection(INVALID_REQUEST, "initialize may not be in a batch"), message.id))
            case jsonrpc.Request():
                begin = partial(_started, service, request, head, owner, message)
                elements.append(Later(begin) if may_fill(service, head.route, message.method) else await begin())
            case _:
                await take(service, request, head, owner, message)
    return await drive_batch(service, request, elements, head.accept)


async def _started(
    service: Service, request: web.BaseRequest, head: Head, owner: FrontSession, message: jsonrpc.Request
) -> Started:
    """As `start`, for an element of a batch: what goes wrong with it is its own answer."""
    try:
        started = await start(service, request, head, owner, message)
    except Fault as fault:
        return error(fault.rejection(), message.id)
    return Far(message.id, started.feed) if isinstance(started, Written) else started


async def _single(request: web.BaseRequest, message: Message, accept: Acceptance) -> web.StreamResponse:
    if accept.json:
        return reply.final(message, in_session=True)
    return await reply.single(request, message, accept)
