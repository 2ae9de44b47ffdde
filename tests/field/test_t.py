"""Field report T1: whatever goes wrong on the way, a tool is executed at most once."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import pytest_asyncio

from tests.field.pairs import ask, either_front, either_upstream, every_pair
from tests.gateway_process import GatewayProcess, running
from tests.peers import LegacyUpstream, ModernUpstream
from tests.scripted import Call, Err, Json, Upstream

Quick = tuple[GatewayProcess, dict[str, Upstream]]
QUICK = {"timeouts": {"first_byte_s": 0.5, "total_s": 1.0, "idle_s": 0.5}}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def quick() -> AsyncIterator[Quick]:
    """A gateway before an upstream of each era, and one more with which it soon loses patience."""
    upstreams = {
        "legacy": LegacyUpstream(),
        "modern": ModernUpstream(),
        "quick-legacy": LegacyUpstream(),
        "quick-modern": ModernUpstream(),
    }
    for upstream in upstreams.values():
        await upstream.start()
    behind = {name: (upstream, QUICK if name.startswith("quick") else {}) for name, upstream in upstreams.items()}
    async with running(behind) as gateway:
        yield gateway, upstreams
    for upstream in upstreams.values():
        await upstream.stop()
        upstream.check()


async def silent(call: Call) -> None:
    await call.stay()
    call.close()


async def silent_stream(call: Call) -> None:
    await call.stream()
    await call.stay()
    call.close()


async def resets(call: Call) -> None:
    call.reset()


async def closes(call: Call) -> None:
    call.close()


async def breaks_off(call: Call) -> None:
    await call.raw(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
    call.close()


async def no_http(call: Call) -> None:
    await call.raw(b"\x16\x03\x01 nonsense\r\n\r\n")
    call.close()


def says(status: int, body: bytes = b"", *headers: tuple[str, str]) -> Callable[[Call], Awaitable[None]]:
    async def tool(call: Call) -> None:
        await call.reply(status, body, headers)

    return tool


def fails(code: int, status: int) -> Callable[[Call], Awaitable[Err]]:
    async def tool(call: Call) -> Err:
        return Err(code, "failed", status=status)

    return tool


EXECUTED: dict[str, Callable[[Call], Awaitable[Err | None]]] = {
    "no answer in time": silent,
    "a stream that says nothing": silent_stream,
    "500": says(500, b"<h1>Internal Server Error</h1>", ("Content-Type", "text/html")),
    "500 with a JSON-RPC error": fails(-32603, 500),
    "502": says(502),
    "503": says(503, b"", ("Retry-After", "1")),
    "504": says(504),
    "429": says(429, b"", ("Retry-After", "1")),
    "408": says(408),
    "200 with -32603": fails(-32603, 200),
    "200 with -32601": fails(-32601, 200),
    "200 empty": says(200),
    "202": says(202),
    "204": says(204),
    "400": says(400),
    "a reset": resets,
    "the end of the connection": closes,
    "half an answer": breaks_off,
    "no HTTP": no_http,
    "a redirect elsewhere": says(307, b"", ("Location", "http://127.0.0.1:9/mcp")),
    "a redirect by 302": says(302, b"", ("Location", "/other")),
}


@pytest.mark.field("T1")
@every_pair
@pytest.mark.parametrize("name", EXECUTED)
async def test_a_call_that_may_have_been_executed_is_not_sent_again(
    quick: Quick, front_era: str, upstream_era: str, name: str
) -> None:
    gateway, upstreams = quick
    route = f"quick-{upstream_era}" if EXECUTED[name] in (silent, silent_stream) else upstream_era
    upstream, front = upstreams[route], gateway.front(f"/{route}")
    upstream.reset()
    upstream.on["tools/call"] = EXECUTED[name]
    answer = await ask(front, front_era, "tools/call", {"name": "count"}, ident="t")
    assert answer.final["id"] == "t"
    assert answer.error["message"]
    if front_era == "legacy":
        assert answer.status == 200, "the session goes on"
    elif name in ("429", "503"):
        assert answer.status == int(name)
        assert answer.headers.get("Retry-After") == "1"
    assert len(upstream.calls("tools/call")) == 1
    upstream.reset()
    again = await ask(front, front_era, "tools/call", {"name": "echo"})
    assert "result" in again.final, "the next call finds a working upstream"
    upstream.check()


@pytest.mark.field("T1")
@either_front
@either_upstream
async def test_an_idle_connection_that_the_upstream_closed_costs_no_call(
    quick: Quick, front_era: str, upstream_era: str
) -> None:
    """The upstream hangs up after each answer and does not say so: the connection may be taken for a good one."""

    async def and_hangs_up(call: Call) -> None:
        await call.answer({"content": [], "resultType": "complete"})
        call.close()

    gateway, upstreams = quick
    upstream = upstreams[upstream_era]
    upstream.reset()
    upstream.on["tools/call"] = and_hangs_up
    for turn in range(1, 11):
        answer = await ask(gateway.front(f"/{upstream_era}"), front_era, "tools/call", {"name": "count"})
        assert "result" in answer.final, repr(answer)
        assert len(upstream.calls("tools/call")) == turn


@pytest.mark.field("T1")
@either_front
@either_upstream
async def test_an_upstream_that_is_away_is_an_error_until_it_is_back(
    quick: Quick, front_era: str, upstream_era: str
) -> None:
    gateway, upstreams = quick
    upstream, front = upstreams[upstream_era], gateway.front(f"/{upstream_era}")
    upstream.reset()
    session = await front.initialize()

    async def call() -> Json:
        params = {"name": "echo"}
        if front_era == "modern":
            return (await front.modern("tools/call", params)).final
        answer = await session.request("tools/call", params)
        assert answer.status == 200, "the session goes on"
        return answer.final

    assert "result" in await call()
    await upstream.stop()
    assert "error" in await call()
    await upstream.start()
    assert "result" in await call()
    assert len(upstream.calls("tools/call")) == 2
