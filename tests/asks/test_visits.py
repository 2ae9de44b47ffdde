"""A legacy server refuses a call with -32042 until its user has been somewhere: asked once, then tried again.

Specification: 2025-11-25 client/elicitation (URL Elicitation Required); 2026-07-28 basic/patterns/mrtr.
"""

import asyncio
import json

import pytest

from gateway.upstreams.asking import MAX_ROUNDS
from tests.asks.talk import ELICIT, URL, Modern, entries
from tests.door import Door
from tests.gateway_process import running
from tests.http_wire import DEADLINE_S
from tests.peers import LegacyUpstream, text
from tests.raw_front import Answer
from tests.scripted import Call, Err, Json

ACCEPT: Json = {"action": "accept"}
AT = URL["url"]


def refusal(*visits: Json) -> Err:
    return Err(-32042, "first go there", {"elicitations": [URL | visit for visit in visits]})


def shown(answer: Answer) -> list[Json]:
    """The addresses that the client is asked to open."""
    asks = list(entries(answer).values())
    assert all(ask["method"] == ELICIT and "elicitationId" not in ask["params"] for ask in asks)
    return [ask["params"] for ask in asks]


E1, E2 = {"elicitationId": "e1"}, {"elicitationId": "e2"}
AGAIN: dict[str, tuple[Err, Err]] = {
    "the same visit": (refusal(E1), refusal(E1)),
    "the same visit at another address": (refusal(E1), refusal(E1 | {"url": AT + "&again"})),
    "the same address without an id": (refusal({}), refusal({})),
    "one of two visits": (refusal(E1, E2), refusal(E2)),
}


@pytest.mark.parametrize("name", AGAIN)
async def test_what_the_user_has_agreed_to_is_not_asked_again_but_tried(door: Door, name: str) -> None:
    answers = [*AGAIN[name], AGAIN[name][1]]

    async def tool(call: Call) -> Json | Err:
        return answers.pop(0) if answers else text("ran")

    door.legacy.on["tools/call"] = tool
    client = Modern(door.front("legacy"))
    done = await client.answer_all(await client.call(), ACCEPT)
    assert done.said == "ran"
    calls = door.legacy.calls("tools/call")
    assert len(calls) == 4
    assert len({call.id for call in calls}) == 4


async def test_another_visit_is_another_question(door: Door) -> None:
    answers = [refusal(E1), refusal(E1, E2)]

    async def tool(call: Call) -> Json | Err:
        return answers.pop(0) if answers else text("ran")

    door.legacy.on["tools/call"] = tool
    client = Modern(door.front("legacy"))
    first = await client.call()
    assert shown(first) == [URL]
    second = await client.answer_all(first, ACCEPT)
    assert shown(second) == [URL]
    assert (await client.answer_all(second, ACCEPT)).said == "ran"
    assert len(door.legacy.calls("tools/call")) == 3


async def test_a_retry_without_an_answer_calls_nobody(door: Door) -> None:
    door.legacy.on["tools/call"] = refusal(E1)
    client = Modern(door.front("legacy"))
    asked = await client.call()
    again = await client.retry(asked, {})
    assert shown(again) == [URL]
    refused = await client.answer_all(again, {"action": "decline"})
    assert (refused.status, refused.code) == (200, -32603)
    assert refused.error["message"] == "first go there"
    assert "example.com" not in json.dumps(refused.final)
    assert len(door.legacy.calls("tools/call")) == 1


async def test_a_server_that_always_wants_another_visit_gets_ten(door: Door) -> None:
    async def tool(call: Call) -> Err:
        return refusal({"elicitationId": f"e{len(door.legacy.calls('tools/call'))}"})

    door.legacy.on["tools/call"] = tool
    client = Modern(door.front("legacy"))
    answer, asked = await client.call(), 0
    while "result" in answer.final:
        asked += 1
        answer = await client.answer_all(answer, ACCEPT)
    assert (answer.status, answer.code, asked) == (502, -32603, MAX_ROUNDS)
    assert len(door.legacy.calls("tools/call")) == MAX_ROUNDS + 1


async def test_a_visit_that_never_counts_is_tried_until_the_call_has_taken_too_long() -> None:
    bounds = {"timeouts": {"first_byte_s": 1.5, "total_s": 1.5}}
    async with LegacyUpstream() as upstream, running({"up": (upstream, bounds)}) as gateway:
        upstream.on["tools/call"] = refusal(E1)
        client = Modern(gateway.front("/up"))
        answer = await client.answer_all(await client.call(), ACCEPT)
        assert (answer.status, answer.code) == (504, -32603)
        assert len(upstream.calls("tools/call")) == 3


async def test_a_client_that_goes_while_its_visit_is_tried_ends_the_tries(door: Door) -> None:
    door.legacy.on["tools/call"] = refusal(E1)
    client = Modern(door.front("legacy"))
    asked = await client.call()
    calling = asyncio.create_task(client.answer_all(asked, ACCEPT))
    first, _ = await door.legacy.seen("tools/call", 2)
    calling.cancel()
    await asyncio.wait({calling})
    door.legacy.on["tools/call"] = text("another call")
    async with asyncio.timeout(DEADLINE_S):  # its session is lent to another call once it is over
        while True:
            assert (await Modern(door.front("legacy")).call(ident="other")).said == "another call"
            if door.legacy.calls("tools/call")[-1].session == first.session:
                break
