"""SIGTERM in the worst moments: the gateway ends by itself, with exit code 0 and nothing forgotten in its log.

Each test ends well before its deadline only if nothing waits for what never comes; `running` asserts the rest.
"""

import asyncio
import json
import signal
from collections.abc import Awaitable, Callable

import pytest

from tests.gateway_process import GatewayProcess, running
from tests.http_wire import DEADLINE_S, read_body, read_head
from tests.peers import LegacyUpstream, ModernUpstream
from tests.raw_front import Front, modern_headers, modern_request, request
from tests.scripted import Call, Upstream

FOREVER_S = 3600
CALL = modern_request("tools/call", {"name": "echo", "arguments": {}})
ROUTES = pytest.mark.parametrize("route", ["legacy", "modern"])


async def hang(call: Call) -> None:
    call.begun = True
    await call.stay()


async def ended(gateway: GatewayProcess) -> int:
    async with asyncio.timeout(DEADLINE_S):
        return await gateway.process.wait()


async def call_modern(front: Front) -> None:
    await front.post(CALL, modern_headers(CALL))


async def call_legacy(front: Front) -> None:
    await (await front.initialize()).request("tools/call", {"name": "echo", "arguments": {}})


@ROUTES
@pytest.mark.parametrize("calls", [call_modern, call_legacy])
@pytest.mark.parametrize(("grace_s", "signals"), [(0, 1), (FOREVER_S, 2)], ids=["no grace", "a second signal"])
async def test_a_call_that_never_ends_does_not_hold_the_process(
    route: str, calls: Callable[[Front], Awaitable[None]], grace_s: float, signals: int
) -> None:
    async with LegacyUpstream() as legacy, ModernUpstream() as modern:
        upstream: Upstream = legacy if route == "legacy" else modern
        upstream.on["tools/call"] = hang
        async with running({"legacy": legacy, "modern": modern}, grace_s=grace_s) as gateway:
            client = asyncio.create_task(calls(gateway.front(f"/{route}")))
            await upstream.seen("tools/call")
            for _ in range(signals):
                gateway.process.send_signal(signal.SIGTERM)
                await nobody_listens(gateway)
            assert await ended(gateway) == 0
            if route == "legacy":
                [told] = await upstream.seen("notifications/cancelled")
                assert told.params["requestId"] == upstream.calls("tools/call")[0].id
            client.cancel()
            await asyncio.wait({client})


async def nobody_listens(gateway: GatewayProcess) -> None:
    """Returns when the first signal has been taken: no new connection is accepted any more."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            try:
                async with gateway.front().connected():
                    await asyncio.sleep(0)
            except ConnectionError:
                return


async def test_an_idle_connection_does_not_hold_the_process() -> None:
    async with ModernUpstream() as modern, running({"modern": modern}, grace_s=FOREVER_S) as gateway:
        front = gateway.front("/modern")
        message = modern_request("tools/list")
        headers = Front.posting(modern_headers(message))
        async with front.sent("POST", headers, json.dumps(message).encode()) as (stream, _), front.connected():
            _, got = await read_head(stream)
            assert json.loads(await read_body(stream, got, response=True))["result"]["tools"]
            async with front.connected() as (_, writer):
                writer.write(b"POST /modern HT")
                await writer.drain()
                gateway.process.send_signal(signal.SIGTERM)
                assert await ended(gateway) == 0


async def test_an_upstream_that_does_not_let_go_of_its_sessions_does_not_hold_the_process() -> None:
    async with LegacyUpstream() as legacy:

        async def deaf(call: Call) -> bool:
            if call.seen.verb == "DELETE":
                await hang(call)
            return call.begun

        legacy.on_http = deaf
        async with running({"legacy": (legacy, {"timeouts": {"first_byte_s": FOREVER_S}})}) as gateway:
            assert (await gateway.front("/legacy").modern("tools/list")).result["tools"]
            gateway.process.send_signal(signal.SIGTERM)
            assert await ended(gateway) == 0
            assert [seen.verb for seen in legacy.requests].count("DELETE") == 1


@ROUTES
async def test_a_client_that_does_not_read_does_not_hold_the_process(route: str) -> None:
    async def chatter(call: Call) -> None:
        params = {"level": "info", "data": "x" * 2**16}
        gone = asyncio.ensure_future(call.stay())
        while not gone.done():
            try:
                await call.notify("notifications/message", params)
            except ConnectionError:
                call.broken = True
                return

    async with LegacyUpstream() as legacy, ModernUpstream() as modern:
        upstream: Upstream = legacy if route == "legacy" else modern
        upstream.on["tools/call"] = chatter
        async with running({"legacy": legacy, "modern": modern}, grace_s=0.5) as gateway:
            session = await gateway.front(f"/{route}").initialize()
            body = json.dumps(request("tools/call", {"name": "echo"})).encode()
            async with gateway.front(f"/{route}").sent("POST", Front.posting(session.headers), body):
                await upstream.seen("tools/call")
                gateway.process.send_signal(signal.SIGTERM)
                assert await ended(gateway) == 0
