"""Field reports A1, A2, A3, A5, R6: a session works at every replica; one that is not there is 404; a lost upstream
session is replaced where that is right."""

import asyncio
import base64
import json
import os
from pathlib import Path

import pytest

from tests.door import Door
from tests.field.pairs import either_upstream
from tests.field.replicas import Two
from tests.fleet import at, fleet
from tests.gateway_process import GatewayProcess, running, settings
from tests.peers import LegacyUpstream, ModernUpstream
from tests.raw_front import CLIENT_INFO, LEGACY, NO_STREAM, Answer, request
from tests.scripted import Call, Err
from tests.valkey import started

LISTING = request("tools/list", ident="a-1")


def opened_for_clients(upstream: LegacyUpstream) -> int:
    """How many upstream sessions were opened for the raw client, the gateway's own look at the upstream apart."""
    return len([seen for seen in upstream.calls("initialize") if seen.params["clientInfo"] == CLIENT_INFO])


def no_session(answer: Answer) -> None:
    assert answer.status == 404, repr(answer)
    assert "Mcp-Session-Id" not in answer.headers
    assert "WWW-Authenticate" not in answer.headers
    assert answer.error["message"]


@pytest.mark.field("A1", "R6")
@either_upstream
async def test_two_replicas_serve_one_session_and_the_death_of_one_does_not_end_it(upstream_era: str) -> None:
    upstream = LegacyUpstream() if upstream_era == "legacy" else ModernUpstream()
    async with upstream, fleet({"u": upstream}) as replicas:
        first = replicas.replicas[0]
        session = await first.front("/u").initialize()
        session.front = replicas.front("/u")
        answers = [await session.request("tools/list", ident=number) for number in range(50)]
        await first.kill()
        await replicas.start_again(0)
        answers += [await session.request("tools/list", ident=number) for number in range(50, 60)]
        assert [(answer.status, answer.final["id"]) for answer in answers] == [(200, number) for number in range(60)]
        assert all(answer.result == answers[0].result for answer in answers)
        assert sorted(replicas.hop.taken.count(target) for target in set(replicas.hop.taken)) == [5, 25, 30]
        if isinstance(upstream, LegacyUpstream):
            assert opened_for_clients(upstream) == 1
            assert len({seen.session for seen in upstream.calls("tools/list")}) == 1


@pytest.mark.field("A2")
async def test_a_session_over_a_stateless_upstream_needs_no_replicas_memory(two: Two) -> None:
    one, other = two.fleet.replicas
    session = await one.front("/modern1").initialize()
    for replica in (other, one, other):
        assert json.loads((await at(session, replica).request("tools/call", {"name": "t"})).said)["name"] == "t"
    assert len(two.upstreams["modern1"].calls("tools/call")) == 3
    assert {seen.session for seen in two.upstreams["modern1"].requests} == {None}


@pytest.mark.field("A3")
@either_upstream
async def test_a_flushed_store_forgets_no_session(upstream_era: str) -> None:
    upstream = LegacyUpstream() if upstream_era == "legacy" else ModernUpstream()
    with started() as server, server.admin() as store:
        async with upstream, fleet({"u": upstream}, store=server.url) as replicas:
            session = await replicas.front("/u").initialize()
            assert "result" in (await session.request("tools/call", {"name": "t"})).final
            store.flushall()
            for _ in range(4):
                assert "result" in (await session.request("tools/call", {"name": "t"})).final
            assert (await session.delete()).status == 200
            for _ in range(2):
                no_session(await session.post(LISTING))
            if isinstance(upstream, LegacyUpstream):
                assert opened_for_clients(upstream) == 1


@pytest.mark.field("A3")
@either_upstream
@pytest.mark.parametrize("token", ["never-issued", "0", "x" * 600, "a.b.c", "größe".encode("latin-1")], ids=repr)
async def test_an_unknown_session_is_404(door: Door, upstream_era: str, token: str) -> None:
    front = door.front(upstream_era)
    headers = {"Mcp-Session-Id": token, "MCP-Protocol-Version": LEGACY}
    posted = await front.post(LISTING, headers)
    no_session(posted)
    assert posted.final["id"] == "a-1"
    no_session(await front.send("GET", {**headers, "Accept": "text/event-stream"}))
    no_session(await front.send("DELETE", headers))
    assert door.upstream(upstream_era).calls("tools/list") == []
    session = await front.initialize()
    assert "result" in (await session.request("tools/list")).final, "the client starts anew"


@pytest.mark.field("A3")
@either_upstream
async def test_an_ended_session_is_404_for_good(door: Door, upstream_era: str) -> None:
    front = door.front(upstream_era)
    session = await front.initialize()
    assert (await session.delete()).status == 200
    posted = await session.post(LISTING)
    no_session(posted)
    assert posted.final["id"] == "a-1"
    no_session(await front.send("GET", {**session.headers, "Accept": "text/event-stream"}))
    no_session(await session.delete())
    assert (await session.notify("notifications/initialized")).status == 404
    assert "result" in (await (await front.initialize()).request("tools/list")).final


@pytest.mark.field("A3")
@either_upstream
async def test_a_token_that_was_changed_is_404(door: Door, upstream_era: str) -> None:
    session = await door.front(upstream_era).initialize()
    assert session.id is not None
    for place in (0, len(session.id) // 2, len(session.id) - 2):
        other = "A" if session.id[place] != "A" else "B"
        changed = session.id[:place] + other + session.id[place + 1 :]
        no_session(await session.post(LISTING, {"Mcp-Session-Id": changed}))
    assert "result" in (await session.post(LISTING)).final


@pytest.mark.field("A3")
@either_upstream
@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2025-03-26"])
async def test_a_request_without_any_session_is_400(door: Door, upstream_era: str, version: str) -> None:
    answer = await door.front(upstream_era).post(LISTING, {"MCP-Protocol-Version": version})
    assert (answer.status, answer.final["id"]) == (400, "a-1"), repr(answer)
    assert "Mcp-Session-Id" not in answer.headers
    assert door.upstream(upstream_era).calls("tools/list") == []


@pytest.mark.field("A3")
async def test_a_session_outlives_the_process_that_issued_it(tmp_path: Path) -> None:
    key = "k1:" + base64.urlsafe_b64encode(os.urandom(32)).decode().rstrip("=")
    async with LegacyUpstream() as upstream:
        config = tmp_path / "gateway.yaml"
        config.write_text(json.dumps(settings({"legacy": upstream}, keys=[key])))
        first = await GatewayProcess.start(["serve", "-c", str(config)], tmp_path)
        session = await first.front("/legacy").initialize()
        await first.stop()
        second = await GatewayProcess.start(["serve", "-c", str(config)], tmp_path)
        session.front = second.front("/legacy")
        try:
            assert (await session.request("tools/list")).result["tools"][0]["name"] == "echo"
        finally:
            await second.stop()
        assert opened_for_clients(upstream) == 1


@pytest.mark.field("A5")
async def test_a_modern_call_does_not_notice_a_lost_upstream_session() -> None:
    async with LegacyUpstream() as upstream, running({"legacy": upstream}) as gateway:
        front = gateway.front("/legacy")
        assert "result" in (await front.modern("tools/call", {"name": "echo"})).final
        for lost in range(2):
            upstream.live.clear()
            answers = await asyncio.gather(*(front.modern("tools/call", {"name": f"t{n}"}, ident=n) for n in range(8)))
            assert all("result" in answer.final for answer in answers)
            assert len(upstream.calls("initialize")) == 2 + lost


@pytest.mark.field("A5")
@pytest.mark.parametrize("heal", [True, False])
async def test_a_legacy_client_starts_anew_unless_its_upstream_may_be_healed(heal: bool) -> None:
    async with LegacyUpstream() as upstream, running({"legacy": (upstream, {"heal": heal})}) as gateway:
        session = await gateway.front("/legacy").initialize()
        assert "result" in (await session.request("tools/call", {"name": "echo"})).final
        upstream.live.clear()
        answer = await session.request("tools/call", {"name": "echo"}, ident=2, headers=NO_STREAM)
        if heal:
            assert "result" in answer.final
            assert "result" in (await session.request("tools/list")).final
            assert opened_for_clients(upstream) == 2
        else:
            no_session(answer)
            assert opened_for_clients(upstream) == 1
            anew = await gateway.front("/legacy").initialize()
            assert "result" in (await anew.request("tools/call", {"name": "echo"})).final


@pytest.mark.field("A5")
async def test_an_upstream_that_forgets_at_once_is_tried_twice_and_no_more() -> None:
    async def forgets(call: Call) -> Err:
        return Err(-32001, "Session not found", status=404)

    async with LegacyUpstream() as upstream, running({"legacy": upstream}) as gateway:
        upstream.on["tools/call"] = forgets
        answer = await gateway.front("/legacy").modern("tools/call", {"name": "echo"})
        assert "error" in answer.final
        assert len(upstream.calls("tools/call")) == 2
        assert len(upstream.calls("initialize")) == 2
