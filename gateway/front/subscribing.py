"""A legacy client's `resources/subscribe` over an upstream that has only listen streams.

Specification: 2025-11-25 server/resources (Subscriptions); 2026-07-28 basic/patterns/subscriptions. The session's set
of URIs is the filter of the listen stream behind its standalone stream, which another replica may read; a change is
answered once the upstream has acknowledged it.
"""

import asyncio
import contextlib

from gateway.exchange import Exchange
from gateway.front.service import Service
from gateway.stores.changes import STREAM, URI
from gateway.stores.mail import ReplicaGone
from gateway.upstreams.pool import Upstream
from policies import jsonrpc
from policies.delivery import Message, error
from policies.errors import Rejection
from policies.exchange import Call, FrontSession
from policies.mcp import INVALID_PARAMS, METHOD_NOT_FOUND
from policies.translation import subscriptions

SUBSCRIPTIONS = ("resources/subscribe", "resources/unsubscribe")

ACKNOWLEDGED_S = 5.0
"""How long an acknowledgement may take; clients give a request 10 s and more."""

DESCRIBE_S = 5.0
MAX_SUBSCRIPTIONS = 1000
"""URIs of one session: they travel with each listen request, and stay well below a request's default bound."""


async def subscribed(service: Service, session: str) -> tuple[str, ...]:
    """What the session has subscribed to."""
    changes = await service.state.changes.fresh(session)
    return tuple(name.removeprefix(URI) for name in changes if name.startswith(URI))


async def subscribe(service: Service, upstream: Upstream, call: Call, message: jsonrpc.Request) -> Message:
    """Answers either request, which came in the session that owns `call`."""
    owner = call.owner
    assert owner is not None
    uri = message.params.get("uri")
    if not isinstance(uri, str):
        return error(Rejection(INVALID_PARAMS, "params.uri must be a string"), message.id)
    described = await upstream.describe(DESCRIBE_S, call.forwarded)
    resources = described[0].capabilities.get("resources") if described is not None else None
    if not isinstance(resources, dict) or resources.get("subscribe") is not True:
        return error(Rejection(METHOD_NOT_FOUND, f"{message.method} is not offered here"), message.id)
    wanted = message.method == "resources/subscribe"
    async with service.locks.of(owner.id):
        before = await subscribed(service, owner.id)
        if wanted and len({*before, uri}) > MAX_SUBSCRIPTIONS:
            return error(Rejection(INVALID_PARAMS, f"a session may have {MAX_SUBSCRIPTIONS} subscriptions"), message.id)
        if (uri in before) != wanted:
            await _put(service, owner, uri, wanted=wanted)
            if not await _honoured(service, owner, uri, wanted=wanted):
                await _put(service, owner, uri, wanted=not wanted)
                refused = Rejection(INVALID_PARAMS, "the server does not honour this subscription", {"uri": uri})
                return error(refused, message.id)
    return Message(jsonrpc.response(message.id, {}), last=True)


async def refilter(service: Service, session: str, uri: str, *, wanted: bool) -> bool:
    """Gives the session's stream at this replica, if it is here, the filter of what is subscribed to now; whether the
    upstream honours it. Where not, the change that was made by `uri` is taken back there."""
    stream = service.exchanges.standalone(session)
    if stream is None:
        return True
    uris = await subscribed(service, session)
    if await _acknowledged(stream, uris):
        return True
    before = tuple(one for one in uris if one != uri) if wanted else (*uris, uri)
    stream.refilter({"notifications": subscriptions.everything(before)})
    return False


async def _honoured(service: Service, owner: FrontSession, uri: str, *, wanted: bool) -> bool:
    """Whether the upstream honours a change that was made, at whichever replica the session's stream is read."""
    mail = service.state.mail
    if service.exchanges.standalone(owner.id) is None:
        stream = (await service.state.changes.of(owner.id)).get(STREAM, b"").decode()
        replica = mail.elsewhere(stream)
        if replica is not None:
            body = jsonrpc.dumps([owner.id, uri, wanted])
            with contextlib.suppress(ReplicaGone):
                return await mail.ask(replica, "refilter", body, ACKNOWLEDGED_S) == b"1"
    return await refilter(service, owner.id, uri, wanted=wanted)


async def _put(service: Service, owner: FrontSession, uri: str, *, wanted: bool) -> None:
    ttl_s = service.settings.sessions.ttl_s
    await service.state.changes.put(owner.id, URI + uri, b"1" if wanted else None, ttl_s)


async def _acknowledged(stream: Exchange, uris: tuple[str, ...]) -> bool:
    """Whether the upstream honours every one of `uris` on its new stream."""
    agreed = stream.refilter({"notifications": subscriptions.everything(uris)})
    done, _ = await asyncio.wait({agreed}, timeout=ACKNOWLEDGED_S)
    if not done or agreed.cancelled():
        return False
    return set(uris) <= set(agreed.result().get("resourceSubscriptions") or ())
