"""Counts and durations of this process, kept in plain numbers and written in Prometheus's form when asked for.

One thread counts (the event loop's), so nothing is locked: to count a request costs a look-up and two additions, where
the client library's own counters take several times that. Its registry, families and writers are used for the rest.
Label values come from closed sets (`policies/metrics.py`) and from the configuration's names; which they are is not
decided here. Names: OpenTelemetry's conventions for MCP in Prometheus's spelling, and `mcp_front_door_` for our own.
"""

import platform
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Final, cast

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

BUCKETS_S: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
"""The conventions' own from 10 ms on; below, what a gateway adds is to be seen."""

_BOUNDS: Final = (*(str(bound) for bound in BUCKETS_S), "+Inf")

STORE_UP: Final = "mcp_front_door_store_up"

Labels = tuple[str, ...]


class Histogram:
    """Durations by labels."""

    def __init__(self, name: str, about: str, *labels: str) -> None:
        self._about = (name, about, labels)
        self._series: dict[Labels, tuple[list[int], list[float]]] = {}

    def observe(self, labels: Labels, seconds: float) -> None:
        series = self._series.get(labels)
        if series is None:
            series = self._series[labels] = ([0] * len(_BOUNDS), [0.0])
        series[0][bisect_left(BUCKETS_S, seconds)] += 1
        series[1][0] += seconds

    def collect(self) -> Metric:
        name, about, names = self._about
        family = HistogramMetricFamily(name, about, labels=names)
        for labels, (counts, total) in list(self._series.items()):
            running = 0
            buckets = []
            for bound, count in zip(_BOUNDS, counts, strict=True):
                running += count
                buckets.append((bound, float(running)))
            family.add_metric(labels, buckets, total[0])
        return family


class Counter:
    """Events by labels."""

    def __init__(self, name: str, about: str, *labels: str) -> None:
        self._about = (name, about, labels)
        self._series: dict[Labels, int] = {}

    def add(self, *labels: str) -> None:
        self._series[labels] = self._series.get(labels, 0) + 1

    def collect(self) -> Metric:
        name, about, names = self._about
        family = CounterMetricFamily(name, about, labels=names)
        for labels, count in list(self._series.items()):
            family.add_metric(labels, count)
        if not names and not self._series:
            family.add_metric((), 0)
        return family


class Metrics(Collector):
    """Everything that is counted in one process. `gauges` are read when they are asked for."""

    def __init__(self) -> None:
        self.served = Histogram(
            "mcp_server_operation_duration_seconds",
            "Requests of clients, from their head to the end of their answer.",
            *("route", "era", "mcp_method_name", "error_type"),
        )
        self.asked = Histogram(
            "mcp_client_operation_duration_seconds",
            "Calls to upstreams, from the request to the end of the answer.",
            *("upstream", "mcp_method_name", "error_type"),
        )
        self.upstream_errors = Counter(
            "mcp_front_door_upstream_errors_total",
            "Exchanges with upstreams that failed below MCP: connect, tls, timeout, broken.",
            *("upstream", "reason"),
        )
        self.upstream_retries = Counter(
            "mcp_front_door_upstream_retries_total",
            "Requests that went to another endpoint after one had failed.",
            "upstream",
        )
        self.cached = Counter(
            "mcp_front_door_cache_requests_total",
            "Requests that the cache was asked about, by how they were answered.",
            *("upstream", "mcp_method_name", "outcome"),
        )
        self.repeated = Counter(
            "mcp_front_door_cache_repeats_total",
            "Requests that the cache answered as it had others of the same bytes, without their being read again.",
        )
        self.sessions_opened = Counter("mcp_front_door_sessions_opened_total", "Sessions of clients opened.")
        self.sessions_ended = Counter("mcp_front_door_sessions_ended_total", "Sessions that their client ended.")
        self.in_flight = 0
        self.streams = 0
        self.gauges: dict[str, tuple[str, Callable[[], float]]] = {
            "mcp_front_door_requests_in_flight": ("Requests under way, streams apart.", lambda: self.in_flight),
            "mcp_front_door_streams": ("Open streams that stay: GET and subscriptions/listen.", lambda: self.streams),
        }
        self.by_upstream: dict[str, tuple[str, Callable[[], Mapping[str, float]]]] = {}
        self.endpoints: Callable[[], Mapping[tuple[str, str], bool]] = dict
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def collect(self) -> Iterator[Metric]:
        counters = (self.upstream_errors, self.upstream_retries, self.sessions_opened, self.sessions_ended)
        for counted in (self.served, self.asked, self.cached, self.repeated, *counters):
            yield counted.collect()
        for name, (about, read) in self.gauges.items():
            yield GaugeMetricFamily(name, about, read())
        for name, (about, read_all) in self.by_upstream.items():
            family = GaugeMetricFamily(name, about, labels=("upstream",))
            for upstream, value in read_all().items():
                family.add_metric((upstream,), value)
            yield family
        endpoints = GaugeMetricFamily(
            "mcp_front_door_endpoint_up",
            "1 for an endpoint in service, 0 for one left out.",
            labels=("upstream", "endpoint"),
        )
        for labels, up in self.endpoints().items():
            endpoints.add_metric(labels, up)
        yield endpoints
        build = GaugeMetricFamily(
            "mcp_front_door_build_info", "What runs here; always 1.", labels=("version", "python")
        )
        build.add_metric((own_version(), platform.python_version()), 1)
        yield build

    def families(self) -> Iterable[Metric]:
        """All of it, those of the process itself included."""
        return self._registry.collect()


@dataclass(frozen=True, slots=True)
class _Collected:
    """Families that were collected before, where a registry is wanted."""

    families: Iterable[Metric]

    def collect(self) -> Iterable[Metric]:
        return self.families


def render(families: Iterable[Metric], accept: str) -> tuple[bytes, str]:
    """Families in the form that a scraper reads, with the content type of that form."""
    encoder, content_type = choose_encoder(accept)
    return encoder(cast("CollectorRegistry", _Collected(families))), content_type


def own_version() -> str:
    """The installed version, empty where it runs uninstalled."""
    try:
        return version("mcp-front-door")
    except PackageNotFoundError:
        return ""
