"""Requests of which the gateway has answered one like them: answered again without being read, and never where what
makes them unlike would matter.
"""

import asyncio
import gzip
import json
import re
import ssl
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.cache.conftest import MAX_BYTES
from tests.cache.tagging import Tagging
from tests.cache.test_what_is_kept import how
from tests.certificates import issue
from tests.gateway.test_keys import CI, OPS, STRANGER, bearer, digest
from tests.gateway.test_reload import serving
from tests.gateway_process import GatewayProcess, running, settings
from tests.http_wire import DEADLINE_S, header_bytes
from tests.peers import ModernUpstream
from tests.raw_front import Answer, Front, Overrides, modern_headers, modern_request
from tests.scrape import scrape, value

pytestmark = pytest.mark.asyncio(loop_scope="session")

ORIGIN = "https://app.example"
KEPT: dict[str, Any] = {
    "admin": "127.0.0.1:0",
    "cache": {"max_bytes": MAX_BYTES},
    "limits": {"compress_from_bytes": 256},
    "connections": {"body_s": 0.3},
    "origins": [ORIGIN],
}


def keyed(*keys: str) -> dict[str, Any]:
    return {f"client-{index}": {"keys": [digest(key)], "routes": ["/mcp"]} for index, key in enumerate(keys)}


@dataclass(frozen=True, slots=True)
class Desk:
    gateway: GatewayProcess
    tagging: Tagging

    @property
    def front(self) -> Front:
        return self.gateway.front("/mcp")

    async def repeats(self) -> float:
        return value(await scrape(self.gateway), "mcp_front_door_cache_repeats_total")

    async def ask(self, ident: bytes = b"1", headers: Overrides | None = None, **more: Any) -> Answer:
        return await self.front.post(body(ident, **more), {**HEADERS, **(headers or {})})

    async def known(self, **more: Any) -> None:
        """From now on such a request is answered at once."""
        for _ in range(2):
            assert (await self.ask(**more)).status == 200
        before = await self.repeats()
        assert (await self.ask(**more)).status == 200
        assert await self.repeats() == before + 1


MESSAGE = modern_request("tools/list", {}, ident=8080)
HEADERS: dict[str, Any] = {**modern_headers(MESSAGE), **bearer(CI)}


def body(ident: bytes = b"1", **more: Any) -> bytes:
    """A list of this id, as JSON."""
    return json.dumps({**MESSAGE, **more}).encode().replace(b"8080", ident, 1)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_desk() -> AsyncIterator[Desk]:
    async with (
        ModernUpstream() as upstream,
        running({"mcp": upstream}, clients=keyed(CI, OPS), **KEPT) as gateway,
    ):
        yield Desk(gateway, Tagging(upstream))


@pytest_asyncio.fixture(loop_scope="session")
async def desk(shared_desk: Desk) -> AsyncIterator[Desk]:
    yield shared_desk
    shared_desk.gateway.check()


IDS = {
    "a number": (b"1", b"7"),
    "a number below zero": (b"-1", b"-9"),
    "fifteen digits": (b"123456789012345", b"999999999999999"),
    "a string": (b'"abc"', b'"x y"'),
    "a string of digits": (b'"1"', b'"2"'),
    "an empty string": (b'""', b'""'),
}


@pytest.mark.parametrize("kind", IDS)
async def test_the_answer_is_that_of_the_ordinary_way_with_the_id_as_it_came(desk: Desk, kind: str) -> None:
    first, other = IDS[kind]
    assert (await desk.ask(first)).status == 200
    [ordinary, *_] = [await desk.ask(first, {"traceparent": "00-" + "a" * 32 + "-" + "b" * 16 + "-00"})]
    await desk.known(ident=first)
    before = await desk.repeats()
    again = await desk.ask(other)
    assert await desk.repeats() == before + 1
    assert how(ordinary) == how(again) == "cache;desc=hit"
    assert again.body.startswith(b'{"jsonrpc":"2.0","id":%b,' % other)
    assert [name for name, _ in again.headers.lines] == [name for name, _ in ordinary.headers.lines]
    unlike = {"Date", "Content-Length"}
    assert [line for line in again.headers.lines if line[0] not in unlike] == [
        line for line in ordinary.headers.lines if line[0] not in unlike
    ]
    assert again.result["ttlMs"] <= ordinary.result["ttlMs"]
    assert {**again.result, "ttlMs": 0} == {**ordinary.result, "ttlMs": 0}


READ: dict[str, tuple[dict[str, Any], dict[str, Any], Any]] = {
    # headers, members, the id of the answer
    "an escaped id": ({}, {"ident": b'"\\u0061"'}, "a"),
    "an id of sixteen digits": ({}, {"ident": b"1234567890123456"}, 1234567890123456),
    "an id in the letters of a language": ({}, {"ident": '"é"'.encode()}, "é"),
    "a member of params called id": (
        {},
        {"params": {"id": 1, **MESSAGE["params"]}, "id": 1, "method": "tools/list"},
        1,
    ),
    "trace context": ({"traceparent": "00-" + "a" * 32 + "-" + "b" * 16 + "-00"}, {}, 1),
    "a connection that ends with it": ({"Connection": "close"}, {}, 1),
    "a connection that ends with it, as one of two lines says": ({"Connection": ["keep-alive", "close"]}, {}, 1),
    "deflate": ({"Accept-Encoding": "deflate"}, {}, 1),
    "an event stream": ({"Accept": "text/event-stream"}, {}, 1),
    "unknown metadata": ({}, {"params": {"_meta": {**MESSAGE["params"]["_meta"], "com.example/a": 1}}}, 1),
}


@pytest.mark.parametrize("kind", READ)
async def test_what_is_not_alike_is_read_each_time(desk: Desk, kind: str) -> None:
    headers, more, ident = READ[kind]
    await desk.known()
    before = await desk.repeats()
    for _ in range(3):
        found = await desk.ask(headers=headers, **more)
        if kind == "deflate":
            found.body = zlib.decompress(found.body)
        assert (found.status, found.final["id"]) == (200, ident)
    assert await desk.repeats() == before


REFUSED: dict[str, tuple[dict[str, Any], bytes, int]] = {
    "no key": ({"Authorization": None}, body(), 401),
    "an unknown key": (bearer(STRANGER), body(), 401),
    "two keys": ({"Authorization": [f"Bearer {CI}", f"Bearer {OPS}"]}, body(), 400),
    "a foreign Host": ({"Host": "evil.example"}, body(), 403),
    "a foreign Origin": ({"Origin": "https://evil.example"}, body(), 403),
    "another method in the head": ({"Mcp-Method": "prompts/list"}, body(), 400),
    "another revision in the head": ({"MCP-Protocol-Version": "2025-11-25"}, body(), 400),
    "another content type": ({"Content-Type": "text/plain"}, body(), 415),
    "two lengths": ({"Content-Length": [str(len(body())), "0"]}, body(), 400),
    "a length and chunks": ({"Transfer-Encoding": "chunked"}, body(), 400),
    "an id twice": ({}, body().replace(b'"id": 1', b'"id": 1, "id": 1'), 400),
    "a method twice": ({}, body().replace(b'"method"', b'"method": "ping", "method"'), 400),
    "an id that is an object": ({}, body(b'{"a":1}'), 400),
    "no JSON": ({}, body()[:-1] + b"]", 400),
    "no version of JSON-RPC": ({}, body().replace(b'"2.0"', b'"1.0"'), 400),
}


@pytest.mark.parametrize("kind", REFUSED)
async def test_what_is_refused_is_refused_as_often_as_it_comes(desk: Desk, kind: str) -> None:
    headers, raw, status = REFUSED[kind]
    await desk.known()
    before = await desk.repeats()
    for _ in range(3):
        assert (await desk.front.post(raw, {**HEADERS, **headers})).status == status
    assert await desk.repeats() == before


async def test_a_page_of_an_allowed_origin_is_told_so_each_time(desk: Desk) -> None:
    await desk.known(headers={"Origin": ORIGIN})
    before = await desk.repeats()
    found = await desk.ask(b"2", {"Origin": ORIGIN})
    assert found.headers.get("Access-Control-Allow-Origin") == ORIGIN
    assert await desk.repeats() == before + 1
    assert (await desk.ask(b"3")).headers.get("Access-Control-Allow-Origin") is None


async def test_it_is_compressed_for_those_who_ask_and_no_others(desk: Desk) -> None:
    plain = await desk.ask()
    wants = {"Accept-Encoding": "gzip, deflate"}
    for _ in range(2):
        await desk.ask(headers=wants)
    before = await desk.repeats()
    small = await desk.ask(b"5", wants)
    assert await desk.repeats() == before + 1
    assert (small.headers.get("Content-Encoding"), small.headers.get("Vary")) == ("gzip", "Accept-Encoding")
    said = json.loads(gzip.decompress(small.body))
    assert said["id"] == 5
    assert {**said["result"], "ttlMs": 0} == {**plain.result, "ttlMs": 0}
    assert (await desk.ask(b"6")).final["id"] == 6


async def test_what_is_purged_is_not_given_again(desk: Desk) -> None:
    await desk.known()
    desk.tagging.made += 1
    admin = Front(desk.gateway.admin_url).at("/admin/cache/purge")
    assert (await admin.send("POST", {})).status == 200
    found = await desk.ask()
    assert found.result["tools"][0]["description"] == str(desk.tagging.made)


# connections


def written(ident: bytes, **more: str) -> tuple[bytes, bytes]:
    """Head and body of a whole request."""
    raw = body(ident)
    lines = {"Host": "127.0.0.1", **Front.posting(HEADERS), "Content-Length": str(len(raw)), **more}
    return header_bytes("POST /mcp HTTP/1.1", list(lines.items())), raw  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Line:
    """A connection on which requests follow each other."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()

    async def answer(self) -> tuple[int, Any]:
        """The next answer's status and, where it is a good one, its id."""
        async with asyncio.timeout(DEADLINE_S):
            head = await self.reader.readuntil(b"\r\n\r\n")
            status, length = int(head.split()[1]), re.search(rb"Content-Length: ([0-9]+)", head)
            raw = await self.reader.readexactly(int(length[1])) if length is not None else b""
        return status, json.loads(raw)["id"] if status == 200 else None


@asynccontextmanager
async def lasting(desk: Desk, tls: ssl.SSLContext | None = None) -> AsyncIterator[Line]:
    to = {"ssl": tls, "server_hostname": "localhost"} if tls is not None else {}
    reader, writer = await asyncio.open_connection(desk.front.host, desk.front.port, **to)  # type: ignore[arg-type]
    try:
        yield Line(reader, writer)
    finally:
        writer.close()


async def test_a_connection_goes_on_whichever_way_its_requests_go(desk: Desk) -> None:
    """In pieces as they come, several at once, and one that must be read among them."""
    head, raw = written(b"10")
    other = written(b"11")[1]
    async with lasting(desk) as line:
        for _ in range(2):
            await line.send(head + raw)
            assert await line.answer() == (200, 10)
        before = await desk.repeats()
        ways = [[head + raw], [head, raw], [head[:40], head[40:] + raw], [head, raw[:20], raw[20:]], [head + raw[:9]]]
        for pieces in ways:
            await line.send(*pieces, raw[9:] if pieces == ways[-1] else b"")
            assert await line.answer() == (200, 10)
        await line.send(head + raw + head + other)
        assert [await line.answer() for _ in range(2)] == [(200, 10), (200, 11)]
        await line.send(*written(b'"\\n"'))
        assert await line.answer() == (200, "\n")
        await line.send(head + other)
        assert await line.answer() == (200, 11)
        assert await desk.repeats() >= before + 2


async def test_a_client_that_waits_to_be_asked_for_its_body_is_asked(desk: Desk) -> None:
    head, raw = written(b"10", Expect="100-continue")
    async with lasting(desk) as line:
        for _ in range(3):
            await line.send(head)
            assert await line.answer() == (100, None)
            await line.send(raw)
            assert await line.answer() == (200, 10)


@pytest.mark.parametrize("ends", [False, True], ids=["that is not sent", "whose client ends"])
async def test_a_body_of_a_known_request_is_not_waited_for_longer_than_any(desk: Desk, ends: bool) -> None:
    head, raw = written(b"10")
    async with lasting(desk) as line:
        for _ in range(3):
            await line.send(head + raw)
            assert await line.answer() == (200, 10)
        await line.send(head + raw[:9])
        if ends:
            line.writer.write_eof()
        assert await line.answer() == (400 if ends else 408, None)


async def test_a_key_that_is_taken_away_is_refused_from_the_reload_on(tmp_path: Path) -> None:
    async with ModernUpstream() as upstream:
        both = settings({"mcp": upstream}, clients=keyed(CI, OPS), **KEPT)
        one = settings({"mcp": upstream}, clients=keyed(OPS), **KEPT)
        async with serving(tmp_path, both) as live:
            desk = Desk(live.gateway, Tagging(upstream))
            await desk.known()
            live.write(one)
            live.hang_up()
            async with asyncio.timeout(DEADLINE_S):
                while (await desk.ask()).status != 401:
                    pass
            before = await desk.repeats()
            for _ in range(3):
                assert (await desk.ask()).status == 401
            assert await desk.repeats() == before
            await desk.known(headers=bearer(OPS))


async def test_what_one_configuration_knows_another_does_not(tmp_path: Path) -> None:
    """The same request by the same client, at a route that leads elsewhere now."""
    async with ModernUpstream() as first, ModernUpstream() as second:
        shops = [Tagging(upstream, made=number) for number, upstream in enumerate((first, second))]
        clients = keyed(CI)
        async with serving(tmp_path, settings({"mcp": first}, clients=clients, **KEPT)) as live:
            desk = Desk(live.gateway, shops[0])
            await desk.known()
            live.write(settings({"mcp": second}, clients=clients, **KEPT))
            live.hang_up()
            async with asyncio.timeout(DEADLINE_S):
                while (await desk.ask()).result["tools"][0]["description"] != "1":
                    pass
            await desk.known()
            assert (await desk.ask()).result["tools"][0]["description"] == "1"


async def test_a_large_list_over_tls_is_whole_each_time(tmp_path: Path) -> None:
    ca = issue(tmp_path, "ca", None, authority=True)
    issue(tmp_path, "server", ca, names=["localhost"], address="127.0.0.1")
    tls = {"cert": str(tmp_path / "server.pem"), "key": str(tmp_path / "server.key")}
    trusting = ssl.create_default_context(cafile=tmp_path / "ca.pem")
    head, raw = written(b"10")
    async with ModernUpstream() as upstream, running({"mcp": upstream}, clients=keyed(CI), tls=tls, **KEPT) as gateway:
        desk = Desk(gateway, Tagging(upstream, long="x" * 300_000))
        async with lasting(desk, trusting) as line:
            async with asyncio.timeout(DEADLINE_S):
                while await desk.repeats() < 2:  # one that comes while the last is being ended goes the ordinary way
                    await line.send(head + raw)
                    assert await line.answer() == (200, 10)


async def test_what_a_trusted_proxy_says_is_looked_at_each_time(tmp_path: Path) -> None:
    async with (
        ModernUpstream() as upstream,
        running({"mcp": upstream}, clients=keyed(CI), trusted_proxies=["127.0.0.1"], **KEPT) as gateway,
    ):
        desk = Desk(gateway, Tagging(upstream))
        said = {"X-Forwarded-Host": "127.0.0.1", "X-Forwarded-For": "192.0.2.1"}
        await desk.known(headers=said)
        before = await desk.repeats()
        for _ in range(2):
            assert (await desk.ask(headers={**said, "X-Forwarded-Host": "evil.example"})).status == 403
            assert (await desk.ask(headers={**said, "Forwarded": "host=evil.example"})).status == 400
        assert await desk.repeats() == before


async def test_of_many_requests_the_oldest_is_forgotten(desk: Desk) -> None:
    """More than is remembered, each as large as may be."""
    pads = [f"{number:04}" + "x" * 7000 for number in range(600)]

    async def some(first: int) -> None:
        for pad in pads[first::8]:
            assert (await desk.ask(headers={"X-Pad": pad})).status == 200

    await asyncio.gather(*(some(first) for first in range(8)))
    before = await desk.repeats()
    await desk.ask(headers={"X-Pad": pads[0]})
    assert await desk.repeats() == before
    await desk.ask(headers={"X-Pad": pads[-1]})
    assert await desk.repeats() == before + 1
