"""`docs/limits.md` against the gateway: the defaults are those of the settings, and every row with a status is met."""

import asyncio
import gzip
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from policies.mcp import APPS_EXTENSION
from policies.settings import Settings
from tests.edge.process import connections, until
from tests.gateway_process import GatewayProcess, running
from tests.http_wire import DEADLINE_S, Buffered, header_bytes, read_head
from tests.peers import ModernUpstream, text
from tests.raw_front import Answer, Front, modern_headers, modern_request, request
from tests.scripted import Call

pytestmark = pytest.mark.asyncio(loop_scope="module")

TEXT = (Path(__file__).parents[2] / "docs" / "limits.md").read_text()
_ROW = re.compile(r"^\| ([^|]+?) \| ([^|]+?) \| [^|]+? \| (\d+) \| (-\d+) \|$", re.MULTILINE)
ROWS = {row[0].strip("`"): row[1:] for row in _ROW.findall(TEXT)}
ALL = {row[0]: row[1] for row in re.findall(r"^\| `([a-z_.]+)` \| ([^|]+?) \|", TEXT, re.MULTILINE)}
SMALL: dict[str, Any] = {
    "limits": {"max_body_bytes": 65536, "max_head_bytes": 16384, "max_depth": 32, "max_batch": 2}
    | {"max_response_bytes": 4096, "max_event_bytes": 2048, "max_app_bytes": 1024},
    "streams": {"max_http_sse": 1},
    "connections": {"head_s": 0.3, "body_s": 0.3, "write_stall_s": 0.5, "max": 20, "max_per_peer": 10},
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scripted() -> AsyncIterator[ModernUpstream]:
    async with ModernUpstream() as modern:
        yield modern


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(scripted: ModernUpstream) -> AsyncIterator[GatewayProcess]:
    waits = {"timeouts": {"first_byte_s": 0.5, "total_s": 1.0}, "tools": {"slow_*": {"total_s": 0.6}}}
    routes = [{"path": "/x", "http_sse": "/sse", "upstream": "x"}]
    async with running({"x": (scripted, waits)}, routes=routes, **SMALL) as process:
        yield process


async def _large_head(front: Front, upstream: ModernUpstream) -> Answer:
    return await front.modern("tools/list", headers={f"X-{number}": "a" * 5000 for number in range(4)})


async def _long_line(front: Front, upstream: ModernUpstream) -> Answer:
    return await front.modern("tools/list", headers={"X-Long": "a" * 8300})


async def _many_lines(front: Front, upstream: ModernUpstream) -> Answer:
    return await front.modern("tools/list", headers={f"X-{number}": "a" for number in range(130)})


async def _large_body(front: Front, upstream: ModernUpstream) -> Answer:
    return await front.modern("tools/call", {"name": "echo", "arguments": {"a": "x" * 70_000}})


async def _deep(front: Front, upstream: ModernUpstream) -> Answer:
    nested: Any = 1
    for _ in range(40):
        nested = [nested]
    return await front.modern("tools/call", {"name": "echo", "arguments": {"a": nested}})


async def _batch(front: Front, upstream: ModernUpstream) -> Answer:
    session = await front.initialize("2025-03-26")
    return await session.post([request("ping", ident=number) for number in range(3)])


async def _half_head(front: Front, upstream: ModernUpstream) -> Answer:
    return await _half(front, b"POST /x HTTP/1.1\r\nHost: ")


async def _half_body(front: Front, upstream: ModernUpstream) -> Answer:
    message = modern_request("tools/list")
    lines = {**front.posting(modern_headers(message)), "Host": f"{front.host}:{front.port}", "Content-Length": "100"}
    return await _half(front, header_bytes("POST /x HTTP/1.1", [(k, str(v)) for k, v in lines.items()]) + b"{")


async def _half(front: Front, data: bytes) -> Answer:
    reader, writer = await asyncio.open_connection(front.host, front.port)
    writer.write(data)
    try:
        async with asyncio.timeout(DEADLINE_S):
            stream = Buffered(reader)
            start, headers = await read_head(stream)
            body = await stream.exactly(int(headers.get("Content-Length") or 0))
            return Answer(int(start.split(" ")[1]), headers, body, True)
    finally:
        writer.close()


async def _crowd(front: Front, upstream: ModernUpstream) -> Answer:
    held = [await asyncio.open_connection(front.host, front.port) for _ in range(10)]
    try:
        answer = await front.modern("tools/list")
    finally:
        for _, writer in held:
            writer.close()
    assert answer.headers.get("Retry-After") == "5"
    return answer


async def _second_stream(front: Front, upstream: ModernUpstream) -> Answer:
    accept = {"Accept": "text/event-stream"}
    async with front.at("/sse").open("GET", accept):
        return await front.at("/sse").send("GET", accept)


async def _coded(front: Front, upstream: ModernUpstream) -> Answer:
    answer = await front.modern("tools/list", headers={"Content-Encoding": "br"})
    assert answer.headers.get("Accept-Encoding") == "gzip, deflate"
    return answer


async def _members(front: Front, upstream: ModernUpstream) -> Answer:
    message = modern_request("tools/list")
    headers = {**modern_headers(message), "Content-Encoding": "gzip"}
    return await front.post(gzip.compress(b" ") * 1100 + gzip.compress(json.dumps(message).encode()), headers)


async def _large_result(front: Front, upstream: ModernUpstream) -> Answer:
    upstream.on["tools/call"] = text("x" * 5000)
    return await front.modern("tools/call", {"name": "echo"}, headers={"Accept": "application/json"})


async def _large_event(front: Front, upstream: ModernUpstream) -> Answer:
    async def answer(call: Call) -> dict[str, Any]:
        await call.stream()
        return text("x" * 3000)

    upstream.on["tools/call"] = answer
    return await front.modern("tools/call", {"name": "echo"}, headers={"Accept": "application/json"})


async def _large_app(front: Front, upstream: ModernUpstream) -> Answer:
    mime = "text/html;profile=mcp-app"
    upstream.on["resources/read"] = {"contents": [{"uri": "ui://a", "mimeType": mime, "text": "x" * 1500}]}
    shows = {"extensions": {APPS_EXTENSION: {"mimeTypes": [mime]}}}
    return await front.modern("resources/read", {"uri": "ui://a"}, capabilities=shows)


async def _silent(front: Front, upstream: ModernUpstream) -> Answer:
    async def answer(call: Call) -> None:
        await call.gone()
        call.begun = True

    upstream.on["tools/call"] = answer
    return await front.modern("tools/call", {"name": "echo"})


async def _endless(front: Front, upstream: ModernUpstream) -> Answer:
    async def answer(call: Call) -> None:
        await call.stream()
        await call.gone()

    upstream.on["tools/call"] = answer
    return await front.modern("tools/call", {"name": "slow_one"}, headers={"Accept": "application/json"})


PROVOKED: dict[str, Callable[[Front, ModernUpstream], Awaitable[Answer]]] = {
    "limits.max_body_bytes": _large_body,
    "limits.max_head_bytes": _large_head,
    "header line": _long_line,
    "header lines": _many_lines,
    "limits.max_depth": _deep,
    "limits.max_batch": _batch,
    "connections.head_s": _half_head,
    "connections.body_s": _half_body,
    "connections.max_per_peer": _crowd,
    "streams.max_http_sse": _second_stream,
    "content codings": _coded,
    "gzip members": _members,
    "limits.max_response_bytes": _large_result,
    "limits.max_event_bytes": _large_event,
    "limits.max_app_bytes": _large_app,
    "upstreams.timeouts.first_byte_s": _silent,
    "upstreams.timeouts.total_s": _endless,
}


@pytest.mark.parametrize("limit", PROVOKED)
async def test_each_limit_is_met_with_its_status_and_code(
    gateway: GatewayProcess, scripted: ModernUpstream, limit: str
) -> None:
    scripted.reset()
    await until(lambda: connections(gateway) == 0)
    _, status, code = ROWS[limit]
    answer = await PROVOKED[limit](gateway.front("/x"), scripted)
    assert (answer.status, answer.code) == (int(status), int(code)), repr(answer)
    if limit.startswith(("limits.max_body", "limits.max_head", "connections.")):
        assert limit in answer.error["message"]


async def test_more_connections_than_there_may_be_are_503(scripted: ModernUpstream) -> None:
    async with running({"x": scripted}, connections={"max": 5}) as process:
        front = process.front("/x")
        held = [await asyncio.open_connection(front.host, front.port) for _ in range(5)]
        answer = await front.modern("tools/list")
        _, status, code = ROWS["connections.max"]
        assert (answer.status, answer.code) == (int(status), int(code))
        assert "connections.max" in answer.error["message"]
        for _, writer in held:
            writer.close()
        await until(lambda: connections(process) == 0)
        assert (await front.modern("tools/list")).status == 200


async def test_a_client_that_never_reads_is_cut_off(scripted: ModernUpstream) -> None:
    async def endless(call: Call) -> None:
        await call.stream()
        try:
            while True:
                await call.notify("notifications/message", {"level": "error", "data": "x" * 200_000})
        except ConnectionError:
            call.broken = True

    scripted.reset()
    scripted.on["tools/call"] = endless
    message = modern_request("tools/call", {"name": "echo"}, meta={"io.modelcontextprotocol/logLevel": "debug"})
    async with running({"x": scripted}, connections={"write_stall_s": 0.5}) as gateway:
        front = gateway.front("/x")
        async with front.sent("POST", front.posting(modern_headers(message)), json.dumps(message).encode()):
            await scripted.seen("tools/call")
            await until(lambda: connections(gateway) == 0)


async def test_every_row_is_provoked_and_every_default_is_the_settings() -> None:
    assert ROWS.keys() == PROVOKED.keys() | {"connections.max"}
    document = {"upstreams": {"x": {"url": "http://127.0.0.1:1"}}, "routes": [{"path": "/x", "upstream": "x"}]}
    settings = Settings.model_validate(document)
    for name, default in ALL.items():
        value: Any = settings.upstreams["x"] if name.startswith("upstreams.") else settings
        for part in name.removeprefix("upstreams.").split("."):
            value = getattr(value, part)
        assert float(default) == float(value), name
