"""A modern server asks a legacy client: its rounds become requests on the call's stream, one by one answered.

Specification: 2026-07-28 basic/patterns/mrtr; 2025-11-25 and 2025-06-18 client/{elicitation,sampling,roots}; field
reports F1, AB10.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.asks.talk import (
    ACCEPT,
    ELICIT,
    EVERYTHING,
    FORM,
    MESSAGES,
    ROOTS,
    SAMPLE,
    TOOL,
    URL,
    next_ask,
)
from tests.door import Door
from tests.raw_front import Open, Session
from tests.scripted import Call, Json

STATE = "größe=+/" + "s" * 2048
KINDS: dict[str, tuple[str, Json, Json]] = {
    "a form": (ELICIT, {"mode": "form", **FORM}, ACCEPT),
    "a form that is declined": (ELICIT, FORM, {"action": "decline"}),
    "a form that is cancelled": (ELICIT, FORM, {"action": "cancel"}),
    "sampling": (SAMPLE, MESSAGES, {"role": "assistant", "content": {"type": "text", "text": "y"}, "model": "m"}),
    "roots": (ROOTS, {}, {"roots": [{"uri": "file:///r", "x-vendor": {}}]}),
}
METHODS = {"tools/call": TOOL, "prompts/get": {"name": "p"}, "resources/read": {"uri": "note://1"}}


def wants(asks: dict[str, tuple[str, Json]], state: str | None = None) -> Json:
    entries = {
        key: {"method": method, **({"params": params} if params else {})} for key, (method, params) in asks.items()
    }
    return {"resultType": "input_required", "inputRequests": entries, **({"requestState": state} if state else {})}


def rounds(*results: Json, method: str = "tools/call") -> Callable[[Call], Any]:
    """A modern method that gives these results one after the other, and at last what it was sent with the retry."""
    left = list(results)

    async def run(call: Call) -> Json:
        if left:
            return left.pop(0)
        params = call.seen.params
        got = {key: params[key] for key in ("inputResponses", "requestState") if key in params}
        return {"content": [], "messages": [], "contents": [], "structuredContent": got, "x-got": got}

    return run


async def session_of(door: Door, version: str = "2025-11-25", capabilities: Json = EVERYTHING) -> Session:
    return await door.front("modern").initialize(version, capabilities=capabilities)


async def answered(session: Session, opened: Open, *outcomes: Json) -> list[Json]:
    """Answers the next asks in turn; the asks."""
    asks = []
    for outcome in outcomes:
        ask = await next_ask(opened)
        asks.append(ask)
        taken = await session.reply(ask["id"], outcome)
        assert (taken.status, taken.body) == (202, b"")
    return asks


@pytest.mark.field("F1", "AB10")
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18"])
async def test_an_entry_is_a_request_and_its_response_an_answer(door: Door, name: str, version: str) -> None:
    method, params, result = KINDS[name]
    door.modern.on["tools/call"] = rounds(wants({"кey": (method, params)}, STATE))
    session = await session_of(door, version)
    async with session.open("tools/call", TOOL, ident="c") as opened:
        [ask] = await answered(session, opened, {"result": result})
        [final] = await opened.rest()
    shown = params if version == "2025-11-25" else {k: v for k, v in params.items() if k != "mode"}
    assert (ask["method"], ask.get("params", {})) == (method, shown)
    got = {"inputResponses": {"кey": result}, "requestState": STATE}
    assert (final["id"], final["result"]["structuredContent"]) == ("c", got)
    assert "resultType" not in final["result"]


@pytest.mark.field("F1")
@pytest.mark.parametrize("method", METHODS)
async def test_every_method_that_may_ask_does(door: Door, method: str) -> None:
    door.modern.on[method] = rounds(wants({"a": (ROOTS, {})}))
    session = await session_of(door)
    async with session.open(method, METHODS[method]) as opened:
        await answered(session, opened, {"result": {"roots": []}})
        [final] = await opened.rest()
    assert final["result"]["x-got"] == {"inputResponses": {"a": {"roots": []}}}


async def test_the_asks_of_a_round_are_open_at_the_same_time(door: Door) -> None:
    door.modern.on["tools/call"] = rounds(wants({"a": (ELICIT, FORM), "b": (ROOTS, {}), "c": (SAMPLE, MESSAGES)}))
    session = await session_of(door)
    async with session.open("tools/call", TOOL) as opened:
        asks = [await next_ask(opened) for _ in range(3)]
        for n, ask in reversed(list(enumerate(asks))):
            await session.reply(ask["id"], {"result": {"n": n}})
        [final] = await opened.rest()
    assert [ask["method"] for ask in asks] == [ELICIT, ROOTS, SAMPLE]
    assert final["result"]["structuredContent"]["inputResponses"] == {"a": {"n": 0}, "b": {"n": 1}, "c": {"n": 2}}


async def test_rounds_follow_each_other_with_the_state_of_the_last(door: Door) -> None:
    steps = [wants({"k": (ELICIT, FORM | {"message": str(n)})}, f"state {n}") for n in range(3)]
    door.modern.on["tools/call"] = rounds(*steps)
    session = await session_of(door)
    async with session.open("tools/call", TOOL) as opened:
        outcomes = [{"result": {"action": "accept", "content": {"n": n}}} for n in range(3)]
        asks = await answered(session, opened, *outcomes)
        [final] = await opened.rest()
    assert [ask["params"]["message"] for ask in asks] == ["0", "1", "2"]
    assert len({ask["id"] for ask in asks}) == 3
    assert final["result"]["structuredContent"] == {
        "inputResponses": {"k": outcomes[2]["result"]},
        "requestState": "state 2",
    }
    sent = [{k: v for k, v in seen.params.items() if k != "_meta"} for seen in door.modern.calls("tools/call")]
    assert sent[0] == TOOL
    assert [one.get("requestState") for one in sent] == [None, "state 0", "state 1", "state 2"]
    assert len({seen.id for seen in door.modern.calls("tools/call")}) == 4


async def test_a_server_that_only_wants_its_state_back_gets_it(door: Door) -> None:
    door.modern.on["tools/call"] = rounds(wants({}, "s1"), wants({}, "s2"))
    answer = await (await session_of(door)).request("tools/call", TOOL)
    assert answer.result["structuredContent"] == {"requestState": "s2"}
    assert answer.notes == []


@pytest.mark.parametrize("kind", [ELICIT, SAMPLE, ROOTS])
async def test_an_error_of_the_client_fails_the_call_with_it(door: Door, kind: str) -> None:
    params = {ELICIT: FORM, SAMPLE: MESSAGES, ROOTS: {}}[kind]
    door.modern.on["tools/call"] = rounds(wants({"a": (kind, params), "b": (ROOTS, {})}))
    session = await session_of(door)
    error = {"code": -32055, "message": "größe", "data": {"x": [None]}}
    async with session.open("tools/call", TOOL) as opened:
        await answered(session, opened, {"error": error})
        final = (await opened.rest())[-1]
    assert final["error"] == error
    assert len(door.modern.calls("tools/call")) == 1, "a made-up answer would be asked again and again"


async def test_late_and_second_answers_are_dropped(door: Door) -> None:
    door.modern.on["tools/call"] = rounds(wants({"k": (ELICIT, FORM)}), wants({"k": (ELICIT, FORM)}))
    session = await session_of(door)
    async with session.open("tools/call", TOOL) as opened:
        [first] = await answered(session, opened, {"result": ACCEPT})
        assert (await session.reply(first["id"], {"result": {"action": "decline"}})).status == 202
        second = await next_ask(opened)
        assert (await session.reply(first["id"], {"result": {"action": "decline"}})).status == 202
        await session.reply(second["id"], {"result": {"action": "accept", "content": {"n": "2"}}})
        [final] = await opened.rest()
    assert (await session.reply(second["id"], {"error": {"code": 1, "message": "late"}})).status == 202
    assert final["result"]["structuredContent"]["inputResponses"]["k"]["content"] == {"n": "2"}


@pytest.mark.field("F5")
async def test_nobody_else_answers(door: Door) -> None:
    door.modern.on["tools/call"] = rounds(wants({"k": (ELICIT, FORM)}))
    session, other = await session_of(door), await session_of(door)
    async with session.open("tools/call", TOOL) as opened:
        ask = await next_ask(opened)
        assert (await other.reply(ask["id"], {"result": {"action": "decline"}})).status == 202
        await session.reply(ask["id"], {"result": ACCEPT})
        [final] = await opened.rest()
    assert final["result"]["structuredContent"]["inputResponses"] == {"k": ACCEPT}


# what a client cannot be asked

MANY = {"m": {"type": "array", "items": {"type": "string", "enum": ["a"]}}}
CANCELLED: dict[str, tuple[str, Json, Json]] = {
    "a form where none is declared": ("2025-11-25", {}, FORM),
    "a form where only addresses are declared": ("2025-11-25", {"elicitation": {"url": {}}}, FORM),
    "an address where only forms are declared": ("2025-11-25", {"elicitation": {"form": {}}}, URL),
    "an address before there were any": ("2025-06-18", {"elicitation": {"url": {}, "form": {}}}, URL),
    "many choices before there were any": (
        "2025-06-18",
        {"elicitation": {}},
        {"message": "m", "requestedSchema": {"type": "object", "properties": MANY}},
    ),
}


@pytest.mark.parametrize("name", CANCELLED)
async def test_an_elicitation_that_cannot_be_shown_is_cancelled(door: Door, name: str) -> None:
    version, capabilities, params = CANCELLED[name]
    door.modern.on["tools/call"] = rounds(wants({"k": (ELICIT, params)}, "s"))
    answer = await (await session_of(door, version, capabilities)).request("tools/call", TOOL)
    got = {"inputResponses": {"k": {"action": "cancel"}}, "requestState": "s"}
    assert answer.result["structuredContent"] == got
    assert answer.notes == []


LACKING: dict[str, tuple[Json, str, Json]] = {
    "sampling": ({"roots": {}}, SAMPLE, MESSAGES),
    "sampling with tools": ({"sampling": {}}, SAMPLE, MESSAGES | {"tools": []}),
    "roots": ({"sampling": {}}, ROOTS, {}),
}


@pytest.mark.parametrize("name", LACKING)
async def test_sampling_and_roots_that_are_not_declared_fail_the_call(door: Door, name: str) -> None:
    capabilities, method, params = LACKING[name]
    door.modern.on["tools/call"] = rounds(wants({"k": (method, params)}))
    answer = await (await session_of(door, capabilities=capabilities)).request("tools/call", TOOL)
    assert (answer.status, answer.error["message"] != "") == (200, True)
    assert method in answer.error["message"]
    assert len(door.modern.calls("tools/call")) == 1


async def test_older_clients_are_shown_the_same_in_older_words(door: Door) -> None:
    choice = {"type": "string", "oneOf": [{"const": "r", "title": "Rot"}, {"const": "b", "title": "Blau"}]}
    asked = {"message": "m", "requestedSchema": {"type": "object", "properties": {"c": choice}}}
    block = {"type": "text", "text": "x"}
    sampled = {"messages": [{"role": "user", "content": [block]}], "maxTokens": 1, "includeContext": "none"}
    door.modern.on["tools/call"] = rounds(wants({"a": (ELICIT, asked), "b": (SAMPLE, sampled)}))
    session = await session_of(door, "2025-06-18", {"elicitation": {}, "sampling": {}})
    async with session.open("tools/call", TOOL) as opened:
        form, sampling = await answered(session, opened, {"result": ACCEPT}, {"result": {"x": 1}})
        await opened.rest()
    older = {"type": "string", "enum": ["r", "b"], "enumNames": ["Rot", "Blau"]}
    assert form["params"]["requestedSchema"]["properties"] == {"c": older}
    assert sampling["params"] == {"messages": [{"role": "user", "content": block}], "maxTokens": 1}


# addresses


async def test_an_address_is_shown_once_and_looked_after_until_the_server_is_content(door: Door) -> None:
    again = wants({"k": (ELICIT, URL)}, "s")
    door.modern.on["tools/call"] = rounds(again, again)
    session = await session_of(door)
    async with session.open("tools/call", TOOL) as opened:
        [ask] = await answered(session, opened, {"result": {"action": "accept"}})
        complete, final = await opened.rest()
    ident = ask["params"]["elicitationId"]
    assert ask["params"] == URL | {"elicitationId": ident}
    assert isinstance(ident, str)
    assert (complete["method"], complete["params"]) == (
        "notifications/elicitation/complete",
        {"elicitationId": ident},
    )
    assert final["result"]["structuredContent"]["inputResponses"] == {"k": {"action": "accept"}}
    responses = [seen.params.get("inputResponses") for seen in door.modern.calls("tools/call")]
    assert responses == [None, {"k": {"action": "accept"}}, {"k": {"action": "accept"}}]


async def test_an_address_that_is_no_longer_asked_for_is_done_with_while_the_call_goes_on(door: Door) -> None:
    door.modern.on["tools/call"] = rounds(wants({"k": (ELICIT, URL)}), wants({"f": (ELICIT, FORM)}))
    session = await session_of(door)
    async with session.open("tools/call", TOOL) as opened:
        [first] = await answered(session, opened, {"result": {"action": "accept"}})
        complete = await opened.message()
        assert complete is not None
        assert complete["params"] == {"elicitationId": first["params"]["elicitationId"]}
        await answered(session, opened, {"result": ACCEPT})
        [final] = await opened.rest()
    assert final["result"]["structuredContent"]["inputResponses"] == {"f": ACCEPT}


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_an_address_that_is_not_visited_is_told_as_it_is(door: Door, action: str) -> None:
    door.modern.on["tools/call"] = rounds(wants({"k": (ELICIT, URL)}))
    session = await session_of(door)
    async with session.open("tools/call", TOOL) as opened:
        await answered(session, opened, {"result": {"action": action}})
        [final] = await opened.rest()
    assert final["result"]["structuredContent"]["inputResponses"] == {"k": {"action": action}}


# bounds


async def test_a_client_is_asked_ten_times_for_one_call_and_no_more(door: Door) -> None:
    door.modern.on["tools/call"] = wants({"k": (ELICIT, FORM)})
    session = await session_of(door)
    async with session.open("tools/call", TOOL) as opened:
        await answered(session, opened, *[{"result": ACCEPT}] * 10)
        [final] = await opened.rest()
    assert "10 times" in final["error"]["message"]
    assert len(door.modern.calls("tools/call")) == 11


@pytest.mark.parametrize("method", ["tools/list", "resources/list", "prompts/list"])
async def test_no_other_method_may_ask(door: Door, method: str) -> None:
    door.modern.on[method] = wants({"k": (ROOTS, {})}, "s")
    answer = await (await session_of(door)).request(method, {})
    assert answer.error["message"]
    assert len(door.modern.calls(method)) == 1


async def test_twelve_clients_asked_at_once_each_answer_their_own_call(door: Door) -> None:
    async def tool(call: Call) -> Json:
        name = call.seen.params["arguments"]["who"]
        got = call.seen.params.get("inputResponses")
        if got is None:
            return wants({"k": (ELICIT, FORM | {"message": name})}, name)
        return {
            "content": [],
            "structuredContent": {"who": name, "got": got, "state": call.seen.params["requestState"]},
        }

    async def user(number: int) -> None:
        session = await session_of(door)
        params = {"name": "t", "arguments": {"who": f"user {number}"}}
        async with session.open("tools/call", params) as opened:
            [ask] = await answered(session, opened, {"result": {"content": {"n": number}}})
            [final] = await opened.rest()
        assert ask["params"]["message"] == f"user {number}"
        assert final["result"]["structuredContent"] == {
            "who": f"user {number}",
            "got": {"k": {"content": {"n": number}}},
            "state": f"user {number}",
        }

    door.modern.on["tools/call"] = tool
    await asyncio.gather(*(user(number) for number in range(12)))
