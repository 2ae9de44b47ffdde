"""Requests that no client should send: whatever it is, there is one proper answer, no traceback, and no hang.

Specification: RFC 9110 (Expect, Content-Encoding), JSON-RPC 2.0, 2026-07-28 and 2025-11-25 basic/transports.
"""

import gzip
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import pytest_asyncio

from tests.gateway_process import GatewayProcess, running
from tests.http_wire import chunk, header_bytes, read_body, read_head
from tests.peers import LegacyUpstream, ModernUpstream
from tests.raw_front import Answer, Front, Overrides, modern_headers, modern_request, notification, request
from tests.scripted import Json

pytestmark = pytest.mark.asyncio(loop_scope="module")

HALF = "\ud800"
"""Half of a surrogate pair: JSON can say it, UTF-8 cannot."""
LISTING = modern_request("tools/list", ident="it")
BODY = json.dumps(LISTING).encode()
ROUTES = pytest.mark.parametrize("path", ["/legacy", "/modern", "/verified"])


@dataclass(frozen=True, slots=True)
class House:
    gateway: GatewayProcess
    modern: ModernUpstream


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def house() -> AsyncIterator[House]:
    async with (
        LegacyUpstream() as legacy,
        ModernUpstream() as modern,
        running(
            {
                "legacy": legacy,
                "modern": modern,
                "verified": (modern, {"era": "modern", "verifies_headers": True}),
            }
        ) as gateway,
    ):
        yield House(gateway, modern)


def posting(more: Overrides) -> Overrides:
    return {**Front.posting(modern_headers(LISTING)), **more}


async def answer_to(front: Front, pieces: list[bytes], headers: Overrides) -> Answer:
    """The answer to a request whose head is sent first and whose body follows in these pieces."""
    async with front.sent("POST", headers) as (stream, writer):
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        start, got = await read_head(stream)
        return Answer(int(start.split(" ")[1]), got, await read_body(stream, got, response=True), ended=True)


ENCODED = [
    ("gzip", gzip.compress(BODY), 200),
    ("gzip", BODY, 400),
    ("deflate", BODY, 400),
    ("gzip", gzip.compress(b" " * 2**23), 413),
]


@ROUTES
@pytest.mark.parametrize(("coding", "body", "status"), ENCODED)
async def test_a_body_is_what_its_content_encoding_says_or_it_is_refused(
    house: House, path: str, coding: str, body: bytes, status: int
) -> None:
    headers = posting({"Content-Encoding": coding, "Content-Length": str(len(body))})
    answer = await answer_to(house.gateway.front(path), [body], headers)
    assert answer.status == status, repr(answer)
    assert answer.code in (-32700, -32600) if status != 200 else answer.result["tools"]


@ROUTES
async def test_a_client_that_waits_to_be_asked_for_its_body_is_asked(house: House, path: str) -> None:
    headers = posting({"Expect": "100-continue", "Content-Length": str(len(BODY))})
    async with house.gateway.front(path).sent("POST", headers) as (stream, writer):
        start, _ = await read_head(stream)
        assert start == "HTTP/1.1 100 Continue"
        writer.write(BODY)
        start, got = await read_head(stream)
        assert start.split(" ")[1] == "200"
        assert json.loads(await read_body(stream, got, response=True))["id"] == "it"


@pytest.mark.parametrize(
    ("more", "status"),
    [({"Content-Type": "text/plain"}, 415), ({"Content-Length": str(2**30)}, 413), ({"Accept": "image/png"}, 406)],
)
async def test_a_client_whose_request_is_refused_anyhow_is_not_asked_for_its_body(
    house: House, more: Overrides, status: int
) -> None:
    headers = posting({"Expect": "100-continue", "Content-Length": "100", **more})
    async with house.gateway.front("/modern").sent("POST", headers) as (stream, _):
        start, _ = await read_head(stream)
        assert start.split(" ")[1] == str(status)


@ROUTES
@pytest.mark.parametrize("cut", [1, 3, 20, 200, 10_000], ids=lambda cut: f"pieces of {cut} bytes")
async def test_a_request_may_come_in_any_pieces(house: House, path: str, cut: int) -> None:
    front = house.gateway.front(path)
    lines = [("Host", "127.0.0.1"), ("Transfer-Encoding", "chunked"), ("Content-Type", "application/json")]
    head = header_bytes(f"POST {path} HTTP/1.1", [*lines, *modern_headers(LISTING).items()])
    whole = head + b"".join(chunk(BODY[at : at + 7]) for at in range(0, len(BODY), 7)) + b"0\r\n\r\n"
    async with front.connected() as (stream, writer):
        for at in range(0, len(whole), cut):
            writer.write(whole[at : at + cut])
            await writer.drain()
        start, got = await read_head(stream)
        assert start.split(" ")[1] == "200"
        assert json.loads(await read_body(stream, got, response=True))["id"] == "it"


NO_HTTP = {
    b"\x16\x03\x01\x02\x00\x01\x00": "400",
    b"\r\x00": "400",
    b"nonsense\r\n\r\n": "400",
    b"POST /modern HTTP/1.1\nHost: 127.0.0.1\n\n": "400",
    b"POST /modern HTTP/1.1\r\nHost: 127.0.0.1\r\nX: \x01\r\n\r\n": "400",
    b"POST /modern HTTP/1.1\r\n" + b"X: y\r\n" * 12_000: "431",
}


@pytest.mark.parametrize("said", NO_HTTP, ids=lambda said: repr(said[:30]))
async def test_what_is_no_http_is_refused_at_once(house: House, said: bytes) -> None:
    async with house.gateway.front("/modern").connected() as (stream, writer):
        writer.write(said)
        start, _ = await read_head(stream)
        assert start.split(" ")[1] == NO_HTTP[said]


HALVES: list[Json] = [
    request("tools/call", {"name": "echo", "arguments": {"a": HALF}}, ident="it"),
    request("tools/call", {"name": "echo", "arguments": {HALF: 1}}, ident="it"),
    request("tools/call", {"name": HALF, "arguments": {}}, ident="it"),
    request("resources/read", {"uri": HALF}, ident="it"),
    request("tools/list", {"cursor": HALF}, ident="it"),
    request("tools/list", {"_meta": {"progressToken": HALF, "x": HALF}}, ident="it"),
    request(HALF, ident="it"),
    request("tools/list", ident=HALF),
]


@ROUTES
@pytest.mark.parametrize("message", HALVES, ids=repr)
async def test_half_a_surrogate_pair_is_carried_or_refused(house: House, path: str, message: Json) -> None:
    front = house.gateway.front(path)
    session = await front.initialize()
    answers = [await session.post(message)]
    full = modern_request(message["method"], message.get("params"), ident=message["id"])
    headers = (
        modern_headers(full) if message["method"] != HALF and HALF not in message.get("params", {}).values() else {}
    )
    answers.append(await front.post(full, {"MCP-Protocol-Version": "2026-07-28", **headers}))
    for answer in answers:
        assert answer.final["id"] == message["id"]
        assert b"internal error" not in answer.body
        assert answer.status < 500, repr(answer)


@ROUTES
async def test_half_a_surrogate_pair_in_arguments_and_result_arrives(house: House, path: str) -> None:
    params = {"name": "echo", "arguments": {"a": HALF}}
    front = house.gateway.front(path)
    for answer in (
        await front.modern("tools/call", params),
        await (await front.initialize()).request("tools/call", params),
    ):
        assert json.loads(answer.said)["arguments"] == {"a": HALF}


@pytest.mark.parametrize("path", ["/legacy", "/modern"])
async def test_a_client_may_name_itself_in_half_a_surrogate_pair(house: House, path: str) -> None:
    front = house.gateway.front(path)
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": {"experimental": {HALF: {"n": 10**40}}},
        "clientInfo": {"name": HALF, "version": "1"},
    }
    opened = await front.post(request("initialize", params, ident="it"))
    assert opened.status == 200, repr(opened)
    session = {"Mcp-Session-Id": opened.headers.get("Mcp-Session-Id")}
    assert "result" in (await front.post(request("tools/list", ident=2), session)).final


UNSENDABLE = ["tools/call\r\nX-Evil: 1", "a\0b", "a\tb", " tools/list", "größe", HALF]


@pytest.mark.parametrize("method", UNSENDABLE, ids=repr)
async def test_a_method_that_no_header_can_say_reaches_no_modern_upstream(house: House, method: str) -> None:
    session = await house.gateway.front("/modern").initialize()
    house.modern.reset()
    answer = await session.request(method, ident="it")
    assert answer.status == 200
    assert answer.final["id"] == "it"
    assert answer.code in (-32601, -32602)
    assert house.modern.requests == []


@ROUTES
async def test_a_modern_notification_is_accepted(house: House, path: str) -> None:
    message = notification("notifications/vendor", {"_meta": LISTING["params"]["_meta"]})
    answer = await house.gateway.front(path).post(message, modern_headers(message))
    assert answer.status == 202, repr(answer)
    assert answer.body == b""
