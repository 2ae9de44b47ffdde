"""SIGTERM: streams end with their proper last message, calls end in peace, a second signal ends at once."""

import asyncio
import signal
from contextlib import AsyncExitStack

import pytest

from tests.gateway_process import GatewayProcess, running
from tests.http_wire import DEADLINE_S
from tests.peers import LegacyUpstream, ModernUpstream, text
from tests.raw_front import PREFIX, Front, Open
from tests.scripted import Call

MANY = 10


async def ended(gateway: GatewayProcess) -> int:
    async with asyncio.timeout(DEADLINE_S):
        return await gateway.process.wait()


async def last_words(stream: Open) -> list[dict[str, object]]:
    """What a listen stream says after its acknowledgement, up to its proper end."""
    return [message for message in await stream.rest() if message.get("method") != ACKNOWLEDGED]


ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


@pytest.mark.field("L10", "S2")
@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_listeners_get_the_result_then_the_cancel_each_with_its_own_id(era: str) -> None:
    async with (
        LegacyUpstream(get_stream=True) as legacy,
        ModernUpstream() as modern,
        running({"legacy": legacy, "modern": modern}) as gateway,
        AsyncExitStack() as streams,
    ):
        wanted = {"notifications": {"toolsListChanged": True}}
        front = gateway.front(f"/{era}")
        opened = [
            await streams.enter_async_context(front.modern_open("subscriptions/listen", wanted, ident=ident))
            for ident in [*range(MANY), "a string"]
        ]
        for stream in opened:
            assert (await stream.message() or {})["method"] == ACKNOWLEDGED
        gateway.process.send_signal(signal.SIGTERM)
        for stream, ident in zip(opened, [*range(MANY), "a string"], strict=True):
            tag = {PREFIX + "subscriptionId": ident}
            result, cancel = await last_words(stream)
            assert result == {"jsonrpc": "2.0", "id": ident, "result": {"resultType": "complete", "_meta": tag}}
            assert cancel["method"] == "notifications/cancelled"
            assert cancel["params"] == {"requestId": ident, "_meta": tag}
        assert await ended(gateway) == 0


@pytest.mark.field("L10")
@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_standalone_streams_of_legacy_clients_end_properly(era: str) -> None:
    async with (
        LegacyUpstream(get_stream=True) as legacy,
        ModernUpstream() as modern,
        running({"legacy": legacy, "modern": modern}) as gateway,
        AsyncExitStack() as streams,
    ):
        sessions = [await gateway.front(f"/{era}").initialize() for _ in range(MANY)]
        opened = [await streams.enter_async_context(session.get()) for session in sessions]
        assert [stream.status for stream in opened] == [200] * MANY
        gateway.process.send_signal(signal.SIGTERM)
        for stream in opened:
            assert await stream.rest() == []
        assert await ended(gateway) == 0


@pytest.mark.field("L11")
@pytest.mark.parametrize("upstream_era", ["modern", "legacy"])
@pytest.mark.parametrize("front_era", ["modern", "legacy"])
async def test_calls_under_way_are_finished(front_era: str, upstream_era: str) -> None:
    began, release = asyncio.Semaphore(0), asyncio.Event()

    async def slow(_: Call) -> dict[str, object]:
        began.release()
        await release.wait()
        return text("done")

    async with (
        LegacyUpstream() as legacy,
        ModernUpstream() as modern,
        running({"legacy": legacy, "modern": modern}) as gateway,
    ):
        upstream = legacy if upstream_era == "legacy" else modern
        upstream.on["tools/call"] = slow
        front = gateway.front(f"/{upstream_era}")
        call = ("tools/call", {"name": "t", "arguments": {}})
        if front_era == "modern":
            calls = [asyncio.create_task(front.modern(*call, ident=n)) for n in range(MANY)]
        else:
            session = await front.initialize()
            calls = [asyncio.create_task(session.request(*call, ident=n)) for n in range(MANY)]
        async with asyncio.timeout(DEADLINE_S):
            for _ in calls:
                await began.acquire()
        gateway.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(DEADLINE_S):  # the listener stops before anything else
            while True:
                try:
                    _, writer = await asyncio.open_connection(front.host, front.port)
                except ConnectionError:  # refused, or reset where it was still queued
                    break
                writer.close()
        release.set()
        for n, answer in enumerate(await asyncio.gather(*calls)):
            assert answer.final["id"] == n
            assert answer.result["content"] == text("done")["content"]
        assert await ended(gateway) == 0


async def test_a_call_that_outlasts_the_grace_period_is_cut_off_and_cancelled_upstream() -> None:
    began, cancelled = asyncio.Event(), asyncio.Event()

    async def endless(call: Call) -> None:
        await call.stream()
        began.set()
        await call.stay()
        cancelled.set()

    async with ModernUpstream() as modern, running({"modern": modern}, grace_s=0.1) as gateway:
        modern.on["tools/call"] = endless
        call = asyncio.create_task(gateway.front("/modern").modern("tools/call", {"name": "t", "arguments": {}}))
        async with asyncio.timeout(DEADLINE_S):
            await began.wait()
            gateway.process.send_signal(signal.SIGTERM)
            await cancelled.wait()
        await asyncio.gather(call, return_exceptions=True)
        assert await ended(gateway) == 0


async def test_a_second_signal_does_not_wait_for_anything() -> None:
    began = asyncio.Event()

    async def endless(call: Call) -> None:
        await call.stream()
        began.set()
        await call.stay()

    async with ModernUpstream() as modern, running({"modern": modern}, grace_s=3600) as gateway:
        modern.on["tools/call"] = endless
        call = asyncio.create_task(gateway.front("/modern").modern("tools/call", {"name": "t", "arguments": {}}))
        async with asyncio.timeout(DEADLINE_S):
            await began.wait()
        gateway.process.send_signal(signal.SIGTERM)
        gateway.process.send_signal(signal.SIGINT)
        await asyncio.gather(call, return_exceptions=True)
        assert await ended(gateway) == 0


@pytest.mark.field("L10", "L11")
async def test_the_streams_of_calls_run_to_their_end_when_listeners_have_had_theirs() -> None:
    began, release = asyncio.Semaphore(0), asyncio.Event()

    async def slow(call: Call) -> dict[str, object]:
        await call.stream()
        began.release()
        await release.wait()
        return text("done")

    async with (
        ModernUpstream() as modern,
        running({"modern": modern}, admin="127.0.0.1:0") as gateway,
        AsyncExitStack() as streams,
    ):
        modern.on["tools/call"] = slow
        front, ready = gateway.front("/modern"), Front(gateway.admin_url).at("/readyz")
        wanted = {"notifications": {"toolsListChanged": True}}
        listeners = [
            await streams.enter_async_context(front.modern_open("subscriptions/listen", wanted, ident=n))
            for n in range(MANY)
        ]
        for stream in listeners:
            assert (await stream.message() or {})["method"] == ACKNOWLEDGED
        calls = [
            asyncio.create_task(front.modern("tools/call", {"name": "t", "arguments": {}}, ident=n))
            for n in range(MANY)
        ]
        async with asyncio.timeout(DEADLINE_S):
            for _ in calls:
                await began.acquire()
            assert (await ready.send("GET", {})).status == 200
            gateway.process.send_signal(signal.SIGTERM)
            for stream in listeners:
                assert [m.get("method") for m in await last_words(stream)] == [None, "notifications/cancelled"]
            assert (await ready.send("GET", {})).status == 503
            assert not any(call.done() for call in calls)
            release.set()
            for answer in await asyncio.gather(*calls):
                assert answer.result["content"] == text("done")["content"]
        assert await ended(gateway) == 0
