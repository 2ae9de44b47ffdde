"""A client's list or read, answered by the cache where that may be: as one message in the client's own revision.

Specification: 2026-07-28 server/utilities/caching. What a client is told of freshness is what is left. How a request
was answered stands in `Server-Timing`, for whoever came by HTTP.
"""

import time
from dataclasses import dataclass, replace
from typing import Literal

from aiohttp import web

from gateway.cache.cache import Found
from gateway.cache.filling import Asked
from gateway.cache.shelf import Held
from gateway.front import operation, reply
from gateway.front.repeats import CAME, Came
from gateway.front.service import Caller, Service
from gateway.upstreams.base import Connector
from gateway.upstreams.pool import Upstream
from policies import cache, cache_keys
from policies.cache import Outcome
from policies.cache_entry import PLACE_ID, Ready, ready
from policies.delivery import Addressee, Message
from policies.exchange import Call, Dialect
from policies.forwarded import lasting
from policies.identity import client_of
from policies.mcp import ASK_CAPABILITY, LATEST_MODERN, MAY_ASK, Json
from policies.profiles import Effective
from policies.settings_routes import Route
from policies.sightings import marks_of
from policies.translation.discover import client_capabilities

FROM_CACHE = frozenset({"hit", "stale"})
"""Outcomes of which the upstream knows nothing."""

_MODERN = Dialect("modern", LATEST_MODERN)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A request as its front would put it to the upstream: `call`, whom its answer is for (`to`), and what holds for
    its host."""

    upstream: Upstream
    call: Call
    to: Addressee
    effective: Effective


def may_fill(service: Service, route: Route, method: str) -> bool:
    """Whether a request of this kind may have to wait for what the cache fetches, whatever its upstream."""
    return route.cache and service.settings.cache.max_bytes > 0 and cache.is_cacheable(method)


def may_keep(service: Service, route: Route, upstream: Upstream, method: str) -> bool:
    """Whether the cache is to be asked at all for requests of this kind."""
    return upstream.settings.cache.enabled and may_fill(service, route, method)


async def from_cache(
    service: Service, request: Caller, route: Route, connector: Connector, wanted: Wanted, meta: Json
) -> Message | None:
    """The answer to a request with this `_meta`; None where it is to be put to the upstream as it is."""
    asked = asked_of(service, route, connector, wanted, meta)
    if not isinstance(asked, Asked):
        if asked is not None:
            _past(service, request, wanted, asked)
        return None
    began_s = time.perf_counter()
    found = await service.cache.find(asked)
    _note(request, found.outcome)
    upstream, method = wanted.upstream, wanted.call.method
    answer = _message(service, found, wanted.to, upstream.name)
    if found.held is not None and service.ledger.on and wanted.effective.profile.shows_apps:
        _note_marks(service, found.held, wanted)  # each time: not to be answered again unread
    elif found.held is not None and wanted.to.dialect.era == "modern" and isinstance(request, web.BaseRequest):
        request[CAME] = Came(service, asked, found.held, wanted.to.dialect.version)
    if answer is not None and found.outcome in FROM_CACHE:
        service.metrics.saved.add(upstream.name, method, by=len(answer.raw))
    elif answer is not None:
        operation.of(request).upstream_s = time.perf_counter() - began_s
    return answer


def _note_marks(service: Service, held: Held, wanted: Wanted) -> None:
    """A host that shows Apps is given an answer that another may have asked for."""
    call = wanted.call
    if held.marks_seen is None:
        held.marks_seen = marks_of(call.method, call.params, held.entry.answer.result)
    service.ledger.note(client_of(call.principal), wanted.upstream.name, held.marks_seen)


def asked_of(
    service: Service, route: Route, connector: Connector, wanted: Wanted, meta: Json
) -> Asked | Literal["private", "bypass"] | None:
    """What the cache is asked for a request; why it goes past it, or None where requests of its kind do."""
    upstream, call = wanted.upstream, wanted.call
    if not may_keep(service, route, upstream, call.method):
        return None
    if call.owner is not None and connector.dialect.era == "legacy":
        return "private"
    if not cache.is_shareable(call.method, call.params, meta):
        return "bypass"
    told = client_capabilities(call.capabilities, call.front.era, connector.dialect)
    return _asked(wanted, replace(wanted.effective, capabilities=told), connector)


def _asked(wanted: Wanted, effective: Effective, connector: Connector) -> Asked:
    upstream, call = wanted.upstream, wanted.call
    fills = Call(
        call.method,
        call.params,
        {},
        effective.capabilities,
        None,
        call.principal,
        _MODERN,
        forwarded=lasting(call.forwarded),
        profile=effective.profile,
    )
    key = cache_keys.key(
        fills,
        upstream=upstream.name,
        config=upstream.config,
        version=connector.dialect.version,
        identity=effective.identity,
    )
    can_be_asked = call.method in MAY_ASK and any(kind in fills.capabilities for kind in ASK_CAPABILITY.values())
    return Asked(upstream, fills, key, call.wants_progress, call.log_level is not None or can_be_asked)


def _past(service: Service, request: Caller, wanted: Wanted, outcome: Outcome) -> None:
    service.metrics.cached.add(wanted.upstream.name, wanted.call.method, outcome)
    _note(request, outcome)


def _note(request: Caller, outcome: Outcome) -> None:
    """Whatever answers this request says how the cache took it."""
    if isinstance(request, web.BaseRequest):
        request[reply.EXTRA] = {**request.get(reply.EXTRA, {}), "Server-Timing": f"cache;desc={outcome}"}


def _message(service: Service, found: Found, to: Addressee, upstream: str) -> Message | None:
    assert to.id is not None
    if found.held is not None:
        made = _ready(service, found.held, to)
        return made if isinstance(made, Message) else Message(made.response(to.id, found.ttl_ms), last=True)
    return service.deliver(found.event, to, upstream) if found.event is not None else None


def _ready(service: Service, held: Held, to: Addressee) -> Ready | Message:
    """The answer for clients of this revision, made once; a message where it is none that can be kept."""
    to = replace(to, tasks=None)  # what is kept names none
    made = held.ready.get(to.dialect.version)
    if made is not None:
        return made
    if (upstream := service.upstreams.get(held.upstream)) is not None:
        upstream.counting.names.learn(held.key.shown["method"], held.entry.answer.result)
    message = service.deliver(held.entry.answer, replace(to, id=PLACE_ID), held.upstream)
    assert message is not None
    if message.rejection is not None:
        refused = service.deliver(held.entry.answer, to, held.upstream)
        assert refused is not None
        return refused
    made = ready(message.raw, held.entry, to.dialect.era, is_narrowed=message.is_narrowed)
    service.cache.shelf.add_ready(held, to.dialect.version, made)
    return made
