"""The admin listener as probes and Prometheus meet it: health, who may read, and what is counted where."""

import asyncio
import json

import pytest

from tests.gateway_process import running
from tests.peers import LegacyUpstream, ModernUpstream, text
from tests.raw_front import Answer, Front, modern_headers, modern_request
from tests.scrape import settled, value
from tests.scripted import Call, Err, Json

ADMIN = {"admin": "127.0.0.1:0"}
TOKEN = "planted-admin-token-0123456789"

SERVED, ASKED = "mcp_server_operation_duration_seconds_count", "mcp_client_operation_duration_seconds_count"


async def test_health_is_for_everybody_and_metrics_are_for_who_has_the_token() -> None:
    async with ModernUpstream() as upstream, running({"mcp": upstream}, **ADMIN, admin_token=TOKEN) as gateway:
        front = Front(gateway.admin_url)
        right = {"Authorization": f"Bearer {TOKEN}"}
        for path in ("/healthz", "/readyz"):
            assert (await front.at(path).send("GET", {})).status == 200
        for path, found in (("/metrics", 200), ("/", 404), ("/mcp", 404)):
            assert (await front.at(path).send("GET", right)).status == found
            for wrong in ({}, {"Authorization": TOKEN}, {"Authorization": f"Bearer {TOKEN}x"}):
                assert (await front.at(path).send("GET", wrong)).status == 401
            assert (await front.at(path).send("GET", {"Authorization": b"Bearer \xff"})).status == 401
        for host, status in (
            ("localhost:9", 200),
            ("[::1]", 200),
            ("127.0.0.1", 200),
            ("evil.example", 403),
            ("", 403),
        ):
            assert (await front.at("/metrics").send("GET", {**right, "Host": host})).status == status
        assert (await gateway.front("/metrics").send("GET", right)).status in (404, 405), "never on the public listener"
        assert TOKEN not in gateway.stderr()


@pytest.mark.parametrize("front_era", ["legacy", "modern"])
@pytest.mark.parametrize("upstream_era", ["legacy", "modern"])
async def test_calls_are_counted_by_how_they_went_on_both_sides(front_era: str, upstream_era: str) -> None:
    upstream = LegacyUpstream() if upstream_era == "legacy" else ModernUpstream()

    async def tool(call: Call) -> Json | Err:
        name = call.seen.params["name"]
        if name == "streams":
            await call.notify("notifications/message", {"level": "error", "data": "x"})
        if name == "refuses":
            return Err(-32602)
        return {**text("said"), "isError": name == "fails"}

    upstream.on["tools/call"] = tool
    async with upstream, running({"mcp": upstream}, **ADMIN) as gateway:
        session = await gateway.front().initialize() if front_era == "legacy" else gateway.front()

        async def call(name: str) -> Answer:
            ask = session.request if front_era == "legacy" else session.modern  # type: ignore[union-attr]
            return await ask("tools/call", {"name": name})

        for name in ("works", "streams", "fails", "refuses"):
            await call(name)
        labels = {"mcp_method_name": "tools/call"}
        samples = await settled(gateway, SERVED, 4, route="/mcp", era=front_era, **labels)
        for name, side in ((SERVED, {"route": "/mcp"}), (ASKED, {"upstream": "mcp"})):
            for error, count in (("", 2), ("tool_error", 1), ("-32602", 1)):
                assert value(samples, name, error_type=error, **side, **labels) == count, (name, error)
        buckets = {have for found, have in samples if found.endswith("operation_duration_seconds_bucket")}
        assert {"0.001", "0.002", "0.005", "0.01", "300.0", "+Inf"} <= {dict(have)["le"] for have in buckets}
        assert value(samples, "mcp_front_door_sessions_opened_total") == (front_era == "legacy")
        assert value(samples, "mcp_front_door_build_info") == 1
        assert value(samples, "process_resident_memory_bytes") > 0


async def test_what_is_under_way_is_told_apart_from_streams_that_stay() -> None:
    async with LegacyUpstream(get_stream=True) as upstream, running({"mcp": upstream}, **ADMIN) as gateway:
        hold = asyncio.Event()

        async def tool(call: Call) -> Json:
            await hold.wait()
            return text("done")

        upstream.on["tools/call"] = tool
        session = await gateway.front().initialize()
        in_flight, streams = "mcp_front_door_requests_in_flight", "mcp_front_door_streams"
        await settled(gateway, in_flight, 0)
        calling = asyncio.create_task(session.request("tools/call", {"name": "t"}))
        async with session.get() as stream:
            assert stream.status == 200
            await settled(gateway, in_flight, 1)
            await settled(gateway, streams, 1)
        samples = await settled(gateway, streams, 0)
        hold.set()
        assert (await calling).said == "done"
        await settled(gateway, in_flight, 0)
        assert value(samples, SERVED, route="/mcp", mcp_method_name="", era="") == 0, "no duration of a stream"
        await session.delete()
        await settled(gateway, "mcp_front_door_sessions_ended_total", 1)


async def test_refusals_hang_ups_and_dead_upstreams_are_counted_by_reason() -> None:
    async with ModernUpstream() as upstream, ModernUpstream() as dead:

        async def never(call: Call) -> None:
            await call.gone()
            call.close()

        upstream.on["tools/call"] = never
        async with running({"mcp": upstream, "dead": (dead, {"era": "modern"})}, **ADMIN) as gateway:
            await dead.stop()
            front = gateway.front()
            assert (await front.send("PUT", {})).status == 405
            assert (await front.at("/nowhere").modern("tools/list")).status == 404
            assert (await front.post(b"{")).status == 400
            assert (await front.at("/dead").modern("tools/list")).status == 503
            message = modern_request("tools/call", {"name": "t"})
            head = front.posting(modern_headers(message))
            async with front.sent("POST", head, json.dumps(message).encode()) as (_, writer):
                await upstream.seen("tools/call")
                writer.close()
                samples = await settled(gateway, SERVED, 1, error_type="cancelled", mcp_method_name="tools/call")
            assert value(samples, ASKED, error_type="cancelled", upstream="mcp") == 1
            assert value(samples, SERVED, route="", error_type="405") == 1
            assert value(samples, SERVED, route="", error_type="404") == 1
            assert value(samples, SERVED, error_type="-32700") == 1
            assert value(samples, SERVED, route="/dead", error_type="503") == 1
            assert value(samples, "mcp_front_door_upstream_errors_total", upstream="dead", reason="connect") >= 1
