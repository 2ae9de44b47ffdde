"""Field reports L5, L6: media types are read as RFC 9110 has them, on both sides."""

import json
from typing import Any

import pytest

from tests.door import Door
from tests.field.pairs import ask_pair, either_front, either_upstream, every_pair
from tests.raw_front import Answer, modern_headers, modern_request, request
from tests.scripted import Call, Json, response

CONTENT_TYPES = {
    "application/json; charset=utf-8": 200,
    "Application/JSON": 200,
    'application/json;charset="UTF-8"': 200,
    "application/json ; charset=UTF8": 200,
    "application/json; profile=x": 200,
    "application/json; charset=iso-8859-1": 415,
    "text/plain": 415,
    "application/jsonx": 415,
    "text/json": 415,
    "application/x-www-form-urlencoded": 415,
    "": 415,
}


@pytest.mark.field("L5")
@either_front
@pytest.mark.parametrize("content_type", [*CONTENT_TYPES, None])
async def test_the_type_of_a_request_is_read_with_its_parameters(
    door: Door, front_era: str, content_type: str | None
) -> None:
    status = CONTENT_TYPES[content_type] if content_type is not None else 415
    front = door.front(front_era)
    headers: dict[str, Any] = {"Content-Type": content_type}
    if front_era == "modern":
        answer = await front.modern("tools/list", headers=headers)
    else:
        answer = await (await front.initialize()).request("tools/list", headers=headers)
    assert answer.status == status, repr(answer)
    assert ("result" in answer.final) == (status == 200)
    assert len(door.upstream(front_era).calls("tools/list")) == (status == 200)


@pytest.mark.field("L5")
@every_pair
@pytest.mark.parametrize(
    "content_type",
    [
        "application/json;charset=utf-8",
        "Application/JSON ; charset=UTF-8",
        "application/vnd.x+json",
        "application/json-rpc+json; x=1",
        None,
    ],
)
async def test_the_type_of_an_upstreams_answer_is_read_with_its_parameters(
    door: Door, front_era: str, upstream_era: str, content_type: str | None
) -> None:
    async def tool(call: Call) -> None:
        body = json.dumps(response(call.seen.id, {"content": [], "resultType": "complete"})).encode()
        await call.reply(200, body, [] if content_type is None else [("Content-Type", content_type)])

    door.upstream(upstream_era).on["tools/call"] = tool
    answer = await ask_pair(door, (front_era, upstream_era), "tools/call", {"name": "t"})
    assert answer.result["content"] == []


@pytest.mark.field("L5")
@every_pair
@pytest.mark.parametrize("content_type", ["text/event-stream; charset=utf-8", "Text/Event-Stream;charset=UTF-8"])
async def test_the_type_of_an_upstreams_stream_is_read_with_its_parameters(
    door: Door, front_era: str, upstream_era: str, content_type: str
) -> None:
    async def tool(call: Call) -> None:
        await call.stream(content_type=content_type)
        await call.answer({"content": [], "resultType": "complete"})

    door.upstream(upstream_era).on["tools/call"] = tool
    answer = await ask_pair(door, (front_era, upstream_era), "tools/call", {"name": "t"})
    assert answer.result["content"] == []


# Accept header → the types that may come back
ACCEPTS: dict[str, tuple[str | list[str] | None, set[str]]] = {
    "JSON alone": ("application/json", {"application/json"}),
    "events alone": ("text/event-stream", {"text/event-stream"}),
    "anything": ("*/*", {"application/json", "text/event-stream"}),
    "nothing said": (None, {"application/json", "text/event-stream"}),
    "no JSON": ("application/json;q=0, text/event-stream", {"text/event-stream"}),
    "no events": ("application/json, text/event-stream;q=0.0", {"application/json"}),
    "two lines": (["application/json", "text/event-stream"], {"application/json", "text/event-stream"}),
    "mixed case": ("Application/Json, TEXT/Event-Stream", {"application/json", "text/event-stream"}),
    "a browser's": ("text/html, */*;q=0.8", {"application/json", "text/event-stream"}),
    "any text": ("text/*", {"text/event-stream"}),
    "any application": ("application/*", {"application/json"}),
}


async def called(door: Door, pair: tuple[str, str], accept: str | list[str] | None) -> Answer:
    front = door.front(pair[1])
    headers: dict[str, Any] = {"Accept": accept}
    if pair[0] == "modern":
        return await front.modern("tools/call", {"name": "t"}, meta={"progressToken": 1}, headers=headers)
    session = await front.initialize()
    return await session.request("tools/call", {"name": "t", "_meta": {"progressToken": 1}}, headers=headers)


@pytest.mark.field("L6")
@every_pair
@pytest.mark.parametrize("name", ACCEPTS)
@pytest.mark.parametrize("form", ["JSON", "events"])
async def test_an_answer_comes_in_a_form_that_is_read(
    door: Door, front_era: str, upstream_era: str, name: str, form: str
) -> None:
    accept, allowed = ACCEPTS[name]

    async def tool(call: Call) -> Json:
        if form == "events":
            step = {"progressToken": call.seen.meta["progressToken"], "progress": 1}
            await call.notify("notifications/progress", step)
        return {"content": [], "structuredContent": {"n": 1}}

    upstream = door.upstream(upstream_era)
    upstream.on["tools/call"] = tool
    answer = await called(door, (front_era, upstream_era), accept)
    assert answer.status == 200, repr(answer)
    assert answer.content_type in allowed
    assert answer.result["structuredContent"] == {"n": 1}
    if answer.content_type == "text/event-stream" and form == "events":
        assert [note["method"] for note in answer.notes] == ["notifications/progress"]
    asked = (upstream.calls("tools/call")[0].headers.get("Accept") or "").lower()
    assert "application/json" in asked
    assert "text/event-stream" in asked


@pytest.mark.field("L6")
@either_upstream
@pytest.mark.parametrize("accept", ["text/html", "application/json;q=0", "image/*", "application/xml, text/plain"])
async def test_a_client_that_reads_neither_form_is_told_406(door: Door, upstream_era: str, accept: str) -> None:
    front = door.front(upstream_era)
    message = modern_request("tools/call", {"name": "t"})
    answer = await front.post(message, {**modern_headers(message), "Accept": accept})
    assert answer.status == 406
    session = await front.initialize()
    assert (await session.request("tools/call", {"name": "t"}, headers={"Accept": accept})).status == 406
    assert door.upstream(upstream_era).calls("tools/call") == []


@pytest.mark.field("L6")
@either_upstream
@pytest.mark.parametrize("name", ["JSON alone", "events alone", "anything", "nothing said"])
async def test_initialize_is_answered_in_a_form_that_is_read(door: Door, upstream_era: str, name: str) -> None:
    accept, allowed = ACCEPTS[name]
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    answer = await door.front(upstream_era).post(request("initialize", params), {"Accept": accept})
    assert answer.status == 200
    assert answer.content_type in allowed
    assert answer.result["protocolVersion"] == "2025-11-25"
    assert answer.headers.get("Mcp-Session-Id")
