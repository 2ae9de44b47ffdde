"""Field reports R1, R3: a session belongs to the route and the caller it was opened for, who may be nobody."""

import pytest

from tests.gateway_process import running
from tests.peers import TOOL, LegacyUpstream, ModernUpstream
from tests.raw_front import request

KINDS = pytest.mark.parametrize("kind", [LegacyUpstream, ModernUpstream])


@pytest.mark.field("R1")
@KINDS
async def test_a_session_is_good_on_its_own_route_alone(kind: type[LegacyUpstream] | type[ModernUpstream]) -> None:
    async with kind() as first, kind() as second, running({"one": first, "two": second}) as gateway:
        first.on["tools/list"] = {"tools": [{**TOOL, "name": "of-one"}]}
        second.on["tools/list"] = {"tools": [{**TOOL, "name": "of-two"}]}
        one = await gateway.front("/one").initialize()
        two = await gateway.front("/two").initialize()
        for _ in range(3):
            assert [tool["name"] for tool in (await one.request("tools/list")).result["tools"]] == ["of-one"]
            assert [tool["name"] for tool in (await two.request("tools/list")).result["tools"]] == ["of-two"]
        asked = len(second.calls("tools/list"))
        strayed = await gateway.front("/two").post(request("tools/list"), one.headers)
        assert strayed.status == 404
        assert (await gateway.front("/two").send("DELETE", one.headers)).status == 404
        assert len(second.calls("tools/list")) == asked
        assert "result" in (await one.request("tools/list")).final, "the stray request did it no harm"


@pytest.mark.field("R1")
@KINDS
async def test_a_session_is_good_for_its_own_caller_alone(kind: type[LegacyUpstream] | type[ModernUpstream]) -> None:
    async with kind() as upstream, running({"u": (upstream, {"forward_headers": ["Authorization"]})}) as gateway:
        front = gateway.front("/u")
        ann = await front.initialize(headers={"Authorization": "Bearer ann"})
        for headers in ({"Authorization": "Bearer bob"}, {"Authorization": None}, {"Authorization": "Bearer Ann"}):
            assert (await ann.request("tools/list", headers=headers)).status == 404
            assert (await front.send("DELETE", {**ann.headers, **headers})).status == 404
        assert "result" in (await ann.request("tools/list")).final
        assert {seen.headers.get("Authorization") for seen in upstream.calls("tools/list")} == {"Bearer ann"}


@pytest.mark.field("R3")
@KINDS
async def test_nobody_in_particular_has_a_session_that_works_throughout(
    kind: type[LegacyUpstream] | type[ModernUpstream],
) -> None:
    async with kind() as upstream, running({"open": (upstream, {"forward_headers": ["Authorization"]})}) as gateway:
        session = await gateway.front("/open").initialize()
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
