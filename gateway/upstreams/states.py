"""The state of every upstream as gauges: what it speaks, whether it answers, what is open there."""

from collections.abc import Callable, Iterator, Mapping

from gateway.metrics import Gauge, Labels
from gateway.upstreams.endpoints import Endpoint
from gateway.upstreams.pool import Upstream, Upstreams
from gateway.upstreams.stdio import StdioTransport

_ONE, _EACH = ("upstream",), ("upstream", "endpoint")


def gauges(current: Callable[[], Upstreams]) -> Iterator[Gauge]:
    """`current`: the upstreams of the configuration in service."""

    def of_each(value: Callable[[Upstream], float]) -> Callable[[], Mapping[Labels, float]]:
        return lambda: {(upstream.name,): value(upstream) for upstream in current()}

    def of_endpoints(value: Callable[[Endpoint], float]) -> Callable[[], Mapping[Labels, float]]:
        return lambda: {
            (upstream.name, endpoint.label): value(endpoint)
            for upstream in current()
            if upstream.http is not None
            for endpoint in upstream.http.endpoints
        }

    def eras() -> Mapping[Labels, float]:
        return {(upstream.name, era): 1.0 for upstream in current() for era in upstream.known_eras}

    start = "mcp_front_door_"
    yield Gauge(f"{start}upstream_up", "1 for an upstream that is there, 0 for one that fails.", _ONE, of_each(is_up))
    yield Gauge(f"{start}upstream_era_info", "The eras that an upstream speaks; always 1.", (*_ONE, "era"), eras)
    yield Gauge(
        f"{start}upstream_sessions",
        "Sessions at upstreams that callers without one of their own share.",
        _ONE,
        of_each(lambda upstream: len(upstream.legacy.sessions)),
    )
    yield Gauge(
        f"{start}upstream_leases",
        "Of those, sessions that one call has for itself, since it may be asked something.",
        _ONE,
        of_each(lambda upstream: upstream.legacy.sessions.leases),
    )
    yield Gauge(
        f"{start}upstream_streams",
        "Streams of an upstream that are heard, each for all who want the same of it.",
        _ONE,
        of_each(lambda upstream: len(upstream.modern.listening) + upstream.legacy.sessions.streams),
    )
    yield Gauge(
        f"{start}endpoint_up",
        "1 for an endpoint in service, 0 for one that fails or is left out.",
        _EACH,
        of_endpoints(lambda endpoint: endpoint.in_service),
    )
    yield Gauge(
        f"{start}endpoint_requests",
        "Requests under way at an endpoint, streams that only listen apart.",
        _EACH,
        of_endpoints(lambda endpoint: endpoint.requests),
    )


def is_up(upstream: Upstream) -> bool:
    """Whether it is there, as far as is known: it runs, or an endpoint of it is in service."""
    match upstream.wire:
        case StdioTransport() as command:
            return command.is_up
        case wire:
            return any(endpoint.in_service for endpoint in wire.endpoints)
