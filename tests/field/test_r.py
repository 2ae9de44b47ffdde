"""Field reports R1, R3, R4: a session belongs to the route and the caller it was opened for, who may be nobody, and is
replaced where it has expired upstream."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.field.pairs import either_upstream
from tests.field.replicas import Two
from tests.fleet import at, fleet
from tests.gateway_process import GatewayProcess, running
from tests.peers import TOOL, LegacyUpstream, ModernUpstream
from tests.raw_front import NO_STREAM, request
from tests.scripted import Json

METHODS: list[tuple[str, Json]] = [
    ("ping", {}),
    ("tools/list", {}),
    ("tools/call", {"name": "echo"}),
    ("resources/read", {"uri": "note://one"}),
    ("prompts/get", {"name": "hello"}),
]
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
    for method, params in METHODS:
        assert "result" in (await session.request(method, params)).final, method
    assert (await session.delete()).status == 200
    assert (await session.request("tools/list")).status == 404
    assert [seen for seen in upstream.requests if "Authorization" in seen.headers] == []


@pytest.mark.field("R1")
@either_upstream
async def test_a_session_keeps_its_route_and_its_caller_at_every_replica(two: Two, upstream_era: str) -> None:
    here, there = f"{upstream_era}1", f"{upstream_era}2"
    opened_at = two.fleet.replicas[0]
    session = await opened_at.front(f"/{here}").initialize(headers={"Authorization": "Bearer ann"})
    for replica in two.fleet.replicas[::-1]:
        mine, strays = at(session, replica), replica.front(f"/{there}")
        assert [tool["name"] for tool in (await mine.request("tools/list")).result["tools"]] == [f"of-{here}"]
        assert (await strays.post(request("tools/list"), session.headers)).status == 404
        assert (await strays.send("DELETE", session.headers)).status == 404
        assert (await mine.request("tools/list", headers={"Authorization": "Bearer bob"})).status == 404
        assert (
            await replica.front(f"/{here}").send("DELETE", {**session.headers, "Authorization": None})
        ).status == 404
    assert two.upstreams[there].calls("tools/list") == []
    assert len(two.upstreams[here].calls("tools/list")) == 2
    assert "result" in (await session.request("tools/list")).final, "the strays did it no harm"


@pytest.mark.field("R3")
@either_upstream
async def test_nobody_in_particular_has_a_session_at_every_replica(two: Two, upstream_era: str) -> None:
    session = await two.fleet.front(f"/{upstream_era}1").initialize()
    for method, params in METHODS * 2:
        assert "result" in (await session.request(method, params)).final, method
    assert (await session.delete()).status == 200
    for _ in range(2):
        assert (await session.request("tools/list")).status == 404


@pytest.mark.field("R4")
async def test_a_session_that_expired_upstream_is_replaced_on_every_route_that_shares_it() -> None:
    """Seven routes over one server that forgets its sessions: what is shared heals, what is a client's own ends."""
    names = [f"r{number}" for number in range(7)]
    async with LegacyUpstream() as upstream:
        async with fleet({name: {"url": upstream.url} for name in names}) as replicas:
            owned = {name: await replicas.front(f"/{name}").initialize() for name in names}
            for expired in range(2):
                for name in names:
                    for _ in range(2):
                        answer = await replicas.front(f"/{name}").modern("tools/call", {"name": "echo"})
                        assert "result" in answer.final, (expired, name)
                upstream.live.clear()
            for name, session in owned.items():
                for _ in range(2):
                    lost = await session.request("tools/call", {"name": "echo"}, headers=NO_STREAM)
                    assert lost.status == 404
                anew = await replicas.front(f"/{name}").initialize()
                for _ in range(2):
                    assert "result" in (await anew.request("tools/call", {"name": "echo"})).final
