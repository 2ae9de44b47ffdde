"""Field report AB6: a store that is away, or hangs, has one effect: what needs it is refused, the rest works on."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest

from tests.fleet import KEYS
from tests.gateway_process import GatewayProcess, running
from tests.peers import LegacyUpstream, ModernUpstream
from tests.raw_front import CLIENT_INFO, LEGACY, Answer, Front, request
from tests.scrape import settled
from tests.valkey import Server, started


@contextmanager
def stopped(server: Server) -> Iterator[None]:
    server.kill()
    yield
    server.start()


@contextmanager
def hanging(server: Server) -> Iterator[None]:
    """It takes connections and requests, and answers nothing."""
    server.pause()
    yield
    server.resume()


OUTAGES = {"stopped": stopped, "hanging": hanging}


@asynccontextmanager
async def behind(
    server: Server, timeout_ms: int
) -> AsyncIterator[tuple[GatewayProcess, LegacyUpstream, ModernUpstream]]:
    store = {"url": server.url, "timeout_ms": timeout_ms}
    async with LegacyUpstream() as legacy, ModernUpstream() as modern:
        upstreams = {"legacy": legacy, "modern": modern}
        async with running(upstreams, keys=KEYS, admin="127.0.0.1:0", store=store) as gateway:
            yield gateway, legacy, modern


@pytest.mark.field("AB6")
@pytest.mark.parametrize("outage", OUTAGES)
async def test_an_outage_refuses_nothing_that_needs_no_store_and_passes_by_itself(outage: str) -> None:
    with started() as server:
        async with behind(server, 200) as (gateway, _, modern):
            sessions = {era: await gateway.front(f"/{era}").initialize() for era in ("legacy", "modern")}
            for era, session in sessions.items():
                assert "result" in (await session.request("tools/list")).final, era
            with OUTAGES[outage](server):
                for _ in range(3):
                    for era, session in sessions.items():
                        front = gateway.front(f"/{era}")
                        for method, params in (("tools/call", {"name": "t"}), ("tools/list", {})):
                            assert "result" in (await front.modern(method, params)).final, (era, method)
                            answer = await session.request(method, params)
                            assert (answer.status, "result" in answer.final) == (200, True), repr(answer)
                        assert "result" in (await opened(front)).final
                async with gateway.front("/modern").modern_open(
                    "subscriptions/listen", {"notifications": {"toolsListChanged": True}}
                ) as stream:
                    await modern.push("notifications/tools/list_changed", {})
                    heard = [await stream.message() for _ in range(2)]
                    assert [message["method"] for message in heard if message] == [
                        "notifications/subscriptions/acknowledged",
                        "notifications/tools/list_changed",
                    ]
                ending = await sessions["legacy"].delete()
                assert (ending.status, ending.code) == (503, -32603), repr(ending)
                assert ending.headers.get("Retry-After")
                await settled(gateway, "mcp_front_door_store_up", 0)
                ready = await Front(gateway.admin_url + "/readyz").send("GET", {})
                assert (ready.status, json.loads(ready.body)["store"]) == (200, "down")
            await settled(gateway, "mcp_front_door_store_up", 1)
            assert (await sessions["legacy"].delete()).status == 200
            assert (await sessions["legacy"].request("ping")).status == 404
            assert "result" in (await sessions["modern"].request("tools/call", {"name": "t"})).final
            assert gateway.stderr().count(f"store {server.url}: ") == 2, "a line when it begins, one when it ends"


async def opened(front: Front) -> Answer:
    params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": CLIENT_INFO}
    return await front.post(request("initialize", params))


@pytest.mark.field("AB6")
async def test_a_store_that_hangs_holds_up_no_call_that_needs_none() -> None:
    with started() as server:
        async with behind(server, 10_000) as (gateway, _, _):
            session = await gateway.front("/legacy").initialize()
            assert "result" in (await gateway.front("/modern").modern("tools/call", {"name": "t"})).final
            assert "result" in (await session.request("tools/call", {"name": "t"})).final
            server.signal(signal.SIGSTOP)
            ending = asyncio.create_task(session.delete())
            for era in ("modern", "legacy"):
                for method, params in (("tools/call", {"name": "t"}), ("tools/list", {})):
                    assert "result" in (await gateway.front(f"/{era}").modern(method, params)).final
            assert not ending.done()
            server.resume()
            assert (await ending).status == 200
