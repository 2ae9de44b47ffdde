"""What is counted of what goes through: by pair of eras and tool, what was refused, asked, stripped, kept, reloaded."""

import asyncio
import json
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from policies.mcp import PREFIX
from tests.gateway.test_keys import bearer, digest
from tests.gateway_process import GatewayProcess, running, settings
from tests.http_wire import DEADLINE_S
from tests.peers import LegacyUpstream, ModernUpstream, text
from tests.raw_front import Front, Session
from tests.scrape import Samples, scrape, settled, value
from tests.scripted import Call, Json, Upstream

ADMIN = {"admin": "127.0.0.1:0"}
UNCACHED: dict[str, Any] = {**ADMIN, "cache": {"max_bytes": 0}}
SERVED, ASKED = "mcp_server_operation_duration_seconds_count", "mcp_client_operation_duration_seconds_count"
KEY = "mfd_counted" + "a" * 36
OWN = "mcp_front_door_"
ASKING = {"elicitation": {"form": {}}, "sampling": {}, "roots": {}}


def labels_of(samples: Samples, name: str, label: str) -> set[str]:
    return {dict(have).get(label, "") for found, have in samples if found == name}


@pytest.mark.parametrize("tools", [True, False])
@pytest.mark.parametrize("front_era", ["legacy", "modern"])
@pytest.mark.parametrize("upstream_era", ["legacy", "modern"])
async def test_a_call_is_counted_by_pair_of_eras_and_by_the_tools_that_are_listed(
    front_era: str, upstream_era: str, tools: bool
) -> None:
    upstream: Upstream = LegacyUpstream() if upstream_era == "legacy" else ModernUpstream()
    async with upstream, running({"mcp": upstream}, **UNCACHED, metrics={"tools": tools}) as gateway:
        caller: Front | Session = gateway.front()
        ask: Any = gateway.front().modern
        if front_era == "legacy":
            caller = await gateway.front().initialize()
            ask = caller.request
        for method, params in (
            ("tools/call", {"name": "echo"}),  # not listed yet
            ("tools/list", None),
            ("tools/call", {"name": "echo"}),
            ("tools/call", {"name": "planted"}),
            ("prompts/get", {"name": "hello"}),
            ("resources/read", {"uri": "note://planted"}),
        ):
            assert (await ask(method, params)).status == 200
        pair = {"era": front_era, "upstream_era": upstream_era, "route": "/mcp", "upstream": "mcp"}
        samples = await settled(gateway, SERVED, 1, **pair, mcp_method_name="resources/read")
        sides: tuple[tuple[str, dict[str, str]], ...] = (
            (SERVED, pair),
            (ASKED, {"upstream": "mcp", "upstream_era": upstream_era}),
        )
        for name, side in sides:
            assert value(samples, name, **side, mcp_method_name="tools/call") == 3
            told = {"echo": 1, "_OTHER": 2} if tools else {"": 3}
            for tool, count in told.items():
                assert value(samples, name, **side, mcp_method_name="tools/call", gen_ai_tool_name=tool) == count
        is_spliced = front_era == upstream_era == "modern"
        assert value(samples, OWN + "splices_total", upstream="mcp") == (6 if is_spliced else 0)
        answer = await Front(gateway.admin_url + "/metrics").send("GET", {})
        assert b"planted" not in answer.body


async def test_names_of_tools_that_pass_unread_are_labels_too() -> None:
    async with (
        ModernUpstream() as upstream,
        running({"mcp": (upstream, {"verifies_headers": True})}, **UNCACHED) as gate,
    ):
        for method, params in (("tools/list", None), ("tools/call", {"name": "echo"}), ("tools/call", {"name": "x"})):
            await gate.front().modern(method, params)
        samples = await settled(gate, OWN + "splices_total", 3)
        for name in (SERVED, ASKED):
            assert value(samples, name, gen_ai_tool_name="echo", upstream_era="modern") == 1
            assert value(samples, name, gen_ai_tool_name="_OTHER", upstream_era="modern") == 1


async def test_refusals_are_counted_by_the_rung_at_which_they_came() -> None:
    clients = {"ci": {"keys": [digest(KEY)], "routes": ["/mcp"]}}
    async with ModernUpstream() as upstream, running({"mcp": upstream}, **ADMIN, clients=clients) as gateway:
        front, known = gateway.front(), bearer(KEY)
        for rung, error, answer in (
            ("head", "400", await front.modern("tools/list", headers={**known, "Connection": "mcp-method"})),
            ("admission", "403", await front.modern("tools/list", headers={**known, "Host": "evil.example"})),
            ("admission", "404", await front.at("/nowhere").modern("tools/list", headers=known)),
            ("admission", "405", await front.send("PUT", known)),
            ("identity", "401", await front.modern("tools/list")),
            ("body", "415", await front.modern("tools/list", headers={**known, "Content-Encoding": "x"})),
            ("message", "-32700", await front.post(b"{", known)),
            ("session", "400", await front.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, known)),
            ("session", "-32001", await front.send("DELETE", {**known, "Mcp-Session-Id": "none"})),
            ("envelope", "-32020", await front.modern("tools/list", headers={**known, "Mcp-Method": "tools/call"})),
            ("profile", "-32602", await front.modern("resources/read", {"uri": "ui://cart"}, headers=known)),
        ):
            assert answer.error
            samples = await settled(gateway, OWN + "refusals_total", 1, rung=rung, error_type=error)
        before = sum(count for (name, _), count in samples.items() if name == OWN + "refusals_total")
        session = await front.initialize(headers=known)
        assert (await session.request("resources/read", {"uri": "ui://cart"})).status == 200
        samples = await settled(gateway, OWN + "refusals_total", before + 1)
        assert value(samples, OWN + "refusals_total", rung="profile", error_type="-32002", route="/mcp") == 1
        assert (await session.request("tools/call", {"name": "echo"})).result, "what is let through is no refusal"
        assert value(await scrape(gateway), OWN + "refusals_total") == before + 1


FORM = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}


async def test_questions_are_counted_by_kind_and_what_came_of_them() -> None:
    async with LegacyUpstream(get_stream=True) as upstream, running({"mcp": upstream}, **ADMIN) as gateway:

        async def tool(call: Call) -> Json:
            asks = {"form": ("elicitation/create", FORM), "roots": ("roots/list", {})}
            await call.ask(*asks[call.seen.params["name"]])
            return text("done")

        upstream.on["tools/call"] = tool
        session = await gateway.front().initialize(capabilities=ASKING)
        for name, said in (
            ("form", {"result": {"action": "accept", "content": {}}}),
            ("form", {"result": {"action": "decline"}}),
            ("roots", {"error": {"code": -1, "message": "no"}}),
        ):
            async with session.open("tools/call", {"name": name}) as stream:
                while (message := await stream.message()) is not None and "result" not in message:
                    if "id" in message:
                        await session.reply(message["id"], said)
        samples = await settled(gateway, OWN + "asks_total", 3)
        for kind, outcome in (("elicitation", "answered"), ("elicitation", "declined"), ("roots", "error")):
            assert value(samples, OWN + "asks_total", kind=kind, outcome=outcome, upstream="mcp") == 1
        # the same for a client of 2026-07-28, which comes back
        asked = (await gateway.front().modern("tools/call", {"name": "form"}, capabilities=ASKING)).result
        key = next(iter(asked["inputRequests"]))
        samples = await settled(gateway, OWN + "calls_parked", 1)
        assert value(samples, OWN + "rounds_total", form="bridged", upstream="mcp") == 1
        assert value(samples, OWN + "upstream_leases", upstream="mcp") == 1
        assert value(samples, OWN + "upstream_streams", upstream="mcp") >= 1
        back = {"inputResponses": {key: {"action": "cancel"}}, "requestState": asked["requestState"]}
        again = await gateway.front().modern("tools/call", {"name": "form", **back}, capabilities=ASKING)
        assert again.said == "done"
        samples = await settled(gateway, OWN + "asks_total", 1, outcome="cancelled")
        assert value(samples, OWN + "parked_calls_ended_total", outcome="resumed") == 1
        assert value(samples, OWN + "upstream_leases") == 0
        await session.delete()
        samples = await settled(gateway, "mcp_server_session_duration_seconds_count", 1)
        assert labels_of(samples, "mcp_server_session_duration_seconds_count", "mcp_protocol_version") == {"2025-11-25"}


@pytest.mark.parametrize("extra", [{}, {"verifies_headers": True}], ids=["read", "unread"])
async def test_questions_that_are_relayed_are_counted_as_such(extra: Json) -> None:
    entry = {"method": "elicitation/create", "params": FORM}
    async with ModernUpstream() as upstream, running({"mcp": (upstream, extra)}, **ADMIN) as gateway:
        upstream.on["tools/call"] = {"resultType": "input_required", "inputRequests": {"k": entry}}
        await gateway.front().modern("tools/call", {"name": "t"}, capabilities=ASKING)
        samples = await settled(gateway, OWN + "rounds_total", 1, form="relayed", upstream="mcp")
        assert value(samples, OWN + "asks_total", kind="elicitation", outcome="relayed") == 1


@pytest.mark.parametrize("front_era", ["legacy", "modern"])
@pytest.mark.parametrize("upstream_era", ["legacy", "modern"])
async def test_what_hosts_without_apps_are_not_shown_is_counted(front_era: str, upstream_era: str) -> None:
    upstream: Upstream = LegacyUpstream() if upstream_era == "legacy" else ModernUpstream()
    shown = {"name": "a", "inputSchema": {"type": "object"}, "_meta": {"ui": {"resourceUri": "ui://a"}}}
    hidden = {"name": "b", "inputSchema": {"type": "object"}, "_meta": {"ui": {"visibility": ["app"]}}}
    upstream.on["tools/list"] = {"tools": [hidden, shown]}
    async with upstream, running({"mcp": upstream}, **ADMIN) as gateway:
        if front_era == "legacy":
            answer = await (await gateway.front().initialize()).request("tools/list")
        else:
            answer = await gateway.front().modern("tools/list")
        assert [tool["name"] for tool in answer.result["tools"]] == ["a"]
        samples = await settled(gateway, OWN + "stripped_items_total", 1, item="tools", upstream="mcp")
        assert value(samples, OWN + "stripped_items_total", item="_meta") == 1


async def test_what_the_cache_saves_is_counted_in_bytes() -> None:
    more: dict[str, Any] = {"cache": {"max_bytes": 1 << 20}}
    async with ModernUpstream() as upstream, running({"mcp": upstream}, **ADMIN, **more) as gateway:
        upstream.on["tools/list"] = {"tools": [], "ttlMs": 60_000, "cacheScope": "private"}
        answers = [await gateway.front().modern("tools/list") for _ in range(3)]
        saved = sum(len(answer.body) for answer in answers[1:])
        samples = await settled(gateway, OWN + "cache_saved_bytes_total", saved, mcp_method_name="tools/list")
        assert value(samples, ASKED, mcp_method_name="tools/list") == 1
        assert value(samples, SERVED, mcp_method_name="tools/list", upstream_era="modern") == 3


LINE = {"time", "level", "logger", "message", "status", "duration_ms", "route", "decision", "outcome"}


async def lines(gateway: GatewayProcess, count: int) -> list[Json]:
    """The lines of requests, once there are so many: each is written once its answer is out."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            written = [json.loads(line) for line in gateway.stderr().splitlines()]
            found = [line for line in written if line["message"] == "request"]
            if len(found) >= count:
                return found
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("front_era", ["legacy", "modern"])
@pytest.mark.parametrize("upstream_era", ["legacy", "modern"])
async def test_each_request_is_one_line_of_who_what_whether_how_and_how_long(front_era: str, upstream_era: str) -> None:
    upstream: Upstream = LegacyUpstream() if upstream_era == "legacy" else ModernUpstream()

    async def tool(call: Call) -> Json:
        return {**text("done"), "isError": call.seen.params["name"] != "echo"}

    upstream.on["tools/call"] = tool
    clients = {"ci": {"keys": [digest(KEY)], "routes": ["/mcp"]}}
    more: dict[str, Any] = {"clients": clients, "log": {"level": "info", "format": "json"}}
    async with upstream, running({"mcp": upstream}, **more) as gateway:
        ask: Any = partial(gateway.front().modern, headers=bearer(KEY))
        before = 0
        if front_era == "legacy":
            ask, before = (await gateway.front().initialize(headers=bearer(KEY))).request, 2
        for method, params in (
            ("tools/list", None),
            ("tools/call", {"name": "echo"}),
            ("tools/call", {"name": "planted"}),
            ("prompts/list", None),
            ("prompts/get", {"name": "hello"}),
            ("resources/read", {"uri": "note://planted"}),
            ("resources/read", {"uri": "ui://planted"}),
        ):
            await ask(method, params)
        await gateway.front().modern("tools/call", {"name": "planted"}, headers=bearer("wrong"))
        found = (await lines(gateway, before + 8))[before:]
        told = [(line.get("method"), line.get("name"), line["decision"], line["outcome"]) for line in found]
        assert told == [
            ("tools/list", None, "allow", "ok"),
            ("tools/call", "echo", "allow", "ok"),
            ("tools/call", "_OTHER", "allow", "tool_error"),
            ("prompts/list", None, "allow", "ok"),
            ("prompts/get", "hello", "allow", "ok"),
            ("resources/read", None, "allow", "ok"),
            ("resources/read", None, "deny", "-32002" if front_era == "legacy" else "-32602"),
            (None, None, "deny", "401"),
        ]
        for line in found[:6]:
            assert set(line) >= LINE | {"client", "era", "upstream_era", "upstream", "upstream_ms"}
            assert (line["client"], line["route"], line["upstream"]) == ("ci", "/mcp", "mcp")
            assert (line["era"], line["upstream_era"]) == (front_era, upstream_era)
            assert 0 < line["upstream_ms"] <= line["duration_ms"]
            assert ("session" in line) == (front_era == "legacy")
        assert [line.get("rung") for line in found] == [None] * 6 + ["profile", "identity"]
        assert "planted" not in gateway.stderr()


async def up(gateway: GatewayProcess, name: str, wanted: float, **labels: str) -> None:
    await settled(gateway, OWN + name, wanted, **labels)


async def test_the_state_of_an_upstream_is_told_as_it_goes_and_comes_back() -> None:
    async with ModernUpstream() as modern, LegacyUpstream() as legacy:
        looked_at = {"urls": [modern.url], "health": {"interval_s": 0.1}}
        async with running({"modern": looked_at, "legacy": legacy}, **ADMIN) as gateway:
            await gateway.front("/modern").modern("tools/list")
            await gateway.front("/legacy").modern("tools/list")
            for name in ("modern", "legacy"):
                await up(gateway, "upstream_up", 1, upstream=name)
                await up(gateway, "upstream_era_info", 1, upstream=name, era=name)
            await up(gateway, "upstream_sessions", 1, upstream="legacy")
            await modern.stop()
            assert (await gateway.front("/modern").modern("tools/list")).status == 503
            await up(gateway, "upstream_up", 0, upstream="modern")
            await up(gateway, "endpoint_up", 0, upstream="modern")
            await up(gateway, "upstream_up", 1, upstream="legacy")
            await modern.start()
            await up(gateway, "upstream_up", 1, upstream="modern")  # found by the gateway's own look
            await up(gateway, "endpoint_up", 1, upstream="modern")


async def test_reloads_are_counted_and_the_last_one_tells_whether_the_file_is_in_service(tmp_path: Path) -> None:
    async with ModernUpstream() as upstream:
        file = tmp_path / "gateway.yaml"
        good = json.dumps(settings({"mcp": upstream}, **ADMIN))
        file.write_text(good)
        gateway = await GatewayProcess.start(["serve", "-c", str(file)], tmp_path)
        try:
            since = OWN + "config_last_reload_success_timestamp_seconds"
            began = value(await scrape(gateway), since)
            for content, outcome, ok in ((b"{", "failed", 0), (good.encode(), "ok", 1)):
                file.write_bytes(content)
                gateway.process.send_signal(signal.SIGHUP)
                samples = await settled(gateway, OWN + "config_reloads_total", 1, outcome=outcome)
                assert value(samples, OWN + "config_last_reload_successful") == ok
                assert (value(samples, since) > began) == ok
        finally:
            await gateway.stop()


async def test_nobody_makes_more_series_than_there_are_names() -> None:
    async with ModernUpstream() as upstream, running({"mcp": upstream}, **ADMIN) as gateway:
        front = gateway.front()
        await front.modern("tools/call", {"name": "echo"})
        before = len(await scrape(gateway))
        calls = (front.modern("tools/call", {"name": f"tool-{number}"}) for number in range(50))
        await asyncio.gather(*calls)
        await settled(gateway, SERVED, 51, gen_ai_tool_name="_OTHER")
        odd = (front.modern(f"method/{number}", meta={PREFIX + "x": number}) for number in range(50))
        await asyncio.gather(*odd)
        samples = await settled(gateway, SERVED, 50, mcp_method_name="_OTHER")
        grown = {dict(have).get("mcp_method_name") for found, have in samples if found == SERVED}
        assert grown == {"tools/call", "_OTHER"}
        assert len(samples) - before < 60, "one histogram a side, and the errors"
