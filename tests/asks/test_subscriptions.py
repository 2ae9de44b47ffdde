"""`resources/subscribe` of a legacy client over a modern upstream's listen stream.

Specification: 2025-11-25 server/resources (Subscriptions); 2026-07-28 basic/patterns/subscriptions.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.gateway_process import running
from tests.peers import CAPABILITIES, LISTEN, ModernUpstream, subscribed
from tests.raw_front import Front, Open, Session
from tests.scripted import Call, Err, Json

SUBSCRIBABLE = {**CAPABILITIES, "resources": {"subscribe": True, "listChanged": True}}
UPDATED = "notifications/resources/updated"
LIST_CHANGED = "notifications/resources/list_changed"


@asynccontextmanager
async def house(capabilities: Json = SUBSCRIBABLE) -> AsyncIterator[tuple[ModernUpstream, Front]]:
    async with ModernUpstream(capabilities=capabilities) as upstream, running({"up": upstream}) as gateway:
        yield upstream, gateway.front("/up")


async def subscribe(session: Session, uri: Any, method: str = "resources/subscribe") -> Json:
    answer = await session.request(method, {"uri": uri})
    assert answer.status == 200
    return answer.final


def filters(upstream: ModernUpstream) -> list[list[str]]:
    """The resources of each listen request, in order."""
    return [seen.params["notifications"].get("resourceSubscriptions", []) for seen in upstream.calls(LISTEN)]


def listening_to(upstream: ModernUpstream) -> list[list[str]]:
    """The resources of each listen stream that is open."""
    return [c.seen.params["notifications"].get("resourceSubscriptions", []) for c in upstream.listeners]


async def settled(upstream: ModernUpstream, *uris: str) -> None:
    """Waits until one stream is open, for these resources."""
    await upstream.when(lambda: listening_to(upstream) == [list(uris)])


async def updates(stream: Open, count: int) -> list[str]:
    found: list[str] = []
    while len(found) < count:
        message = await stream.message()
        assert message is not None
        if message["method"] == UPDATED:
            assert "io.modelcontextprotocol/subscriptionId" not in message["params"].get("_meta", {})
            found.append(message["params"]["uri"])
    return found


@pytest.mark.field("S2")
async def test_what_is_subscribed_to_is_heard_and_what_no_longer_is_not() -> None:
    async with house() as (upstream, front):
        session = await front.initialize()
        async with session.get() as stream:
            await settled(upstream)
            assert (await subscribe(session, "note://1"))["result"] == {}
            assert (await subscribe(session, "note://ä"))["result"] == {}
            await settled(upstream, "note://1", "note://ä")
            await upstream.push(UPDATED, {"uri": "note://1"})
            await upstream.push(UPDATED, {"uri": "note://ä"})
            assert await updates(stream, 2) == ["note://1", "note://ä"]
            assert (await subscribe(session, "note://1", "resources/unsubscribe"))["result"] == {}
            await settled(upstream, "note://ä")
        assert filters(upstream) == [[], ["note://1"], ["note://1", "note://ä"], ["note://ä"]]


async def test_twice_is_once_and_what_was_never_subscribed_to_can_be_left() -> None:
    async with house() as (upstream, front):
        session = await front.initialize()
        async with session.get():
            await settled(upstream)
            for _ in range(2):
                assert (await subscribe(session, "note://1"))["result"] == {}
            assert (await subscribe(session, "note://2", "resources/unsubscribe"))["result"] == {}
            await settled(upstream, "note://1")
        assert filters(upstream) == [[], ["note://1"]]


@pytest.mark.field("I8")
async def test_what_was_subscribed_to_before_anybody_listens_is_in_the_first_filter() -> None:
    async with house() as (upstream, front):
        session = await front.initialize()
        assert (await subscribe(session, "note://1"))["result"] == {}
        assert upstream.calls(LISTEN) == []
        async with session.get() as stream:
            await settled(upstream, "note://1")
            await upstream.push(UPDATED, {"uri": "note://1"})
            assert await updates(stream, 1) == ["note://1"]


async def test_the_old_stream_stays_until_the_new_one_is_acknowledged() -> None:
    acknowledge = asyncio.Event()

    async def slow(call: Call) -> None:
        if call.seen.params["notifications"].get("resourceSubscriptions"):
            await acknowledge.wait()
        await upstream._listen(call)

    async with house() as (upstream, front):
        upstream.on[LISTEN] = slow
        session = await front.initialize()
        async with session.get() as stream:
            await settled(upstream)
            subscribing = asyncio.ensure_future(subscribe(session, "note://1"))
            await upstream.seen(LISTEN, 2)
            await upstream.push(LIST_CHANGED, {})
            heard = await stream.message()
            assert heard is not None
            assert heard["method"] == LIST_CHANGED
            assert not subscribing.done()
            acknowledge.set()
            assert (await subscribing)["result"] == {}
            await settled(upstream, "note://1")


async def refuses(upstream: ModernUpstream, call: Call) -> Err | None:
    """Refuses the request as a whole."""
    if call.seen.params["notifications"].get("resourceSubscriptions"):
        return Err(-32602, "no such resource", status=400)
    await upstream._listen(call)
    return None


async def ignores(upstream: ModernUpstream, call: Call) -> None:
    """Acknowledges without the resources."""
    if not call.seen.params["notifications"].get("resourceSubscriptions"):
        return await upstream._listen(call)
    await call.notify("notifications/subscriptions/acknowledged", {"notifications": {}} | subscribed(call))
    await call.stay()
    return None


async def breaks(upstream: ModernUpstream, call: Call) -> None:
    """Hangs up."""
    if not call.seen.params["notifications"].get("resourceSubscriptions"):
        return await upstream._listen(call)
    call.reset()
    return None


REFUSALS: dict[str, tuple[Callable[[ModernUpstream, Call], Awaitable[Any]], int]] = {
    "an upstream that refuses": (refuses, 0),
    "an upstream that does not honour it": (ignores, 2),
    "an upstream that hangs up": (breaks, 0),
}
"""And which listen request, by its place among all, is heard in the end: the first, or one that asks for the same."""


@pytest.mark.parametrize("name", REFUSALS)
async def test_a_subscription_that_is_refused_is_an_error_and_leaves_what_was_heard(name: str) -> None:
    async with house() as (upstream, front):

        async def answer(call: Call) -> Any:
            return await REFUSALS[name][0](upstream, call)

        upstream.on[LISTEN] = answer
        session = await front.initialize()
        async with session.get() as stream:
            await settled(upstream)
            refused = await subscribe(session, "note://1")
            assert (refused["error"]["code"], refused["error"]["data"]) == (-32602, {"uri": "note://1"})
            heard_in = (await upstream.seen(LISTEN, REFUSALS[name][1] + 1))[REFUSALS[name][1]]
            assert heard_in.params["notifications"] == upstream.calls(LISTEN)[0].params["notifications"]
            await upstream.when(lambda: [call.seen for call in upstream.listeners] == [heard_in])
            await upstream.push(LIST_CHANGED, {})
            heard = await stream.message()
            assert heard is not None
            assert heard["method"] == LIST_CHANGED
            del upstream.on[LISTEN]
            assert (await subscribe(session, "note://2"))["result"] == {}
            await settled(upstream, "note://2")


async def test_an_upstream_that_serves_no_stream_takes_no_subscription() -> None:
    async with house() as (upstream, front):
        upstream.on[LISTEN] = Err(-32601, status=404)
        session = await front.initialize()
        async with session.get() as stream:
            assert stream.status == 405
        assert "error" in await subscribe(session, "note://1")
        assert len(upstream.calls(LISTEN)) == 1


@pytest.mark.parametrize("uri", [None, 5, ["note://1"], {}])
async def test_an_address_that_is_none_is_refused(uri: Any) -> None:
    async with house() as (upstream, front):
        session = await front.initialize()
        assert (await subscribe(session, uri))["error"]["code"] == -32602
        assert upstream.calls(LISTEN) == []


@pytest.mark.parametrize("resources", [None, {}, {"subscribe": False}, True])
async def test_where_nothing_can_be_subscribed_to_the_method_is_none(resources: Any) -> None:
    capabilities = {**CAPABILITIES, "resources": resources}
    async with house(capabilities) as (_, front):
        session = await front.initialize()
        assert (await subscribe(session, "note://1"))["error"]["code"] == -32601


async def test_subscriptions_of_two_sessions_are_their_own() -> None:
    async with house() as (upstream, front):
        one, two = await front.initialize(), await front.initialize()
        async with one.get() as first, two.get() as second:
            assert (await subscribe(one, "note://1"))["result"] == {}
            assert (await subscribe(two, "note://2"))["result"] == {}
            await upstream.when(lambda: sorted(listening_to(upstream)) == [["note://1"], ["note://2"]])
            for call in list(upstream.listeners):
                [uri] = call.seen.params["notifications"]["resourceSubscriptions"]
                await call.notify(UPDATED, {"uri": uri} | subscribed(call))
            assert await updates(first, 1) == ["note://1"]
            assert await updates(second, 1) == ["note://2"]
        assert (await one.delete()).status == 200


async def test_subscribing_at_once_loses_none() -> None:
    async with house() as (upstream, front):
        session = await front.initialize()
        uris = [f"note://{n}" for n in range(8)]
        async with session.get():
            done = await asyncio.gather(*(subscribe(session, uri) for uri in uris))
            assert all(one["result"] == {} for one in done)
            await upstream.when(lambda: [sorted(one) for one in listening_to(upstream)] == [uris])
