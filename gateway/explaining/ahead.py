"""What is ahead of a request that has been let through: its upstream, the cache, the way that it goes, and what holds
on it. Told from the configuration and from what this process remembers; nobody is asked.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gateway.cache.filling import Asked
from gateway.front.caching import Wanted, asked_of, may_fill, may_keep
from gateway.front.service import Relayed, Service
from gateway.upstreams.base import Connector
from gateway.upstreams.pool import Upstream
from policies import cache, routing
from policies.admission import Head
from policies.explanation import Ladder
from policies.forwarded import lasting
from policies.headers import Headers, param_of
from policies.mcp import READS, Era, Json
from policies.profiles import Effective

UNKNOWN_ERA = "not known without asking; would be detected by server/discover"

Kept = Literal["hit", "stale"]


@dataclass(slots=True)
class Asking:
    """One request under explanation. `assumed`: its session is only thought of; `at`: the rung that it climbs now."""

    ladder: Ladder
    service: Service
    caller: Relayed
    head: Head
    raw: bytes
    live: bool
    assumed: bool
    at: str = "session"


def tell_profile(asking: Asking, effective: Effective, declared: Json) -> None:
    told = sorted(name for name in effective.capabilities)
    less = sorted(set(declared) - set(told))
    said = f"{effective.profile.name}: {'shows' if effective.profile.shows_apps else 'shows no'} Apps"
    changed = None if effective.capabilities is declared else "narrowed to what is allowed"
    asking.ladder.passes("profile", said, told=told or None, withheld=less or None, capabilities=changed)


def tell_access(asking: Asking) -> None:
    who = f"client {asking.head.client}" if asking.head.client else "whoever reaches this route"
    asking.ladder.passes("authorization", f"{who} may use every method and name here")


def tell_upstream(
    asking: Asking,
    upstream: Upstream,
    connector: Connector | None,
    method: str,
    name: str | None,
    lines: Headers | None,
) -> None:
    """`lines`: the headers that rules on parameters look at, if any."""
    settings = upstream.settings
    endpoints = upstream.http.endpoints if upstream.http is not None and asking.live else ()
    in_service = {endpoint.label: endpoint.in_service for endpoint in endpoints}
    described = upstream.description if asking.live else None
    info = described.server_info if described is not None else None
    asking.ladder.passes(
        "upstream",
        f"{upstream.name}, {_by(asking, upstream, method, name, lines)}",
        era=_era(upstream, connector),
        endpoints={label: "in service" if up else "left out" for label, up in in_service.items()} or None,
        count=len(settings.addresses) if not in_service and len(settings.addresses) > 1 else None,
        calls_itself=str(info.get("name"))[:64] if info and info.get("name") else None,
    )


def _era(upstream: Upstream, connector: Connector | None) -> str:
    if connector is None:
        return UNKNOWN_ERA
    is_set = upstream.settings.era != "auto" or upstream.settings.transport == "http_sse"
    return f"{connector.dialect.era}, as {'configured' if is_set else 'found out before'}"


def _by(asking: Asking, upstream: Upstream, method: str, name: str | None, lines: Headers | None) -> str:
    """Why it is this upstream."""
    route = asking.head.route
    if route.upstream is not None:
        return "the only one of this route"

    def param(suffix: str) -> str | None:
        return param_of(lines, suffix) if lines is not None else None

    rule = routing.rule_for(route, method, name, param)
    if (route.rules[rule].upstream if rule is not None else route.default) != upstream.name:
        return "which made this task"
    return f"by rule {rule + 1} of {len(route.rules)}" if rule is not None else "the default: no rule takes it"


async def tell_cache(asking: Asking, connector: Connector | None, wanted: Wanted, meta: Json) -> Kept | None:
    """Whether the cache has an answer that would be given out now."""
    ladder, service, route = asking.ladder, asking.service, asking.head.route
    method, upstream = wanted.call.method, wanted.upstream
    if not may_keep(service, route, upstream, method):
        ladder.passes("cache", f"not asked: {_why_not(service, asking, upstream, method)}")
        return None
    if connector is None:
        ladder.open("cache", "its key names the revision that the upstream is spoken to in, which is not known yet")
        return None
    asked = asked_of(service, route, connector, wanted, meta)
    if not isinstance(asked, Asked):
        why = "a session's own answers are shared by nobody" if asked == "private" else "it has what no key tells apart"
        ladder.passes("cache", f"not asked: {why}", outcome=asked)
        return None
    if not asking.live:
        ladder.passes("cache", "asked; what is in it only the running process knows", key=asked.key.parts(shared=False))
        return None
    state = service.cache.state(asked)
    key = asked.key.parts(shared=False)
    found: Kept | None = "hit" if state == "fresh" else "stale" if state == "revalidate" else None
    words = {
        "fresh": "hit",
        "revalidate": "hit, no longer fresh: another is fetched meanwhile",
        "on_error": "miss; what is held is given out only where the upstream fails",
        "past": "past it for now: what its like was answered is not kept",
    }
    missed = "miss in this process; the store may have it" if service.state.store.shared else "miss"
    ladder.passes("cache", words.get(state, missed), key=key)
    return found


def _why_not(service: Service, asking: Asking, upstream: Upstream, method: str) -> str:
    if not cache.is_cacheable(method):
        return f"answers to {method} are never kept"
    if may_fill(service, asking.head.route, method):
        return f"upstreams.{upstream.name}.cache is off"
    return "the route says cache: false" if not asking.head.route.cache else "cache.max_bytes is 0"


def tell_holds(
    asking: Asking, upstream: Upstream, method: str, name: str | None, transforms: Sequence[str | None]
) -> None:
    """What applies to a call that would be made."""
    limits, settings = routing.timeouts_for(upstream.settings, method, name), upstream.settings
    own = routing.own_timeouts(settings, method, name) is not None
    headers = [n for n, _ in lasting(asking.service.forwarded(upstream, asking.caller))]
    several = len(settings.addresses) > 1
    if method not in READS:
        again = "never sent again: it may have been carried out"
    elif several:
        again = "only reads: sent to another endpoint where its connection breaks before an answer"
    else:
        again = "only reads: sent again where the upstream turns out to be of another era"
    asking.ladder.asks = upstream.name
    asking.ladder.holds = {
        "transforms": [one for one in transforms if one is not None],
        "forwards": headers,
        "timeouts": {**limits.model_dump(), **({"from": "tools"} if own else {})},
        "retry": again,
    }


def stripped(effective: Effective, method: str) -> str | None:
    """What is left out of answers to this host."""
    if effective.profile.shows_apps:
        return None
    if method == "tools/list":
        return "tools that are for interfaces alone, and what is said of interfaces, are left out of the list"
    if method in ("server/discover", "initialize"):
        return "the server's word that it has Apps is left out"
    return "interfaces are left out of the answer, and a text is put where nothing else is left"


def bridged(front: Era, connector: Connector | None) -> str:
    """The way of a call in an exchange."""
    if connector is None:
        return "exchange"
    same = connector.dialect.era == front
    return "exchange, in its own era" if same else f"bridge, {front} to {connector.dialect.era}"
