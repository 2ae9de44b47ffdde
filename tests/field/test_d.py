"""Field reports D: what the headers say and what the body says is one thing, or nothing is done."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.door import Door
from tests.field.pairs import either_upstream
from tests.gateway_process import GatewayProcess, running
from tests.peers import LegacyUpstream, ModernUpstream
from tests.raw_front import CLIENT_INFO, MODERN, PREFIX, Overrides, modern_headers, modern_request, request, sentinel
from tests.scripted import Json

CALL = modern_request("tools/call", {"name": "danger_tool", "arguments": {}}, ident="d-1")
READ = modern_request("resources/read", {"uri": "note://danger"}, ident="d-1")
PROMPT = modern_request("prompts/get", {"name": "danger"}, ident="d-1")
LIST = modern_request("tools/list", ident="d-1")

DISAGREEING: dict[str, tuple[Json, Overrides]] = {
    "another tool": (CALL, {"Mcp-Name": "safe_tool"}),
    "another tool, encoded": (CALL, {"Mcp-Name": sentinel("safe_tool")}),
    "the tool in another case": (CALL, {"Mcp-Name": "Danger_Tool"}),
    "the tool with a suffix": (CALL, {"Mcp-Name": "danger_tool2"}),
    "another resource": (READ, {"Mcp-Name": "note://safe"}),
    "another prompt": (PROMPT, {"Mcp-Name": "safe"}),
    "a read for a call": (CALL, {"Mcp-Method": "resources/read"}),
    "a list for a call": (CALL, {"Mcp-Method": "tools/list"}),
    "a list for a call, unnamed": (CALL, {"Mcp-Method": "tools/list", "Mcp-Name": None}),
    "a call for a list": (LIST, {"Mcp-Method": "tools/call", "Mcp-Name": "safe_tool"}),
    "the method in another case": (CALL, {"Mcp-Method": "Tools/Call"}),
    "an unknown method for a call": (CALL, {"Mcp-Method": "vendor/other"}),
    "no method": (CALL, {"Mcp-Method": None}),
    "an empty method": (CALL, {"Mcp-Method": ""}),
    "no name": (CALL, {"Mcp-Name": None}),
    "no name of a resource": (READ, {"Mcp-Name": None}),
    "no name of a prompt": (PROMPT, {"Mcp-Name": None}),
    "an empty name": (CALL, {"Mcp-Name": ""}),
    "no version": (CALL, {"MCP-Protocol-Version": None}),
    "a legacy version": (CALL, {"MCP-Protocol-Version": "2025-11-25"}),
    "two methods, the right one first": (CALL, {"Mcp-Method": ["tools/call", "tools/list"]}),
    "two methods, the right one last": (CALL, {"Mcp-Method": ["tools/list", "tools/call"]}),
    "two names, the right one first": (CALL, {"Mcp-Name": ["danger_tool", "safe_tool"]}),
    "two names, the right one last": (CALL, {"Mcp-Name": ["safe_tool", "danger_tool"]}),
    "two versions": (CALL, {"MCP-Protocol-Version": [MODERN, "2025-11-25"]}),
    "two versions, the older first": (CALL, {"MCP-Protocol-Version": ["2025-11-25", MODERN]}),
}


@pytest.mark.field("D1", "D2")
@either_upstream
@pytest.mark.parametrize("name", DISAGREEING)
async def test_headers_that_are_missing_or_say_otherwise_than_the_body_reach_no_upstream(
    door: Door, upstream_era: str, name: str
) -> None:
    message, changes = DISAGREEING[name]
    answer = await door.front(upstream_era).post(message, {**modern_headers(message), **changes})
    assert (answer.status, answer.code, answer.final["id"]) == (400, -32020, "d-1"), repr(answer)
    assert message["method"] not in door.upstream(upstream_era).methods()


@pytest.mark.field("D1")
@either_upstream
@pytest.mark.parametrize("method", ["Tools/Call", "TOOLS/CALL", "tools/call "])
async def test_a_method_in_another_case_is_another_method(door: Door, upstream_era: str, method: str) -> None:
    message = modern_request(method, {"name": "danger_tool"})
    answer = await door.front(upstream_era).post(message, {**modern_headers(message), "Mcp-Name": "danger_tool"})
    assert (answer.status, answer.code) in ((404, -32601), (400, -32020)), repr(answer)
    assert door.upstream(upstream_era).calls("tools/call") == []


Ruled = tuple[GatewayProcess, dict[str, LegacyUpstream | ModernUpstream]]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def ruled() -> AsyncIterator[Ruled]:
    """Routes `/legacy`, `/modern` and `/verified`, each with an upstream for `safe_*` tools and one for all others."""
    upstreams: dict[str, LegacyUpstream | ModernUpstream] = {}
    for name in ("legacy", "modern", "verified"):
        kind = LegacyUpstream if name == "legacy" else ModernUpstream
        upstreams |= {f"{name}-safe": kind(), f"{name}-other": kind()}
    for upstream in upstreams.values():
        await upstream.start()
    behind = {name: (peer, {"verifies_headers": name.startswith("verified")}) for name, peer in upstreams.items()}
    routes = [
        {
            "path": f"/{name}",
            "rules": [{"method": "tools/call", "name": {"glob": "safe_*"}, "upstream": f"{name}-safe"}],
            "default": f"{name}-other",
        }
        for name in ("legacy", "modern", "verified")
    ]
    async with running(behind, routes=routes) as gateway:
        yield gateway, upstreams
    for upstream in upstreams.values():
        await upstream.stop()
        upstream.check()


@pytest.mark.field("D1")
async def test_an_upstream_that_verifies_headers_gets_what_was_routed_on(ruled: Ruled) -> None:
    gateway, upstreams = ruled
    changes = {**modern_headers(CALL), "Mcp-Name": "safe_tool"}
    answer = await gateway.front("/verified").post(CALL, changes)
    assert upstreams["verified-other"].calls("tools/call") == [], "the header names a tool of another upstream"
    seen = upstreams["verified-safe"].calls("tools/call")
    for request_seen in seen:
        assert request_seen.headers.all("Mcp-Name") == ["safe_tool"]
        assert request_seen.headers.all("Mcp-Method") == ["tools/call"]
    if not seen:
        assert (answer.status, answer.code) == (400, -32020)


@pytest.mark.field("D1")
@either_upstream
async def test_rules_see_the_name_that_the_body_has(ruled: Ruled, upstream_era: str) -> None:
    gateway, upstreams = ruled
    front = gateway.front(f"/{upstream_era}")
    lied = await front.post(CALL, {**modern_headers(CALL), "Mcp-Name": "safe_tool"})
    assert (lied.status, lied.code) == (400, -32020)
    for name in ("safe_tool", "danger_tool", "Safe_tool"):
        assert "result" in (await front.modern("tools/call", {"name": name})).final
    session = await front.initialize()
    for name in ("safe_tool", "danger_tool"):
        answer = await session.request("tools/call", {"name": name}, headers={"Mcp-Name": "safe_lie"})
        assert json.loads(answer.said)["name"] == name
    called = {
        place: [seen.params["name"] for seen in upstreams[f"{upstream_era}-{place}"].calls("tools/call")]
        for place in ("safe", "other")
    }
    assert called == {"safe": ["safe_tool"] * 2, "other": ["danger_tool", "Safe_tool", "danger_tool"]}


# Codes and statuses (report D2)


@pytest.mark.field("D2")
@either_upstream
async def test_an_unknown_method_is_404(door: Door, upstream_era: str) -> None:
    for method in ("vendor/unknown", "tools/unknown", "initialize", "ping", "logging/setLevel", "resources/subscribe"):
        answer = await door.front(upstream_era).modern(method, {}, ident="unknown")
        assert (answer.status, answer.code, answer.final["id"]) == (404, -32601, "unknown"), method


META_FAULTS: dict[str, Any] = {
    "no version": {PREFIX + "protocolVersion": None},
    "no capabilities": {PREFIX + "clientCapabilities": None},
    "neither": {PREFIX + "protocolVersion": None, PREFIX + "clientCapabilities": None},
    "capabilities that are no object": {PREFIX + "clientCapabilities": "all"},
}


@pytest.mark.field("D2")
@either_upstream
@pytest.mark.parametrize("name", META_FAULTS)
@pytest.mark.parametrize("method", ["tools/list", "tools/call", "server/discover"])
async def test_missing_request_metadata_is_400(door: Door, upstream_era: str, name: str, method: str) -> None:
    answer = await door.front(upstream_era).modern(method, {"name": "echo"}, ident="m", meta=META_FAULTS[name])
    assert (answer.status, answer.code, answer.final["id"]) == (400, -32602, "m"), repr(answer)
    assert method == "server/discover" or method not in door.upstream(upstream_era).methods()


@pytest.mark.field("D2")
@either_upstream
@pytest.mark.parametrize(
    "params",
    [None, {}, {"_meta": None}, {"_meta": []}, {"_meta": {"progressToken": 1}}],
    ids=["no params", "no _meta", "null", "a list", "other keys"],
)
async def test_no_request_metadata_at_all_is_400(door: Door, upstream_era: str, params: Any) -> None:
    message = request("tools/list", params, ident=4)
    answer = await door.front(upstream_era).post(message, {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/list"})
    assert (answer.status, answer.code, answer.final["id"]) == (400, -32602, 4), repr(answer)
    assert door.upstream(upstream_era).calls("tools/list") == []


@pytest.mark.field("D2")
@either_upstream
async def test_client_info_may_be_missing(door: Door, upstream_era: str) -> None:
    answer = await door.front(upstream_era).modern("tools/list", meta={PREFIX + "clientInfo": None})
    assert (answer.status, answer.result["tools"][0]["name"]) == (200, "echo")


@pytest.mark.field("D2")
@either_upstream
@pytest.mark.parametrize("version", ["2026-11-01", "1999-01-01", "draft", "2026-07-28 "])
async def test_a_version_that_is_not_served_is_400_and_names_those_that_are(
    door: Door, upstream_era: str, version: str
) -> None:
    meta = {PREFIX + "protocolVersion": version.strip()}
    headers = {"MCP-Protocol-Version": version}
    answer = await door.front(upstream_era).modern("tools/list", ident="v", meta=meta, headers=headers)
    if version.strip() == MODERN:
        assert answer.status == 200, "whitespace around a header value is no part of it"
        return
    assert (answer.status, answer.code, answer.final["id"]) == (400, -32022, "v"), repr(answer)
    assert MODERN in answer.error["data"]["supported"]
    assert answer.error["data"]["requested"] == version


@pytest.mark.field("D2")
@either_upstream
async def test_a_name_where_none_belongs_is_no_reason_to_refuse(door: Door, upstream_era: str) -> None:
    answer = await door.front(upstream_era).modern("tools/list", headers={"Mcp-Name": "echo"})
    assert answer.result["tools"][0]["name"] == "echo"


@pytest.mark.field("D2")
@either_upstream
async def test_initialize_needs_none_of_these_headers(door: Door, upstream_era: str) -> None:
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT_INFO}
    answer = await door.front(upstream_era).post(request("initialize", params))
    assert (answer.status, answer.result["protocolVersion"]) == (200, "2025-11-25")


@pytest.mark.field("D2")
@either_upstream
async def test_header_names_ignore_case(door: Door, upstream_era: str) -> None:
    message = modern_request("tools/call", {"name": "echo"})
    shouted = {name.upper(): value for name, value in modern_headers(message).items()}
    assert "result" in (await door.front(upstream_era).post(message, shouted)).final
    assert len(door.upstream(upstream_era).calls("tools/call")) == 1
