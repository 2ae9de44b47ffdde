"""What this process sees of itself and of its upstreams, for the status page. Nobody is asked anything for it: it is
what requests have shown. What is told of it is decided in `policies/status.py`."""

from gateway.front.service import Service
from gateway.upstreams.pool import Upstream
from gateway.upstreams.states import is_up
from policies.apps_matrix import Heard, layers
from policies.mcp import LATEST_LEGACY, LATEST_MODERN
from policies.profiles import Profiles
from policies.recent import Met
from policies.status import MAX_CHARS, About, Endpoint, Hosted, Seen


def see(service: Service) -> Seen:
    metrics, shelf = service.metrics, service.cache.shelf
    numbers = {
        "requests_in_flight": metrics.in_flight,
        "streams": metrics.streams,
        "sessions_opened": metrics.sessions_opened.total,
        "sessions_ended": metrics.sessions_ended.total,
        "exchanges_kept": len(service.exchanges),
        "calls_parked": len(service.parking),
        "cache_entries": len(shelf),
        "cache_bytes": shelf.bytes,
        "cache_saved_bytes": metrics.saved.total,
    }
    about = {upstream.name: _about(upstream, service.profiles) for upstream in service.upstreams}
    return Seen(about, metrics.troubles.all(), numbers, metrics.cached.by_last(), service.state.store.up)


def _about(upstream: Upstream, profiles: Profiles) -> About:
    described, sessions = upstream.description, upstream.legacy.sessions
    info = (described.server_info if described is not None else None) or {}
    endpoints = upstream.http.endpoints if upstream.http is not None else ()
    return About(
        is_up(upstream),
        upstream.known_eras,
        described.dialect.version if described is not None else "",
        _text(info.get("name")),
        _text(info.get("version")),
        tuple(Endpoint(endpoint.label, endpoint.in_service, endpoint.requests) for endpoint in endpoints),
        len(sessions),
        sessions.leases,
        len(upstream.modern.listening) + sessions.streams,
        upstream.counting.pace.slots(),
        _hosts(upstream, profiles),
    )


def _hosts(upstream: Upstream, profiles: Profiles) -> dict[str, Hosted]:
    """Of each profile that has a name, and of those besides that have been met."""
    met = upstream.hosts.met
    known = [*profiles.by_name.values(), *(one.profile for one in met.values())]
    return {
        profile.name: Hosted(layers(profile, _heard(upstream, met.get(profile.name))), _when(met.get(profile.name)))
        for profile in known
    }


def _when(met: Met | None) -> float:
    return met.at_s if met is not None else 0.0


def _heard(upstream: Upstream, met: Met | None) -> Heard | None:
    """What has come of asking this upstream in the name of such a host, or of nobody; None where nothing has yet."""
    described = upstream.description
    if not is_up(upstream) or (described is None and upstream.is_silent):
        return Heard(LATEST_MODERN, why="does not answer")
    if described is None:
        return None
    said = met.said if met is not None and met.said is not None else described.capabilities
    asked = LATEST_MODERN if described.dialect.era == "modern" else LATEST_LEGACY
    told = met.told if met is not None else None
    return Heard(asked, described.dialect.version, told, said, upstream.apps.found)


def _text(value: object) -> str:
    """Cut here, since it goes from process to process once a second."""
    return value[:MAX_CHARS] if isinstance(value, str) else ""
