"""The metrics of several workers as those of one gateway.

Counters and histograms are added up, those of workers that have ended among them, so that no sum goes backwards. Gauges
tell how many there are and are added up as well, but for those that tell whether: they are 1 where all workers say so.
What is a process's own (`process_…`) stays apart, by `worker`.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from prometheus_client.core import Metric

_PER_PROCESS: Final = "process_"
_WHETHER: Final = ("_up", "_info")
"""How the names of gauges end that are 0 or 1."""

_Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]


class Counts:
    """What ended workers have counted. `bury` once for each, `combined` as often as it is asked for."""

    def __init__(self) -> None:
        self._gone: dict[str, tuple[Metric, _Series]] = {}

    def bury(self, families: Iterable[Metric]) -> None:
        """The last word of a worker that has ended: its gauges are nothing now, its counts stay."""
        _add(self._gone, (family for family in families if family.type in {"counter", "histogram"}))

    def combined(self, workers: Sequence[tuple[str, Iterable[Metric]]]) -> Iterator[Metric]:
        """All families, each once; `workers` are the living, by what names each, empty for one that is on its way out
        and whose name another has."""
        sums = {name: (family, dict(series)) for name, (family, series) in self._gone.items()}
        apart: dict[str, Metric] = {}
        for worker, families in workers:
            _add(sums, families)
            for family in families if worker else ():
                if family.name.startswith(_PER_PROCESS):
                    _label(apart, family, worker)
        for family, series in sums.values():
            total = _empty(family)
            for (name, labels), value in series.items():
                total.add_sample(name, dict(labels), value)
            yield total
        yield from apart.values()


def _add(sums: dict[str, tuple[Metric, _Series]], families: Iterable[Metric]) -> None:
    for family in families:
        if family.name.startswith(_PER_PROCESS):
            continue
        _, series = sums.setdefault(family.name, (family, {}))
        for sample in family.samples:
            key = (sample.name, tuple(sample.labels.items()))
            if family.type == "gauge" and family.name.endswith(_WHETHER):
                series[key] = min(series.get(key, 1.0), sample.value)
            else:
                series[key] = series.get(key, 0.0) + sample.value


def _label(apart: dict[str, Metric], family: Metric, worker: str) -> None:
    labelled = apart.setdefault(family.name, _empty(family))
    for sample in family.samples:
        labelled.add_sample(sample.name, {**sample.labels, "worker": worker}, sample.value)


def _empty(family: Metric) -> Metric:
    return Metric(family.name, family.documentation, family.type, family.unit)
