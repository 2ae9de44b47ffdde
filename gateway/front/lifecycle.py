"""Sessions of legacy clients: how one is opened, whose it is, where it is to be reached, and how it ends.

Specification: 2025-11-25 basic/lifecycle, basic/transports (Session Management).
"""

import secrets
import time
from dataclasses import replace

from aiohttp import web

from gateway.front import operation, reply
from gateway.front.elsewhere import Pinned
from gateway.front.service import Caller, Service
from gateway.upstreams.base import Connector
from gateway.upstreams.legacy import LegacyConnector
from gateway.upstreams.pool import Upstream
from policies import jsonrpc, routing, session
from policies.admission import Head, legacy_version
from policies.delivery import Message
from policies.errors import ClientFault, Fault, Rejection, UpstreamFault
from policies.exchange import Dialect, FrontSession
from policies.mcp import (
    HEADER_SESSION,
    INVALID_PARAMS,
    INVALID_REQUEST,
    LATEST_LEGACY,
    LEGACY_VERSIONS,
    Json,
)
from policies.profiles import Effective
from policies.translation.discover import Description, client_capabilities, for_host, initialize_result

DESCRIBE_S = 10.0
"""How long `initialize` waits for a modern upstream's description. Clients give `initialize` 10 s and more."""


async def owner_of(service: Service, request: Caller, head: Head) -> FrontSession | Rejection:
    """The session of this request: 400 without a token or with an unknown version, 404 for any token that is not
    this caller's live one."""
    token = request.headers.get(HEADER_SESSION)
    if token is None:
        return Rejection(INVALID_REQUEST, f"{HEADER_SESSION} is missing; start with initialize", http=400)
    found = await service.session(head.route, token, service.principal(head, request.headers))
    if not isinstance(found, Rejection):
        operation.of(request).session = found.id
    return legacy_version(head.version) or found


async def initialize(
    service: Service, request: web.BaseRequest, head: Head, message: jsonrpc.Request
) -> web.StreamResponse:
    """Answers `initialize`: the session's token stands in a header."""
    try:
        opened = await open_session(service, request, head, message)
        token = service.seal(opened[0])
        service.metrics.sessions_opened.add()
        operation.of(request).session = opened[0].id
    except Fault as fault:
        return await reply.failed(request, fault.rejection(), message.id)
    result = Message(jsonrpc.response(message.id, opened[1]), last=True)
    return await reply.single(request, result, head.accept, **{HEADER_SESSION: token})


def new_session(
    service: Service, request: Caller, head: Head, message: jsonrpc.Request
) -> tuple[Effective, FrontSession]:
    """The session that an `initialize` asks for, before any upstream knows of it, and what holds in it. Raises
    `ClientFault`."""
    asked, declared = message.params.get("protocolVersion"), message.params.get("capabilities")
    info = message.params.get("clientInfo")
    if not isinstance(asked, str) or not isinstance(declared, dict) or not isinstance(info, dict):
        raise ClientFault(
            "initialize needs params.protocolVersion (string), params.capabilities and params.clientInfo (objects)",
            code=INVALID_PARAMS,
            http=400,
        )
    now_s, effective = int(time.time()), service.effective(head.route, head.client, declared)
    return effective, FrontSession(
        secrets.token_hex(12),
        session.route_key(head.route),
        asked if asked in LEGACY_VERSIONS else LATEST_LEGACY,
        session.bounded_info(info),
        effective.capabilities,
        service.principal(head, request.headers),
        now_s,
        now_s + service.settings.sessions.ttl_s,
    )


async def open_session(
    service: Service, request: Caller, head: Head, message: jsonrpc.Request
) -> tuple[FrontSession, Json]:
    """A session, and the `initialize` result that starts it. Whatever version is asked for, one is offered."""
    effective, opened = new_session(service, request, head, message)
    upstream = service.upstream_for(head.route, "initialize", None)
    noted = operation.of(request)
    noted.goes_to(upstream, "initialize", None)
    capabilities, profile = effective.capabilities, effective.profile
    version, now_s = opened.version, opened.issued_s
    info = message.params["clientInfo"]
    credentials = service.forwarded(upstream, request)

    async def describe(connector: Connector) -> Description:
        nonlocal opened
        noted.upstream_era = connector.dialect.era
        if isinstance(connector, LegacyConnector):
            told = client_capabilities(capabilities, "legacy", Dialect("legacy", version))
            inner, description = await connector.sessions.open(told, info, version, credentials)
            opened = replace(opened, upstreams={upstream.name: inner})
            upstream.hosts.note(now_s, profile, told, description.capabilities)
            return description
        described = await upstream.describe(DESCRIBE_S, credentials)
        if described is None:  # a session is told its capabilities once: none is worse than to try again
            raise UpstreamFault(f"upstream {upstream.name} does not describe itself", http=503)
        return described[0]

    # an `initialize` that a server of the other era refuses has opened nothing, and is tried again after a new probe
    description = await upstream.paired("legacy", describe, again=True, credentials=credentials)
    result = initialize_result(description, version, routing.synthesised_info(head.route))
    return opened, for_host(result, profile, lists_apps=await upstream.lists_apps(head.route, profile, credentials))


async def pinned_at(
    service: Service, caller: Caller, head: Head, upstream: Upstream, owner: FrontSession
) -> Pinned | None:
    """The session, where it is only to be reached through another replica, which has what it runs on: a process of a
    command, or a stream. A stream, or a process of its own, has ended with its replica; of common processes each
    replica has an equal, and one takes the session over."""
    mail, sessions = service.state.mail, upstream.legacy.sessions
    found = await sessions.find(owner)
    replica = mail.elsewhere(upstream.session_transport.holder(found.id or "")) if found is not None else None
    is_common = upstream.http is None and upstream.settings.scope == "shared"
    if replica is not None and not await mail.lives(replica):
        renewed = await sessions.renewed(owner, found, (), {}) if is_common else None
        replica = mail.elsewhere(renewed.id or "") if renewed is not None else None
    return Pinned(service, replica, head.route, owner, caller, is_common) if replica is not None else None


async def delete(service: Service, request: web.BaseRequest, head: Head) -> web.StreamResponse:
    """DELETE: the session ends here and at its upstreams; the token is dead from now on."""
    owner = await owner_of(service, request, head)
    if isinstance(owner, Rejection):
        return reply.rejected(owner)
    await end_everywhere(service, request, head, owner)
    return web.Response(status=200)


async def end_everywhere(service: Service, request: Caller, head: Head, owner: FrontSession) -> None:
    """The session ends here, and at its upstreams."""
    await service.end_session(owner)
    for name in {name for _, name in head.route.references()}:
        upstream = service.upstreams[name]
        pinned = await pinned_at(service, request, head, upstream, owner)
        if pinned is None:
            await upstream.legacy.sessions.end(owner, service.forwarded(upstream, request))
        elif (there := await upstream.legacy.sessions.find(owner)) is not None:
            await service.state.mail.tell(pinned.replica, "delete", jsonrpc.dumps([name, there.id, there.version]))
