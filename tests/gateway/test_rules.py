"""Rules of a route as the running gateway applies them: by method and name in either era, by `Mcp-Param-*` for requests
that have such headers. How a rule matches text: `tests/policies/test_routing.py`."""

import pytest

from tests.gateway_process import running
from tests.peers import LegacyUpstream, ModernUpstream
from tests.raw_front import modern_headers, modern_request, sentinel

CALL = modern_request("tools/call", {"name": "echo", "arguments": {}})
BY_REGION = {
    "path": "/mcp",
    "rules": [{"params": {"Region": {"prefix": "eu-"}}, "upstream": "europe"}],
    "default": "world",
}


@pytest.mark.parametrize(
    ("headers", "takes"),
    [
        ({"Mcp-Param-Region": "eu-west"}, "europe"),
        ({"mcp-param-REGION": "eu-west"}, "europe"),
        ({"Mcp-Param-Region": sentinel("eu-ö")}, "europe"),
        ({"Mcp-Param-Region": "us-east"}, "world"),
        ({"Mcp-Param-Region": "=?base64?eu-?="}, "world"),
        ({"Region": "eu-west"}, "world"),
        ({}, "world"),
    ],
)
async def test_a_rule_on_a_parameter_looks_at_its_header_decoded(headers: dict[str, str], takes: str) -> None:
    async with (
        ModernUpstream() as europe,
        ModernUpstream() as world,
        running({"europe": europe, "world": world}, routes=[BY_REGION]) as gateway,
    ):
        answer = await gateway.front().post(CALL, {**modern_headers(CALL), **headers})
        assert answer.status == 200, repr(answer)
        assert len(europe.calls("tools/call")) == (1 if takes == "europe" else 0)
        assert len(world.calls("tools/call")) == (0 if takes == "europe" else 1)


async def test_a_session_reaches_every_upstream_that_a_rule_names() -> None:
    by_name = {
        "path": "/mcp",
        "rules": [{"method": "tools/call", "name": {"prefix": "eu_"}, "upstream": "europe"}],
        "default": "world",
    }
    async with (
        LegacyUpstream() as europe,
        LegacyUpstream() as world,
        running({"europe": europe, "world": world}, routes=[by_name]) as gateway,
    ):
        session = await gateway.front().initialize()
        for name in ("eu_map", "map"):
            assert "result" in (await session.request("tools/call", {"name": name, "arguments": {}})).final
        assert [seen.params["name"] for seen in europe.calls("tools/call")] == ["eu_map"]
        assert [seen.params["name"] for seen in world.calls("tools/call")] == ["map"]
