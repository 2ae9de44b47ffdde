"""What a gateway counts, as Prometheus reads it."""

import asyncio
from collections.abc import Mapping

from prometheus_client.parser import text_string_to_metric_families

from tests.gateway_process import GatewayProcess
from tests.http_wire import DEADLINE_S
from tests.raw_front import Front

Samples = Mapping[tuple[str, frozenset[tuple[str, str]]], float]


async def scrape(gateway: GatewayProcess) -> Samples:
    answer = await Front(gateway.admin_url + "/metrics").send("GET", {})
    assert answer.status == 200
    assert answer.headers.get("Content-Type", "").startswith("text/plain; version=")  # type: ignore[union-attr]
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.body.decode())
        for sample in family.samples
    }


def value(samples: Samples, name: str, **labels: str) -> float:
    """The sum of the samples that have these labels, among others."""
    wanted = labels.items()
    return sum(count for (found, have), count in samples.items() if found == name and wanted <= have)


async def settled(gateway: GatewayProcess, name: str, wanted: float, **labels: str) -> Samples:
    """Scrapes until a value is as wanted: a request is counted once its answer is out."""
    samples: Samples = {}
    try:
        async with asyncio.timeout(DEADLINE_S):
            while True:
                samples = await scrape(gateway)
                if value(samples, name, **labels) == wanted:
                    return samples
                await asyncio.sleep(0.02)  # a scrape costs the gateway more than most of what is counted
    except TimeoutError:
        raise AssertionError(f"{name} {labels} is {value(samples, name, **labels)}, not {wanted}") from None


async def gauges(gateway: GatewayProcess, *names: str) -> list[float]:
    """The values of metrics without labels: far cheaper than all of them, for what is asked after every test."""
    answer = await Front(gateway.admin_url + "/metrics").send("GET", {})
    found = dict(line.rsplit(" ", 1) for line in answer.body.decode().splitlines() if not line.startswith("#"))
    return [float(found[name]) for name in names]
