"""Field report AB4: a server of another era at the same address is found out; reads heal, calls are not repeated."""

import itertools
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.field.pairs import either_front
from tests.fleet import Fleet, fleet
from tests.gateway_process import running
from tests.peers import MODERN, LegacyUpstream, ModernUpstream
from tests.raw_front import Answer, Front, Session
from tests.scripted import Call, Err, Upstream

ERAS = ["modern", "legacy"]
METHODS = {"list": "tools/list", "call": "tools/call"}
FIRSTS = list(METHODS)


async def asked(front: Front, session: Session | None, method: str, name: str = "t") -> Answer:
    params = {"name": name} if method == "tools/call" else {}
    return await (front.modern(method, params) if session is None else session.request(method, params))


Changing = tuple[Fleet, dict[str, tuple[Upstream, Upstream]]]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def changing() -> AsyncIterator[Changing]:
    """A route for each case: what stands there, and what will."""
    pairs: dict[str, tuple[Upstream, Upstream]] = {}
    for before, first, front_era in itertools.product(ERAS, FIRSTS, ERAS):
        modern, legacy = ModernUpstream(), LegacyUpstream()
        pair = (modern, legacy) if before == "modern" else (legacy, modern)
        pairs[f"{before}-{first}-{front_era}"] = pair
        await pair[0].start()
    async with fleet({name: old for name, (old, _) in pairs.items()}) as replicas:
        yield replicas, pairs
    for old, _ in pairs.values():
        await old.stop()
        old.check()


@pytest.mark.field("AB4")
@either_front
@pytest.mark.parametrize("before", ERAS)
@pytest.mark.parametrize("first", FIRSTS)
async def test_a_server_of_the_other_era_at_one_address_is_found_out(
    changing: Changing, front_era: str, before: str, first: str
) -> None:
    replicas, pairs = changing
    name = f"{before}-{first}-{front_era}"
    old, new = pairs[name]

    async def as_new(call: Call) -> bool:
        new.requests.append(call.seen)
        await new.serve(call)
        return True

    front = replicas.front(f"/{name}")
    sessions = [await front.initialize() if front_era == "legacy" else None for _ in range(2)]
    for session in sessions:
        assert "result" in (await asked(front, session, "tools/call")).final, "the era is known at both replicas"
        assert "result" in (await asked(front, session, "tools/list")).final
    old.on_http = as_new
    if (front_era, before) == ("legacy", "legacy"):  # their own sessions have ended with the server that had them
        sessions = [await front.initialize() for _ in range(2)]
    for session in sessions:
        answer = await asked(front, session, METHODS[first])
        assert answer.final["id"] == 1
        assert "result" in answer.final or first == "call", repr(answer)
    for session in sessions * 2:
        assert "result" in (await asked(front, session, "tools/list")).final
        assert "result" in (await asked(front, session, "tools/call", "again")).final
    names = [seen.params["name"] for seen in new.calls("tools/call")]
    assert names.count("again") == 4
    assert names.count("t") <= 2, "no call was sent again that may have run"


@pytest.mark.field("AB4", "T1")
@either_front
async def test_a_call_that_was_refused_for_its_version_is_executed_at_most_once(front_era: str) -> None:
    """-32022 proves that nothing ran; the server serves the version that it has just refused, as it says itself."""
    refused = Err(-32022, "Unsupported protocol version", {"supported": [MODERN], "requested": MODERN}, status=400)
    async with ModernUpstream() as upstream, running({"u": upstream}) as gateway:
        front = gateway.front("/u")
        session = await front.initialize() if front_era == "legacy" else None
        assert "result" in (await asked(front, session, "tools/list")).final
        upstream.on["tools/call"] = refused
        answer = await asked(front, session, "tools/call")
        assert answer.code == -32022 if front_era == "modern" else "error" in answer.final
        assert len(upstream.calls("tools/call")) <= 2
        del upstream.on["tools/call"]
        assert "result" in (await asked(front, session, "tools/call")).final
