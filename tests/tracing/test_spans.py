"""Spans of requests and calls, as a collector gets them, and trace context as servers get it."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.gateway_process import GatewayProcess, running, settings
from tests.http_wire import DEADLINE_S
from tests.peers import LegacyUpstream, ModernUpstream, text
from tests.scrape import settled, value
from tests.scripted import Call, Json, Seen, Upstream
from tests.tracing.collector import Collector, Got, collecting

REAL = Path(__file__).parent / "real"
ROOT = Path(__file__).parents[2]
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SERVED = "mcp_server_operation_duration_seconds_count"
SAMPLED, UNSAMPLED = f"00-{TRACE}-{SPAN}-01", f"00-{TRACE}-{SPAN}-00"
ERAS = pytest.mark.parametrize("upstream_era", ["legacy", "modern"])
FRONTS = pytest.mark.parametrize("front_era", ["legacy", "modern"])


def peer(era: str) -> Upstream:
    return LegacyUpstream(get_stream=True) if era == "legacy" else ModernUpstream()


def tracing(collector: Collector, **more: Any) -> Json:
    return {"tracing": {"endpoint": collector.url, **more}}


async def called(gateway: Any, era: str, name: str, *, headers: Json | None = None, meta: Json | None = None) -> Any:
    """A tool's answer, asked for by a client of this era."""
    params: Json = {"name": name, "arguments": {"planted": "planted"}}
    if era == "modern":
        return await gateway.front().modern("tools/call", params, headers=headers, meta=meta)
    session = await gateway.front().initialize()
    return await session.request("tools/call", {**params, "_meta": meta or {}}, headers=headers)


def call_of(upstream: Upstream) -> Seen:
    return next(seen for seen in upstream.requests if seen.method == "tools/call")


@FRONTS
@ERAS
@pytest.mark.parametrize("where", ["header", "_meta"])
async def test_a_request_and_its_call_are_two_spans_of_the_clients_trace(
    front_era: str, upstream_era: str, where: str
) -> None:
    said = {"traceparent": SAMPLED, "tracestate": "vendor=1"}
    carried: Json = {"headers": said} if where == "header" else {"meta": said}
    async with collecting() as collector, peer(upstream_era) as upstream:
        async with running({"mcp": upstream}, **tracing(collector, ratio=0)) as gateway:
            await gateway.front().modern("tools/list")
            assert (await called(gateway, front_era, "echo", **carried)).status == 200
            await gateway.stop()  # which sends what is left
        served, asked = collector.of("mcp-front-door")[-1], collector.of("mcp-front-door", "client")[-1]
        assert len(collector.spans) == 2, "what no client has decided for gets none"
        assert (served.trace, served.parent, served.state) == (TRACE, SPAN, "vendor=1")
        assert (asked.trace, asked.parent) == (TRACE, served.id)
        assert served.began_ns <= asked.began_ns <= asked.ended_ns <= served.ended_ns
        seen = call_of(upstream)
        parent = f"00-{TRACE}-{asked.id}-01"
        assert (seen.meta["traceparent"], seen.meta["tracestate"]) == (parent, "vendor=1")
        assert (seen.headers.get("traceparent"), seen.headers.get("tracestate")) == (parent, "vendor=1")
        assert served.name == asked.name == "tools/call echo"
        assert {
            "mcp.method.name": "tools/call",
            "gen_ai.tool.name": "echo",
            "gen_ai.operation.name": "execute_tool",
            "network.transport": "tcp",
            "network.protocol.name": "http",
            "jsonrpc.request.id": "1",
            "mcp_front_door.route": "/mcp",
            "mcp_front_door.upstream": "mcp",
            "mcp_front_door.era": front_era,
            "mcp_front_door.upstream_era": upstream_era,
            "mcp.protocol.version": "2026-07-28" if front_era == "modern" else "2025-11-25",
        }.items() <= served.attributes.items()
        assert ("mcp.session.id" in served.attributes) == (front_era == "legacy")
        assert not any(b"planted" in body for body in collector.bodies)


@FRONTS
@ERAS
async def test_what_is_not_traced_goes_on_as_it_came(front_era: str, upstream_era: str) -> None:
    async with collecting() as collector, peer(upstream_era) as upstream:
        async with running({"mcp": upstream}, **tracing(collector, ratio=1)) as gateway:
            for carried in ({"headers": {"traceparent": UNSAMPLED}}, {"meta": {"traceparent": UNSAMPLED}}):
                upstream.requests.clear()
                await called(gateway, front_era, "echo", **carried)  # type: ignore[arg-type]
                seen = call_of(upstream)
                told = {seen.headers.get("traceparent"), seen.meta.get("traceparent")} - {None}
                assert told == {UNSAMPLED}
                if front_era != upstream_era:
                    assert seen.headers.get("traceparent") == seen.meta.get("traceparent")
            await gateway.stop()
        assert not [span for span in collector.spans if span.trace == TRACE]


@pytest.mark.parametrize(("ratio", "follow", "spans"), [(0, True, 0), (1, True, 2), (1, False, 2), (0, False, 0)])
async def test_the_ratio_holds_where_no_client_decides(ratio: float, follow: bool, spans: int) -> None:
    async with collecting() as collector, ModernUpstream() as upstream:
        more = tracing(collector, ratio=ratio, follow=follow)
        async with running({"mcp": upstream}, **more) as gateway:
            await called(gateway, "modern", "echo", meta={} if follow else {"traceparent": SAMPLED})
            await gateway.stop()
        assert len(collector.spans) == spans
        traced = {span.trace for span in collector.spans}
        assert len(traced) <= 1
        if spans and follow:
            assert call_of(upstream).meta["traceparent"].split("-")[1] in traced


@pytest.mark.parametrize("verifies", [False, True], ids=["read", "unread"])
async def test_baggage_stays_behind_unless_it_is_wanted(verifies: bool) -> None:
    brought = {"baggage": "user=planted"}
    for wanted in (False, True):
        async with ModernUpstream() as modern, LegacyUpstream() as legacy:
            behind: Any = {"mcp": (modern, {"verifies_headers": verifies}), "old": legacy}
            async with running(behind, tracing={"baggage": wanted}) as gateway:
                for upstream, route in ((modern, "/mcp"), (legacy, "/old")):
                    await gateway.front(route).modern("tools/call", {"name": "echo"}, headers=brought, meta=brought)
                    seen = call_of(upstream)
                    assert ("baggage" in seen.meta) == wanted
                    if upstream is modern:
                        assert (seen.headers.get("baggage") is not None) == wanted


async def test_failures_and_refusals_are_told_by_their_kind_alone() -> None:
    async with collecting() as collector, ModernUpstream() as upstream:

        async def tool(call: Call) -> Json:
            return {**text("planted"), "isError": True}

        upstream.on["tools/call"] = tool
        async with running({"mcp": upstream}, **tracing(collector, ratio=1)) as gateway:
            await called(gateway, "modern", "planted")
            await gateway.front().modern("resources/read", {"uri": "ui://planted"})
            await gateway.front().modern("planted/method")
            await gateway.front().post(b'{"planted')
            odd = {"traceparent": SAMPLED, "tracestate": "=,planted"}
            await gateway.front().modern("tools/list", ident="\ud800" * 9, meta=odd, headers=odd)
            await gateway.stop()
            assert "planted" not in gateway.stderr()
        told = [
            (span.name, span.failed, span.attributes.get("error.type"), span.attributes.get("mcp_front_door.rung"))
            for span in collector.of("mcp-front-door")
        ]
        assert told == [
            ("tools/call", True, "tool_error", None),
            ("resources/read", True, "-32602", "profile"),
            ("_OTHER", True, "-32601", None),
            ("message", True, "-32700", "message"),
            *told[4:],
        ]
        assert len(told) == 5, "odd context and an odd id lose no span"
        assert not any(b"planted" in body for body in collector.bodies)


@ERAS
async def test_a_question_brings_the_trace_that_the_server_names(upstream_era: str) -> None:
    form = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}, "_meta": {"traceparent": SAMPLED}}
    async with peer(upstream_era) as upstream:

        async def tool(call: Call) -> Json:
            if upstream_era == "modern":
                entry = {"method": "elicitation/create", "params": form}
                return {"resultType": "input_required", "inputRequests": {"k": entry}}
            await call.ask("elicitation/create", form)
            return text("done")

        upstream.on["tools/call"] = tool
        async with running({"mcp": upstream}) as gateway:
            call = partial(gateway.front().modern, "tools/call", capabilities={"elicitation": {"form": {}}})
            asked = (await call({"name": "t"})).result
            ((key, entry),) = asked["inputRequests"].items()
            assert entry["params"]["_meta"]["traceparent"] == SAMPLED
            if upstream_era == "legacy":
                back = {"inputResponses": {key: {"action": "decline"}}, "requestState": asked["requestState"]}
                assert (await call({"name": "t", **back})).said == "done"


async def test_what_is_answered_again_from_memory_has_no_span_and_ends_none_twice() -> None:
    async with collecting() as collector, ModernUpstream() as upstream:
        upstream.on["tools/list"] = {"tools": [], "ttlMs": 60_000, "cacheScope": "private"}
        more = {"cache": {"max_bytes": 1 << 20}, "log": {"level": "debug"}, "admin": "127.0.0.1:0"}
        async with running({"mcp": upstream}, **tracing(collector, ratio=1), **more) as gateway:
            for _ in range(4):
                await gateway.front().modern("tools/list")
            samples = await settled(gateway, SERVED, 4, mcp_method_name="tools/list", upstream_era="modern")
            repeats = value(samples, "mcp_front_door_cache_repeats_total")
            assert repeats >= 2
            await gateway.stop()
            assert "ended span" not in gateway.stderr()
        assert len(collector.of("mcp-front-door")) == 4 - repeats


async def test_a_collector_that_is_away_harms_no_request() -> None:
    async with ModernUpstream() as upstream:
        away = {"endpoint": "http://127.0.0.1:9/v1/traces", "ratio": 1}
        async with running({"mcp": upstream}, tracing=away) as gateway:
            assert (await called(gateway, "modern", "echo")).status == 200


async def test_the_collector_is_shown_its_credentials_and_no_log_is() -> None:
    async with collecting() as collector, ModernUpstream() as upstream:
        more = tracing(collector, ratio=1, headers={"X-Token": "planted-token"}, service_name="door")
        async with running({"mcp": upstream}, **more, log={"level": "debug", "format": "json"}) as gateway:
            await called(gateway, "modern", "echo")
            await gateway.stop()
            assert "planted" not in gateway.stderr()
            lines = [json.loads(line) for line in gateway.stderr().splitlines()]
        assert collector.headers[0]["x-token"] == "planted-token"
        (served,) = collector.of("door")
        assert [line["trace"] for line in lines if line["message"] == "request"] == [served.trace]


async def test_a_collector_can_be_named_while_the_gateway_runs(tmp_path: Path) -> None:
    async with collecting() as collector, ModernUpstream() as upstream:
        file = tmp_path / "gateway.yaml"
        file.write_text(json.dumps(settings({"mcp": upstream})))
        gateway = await GatewayProcess.start(["serve", "-c", str(file)], tmp_path)
        try:
            await called(gateway, "modern", "echo")
            file.write_text(json.dumps(settings({"mcp": upstream}, **tracing(collector, ratio=1))))
            gateway.process.send_signal(signal.SIGHUP)
            async with asyncio.timeout(DEADLINE_S):
                while "traceparent" not in upstream.requests[-1].meta:
                    await called(gateway, "modern", "echo")
            file.write_text(json.dumps(settings({"mcp": upstream})))
            gateway.process.send_signal(signal.SIGHUP)
            await collector.until(lambda: collector.spans)  # what was left is sent when another one takes over
        finally:
            await gateway.stop()


def test_what_is_not_installed_is_asked_for_by_name(tmp_path: Path) -> None:
    file = tmp_path / "gateway.yaml"
    endpoint = {"endpoint": "http://127.0.0.1:4318/v1/traces"}
    file.write_text(json.dumps(settings({"mcp": {"url": "http://127.0.0.1:9/mcp"}}, tracing=endpoint)))
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['opentelemetry.sdk'] = None\n")
    command = [sys.executable, "-m", "gateway", "check", "-c", str(file)]
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=ROOT, check=False)
    assert done.returncode != 0
    assert "tracing.endpoint: needs what is not installed: pip install 'mcp-front-door[otel]'" in done.stderr
    fine = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert fine.returncode == 0, fine.stderr


# the official SDK on both sides, with its own spans


@asynccontextmanager
async def real_server(collector: Collector, name: str) -> AsyncIterator[str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(REAL / "server.py"), collector.url, name),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(30):
            line = await process.stdout.readline()
        yield line.decode().removeprefix("listening on ").strip()
    finally:
        process.terminate()
        await process.communicate()


CALLS = {"harbour": ("ferries", {"port": "Texel"}), "weather": ("sky", {"city": "Bergen"})}


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
@pytest.mark.parametrize("server", CALLS)
async def test_one_trace_leads_from_a_real_host_to_a_real_server(mode: str, server: str) -> None:
    tool, arguments = CALLS[server]
    async with collecting() as collector, real_server(collector, server) as url:
        async with running({"mcp": {"url": url}}, **tracing(collector, ratio=0)) as gateway:
            host = await asyncio.create_subprocess_exec(
                *(sys.executable, str(REAL / "client.py"), collector.url, gateway.url + "/mcp"),
                *(mode, tool, json.dumps(arguments)),
                stdout=asyncio.subprocess.PIPE,
            )
            async with asyncio.timeout(2 * DEADLINE_S):
                said, _ = await host.communicate()
            assert said.split()[-1] == b"False"
            await gateway.stop()

        def chain() -> list[Got] | None:
            by_id = {span.id: span for span in collector.spans}
            for last in collector.of("upstream"):
                if last.name.startswith("tools/call"):
                    spans = [last]
                    while (parent := by_id.get(spans[-1].parent)) is not None:
                        spans.append(parent)
                    if len(spans) >= 4:
                        return spans
            return None

        spans = await collector.until(chain)
        assert len({span.trace for span in spans}) == 1
        assert [(span.service, span.kind) for span in spans[:4]] == [
            ("upstream", "server"),
            ("mcp-front-door", "client"),
            ("mcp-front-door", "server"),
            ("host", "client"),
        ]
        assert {span.name for span in spans[1:3]} == {f"tools/call {tool}"}
