"""What an operator is told of a running gateway: the members of `/status.json`, which the status page shows.

One process says what it sees (`Seen`); what several see is added up. Nothing of a message is in it, no header, no key,
no query of a URL and no argument of a command. What servers say of themselves is cut to `MAX_CHARS`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Final

from policies.apps_matrix import Layer
from policies.mcp import Json
from policies.recent import SLOT_S, Slot, Trouble, curve, latest
from policies.settings import Settings
from policies.settings_routes import Match, Route, Rule
from policies.settings_upstream import Upstream

MAX_CHARS: Final = 100
"""Of a server's name and version: what fits into a table."""

_RECENT_S: Final = 60
"""Over how long the rate and the mean of calls are told."""


@dataclass(frozen=True, slots=True)
class Hosted:
    """How far it carries for hosts of one profile; `at_s`: when the last of them was served, 0 for none."""

    layers: tuple[Layer, ...]
    at_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Endpoint:
    """`label`: host, port and path."""

    label: str
    in_service: bool
    requests: int


@dataclass(frozen=True, slots=True)
class About:
    """One upstream as one process sees it. `version`: of the protocol, as it was agreed on; `name` and `release`: what
    the server calls itself. Texts are empty until known."""

    is_up: bool
    eras: tuple[str, ...]
    version: str = ""
    name: str = ""
    release: str = ""
    endpoints: tuple[Endpoint, ...] = ()
    sessions: int = 0
    leases: int = 0
    streams: int = 0
    slots: tuple[Slot, ...] = ()
    hosts: Mapping[str, Hosted] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Seen:
    """What one process sees. `numbers`: counts and states, by name; `cached`: requests that the cache was asked about,
    by outcome."""

    upstreams: Mapping[str, About] = field(default_factory=dict)
    troubles: tuple[Trouble, ...] = ()
    numbers: Mapping[str, int] = field(default_factory=dict)
    cached: Mapping[str, int] = field(default_factory=dict)
    store_up: bool = True


@dataclass(frozen=True, slots=True)
class Process:
    """Who says it: a gateway of one process, or the `supervisor` of several workers, of which `answered` have said what
    they see. `began_s`: since when it runs."""

    status: str
    version: str
    began_s: float
    workers: int = 0
    answered: int = 0


def added(seen: Sequence[Seen]) -> Seen:
    """What several processes of one gateway see together: an upstream is up where all of them find it so."""
    names = dict.fromkeys(name for one in seen for name in one.upstreams)
    return Seen(
        {name: _together([one.upstreams[name] for one in seen if name in one.upstreams]) for name in names},
        latest(trouble for one in seen for trouble in one.troubles),
        _sums(one.numbers for one in seen),
        _sums(one.cached for one in seen),
        all(one.store_up for one in seen),
    )


def told(settings: Settings, process: Process, seen: Seen, now_s: float) -> Json:
    """The members of `/status.json`."""
    kind = "supervisor" if process.workers else "gateway"
    return {
        "status": process.status,
        "version": process.version,
        "now": _time(now_s),
        "process": {
            "kind": kind,
            "since": _time(process.began_s),
            "workers": process.workers,
            "answered": process.answered,
        },
        "numbers": dict(seen.numbers),
        "cache": {"on": settings.cache.max_bytes > 0, "requests": dict(seen.cached)},
        "store": {"shared": settings.store is not None, "up": seen.store_up},
        "routes": [_route(route) for route in settings.routes],
        "upstreams": [
            _upstream(name, upstream, seen.upstreams.get(name), now_s) for name, upstream in settings.upstreams.items()
        ],
        "errors": [_error(trouble) for trouble in seen.troubles],
    }


def _error(trouble: Trouble) -> Json:
    members: Json = asdict(trouble)
    at_s = members.pop("at_s")
    return {**members, "at": _time(at_s)}


def _route(route: Route) -> Json:
    rules = [{"when": _conditions(rule), "upstream": rule.upstream} for rule in route.rules]
    return {
        "address": route.address,
        "upstream": route.fallback,
        "rules": rules,
        "http_sse": route.http_sse,
        "profile": route.profile,
        "apps": route.apps,
        "cache": route.cache,
        "anonymous": route.anonymous,
    }


def _conditions(rule: Rule) -> str:
    params = {f"param {name}": match for name, match in rule.params.items()}
    named = {"method": rule.method, "name": rule.name, **params}
    return ", ".join(f"{what} {_match(match)}" for what, match in named.items() if match is not None)


def _match(match: Match) -> str:
    if match.value is not None:
        return f"is {match.value}"
    return f"starts with {match.prefix}" if match.prefix is not None else f"is like {match.glob}"


def _upstream(name: str, settings: Upstream, about: About | None, now_s: float) -> Json:
    points = curve(about.slots if about is not None else (), now_s)
    recent = Slot(points[-1].at_s)
    for slot in points[-_RECENT_S // SLOT_S :]:
        recent.add(slot)
    known = about or About(is_up=False, eras=())
    return {
        "name": name,
        "state": "not known" if about is None else "up" if about.is_up else "down",
        "transport": "stdio" if settings.command else settings.transport,
        "eras": list(known.eras),
        "version": known.version,
        "server": {"name": known.name[:MAX_CHARS], "version": known.release[:MAX_CHARS]},
        "endpoints": [asdict(endpoint) for endpoint in known.endpoints],
        "sessions": known.sessions,
        "leases": known.leases,
        "streams": known.streams,
        "calls": {"over_s": _RECENT_S, **_point(recent)},
        "latency": {"slot_s": SLOT_S, "points": [{"at_s": slot.at_s, **_point(slot)} for slot in points]},
        "hosts": {
            profile: [{"layer": layer.name, "state": layer.state, "detail": layer.detail} for layer in hosted.layers]
            for profile, hosted in known.hosts.items()
        },
    }


def _point(slot: Slot) -> Json:
    mean_ms = round(1000 * slot.total_s / slot.calls, 1) if slot.calls else None
    slowest_ms = round(1000 * slot.slowest_s, 1) if slot.calls else None
    return {"calls": slot.calls, "failed": slot.failed, "mean_ms": mean_ms, "slowest_ms": slowest_ms}


def _together(seen: Sequence[About]) -> About:
    endpoints: dict[str, Endpoint] = {}
    hosts: dict[str, Hosted] = {}
    for about in seen:
        for one in about.endpoints:
            known = endpoints.get(one.label, Endpoint(one.label, True, 0))
            in_service = known.in_service and one.in_service
            endpoints[one.label] = Endpoint(one.label, in_service, known.requests + one.requests)
        for profile, hosted in about.hosts.items():
            if profile not in hosts or hosted.at_s > hosts[profile].at_s:
                hosts[profile] = hosted
    return About(
        all(about.is_up for about in seen),
        tuple(dict.fromkeys(era for about in seen for era in about.eras)),
        _first(about.version for about in seen),
        _first(about.name for about in seen),
        _first(about.release for about in seen),
        tuple(endpoints.values()),
        sum(about.sessions for about in seen),
        sum(about.leases for about in seen),
        sum(about.streams for about in seen),
        tuple(slot for about in seen for slot in about.slots),
        hosts,
    )


def _first(texts: Iterable[str]) -> str:
    return next(filter(None, texts), "")


def _sums(every: Iterable[Mapping[str, int]]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for numbers in every:
        for name, value in numbers.items():
            sums[name] = sums.get(name, 0) + value
    return sums


def _time(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
