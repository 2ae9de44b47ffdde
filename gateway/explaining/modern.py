"""The rungs of a request of 2026-07-28, as `gateway/front/modern.py` and `gateway/front/unread.py` climb them."""

from dataclasses import replace

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
from gateway.front import modern as front
from gateway.front import unread as front_unread
from gateway.front.caching import Wanted
from gateway.front.calls import OF_TOOLS, call_of
from gateway.upstreams.base import Connector
from gateway.upstreams.pool import Upstream
from policies import apps, headers, jsonrpc
from policies.admission import meta_of
from policies.errors import Rejection
from policies.mcp import (
    HEADER_MISMATCH,
    INVALID_REQUEST,
    LATEST_MODERN,
    LISTEN,
    MAY_ASK,
    META_CLIENT_CAPABILITIES,
)
from policies.profiles import Effective

_SEALED = "requestState is sealed to this caller"
_TASKS = "ids of tasks are sealed"


async def unread(asking: Asking) -> bool:
    """Whether it goes on unread, which is told then."""
    found = front_unread.named(asking.service, asking.caller, asking.head)
    if found is None:
        return False
    said, upstream = found
    (method, name), service, head = said, asking.service, asking.head
    connector = await upstream.known_connector("modern")
    if connector is not None and connector.dialect.era != "modern":
        return False
    tasks, bond = front_unread.bound(service, asking.caller, head, upstream, method)
    if front_unread.must_be_read(said, tasks, bond, asking.raw):
        return False
    ladder = asking.ladder
    unless = " (but of a request that is traced)" if service.tracing.is_on else ""
    ladder.passes("message", f"not looked at{unless}: upstream {upstream.name} verifies headers itself")
    ladder.passes("era", "modern")
    ladder.passes("drain", "the gateway serves")
    ladder.passes("session", "none in 2026-07-28")
    for rung in ("envelope", "agreement"):
        ladder.passes(rung, "left to the upstream (verifies_headers)")
    ladder.passes("profile", "the widest is allowed; what the host declares is looked at once an answer has Apps")
    tell_access(asking)
    tell_upstream(asking, upstream, connector, method, name or None, asking.caller.headers)
    ladder.passes("cache", "not asked")
    ladder.passes("request", "its bytes go out as they came")
    way = "splice, unread" if connector is not None else "splice, unread, if the upstream speaks 2026-07-28"
    (ladder.passes if connector is not None else ladder.open)("way", way)
    tell_holds(asking, upstream, method, name or None, [_SEALED if bond else None, _TASKS if tasks else None])
    return True


async def explain(asking: Asking, message: jsonrpc.Message) -> None:
    ladder = asking.ladder
    if isinstance(message, jsonrpc.Notification):
        ladder.passes("session", "none in 2026-07-28")
        ladder.end(202, "nothing is done with it: clients of 2026-07-28 have no notifications over HTTP")
    if isinstance(message, jsonrpc.Response):
        why = f"{LATEST_MODERN} has no responses from clients"
        ladder.refuse("envelope", Rejection(INVALID_REQUEST, why, http=400))
    _envelope(asking, message)
    service, head = asking.service, asking.head
    routed_by = front.routed_by(message)
    upstream = service.upstream_for(head.route, message.method, routed_by, asking.caller.headers)
    connector = await upstream.known_connector("modern")
    asking.at = "profile"
    told, effective = front.told_of(service, head, message)
    if not effective.profile.shows_apps:
        refusal = apps.refusal(message.method, message.params, "modern")
        if refusal is not None:
            ladder.refuse("profile", refusal)
    tell_profile(asking, effective, meta_of(message.params)[META_CLIENT_CAPABILITIES])
    tell_access(asking)
    asking.at = "upstream"
    tell_upstream(asking, upstream, connector, message.method, routed_by, asking.caller.headers)
    await _ahead(asking, told, effective, upstream, connector)


def _envelope(asking: Asking, message: jsonrpc.Request) -> None:
    ladder = asking.ladder
    ladder.passes("session", "none in 2026-07-28")
    why = front.judge(asking.caller.headers, asking.raw, message)
    if why is not None and why.code != HEADER_MISMATCH:
        ladder.refuse("envelope", why)
    ladder.passes("envelope", "complete")
    if why is not None:
        ladder.refuse("agreement", why)
    ladder.passes("agreement", "they agree")


async def _ahead(
    asking: Asking, told: jsonrpc.Request, effective: Effective, upstream: Upstream, connector: Connector | None
) -> None:
    """The upstream's part. `told`: the request with its effective capabilities."""
    ladder, service, head, caller = asking.ladder, asking.service, asking.head, asking.caller
    method, is_ours = told.method, front.describes(head, told, upstream)
    bridges = connector is not None and connector.dialect.era == "legacy"
    asking.at = "request"
    is_ours = is_ours or (bridges and method == "server/discover")
    if is_ours:
        ladder.passes("cache", "not asked: what upstreams say of themselves is remembered apart")
        ladder.passes("request", "the gateway describes the upstream itself")
        ladder.passes(
            "way", "answered here, whatever the state of the upstream; it is asked where nothing is remembered"
        )
        ladder.end(200, "the description of the upstream")
    call = call_of(service, caller, head, told, upstream, headless=False)
    call = replace(call, profile=effective.profile)
    wanted = Wanted(upstream, call, front.addressee_of(told), effective)
    kept = await tell_cache(asking, connector, wanted, meta_of(told.params))
    if kept is not None:
        ladder.passes("way", "answered from the cache")
        ladder.end(200, f"what the cache holds ({kept})")
    _concern(asking, told, upstream, connector)
    hidden = connector.hides_at_hand(call) if connector is not None and method in OF_TOOLS else False
    if hidden:
        ladder.refuse("request", apps.unknown_tool(told.params.get("name")))
    asks_first = method in OF_TOOLS and not effective.profile.shows_apps and method == "tools/call" and hidden is None
    ladder.passes(
        "request", "tools/list is asked first: a tool for interfaces alone is refused" if asks_first else "fits"
    )
    _way(asking, told, upstream, connector)
    bond = service.bond(head, upstream, caller) if method in MAY_ASK and not bridges else None
    tasks = service.task_ids(head, upstream, caller, "modern") if not bridges else None
    name = headers.name_of(method, told.params)
    transforms = [_SEALED if bond else None, _TASKS if tasks else None, stripped(effective, method)]
    tell_holds(asking, upstream, method, name, transforms)


def _concern(asking: Asking, told: jsonrpc.Request, upstream: Upstream, connector: Connector | None) -> None:
    """What the upstream has to do with the request, by its era."""
    ladder, service, head, caller = asking.ladder, asking.service, asking.head, asking.caller
    if connector is None:
        return
    if connector.dialect.era == "legacy":
        why = front.unserved(service, head, upstream, caller, told)
        if why is not None:
            ladder.refuse("request", why)
        return
    found = front.for_upstream(service, head, upstream, caller, told)
    if isinstance(found, Rejection):
        ladder.refuse("request", found)
    if told.method in MAY_ASK and (bond := service.bond(head, upstream, caller)) is not None:
        state = bond.to_upstream(found[0].params)
        if isinstance(state, Rejection):
            ladder.refuse("request", state)


def _way(asking: Asking, told: jsonrpc.Request, upstream: Upstream, connector: Connector | None) -> None:
    ladder, accept = asking.ladder, asking.head.accept
    if connector is None:
        ladder.open("way", "splice where the upstream speaks 2026-07-28, else bridge, modern to legacy")
    elif connector.dialect.era == "legacy" and told.method in MAY_ASK and "requestState" in told.params:
        ladder.open("way", "goes on with the call that waits for it, if one does")
    elif connector.dialect.era == "modern" and upstream.http is not None and told.method != LISTEN:
        both = accept.json and accept.sse
        ladder.passes("way", "splice" if both else "exchange: the caller reads one form of answer only")
    else:
        ladder.passes("way", bridged("modern", connector))
