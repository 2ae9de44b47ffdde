"""Field reports R1, R3: a session belongs to the route and the caller it was opened for, who may be nobody."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.field.pairs import either_upstream
from tests.gateway_process import GatewayProcess, running
from tests.peers import TOOL, LegacyUpstream, ModernUpstream
from tests.raw_front import request

Routes = tuple[GatewayProcess, dict[str, LegacyUpstream | ModernUpstream]]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def routes() -> AsyncIterator[Routes]:
    """Two routes of each era, `/legacy1` to `/modern2`; the caller's Authorization says who he is."""
    upstreams = {
        "legacy1": LegacyUpstream(),
        "legacy2": LegacyUpstream(),
        "modern1": ModernUpstream(),
        "modern2": ModernUpstream(),
    }
    for name, upstream in upstreams.items():
        await upstream.start()
        upstream.on["tools/list"] = {"tools": [{**TOOL, "name": f"of-{name}"}]}
    behind = {name: (upstream, {"forward_headers": ["Authorization"]}) for name, upstream in upstreams.items()}
    async with running(behind) as gateway:
        yield gateway, upstreams
    for upstream in upstreams.values():
        await upstream.stop()
        upstream.check()


@pytest.mark.field("R1")
@either_upstream
async def test_a_session_is_good_on_its_own_route_alone(routes: Routes, upstream_era: str) -> None:
    gateway, upstreams = routes
    here, there = f"{upstream_era}1", f"{upstream_era}2"
    one, two = await gateway.front(f"/{here}").initialize(), await gateway.front(f"/{there}").initialize()
    for _ in range(3):
        assert [tool["name"] for tool in (await one.request("tools/list")).result["tools"]] == [f"of-{here}"]
        assert [tool["name"] for tool in (await two.request("tools/list")).result["tools"]] == [f"of-{there}"]
    asked = len(upstreams[there].calls("tools/list"))
    assert (await gateway.front(f"/{there}").post(request("tools/list"), one.headers)).status == 404
    assert (await gateway.front(f"/{there}").send("DELETE", one.headers)).status == 404
    assert len(upstreams[there].calls("tools/list")) == asked
    assert "result" in (await one.request("tools/list")).final, "the stray request did it no harm"


@pytest.mark.field("R1")
@either_upstream
async def test_a_session_is_good_for_its_own_caller_alone(routes: Routes, upstream_era: str) -> None:
    gateway, upstreams = routes
    upstream, front = upstreams[f"{upstream_era}1"], gateway.front(f"/{upstream_era}1")
    upstream.requests.clear()
    ann = await front.initialize(headers={"Authorization": "Bearer ann"})
    for headers in ({"Authorization": "Bearer bob"}, {"Authorization": None}, {"Authorization": "Bearer Ann"}):
        assert (await ann.request("tools/list", headers=headers)).status == 404
        assert (await front.send("DELETE", {**ann.headers, **headers})).status == 404
    assert "result" in (await ann.request("tools/list")).final
    assert {seen.headers.get("Authorization") for seen in upstream.calls("tools/list")} == {"Bearer ann"}


@pytest.mark.field("R3")
@either_upstream
async def test_nobody_in_particular_has_a_session_that_works_throughout(routes: Routes, upstream_era: str) -> None:
    gateway, upstreams = routes
    upstream = upstreams[f"{upstream_era}1"]
    upstream.requests.clear()
    session = await gateway.front(f"/{upstream_era}1").initialize()
    for method, params in (
        ("ping", {}),
        ("tools/list", {}),
        ("tools/call", {"name": "echo"}),
        ("resources/read", {"uri": "note://one"}),
        ("prompts/get", {"name": "hello"}),
    ):
        assert "result" in (await session.request(method, params)).final, method
    assert (await session.delete()).status == 200
    assert (await session.request("tools/list")).status == 404
    assert [seen for seen in upstream.requests if "Authorization" in seen.headers] == []
