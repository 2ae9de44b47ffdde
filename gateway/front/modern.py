"""Requests of modern clients: judged, then spliced to a modern upstream or carried by an exchange.

Specification: 2026-07-28 basic/transports/streamable-http, server/discover. The order of the rungs is what the official
suite and both SDKs accept.
"""

from aiohttp import web

from gateway.exchange import Exchange
from gateway.front import reply
from gateway.front.drive import drive_modern
from gateway.front.service import Service
from gateway.front.splice import splice
from gateway.upstreams.pool import Upstream
from policies import headers, jsonrpc, routing
from policies.admission import Head, meta_of, progress_token
from policies.delivery import Addressee, Message
from policies.errors import Fault, Rejection, UpstreamFault
from policies.exchange import Call, Dialect
from policies.mcp import (
    HEADER_METHOD,
    HEADER_NAME,
    HEADER_PARAM,
    HEADER_VERSION,
    INVALID_PARAMS,
    INVALID_REQUEST,
    LATEST_MODERN,
    LOG_LEVELS,
    META_CLIENT_CAPABILITIES,
    META_CLIENT_INFO,
    META_LOG_LEVEL,
    META_PROGRESS_TOKEN,
    META_SERVER_INFO,
    META_SUBSCRIPTION_ID,
    META_VERSION,
    READS,
    REMOVED_METHODS,
)
from policies.translation.discover import Description, discover_result

DISCOVER_S = 2.0
"""How long `server/discover` waits for an upstream that has never described itself: clients give a probe 5 to 10 s."""

_DIALECT = Dialect("modern", LATEST_MODERN)
_OWN_META = frozenset(
    {META_VERSION, META_CLIENT_INFO, META_CLIENT_CAPABILITIES, META_LOG_LEVEL, META_PROGRESS_TOKEN}
    | {META_SUBSCRIPTION_ID, META_SERVER_INFO}
)


async def serve_unread(service: Service, request: web.BaseRequest, head: Head, raw: bytes) -> web.StreamResponse | None:
    """Splices on the headers alone, where the upstream that they name verifies them itself (`verifies_headers`): not a
    byte of the body is parsed. None where this request is not of that kind."""
    method = request.headers.get(HEADER_METHOD)
    if head.version != LATEST_MODERN or method is None or not (head.accept.json and head.accept.sse):
        return None
    try:
        name = headers.decode(request.headers.get(HEADER_NAME, ""))
    except ValueError:
        return None
    if any(len(request.headers.getall(line, ())) > 1 for line in (HEADER_VERSION, HEADER_METHOD, HEADER_NAME)):
        return None
    upstream = service.upstream_for(head.route, method, name or None, request.headers)
    if not upstream.settings.verifies_headers or method == "server/discover":
        return None
    try:
        if (await upstream.connector("modern")).dialect.era != "modern":
            return None
        return await splice(service, request, raw, method, upstream, service.forwarded(upstream, request))
    except UpstreamFault as fault:
        return await reply.failed(request, fault.rejection(), jsonrpc.readable_id(raw))


async def serve(
    service: Service, request: web.BaseRequest, head: Head, raw: bytes, message: jsonrpc.Message
) -> web.StreamResponse:
    """Answers one POST of a modern client."""
    if isinstance(message, jsonrpc.Notification):
        return reply.accepted()  # the core has none over HTTP; nothing is known to be done with one
    if isinstance(message, jsonrpc.Response):
        return reply.rejected(Rejection(INVALID_REQUEST, f"{LATEST_MODERN} has no responses from clients", http=400))
    rejection = _judge(request, raw, message)
    if rejection is not None:
        return reply.rejected(rejection, message.id)
    try:
        return await _serve(service, request, head, raw, message)
    except Fault as fault:
        return await reply.failed(request, fault.rejection(), message.id)


def _judge(request: web.BaseRequest, raw: bytes, message: jsonrpc.Request) -> Rejection | None:
    """The envelope: what headers and body say, each alone and together."""
    duplicate = jsonrpc.duplicate_member(raw)
    if duplicate is not None:
        return Rejection(INVALID_REQUEST, f"member {duplicate!r} is given twice", http=400)
    rejection = (
        headers.check_version(request.headers, message)
        or headers.check_envelope(message)
        or (headers.unknown_method(message.method) if message.method in REMOVED_METHODS else None)
        or headers.check_name(request.headers, message)
    )
    level = meta_of(message.params).get(META_LOG_LEVEL)
    if rejection is None and level is not None and level not in LOG_LEVELS:
        return Rejection(INVALID_PARAMS, f"_meta {META_LOG_LEVEL} is none of {', '.join(LOG_LEVELS)}", http=400)
    return rejection


async def _serve(
    service: Service, request: web.BaseRequest, head: Head, raw: bytes, message: jsonrpc.Request
) -> web.StreamResponse:
    upstream = service.upstream_for(
        head.route, message.method, headers.name_of(message.method, message.params), request.headers
    )
    if message.method == "server/discover" and not upstream.settings.forward_headers:
        return await _discover(request, head, message, upstream)
    forwarded = service.forwarded(upstream, request)
    connector = await upstream.connector("modern")
    if connector.dialect.era == "modern":
        if head.accept.json and head.accept.sse:
            try:
                return await splice(service, request, raw, message.method, upstream, forwarded)
            except UpstreamFault as fault:
                if not fault.contradiction or upstream.settings.era != "auto":
                    raise
                await upstream.forget_era()
                if message.method not in READS:
                    raise
    else:
        # the tasks of 2025-11-25 and of the modern extension are different protocols
        rejection = headers.unknown_method("" if message.method.startswith("tasks/") else message.method)
        if rejection is not None:
            return reply.rejected(rejection, message.id)
        if message.method == "server/discover":
            return await _discover(request, head, message, upstream)
    exchange = Exchange(_call(service, request, head, message, forwarded))
    exchange.start(upstream.leg)
    params = {k: v for k, v in message.params.items() if k != "_meta"}
    token = progress_token(meta_of(message.params))
    to = Addressee(_DIALECT, message.id, message.method, params, token, exchange.id)
    return await drive_modern(service, request, exchange, to, head.accept)


def _call(
    service: Service,
    request: web.BaseRequest,
    head: Head,
    message: jsonrpc.Request,
    forwarded: tuple[tuple[str, str], ...],
) -> Call:
    meta = meta_of(message.params)
    info = meta.get(META_CLIENT_INFO)
    return Call(
        message.method,
        {k: v for k, v in message.params.items() if k != "_meta"},
        {k: v for k, v in meta.items() if k not in _OWN_META},
        meta[META_CLIENT_CAPABILITIES],
        info if isinstance(info, dict) else None,
        service.principal(head.route, request.headers),
        _DIALECT,
        meta.get(META_LOG_LEVEL),
        progress_token(meta) is not None,
        None,
        tuple((k, v) for k, v in request.headers.items() if k.lower().startswith(HEADER_PARAM.lower())),
        forwarded,
    )


async def _discover(
    request: web.BaseRequest, head: Head, message: jsonrpc.Request, upstream: Upstream
) -> web.StreamResponse:
    """Answered whatever the upstream's state: a probe that fails makes dual-era hosts fall back, or give up."""
    described = await upstream.describe(DISCOVER_S)
    description, age_s = described or (Description(_DIALECT), 0.0)
    result = discover_result(description, routing.synthesised_info(head.route), age_s)
    return await reply.single(request, Message(jsonrpc.response(message.id, result), last=True), head.accept)
