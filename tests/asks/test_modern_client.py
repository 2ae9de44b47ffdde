"""A legacy server asks a modern client: rounds, retries, and what a retry must be to be one.

Specification: 2026-07-28 basic/patterns/mrtr; field reports F1, F7, AB10.
"""

import asyncio
import json
from typing import Any

import pytest

from tests.asks.talk import (
    ACCEPT,
    ELICIT,
    EVERYTHING,
    FOREIGN_STATE,
    FORM,
    MESSAGES,
    ROOTS,
    SAMPLE,
    TOOL,
    URL,
    Modern,
    asking,
    entries,
    heard,
    only,
)
from tests.door import Door
from tests.gateway_process import running
from tests.peers import LegacyUpstream
from tests.scripted import Call, Err, Json

ASKS: dict[str, tuple[str, Json, Json]] = {
    "a form": (ELICIT, FORM, ACCEPT),
    "a form that is declined": (ELICIT, FORM, {"action": "decline"}),
    "a form that is cancelled": (ELICIT, FORM, {"action": "cancel", "_meta": {"v/x": 1}}),
    "an address": (ELICIT, URL, {"action": "accept"}),
    "sampling": (SAMPLE, MESSAGES, {"role": "assistant", "content": {"type": "text", "text": "y"}, "model": "m"}),
    "sampling with tools": (
        SAMPLE,
        MESSAGES | {"tools": [{"name": "x", "inputSchema": {"type": "object"}}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "x", "input": {}}], "model": "m"},
    ),
    "roots": (ROOTS, {}, {"roots": [{"uri": "file:///r", "x-vendor": {}}]}),
    "an answer that is no good one": (ELICIT, FORM, {"x": 1}),
}
METHODS = {
    "tools/call": TOOL,
    "prompts/get": {"name": "p"},
    "resources/read": {"uri": "note://1"},
}
RESULTS: dict[str, Json] = {
    "tools/call": {"content": []},
    "prompts/get": {"messages": []},
    "resources/read": {"contents": []},
}


@pytest.mark.field("F1", "AB10")
@pytest.mark.parametrize("on_get", [False, True], ids=["on its stream", "on the GET stream"])
@pytest.mark.parametrize("name", ASKS)
async def test_an_ask_is_an_entry_and_its_answer_a_response(door: Door, name: str, on_get: bool) -> None:
    method, params, result = ASKS[name]

    async def tool(call: Call) -> Json:
        if on_get:
            return heard(await door.legacy.ask(method, params, session=call.seen.session))
        return heard(await call.ask(method, params))

    door.legacy.on["tools/call"] = tool
    client = Modern(door.front("legacy"))
    asked = await client.call(ident="first")
    [entry] = entries(asked).values()
    assert entry == {"method": method, **({"params": params} if params else {})}
    assert (asked.final["id"], asked.result.keys()) == ("first", {"resultType", "inputRequests", "requestState"})
    done = await client.answer_all(asked, result, ident="second")
    assert (done.final["id"], done.result["structuredContent"]) == ("second", {"heard": [{"result": result}]})
    assert done.result["resultType"] == "complete"
    assert len(door.legacy.calls("tools/call")) == 1


@pytest.mark.field("F1")
@pytest.mark.parametrize("method", METHODS)
async def test_every_method_that_may_ask_does(door: Door, method: str) -> None:
    got: list[Json] = []

    async def asks(call: Call) -> Json:
        got.append(await call.ask(ROOTS, {}))
        return RESULTS[method]

    door.legacy.on[method] = asks
    client = Modern(door.front("legacy"), METHODS[method], method)
    done = await client.answer_all(await client.call(), {"roots": []})
    assert RESULTS[method].items() <= done.result.items()
    assert [answer["result"] for answer in got] == [{"roots": []}]


@pytest.mark.field("F3")
@pytest.mark.parametrize(
    ("method", "params", "result"),
    [
        ("tools/list", {}, {"tools": []}),
        ("resources/list", {}, {"resources": []}),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {}}, {"completion": {}}),
    ],
)
async def test_no_other_method_may_ask(door: Door, method: str, params: Json, result: Json) -> None:
    got: list[Json] = []

    async def asks(call: Call) -> Json:
        got.append(await call.ask(ROOTS, {}))
        return result

    door.legacy.on[method] = asks
    answer = await door.front("legacy").modern(method, params, capabilities=EVERYTHING)
    assert result.items() <= answer.result.items()
    assert [reply["error"]["code"] for reply in got] == [-32601]


async def test_asks_that_come_together_share_a_round(door: Door) -> None:
    async def tool(call: Call) -> Json:
        await call.stream()
        return heard(
            *await asyncio.gather(
                call.ask(ELICIT, FORM, ident=7), call.ask(ROOTS, {}, ident="7"), call.ask(SAMPLE, MESSAGES, ident=8)
            )
        )

    door.legacy.on["tools/call"] = tool
    client = Modern(door.front("legacy"))
    asked = await client.call()
    assert [entry["method"] for entry in entries(asked).values()] == [ELICIT, ROOTS, SAMPLE]
    done = await client.answer_all(asked, {"n": 1}, {"n": 2}, {"n": 3})
    assert done.result["structuredContent"]["heard"] == [{"result": {"n": n}} for n in (1, 2, 3)]


async def test_asks_one_after_the_other_are_rounds_with_keys_of_their_own(door: Door) -> None:
    async def tool(call: Call) -> Json:
        return heard(*[await call.ask(ELICIT, FORM | {"message": str(n)}) for n in range(4)])

    door.legacy.on["tools/call"] = tool
    client = Modern(door.front("legacy"))
    answer, keys, states = await client.call(), set(), set()
    for n in range(4):
        [(key, entry)] = entries(answer).items()
        keys.add(key)
        states.add(answer.result["requestState"])
        assert entry["params"]["message"] == str(n)
        answer = await client.retry(answer, {key: {"action": "accept", "content": {"n": n}}}, ident=f"r{n}")
        assert answer.final["id"] == f"r{n}"
    told = answer.result["structuredContent"]["heard"]
    assert [one["result"]["content"]["n"] for one in told] == [0, 1, 2, 3]
    assert (len(keys), len(states)) == (4, 4)


async def test_what_is_not_answered_is_asked_again_and_what_is_is_delivered(door: Door) -> None:
    delivered = asyncio.Event()

    async def tool(call: Call) -> Json:
        async def first() -> Json:
            answer = await call.ask(ELICIT, FORM, ident="one")
            delivered.set()
            return answer

        await call.stream()
        return heard(*await asyncio.gather(first(), call.ask(ROOTS, {}, ident="two")))

    door.legacy.on["tools/call"] = tool
    client = Modern(door.front("legacy"))
    asked = await client.call()
    form, roots = entries(asked)
    again = await client.retry(asked, {form: ACCEPT, "no such key": {"x": 1}})
    await asyncio.wait_for(delivered.wait(), 10)
    assert entries(again) == {roots: {"method": ROOTS}}
    nothing = await client.retry(again, {})
    assert entries(nothing) == {roots: {"method": ROOTS}}
    late = await client.retry(nothing, {form: {"action": "decline"}, roots: {"roots": []}})
    assert late.result["structuredContent"]["heard"] == [{"result": ACCEPT}, {"result": {"roots": []}}]


async def test_a_retry_without_any_answers_is_asked_the_same_again(door: Door) -> None:
    door.legacy.on["tools/call"] = asking()
    client = Modern(door.front("legacy"))
    asked = await client.call()
    bare = {**TOOL, "requestState": asked.result["requestState"]}
    again = await door.front("legacy").modern("tools/call", bare, capabilities=EVERYTHING)
    assert entries(again) == entries(asked)
    done = await client.answer_all(again, ACCEPT)
    assert done.result["structuredContent"]["heard"] == [{"result": ACCEPT}]


# what is no retry

WRONG: dict[str, Any] = {
    "an altered state": lambda retry: {**retry, "requestState": retry["requestState"][:-2] + "AA"},
    "no state of ours": lambda retry: {**retry, "requestState": "größe"},
    "an empty state": lambda retry: {**retry, "requestState": ""},
    "a state that is no string": lambda retry: {**retry, "requestState": 5},
    "another tool": lambda retry: {**retry, "name": "T"},
    "other arguments": lambda retry: {**retry, "arguments": {"a": 2}},
    "no arguments": lambda retry: {k: v for k, v in retry.items() if k != "arguments"},
    "answers that are no object": lambda retry: {**retry, "inputResponses": [1]},
    "answers that are null": lambda retry: {**retry, "inputResponses": None},
    "an answer that is no object": lambda retry: {**retry, "inputResponses": {"k": "accept"}},
}


@pytest.mark.field("F7")
@pytest.mark.parametrize("name", WRONG)
async def test_what_is_no_retry_is_refused_and_spoils_nothing(door: Door, name: str) -> None:
    door.legacy.on["tools/call"] = asking()
    client = Modern(door.front("legacy"))
    asked = await client.call()
    before = len(door.legacy.requests)
    wrong = WRONG[name](client.again(asked, {only(asked): ACCEPT}))
    refused = await door.front("legacy").modern("tools/call", wrong, capabilities=EVERYTHING)
    assert (refused.status, refused.code) == (400, FOREIGN_STATE)
    assert len(door.legacy.requests) == before, "nothing reaches the upstream"
    done = await client.answer_all(asked, ACCEPT)
    assert done.result["structuredContent"]["heard"] == [{"result": ACCEPT}]


@pytest.mark.field("F7")
async def test_a_state_is_good_once(door: Door) -> None:
    door.legacy.on["tools/call"] = asking()
    client = Modern(door.front("legacy"))
    asked = await client.call()
    assert "result" in (await client.answer_all(asked, ACCEPT)).final
    refused = await client.answer_all(asked, {"action": "decline"})
    assert (refused.status, refused.code) == (400, FOREIGN_STATE)
    assert len(door.legacy.replies) == 1


@pytest.mark.field("F7")
async def test_of_retries_at_once_one_goes_on(door: Door) -> None:
    door.legacy.on["tools/call"] = asking()
    client = Modern(door.front("legacy"))
    asked = await client.call()
    answers = await asyncio.gather(*(client.answer_all(asked, {"action": "accept", "n": n}) for n in range(8)))
    assert sorted(answer.status for answer in answers) == [200] + [400] * 7
    assert len(door.legacy.replies) == 1
    [done] = [n for n, answer in enumerate(answers) if answer.status == 200]
    assert answers[done].result["structuredContent"]["heard"][0]["result"]["n"] == done


@pytest.mark.field("F7")
async def test_a_state_of_an_earlier_round_is_good_no_more(door: Door) -> None:
    async def tool(call: Call) -> Json:
        return heard(await call.ask(ELICIT, FORM), await call.ask(ROOTS, {}))

    door.legacy.on["tools/call"] = tool
    client = Modern(door.front("legacy"))
    first = await client.call()
    second = await client.answer_all(first, ACCEPT)
    refused = await client.answer_all(first, ACCEPT)
    assert (refused.status, refused.code) == (400, FOREIGN_STATE)
    done = await client.answer_all(second, {"roots": []})
    assert done.result["structuredContent"]["heard"] == [{"result": ACCEPT}, {"result": {"roots": []}}]


@pytest.mark.field("F7")
async def test_a_state_is_good_for_its_principal_route_and_time_alone() -> None:
    forward = {"forward_headers": ["X-User"]}
    async with (
        LegacyUpstream() as one,
        LegacyUpstream() as two,
        running({"one": (one, forward), "two": (two, forward)}, streams={"ask_ttl_s": 1}) as gateway,
    ):
        one.on["tools/call"] = two.on["tools/call"] = asking()
        ann = Modern(gateway.front("/one"), headers={"X-User": "ann"})
        bob = Modern(gateway.front("/one"), headers={"X-User": "bob"})
        elsewhere = Modern(gateway.front("/two"), headers={"X-User": "ann"})
        asked = await ann.call()
        for other in (bob, elsewhere):
            refused = await other.answer_all(asked, ACCEPT)
            assert (refused.status, refused.code) == (400, FOREIGN_STATE)
        assert "result" in (await ann.answer_all(asked, ACCEPT)).final
        assert two.calls("tools/call") == []

        forgotten = await ann.call()
        await one.seen("notifications/cancelled")
        refused = await ann.answer_all(forgotten, ACCEPT)
        assert (refused.status, refused.code) == (400, FOREIGN_STATE)
        assert len(one.replies) == 1


async def test_answers_that_belong_to_no_call_are_a_call_without_them(door: Door) -> None:
    front = door.front("legacy")
    answer = await front.modern("tools/call", {**TOOL, "inputResponses": {"k": ACCEPT}}, capabilities=EVERYTHING)
    assert json.loads(answer.said) == TOOL
    [seen] = door.legacy.calls("tools/call")
    assert "inputResponses" not in seen.params


# what happens while a call waits

PROGRESS = "notifications/progress"


async def test_what_the_upstream_says_meanwhile_comes_with_the_retry_under_its_token_and_level(door: Door) -> None:
    async def tool(call: Call) -> Json:
        token = call.seen.meta["progressToken"]
        await call.notify(PROGRESS, {"progressToken": token, "progress": 1})
        waiting = asyncio.ensure_future(call.ask(ELICIT, FORM))
        asked.set()
        await parked.wait()
        await call.notify(PROGRESS, {"progressToken": token, "progress": 2})
        await call.notify("notifications/message", {"level": "error", "data": "e"})
        said.set()
        return heard(await waiting)

    asked, parked, said = asyncio.Event(), asyncio.Event(), asyncio.Event()
    door.legacy.on["tools/call"] = tool
    client = Modern(door.front("legacy"))
    level = {"io.modelcontextprotocol/logLevel": "error"}
    first = await client.call(meta={"progressToken": "p1", **level})
    assert [note["params"] for note in first.notes] == [{"progressToken": "p1", "progress": 1}]
    parked.set()
    await asyncio.wait_for(said.wait(), 10)
    done = await client.retry(first, {only(first): ACCEPT}, meta={"progressToken": 2, **level})
    assert [note["params"] for note in done.notes] == [
        {"progressToken": 2, "progress": 2},
        {"level": "error", "data": "e"},
    ]
    assert done.result["structuredContent"]["heard"] == [{"result": ACCEPT}]


ENDS: dict[str, Any] = {
    "a result": {"content": [], "structuredContent": {"gave": "up"}},
    "an error": Err(-32055, "größe", {"x": 1}),
}


@pytest.mark.parametrize("name", ENDS)
@pytest.mark.parametrize("answers", [True, False], ids=["with answers", "without"])
async def test_an_upstream_that_does_not_wait_has_its_outcome_kept(door: Door, name: str, answers: bool) -> None:
    async def tool(call: Call) -> Json | Err:
        asked = asyncio.ensure_future(call.ask(ELICIT, FORM, ident=f"impatient-{name}-{answers}"))
        await parked.wait()
        asked.cancel()
        outcome: Json | Err = ENDS[name]
        return outcome

    parked = asyncio.Event()
    door.legacy.on["tools/call"] = tool
    client = Modern(door.front("legacy"))
    asked = await client.call()
    key = only(asked)
    parked.set()
    done = await client.retry(asked, {key: ACCEPT} if answers else {})
    while done.final.get("result", {}).get("resultType") == "input_required":
        done = await client.retry(done, {})
    if isinstance(ENDS[name], Err):
        assert (done.code, done.error["message"], done.error["data"]) == (-32055, "größe", {"x": 1})
    else:
        assert done.result["structuredContent"] == {"gave": "up"}


@pytest.mark.parametrize("on_get", [False, True], ids=["on its stream", "on the GET stream"])
async def test_an_ask_that_is_taken_back_is_not_asked_again(door: Door, on_get: bool) -> None:
    async def tool(call: Call) -> Json:
        cancel = {"requestId": ident, "reason": "no longer"}
        if on_get:
            session = call.seen.session
            await door.legacy.push({"jsonrpc": "2.0", "id": ident, "method": ELICIT, "params": FORM}, session)
            await parked.wait()
            await door.legacy.push({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel}, session)
        else:
            await call.event({"jsonrpc": "2.0", "id": ident, "method": ELICIT, "params": FORM})
            await parked.wait()
            await call.notify("notifications/cancelled", cancel)
        return heard(await call.ask(ROOTS, {}))

    ident = f"taken back {on_get}"
    parked = asyncio.Event()
    door.legacy.on["tools/call"] = tool
    client = Modern(door.front("legacy"))
    asked = await client.call()
    first = only(asked)
    parked.set()
    while set(entries(asked)) & {first}:
        asked = await client.retry(asked, {})
    assert [entry["method"] for entry in entries(asked).values()] == [ROOTS]
    done = await client.retry(asked, {first: ACCEPT, only(asked): {"roots": []}})
    assert done.result["structuredContent"]["heard"] == [{"result": {"roots": []}}]
    assert [reply.message["result"] for reply in door.legacy.replies] == [{"roots": []}]


async def test_twenty_calls_that_ask_at_once_each_get_their_own_answers(door: Door) -> None:
    async def tool(call: Call) -> Json:
        name = call.seen.params["arguments"]["who"]
        asks = FORM | {"message": name}
        one = await door.legacy.ask(ELICIT, asks, session=call.seen.session)
        two = await call.ask(ELICIT, asks)
        return {"content": [], "structuredContent": {"name": name, "one": one["result"], "two": two["result"]}}

    async def user(number: int) -> None:
        client = Modern(door.front("legacy"), {"name": "t", "arguments": {"who": f"user {number}"}})
        answer, rounds = await client.call(), 0
        while answer.result["resultType"] == "input_required":
            [(key, entry)] = entries(answer).items()
            assert entry["params"]["message"] == f"user {number}"
            rounds += 1
            answer = await client.retry(answer, {key: {"action": "accept", "content": {"n": f"{number}.{rounds}"}}})
        told = answer.result["structuredContent"]
        assert (told["name"], rounds) == (f"user {number}", 2)
        assert [told[one]["content"]["n"] for one in ("one", "two")] == [f"{number}.1", f"{number}.2"]

    door.legacy.on["tools/call"] = tool
    await asyncio.gather(*(user(number) for number in range(20)))
    sessions = {seen.session for seen in door.legacy.calls("tools/call")}
    assert len(sessions) == 20, "an ask on a GET stream names no call: each had a session to itself"


# -32042

REFUSAL = Err(-32042, "first go there", {"elicitations": [URL | {"elicitationId": "e1"}]})


async def test_an_address_that_must_be_visited_first_is_an_ask(door: Door) -> None:
    visited = asyncio.Event()

    async def tool(call: Call) -> Json | Err:
        return {"content": [], "structuredContent": {"ran": True}} if visited.is_set() else REFUSAL

    door.legacy.on["tools/call"] = tool
    client = Modern(door.front("legacy"))
    asked = await client.call()
    assert list(entries(asked).values()) == [{"method": ELICIT, "params": URL}]
    visited.set()
    done = await client.answer_all(asked, {"action": "accept"})
    assert done.result["structuredContent"] == {"ran": True}
    first, second = door.legacy.calls("tools/call")
    assert first.id != second.id


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_user_who_does_not_go_there_gets_an_error_that_modern_clients_know(door: Door, action: str) -> None:
    door.legacy.on["tools/call"] = REFUSAL
    client = Modern(door.front("legacy"))
    refused = await client.answer_all(await client.call(), {"action": action})
    assert refused.code != -32042
    assert len(door.legacy.calls("tools/call")) == 1


@pytest.mark.parametrize("declared", [{}, {"elicitation": {"form": {}}}])
async def test_a_client_that_opens_no_addresses_is_told_what_it_lacks(door: Door, declared: Json) -> None:
    door.legacy.on["tools/call"] = REFUSAL
    answer = await door.front("legacy").modern("tools/call", TOOL, capabilities=declared)
    assert (answer.status, answer.code) == (400, -32021)
    assert answer.error["data"] == {"requiredCapabilities": {"elicitation": {"url": {}}}}


# slow humans, asks that need it

WAITS = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}, "_meta": {"progressToken": "w"}}


async def test_an_ask_keeps_what_its_vendor_says_and_loses_what_only_a_session_can_use(door: Door) -> None:
    params = FORM | {"_meta": {"progressToken": "w", "v/x": [None]}, "task": {"ttl": 1}, "x-vendor": 1.5}
    door.legacy.on["tools/call"] = asking(ELICIT, params)
    client = Modern(door.front("legacy"))
    asked = await client.call()
    [entry] = entries(asked).values()
    assert entry["params"] == FORM | {"_meta": {"v/x": [None]}, "x-vendor": 1.5}
    assert "result" in (await client.answer_all(asked, ACCEPT)).final
