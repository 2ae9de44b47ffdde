"""Counts and durations of this process, kept in plain numbers and written in Prometheus's form when asked for.

One thread counts (the event loop's), so nothing is locked: to count a request costs a look-up and two additions, where
the client library's own counters take several times that. Its registry, families and writers are used for the rest.
Label values come from closed sets (`policies/metrics.py`) and from the configuration's names; which they are is not
decided here. Names: OpenTelemetry's conventions for MCP in Prometheus's spelling, and `mcp_front_door_` for our own.
"""

import platform
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Final, cast

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from policies.recent import Troubles

BUCKETS_S: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
"""The conventions' own from 10 ms on; below, what a gateway adds is to be seen."""

SESSION_BUCKETS_S: Final = (1.0, 10.0, 60.0, 300.0, 1800.0, 3600.0, 4 * 3600.0, 86_400.0, 7 * 86_400.0)
"""Of sessions, which last minutes to days."""

STORE_BUCKETS_S: Final = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Of operations of the store, which is near, and waited for no longer than `store.timeout_ms`."""

STORE_UP: Final = "mcp_front_door_store_up"

Labels = tuple[str, ...]


class Histogram:
    """Durations by labels."""

    def __init__(self, name: str, about: str, *labels: str, buckets_s: tuple[float, ...] = BUCKETS_S) -> None:
        self._about = (name, about, labels)
        self._buckets_s = buckets_s
        self._series: dict[Labels, tuple[list[int], list[float]]] = {}

    def observe(self, labels: Labels, seconds: float) -> None:
        series = self._series.get(labels)
        if series is None:
            series = self._series[labels] = ([0] * (len(self._buckets_s) + 1), [0.0])
        series[0][bisect_left(self._buckets_s, seconds)] += 1
        series[1][0] += seconds

    def collect(self) -> Metric:
        name, about, names = self._about
        family = HistogramMetricFamily(name, about, labels=names)
        bounds = (*(str(bound) for bound in self._buckets_s), "+Inf")
        for labels, (counts, total) in list(self._series.items()):
            running = 0
            buckets = []
            for bound, count in zip(bounds, counts, strict=True):
                running += count
                buckets.append((bound, float(running)))
            family.add_metric(labels, buckets, total[0])
        return family


class Counter:
    """Events by labels."""

    def __init__(self, name: str, about: str, *labels: str) -> None:
        self._about = (name, about, labels)
        self._series: dict[Labels, int] = {}

    def add(self, *labels: str, by: int = 1) -> None:
        self._series[labels] = self._series.get(labels, 0) + by

    @property
    def total(self) -> int:
        """Of all labels."""
        return sum(self._series.values())

    def by_last(self) -> Mapping[str, int]:
        """The sums by the value of the last label."""
        sums: dict[str, int] = {}
        for labels, count in self._series.items():
            sums[labels[-1]] = sums.get(labels[-1], 0) + count
        return sums

    def collect(self) -> Metric:
        name, about, names = self._about
        family = CounterMetricFamily(name, about, labels=names)
        for labels, count in list(self._series.items()):
            family.add_metric(labels, count)
        if not names and not self._series:
            family.add_metric((), 0)
        return family


@dataclass(frozen=True, slots=True)
class Gauge:
    """A state by labels, read when it is asked for."""

    name: str
    about: str
    labels: Labels
    read: Callable[[], Mapping[Labels, float]]

    def collect(self) -> Metric:
        family = GaugeMetricFamily(self.name, self.about, labels=self.labels)
        for labels, value in self.read().items():
            family.add_metric(labels, value)
        return family


class Reloads:
    """What became of changed configurations, in the one process that reads the file."""

    def __init__(self) -> None:
        self._counts = Counter("mcp_front_door_config_reloads_total", "Changed configurations: ok, failed.", "outcome")
        self._is_ok = True
        self._since_s = time.time()

    def note(self, *, ok: bool) -> None:
        self._counts.add("ok" if ok else "failed")
        self._is_ok = ok
        if ok:
            self._since_s = time.time()

    def collect(self) -> Iterator[Metric]:
        yield self._counts.collect()
        yield GaugeMetricFamily(
            "mcp_front_door_config_last_reload_successful",
            "1 where the configuration in service is the one in the file, 0 where that one could not be taken.",
            float(self._is_ok),
        )
        yield GaugeMetricFamily(
            "mcp_front_door_config_last_reload_success_timestamp_seconds",
            "Since when the configuration in service is.",
            self._since_s,
        )


class Metrics(Collector):
    """Everything that is counted in one process. `gauges` are read when they are asked for."""

    def __init__(self) -> None:
        self.served = Histogram(
            "mcp_server_operation_duration_seconds",
            "Requests of clients, from their head to the end of their answer.",
            *("route", "upstream", "era", "upstream_era", "mcp_method_name", "gen_ai_tool_name", "error_type"),
        )
        self.asked = Histogram(
            "mcp_client_operation_duration_seconds",
            "Calls to upstreams, from the request to the end of the answer.",
            *("upstream", "upstream_era", "mcp_method_name", "gen_ai_tool_name", "error_type"),
        )
        self.troubles = Troubles()
        """What went wrong lately, for the status page."""
        self.sessions = Histogram(
            "mcp_server_session_duration_seconds",
            "Sessions of clients that were ended, by their revision.",
            "mcp_protocol_version",
            buckets_s=SESSION_BUCKETS_S,
        )
        self.upstream_sessions = Histogram(
            "mcp_client_session_duration_seconds",
            "Sessions at upstreams that callers without one of their own shared, once they have ended.",
            *("upstream", "mcp_protocol_version"),
            buckets_s=SESSION_BUCKETS_S,
        )
        self.sessions_opened = Counter("mcp_front_door_sessions_opened_total", "Sessions of clients opened.")
        self.sessions_ended = Counter("mcp_front_door_sessions_ended_total", "Sessions that their client ended.")
        self.refused = Counter(
            "mcp_front_door_refusals_total",
            "Requests that were not let through, by the rung of the ladder at which they were refused.",
            *("route", "rung", "error_type"),
        )
        self.spliced = Counter(
            "mcp_front_door_splices_total", "Requests that were passed on as the bytes that came in.", "upstream"
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
        self.ejections = Counter(
            "mcp_front_door_endpoint_ejections_total",
            "Times that an endpoint was left out because it had failed.",
            *("upstream", "endpoint"),
        )
        self.cached = Counter(
            "mcp_front_door_cache_requests_total",
            "Requests that the cache was asked about, by how they were answered.",
            *("upstream", "mcp_method_name", "outcome"),
        )
        self.saved = Counter(
            "mcp_front_door_cache_saved_bytes_total",
            "Bytes of answers that the cache gave, and no upstream was asked for.",
            *("upstream", "mcp_method_name"),
        )
        self.asks = Counter(
            "mcp_front_door_asks_total",
            "What upstreams asked of clients, by what came of it.",
            *("upstream", "kind", "outcome"),
        )
        self.rounds = Counter(
            "mcp_front_door_rounds_total",
            "Answers that tell a client of 2026-07-28 to come back with something: relayed, or bridged from questions.",
            *("upstream", "form"),
        )
        self.parked = Counter(
            "mcp_front_door_parked_calls_ended_total",
            "Calls that waited for their client, by how that ended: resumed, expired.",
            "outcome",
        )
        self.stripped = Counter(
            "mcp_front_door_stripped_items_total",
            "What hosts without Apps were not shown, by what it was.",
            *("upstream", "item"),
        )
        self.store_operations = Histogram(
            "mcp_front_door_store_operation_duration_seconds",
            "Operations of the shared store, those that only wait apart.",
            *("operation", "error_type"),
            buckets_s=STORE_BUCKETS_S,
        )
        self.repeated = Counter(
            "mcp_front_door_cache_repeats_total",
            "Requests that the cache answered as it had others of the same bytes, without their being read again.",
        )
        self.provider_requests = Counter(
            "mcp_front_door_provider_requests_total",
            "Requests to LLM APIs: answered, refused, failed, cancelled.",
            *("provider", "dialect", "outcome"),
        )
        self.provider_stripped = Counter(
            "mcp_front_door_provider_stripped_total",
            "What was taken out of requests to LLM APIs, by its kind.",
            *("provider", "dialect", "kind"),
        )
        self.provider_bytes = Counter(
            "mcp_front_door_provider_bytes_total",
            "Bytes of bodies to and from LLM APIs: request as it came, stripped of it, response.",
            *("provider", "dialect", "part"),
        )
        self.in_flight = 0
        self.streams = 0
        self.gauges: dict[str, tuple[str, Callable[[], float]]] = {
            "mcp_front_door_requests_in_flight": ("Requests under way, streams apart.", lambda: self.in_flight),
            "mcp_front_door_streams": ("Open streams that stay: GET and subscriptions/listen.", lambda: self.streams),
        }
        self.labelled: list[Gauge] = []
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def refuse(self, route: str, rung: str, error: str) -> None:
        """A request was not let through."""
        self.refused.add(route, rung, error)
        self.troubles.note(time.time(), "refused", f"{rung} {error}", route=route)

    def lost(self, upstream: str, reason: str) -> None:
        """An exchange with an upstream failed below MCP."""
        self.upstream_errors.add(upstream, reason)
        self.troubles.note(time.time(), "connection", reason, upstream)

    def collect(self) -> Iterator[Metric]:
        for counted in vars(self).values():
            if isinstance(counted, Counter | Histogram):
                yield counted.collect()
        for name, (about, read) in self.gauges.items():
            yield GaugeMetricFamily(name, about, read())
        for gauge in self.labelled:
            yield gauge.collect()
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
