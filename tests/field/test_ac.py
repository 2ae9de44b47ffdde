"""Field reports AC1, AC3: replicas are one server to a client that changes them, and end none of its streams."""

import asyncio
import json
import re
from typing import Any

import pytest

from tests.field.pairs import either_upstream
from tests.field.replicas import Two
from tests.fleet import at, fleet
from tests.gateway_process import running
from tests.hop import hopping
from tests.peers import LegacyUpstream, ModernUpstream
from tests.raw_front import CLIENT_INFO, NO_STREAM, Front


@pytest.mark.field("AC1")
@either_upstream
async def test_a_client_with_a_new_connection_a_request_sees_one_server(two: Two, upstream_era: str) -> None:
    """Each request goes to the other replica, over a connection of its own."""
    name, replicas = f"{upstream_era}1", two.fleet.replicas
    upstream = two.upstreams[name]
    for number in range(2):
        opened = await two.fleet.front(f"/{name}").initialize()
        lists = [(await opened.request("tools/list", ident=n)) for n in range(6)]
        assert [(each.status, each.result["tools"][0]["name"]) for each in lists] == [(200, f"of-{name}")] * 6
        assert (await at(opened, replicas[number]).delete()).status == 200
        for replica in (replicas[1 - number], replicas[number]):
            gone = at(opened, replica)
            assert (await gone.request("tools/list")).status == 404
            assert (await gone.delete()).status == 404
    if isinstance(upstream, LegacyUpstream):
        assert not [s for s in upstream.live if upstream.opened[s] in mine(upstream)], "nothing is left upstream"
        assert len(mine(upstream)) == 2


def mine(upstream: LegacyUpstream) -> list[Any]:
    """The sessions that were opened for the clients of this test."""
    return [seen for seen in upstream.calls("initialize") if seen.params["clientInfo"] == CLIENT_INFO]


@pytest.mark.field("AC1")
@pytest.mark.parametrize("heal", [True, False])
async def test_an_upstream_of_several_that_share_no_sessions_is_no_loop(heal: bool) -> None:
    """Two servers behind an address that changes at every connection, each of which knows its own sessions alone."""
    async with LegacyUpstream() as one, LegacyUpstream() as other, hopping([one.url, other.url]) as address:
        settings = {"url": address.url + "/mcp", "era": "legacy", "heal": heal}
        async with running({"u": settings}) as gateway:
            front = gateway.front("/u")
            for number in range(4):
                before = len(one.requests) + len(other.requests)
                answer = await front.modern("tools/call", {"name": "echo"}, ident=number)
                assert answer.final["id"] == number, repr(answer)
                assert len(one.requests) + len(other.requests) - before <= 12, "sessions are opened anew twice, not on"
                assert len(one.calls("tools/call")) + len(other.calls("tools/call")) <= 2 * (number + 1)
            session = await front.initialize(initialized=False)
            before = len(one.calls("initialize")) + len(other.calls("initialize"))
            answer = await session.request("tools/call", {"name": "echo"}, headers=NO_STREAM)
            assert "result" in answer.final or answer.status == (200 if heal else 404)
            assert len(one.calls("initialize")) + len(other.calls("initialize")) - before <= heal


@pytest.mark.field("AC3")
async def test_an_idle_stream_with_a_call_now_and_then_is_never_cut() -> None:
    """All that is counted in seconds here has a low value; the clients reconnect for nothing."""
    patience = {"timeouts": {"first_byte_s": 1, "idle_s": 1, "total_s": 1}}
    connections = {"idle_s": 1, "head_s": 0.5, "body_s": 0.5, "write_stall_s": 0.5}
    more: dict[str, Any] = {"connections": connections, "streams": {"keep_alive_s": 1, "resume_ttl_s": 1}}
    async with LegacyUpstream(get_stream=True) as legacy, ModernUpstream() as modern:
        behind = {"legacy": (legacy, patience), "modern": (modern, patience)}
        async with fleet(behind, **more) as replicas:
            await asyncio.gather(
                *(_soak(replicas.front(f"/{era}"), up) for era, up in (("legacy", legacy), ("modern", modern)))
            )


async def _soak(front: Front, upstream: LegacyUpstream | ModernUpstream) -> None:
    session = await front.initialize()
    async with session.get() as stream:
        for turn in range(1, 4):
            while len(re.findall(rb"(?m)^:", stream.received)) < turn:
                assert await stream.read(), "the stream ended"
            said = (await session.request("tools/call", {"name": f"turn {turn}"}, ident=turn)).said
            assert json.loads(said)["name"] == f"turn {turn}"
        changed = "notifications/tools/list_changed"
        if isinstance(upstream, LegacyUpstream):
            await upstream.push({"jsonrpc": "2.0", "method": changed})
        else:
            await upstream.push(changed, {})
        message = await stream.message()
        assert message is not None
        assert message["method"] == changed
