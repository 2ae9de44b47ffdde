"""Field reports S1, S2: what a client subscribed to reaches it, once and on the right stream, whatever the eras are and
at whichever replica it listens."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio

from tests.field.pairs import either_front, either_upstream, every_pair
from tests.fleet import Fleet, at, fleet
from tests.gateway_process import GatewayProcess, running
from tests.peers import CAPABILITIES, LISTEN, LegacyUpstream, ModernUpstream, subscribed, text
from tests.raw_front import PREFIX, Front, Open
from tests.scripted import Call, Err, Json

UPDATED, CHANGED = "notifications/resources/updated", "notifications/tools/list_changed"
ACKNOWLEDGED, LOG = "notifications/subscriptions/acknowledged", "notifications/message"
SUBSCRIBE, UNSUBSCRIBE = "resources/subscribe", "resources/unsubscribe"
LIVELY = {**CAPABILITIES, "tools": {"listChanged": True}, "resources": {"subscribe": True}}
"""Of an upstream whose resources can be subscribed to, and whose prompts never change."""


def lively(era: str, **more: Any) -> LegacyUpstream | ModernUpstream:
    if era == "modern":
        return ModernUpstream(**{"capabilities": LIVELY, **more})
    upstream = LegacyUpstream(**{"get_stream": True, "capabilities": LIVELY, **more})
    upstream.on[UNSUBSCRIBE] = {}
    return upstream


async def tell(upstream: LegacyUpstream | ModernUpstream, method: str, params: Json) -> None:
    """On the upstream's standalone streams, those of a listener with its own id."""
    if isinstance(upstream, ModernUpstream):
        await upstream.push(method, params)
    else:
        await upstream.push({"jsonrpc": "2.0", "method": method, "params": params})


# S1


@dataclass(frozen=True, slots=True)
class Replicas:
    fleet: Fleet
    upstreams: dict[str, LegacyUpstream | ModernUpstream]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def replicas() -> AsyncIterator[Replicas]:
    upstreams = {era: lively(era) for era in ("legacy", "modern")}
    async with upstreams["legacy"], upstreams["modern"], fleet(upstreams) as both:
        yield Replicas(both, upstreams)


@pytest.mark.field("S1")
@either_upstream
@pytest.mark.parametrize(("holder", "subscriber", "caller"), [(0, 0, 0), (1, 0, 0), (0, 1, 1), (1, 1, 0)])
async def test_an_update_comes_once_on_the_get_stream_and_what_belongs_to_a_call_on_the_calls(
    replicas: Replicas, upstream_era: str, holder: int, subscriber: int, caller: int
) -> None:
    upstream = replicas.upstreams[upstream_era]

    async def tool(call: Call) -> Json:
        await tell(upstream, UPDATED, {"uri": "r://1"})
        await call.notify(LOG, {"level": "info", "data": "of this call"})
        await call.notify("notifications/progress", {"progressToken": call.seen.meta["progressToken"], "progress": 1})
        return text("changed")

    upstream.on["tools/call"] = tool
    opened = await replicas.fleet.replicas[0].front(f"/{upstream_era}").initialize()
    reads, subscribes, calls = (at(opened, replicas.fleet.replicas[n]) for n in (holder, subscriber, caller))
    async with reads.get() as stream:
        assert (await calls.request("logging/setLevel", {"level": "info"})).result == {}
        assert (await subscribes.request(SUBSCRIBE, {"uri": "r://1"})).result == {}
        answer = await calls.request("tools/call", {"name": "t", "_meta": {"progressToken": "p"}}, ident=7)
        assert [note["method"] for note in answer.notes] == [LOG, "notifications/progress"]
        assert answer.notes[1]["params"] == {"progressToken": "p", "progress": 1}
        assert (answer.final["id"], answer.said) == (7, "changed")
        await tell(upstream, CHANGED, {})
        heard = [await stream.message(), await stream.message()]
        assert [message["method"] for message in heard if message] == [UPDATED, CHANGED], "each once, and no more"
        updated = (heard[0] or {})["params"]
        assert updated["uri"] == "r://1"
        assert PREFIX + "subscriptionId" not in updated.get("_meta", {})
        assert (await subscribes.request(UNSUBSCRIBE, {"uri": "r://1"})).result == {}
    assert (await opened.delete()).status == 200


# S2


@asynccontextmanager
async def house(era: str, **more: Any) -> AsyncIterator[tuple[Any, GatewayProcess]]:
    async with lively(era, **more) as upstream, running({"up": upstream}) as gateway:
        yield upstream, gateway


@pytest.mark.field("S2")
@every_pair
@pytest.mark.parametrize("resources", [{"subscribe": True}, {"subscribe": False}, {}, None], ids=repr)
async def test_subscriptions_are_offered_where_the_upstream_offers_them(
    front_era: str, upstream_era: str, resources: Json | None
) -> None:
    offered = {name: value for name, value in (LIVELY | {"resources": resources}).items() if value is not None}
    async with house(upstream_era, capabilities=offered) as (_, gateway):
        front = gateway.front("/up")
        if front_era == "modern":
            capabilities = (await front.modern("server/discover")).result["capabilities"]
        else:
            capabilities = (await front.initialize()).result["capabilities"]
        assert (capabilities.get("resources") or {}).get("subscribe", False) is bool(
            resources and resources["subscribe"]
        )
        assert ("resources" in capabilities) == (resources is not None)


@asynccontextmanager
async def listening(front: Front, wanted: Json, agreed: Json, ident: Any) -> AsyncIterator[Open]:
    """A listen stream whose first message acknowledges what is `agreed`."""
    async with front.modern_open(LISTEN, {"notifications": wanted}, ident=ident) as stream:
        first = await stream.message()
        assert first is not None
        assert (first["method"], first["params"]["notifications"]) == (ACKNOWLEDGED, agreed)
        assert tag_of(first) == (type(ident), ident)
        yield stream


def tag_of(message: Json) -> tuple[type, Any]:
    tag = message["params"]["_meta"][PREFIX + "subscriptionId"]
    return type(tag), tag


WANTED: Json = {"toolsListChanged": True, "promptsListChanged": True, "resourceSubscriptions": ["r://1", "r://2"]}
AGREED: Json = {"toolsListChanged": True, "resourceSubscriptions": ["r://1", "r://2"]}


@pytest.mark.field("S2")
@pytest.mark.parametrize("ident", [7, "7", "größe", 0, -1], ids=repr)
async def test_of_a_legacy_upstream_a_listener_is_promised_what_it_offers_and_hears_it(ident: Any) -> None:
    async with house("legacy") as (upstream, gateway):
        async with listening(gateway.front("/up"), WANTED, AGREED, ident) as stream:
            assert [seen.params["uri"] for seen in upstream.calls(SUBSCRIBE)] == ["r://1", "r://2"]
            for method, params in (
                ("notifications/prompts/list_changed", {}),
                (UPDATED, {"uri": "r://other"}),
                (UPDATED, {"uri": "r://2"}),
                (CHANGED, {}),
            ):
                await tell(upstream, method, params)
            heard = [await stream.message() or {} for _ in range(2)]
            assert [(one["method"], one["params"].get("uri")) for one in heard] == [(UPDATED, "r://2"), (CHANGED, None)]
            assert {tag_of(one) for one in heard} == {(type(ident), ident)}
            assert upstream.calls(UNSUBSCRIBE) == []
        left = await upstream.seen(UNSUBSCRIBE, 2)
        assert [seen.params["uri"] for seen in left] == ["r://1", "r://2"]


@pytest.mark.field("S2")
async def test_what_a_legacy_upstream_will_not_take_is_not_promised() -> None:
    async with house("legacy") as (upstream, gateway):

        async def picky(call: Call) -> Json | Err:
            return {} if call.seen.params["uri"] == "r://2" else Err(-32602, "no such resource")

        upstream.on[SUBSCRIBE] = picky
        agreed = AGREED | {"resourceSubscriptions": ["r://2"]}
        async with listening(gateway.front("/up"), WANTED, agreed, 1) as stream:
            for uri in ("r://1", "r://2"):
                await tell(upstream, UPDATED, {"uri": uri})
            assert ((await stream.message()) or {})["params"]["uri"] == "r://2"
        assert [seen.params["uri"] for seen in await upstream.seen(UNSUBSCRIBE)] == ["r://2"]


@pytest.mark.field("S2")
async def test_subscriptions_at_a_legacy_upstream_are_counted_over_all_who_listen() -> None:
    async with house("legacy") as (upstream, gateway):
        front = gateway.front("/up")

        def only(*uris: str) -> Json:
            return {"resourceSubscriptions": [*uris]}

        async with listening(front, only("r://2"), only("r://2"), 1) as stays:
            async with listening(front, only("r://1", "r://2"), only("r://1", "r://2"), 1) as goes:
                assert [seen.params["uri"] for seen in upstream.calls(SUBSCRIBE)] == ["r://2", "r://1"]
                await tell(upstream, UPDATED, {"uri": "r://1"})
                await tell(upstream, UPDATED, {"uri": "r://2"})
                heard = [((await goes.message()) or {})["params"]["uri"] for _ in range(2)]
                assert heard == ["r://1", "r://2"]
            [left] = await upstream.seen(UNSUBSCRIBE)
            assert left.params["uri"] == "r://1"
            await tell(upstream, UPDATED, {"uri": "r://2"})
            for _ in range(2):
                assert ((await stays.message()) or {})["params"]["uri"] == "r://2"
            async with listening(front, only("r://1"), only("r://1"), 2):
                assert [seen.params["uri"] for seen in upstream.calls(SUBSCRIBE)] == ["r://2", "r://1", "r://1"]
        assert sorted(seen.params["uri"] for seen in await upstream.seen(UNSUBSCRIBE, 3)) == ["r://1", "r://1", "r://2"]


@pytest.mark.field("S2")
@either_upstream
async def test_listeners_of_one_id_each_hear_their_own(upstream_era: str) -> None:
    async with house(upstream_era) as (upstream, gateway), AsyncExitStack() as stack:
        front = gateway.front("/up")
        streams = {}
        for uri in ("r://1", "r://2"):
            wanted = {"resourceSubscriptions": [uri]}
            streams[uri] = await stack.enter_async_context(listening(front, wanted, wanted, 1))
        for uri in ("r://1", "r://2", "r://1", "r://2"):
            if upstream_era == "legacy":
                await tell(upstream, UPDATED, {"uri": uri})
            else:
                [call] = [
                    c for c in upstream.listeners if uri in c.seen.params["notifications"]["resourceSubscriptions"]
                ]
                await call.notify(UPDATED, {"uri": uri} | subscribed(call))
        for uri, stream in streams.items():
            heard = [await stream.message() or {} for _ in range(2)]
            assert [(one["params"]["uri"], tag_of(one)) for one in heard] == [(uri, (int, 1))] * 2


@pytest.mark.field("S2")
@either_front
async def test_of_a_legacy_upstream_that_ends_its_session_a_listener_is_told_so_in_peace(front_era: str) -> None:
    async with house("legacy") as (upstream, gateway):
        front = gateway.front("/up")
        if front_era == "legacy":
            session = await front.initialize()
            async with session.get() as stream:
                await upstream.when(lambda: upstream.streams)
                await lose_sessions(upstream)
                assert await stream.rest() == [], "it ends, and its client comes again"
            assert (await session.request("tools/list")).status == 404
            return
        async with listening(front, AGREED, AGREED, "é") as stream:
            await lose_sessions(upstream)
            [final] = await stream.rest()
            tag = {PREFIX + "subscriptionId": "é"}
            assert final["id"] == "é"
            assert final["result"]["resultType"] == "complete"
            assert final["result"]["_meta"] == tag
        async with listening(front, AGREED, AGREED, 2) as stream:
            await tell(upstream, UPDATED, {"uri": "r://1"})
            assert ((await stream.message()) or {})["params"]["uri"] == "r://1"


async def lose_sessions(upstream: LegacyUpstream) -> None:
    """As a server does that is started anew."""
    upstream.live.clear()
    for call in list(upstream.streams.values()):
        await call.end()
        call.close()
    upstream.streams.clear()
