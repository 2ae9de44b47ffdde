"""A legacy client's `resources/subscribe` over an upstream that has only listen streams.

Specification: 2025-11-25 server/resources (Subscriptions); 2026-07-28 basic/patterns/subscriptions. The session's set
of URIs is the filter of the listen stream behind its standalone stream; a change is answered once the upstream has
acknowledged it.
"""

import asyncio

from gateway.exchange import Exchange
from gateway.front.service import Service
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


async def subscribed(service: Service, owner: FrontSession) -> tuple[str, ...]:
    """What the session has subscribed to."""
    value = await service.store.get(_key(owner))
    return tuple(jsonrpc.loads(value)) if value is not None else ()


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
    async with service.locks.of(owner.id):
        before = await subscribed(service, owner)
        uris = tuple(known for known in before if known != uri)
        if message.method == "resources/subscribe":
            if len(uris) >= MAX_SUBSCRIPTIONS:
                return error(
                    Rejection(INVALID_PARAMS, f"a session may have {MAX_SUBSCRIPTIONS} subscriptions"), message.id
                )
            uris += (uri,)
        stream = service.exchanges.standalone(owner.id)
        if stream is not None and uris != before and not await _acknowledged(stream, uris):
            stream.refilter({"notifications": subscriptions.everything(before)})
            refused = Rejection(INVALID_PARAMS, "the server does not honour this subscription", {"uri": uri})
            return error(refused, message.id)
        await service.store.set(_key(owner), jsonrpc.dumps(list(uris)), service.settings.sessions.ttl_s)
    return Message(jsonrpc.response(message.id, {}), last=True)


async def _acknowledged(stream: Exchange, uris: tuple[str, ...]) -> bool:
    """Whether the upstream honours every one of `uris` on its new stream."""
    agreed = stream.refilter({"notifications": subscriptions.everything(uris)})
    done, _ = await asyncio.wait({agreed}, timeout=ACKNOWLEDGED_S)
    if not done or agreed.cancelled():
        return False
    return set(uris) <= set(agreed.result().get("resourceSubscriptions") or ())


def _key(owner: FrontSession) -> str:
    return f"subscriptions:{owner.id}"
