"""The rungs of a request of 2025-11-25 and before, as `gateway/front/legacy.py` and `gateway/front/lifecycle.py` climb
them.
"""

import time
from typing import Final

from gateway.explaining.ahead import (
    Asking,
    bridged,
    stripped,
    tell_access,
    tell_cache,
    tell_holds,
    tell_profile,
    tell_upstream,
)
from gateway.front import legacy as front
from gateway.front.caching import Wanted
from gateway.front.lifecycle import new_session, owner_of
from gateway.front.reply import status_of
from gateway.front.subscribing import SUBSCRIPTIONS
from gateway.upstreams.base import Connector
from policies import apps, jsonrpc, session
from policies.admission import legacy_version, meta_of
from policies.delivery import Addressee
from policies.errors import Rejection
from policies.exchange import FrontSession
from policies.headers import name_of
from policies.mcp import HEADER_SESSION, LATEST_LEGACY, LEGACY_VERSIONS, LISTEN

_NO_KEYS: Final = "not told: its id was sealed by the running process, which has keys of its own"


async def explain(asking: Asking, message: jsonrpc.Message | list[jsonrpc.Message | Rejection]) -> None:
    ladder = asking.ladder
    if isinstance(message, jsonrpc.Request) and message.method == "initialize":
        await _initialize(asking, message)
        return
    owner = await _owner(asking)
    if isinstance(message, list):
        why = front.refused_batch(asking.service, owner, message)
        if why is not None:
            ladder.ident = None
            ladder.refuse("envelope", why)
        ladder.passes("envelope", "each message of the batch is judged as if it had come by itself")
        return
    ladder.passes("envelope", "fits the session")
    ladder.passes("agreement", "not looked at: no header repeats the body in this era")
    if isinstance(message, jsonrpc.Request):
        await _request(asking, owner, message)
    else:
        ladder.end(202, "taken, and handed on once where somebody waits for it")


async def without_body(asking: Asking, method: str, *, resumes: bool) -> None:
    """GET and DELETE in a session."""
    await _owner(asking)
    ladder = asking.ladder
    if method == "DELETE":
        ladder.passes("way", "the session ends here and at its upstreams")
        ladder.asks = ", ".join(sorted({name for _, name in asking.head.route.references()}))
        return
    tell_access(asking)
    upstream = asking.service.upstream_for(asking.head.route, LISTEN, None)
    connector = await upstream.known_connector("legacy")
    tell_upstream(asking, upstream, connector, LISTEN, None, None)
    if resumes:
        ladder.open("way", "the rest of the stream that Last-Event-ID names, if it is kept")
    else:
        ladder.passes("way", f"the standalone stream: {bridged('legacy', connector)}")
        ladder.asks = upstream.name


async def _owner(asking: Asking) -> FrontSession:
    ladder, head, service = asking.ladder, asking.head, asking.service
    lost = not asking.live and not service.settings.keys and HEADER_SESSION in asking.caller.headers
    if asking.assumed or lost:
        why = legacy_version(head.version)
        if why is not None:
            ladder.refuse("session", why)
        tell = ladder.open if lost else ladder.passes
        tell("session", _NO_KEYS if lost else "assumed: one of this caller's that declared no capabilities")
        now_s, version = int(time.time()), head.version if head.version in LEGACY_VERSIONS else None
        principal = service.principal(head, asking.caller.headers)
        key, ends_s = session.route_key(head.route), now_s + service.settings.sessions.ttl_s
        return FrontSession("", key, version or LATEST_LEGACY, {}, {}, principal, now_s, ends_s)
    owner = await owner_of(service, asking.caller, head)
    if isinstance(owner, Rejection):
        ladder.refuse("session", owner)
    left_s = max(0, owner.expires_s - int(time.time()))
    ladder.passes("session", f"{owner.id}, of {owner.version}", ends_in_s=left_s)
    return owner


async def _initialize(asking: Asking, message: jsonrpc.Request) -> None:
    ladder, service, head, caller = asking.ladder, asking.service, asking.head, asking.caller
    ladder.passes("session", "one is asked for")
    asking.at = "envelope"
    effective, opened = new_session(service, caller, head, message)
    service.seal(opened)
    ladder.passes("envelope", f"{opened.version} is offered")
    ladder.passes("agreement", "not looked at: initialize selects its era whatever headers say")
    tell_profile(asking, effective, message.params["capabilities"])
    tell_access(asking)
    upstream = service.upstream_for(head.route, "initialize", None)
    connector = await upstream.known_connector("legacy")
    tell_upstream(asking, upstream, connector, "initialize", None, None)
    ladder.passes("cache", "not asked: answers to initialize are never kept")
    ladder.passes("request", "fits")
    _opening(asking, connector)
    tell_holds(asking, upstream, "initialize", None, [stripped(effective, "initialize")])


def _opening(asking: Asking, connector: Connector | None) -> None:
    if connector is None:
        asking.ladder.open("way", "a session there is opened where it has sessions, else its description is asked for")
    elif connector.dialect.era == "legacy":
        asking.ladder.passes("way", "a session of the upstream's is opened for this one")
    else:
        asking.ladder.passes("way", "its description is the answer, bridge, legacy to modern; no session there")


async def _request(asking: Asking, owner: FrontSession, message: jsonrpc.Request) -> None:
    """A request in a session: errors are those of a live one."""
    ladder, service, head, caller = asking.ladder, asking.service, asking.head, asking.caller
    if message.method == "ping":
        ladder.passes("way", "answered here")
        ladder.end(200, "an empty result")
    routed_by = front.routed_by(message)
    upstream = service.upstream_for(head.route, message.method, routed_by)
    effective = service.of_session(owner)
    call = front.call_of(service, caller, upstream, owner, message.method, message.params)
    if not effective.profile.shows_apps:
        _refuse(asking, "profile", apps.refusal(message.method, message.params, "legacy"))
    tell_profile(asking, effective, owner.capabilities)
    tell_access(asking)
    connector = await upstream.known_connector("legacy")
    tell_upstream(asking, upstream, connector, message.method, routed_by, None)
    if connector is not None and connector.dialect.era == "modern" and _is_ours(asking, message):
        return
    to = Addressee(call.front, message.id, message.method, call.params)
    kept = await tell_cache(asking, connector, Wanted(upstream, call, to, effective), meta_of(message.params))
    if kept is not None:
        ladder.passes("way", "answered from the cache")
        ladder.end(200, f"what the cache holds ({kept})")
    if connector is not None and connector.dialect.era == "legacy":
        known = service.task_ids(head, upstream, caller, "legacy")
        found = known.of(message) if known is not None else None
        _refuse(asking, "request", found if isinstance(found, Rejection) else None)
    hidden = connector.hides_at_hand(call) if connector is not None else None
    if hidden:
        _refuse(asking, "request", apps.unknown_tool(message.params.get("name")))
    asks_first = hidden is None and message.method == "tools/call" and not effective.profile.shows_apps
    ladder.passes(
        "request", "tools/list is asked first: a tool for interfaces alone is refused" if asks_first else "fits"
    )
    _way(asking, connector, message.method)
    transforms = [stripped(effective, message.method), "ids and progress tokens are the gateway's own there"]
    tell_holds(asking, upstream, message.method, name_of(message.method, message.params), transforms)


def _way(asking: Asking, connector: Connector | None, method: str) -> None:
    if connector is None:
        asking.ladder.open("way", "in a session where the upstream has them, else bridge, legacy to modern")
    elif method in SUBSCRIPTIONS and connector.dialect.era == "modern":
        asking.ladder.passes("way", "a listen stream of the upstream's is asked for it")
    else:
        asking.ladder.passes("way", bridged("legacy", connector))


def _is_ours(asking: Asking, message: jsonrpc.Request) -> bool:
    """Whether the gateway answers it in place of an upstream without sessions."""
    if message.method != "logging/setLevel":
        return False
    _refuse(asking, "request", front.refused_level(message))
    asking.ladder.passes("request", "kept in the session: the upstream is told with each call")
    asking.ladder.passes("way", "answered here")
    asking.ladder.answer = {"status": 200, "said": "an empty result"}
    return True


def _refuse(asking: Asking, rung: str, why: Rejection | None) -> None:
    if why is not None:
        asking.ladder.refuse(rung, why, status_of(why, in_session=True))
