"""Field reports G1, G2: whoever uses the same ids at the same time still gets his own answer."""

import asyncio
import itertools

import pytest

from tests.door import Door
from tests.field.pairs import ask_pair, either_upstream, every_pair
from tests.gateway_process import running
from tests.peers import LegacyUpstream, ModernUpstream, text
from tests.scripted import Call, Json


@pytest.mark.field("G1")
@every_pair
async def test_two_calls_of_one_id_each_get_their_own_answer(door: Door, front_era: str, upstream_era: str) -> None:
    fast_done = asyncio.Event()

    async def tool(call: Call) -> Json:
        name = call.seen.params["name"]
        if name == "slow":
            async with asyncio.timeout(10):
                await fast_done.wait()
        return text(name)

    upstream = door.upstream(upstream_era)
    upstream.on["tools/call"] = tool
    front = door.front(upstream_era)
    session = await front.initialize() if front_era == "legacy" else None
    ask = session.request if session is not None else front.modern
    slow = asyncio.create_task(ask("tools/call", {"name": "slow"}, ident=1))
    await upstream.seen("tools/call")
    fast = await ask("tools/call", {"name": "fast"}, ident=1)
    fast_done.set()
    answers = [await slow, fast]
    assert [(answer.final["id"], answer.said) for answer in answers] == [(1, "slow"), (1, "fast")]
    if upstream_era == "legacy":
        ids = [seen.id for seen in upstream.calls("tools/call")]
        assert len(set(map(str, ids))) == 2, "an upstream session never sees one id twice"


@pytest.mark.field("G1")
@every_pair
async def test_many_clients_of_one_id_share_an_upstream_without_crossing(
    door: Door, front_era: str, upstream_era: str
) -> None:
    async def tool(call: Call) -> Json:
        await call.notify("notifications/progress", {"progressToken": call.seen.meta["progressToken"], "progress": 1})
        return text(call.seen.params["arguments"]["mine"])

    door.upstream(upstream_era).on["tools/call"] = tool

    async def client(number: int) -> list[str]:
        front = door.front(upstream_era)
        session = await front.initialize() if front_era == "legacy" else None
        said = []
        for turn in range(10):
            arguments = {"name": "t", "arguments": {"mine": f"{number}/{turn}"}}
            if session is not None:
                answer = await session.request("tools/call", arguments | {"_meta": {"progressToken": 1}}, ident=1)
            else:
                answer = await front.modern("tools/call", arguments, ident=1, meta={"progressToken": 1})
            assert [note["params"]["progressToken"] for note in answer.notes] == [1]
            assert answer.final["id"] == 1
            said.append(answer.said)
        return said

    every = await asyncio.gather(*(client(number) for number in range(20)))
    assert every == [[f"{number}/{turn}" for turn in range(10)] for number in range(20)]


@pytest.mark.field("G2")
@either_upstream
async def test_no_answer_goes_to_another_user(upstream_era: str) -> None:
    async def secret(call: Call) -> Json:
        return text(call.seen.headers.get("Authorization") or "nobody")

    async def user(name: str, ids: range) -> None:
        token = {"Authorization": f"Bearer {name}"}
        session = await front.initialize(headers=token)
        for ident in ids:
            modern = front.modern("tools/call", {"name": "t"}, ident=ident, headers=token)
            legacy = session.request("tools/call", {"name": "t"}, ident=ident)
            for answer in await asyncio.gather(modern, legacy):
                assert answer.final["id"] == ident
                assert answer.said == f"Bearer {name}"

    upstream = LegacyUpstream() if upstream_era == "legacy" else ModernUpstream()
    upstream.on["tools/call"] = secret
    async with upstream, running({"u": (upstream, {"forward_headers": ["Authorization"]})}) as gateway:
        front = gateway.front("/u")
        await asyncio.gather(*(user(name, range(25)) for name in ("ann", "bob", "cid", "dee")))
        seen = upstream.calls("tools/call")
        assert len(seen) == 200
        if upstream_era == "legacy":
            key = sorted((each.session or "", each.headers.get("Authorization") or "") for each in seen)
            users = [{user for _, user in group} for _, group in itertools.groupby(key, lambda pair: pair[0])]
            assert all(len(group) == 1 for group in users), "an upstream session belongs to one user"


@pytest.mark.field("G2")
@every_pair
@pytest.mark.parametrize("ident", [0, -1, 2**53, "", "0", "größe", "a" * 200], ids=repr)
async def test_any_id_comes_back_as_it_was(door: Door, front_era: str, upstream_era: str, ident: int | str) -> None:
    answer = await ask_pair(door, (front_era, upstream_era), "tools/call", {"name": "t"}, ident=ident)
    assert (type(answer.final["id"]), answer.final["id"]) == (type(ident), ident)
    assert "result" in answer.final
