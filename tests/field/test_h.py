"""Field reports H1, H3, H4, Z1: a cancel, as the client's era has it, reaches the upstream as its own does."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.door import Door
from tests.field.pairs import ask, either_front, either_upstream, every_pair
from tests.gateway_process import GatewayProcess, running
from tests.http_wire import DEADLINE_S
from tests.peers import LegacyUpstream, ModernUpstream
from tests.raw_front import CLIENT_INFO, modern_headers, modern_request, request, reset
from tests.scrape import gauges, settled, value
from tests.scripted import Call


class Slow:
    """A tool that says it has begun, and then waits until it is told to finish or its caller goes."""

    def __init__(self, *, speaks: bool) -> None:
        self.speaks = speaks
        self.gone = asyncio.Event()
        self.finish = asyncio.Event()

    async def __call__(self, call: Call) -> None:
        if self.speaks:
            token = call.seen.meta.get("progressToken")
            await call.notify("notifications/progress", {"progressToken": token, "progress": 1})
        leaving = asyncio.create_task(call.stay())
        finishing = asyncio.create_task(self.finish.wait())
        await asyncio.wait({leaving, finishing}, return_when=asyncio.FIRST_COMPLETED)
        if leaving.done():
            self.gone.set()
            call.close()
        else:
            await call.answer({"content": [], "resultType": "complete"})
        leaving.cancel()
        finishing.cancel()


async def cancelled_upstream(door: Door, upstream_era: str, tool: Slow) -> None:
    """Waits until the upstream has been told, in the form that its era knows."""
    if upstream_era == "modern":
        async with asyncio.timeout(DEADLINE_S):
            await tool.gone.wait()
        assert door.modern.calls("notifications/cancelled") == []
        return
    [told] = await door.legacy.seen("notifications/cancelled")
    [called] = door.legacy.calls("tools/call")
    assert told.params["requestId"] == called.id
    assert type(told.params["requestId"]) is type(called.id)
    assert told.session == called.session


@pytest.mark.field("H1", "Z1")
@either_upstream
async def test_a_legacy_cancel_ends_the_call_wherever_it_runs(door: Door, upstream_era: str) -> None:
    tool = Slow(speaks=True)
    door.upstream(upstream_era).on["tools/call"] = tool
    session = await door.front(upstream_era).initialize()
    async with session.open("tools/call", {"name": "t", "_meta": {"progressToken": 1}}, ident="mine") as opened:
        progress = await opened.message()
        assert progress is not None
        assert progress["method"] == "notifications/progress"
        told = await session.notify("notifications/cancelled", {"requestId": "mine", "reason": "enough"})
        assert (told.status, told.body) == (202, b"")
        await cancelled_upstream(door, upstream_era, tool)
        assert await opened.rest() == [], "the stream ends without an answer"
    assert "result" in (await session.request("tools/list")).final
    told_once_and_left_alone(door.upstream(upstream_era))


def told_once_and_left_alone(upstream: LegacyUpstream | ModernUpstream) -> None:
    """One cancel at most, and none of the later requests on the connection of a call that was cut short."""
    assert len(upstream.calls("notifications/cancelled")) == isinstance(upstream, LegacyUpstream)
    [called] = upstream.calls("tools/call")
    later = upstream.requests[upstream.requests.index(called) + 1 :]
    assert called.connection not in {seen.connection for seen in later}


@pytest.mark.field("H1")
@either_upstream
@pytest.mark.parametrize("wrong", [1, "Mine", "min", None])
async def test_a_cancel_of_another_id_cancels_nothing(door: Door, upstream_era: str, wrong: object) -> None:
    tool = Slow(speaks=True)
    door.upstream(upstream_era).on["tools/call"] = tool
    session = await door.front(upstream_era).initialize()
    other = await door.front(upstream_era).initialize()
    async with session.open("tools/call", {"name": "t", "_meta": {"progressToken": 1}}, ident="mine") as opened:
        assert await opened.message() is not None
        assert (await session.notify("notifications/cancelled", {"requestId": wrong})).status == 202
        assert (await other.notify("notifications/cancelled", {"requestId": "mine"})).status == 202
        tool.finish.set()
        [final] = await opened.rest()
    assert "result" in final
    assert door.upstream(upstream_era).calls("notifications/cancelled") == []


@pytest.mark.field("H1", "H3")
@either_upstream
@pytest.mark.parametrize("how", ["FIN", "RST"])
async def test_a_modern_client_that_closes_its_stream_cancels(door: Door, upstream_era: str, how: str) -> None:
    tool = Slow(speaks=True)
    door.upstream(upstream_era).on["tools/call"] = tool
    front = door.front(upstream_era)
    async with front.modern_open("tools/call", {"name": "t"}, meta={"progressToken": 1}) as opened:
        assert await opened.message() is not None
        if how == "FIN":
            opened.close()
        else:
            opened.reset()
        await cancelled_upstream(door, upstream_era, tool)
    assert "result" in (await front.modern("tools/list")).final
    told_once_and_left_alone(door.upstream(upstream_era))


@pytest.mark.field("H1", "H3")
@either_upstream
@pytest.mark.parametrize("how", ["FIN", "RST"])
async def test_a_modern_client_that_hangs_up_before_any_answer_cancels(door: Door, upstream_era: str, how: str) -> None:
    tool = Slow(speaks=False)
    upstream = door.upstream(upstream_era)
    upstream.on["tools/call"] = tool
    front = door.front(upstream_era)
    message = modern_request("tools/call", {"name": "t"})
    headers = front.posting(modern_headers(message))
    async with front.sent("POST", headers, json.dumps(message).encode()) as (_, writer):
        await upstream.seen("tools/call")
        if how == "FIN":
            writer.close()
        else:
            reset(writer)
        await cancelled_upstream(door, upstream_era, tool)
    assert "result" in (await front.modern("tools/list")).final
    told_once_and_left_alone(upstream)


@pytest.mark.field("H1")
@either_upstream
async def test_a_legacy_client_that_loses_its_stream_cancels_nothing(door: Door, upstream_era: str) -> None:
    tool = Slow(speaks=True)
    door.upstream(upstream_era).on["tools/call"] = tool
    session = await door.front(upstream_era).initialize()
    async with session.open("tools/call", {"name": "t", "_meta": {"progressToken": 1}}, ident=9) as opened:
        event = await opened.event()
        while event is not None and not event.data:
            event = await opened.event()
        assert event is not None
        last = event.id
        assert last is not None
        opened.reset()
    tool.finish.set()
    async with session.get({"Last-Event-ID": last}) as resumed:
        assert resumed.status == 200
        [final] = await resumed.rest()
    assert (final["id"], "result" in final) == (9, True)
    assert not tool.gone.is_set()
    assert door.upstream(upstream_era).calls("notifications/cancelled") == []
    assert len(door.upstream(upstream_era).calls("tools/call")) == 1


@pytest.mark.field("H3")
@either_upstream
async def test_many_clients_that_hang_up_leave_nothing_running(door: Door, upstream_era: str) -> None:
    upstream = door.upstream(upstream_era)
    gone: list[object] = []
    all_gone = asyncio.Event()

    async def tool(call: Call) -> None:
        await call.notify("notifications/progress", {"progressToken": call.seen.meta["progressToken"], "progress": 1})
        await call.stay()
        gone.append(call.seen.id)
        if len(gone) == 40:
            all_gone.set()
        call.close()

    upstream.on["tools/call"] = tool
    front = door.front(upstream_era)

    async def client(number: int) -> None:
        async with front.modern_open("tools/call", {"name": "t"}, meta={"progressToken": number}) as opened:
            assert await opened.message() is not None
            opened.reset()

    await asyncio.gather(*(client(number) for number in range(40)))
    if isinstance(upstream, LegacyUpstream):
        told = await upstream.seen("notifications/cancelled", 40)
        called = upstream.calls("tools/call")
        assert sorted(seen.params["requestId"] for seen in told) == sorted(seen.id for seen in called)
    async with asyncio.timeout(DEADLINE_S):
        await all_gone.wait()


MANY = 20
SERVED, ASKED = "mcp_server_operation_duration_seconds_count", "mcp_client_operation_duration_seconds_count"


@pytest.mark.field("H3", "Z1")
@every_pair
@pytest.mark.parametrize("accept", ["text/event-stream, application/json", "application/json"])
async def test_what_a_client_calls_off_is_counted_as_that_and_nothing_of_it_stays(
    front_era: str, upstream_era: str, accept: str
) -> None:
    upstream = LegacyUpstream() if upstream_era == "legacy" else ModernUpstream()
    upstream.on["tools/call"] = Slow(speaks=True)
    more: dict[str, Any] = {"admin": "127.0.0.1:0", "streams": {"resume_ttl_s": 0}}
    async with upstream, running({"up": upstream}, **more) as gateway:
        front, reads = gateway.front("/up"), {"Accept": accept}
        session = await front.initialize()
        assert "result" in (await front.modern("tools/list")).final
        assert "result" in (await session.request("tools/list")).final
        await settled(gateway, "mcp_front_door_requests_in_flight", 0)
        [before] = await gauges(gateway, "mcp_front_door_tasks")

        async def call_off(number: int) -> None:
            params = {"name": "t", "_meta": {"progressToken": number}}
            if front_era == "legacy":
                calling = asyncio.create_task(session.request("tools/call", params, ident=number, headers=reads))
                await upstream.when(lambda: arrived(number))
                assert (await session.notify("notifications/cancelled", {"requestId": number})).status == 202
                assert (await calling).finals == []
                return
            message = modern_request("tools/call", {"name": "t", "arguments": {"n": number}}, ident=number)
            headers = {**front.posting(modern_headers(message)), **reads}
            async with front.sent("POST", headers, json.dumps(message).encode()):
                await upstream.when(lambda: arrived(number))

        def arrived(number: int) -> bool:
            return len(upstream.calls("tools/call")) > number

        for number in range(MANY):
            await call_off(number)
        labels = {"error_type": "cancelled", "mcp_method_name": "tools/call"}
        await settled(gateway, SERVED, MANY, era=front_era, route="/up", **labels)
        samples = await settled(gateway, ASKED, MANY, upstream="up", **labels)
        assert value(samples, SERVED, mcp_method_name="tools/call") == MANY
        assert value(samples, "mcp_front_door_upstream_errors_total") == 0, "it was not the upstream that hung up"
        await settled(gateway, "mcp_front_door_requests_in_flight", 0)
        await settled(gateway, "mcp_front_door_exchanges_kept", 0)
        async with asyncio.timeout(DEADLINE_S):
            while (await gauges(gateway, "mcp_front_door_tasks"))[0] > before:
                pass


IMPATIENT = {"timeouts": {"first_byte_s": 0.5, "total_s": 1.0, "probe_s": 0.5}}
Impatient = tuple[GatewayProcess, dict[str, LegacyUpstream | ModernUpstream]]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def impatient() -> AsyncIterator[Impatient]:
    """A gateway that gives up soon; the upstream `mute` does not even answer `initialize`."""
    upstreams = {"legacy": LegacyUpstream(), "modern": ModernUpstream(), "mute": LegacyUpstream()}
    upstreams["mute"].on["initialize"] = Slow(speaks=False)
    for upstream in upstreams.values():
        await upstream.start()
    behind = {name: (upstream, IMPATIENT) for name, upstream in upstreams.items()}
    behind["mute"] = (upstreams["mute"], {**IMPATIENT, "era": "legacy"})
    async with running(behind) as gateway:
        yield gateway, upstreams
    for upstream in upstreams.values():
        await upstream.stop()
        upstream.check()


@pytest.mark.field("H4")
@either_front
@either_upstream
@pytest.mark.parametrize("speaks", [True, False], ids=["on a stream", "in silence"])
async def test_a_call_that_takes_too_long_is_cancelled(
    impatient: Impatient, front_era: str, upstream_era: str, speaks: bool
) -> None:
    gateway, upstreams = impatient
    tool, upstream, front = Slow(speaks=speaks), upstreams[upstream_era], gateway.front(f"/{upstream_era}")
    upstream.reset()
    upstream.on["tools/call"] = tool
    answer = await ask(front, front_era, "tools/call", {"name": "t"}, ident="late")
    assert (answer.final["id"], answer.code) == ("late", -32603)
    assert answer.error["message"]
    assert answer.status == (200 if front_era == "legacy" or answer.events else 504)
    if isinstance(upstream, LegacyUpstream):
        [told] = await upstream.seen("notifications/cancelled")
        [called] = upstream.calls("tools/call")
        assert (told.params["requestId"], told.session) == (called.id, called.session)
    else:
        async with asyncio.timeout(DEADLINE_S):
            await tool.gone.wait()
    upstream.on.clear()
    assert "result" in (await ask(front, front_era, "tools/call", {"name": "echo"})).final


@pytest.mark.field("H4")
@either_front
async def test_an_initialize_that_takes_too_long_is_never_cancelled(impatient: Impatient, front_era: str) -> None:
    gateway, upstreams = impatient
    front = gateway.front("/mute")
    if front_era == "modern":
        answer = await front.modern("tools/list", ident="late")
    else:
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT_INFO}
        answer = await front.post(request("initialize", params, ident="late"))
    assert (answer.status, answer.final["id"], answer.code) == (504, "late", -32603)
    assert answer.error["message"]
    assert "Mcp-Session-Id" not in answer.headers
    assert upstreams["mute"].calls("notifications/cancelled") == []
