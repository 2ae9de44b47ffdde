"""Requests of modern clients: judged, then spliced to a modern upstream or carried by an exchange.

Specification: 2026-07-28 basic/transports/streamable-http, server/discover. The order of the rungs is what the official
suite and both SDKs accept.
"""

import time
from dataclasses import replace
from functools import partial

from aiohttp import web

from gateway.front import elsewhere, operation, reply
from gateway.front.caching import Wanted, from_cache, may_keep
from gateway.front.calls import OF_TOOLS, call_of, learner
from gateway.front.drive import drive_modern
from gateway.front.elsewhere import Followed, TaskGone, retry
from gateway.front.gathering import Gathered, parted
from gateway.front.rounds import Rounds, resumed, waits_in
from gateway.front.service import Caller, Service
from gateway.front.splice import Relay, splice
from gateway.tracing import Traced, carrying
from gateway.upstreams.pool import Upstream
from gateway.upstreams.probe import Credentials
from policies import apps, headers, inline, jsonrpc, routing, task_ids
from policies.admission import Head, meta_of, progress_token
from policies.delivery import Addressee, Message, error
from policies.errors import ClientFault, Fault, Rejection, UpstreamFault
from policies.exchange import Dialect
from policies.identity import client_of
from policies.mcp import (
    HEADER_NAME,
    INVALID_PARAMS,
    INVALID_REQUEST,
    LATEST_MODERN,
    LISTEN,
    MAY_ASK,
    META_CLIENT_CAPABILITIES,
    META_LOG_LEVEL,
    READS,
    REMOVED_METHODS,
)
from policies.profiles import Effective, Profile
from policies.settings_routes import Route
from policies.task_ids import TaskIds
from policies.trace_context import BAGGAGE
from policies.translation.discover import Description, discover_result, for_host

DISCOVER_S = 2.0
"""How long `server/discover` waits for an upstream that has never described itself: clients give a probe 5 to 10 s."""

_DIALECT = Dialect("modern", LATEST_MODERN)


async def serve(
    service: Service, request: web.BaseRequest, head: Head, raw: bytes, message: jsonrpc.Message
) -> web.StreamResponse:
    """Answers one POST of a modern client."""
    operation.of(request).rung = "envelope"
    if isinstance(message, jsonrpc.Notification):
        return reply.accepted()  # the core has none over HTTP; nothing is known to be done with one
    if isinstance(message, jsonrpc.Response):
        return reply.rejected(Rejection(INVALID_REQUEST, f"{LATEST_MODERN} has no responses from clients", http=400))
    rejection = judge(request.headers, raw, message)
    if rejection is not None:
        return reply.rejected(rejection, message.id)
    try:
        return await _serve(service, request, head, raw, message)
    except Fault as fault:
        return await reply.failed(request, fault.rejection(), message.id)


def judge(lines: headers.Headers, raw: bytes, message: jsonrpc.Request) -> Rejection | None:
    """The envelope: what headers and body say, each alone and together."""
    duplicate = jsonrpc.duplicate_member(raw)
    if duplicate is not None:
        return Rejection(INVALID_REQUEST, f"member {duplicate!r} is given twice", http=400)
    rejection = (
        headers.check_version(lines, message)
        or headers.check_envelope(message)
        or (headers.unknown_method(message.method) if message.method in REMOVED_METHODS else None)
        or headers.check_name(lines, message)
    )
    return rejection or inline.check_level(meta_of(message.params))


async def _serve(
    service: Service, request: web.BaseRequest, head: Head, raw: bytes, message: jsonrpc.Request
) -> web.StreamResponse:
    upstream = service.upstream_for(head.route, message.method, routed_by(message), request.headers)
    noted = operation.of(request)
    noted.goes_to(upstream, message.method, routed_by(message))
    noted.rung = "profile"
    told, effective = told_of(service, head, message)
    profile = effective.profile
    if not profile.shows_apps and (refusal := apps.refusal(message.method, message.params, "modern")) is not None:
        return reply.rejected(refusal, message.id)
    noted.rung = "request"
    kept = await _from_cache(service, request, head, upstream, told, effective)
    if kept is not None:
        in_json = head.accept.json
        return reply.final(kept, in_session=False) if in_json else await reply.single(request, kept, head.accept)
    is_ours = describes(head, message, upstream)
    may_splice = not is_ours and upstream.http is not None and message.method != LISTEN  # streams are shared
    if may_splice and head.accept.json and head.accept.sse:
        forwarded = service.forwarded(upstream, request)
        connector = await upstream.connector("modern", forwarded)
        if connector.dialect.era == "modern":
            noted.upstream_era = "modern"
            try:
                found = for_upstream(service, head, upstream, request, told)
                if isinstance(found, Rejection):
                    return reply.rejected(found, message.id)
                sent, tasks = found
                forwarded, sent, span = _with_trace(service, upstream, sent, forwarded)
                body = raw if sent is message else jsonrpc.dumps({**jsonrpc.loads(raw), "params": sent.params})
                bond = service.bond(head, upstream, request) if message.method in MAY_ASK else None
                name = _name_for(message, sent, request)
                learn = None
                if message.method in OF_TOOLS and not profile.shows_apps:
                    call = call_of(service, request, head, sent, upstream, headless=False)
                    call = replace(call, profile=profile)
                    if await connector.hides(call):
                        noted.rung = "profile"
                        return reply.rejected(apps.unknown_tool(message.params.get("name")), message.id)
                    learn = learner(connector, call)
                uri = message.params.get("uri")
                of = (service, request, message.method, upstream, forwarded, lambda: profile, bond, tasks, name, uri)
                upstream.hosts.note(time.time(), profile, effective.capabilities)
                return await splice(Relay(*of, learn, head.client, routed_by(message), span), body)
            except UpstreamFault as fault:
                if not fault.contradiction or upstream.settings.era != "auto":
                    raise
                await upstream.forget_era()
                if message.method not in READS:
                    raise
    started = await start(service, request, head, message)
    if isinstance(started, Message):
        if started.rejection is not None:
            return reply.rejected(started.rejection, message.id)
        return await reply.single(request, started, head.accept)
    if message.method == LISTEN:
        operation.of(request).stay(service.metrics)
    return await drive_modern(request, started, head.accept)


async def start(
    service: Service, request: Caller, head: Head, message: jsonrpc.Request, *, headless: bool = False
) -> Message | Rounds | Followed | Gathered:
    """What answers a judged request: a message that is at hand, or an exchange that has been started for it, or one
    that waits here and goes on with what this client was asked; several for a listener that wants to hear of tasks in
    several places."""
    if headless:  # what came by HTTP has been asked for there before
        upstream = service.upstream_for(head.route, message.method, routed_by(message), request.headers)
        kept = await _from_cache(service, request, head, upstream, *told_of(service, head, message))
        if kept is not None:
            return kept
    parts = parted(service, request, head, message)
    if len(parts) == 1:
        return await _start(service, request, head, parts[0], headless=headless)
    capabilities = meta_of(message.params)[META_CLIENT_CAPABILITIES]
    rejection = task_ids.undeclared(message.method, message.params, capabilities)
    if rejection is not None:
        return error(rejection, message.id)
    starts = [partial(_start, service, request, head, part, headless=headless) for part in parts]
    return Gathered(service, addressee_of(message), starts, led=task_ids.asks_for_more(message.params))


async def _start(
    service: Service, request: Caller, head: Head, message: jsonrpc.Request, *, headless: bool
) -> Message | Rounds | Followed:
    """The same for a request that concerns one place alone."""
    upstream = service.upstream_for(head.route, message.method, routed_by(message), request.headers)
    message, effective = told_of(service, head, message)
    profile = effective.profile
    if not profile.shows_apps:
        refusal = apps.refusal(message.method, message.params, "modern")
        if refusal is not None:
            return error(refusal, message.id)
        message = replace(message, params=apps.strip_request(message.method, message.params))
    credentials = service.forwarded(upstream, request)
    if describes(head, message, upstream):
        return await _discover(head, message, upstream, profile, credentials)
    bond, sent, tasks = None, message, None
    connector = await upstream.connector("modern", credentials)
    operation.of(request).upstream_era = connector.dialect.era
    if connector.dialect.era == "legacy":
        rejection = unserved(service, head, upstream, request, message)
        if rejection is not None:
            return error(rejection, message.id)
        if message.method == "server/discover":
            return await _discover(head, message, upstream, profile, credentials)
        if message.method in MAY_ASK and "requestState" in message.params:
            principal = service.principal(head, request.headers)
            return await _retried(service, head.route, principal, message)
    else:
        found = for_upstream(service, head, upstream, request, message)
        if isinstance(found, Rejection):
            return error(found, message.id)
        sent, tasks = found
        if tasks is not None and upstream.http is None:  # a replica's process, with the tasks that it has
            there = await _of_process(service, request, head, message, tasks.endpoint, headless=headless)
            if there is not None:
                return there
            tasks = replace(tasks, endpoint=service.state.mail.replica)
        if message.method in MAY_ASK and (bond := service.bond(head, upstream, request)) is not None:
            params = bond.to_upstream(sent.params)
            if isinstance(params, Rejection):
                return error(params, message.id)
            sent = replace(sent, params=params)
    call = replace(call_of(service, request, head, sent, upstream, headless), profile=profile)
    call = replace(call, endpoint=tasks.endpoint) if tasks is not None else call
    exchange = service.exchange(call)
    exchange.start(upstream.leg)
    to = service.showing(replace(addressee_of(message), tasks=tasks), profile)
    return Rounds(service, head.route, exchange, to, bond=bond)


async def _of_process(
    service: Service, request: Caller, head: Head, message: jsonrpc.Request, replica: str, *, headless: bool
) -> Message | Rounds | Followed | None:
    """What answers a request for the tasks of a process at another replica, None where it is at this one. A listener
    gets no error for tasks whose process has gone: they are not agreed to."""
    try:
        return await _at_another(service, head, message, replica)
    except TaskGone:
        if message.method != LISTEN:
            raise
    rest = task_ids.listening_to(message.params, [], alone=False)
    return await _start(service, request, head, replace(message, params=rest), headless=headless)


def routed_by(message: jsonrpc.Request) -> str | None:
    """What a request is routed by; of a listener it is no name, but a task that it asks for."""
    return task_ids.name_of(message.method, message.params) or headers.name_of(message.method, message.params)


def _name_for(message: jsonrpc.Request, sent: jsonrpc.Request, request: web.BaseRequest) -> str | None:
    """What an upstream gets as `Mcp-Name`, which of a task may have been left out; None where it is what came."""
    if not task_ids.names_task(message.method) or (sent is message and HEADER_NAME in request.headers):
        return None
    try:
        return headers.encode(headers.name_of(sent.method, sent.params) or "")
    except ValueError as error:
        raise ClientFault(f"Invalid params: {error}", code=INVALID_PARAMS) from error


def unserved(
    service: Service, head: Head, upstream: Upstream, request: Caller, message: jsonrpc.Request
) -> Rejection | None:
    """Why a legacy upstream gets no request of this kind. The tasks of 2025-11-25 and of the modern extension are
    different protocols; but a task that is at none of several upstreams is first of all not known."""
    is_task = task_ids.names_task(message.method)
    if is_task and head.route.has_several:
        found = for_upstream(service, head, upstream, request, message)
        if isinstance(found, Rejection):
            return found
    return headers.unknown_method("" if is_task else message.method)


async def _from_cache(
    service: Service, request: Caller, head: Head, upstream: Upstream, message: jsonrpc.Request, effective: Effective
) -> Message | None:
    """The answer to a request with its effective capabilities, where the cache has it or gets it."""
    if not may_keep(service, head.route, upstream, message.method) or describes(head, message, upstream):
        return None
    if not effective.profile.shows_apps and apps.refusal(message.method, message.params, "modern") is not None:
        return None
    connector = await upstream.connector("modern", service.forwarded(upstream, request))
    operation.of(request).upstream_era = connector.dialect.era
    if message.method == "server/discover" and connector.dialect.era == "legacy":
        return None
    call = call_of(service, request, head, message, upstream, headless=False)
    tasks = service.task_ids(head, upstream, request, "modern") if connector.dialect.era == "modern" else None
    to = service.showing(replace(addressee_of(message), tasks=tasks), effective.profile)
    wanted = Wanted(upstream, call, to, effective)
    return await from_cache(service, request, head.route, connector, wanted, meta_of(message.params))


def _with_trace(
    service: Service, upstream: Upstream, message: jsonrpc.Request, forwarded: Credentials
) -> tuple[Credentials, jsonrpc.Request, Traced | None]:
    """The headers and the message of a request that is passed on, and its span, if it is traced: then both say so, else
    what came goes on, byte for byte, but for baggage that is not wanted."""
    meta = meta_of(message.params)
    span = upstream.counting.span(message.method)
    if span is not None:
        forwarded, told = carrying(span, forwarded, meta)
    elif BAGGAGE in meta and not service.settings.tracing.baggage:
        told = {name: value for name, value in meta.items() if name != BAGGAGE}
    else:
        return forwarded, message, None
    return forwarded, replace(message, params={**message.params, "_meta": told}), span


def told_of(service: Service, head: Head, message: jsonrpc.Request) -> tuple[jsonrpc.Request, Effective]:
    """The request with the effective capabilities in it, the very same where they are the declared ones; and what holds
    for its client."""
    meta = meta_of(message.params)
    declared = meta[META_CLIENT_CAPABILITIES]
    effective = service.effective(head.route, head.client, declared)
    if effective.capabilities is declared:
        return message, effective
    meta = {**meta, META_CLIENT_CAPABILITIES: effective.capabilities}
    return replace(message, params={**message.params, "_meta": meta}), effective


def for_upstream(
    service: Service, head: Head, upstream: Upstream, request: Caller, message: jsonrpc.Request
) -> tuple[jsonrpc.Request, TaskIds | None] | Rejection:
    """The request with the tasks in it as the upstream calls them, and how the answer is to name them; the very same
    where ids pass as they are."""
    tasks = service.task_ids(head, upstream, request, "modern")
    if tasks is None:
        return message, None
    capabilities = meta_of(message.params)[META_CLIENT_CAPABILITIES]
    return task_ids.undeclared(message.method, message.params, capabilities) or tasks.of(message)


async def _at_another(service: Service, head: Head, message: jsonrpc.Request, process: str) -> Followed | None:
    """A request about tasks of a process, named after its replica, as it goes on there; None where that is this one's,
    or none is named. Raises `TaskGone`."""
    mail = service.state.mail
    if not process or mail.made(process):
        return None
    replica = mail.elsewhere(process)
    if replica is None:  # nobody but this replica is left
        raise TaskGone
    return await elsewhere.task(service, replica, head, message, addressee_of(message))


async def _retried(
    service: Service, route: Route, principal: str, message: jsonrpc.Request
) -> Message | Rounds | Followed:
    """At the replica where the call waits."""
    replica = service.state.mail.elsewhere(waits_in(service, route, message.params))
    if replica is None:
        return retried(service, route, principal, message)
    return await retry(service, replica, route, principal, message, addressee_of(message))


def retried(service: Service, route: Route, principal: str, message: jsonrpc.Request) -> Message | Rounds:
    """The retry's own progress token, log level and profile replace the earlier ones."""
    parked = resumed(service, route, principal, message.method, message.params)
    if isinstance(parked, Rejection):
        return error(parked, message.id)
    exchange, meta = parked.exchange, meta_of(message.params)
    profile = service.effective(route, client_of(principal), meta[META_CLIENT_CAPABILITIES]).profile
    exchange.call = replace(exchange.call, log_level=meta.get(META_LOG_LEVEL), profile=profile)
    to = service.showing(addressee_of(message), profile)
    asked = parked.asked if profile.shows_apps else apps.strip_asks(parked.asked)  # it may have shown Apps before
    return Rounds(service, route, exchange, to, asked, parked.round + 1, parked.cursor)


def addressee_of(message: jsonrpc.Request) -> Addressee:
    params = {k: v for k, v in message.params.items() if k != "_meta"}
    return Addressee(_DIALECT, message.id, message.method, params, progress_token(meta_of(message.params)))


def describes(head: Head, message: jsonrpc.Request, upstream: Upstream) -> bool:
    """Whether it asks for a description that is given here: one that is the same for every caller, or is added to."""
    is_ours = not upstream.settings.forward_headers or head.route.apps is not None
    return message.method == "server/discover" and is_ours


async def _discover(
    head: Head, message: jsonrpc.Request, upstream: Upstream, profile: Profile, credentials: tuple[tuple[str, str], ...]
) -> Message:
    """Answered whatever the upstream's state: a probe that fails makes dual-era hosts fall back, or give up."""
    credentials = credentials if upstream.settings.forward_headers else ()
    described = await upstream.describe(DISCOVER_S, credentials)
    description, age_s = described or (Description(_DIALECT), 0.0)
    is_deaf = description.dialect.era == "legacy" and upstream.legacy.is_deaf
    result = discover_result(description, routing.synthesised_info(head.route), age_s, is_deaf=is_deaf)
    lists_apps = await upstream.lists_apps(head.route, profile, credentials)
    return Message(jsonrpc.response(message.id, for_host(result, profile, lists_apps=lists_apps)), last=True)
