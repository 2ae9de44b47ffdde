"""Field reports F2, F7: asks and their answers through whichever replica."""

import hashlib

import pytest

from tests.asks.talk import ACCEPT, EVERYTHING, FOREIGN_STATE, TOOL, Modern, asking, next_ask, only
from tests.field.replicas import Two
from tests.fleet import fleet
from tests.peers import LegacyUpstream, ModernUpstream, text
from tests.raw_front import Session
from tests.scripted import Json


@pytest.mark.field("F2")
async def test_every_way_of_opening_a_session_carries_asks_at_every_replica() -> None:
    """Cold, warm, after the session was lost, and after a crash: each round of the call at another replica."""
    async with LegacyUpstream(get_stream=True) as upstream, fleet({"u": upstream}) as replicas:
        upstream.on["tools/call"] = asking()
        client = Modern(replicas.front("/u"))
        session = await replicas.front("/u").initialize(capabilities=EVERYTHING)

        async def modern() -> None:
            done = await client.answer_all(await client.call(), ACCEPT)
            assert done.result["structuredContent"]["heard"] == [{"result": ACCEPT}], repr(done)

        async def legacy(mine: Session) -> None:
            async with mine.open("tools/call", TOOL) as stream:
                asked = await next_ask(stream)
                assert (await mine.reply(asked["id"], {"result": ACCEPT})).status == 202
                [answer] = await stream.rest()
                assert answer["result"]["structuredContent"]["heard"] == [{"result": ACCEPT}]

        for _ in range(3):
            await modern()
            await legacy(session)
        upstream.live.clear()
        for _ in range(2):
            await modern()
        await replicas.replicas[0].kill()
        await replicas.start_again(0)
        anew = await replicas.front("/u").initialize(capabilities=EVERYTHING)
        for _ in range(2):
            await modern()
            await legacy(anew)


STATE = "größe=+/" + "s" * 2048
ASKED: Json = {
    "resultType": "input_required",
    "inputRequests": {"k": {"method": "roots/list"}},
    "requestState": STATE,
}
ANSWERS: Json = {"k": {"roots": []}}


def changed(token: str) -> str:
    return token[:-8] + ("A" if token[-8] != "A" else "B") + token[-7:]


@pytest.mark.field("F7")
@pytest.mark.parametrize("keys", [True, False], ids=["callers with keys", "callers without"])
async def test_an_upstreams_own_state_comes_back_through_another_replica_as_it_was(keys: bool) -> None:
    ann, bob = ("mfd_" + letter * 43 for letter in "ab")
    clients = {
        name: {"keys": ["sha256:" + hashlib.sha256(key.encode()).hexdigest()], "routes": ["/u"]}
        for name, key in (("ann", ann), ("bob", bob))
    }
    async with ModernUpstream() as upstream, fleet({"u": upstream}, **({"clients": clients} if keys else {})) as two:
        upstream.on["tools/call"] = ASKED
        mine = {"headers": {"Authorization": f"Bearer {ann}"}, "capabilities": EVERYTHING}
        one, other = (Modern(replica.front("/u"), **mine) for replica in two.replicas)
        asked = await one.call(ident="first")
        assert (asked.result["requestState"] == STATE) is not keys, "sealed to the caller whose key the gateway knows"
        if keys:
            bobs = {"headers": {"Authorization": f"Bearer {bob}"}}
            altered = {"requestState": changed(asked.result["requestState"]), "inputResponses": ANSWERS}
            for replica in two.replicas:
                foreign = await Modern(replica.front("/u"), **{**mine, **bobs}).retry(asked, ANSWERS)
                tampered = await Modern(replica.front("/u"), {**TOOL, **altered}, **mine).call()
                for refused in (foreign, tampered):
                    assert (refused.status, refused.code) == (400, FOREIGN_STATE)
            assert len(upstream.calls("tools/call")) == 1
        upstream.on["tools/call"] = text("done")
        assert (await other.retry(asked, ANSWERS, ident="second")).said == "done"
        [_, retried] = upstream.calls("tools/call")
        assert retried.params["requestState"] == STATE
        assert retried.params["inputResponses"] == ANSWERS


@pytest.mark.field("F7")
async def test_the_gateways_own_state_is_good_for_one_call_at_every_replica(two: Two) -> None:
    upstream = two.upstreams["legacy1"]
    upstream.on["tools/call"] = asking()
    mine = {"headers": {"Authorization": "Bearer ann"}}
    clients = [Modern(replica.front("/legacy1"), **mine) for replica in two.fleet.replicas]
    asked = await clients[0].call()
    answers = {only(asked): ACCEPT}
    state = asked.result["requestState"]
    for replica in two.fleet.replicas:
        front = replica.front("/legacy1")
        altered = {"requestState": changed(state), "inputResponses": answers}
        for refused in (
            await Modern(front, {**TOOL, **altered}, **mine).call(),
            await Modern(front, headers={"Authorization": "Bearer bob"}).retry(asked, answers),
            await Modern(front, {**TOOL, "name": "another"}, **mine).retry(asked, answers),
            await Modern(front, {**TOOL, "arguments": {"a": 2}}, **mine).retry(asked, answers),
            await Modern(replica.front("/legacy2"), **mine).retry(asked, answers),
        ):
            assert (refused.status, refused.code) == (400, FOREIGN_STATE), repr(refused)
    assert (len(upstream.calls("tools/call")), upstream.replies) == (1, [])
    done = await clients[1].retry(asked, answers)
    assert done.result["structuredContent"]["heard"] == [{"result": ACCEPT}]
    for client in clients:
        refused = await client.retry(asked, answers)
        assert (refused.status, refused.code) == (400, FOREIGN_STATE)
    assert (len(upstream.calls("tools/call")), len(upstream.replies)) == (1, 1)
