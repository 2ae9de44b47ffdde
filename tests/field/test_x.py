"""Field reports X1, X2, X3, X4, X6, X7: sizes, compression, and headers of a single hop."""

import base64
import gzip
import json
import zlib
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.door import Door
from tests.field.pairs import ask, either_front, either_upstream, every_pair
from tests.gateway_process import GatewayProcess, running
from tests.http_wire import chunk
from tests.peers import LegacyUpstream, ModernUpstream, text
from tests.raw_front import modern_headers, modern_request
from tests.scripted import Call, response

LIMIT = 4096
LIMITS = {"max_body_bytes": LIMIT, "max_response_bytes": 2**20, "max_event_bytes": 2**20}
FORWARDED = {"forward_headers": ["X-Foo", "X-Tenant"]}
Bounded = tuple[GatewayProcess, dict[str, LegacyUpstream | ModernUpstream]]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_bounded() -> AsyncIterator[Bounded]:
    async with LegacyUpstream() as legacy, ModernUpstream() as modern:
        behind = {"legacy": (legacy, FORWARDED), "modern": (modern, FORWARDED)}
        async with running(behind, limits=LIMITS) as gateway:
            yield gateway, {"legacy": legacy, "modern": modern}


@pytest_asyncio.fixture(loop_scope="session")
async def bounded(shared_bounded: Bounded) -> AsyncIterator[Bounded]:
    """A gateway with small limits, its upstreams without a script."""
    _, upstreams = shared_bounded
    for upstream in upstreams.values():
        upstream.reset()
    yield shared_bounded
    for upstream in upstreams.values():
        upstream.check()


def of_size(size: int, **more: object) -> bytes:
    """A call of exactly so many bytes."""
    raw = json.dumps(modern_request("tools/call", {"name": "echo", "arguments": {"a": ""}, **more})).encode()
    return raw.replace(b'"a": ""', b'"a": "%s"' % (b"x" * (size - len(raw))))


@pytest.mark.field("X1")
@pytest.mark.parametrize("chunked", [False, True], ids=["declared", "chunked"])
@either_upstream
async def test_a_body_up_to_the_limit_is_served_and_a_byte_more_is_413(
    bounded: Bounded, upstream_era: str, chunked: bool
) -> None:
    gateway, upstreams = bounded
    upstream, front = upstreams[upstream_era], gateway.front(f"/{upstream_era}")
    for size, status in ((LIMIT - 1, 200), (LIMIT, 200), (LIMIT + 1, 413), (3 * LIMIT, 413)):
        body = of_size(size)
        headers = front.posting(modern_headers(json.loads(body)))
        if chunked:
            headers = {**headers, "Content-Length": None, "Transfer-Encoding": "chunked"}
            body = chunk(body[:100]) + chunk(body[100:]) + b"0\r\n\r\n"
        before = len(upstream.calls("tools/call"))
        answer = await front.send("POST", headers, body)
        assert answer.status == status
        assert len(upstream.calls("tools/call")) == before + (status == 200)
        if status == 413:
            assert answer.code == -32600
            assert str(LIMIT) in answer.error["message"]
            assert "max_body_bytes" in answer.error["message"]


@pytest.mark.field("X2")
@every_pair
async def test_three_mebibytes_are_no_matter_without_any_setting(door: Door, front_era: str, upstream_era: str) -> None:
    argument = base64.b64encode(bytes(range(256)) * 9216).decode()
    assert len(argument) >= 3 * 2**20
    call = {"name": "echo", "arguments": {"blob": argument}}
    answer = await ask(door.front(upstream_era), front_era, "tools/call", call)
    assert json.loads(answer.said)["arguments"]["blob"] == argument


@pytest.mark.field("X3")
@every_pair
@pytest.mark.parametrize("form", ["json", "event"])
async def test_an_endless_answer_is_cut_off_while_it_comes(
    bounded: Bounded, front_era: str, upstream_era: str, form: str
) -> None:
    async def endless(call: Call) -> None:
        kind = "application/json" if form == "json" else "text/event-stream"
        await call.stream(content_type=kind)
        await call.write(b'{"jsonrpc":"2.0","id":1,"result":"' if form == "json" else b"data: ")
        try:
            for _ in range(3200):
                await call.write(b"x" * 65536)
        except ConnectionError:
            call.broken = True

    gateway, upstreams = bounded
    upstreams[upstream_era].on["tools/call"] = endless
    answer = await ask(gateway.front(f"/{upstream_era}"), front_era, "tools/call", {"name": "echo"})
    assert answer.code == -32603
    assert str(2**20) in answer.error["message"]


@pytest.mark.field("X4")
@every_pair
@pytest.mark.parametrize("accept", ["gzip", "br", "zstd", "identity", "gzip, deflate, br", None])
@pytest.mark.parametrize("form", ["gzip", "x-gzip", "deflate", "bare deflate", "gzip events"])
async def test_a_compressed_answer_arrives_in_the_form_its_client_reads(
    door: Door, front_era: str, upstream_era: str, accept: str | None, form: str
) -> None:
    async def answer(call: Call) -> None:
        raw = json.dumps(response(call.seen.id, {**text("hello"), "resultType": "complete"})).encode()
        assert "br" not in (call.seen.headers.get("Accept-Encoding") or "")
        if form == "gzip events":
            await call.stream([("Content-Encoding", "gzip")])
            packer = zlib.compressobj(wbits=31)
            note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "error", "data": "x"}}
            for event in (json.dumps(note).encode(), raw):
                await call.write(packer.compress(b"data: " + event + b"\n\n") + packer.flush(zlib.Z_SYNC_FLUSH))
            await call.write(packer.flush())
            await call.end()
            return
        packed = zlib.compress(raw) if "deflate" in form else gzip.compress(raw)
        packed = packed[2:-4] if form == "bare deflate" else packed
        await call.json(packed, headers=[("Content-Encoding", form.rsplit(maxsplit=1)[-1]), ("ETag", '"x"')])

    door.upstream(upstream_era).on["tools/call"] = answer
    front, headers = door.front(upstream_era), {"Accept-Encoding": accept}
    if front_era == "modern":
        got = await front.modern("tools/call", {"name": "echo"}, headers=headers)
    else:
        got = await (await front.initialize()).request("tools/call", {"name": "echo"}, headers=headers)
    assert got.said == "hello"
    assert "Content-Encoding" not in got.headers
    assert "ETag" not in got.headers


@pytest.mark.field("X4")
@either_front
@pytest.mark.parametrize(
    ("accept", "coding"),
    [("gzip", "gzip"), ("deflate, gzip;q=0", "deflate"), ("*", "gzip"), ("br", None), ("gzip;q=0", None), (None, None)],
)
async def test_a_large_answer_is_compressed_for_those_who_ask(
    door: Door, front_era: str, accept: str | None, coding: str | None
) -> None:
    door.modern.on["tools/call"] = text("x" * 100_000)
    door.legacy.on["tools/call"] = text("x" * 100_000)
    # who reads streams too gets one where the answer takes long, and streams are not compressed
    front, headers = door.front(front_era), {"Accept": "application/json", "Accept-Encoding": accept}
    if front_era == "modern":
        got = await front.modern("tools/call", {"name": "echo"}, headers=headers)
    else:
        got = await (await front.initialize()).request("tools/call", {"name": "echo"}, headers=headers)
    assert got.headers.get("Content-Encoding") == coding
    assert "Accept-Encoding" in (got.headers.get("Vary") or "")
    raw = {"gzip": gzip.decompress, "deflate": zlib.decompress, None: bytes}[coding](got.body)
    assert json.loads(raw)["result"]["content"][0]["text"] == "x" * 100_000


@pytest.mark.field("X4", "X6")
@every_pair
@pytest.mark.parametrize("coding", ["br", "zstd", "gzip, gzip", "gzip, br", "gzip!"])
async def test_an_answer_that_cannot_be_read_is_an_error_that_says_why(
    door: Door, front_era: str, upstream_era: str, coding: str
) -> None:
    async def answer(call: Call) -> None:
        await call.json(b"\x8b\x0b\x80 binary", headers=[("Content-Encoding", coding)])

    door.upstream(upstream_era).on["tools/list"] = answer
    got = await ask(door.front(upstream_era), front_era, "tools/list")
    assert got.code == -32603
    assert "Content-Encoding" in got.error["message"]
    assert upstream_era in got.error["message"]
    assert got.status == (502 if front_era == "modern" else 200)


@pytest.mark.field("X4")
@every_pair
@pytest.mark.parametrize("packed", [b"no gzip at all", gzip.compress(b"{}" * 99)[:-9]], ids=["none", "cut short"])
async def test_a_broken_coding_is_an_error(door: Door, front_era: str, upstream_era: str, packed: bytes) -> None:
    async def answer(call: Call) -> None:
        await call.json(packed, headers=[("Content-Encoding", "gzip")])

    door.upstream(upstream_era).on["tools/list"] = answer
    assert (await ask(door.front(upstream_era), front_era, "tools/list")).code == -32603


HOP = {
    "Connection": "X-Foo, keep-alive",
    "X-Foo": "hop",
    "X-Tenant": "acme",
    "Keep-Alive": "timeout=5",
    "TE": "trailers",
    "Proxy-Authorization": "Basic YTpi",
    "Proxy-Connection": "keep-alive",
    "Trailer": "X-Bar",
    "X-Forwarded-For": "203.0.113.9",
    "X-Forwarded-Host": "evil.example",
    "X-Forwarded-Proto": "https",
    "Forwarded": "for=203.0.113.9;host=evil.example",
    "Cookie": "a=b",
}
BACK = [
    *(("Connection", "X-Baz"), ("X-Baz", "hop"), ("Keep-Alive", "timeout=5"), ("Set-Cookie", "a=b"), ("Alt-Svc", "h3")),
    *(
        ("Server", "inner"),
        ("Mcp-Session-Id", "inner"),
        ("X-Powered-By", "inner"),
        ("Access-Control-Allow-Origin", "*"),
    ),
]


@pytest.mark.field("X7")
@every_pair
async def test_what_belongs_to_one_hop_ends_there_both_ways(
    bounded: Bounded, front_era: str, upstream_era: str
) -> None:
    async def answer(call: Call) -> None:
        result = {"tools": [], "resultType": "complete"}
        await call.json(response(call.seen.id, result), headers=BACK)

    gateway, upstreams = bounded
    upstream, front = upstreams[upstream_era], gateway.front(f"/{upstream_era}")
    upstream.on["tools/list"] = answer
    if front_era == "modern":
        got = await front.modern("tools/list", headers=HOP)
    else:
        got = await (await front.initialize(headers=HOP)).request("tools/list")
    sent = upstream.calls("tools/list")[-1].headers
    assert sent.all("X-Tenant") == ["acme"]
    for name in ("X-Foo", "Keep-Alive", "TE", "Proxy-Authorization", "Proxy-Connection", "Trailer", "Cookie"):
        assert name not in sent, name
    assert "evil" not in repr(sent)
    assert "203.0.113.9" not in repr(sent)
    assert "X-Foo" not in (sent.get("Connection") or "")
    names = {name.lower() for name, _ in got.headers.lines}
    assert not names & {name.lower() for name, _ in BACK} - {"connection", "server"}
    assert "inner" not in repr(got.headers)


@pytest.mark.field("X7")
async def test_a_trusted_proxy_is_believed() -> None:
    proxied = {
        "X-Forwarded-For": "203.0.113.9, 10.0.0.7",
        "X-Forwarded-Host": "mcp.example.com",
        "X-Forwarded-Proto": "https",
    }
    trust = {"trusted_proxies": ["127.0.0.0/8", "10.0.0.0/8"], "public_url": "https://mcp.example.com"}
    async with ModernUpstream() as upstream, running({"x": upstream}, **trust) as gateway:
        front = gateway.front("/x")
        assert (await front.modern("tools/call", {"name": "t"}, headers=proxied)).status == 200
        sent = upstream.calls("tools/call")[0].headers
        assert sent.get("X-Forwarded-For") == "203.0.113.9, 10.0.0.7, 127.0.0.1"
        assert sent.get("X-Forwarded-Host") == "mcp.example.com"
        assert sent.get("X-Forwarded-Proto") == "https"
        made_up = {**proxied, "X-Forwarded-For": "198.51.100.1, 203.0.113.9, 10.0.0.7"}
        assert (await front.modern("tools/call", {"name": "t"}, headers=made_up)).status == 200
        assert upstream.calls("tools/call")[1].headers.get("X-Forwarded-For") == "203.0.113.9, 10.0.0.7, 127.0.0.1"
        for wrong, status in (
            ({"X-Forwarded-Host": "evil.example"}, 403),
            ({"Forwarded": "host=evil.example"}, 400),
            ({"Forwarded": "nonsense"}, 400),
            ({"X-Forwarded-Proto": "gopher"}, 400),
        ):
            assert (await front.modern("tools/list", headers={**proxied, **wrong})).status == status, wrong
