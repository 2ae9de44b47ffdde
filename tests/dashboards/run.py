"""Asks a real Prometheus everything that the dashboards and rules ask, about a gateway under traffic of all kinds.

    python -m tests.dashboards.run        (make dashboards)

Two workers, a store, a server of each era, and one of two endpoints of which one is dead. Every query must parse and
answer; then a server and the store are killed, and their alerts must be raised. Needs `prometheus` and `promtool`.
The rules run as they are committed, but that their times are shorter.
"""

import asyncio
import json
import math
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp

from tests.dashboards.files import ROOT, RULES, Query, panel_queries, rule_queries
from tests.dashboards.traffic import Traffic, script
from tests.gateway_process import GatewayProcess
from tests.peers import LegacyUpstream, ModernUpstream
from tests.ports import free_port
from tests.valkey import started

KEY = "k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
ANSWERS_S = 60.0
"""How long the traffic runs at most until every query has answered: a rate needs two scrapes, a slow machine more."""
RAISED_S = 30.0
SHORT = ((r"\bfor: \S+", "for: 2s"), (r"\[\d+m\]", "[15s]"))


def needed() -> None:
    for program in ("prometheus", "promtool"):
        if shutil.which(program) is None:
            sys.exit(f"make dashboards: {program} is missing; install the package prometheus")


async def promtool(*arguments: str) -> None:
    process = await asyncio.create_subprocess_exec("promtool", *arguments, cwd=ROOT)
    if await process.wait():
        sys.exit(f"promtool {' '.join(arguments)} has failed")


def configuration(store: str, urls: dict[str, list[str]]) -> dict[str, Any]:
    upstreams: dict[str, Any] = {
        "modern": {"url": urls["modern"][0], "era": "modern"},
        "legacy": {"url": urls["legacy"][0], "cache": {"lists_ttl_s": 2, "scope": "public"}},
        "several": {"urls": urls["several"], "era": "modern", "ejection": {"failures": 1, "for_s": 1}},
    }
    upstreams["several"]["health"] = {"interval_s": 0.5}
    return {
        "listen": "127.0.0.1:0",
        "admin": "127.0.0.1:0",
        "store": {"url": store},
        "keys": [KEY],
        "cache": {"max_bytes": 1 << 20},
        "streams": {"ask_ttl_s": 5},
        "grace_s": 1,
        "upstreams": upstreams,
        "routes": [{"path": f"/{name}", "upstream": name} for name in upstreams],
    }


class Prometheus:
    def __init__(self, url: str, http: aiohttp.ClientSession) -> None:
        self._url = url
        self._http = http

    async def ask(self, path: str, **parameters: str) -> Any:
        async with self._http.get(f"{self._url}/api/v1/{path}?{urlencode(parameters)}") as answer:
            said = await answer.json()
        if said["status"] != "success":
            raise ValueError(said["error"])
        return said["data"]

    async def answers(self, expr: str) -> bool:
        """Whether a query gives any number. Raises `ValueError` where it does not parse."""
        found = (await self.ask("query", query=expr))["result"]
        return any(not math.isnan(float(sample["value"][1])) for sample in found)

    async def firing(self) -> set[tuple[str, str]]:
        """The alerts that are raised, each with the server that it is about."""
        alerts = (await self.ask("alerts"))["alerts"]
        return {(a["labels"]["alertname"], a["labels"].get("upstream", "")) for a in alerts if a["state"] == "firing"}


@asynccontextmanager
async def prometheus(folder: Path, target: str) -> AsyncIterator[Prometheus]:
    rules = []
    for path in RULES:
        text = path.read_text(encoding="utf-8")
        for long, short in SHORT:
            text = re.sub(long, short, text)
        rules.append(folder / path.name)
        rules[-1].write_text(text)
    config = folder / "prometheus.yml"
    scrape = {"job_name": "gateway", "static_configs": [{"targets": [target]}]}
    times = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
    config.write_text(json.dumps({"global": times, "rule_files": list(map(str, rules)), "scrape_configs": [scrape]}))
    port = free_port()
    log = (folder / "prometheus.log").open("wb")
    process = await asyncio.create_subprocess_exec(
        *("prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}"),
        f"--web.listen-address=127.0.0.1:{port}",
        stdout=log,
        stderr=log,
        start_new_session=True,
    )
    try:
        async with aiohttp.ClientSession() as http:
            asked = Prometheus(f"http://127.0.0.1:{port}", http)
            async with asyncio.timeout(30):
                while True:
                    try:
                        await asked.ask("alerts")
                        break
                    except aiohttp.ClientError:
                        await asyncio.sleep(0.1)
            yield asked
    finally:
        process.terminate()
        await process.wait()
        log.close()


def filled(expr: str) -> str:
    """A panel's query as Grafana would send it, everything being chosen."""
    return re.sub(r"\$\w+", ".*", expr.replace("$__rate_interval", "15s"))


def conditions(query: Query) -> list[str]:
    """What must answer of a rule while all is well: of an alert, the series that it looks at."""
    return sorted(query.metrics()) if query.where[0].isupper() else [query.expr.replace("[5m]", "[15s]")]


async def all_answer(asked: Prometheus) -> list[str]:
    """Which queries have not answered in time."""
    left = {(query.where, filled(query.expr)) for query in panel_queries()}
    left |= {(query.where, expr) for query in rule_queries() for expr in conditions(query)}
    print(f"{len(left)} queries", flush=True)
    end = time.monotonic() + ANSWERS_S
    while left and time.monotonic() < end:
        await asyncio.sleep(1)
        left = {(where, expr) for where, expr in left if not await asked.answers(expr)}
    return [f"{where}: does not answer: {expr}" for where, expr in sorted(left)]


async def raised(asked: Prometheus, alert: str, upstream: str = "") -> list[str]:
    end = time.monotonic() + RAISED_S
    while (alert, upstream) not in await asked.firing():
        if time.monotonic() > end:
            return [f"{alert} is not raised for {upstream or 'anything'}; {sorted(await asked.firing())} are"]
        await asyncio.sleep(0.5)
    print(f"raised: {alert} {upstream}", flush=True)
    return []


async def reloaded(gateway: GatewayProcess, file: Path) -> None:
    """Once with a wrong file and once with the right one, so that both are counted."""
    right = file.read_text()
    for content, sign in (("{", "the configuration is not changed"), (right, "the configuration is in service")):
        file.write_text(content)
        gateway.process.send_signal(signal.SIGHUP)
        async with asyncio.timeout(30):
            while sign not in gateway.stderr():
                await asyncio.sleep(0.1)


async def forgets(upstream: LegacyUpstream) -> None:
    """A server that loses its sessions now and then, as one does that is restarted: those that callers share end."""
    while True:
        upstream.live.clear()
        await asyncio.sleep(4)


async def main() -> int:
    """The exit code."""
    needed()
    await promtool("check", "rules", *map(str, RULES))
    await promtool("test", "rules", "tests/dashboards/rules.test.yaml")
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dashboards-")))
        store = await asyncio.to_thread(stack.enter_context, started())
        modern = await stack.enter_async_context(ModernUpstream())
        legacy = await stack.enter_async_context(LegacyUpstream(get_stream=True))
        spare = await stack.enter_async_context(ModernUpstream())
        for upstream in (modern, legacy, spare):
            script(upstream)
        dead = f"http://127.0.0.1:{free_port()}/mcp"
        urls = {"modern": [modern.url], "legacy": [legacy.url], "several": [spare.url, dead]}
        file = folder / "gateway.yaml"
        file.write_text(json.dumps({**configuration(store.url, urls), "log": {"level": "info"}}))
        gateway = await GatewayProcess.start(["serve", "-c", str(file), "--workers", "2"], folder)
        stack.push_async_callback(gateway.stop)
        asked = await stack.enter_async_context(prometheus(folder, gateway.admin_url.removeprefix("http://")))
        traffic = Traffic(gateway.front("/modern"), ("/modern", "/legacy"))
        running = asyncio.create_task(traffic.run())
        stack.callback(running.cancel)
        await reloaded(gateway, file)
        forgetting = asyncio.create_task(forgets(legacy))
        stack.callback(forgetting.cancel)
        failed = await all_answer(asked)
        calm = {name for name, _ in await asked.firing()} & {"McpFrontDoorUpstreamDown", "McpFrontDoorStoreDown"}
        failed += [f"{name} is raised though nothing is wrong" for name in sorted(calm)]
        await modern.stop()
        failed += await raised(asked, "McpFrontDoorUpstreamDown", "modern")
        await asyncio.to_thread(store.kill)
        failed += await raised(asked, "McpFrontDoorStoreDown")
        running.cancel()
        print(f"{traffic.rounds} rounds of traffic")
        print("\n".join([*failed, f"{len(failed)} failures"]), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
