"""Listen streams at a server of 2026-07-28: who shares one, what each hears, and what happens when it is lost."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from gateway.exchange import Exchange
from gateway.stores.memory import MemoryStore
from gateway.stores.shared import Shared
from gateway.upstreams.listening import Heard, Listening
from policies.exchange import Call as ListenCall
from policies.exchange import Dialect
from policies.sealing import KeyRing, new_key
from tests.gateway.test_keys import CI, OPS, bearer, digest
from tests.gateway_process import GatewayProcess, running
from tests.http_wire import DEADLINE_S
from tests.peers import ModernUpstream, subscribed
from tests.raw_front import PREFIX, Front, Open
from tests.scripted import Call, Err

Json = dict[str, Any]

LISTEN, ACKNOWLEDGED = "subscriptions/listen", "notifications/subscriptions/acknowledged"
TOOLS, PROMPTS, UPDATED = (
    f"notifications/{name}" for name in ("tools/list_changed", "prompts/list_changed", "resources/updated")
)
ALL: Json = {"toolsListChanged": True, "promptsListChanged": True}
NOTES: Json = {"toolsListChanged": True, "resourceSubscriptions": ["note://1"]}


@asynccontextmanager
async def house() -> AsyncIterator[tuple[ModernUpstream, GatewayProcess]]:
    clients = {name: {"keys": [digest(key)], "routes": ["/up"]} for name, key in (("ci", CI), ("ops", OPS))}
    async with ModernUpstream() as upstream, running({"up": upstream}, clients=clients) as gateway:
        yield upstream, gateway


@asynccontextmanager
async def listening(front: Front, wanted: Json, ident: Any = 1, key: str = CI, **meta: Any) -> AsyncIterator[Open]:
    """A stream whose acknowledgement has come."""
    params = {"notifications": wanted}
    async with front.modern_open(LISTEN, params, ident=ident, headers=bearer(key), **meta) as stream:
        message = await stream.message()
        assert message is not None
        assert message["method"] == ACKNOWLEDGED, message
        assert message["params"]["notifications"] == wanted
        assert message["params"]["_meta"][PREFIX + "subscriptionId"] == ident
        yield stream


async def heard(stream: Open) -> tuple[str, Json]:
    message = await stream.message()
    assert message is not None
    return message["method"], message["params"]


async def test_who_wants_the_same_hears_one_stream_each_under_its_own_id() -> None:
    async with house() as (upstream, gateway), AsyncExitStack() as stack:
        front = gateway.front("/up")
        idents = ["1", 1, "é", 2**53]
        streams = [await stack.enter_async_context(listening(front, ALL, ident)) for ident in idents]
        assert len(upstream.calls(LISTEN)) == 1
        await upstream.push(PROMPTS, {"x": [1.50]})
        for stream, ident in zip(streams, idents, strict=True):
            assert await heard(stream) == (PROMPTS, {"x": [1.5], "_meta": {PREFIX + "subscriptionId": ident}})


DIFFERENT: dict[str, tuple[Json, str, Json]] = {
    "another filter": ({"toolsListChanged": True}, CI, {}),
    "a filter with a member that nobody knows": ({**ALL, "x": 1}, CI, {}),
    "another client": (ALL, OPS, {}),
    "other capabilities": (ALL, CI, {"capabilities": {"elicitation": {}}}),
    "a level": (ALL, CI, {"meta": {PREFIX + "logLevel": "info"}}),
    "a member of _meta that nobody knows": (ALL, CI, {"meta": {"com.example/tenant": "t"}}),
}


@pytest.mark.parametrize("name", DIFFERENT)
async def test_who_differs_in_anything_that_counts_hears_a_stream_of_its_own(name: str) -> None:
    wanted, key, more = DIFFERENT[name]
    async with house() as (upstream, gateway):
        front = gateway.front("/up")
        async with listening(front, ALL), listening(front, wanted, 2, key, **more) as other:
            [first, second] = upstream.listeners
            await first.notify(TOOLS, subscribed(first))
            await second.notify(TOOLS, {"mine": True} | subscribed(second))
            assert (await heard(other))[1]["mine"] is True


async def test_a_trace_is_one_requests_own_and_parts_nobody() -> None:
    async with house() as (upstream, gateway):
        front = gateway.front("/up")
        async with (
            listening(front, ALL, 1, meta={"traceparent": "00-" + "1" * 32 + "-" + "1" * 16 + "-01"}),
            listening(front, ALL, 2, meta={"traceparent": "00-" + "2" * 32 + "-" + "2" * 16 + "-01"}),
        ):
            [call] = upstream.calls(LISTEN)
            assert "traceparent" not in call.params["_meta"]


async def test_the_stream_goes_with_the_last_who_hears_it() -> None:
    async with house() as (upstream, gateway):
        front = gateway.front("/up")
        async with listening(front, ALL, 1) as stays:
            async with listening(front, ALL, 2):
                pass
            await upstream.push(TOOLS, {})
            assert (await heard(stays))[0] == TOOLS
            assert len(upstream.listeners) == 1
        await upstream.when(lambda: not upstream.listeners)
        async with listening(front, ALL, 3):
            assert len(upstream.calls(LISTEN)) == 2


@pytest.mark.parametrize("how", ["breaks", "ends"])
async def test_a_stream_that_is_lost_is_opened_again_and_all_may_have_changed(how: str) -> None:
    async with house() as (upstream, gateway):
        front = gateway.front("/up")
        async with listening(front, NOTES, 1) as one, listening(front, NOTES, 2) as two:
            [call] = upstream.listeners
            if how == "breaks":
                call.reset()
            else:
                await call.answer({"resultType": "complete", **subscribed(call)})
            for stream, ident in ((one, 1), (two, 2)):
                tag = {PREFIX + "subscriptionId": ident}
                told = [await heard(stream), await heard(stream)]
                assert told == [(TOOLS, {"_meta": tag}), (UPDATED, {"uri": "note://1", "_meta": tag})]
            assert len(upstream.calls(LISTEN)) == 2


async def test_a_stream_of_which_less_is_honoured_than_before_ends_in_peace() -> None:
    async with house() as (upstream, gateway):

        async def less(call: Call) -> None:
            await call.notify(ACKNOWLEDGED, {"notifications": {}} | subscribed(call))
            await call.stay()

        async with listening(gateway.front("/up"), NOTES, "é") as stream:
            [call] = upstream.listeners
            upstream.on[LISTEN] = less
            call.reset()
            message = await stream.message()
            assert message == {
                "jsonrpc": "2.0",
                "id": "é",
                "result": {"resultType": "complete", "_meta": {PREFIX + "subscriptionId": "é"}},
            }


@pytest.mark.parametrize("status", [400, 404, 503])
async def test_a_refusal_is_everybodys_who_waits_and_nobodys_who_comes_later(status: int) -> None:
    async with house() as (upstream, gateway):
        front = gateway.front("/up")
        upstream.on[LISTEN] = Err(-32603, "not now", {"why": ["x"]}, status=status)
        for _ in range(2):
            answer = await front.modern(LISTEN, {"notifications": ALL}, headers=bearer(CI))
            assert (answer.code, answer.error["message"], answer.error["data"]) == (-32603, "not now", {"why": ["x"]})
            assert answer.status == status
        del upstream.on[LISTEN]
        async with listening(front, ALL):
            assert len(upstream.listeners) == 1


async def test_who_does_not_read_harms_nobody_who_does() -> None:
    async with house() as (upstream, gateway):
        front = gateway.front("/up")
        async with listening(front, ALL, 1), listening(front, ALL, 2) as reads:
            for number in range(300):
                await upstream.push(TOOLS, {"n": number, "much": "x" * 50_000})
                assert (await heard(reads))[1]["n"] == number


async def test_a_filter_that_changes_before_the_first_is_acknowledged_is_told_what_of_it_is_honoured() -> None:
    opened: asyncio.Queue[Json] = asyncio.Queue()
    acknowledge = asyncio.Event()

    async def upstream(call: ListenCall, heard: Heard) -> None:
        opened.put_nowait(call.params["notifications"])
        await acknowledge.wait()
        heard(ACKNOWLEDGED, call.params)
        await asyncio.get_running_loop().create_future()

    ring = KeyRing.of(new_key("k", b"k" * 32))
    shared = Listening("up", upstream, Shared.over(MemoryStore(), lambda: ring))
    call = ListenCall(LISTEN, {"notifications": ALL}, {}, {}, None, "anonymous", Dialect("legacy", "2025-11-25"))
    exchange = Exchange(call)
    exchange.start(shared.listen)
    async with asyncio.timeout(DEADLINE_S):
        assert await opened.get() == ALL
        agreed = exchange.refilter({"notifications": NOTES})
        acknowledge.set()
        assert await agreed == NOTES
        assert await opened.get() == NOTES
    exchange.cancel()
    await exchange.finished()
    await shared.close()
    assert len(shared) == 0
