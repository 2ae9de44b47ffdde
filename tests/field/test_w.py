"""Field reports W: batches where the version has them and nowhere else, notifications answered with nothing."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio

from tests.door import Door
from tests.field.pairs import either_upstream, every_pair
from tests.gateway_process import GatewayProcess, running
from tests.peers import LegacyUpstream, text
from tests.raw_front import (
    CLIENT_INFO,
    Answer,
    Overrides,
    modern_headers,
    modern_request,
    notification,
    request,
)
from tests.scripted import Call, Err, Json, response

NOTE = notification("notifications/roots/list_changed")
INITIALIZE = request(
    "initialize", {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": CLIENT_INFO}, ident="init"
)


@pytest.mark.field("W1")
@either_upstream
async def test_2025_03_26_is_served_batches(door: Door, upstream_era: str) -> None:
    session = await door.front(upstream_era).initialize("2025-03-26")
    batch = [
        request("tools/call", {"name": "echo", "arguments": {"n": 1}}, ident=1),
        NOTE,
        request("tools/list", ident="two"),
        request("vendor/unknown", ident=3),
        request("ping", ident=4),
    ]
    answer = await session.post(batch)
    assert answer.status == 200
    by_id = {message["id"]: message for message in answer.messages}
    assert sorted(map(str, by_id)) == ["1", "3", "4", "two"]
    assert len(answer.finals) == 4, "one answer each"
    assert '"n": 1' in by_id[1]["result"]["content"][0]["text"]
    assert by_id["two"]["result"]["tools"][0]["name"] == "echo"
    assert by_id[3]["error"]["code"] == -32601
    assert by_id[4]["result"] == {}


@pytest.mark.field("W1")
@either_upstream
async def test_a_batch_of_one_is_a_batch(door: Door, upstream_era: str) -> None:
    session = await door.front(upstream_era).initialize("2025-03-26")
    answer = await session.post([request("tools/list", ident="only")])
    assert answer.status == 200
    assert answer.final["id"] == "only"
    assert answer.result["tools"][0]["name"] == "echo"
    if answer.content_type == "application/json":
        assert isinstance(json.loads(answer.body), list)


@pytest.mark.field("W1")
@either_upstream
async def test_the_requests_of_a_batch_run_side_by_side(door: Door, upstream_era: str) -> None:
    meeting = asyncio.Barrier(3)

    async def tool(call: Call) -> Json:
        async with asyncio.timeout(10):
            await meeting.wait()
        return text(call.seen.params["name"])

    door.upstream(upstream_era).on["tools/call"] = tool
    session = await door.front(upstream_era).initialize("2025-03-26")
    answer = await session.post([request("tools/call", {"name": f"t{n}"}, ident=n) for n in range(3)])
    said = {message["id"]: message["result"]["content"][0]["text"] for message in answer.finals}
    assert said == {0: "t0", 1: "t1", 2: "t2"}


@pytest.mark.field("W1")
@either_upstream
async def test_a_batch_without_requests_is_accepted_in_silence(door: Door, upstream_era: str) -> None:
    session = await door.front(upstream_era).initialize("2025-03-26")
    for batch in ([NOTE], [NOTE, NOTE], [NOTE, {"jsonrpc": "2.0", "id": "nobody asked", "result": {}}]):
        answer = await session.post(batch)
        assert (answer.status, answer.body) == (202, b"")


@pytest.mark.field("W1")
@either_upstream
async def test_initialize_has_no_place_in_a_batch(door: Door, upstream_era: str) -> None:
    front = door.front(upstream_era)
    session = await front.initialize("2025-03-26")
    sessions = len(door.upstream(upstream_era).calls("initialize"))
    alone = await front.post([INITIALIZE, request("tools/list", ident=2)])
    assert alone.status == 400
    assert {message["error"]["code"] for message in alone.messages} == {-32600}
    inside = await session.post([INITIALIZE, request("ping", ident=2)])
    refused = [message for message in inside.messages if "error" in message]
    assert {message["error"]["code"] for message in refused} == {-32600}
    assert "Mcp-Session-Id" not in alone.headers
    assert "Mcp-Session-Id" not in inside.headers or inside.headers.get("Mcp-Session-Id") == session.id
    assert len(door.upstream(upstream_era).calls("initialize")) == sessions


@pytest.mark.field("W1")
@either_upstream
async def test_an_element_that_is_no_message_spoils_itself_alone(door: Door, upstream_era: str) -> None:
    session = await door.front(upstream_era).initialize("2025-03-26")
    answer = await session.post([1, request("tools/list", ident="good"), {"jsonrpc": "2.0"}, []])
    good = [message for message in answer.messages if "result" in message]
    assert [message["id"] for message in good] == ["good"]
    assert [message["error"]["code"] for message in answer.messages if "error" in message] == [-32600] * 3


BATCHES: dict[str, list[Any]] = {
    "an empty one": [],
    "one request": [request("tools/list")],
    "two requests": [request("tools/list"), request("tools/call", {"name": "echo"}, ident=2)],
    "notifications": [NOTE, NOTE],
    "an initialize": [INITIALIZE],
    "a modern request": [modern_request("tools/list")],
}


@pytest.mark.field("W1")
@either_upstream
@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2024-11-05"])
@pytest.mark.parametrize("name", BATCHES)
async def test_other_sessions_refuse_batches(door: Door, upstream_era: str, version: str, name: str) -> None:
    session = await door.front(upstream_era).initialize(version)
    before = len(door.upstream(upstream_era).requests)
    refused_batch(await session.post(BATCHES[name]))
    assert door.upstream(upstream_era).methods()[before:] == []


@pytest.mark.field("W1")
@either_upstream
@pytest.mark.parametrize("name", BATCHES)
async def test_modern_requests_come_one_by_one(door: Door, upstream_era: str, name: str) -> None:
    headers = modern_headers(modern_request("tools/list"))
    refused_batch(await door.front(upstream_era).post(BATCHES[name], headers))
    assert "tools/list" not in door.upstream(upstream_era).methods()


@pytest.mark.field("W1")
@either_upstream
@pytest.mark.parametrize("version", ["2025-03-26", "2025-11-25"])
async def test_an_empty_batch_is_an_invalid_request(door: Door, upstream_era: str, version: str) -> None:
    refused_batch(await (await door.front(upstream_era).initialize(version)).post([]))
    refused_batch(await door.front(upstream_era).post([]))


def refused_batch(answer: Answer) -> None:
    assert answer.status == 400, repr(answer)
    assert {message["error"]["code"] for message in answer.messages} == {-32600}
    assert all(message.get("id", 1) is not None for message in answer.messages), "an id of null kills older clients"


@pytest.mark.field("W1")
@every_pair
async def test_an_upstream_that_answers_with_an_array_is_heard_or_named(
    door: Door, front_era: str, upstream_era: str
) -> None:
    async def arrays(call: Call) -> None:
        note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}
        whole = {"content": [{"type": "text", "text": "in an array"}], "resultType": "complete"}
        await call.json([note, response(call.seen.id, whole)])

    door.upstream(upstream_era).on["tools/call"] = arrays
    if front_era == "modern":
        answer = await door.front(upstream_era).modern("tools/call", {"name": "t"}, ident="w")
    else:
        session = await door.front(upstream_era).initialize()
        answer = await session.request("tools/call", {"name": "t"}, ident="w")
    assert answer.final["id"] == "w"
    if "result" in answer.final:
        assert answer.said == "in an array"
    else:
        assert answer.status == (502 if front_era == "modern" else 200)
        assert answer.error["message"]


# The envelope: what is no request reaches nobody.

NO_JSON = {
    "nothing": b"",
    "white space": b" \r\n",
    "half an object": b'{"jsonrpc": "2.0", "id": 1',
    "two objects": b'{"jsonrpc": "2.0", "id": 1, "method": "ping"} {"jsonrpc": "2.0", "id": 2, "method": "ping"}',
    "a trailing comma": b'{"jsonrpc": "2.0", "id": 1, "method": "ping",}',
    "single quotes": b"{'jsonrpc': '2.0', 'id': 1, 'method': 'ping'}",
    "NaN": b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"n": NaN}}',
    "latin-1": '{"jsonrpc": "2.0", "id": 1, "method": "größe"}'.encode("latin-1"),
    "UTF-16": '{"jsonrpc": "2.0", "id": 1, "method": "ping"}'.encode("utf-16"),
}
NO_MESSAGE: dict[str, Any] = {
    "a string": "ping",
    "a number": 1,
    "null": None,
    "true": True,
    "an empty object": {},
    "no version": {"id": 1, "method": "ping"},
    "another version": {"jsonrpc": "1.0", "id": 1, "method": "ping"},
    "a version that is a number": {"jsonrpc": 2.0, "id": 1, "method": "ping"},
    "an id of null": {"jsonrpc": "2.0", "id": None, "method": "tools/list"},
    "an id that is an object": {"jsonrpc": "2.0", "id": {}, "method": "tools/list"},
    "an id that is true": {"jsonrpc": "2.0", "id": True, "method": "tools/list"},
    "an id that is a fraction": {"jsonrpc": "2.0", "id": 1.5, "method": "tools/list"},
    "a method that is a number": {"jsonrpc": "2.0", "id": 1, "method": 5},
    "params that are a list": {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": ["echo"]},
    "params that are a string": {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": "echo"},
    "result and error": {"jsonrpc": "2.0", "id": 1, "result": {}, "error": {"code": 1, "message": "x"}},
}


async def in_either_era(door: Door, era: str, body: Any) -> Answer:
    if era == "modern":
        return await door.front("modern").post(body, modern_headers(modern_request("tools/list")))
    return await (await door.front("legacy").initialize()).post(body)


@pytest.mark.field("W1")
@pytest.mark.parametrize("era", ["modern", "legacy"])
@pytest.mark.parametrize("name", NO_JSON)
async def test_what_is_no_json_is_a_parse_error(door: Door, era: str, name: str) -> None:
    answer = await in_either_era(door, era, NO_JSON[name])
    assert (answer.status, answer.code) == (400, -32700), repr(answer)
    assert answer.final.get("id", 1) is not None


@pytest.mark.field("W1")
@pytest.mark.parametrize("era", ["modern", "legacy"])
@pytest.mark.parametrize("name", NO_MESSAGE)
async def test_what_is_no_message_is_an_invalid_request(door: Door, era: str, name: str) -> None:
    message = NO_MESSAGE[name]
    answer = await in_either_era(door, era, json.dumps(message).encode())
    assert (answer.status, answer.code) == (400, -32600), repr(answer)
    assert answer.final.get("id", 1) is not None
    upstream = door.upstream(era)
    assert [method for method in upstream.methods() if method in ("tools/list", "tools/call")] == []


# W2

FRONT_NOTES: dict[str, Json] = {
    "initialized": notification("notifications/initialized"),
    "cancelled": notification("notifications/cancelled", {"requestId": "nobody", "reason": "x"}),
    "cancelled without an id": notification("notifications/cancelled", {}),
    "roots changed": NOTE,
    "progress": notification("notifications/progress", {"progressToken": "nobody", "progress": 1}),
    "unknown": notification("notifications/vendor/unknown", {"x": [None]}),
    "a method that is a request's": notification("tools/call", {"name": "echo"}),
    "a result nobody waits for": {"jsonrpc": "2.0", "id": "nobody asked", "result": {}},
    "an error nobody waits for": {"jsonrpc": "2.0", "id": 0, "error": {"code": -32601, "message": "no"}},
    "an error without an id": {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "no"}},
}


@pytest.mark.field("W2")
@either_upstream
@pytest.mark.parametrize("name", FRONT_NOTES)
async def test_a_notification_is_answered_202_and_nothing_more(door: Door, upstream_era: str, name: str) -> None:
    session = await door.front(upstream_era).initialize()
    answer = await session.post(FRONT_NOTES[name])
    assert (answer.status, answer.body) == (202, b""), repr(answer)
    assert "result" in (await session.request("tools/list")).final, "the session goes on"
    if name == "a method that is a request's":
        assert "id" not in {key for seen in door.upstream(upstream_era).calls("tools/call") for key in seen.message}


@pytest.mark.field("W2")
@either_upstream
@pytest.mark.parametrize("name", ["initialized", "cancelled", "roots changed", "unknown"])
@pytest.mark.parametrize(
    "headers", [{}, {"Mcp-Method": None}, {"Accept": "application/json"}, {"Accept": None}], ids=str
)
async def test_a_modern_notification_is_answered_202_and_nothing_more(
    door: Door, upstream_era: str, name: str, headers: Overrides
) -> None:
    message = FRONT_NOTES[name]
    sent = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": message["method"], **headers}
    answer = await door.front(upstream_era).post(message, sent)
    assert (answer.status, answer.body) == (202, b""), repr(answer)


def told(status: int, body: bytes = b"", content_type: str | None = None) -> Callable[[Call], Awaitable[None]]:
    async def answer(call: Call) -> None:
        await call.reply(status, body, [] if content_type is None else [("Content-Type", content_type)])

    return answer


async def streaming(call: Call) -> None:
    await call.stream()
    await call.write(b": nothing to say\n\n")
    await call.end()


UPSTREAM_ANSWERS: dict[str, Callable[[Call], Awaitable[None]]] = {
    "200 empty": told(200),
    "200 with JSON": told(200, b'{"jsonrpc":"2.0","id":null,"result":{}}', "application/json"),
    "200 with a null": told(200, b"null", "application/json"),
    "200 with a stream": streaming,
    "204": told(204),
    "202 with a body": told(202, b'{"ok":true}', "application/json"),
    "202 with text": told(202, b"Accepted", "text/plain"),
    "400 with an error": told(400, json.dumps(response(None, Err(-32600, "no"))).encode(), "application/json"),
    "500": told(500, b"<h1>Internal Server Error</h1>", "text/html"),
}


Odd = tuple[GatewayProcess, dict[str, LegacyUpstream]]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def odd() -> AsyncIterator[Odd]:
    """An upstream for each odd way to answer a notification, and two that lose sessions, behind one gateway."""
    upstreams = {f"u{number}": LegacyUpstream() for number in range(len(UPSTREAM_ANSWERS))}
    for upstream, answer in zip(upstreams.values(), UPSTREAM_ANSWERS.values(), strict=True):
        upstream.on["notifications/initialized"] = answer
        upstream.on["notifications/roots/list_changed"] = answer
    upstreams |= {"lost": LegacyUpstream(), "losing": LegacyUpstream()}
    upstreams["losing"].on |= {"notifications/initialized": told(404), "tools/list": told(404)}
    for upstream in upstreams.values():
        await upstream.start()
    async with running(upstreams) as gateway:
        yield gateway, upstreams
    for upstream in upstreams.values():
        await upstream.stop()
        upstream.check()


@pytest.mark.field("W2")
@pytest.mark.parametrize("name", UPSTREAM_ANSWERS)
async def test_however_an_upstream_takes_notifications_the_session_goes_on(odd: Odd, name: str) -> None:
    front = odd[0].front(f"/u{list(UPSTREAM_ANSWERS).index(name)}")
    assert "result" in (await front.modern("tools/call", {"name": "echo"})).final
    session = await front.initialize(capabilities={"roots": {"listChanged": True}})
    answer = await session.post(NOTE)
    assert (answer.status, answer.body) == (202, b"")
    assert "result" in (await session.request("tools/call", {"name": "echo"})).final


@pytest.mark.field("W2")
async def test_a_404_to_a_notification_means_that_the_session_is_gone(odd: Odd) -> None:
    front, upstream = odd[0].front("/lost"), odd[1]["lost"]
    session = await front.initialize(capabilities={"roots": {"listChanged": True}})
    assert "result" in (await session.request("tools/list")).final
    upstream.live.clear()
    answer = await session.post(NOTE)
    assert (answer.status, answer.body) in ((202, b""), (404, answer.body))
    assert (await session.request("tools/list")).status == 404
    assert "result" in (await (await front.initialize()).request("tools/list")).final


@pytest.mark.field("W2")
async def test_an_upstream_that_loses_every_session_at_once_is_an_error_and_no_loop(odd: Odd) -> None:
    upstream = odd[1]["losing"]
    assert "error" in (await odd[0].front("/losing").modern("tools/list")).final
    assert len(upstream.calls("tools/list")) <= 2
    assert len(upstream.calls("initialize")) <= 3
