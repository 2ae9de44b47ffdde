"""Field reports G1, G2: whoever uses the same ids at the same time still gets his own answer."""

import asyncio
import itertools

import pytest

from tests.door import Door
from tests.field.pairs import ask_pair, either_upstream, every_pair
from tests.field.replicas import Two
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


@pytest.mark.field("G1")
@every_pair
async def test_calls_of_one_id_cross_at_no_replica(two: Two, front_era: str, upstream_era: str) -> None:
    """200 calls of 20 clients, all with id 1 and two at a time in a session, the replica another at each."""

    async def tool(call: Call) -> Json:
        await call.notify("notifications/progress", {"progressToken": call.seen.meta["progressToken"], "progress": 1})
        return text(call.seen.params["arguments"]["mine"])

    upstream = two.upstreams[f"{upstream_era}1"]
    upstream.on["tools/call"] = tool
    front = two.fleet.front(f"/{upstream_era}1")

    async def client(number: int) -> list[str]:
        session = await front.initialize() if front_era == "legacy" else None

        async def call(turn: int) -> str:
            params: Json = {"name": "t", "arguments": {"mine": f"{number}/{turn}"}}
            if session is not None:
                answer = await session.request("tools/call", params | {"_meta": {"progressToken": 1}}, ident=1)
            else:
                answer = await front.modern("tools/call", params, ident=1, meta={"progressToken": 1})
            assert [note["params"]["progressToken"] for note in answer.notes] == [1]
            assert answer.final["id"] == 1
            return answer.said

        pairs = [await asyncio.gather(call(turn), call(turn + 1)) for turn in range(0, 10, 2)]
        return [said for pair in pairs for said in pair]

    every = await asyncio.gather(*(client(number) for number in range(20)))
    assert every == [[f"{number}/{turn}" for turn in range(10)] for number in range(20)]
    if upstream_era == "legacy":
        ids = [(seen.session, seen.id) for seen in upstream.calls("tools/call")]
        assert len(set(ids)) == 200, "an upstream session never sees one id twice, whichever replica it comes from"


@pytest.mark.field("G2")
async def test_no_answer_goes_to_another_user_at_any_replica(two: Two) -> None:
    """1000 interleaved calls of two users with the same ids."""

    async def secret(call: Call) -> Json:
        return text(call.seen.headers.get("Authorization") or "nobody")

    async def user(name: str, era: str, front_era: str) -> None:
        front, token = two.fleet.front(f"/{era}1"), {"Authorization": f"Bearer {name}"}
        session = await front.initialize(headers=token) if front_era == "legacy" else None
        for ident in range(125):
            if session is not None:
                answer = await session.request("tools/call", {"name": "t"}, ident=ident)
            else:
                answer = await front.modern("tools/call", {"name": "t"}, ident=ident, headers=token)
            assert (answer.final["id"], answer.said) == (ident, f"Bearer {name}")

    for era in ("legacy", "modern"):
        two.upstreams[f"{era}1"].on["tools/call"] = secret
    users = [(name, *pair) for name in ("ann", "bob") for pair in itertools.product(("legacy", "modern"), repeat=2)]
    await asyncio.gather(*(user(*one) for one in users))
    assert sum(len(two.upstreams[f"{era}1"].calls("tools/call")) for era in ("legacy", "modern")) == 1000
    owners = {
        (seen.session, seen.headers.get("Authorization")) for seen in two.upstreams["legacy1"].calls("tools/call")
    }
    assert len(owners) == len({session for session, _ in owners}), "an upstream session belongs to one user"
