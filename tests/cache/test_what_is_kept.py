"""What is answered from the cache and what never is, what a client is told of it, and what comes out of it."""

import asyncio
import json
from typing import Any

import pytest

from tests.cache.conftest import House
from tests.http_wire import DEADLINE_S
from tests.peers import TOOL, text
from tests.raw_front import Answer, Front
from tests.scrape import scrape, value
from tests.scripted import Call, Err, Json

HOUR = {"ttlMs": 3_600_000, "cacheScope": "private"}
LISTS: dict[str, Json] = {
    "tools/list": {"tools": [TOOL]},
    "prompts/list": {"prompts": [{"name": "hello"}]},
    "resources/list": {"resources": [{"uri": "note://one", "name": "one"}]},
    "resources/templates/list": {"resourceTemplates": [{"uriTemplate": "note://{id}", "name": "note"}]},
}
NOTE = {"uri": "note://one"}
READ: Json = {"contents": [{"uri": "note://one", "text": "the note"}]}
CACHEABLE: dict[str, tuple[Json, Json]] = {**{method: ({}, result) for method, result in LISTS.items()}}
CACHEABLE["resources/read"] = (NOTE, READ)


def how(answer: Answer) -> Any:
    """How the cache took a request, in the answer's own words."""
    return answer.headers.get("Server-Timing")


def without_hints(result: Json) -> Json:
    return {k: v for k, v in result.items() if k not in ("ttlMs", "cacheScope", "resultType", "_meta")}


@pytest.mark.field("AB2")
@pytest.mark.parametrize("method", CACHEABLE)
async def test_a_second_client_is_answered_without_the_server_and_told_what_is_left(house: House, method: str) -> None:
    params, result = CACHEABLE[method]
    house.modern.on[method] = result | HOUR
    front = house.front("modern")
    first = await front.modern(method, params, ident=1)
    began = asyncio.get_running_loop().time()
    second = await front.modern(method, params, ident="other")
    passed_ms = (asyncio.get_running_loop().time() - began) * 1000
    session = await front.initialize()
    third = await session.request(method, params, ident=3)
    assert [how(answer) for answer in (first, second, third)] == [
        *("cache;desc=miss", "cache;desc=hit", "cache;desc=hit")
    ]
    assert [answer.final["id"] for answer in (first, second, third)] == [1, "other", 3]
    assert [without_hints(answer.result) for answer in (first, second, third)] == [result] * 3
    assert 0 < second.result["ttlMs"] <= first.result["ttlMs"] <= 3_600_000
    assert second.result["ttlMs"] >= first.result["ttlMs"] - passed_ms - 60_000
    assert second.result["cacheScope"] == "private"
    assert not {"ttlMs", "cacheScope", "resultType"} & set(third.result)
    assert len(house.modern.calls(method)) == 1


async def test_the_time_that_is_told_runs_out(house: House) -> None:
    house.modern.on["tools/list"] = LISTS["tools/list"] | HOUR
    front, told = house.front("modern"), []
    async with asyncio.timeout(DEADLINE_S):
        while len(set(told)) < 3:
            told.append((await front.modern("tools/list")).result["ttlMs"])
    assert told == sorted(told, reverse=True)
    assert len(house.modern.calls("tools/list")) == 1


async def test_a_request_that_fills_the_cache_says_nothing_of_its_client(house: House) -> None:
    house.modern.on["tools/list"] = LISTS["tools/list"] | HOUR
    capabilities = {"elicitation": {"form": {}}, "roots": {}}
    await house.front("modern").modern(
        "tools/list", capabilities=capabilities, meta={"traceparent": "00-" + "1" * 32 + "-" + "2" * 16 + "-01"}
    )
    [seen] = house.modern.calls("tools/list")
    assert seen.meta["io.modelcontextprotocol/clientInfo"]["name"] == "mcp-front-door"
    assert seen.meta["io.modelcontextprotocol/clientCapabilities"] == capabilities
    assert "traceparent" not in seen.meta
    assert seen.headers.get("X-Forwarded-For") is None


@pytest.mark.parametrize(
    "hints",
    [
        *({"ttlMs": 0}, {"ttlMs": -5}, {"ttlMs": "60000"}, {"ttlMs": True}, {"ttlMs": [1]}, {"ttlMs": 0.5}),
        {"cacheScope": "public"},
    ],
    ids=json.dumps,
)
async def test_what_names_no_time_is_asked_for_each_time_and_passes_as_it_is(house: House, hints: Json) -> None:
    async def answer(call: Call) -> None:
        result = {"resultType": "complete", **LISTS["tools/list"], **hints}
        await call.json({"jsonrpc": "2.0", "id": call.seen.id, "result": result})

    house.modern.on["tools/list"] = answer
    for count in (1, 2, 3):
        found = await house.front("modern").modern("tools/list")
        assert found.result == {"resultType": "complete", **LISTS["tools/list"], **hints}
        assert how(found) == ("cache;desc=miss" if count == 1 else "cache;desc=bypass")
        assert len(house.modern.calls("tools/list")) == count


@pytest.mark.parametrize("ttl", [60_000.7, 10**30, 1e300])
async def test_odd_times_are_taken_for_what_they_are(house: House, ttl: float) -> None:
    house.modern.on["tools/list"] = LISTS["tools/list"] | {"ttlMs": ttl}
    for _ in range(2):
        told = (await house.front("modern").modern("tools/list")).result["ttlMs"]
        assert isinstance(told, int)
        assert told <= min(ttl, 3_600_000)
    assert len(house.modern.calls("tools/list")) == 1


@pytest.mark.field("Z8")
async def test_questions_and_what_was_answered_to_them_are_never_kept(house: House) -> None:
    async def answer(call: Call) -> Json:
        if "inputResponses" in call.seen.params:
            return READ | HOUR | {"contents": [{**NOTE, "text": "of a retry"}]}
        if house.modern.calls("resources/read")[0] is call.seen or asks[0]:
            ask = {"method": "elicitation/create", "params": {"message": "m", "requestedSchema": {"type": "object"}}}
            return {"resultType": "input_required", "inputRequests": {"k": ask}, "requestState": "s", **HOUR}
        return READ | HOUR

    asks = [True]
    house.modern.on["resources/read"] = answer
    front, able = house.front("modern"), {"elicitation": {"form": {}}}
    for _ in range(2):
        asked = await front.modern("resources/read", NOTE, capabilities=able)
        assert asked.result["inputRequests"]
    retry = {**NOTE, "inputResponses": {"k": {"action": "accept", "content": {}}}, "requestState": "s"}
    for _ in range(2):
        retried = await front.modern("resources/read", retry, capabilities=able)
        assert (how(retried), retried.result["contents"][0]["text"]) == ("cache;desc=bypass", "of a retry")
    asks[0] = False
    before = len(house.modern.calls("resources/read"))
    plain = await front.modern("resources/read", NOTE, capabilities=able)
    assert plain.result["contents"] == READ["contents"]
    assert len(house.modern.calls("resources/read")) == before + 1


@pytest.mark.parametrize(
    "answer",
    [
        Err(-32602, "no such cursor", {"cursor": "x"}),
        Err(-32603, "boom"),
        {"resultType": "vendor_x", **HOUR},
        {"resultType": "task", "task": {"taskId": "t"}, **HOUR},
    ],
)
async def test_errors_and_results_of_unknown_kinds_are_never_kept(house: House, answer: Json | Err) -> None:
    house.modern.on["tools/list"] = answer
    found = [await house.front("modern").modern("tools/list") for _ in range(2)]
    assert len(house.modern.calls("tools/list")) == 2
    for one in found:
        if isinstance(answer, Err):
            assert (one.code, one.error.get("data")) == (answer.code, answer.data)
        else:
            assert one.result["resultType"] == answer["resultType"]
    house.modern.on["tools/list"] = LISTS["tools/list"] | HOUR
    assert (await house.front("modern").modern("tools/list")).result["tools"] == [TOOL]


BYPASS: dict[str, Json] = {
    "of members that nobody knows": {"com.example/tenant": "a"},
    "of progress that is wanted": {"progressToken": "p"},
}


@pytest.mark.parametrize("why", BYPASS)
async def test_a_request_goes_to_the_server_because(house: House, why: str) -> None:
    house.modern.on["tools/list"] = LISTS["tools/list"] | HOUR
    for _ in range(2):
        found = await house.front("modern").modern("tools/list", meta=BYPASS[why])
        assert how(found) == "cache;desc=bypass"
    assert len(house.modern.calls("tools/list")) == 2


async def test_who_wants_progress_is_answered_by_what_is_there(house: House) -> None:
    house.modern.on["tools/list"] = LISTS["tools/list"] | HOUR
    await house.front("modern").modern("tools/list")
    found = await house.front("modern").modern("tools/list", meta={"progressToken": "p"})
    assert how(found) == "cache;desc=hit"


async def test_what_a_server_that_keeps_nothing_says_meanwhile_is_not_lost(house: House) -> None:
    async def answer(call: Call) -> Json:
        await call.notify("notifications/message", {"level": "info", "data": "reading"})
        return READ

    house.modern.on["resources/read"] = answer
    told = await house.front("trusting").modern(
        "resources/read", NOTE, meta={"io.modelcontextprotocol/logLevel": "info"}
    )
    assert [note["params"]["data"] for note in told.notes] == ["reading"]
    assert told.result["contents"] == READ["contents"]


async def test_calls_are_never_answered_by_the_cache(house: House) -> None:
    house.modern.on["tools/call"] = text("done") | HOUR
    for count in (1, 2):
        found = await house.front("modern").modern("tools/call", {"name": "echo", "arguments": {}})
        assert how(found) is None
        assert len(house.modern.calls("tools/call")) == count


@pytest.mark.parametrize("route", ["off", "plain"])
async def test_nothing_is_kept_where_nothing_is_to_be(house: House, route: str) -> None:
    house.modern.on["tools/list"] = LISTS["tools/list"] | HOUR
    upstream = house.legacy if route == "plain" else house.modern
    for count in (1, 2):
        await house.front(route).modern("tools/list")
        assert len(upstream.calls("tools/list")) == count


async def test_what_is_too_large_is_passed_on_and_not_kept(house: House) -> None:
    large = {"contents": [{**NOTE, "blob": "A" * 70_000}]}
    house.modern.on["resources/read"] = large | HOUR
    for count in (1, 2):
        found = await house.front("modern").modern("resources/read", NOTE)
        assert found.result["contents"] == large["contents"]
        assert len(house.modern.calls("resources/read")) == count


SAME: dict[str, Json] = {
    "an empty list": {"resources": []},
    "all bytes": {"contents": [{**NOTE, "mimeType": "x/y", "blob": "".join(chr(n) for n in range(32, 127))}]},
    "NUL and half of a pair": {"contents": [{**NOTE, "text": "a\0b\ud800c"}]},
    "annotations": {"resources": [{**NOTE, "name": "n", "annotations": {"priority": 0.1, "audience": ["user"]}}]},
    "falsy members": {"contents": [], "x": 0, "y": False, "z": None, "w": ""},
    "long numbers": {"contents": [], "n": 12345678901234567890123, "d": 0.1},
    "members that nobody knows": {"resources": [{**NOTE, "name": "n", "icons": [{"src": "a:b"}], "x": {"y": [1]}}]},
}


@pytest.mark.field("AB11")
@pytest.mark.parametrize("why", SAME)
async def test_what_comes_from_the_cache_is_what_went_in(house: House, why: str) -> None:
    house.modern.on["resources/read"] = SAME[why] | HOUR
    cold = await house.front("modern").modern("resources/read", NOTE)
    warm = await house.front("modern").modern("resources/read", NOTE)
    past = await house.front("off").modern("resources/read", NOTE)
    assert (how(cold), how(warm)) == ("cache;desc=miss", "cache;desc=hit")
    assert without_hints(cold.result) == without_hints(warm.result) == without_hints(past.result) == SAME[why]
    assert cold.result["_meta"] == warm.result["_meta"] == past.result["_meta"]


@pytest.mark.field("AB11")
async def test_the_eras_are_given_the_same_entry_each_in_its_own_words(house: House) -> None:
    tool = {"name": "t", "inputSchema": {"type": "object"}, "outputSchema": {"type": "array"}}
    house.modern.on["tools/list"] = {"tools": [tool]} | HOUR
    front = house.front("modern")
    listed = (await front.modern("tools/list")).result["tools"]
    older = await (await front.initialize("2025-03-26")).request("tools/list")
    again = (await front.modern("tools/list")).result["tools"]
    assert listed == again == [tool]
    assert older.result == {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}
    assert len(house.modern.calls("tools/list")) == 1


PAGES: dict[Any, Json] = {
    None: {"tools": [TOOL], "nextCursor": "2", "ttlMs": 60_000},
    "2": {"tools": [TOOL | {"name": "two"}], "nextCursor": "", "ttlMs": 5000},
    "": {"tools": [TOOL | {"name": "three"}], "ttlMs": 3_600_000},
}


async def pages(call: Call) -> Json | Err:
    cursor = call.seen.params.get("cursor")
    return PAGES.get(cursor) or Err(-32602, "no such cursor", {"cursor": cursor})


@pytest.mark.field("I1", "I3")
async def test_each_page_has_an_entry_of_its_own_and_a_cursor_that_is_none_has_none(house: House) -> None:
    house.modern.on["tools/list"] = pages
    front = house.front("modern")
    for _ in range(2):
        for cursor, page in PAGES.items():
            found = (await front.modern("tools/list", {} if cursor is None else {"cursor": cursor})).result
            assert (found["tools"], found.get("nextCursor")) == (page["tools"], page.get("nextCursor"))
            assert found["ttlMs"] <= page["ttlMs"]
    assert len(house.modern.calls("tools/list")) == len(PAGES)
    for _ in range(2):
        bogus = await front.modern("tools/list", {"cursor": "bogus"})
        assert (bogus.code, bogus.error["data"]) == (-32602, {"cursor": "bogus"})


async def dead_end(call: Call) -> Json | Err:
    """The pages of a list whose second one the server no longer knows."""
    return Err(-32602, "gone") if call.seen.params.get("cursor") == "2" else await pages(call)


@pytest.mark.parametrize(
    ("cursor", "params", "ends"),
    [
        ("2", {}, True),
        ("bogus", {}, False),
        ("2", {"capabilities": {"roots": {}}}, False),  # of these the list was never asked for
    ],
)
async def test_a_cursor_that_a_page_has_named_ends_all_pages_when_it_leads_nowhere_any_more_and_no_other_does(
    house: House, cursor: str, params: Json, ends: bool
) -> None:
    house.modern.on["tools/list"] = dead_end
    front = house.front("modern")
    await front.modern("tools/list")
    assert (await front.modern("tools/list", {"cursor": cursor}, **params)).code == -32602
    assert how(await front.modern("tools/list")) == f"cache;desc={'miss' if ends else 'hit'}"


async def test_a_list_of_a_server_with_sessions_is_kept_for_the_operators_time(house: House) -> None:
    front = house.front("legacy")
    for method, result in LISTS.items():
        found = [await front.modern(method) for _ in range(2)]
        assert [how(one) for one in found] == ["cache;desc=miss", "cache;desc=hit"]
        assert [without_hints(one.result) for one in found] == [result] * 2
        assert all(0 < one.result["ttlMs"] <= 600_000 for one in found)
        assert {one.result["cacheScope"] for one in found} == {"private"}
        assert len(house.legacy.calls(method)) == 1


async def test_an_operators_time_counts_where_a_server_names_none(house: House) -> None:
    async def answer(call: Call) -> None:
        await call.json({"jsonrpc": "2.0", "id": call.seen.id, "result": LISTS["tools/list"]})

    house.modern.on["tools/list"] = answer
    found = [await house.front("own").modern("tools/list") for _ in range(2)]
    assert [how(one) for one in found] == ["cache;desc=miss", "cache;desc=hit"]
    assert all(0 < one.result["ttlMs"] <= 600_000 for one in found)


async def test_a_list_in_a_clients_own_session_is_its_own(house: House) -> None:
    sessions = [await house.front("legacy").initialize() for _ in range(2)]
    for count, session in enumerate([*sessions, *sessions], 1):
        found = await session.request("tools/list")
        assert (how(found), found.result) == ("cache;desc=private", LISTS["tools/list"])
        assert len(house.legacy.calls("tools/list")) == count


async def expired(front: Front) -> Answer:
    """The first answer after the millisecond for which the one before it is good, which can be long."""
    async with asyncio.timeout(DEADLINE_S):
        while how(found := await front.modern("tools/list")) == "cache;desc=hit":
            pass
    return found


@pytest.mark.parametrize(("route", "status"), [("modern", "stale"), ("strict", "miss")])
@pytest.mark.parametrize("failure", ["error", "hangs up", "503"])
async def test_what_is_stale_is_given_while_the_server_fails_where_it_may_be(
    house: House, route: str, status: str, failure: str
) -> None:
    async def fails(call: Call) -> None:
        match failure:
            case "error":
                await call.json({"jsonrpc": "2.0", "id": call.seen.id, "error": {"code": -32603, "message": "m"}}, 500)
            case "503":
                await call.reply(503)
            case _:
                call.close()

    front = house.front(route)
    house.modern.on["tools/list"] = LISTS["tools/list"] | {"ttlMs": 1}
    assert how(await front.modern("tools/list")) == "cache;desc=miss"
    house.modern.on["tools/list"] = fails
    found = await expired(front)
    for _ in range(2):
        assert how(found) == f"cache;desc={status}"
        if status == "stale":
            assert (found.result["tools"], found.result["ttlMs"]) == ([TOOL], 0)
        else:
            assert found.status >= 500 or found.code == -32603
        found = await front.modern("tools/list")


async def test_an_answer_that_is_an_error_is_given_and_not_what_was_before(house: House) -> None:
    front = house.front("modern")
    house.modern.on["tools/list"] = LISTS["tools/list"] | {"ttlMs": 1}
    await front.modern("tools/list")
    house.modern.on["tools/list"] = Err(-32602, "no more")
    assert (await expired(front)).code == -32602


async def test_what_is_stale_is_given_while_another_is_fetched_where_it_may_be(house: House) -> None:
    front = house.front("eager")
    house.modern.on["tools/list"] = LISTS["tools/list"] | {"ttlMs": 1}
    await front.modern("tools/list")
    house.modern.on["tools/list"] = {"tools": [], **HOUR}
    found = await expired(front)
    assert (how(found), found.result["tools"], found.result["ttlMs"]) == ("cache;desc=stale", [TOOL], 0)
    await house.modern.seen("tools/list", 2)
    async with asyncio.timeout(DEADLINE_S):
        while (found := await front.modern("tools/list")).result["tools"]:
            assert how(found) == "cache;desc=stale"
    assert how(found) == "cache;desc=hit"
    assert len(house.modern.calls("tools/list")) == 2


NEWS: dict[str, tuple[str, Any, str]] = {
    "a new list": ("eager", {"tools": [], **HOUR}, "cache;desc=hit"),
    "one that is not to be kept": ("eager", {"tools": [], "ttlMs": 0}, "cache;desc=bypass"),
    "an error": ("eager", Err(-32602, "no more"), "cache;desc=miss"),
    "a failure, where its own answers are not to stand in": ("hasty", Err(-32603, "m", status=500), "cache;desc=miss"),
}


@pytest.mark.parametrize("news", NEWS)
async def test_what_the_server_says_to_a_refresh_ends_what_is_stale(house: House, news: str) -> None:
    route, said, outcome = NEWS[news]
    front = house.front(route)
    house.modern.on["tools/list"] = LISTS["tools/list"] | {"ttlMs": 1}
    await front.modern("tools/list")
    house.modern.on["tools/list"] = said
    found = await expired(front)
    assert (how(found), found.result["tools"]) == ("cache;desc=stale", [TOOL])
    async with asyncio.timeout(DEADLINE_S):
        while how(found := await front.modern("tools/list")) == "cache;desc=stale":
            pass
    for _ in range(3):
        assert how(found) == outcome
        assert found.final.get("result", {}).get("tools") != [TOOL]
        found = await front.modern("tools/list")


async def test_a_refresh_that_failed_is_not_tried_again_for_each_request(house: House) -> None:
    front = house.front("eager")
    house.modern.on["tools/list"] = LISTS["tools/list"] | {"ttlMs": 1}
    await front.modern("tools/list")
    house.modern.on["tools/list"] = Err(-32603, "m", status=503)
    await expired(front)
    await house.modern.seen("tools/list", 2)
    for _ in range(30):
        assert how(await front.modern("tools/list")) == "cache;desc=stale"
    assert len(house.modern.calls("tools/list")) < 10  # once in five seconds


async def test_a_client_that_leaves_takes_nobodys_answer_with_it(house: House) -> None:
    release = asyncio.Event()

    async def slow(call: Call) -> Json:
        await release.wait()
        return LISTS["tools/list"] | HOUR

    house.modern.on["tools/list"] = slow
    front = house.front("modern")
    first = asyncio.create_task(front.modern("tools/list"))
    await house.modern.seen("tools/list")
    others = [asyncio.create_task(front.modern("tools/list", ident=n)) for n in range(20)]
    first.cancel()
    release.set()
    found = await asyncio.gather(*others)
    assert [one.final["id"] for one in found] == list(range(20))
    assert all(one.result["tools"] == [TOOL] for one in found)
    assert len(house.modern.calls("tools/list")) == 1


async def test_a_failure_is_told_to_all_who_waited_and_asked_for_once(house: House) -> None:
    release = asyncio.Event()

    async def slow(call: Call) -> Err:
        await release.wait()
        return Err(-32603, "boom")

    house.modern.on["tools/list"] = slow
    waiting = [asyncio.create_task(house.front("modern").modern("tools/list", ident=n)) for n in range(5)]
    await house.modern.seen("tools/list")
    await asyncio.sleep(0)
    release.set()
    found = await asyncio.gather(*waiting)
    assert {one.code for one in found} == {-32603}
    assert {one.final["id"] for one in found} == set(range(5))


async def test_how_requests_were_answered_is_counted(house: House) -> None:
    before = await scrape(house.gateway)
    house.modern.on["tools/list"] = LISTS["tools/list"] | HOUR
    for _ in range(3):
        await house.front("modern").modern("tools/list")
    await house.front("modern").modern("tools/list", meta={"x": 1})
    after = await scrape(house.gateway)
    name = "mcp_front_door_cache_requests_total"
    grown = {
        outcome: value(after, name, upstream="modern", outcome=outcome)
        - value(before, name, upstream="modern", outcome=outcome)
        for outcome in ("hit", "miss", "bypass", "stale", "private")
    }
    assert grown == {"hit": 2, "miss": 1, "bypass": 1, "stale": 0, "private": 0}
    assert value(after, "mcp_front_door_cache_entries") == 1
    assert value(after, "mcp_front_door_cache_bytes") > len(json.dumps(TOOL))


async def test_every_part_of_a_key_can_be_read_in_the_log_and_no_secret(house: House) -> None:
    house.modern.on["resources/read"] = {"contents": [{"text": "planted-content"}], **HOUR}
    await house.front("tenants").modern(
        "resources/read", {"uri": "note://planted-uri"}, headers={"X-Tenant": "planted-tenant"}
    )
    said = house.gateway.stderr()
    [line] = [line for line in said.splitlines() if "outcome=miss" in line and "upstream=tenants" in line]
    parts = ("schema", "config", "version", "identity", "method", "params", "headers", "partition")
    assert all(f" {part}=" in line for part in parts)
    assert "planted" not in said


@pytest.mark.field("Z9")
async def test_an_operator_ends_what_is_held_and_has_it_fetched_anew(house: House) -> None:
    house.modern.on["tools/list"] = LISTS["tools/list"] | HOUR
    front = house.front("modern")
    await front.modern("tools/list")
    purged = await house.order("purge?upstream=modern")
    assert (purged.status, json.loads(purged.body)) == (200, {"upstreams": ["modern"]})
    assert how(await front.modern("tools/list")) == "cache;desc=miss"
    other = await house.order("purge?upstream=legacy")
    assert other.status == 200
    assert how(await front.modern("tools/list")) == "cache;desc=hit"
    house.modern.on["tools/list"] = {"tools": [], **HOUR}
    fetched = await house.order("refresh")
    assert (fetched.status, json.loads(fetched.body)["fetched"], json.loads(fetched.body)["failed"]) == (200, 1, 0)
    found = await front.modern("tools/list")
    assert (how(found), found.result["tools"]) == ("cache;desc=hit", [])


@pytest.mark.parametrize(
    ("verb", "what", "headers", "status", "words"),
    [
        ("GET", "purge", {}, 405, "use POST"),
        ("POST", "purge", {"Origin": "https://evil.example"}, 403, "web pages"),
        ("POST", "purge?upstream=nowhere", {}, 404, "known: eager, "),
        ("POST", "purge?upstraem=modern", {}, 400, "upstraem"),
        ("POST", "forget", {}, 404, "/admin/cache/purge"),
    ],
)
async def test_orders_that_are_refused_say_why(
    house: House, verb: str, what: str, headers: dict[str, str], status: int, words: str
) -> None:
    found = await house.order(what, verb, **headers)
    assert found.status == status
    assert words in json.loads(found.body)["error"]
