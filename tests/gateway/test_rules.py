"""Rules of a route as the running gateway applies them: by method and name in either era, by `Mcp-Param-*` for requests
that have such headers. How a rule matches text: `tests/policies/test_routing.py`."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.gateway_process import GatewayProcess, running
from tests.peers import LegacyUpstream, ModernUpstream
from tests.raw_front import modern_headers, modern_request, sentinel

pytestmark = pytest.mark.asyncio(loop_scope="module")

CALL = modern_request("tools/call", {"name": "echo", "arguments": {}})
BY_REGION = {
    "path": "/mcp",
    "rules": [{"params": {"Region": {"prefix": "eu-"}}, "upstream": "europe"}],
    "default": "world",
}


House = tuple[GatewayProcess, dict[str, ModernUpstream]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def house() -> AsyncIterator[House]:
    async with (
        ModernUpstream() as europe,
        ModernUpstream() as world,
        running({"europe": europe, "world": world}, routes=[BY_REGION]) as gateway,
    ):
        yield gateway, {"europe": europe, "world": world}


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
async def test_a_rule_on_a_parameter_looks_at_its_header_decoded(
    house: House, headers: dict[str, str], takes: str
) -> None:
    gateway, upstreams = house
    for upstream in upstreams.values():
        upstream.reset()
    answer = await gateway.front().post(CALL, {**modern_headers(CALL), **headers})
    assert answer.status == 200, repr(answer)
    assert {name: len(upstream.calls("tools/call")) for name, upstream in upstreams.items()} == {
        name: int(name == takes) for name in upstreams
    }


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
