"""Routes to LLM APIs, end to end: what the API gets of a request, and what its client gets of the response."""

import asyncio
import gzip
import json
import zlib
from typing import Any

import pytest

from tests.http_wire import chunk
from tests.provider.api import ANSWERS, KEY_HEADERS, PATHS, message_of, plain_body, raw, result_body
from tests.provider.conftest import Plane
from tests.raw_front import Front
from tests.scrape import settled, value
from tests.scripted import Call

every_dialect = pytest.mark.parametrize("dialect", PATHS)
APP = {
    "type": "resource",
    "resource": {"uri": "ui://a/PLANTED", "mimeType": "text/html;profile=mcp-app", "text": "<html>PLANTED</html>"},
}
FLAT = json.dumps({"content": [{"type": "text", "text": "21 degrees"}, APP]})
"""What an adapter makes of a tool's result that holds an interface."""
JSON = {"Content-Type": "application/json"}


# requests


@every_dialect
async def test_a_request_without_an_interface_arrives_byte_for_byte(dialect: str, plane: Plane) -> None:
    body = raw(result_body(dialect, 'text that quotes "ui://a" and <html>'))
    sent = {"User-Agent": "sdk/1", "X-Stainless-Lang": "python", "anthropic-version": "2023-06-01"}
    answer = await plane.ask(dialect, body, sent, path=f"{PATHS[dialect]}?a=%2F&b")
    seen = plane.apis[dialect].last
    assert (seen.verb, seen.path) == ("POST", f"{PATHS[dialect]}?a=%2F&b")
    assert seen.body == body
    assert {name: seen.headers.get(name) for name in sent} == sent
    assert seen.headers.all("Content-Length") == [str(len(body))]
    assert answer.status == 200
    assert answer.body == json.dumps(ANSWERS[dialect], indent=1).encode()
    assert answer.headers.get("Request-Id") == "req-1"


@every_dialect
async def test_an_interface_in_a_tools_result_does_not_arrive_and_its_text_does(dialect: str, plane: Plane) -> None:
    answer = await plane.ask(dialect, result_body(dialect, FLAT))
    assert answer.status == 200
    seen = plane.apis[dialect].last
    assert b"PLANTED" not in seen.body
    assert b"21 degrees" in seen.body
    assert seen.headers.all("Content-Length") == [str(len(seen.body))]


async def test_what_belongs_to_the_network_before_the_gateway_stays_there(plane: Plane) -> None:
    private = {
        "Cookie": "session=1",
        "Origin": "https://app.example",
        "Referer": "https://app.example/secret",
        "X-Forwarded-For": "10.0.0.1",
        "Forwarded": "for=10.0.0.1",
        "Via": "1.1 inner",
        "baggage": "user=1",
        "Connection": "keep-alive, X-Hop",
        "X-Hop": "1",
        "TE": "trailers",
        "X-Front-Door-Key": "unknown",
        "Sec-Fetch-Mode": "cors",
    }
    await plane.ask("openai", plain_body("openai"), private)
    seen = plane.apis["openai"].last
    names = {name.lower() for name, _ in seen.headers.lines}
    assert names == {"host", "content-type", "content-length"}
    assert seen.headers.get("Host") == plane.apis["openai"].authority


@pytest.mark.parametrize("coding", ["gzip", "x-gzip", "deflate"])
async def test_a_compressed_body_is_read_and_passes_as_it_came_where_nothing_is_taken_out(
    coding: str, plane: Plane
) -> None:
    pack = zlib.compress if coding == "deflate" else gzip.compress
    packed = [pack(raw(result_body("anthropic", text))) for text in ("21 degrees", FLAT)]
    for body in packed:
        assert (await plane.ask("anthropic", body, {"Content-Encoding": coding})).status == 200
    as_it_came, stripped = plane.apis["anthropic"].requests
    assert as_it_came.headers.get("Content-Encoding") == coding
    assert as_it_came.body == packed[0]
    assert stripped.headers.get("Content-Encoding") is None
    assert b"PLANTED" not in stripped.body
    assert json.loads(stripped.body)["model"] == "m"


REFUSED = {
    # name: (headers, body, status, words of the error)
    "a coding that cannot be read": ({"Content-Encoding": "br"}, b"x", 415, "gzip, deflate"),
    "a body that is not what its coding says": ({"Content-Encoding": "gzip"}, b"{}", 400, "not gzip"),
    "a compressed body that is too large": (
        {"Content-Encoding": "gzip"},
        gzip.compress(b" " * ((4 << 20) + 1)),
        413,
        "limits.max_provider_body_bytes",
    ),
    "a body that is too large": ({}, b" " * ((4 << 20) + 1), 413, "limits.max_provider_body_bytes"),
    "a body with a mark that is no JSON": ({}, b'{"messages": [{"role": "tool", "_meta": {"ui": ', 400, "body"),
    "a WebSocket": ({"Connection": "Upgrade", "Upgrade": "websocket"}, None, 501, "WebSocket"),
}


@every_dialect
@pytest.mark.parametrize("case", REFUSED)
async def test_what_cannot_be_served_is_refused_in_the_apis_own_shape(case: str, dialect: str, plane: Plane) -> None:
    headers, body, status, words = REFUSED[case]
    answer = await plane.ask(dialect, body, headers, verb="GET" if body is None else "POST")
    assert (answer.status, plane.apis[dialect].requests) == (status, [])
    assert words in message_of(dialect, answer)


@pytest.mark.parametrize("query", ["", "?X-Amz-Signature=00&X-Amz-Algorithm=AWS4-HMAC-SHA256"])
async def test_a_request_that_is_signed_is_refused_with_what_to_do_instead(query: str, plane: Plane) -> None:
    headers = {} if query else {"Authorization": "AWS4-HMAC-SHA256 Credential=a/b, SignedHeaders=host, Signature=00"}
    answer = await plane.ask("bedrock", plain_body("bedrock"), headers, path=PATHS["bedrock"] + query)
    assert (answer.status, plane.apis["bedrock"].requests) == (400, [])
    assert "Authorization: Bearer" in message_of("bedrock", answer)


@pytest.mark.parametrize(
    "path", ["/v1/../../other", "/v1/%2e%2E/other", "/v1/..%2fother", "/./v1", "/v1/..%5cother", "/v1/..;a/other"]
)
async def test_no_path_leads_out_of_the_api(path: str, plane: Plane) -> None:
    answer = await plane.ask("openai", b"{}", path=path)
    assert (answer.status, plane.apis["openai"].requests) == (400, [])
    assert '".."' in message_of("openai", answer)


@pytest.mark.parametrize(
    "path", ["", "/", "/model/arn%3Aaws%3Abedrock%2Fx/converse", "/v1beta/models/m:generateContent"]
)
async def test_the_path_below_a_route_goes_to_the_api_as_it_came(path: str, plane: Plane) -> None:
    assert (await plane.ask("gemini", None, path=path, verb="GET")).status == 200
    assert plane.apis["gemini"].last.path == (path or "/")


@pytest.mark.parametrize("path", ["/llm", "/llm/openaix", "/llmopenai", "/llm/OpenAI"])
async def test_what_lies_beside_a_route_is_not_found(path: str, plane: Plane) -> None:
    answer = await Front(plane.gateway.url + path).send("GET", {})
    assert (answer.status, plane.apis["openai"].requests) == (404, [])


@pytest.mark.parametrize("verb", ["GET", "DELETE", "HEAD", "PATCH"])
async def test_every_method_passes(verb: str, plane: Plane) -> None:
    answer = await plane.ask("openai", None, path="/v1/models", verb=verb)
    seen = plane.apis["openai"].last
    assert (answer.status, seen.verb, seen.body) == (200, verb, b"")
    assert answer.headers.get("Request-Id") == "req-1"


@pytest.mark.parametrize(
    ("content_type", "path"),
    [("multipart/form-data; boundary=b", "/v1/files"), ("application/jsonl", "/v1/files"), ("audio/wav", "/v1/audio")],
)
async def test_files_pass_as_they_come_whatever_their_size(content_type: str, path: str, plane: Plane) -> None:
    body = b"\0\r\n_meta " * (600 << 10)
    assert (await plane.ask("openai", body, {"Content-Type": content_type}, path=path)).status == 200
    seen = plane.apis["openai"].last
    assert seen.body == body
    assert seen.headers.all("Content-Length") == [str(len(body))]
    assert seen.headers.get("Content-Type") == content_type


async def test_a_file_whose_length_is_not_known_before_passes_chunked(plane: Plane) -> None:
    headers = {"Content-Type": "audio/wav", "Transfer-Encoding": "chunked", "Content-Length": None}
    body = chunk(b"one") + chunk(b"two") + b"0\r\n\r\n"
    assert (await plane.ask("openai", body, headers, path="/v1/audio")).status == 200
    assert plane.apis["openai"].last.body == b"onetwo"


async def test_an_upload_to_gemini_is_not_read(plane: Plane) -> None:
    await plane.ask("gemini", b"{ no JSON", path="/upload/v1beta/files?upload_id=1")
    assert plane.apis["gemini"].last.body == b"{ no JSON"


async def test_a_client_that_waits_to_be_asked_for_its_body_is(plane: Plane) -> None:
    body = raw(plain_body("openai"))
    head = {**JSON, "Expect": "100-continue", "Content-Length": str(len(body))}
    front = Front(plane.gateway.url + "/llm/openai/v1/chat/completions")
    async with front.sent("POST", head) as (stream, writer):
        assert (await stream.until(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
        writer.write(body)
        assert (await stream.until(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
    assert plane.apis["openai"].last.body == body
    assert "Expect" not in plane.apis["openai"].last.headers


# responses


async def test_events_are_passed_on_as_they_come(plane: Plane) -> None:
    steps = [asyncio.Event() for _ in range(3)]

    async def stream(call: Call) -> bool:
        await call.stream()
        for number, step in enumerate(steps):
            await call.write(f"event: delta\r\ndata: {number}\n\n: odd\n".encode())
            await step.wait()
        await call.end()
        return True

    plane.apis["anthropic"].on_http = stream
    front = Front(plane.gateway.url + "/llm/anthropic/v1/messages")
    async with front.open("POST", JSON, raw(plain_body("anthropic"))) as opened:
        assert opened.headers.get("Content-Type") == "text/event-stream"
        for number, step in enumerate(steps):
            while f"data: {number}\n\n: odd\n".encode() not in opened.received:
                assert await opened.read()
            step.set()
        await opened.whole()
        assert opened.received == b"".join(f"event: delta\r\ndata: {n}\n\n: odd\n".encode() for n in range(3))


@pytest.mark.parametrize("status", [200, 201, 301, 400, 401, 429, 500, 529])
async def test_status_headers_and_bytes_of_a_response_pass(status: int, plane: Plane) -> None:
    body = gzip.compress(b'{"_meta": {"ui": 1}}')
    headers = [
        ("Content-Encoding", "gzip"),
        ("Retry-After", "7"),
        ("anthropic-ratelimit-requests-remaining", "0"),
        ("Location", "https://elsewhere.example/"),
        ("Set-Cookie", "a=1"),
        ("Set-Cookie", "b=2"),
        ("x-amzn-eventstream", "1"),
    ]

    async def answer(call: Call) -> bool:
        hop = [("Alt-Svc", 'h3=":443"'), ("Strict-Transport-Security", "max-age=1"), ("X-Hop", "1"), ("Trailer", "x")]
        await call.reply(status, body, [*headers, *hop, ("Connection", "keep-alive, X-Hop")])
        return True

    plane.apis["anthropic"].on_http = answer
    got = await plane.ask("anthropic", plain_body("anthropic"), {"Accept-Encoding": "gzip, br"})
    assert plane.apis["anthropic"].last.headers.all("Accept-Encoding") == ["gzip, br"]
    assert (got.status, got.body) == (status, body)
    for name, _ in headers:
        assert got.headers.all(name) == [text for other, text in headers if other == name]
    for name in ("Alt-Svc", "Strict-Transport-Security", "X-Hop", "Trailer"):
        assert name not in got.headers


async def test_the_end_of_a_client_is_the_end_of_the_apis_response(plane: Plane) -> None:
    gone = asyncio.Event()

    async def stream(call: Call) -> bool:
        await call.stream()
        await call.write(b"data: 1\n\n")
        await call.gone()
        gone.set()
        return True

    plane.apis["openai"].on_http = stream
    before = await settled(plane.gateway, "mcp_front_door_requests_in_flight", 0)
    front = Front(plane.gateway.url + "/llm/openai/v1/chat/completions")
    async with front.open("POST", JSON, raw(plain_body("openai"))) as opened:
        assert await opened.read()
    await asyncio.wait_for(gone.wait(), 30)
    labels = {"provider": "openai", "dialect": "openai", "outcome": "cancelled"}
    count = value(before, "mcp_front_door_provider_requests_total", **labels)
    await settled(plane.gateway, "mcp_front_door_provider_requests_total", count + 1, **labels)


async def test_a_client_that_leaves_before_the_head_of_the_response_ends_it_too(plane: Plane) -> None:
    asked, gone = asyncio.Event(), asyncio.Event()

    async def silent(call: Call) -> bool:
        asked.set()
        await call.gone()
        gone.set()
        call.close()
        return True

    plane.apis["openai"].on_http = silent
    front = Front(plane.gateway.url + "/llm/openai/v1/chat/completions")
    async with front.sent("POST", JSON, raw(plain_body("openai"))):
        await asyncio.wait_for(asked.wait(), 30)
    await asyncio.wait_for(gone.wait(), 30)


@pytest.mark.parametrize("framing", ["chunked", "length"])
async def test_a_response_that_breaks_off_breaks_off(framing: str, plane: Plane) -> None:
    async def short(call: Call) -> bool:
        if framing == "chunked":
            await call.stream()
            await call.write(b"data: 1\n\n")
        else:
            await call.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\ndata: 1\n\n")
        call.close()
        return True

    plane.apis["openai"].on_http = short
    answer = await plane.ask("openai", plain_body("openai"))
    assert answer.status == 200
    assert not answer.ended


@every_dialect
async def test_an_api_that_is_down_is_an_error_in_its_own_shape(dialect: str, plane: Plane) -> None:
    await plane.apis[dialect].stop()
    answer = await plane.ask(dialect, plain_body(dialect))
    await plane.apis[dialect].start()
    assert answer.status == 502
    assert "cannot be reached" in message_of(dialect, answer)
    assert plane.apis[dialect].authority.encode() not in answer.body
    assert (await plane.ask(dialect, plain_body(dialect))).status == 200


# keys and browsers


@every_dialect
async def test_a_callers_own_key_passes_and_is_in_no_log(dialect: str, plane: Plane) -> None:
    name, form = KEY_HEADERS[dialect]
    key = form.format("sk-own-KEY-of-a-caller")
    path = f"{PATHS[dialect]}?key=sk-own-KEY-in-a-query"
    await plane.ask(dialect, plain_body(dialect), {name: key}, path=path)
    assert plane.apis[dialect].last.headers.all(name) == [key]
    assert plane.apis[dialect].last.path == path
    await plane.ask(dialect, b"{", {name: key}, path=path)
    await plane.apis[dialect].stop()
    await plane.ask(dialect, plain_body(dialect), {name: key}, path=path)
    await plane.apis[dialect].start()
    log = plane.gateway.stderr()
    assert f"route=/llm/{dialect} provider={dialect}" in log
    assert "KEY" not in log


async def test_pages_of_allowed_origins_may_ask_and_others_may_not(plane: Plane) -> None:
    asked = {
        "Origin": "https://app.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "x-api-key, anthropic-version, x-stainless-os",
    }
    told = await plane.ask("anthropic", None, asked, verb="OPTIONS")
    assert told.status == 204
    allowed = (told.headers.get("Access-Control-Allow-Headers") or "").lower()
    assert {"x-api-key", "anthropic-version", "x-stainless-os"} <= {name.strip() for name in allowed.split(",")}
    answer = await plane.ask("anthropic", plain_body("anthropic"), {"Origin": "https://app.example"})
    assert answer.headers.all("Access-Control-Allow-Origin") == ["https://app.example"]
    assert (await plane.ask("anthropic", plain_body("anthropic"), {"Origin": "https://evil.example"})).status == 403
    assert len(plane.apis["anthropic"].requests) == 1


# what is counted


async def test_requests_bytes_and_what_was_taken_out_are_counted(plane: Plane) -> None:
    labels = {"provider": "bedrock", "dialect": "bedrock"}
    total, taken, size = (f"mcp_front_door_provider_{name}_total" for name in ("requests", "stripped", "bytes"))
    before = await settled(plane.gateway, "mcp_front_door_requests_in_flight", 0)

    def now(samples: Any, name: str, **more: str) -> float:
        return value(samples, name, **labels, **more) - value(before, name, **labels, **more)

    sent = raw(result_body("bedrock", FLAT))
    answer = await plane.ask("bedrock", sent)
    answered = value(before, total, **labels, outcome="answered")
    after = await settled(plane.gateway, total, answered + 1, **labels, outcome="answered")
    assert now(after, taken, kind="resource") == 1
    assert now(after, size, part="request") == len(sent)
    assert now(after, size, part="stripped") == len(sent) - len(plane.apis["bedrock"].last.body)
    assert now(after, size, part="response") == len(answer.body)
    await plane.ask("bedrock", b"x", {"Content-Encoding": "br"})
    refused = value(before, total, **labels, outcome="refused")
    after = await settled(plane.gateway, total, refused + 1, **labels, outcome="refused")
    where = {"route": "/llm/bedrock", "rung": "body"}
    count = value(before, "mcp_front_door_refusals_total", **where) + 1
    assert value(after, "mcp_front_door_refusals_total", **where) == count


SAID = {
    # name: (headers, body, members of the line in the log)
    "one that is answered": ({}, raw(result_body("gemini", FLAT)), "decision=allow outcome=answered stripped=1"),
    "one that cannot be read": ({"Content-Encoding": "br"}, b"x", "decision=deny rung=body outcome=415 stripped=0"),
    "one that may not be": (
        {"Connection": "Upgrade", "Upgrade": "websocket"},
        None,
        "decision=deny rung=request outcome=-32600 stripped=0",
    ),
}


@pytest.mark.parametrize("case", SAID)
async def test_its_line_in_the_log_says_whether_it_was_let_through_and_how_it_went(case: str, plane: Plane) -> None:
    headers, body, members = SAID[case]
    already = len(plane.gateway.stderr())
    await plane.ask("gemini", body, headers, verb="GET" if body is None else "POST")
    await settled(plane.gateway, "mcp_front_door_requests_in_flight", 0)
    size = len(body) if body is not None and "outcome=answered" in members else 0
    assert f"provider=gemini {members} request_bytes={size} " in plane.gateway.stderr()[already:]
