"""Field reports F3, F5: a server asks only whom it may, and its client's answer reaches it, alone and once."""

import asyncio
from typing import Any

import pytest

from tests.door import Door
from tests.gateway_process import running
from tests.peers import LegacyUpstream, ModernUpstream
from tests.raw_front import Open, Session
from tests.scripted import Call, Json

ASKS: dict[str, tuple[Json, Json, Json]] = {
    "elicitation/create": (
        {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"n": {"type": "string", "x": [1.5]}}}},
        {"action": "accept", "content": {"n": "größe"}},
        {"elicitation": {}},
    ),
    "sampling/createMessage": (
        {"messages": [{"role": "user", "content": {"type": "text", "text": "x"}}], "maxTokens": 1, "x-vendor": None},
        {"role": "assistant", "content": {"type": "text", "text": "y"}, "model": "m", "x-vendor": [1]},
        {"sampling": {}},
    ),
    "roots/list": ({}, {"roots": [{"uri": "file:///r", "x-vendor": {}}]}, {"roots": {"listChanged": True}}),
}
every_ask = pytest.mark.parametrize("method", ASKS)
OUTCOMES = {"a result": None, "an error": {"error": {"code": -32055, "message": "größe", "data": {"x": [None]}}}}


def asking(method: str, params: Json) -> Any:
    """A tool that asks on its own stream and says what it heard."""

    async def tool(call: Call) -> Json:
        answer = await call.ask(method, params)
        return {"content": [], "structuredContent": {key: answer[key] for key in ("result", "error") if key in answer}}

    return tool


async def next_ask(stream: Open) -> Json:
    """The next request of the server's; what it tells besides is passed over."""
    while (message := await stream.message()) is not None:
        if "id" in message and "method" in message:
            return message
    raise AssertionError("the stream ended without an ask")


@pytest.mark.field("F5")
@every_ask
@pytest.mark.parametrize("outcome", OUTCOMES)
async def test_an_ask_on_a_calls_stream_is_answered_once(door: Door, method: str, outcome: str) -> None:
    params, result, capabilities = ASKS[method]
    said = OUTCOMES[outcome] or {"result": result}
    door.legacy.on["tools/call"] = asking(method, params)
    session = await door.front("legacy").initialize(capabilities=capabilities)
    async with session.open("tools/call", {"name": "t"}, ident=1) as opened:
        ask = await next_ask(opened)
        assert (ask["method"], ask.get("params", {})) == (method, params)
        taken = await session.reply(ask["id"], said)
        assert (taken.status, taken.body) == (202, b"")
        [final] = await opened.rest()
    assert (final["id"], final["result"]["structuredContent"]) == (1, said)
    late = await session.reply(ask["id"], {"result": {"late": True}})
    assert (late.status, late.body) == (202, b"")
    assert "result" in (await session.request("tools/list")).final
    [reply] = door.legacy.replies
    assert reply.session == upstream_session(door)


def upstream_session(door: Door) -> str:
    """The upstream session that was opened last."""
    return list(door.legacy.opened)[-1]


@pytest.mark.field("F5")
@every_ask
async def test_an_ask_on_the_get_stream_is_answered_there(door: Door, method: str) -> None:
    params, result, capabilities = ASKS[method]
    session = await door.front("legacy").initialize(capabilities=capabilities)
    own = upstream_session(door)
    async with session.get() as stream:
        asked = asyncio.create_task(door.legacy.ask(method, params, session=own))
        ask = await next_ask(stream)
        assert (ask["method"], ask.get("params", {})) == (method, params)
        assert (await session.reply(ask["id"], {"result": result})).status == 202
        assert (await asked)["result"] == result
    assert [reply.session for reply in door.legacy.replies] == [own]


@pytest.mark.field("F5")
async def test_a_ping_of_the_upstream_is_answered(door: Door) -> None:
    session = await door.front("legacy").initialize()
    async with session.get() as stream:
        asked = asyncio.create_task(door.legacy.ask("ping", {}, session=upstream_session(door)))
        forwarded = asyncio.create_task(next_ask(stream))
        await asyncio.wait({asked, forwarded}, return_when=asyncio.FIRST_COMPLETED)
        if forwarded.done():
            pong = await session.reply((await forwarded)["id"], {"result": {}})
            assert (pong.status, pong.body) == (202, b"")
        assert (await asked)["result"] == {}
        forwarded.cancel()
    assert len(door.legacy.replies) == 1


@pytest.mark.field("F5")
async def test_two_sessions_asked_at_once_each_answer_their_own_server(door: Door) -> None:
    params, _, capabilities = ASKS["elicitation/create"]
    door.legacy.on["tools/call"] = asking("elicitation/create", params)

    async def user(name: str) -> None:
        session: Session = await door.front("legacy").initialize(capabilities=capabilities)
        async with session.open("tools/call", {"name": name}, ident=1) as opened:
            ask = await next_ask(opened)
            await session.reply(ask["id"], {"result": {"action": "accept", "content": {"name": name}}})
            [final] = await opened.rest()
        assert final["result"]["structuredContent"]["result"]["content"] == {"name": name}

    await asyncio.gather(*(user(f"user {number}") for number in range(12)))
    assert len(door.legacy.replies) == 12


@pytest.mark.field("F5")
async def test_another_sessions_client_cannot_answer(door: Door) -> None:
    params, result, capabilities = ASKS["elicitation/create"]
    door.legacy.on["tools/call"] = asking("elicitation/create", params)
    asked = await door.front("legacy").initialize(capabilities=capabilities)
    other = await door.front("legacy").initialize(capabilities=capabilities)
    async with asked.open("tools/call", {"name": "t"}) as opened:
        ask = await next_ask(opened)
        assert (await other.reply(ask["id"], {"result": {"action": "decline"}})).status == 202
        assert (await asked.reply(ask["id"], {"result": result})).status == 202
        [final] = await opened.rest()
    assert final["result"]["structuredContent"]["result"] == result


@pytest.mark.field("F3")
@every_ask
@pytest.mark.parametrize("front_era", ["modern", "legacy"])
async def test_an_upstream_that_asks_all_the_same_is_refused_and_goes_on(
    door: Door, front_era: str, method: str
) -> None:
    door.legacy.on["tools/call"] = asking(method, ASKS[method][0])
    front = door.front("legacy")
    if front_era == "modern":
        answer = await front.modern("tools/call", {"name": "t"})
    else:
        answer = await (await front.initialize()).request("tools/call", {"name": "t"})
    assert answer.result["structuredContent"]["error"]["code"] in (-32601, -32021)
    assert answer.notes == []


@pytest.mark.field("F3")
@pytest.mark.parametrize("front_era", ["modern", "legacy"])
async def test_an_upstream_is_promised_what_the_client_declared_and_no_more(door: Door, front_era: str) -> None:
    declared: Json = {"elicitation": {"form": {}}, "roots": {}, "extensions": {"com.example/x": {"k": 1}}}
    front = door.front("modern")
    if front_era == "modern":
        await front.modern("tools/call", {"name": "t"}, capabilities=declared)
        await front.modern("tools/call", {"name": "t"}, capabilities={})
    else:
        await (await front.initialize(capabilities=declared)).request("tools/call", {"name": "t"})
        await (await front.initialize()).request("tools/call", {"name": "t"})
    told = [seen.meta["io.modelcontextprotocol/clientCapabilities"] for seen in door.modern.calls("tools/call")]
    assert told == [declared, {}]


@pytest.mark.field("F3")
async def test_a_legacy_upstream_is_promised_what_its_session_can_keep(door: Door) -> None:
    declared: Json = {"elicitation": {"form": {}}, "sampling": {}, "extensions": {"com.example/x": {"k": 1}}}
    await (await door.front("legacy").initialize(capabilities=declared)).request("tools/call", {"name": "t"})
    await door.front("legacy").modern("tools/call", {"name": "t"}, capabilities=declared)
    promised = [
        door.legacy.opened[seen.session or ""].params["capabilities"] for seen in door.legacy.calls("tools/call")
    ]
    assert promised == [declared, declared]


@pytest.mark.field("F3")
@pytest.mark.parametrize("route", ["legacy", "modern"])
async def test_no_upstream_is_promised_what_cannot_cross_the_eras(door: Door, route: str) -> None:
    """Neither news of roots, which one era cannot tell, nor the tasks of 2025-11-25, which the other does not know."""
    declared: Json = {"roots": {"listChanged": True}, "tasks": {"cancel": {}}, "x-unknown": {}}
    front = door.front(route)
    if route == "legacy":
        await front.modern("tools/call", {"name": "t"}, capabilities=declared)
        [seen] = door.legacy.calls("tools/call")
        told = door.legacy.opened[seen.session or ""].params["capabilities"]
    else:
        await (await front.initialize(capabilities=declared)).request("tools/call", {"name": "t"})
        [seen] = door.modern.calls("tools/call")
        told = seen.meta["io.modelcontextprotocol/clientCapabilities"]
    assert told == {"roots": {}}


@pytest.mark.field("F3")
async def test_sessions_that_no_client_asked_for_promise_nothing() -> None:
    async with (
        LegacyUpstream() as legacy,
        ModernUpstream() as modern,
        running({"legacy": legacy, "modern": modern}) as gateway,
    ):
        for upstream, era in ((legacy, "legacy"), (modern, "modern")):
            assert "result" in (await gateway.front(f"/{era}").modern("server/discover")).final
            for seen in await upstream.seen("server/discover"):
                assert seen.meta["io.modelcontextprotocol/clientCapabilities"] == {}
        for seen in await legacy.seen("initialize"):
            assert seen.params["capabilities"] == {}
