"""Nothing that a user fills in, is shown or is sent to reaches the log: forms, addresses, messages, states, answers."""

import asyncio
from typing import Any

from tests.asks.talk import ELICIT, EVERYTHING, ROOTS, SAMPLE, Modern, entries, heard, next_ask
from tests.gateway_process import running
from tests.peers import LegacyUpstream, ModernUpstream
from tests.scripted import Call, Err, Json

MARK = "m4rk"
"""Planted wherever content goes; it is no part of any name."""


def marked(what: str) -> str:
    return f"{MARK}-{what}"


SHOWN: dict[str, tuple[str, Json]] = {
    "form": (
        ELICIT,
        {
            "message": marked("message"),
            "requestedSchema": {"type": "object", "properties": {marked("field"): {"type": "string"}}},
        },
    ),
    "url": (ELICIT, {"mode": "url", "message": marked("why"), "url": f"https://example.com/{marked('url')}"}),
    "sampling": (
        SAMPLE,
        {"messages": [{"role": "user", "content": {"type": "text", "text": marked("prompt")}}], "maxTokens": 1},
    ),
    "roots": (ROOTS, {"_meta": {"v/x": marked("meta")}}),
}
ANSWER: Json = {"action": "accept", "content": {"n": marked("answer")}, "roots": [{"uri": f"file:///{marked('root')}"}]}
ERROR: Json = {"code": -32055, "message": marked("error"), "data": {"x": marked("data")}}
PARAMS: Json = {"name": "t", "arguments": {"a": marked("argument")}}


async def test_asks_and_answers_are_in_no_log() -> None:
    async with (
        LegacyUpstream(get_stream=True) as legacy,
        ModernUpstream() as modern,
        running({"legacy": legacy, "modern": modern}, log={"level": "debug"}, streams={"ask_ttl_s": 1}) as gateway,
    ):
        seen: list[Any] = []
        await _modern_client(gateway.front("/legacy"), legacy, seen)
        await _legacy_client(gateway.front("/modern"), modern, seen)
        assert all(MARK in str(one) for one in seen), "the marks went all the way"
        assert len(seen) > 8
        assert " INFO " in gateway.stderr()
        assert MARK not in gateway.stderr()


async def _modern_client(front: Any, legacy: LegacyUpstream, seen: list[Any]) -> None:
    async def tool(call: Call) -> Json:
        answers = []
        for method, params in SHOWN.values():
            answers.append(await call.ask(method, params))
            answers.append(await legacy.ask(method, params, session=call.seen.session))
        return heard(*answers)

    legacy.on["tools/call"] = tool
    client = Modern(front, PARAMS)
    answer = await client.call()
    while answer.result["resultType"] == "input_required":
        seen.append(entries(answer))
        broken = await client.retry(answer, {marked("key"): marked("no object")})
        assert broken.status == 400
        altered = await front.modern("tools/call", {**client.again(answer, {}), "requestState": marked("state")})
        assert altered.status == 400
        answer = await client.answer_all(answer, ANSWER)
    seen.append(answer.result)

    async def gives_up(call: Call) -> None:
        await call.event({"jsonrpc": "2.0", "id": marked("id"), "method": ELICIT, "params": SHOWN["form"][1]})
        await call.gone()

    legacy.on["tools/call"] = gives_up
    seen.append(entries(await client.call()))
    await legacy.seen("notifications/cancelled")  # it expires

    async def breaks(call: Call) -> None:
        await call.ask(*SHOWN["form"])
        call.reset()

    legacy.on["tools/call"] = breaks
    assert (await client.answer_all(await client.call(), ANSWER)).status == 502
    legacy.on["tools/call"] = Err(-32042, marked("refusal"), {"elicitations": [SHOWN["url"][1]]})
    seen.append((await client.answer_all(await client.call(), {"action": "decline", "x": marked("no")})).final)


async def _legacy_client(front: Any, modern: ModernUpstream, seen: list[Any]) -> None:
    async def tool(call: Call) -> Json:
        if "inputResponses" in call.seen.params:
            seen.append(call.seen.params["inputResponses"])
            return {"content": [], "structuredContent": call.seen.params["inputResponses"]}
        inputs = {marked(key): {"method": method, "params": params} for key, (method, params) in SHOWN.items()}
        return {"resultType": "input_required", "inputRequests": inputs, "requestState": marked("state")}

    modern.on["tools/call"] = tool
    session = await front.initialize(capabilities=EVERYTHING)
    for outcome in ({"result": ANSWER}, {"error": ERROR}):
        async with session.open("tools/call", PARAMS) as opened:
            asks = [await next_ask(opened) for _ in SHOWN]
            await asyncio.gather(*(session.reply(ask["id"], outcome) for ask in asks))
            seen.append((await opened.rest())[-1])
        seen.extend(asks)
    modern.on["tools/call"] = {"resultType": "input_required", "inputRequests": {marked("k"): {"method": marked("m")}}}
    assert "error" in (await session.request("tools/call", PARAMS)).final
