"""Field reports L7, L12: what nobody ends has its time in the store; a call that a crash cut off is never repeated."""

import asyncio

import pytest

from tests.field.pairs import either_front, either_upstream
from tests.fleet import fleet
from tests.http_wire import DEADLINE_S
from tests.peers import LegacyUpstream, ModernUpstream, text
from tests.raw_front import Front, modern_headers, modern_request, request
from tests.scrape import gauges, settled
from tests.scripted import Call, Json
from tests.valkey import started

SESSIONS = 300
FIXED_KEYS = 20
"""What replicas keep in the store whatever is asked: a lease and an inbox each, eras, what is held at upstreams."""


@pytest.mark.field("L7")
async def test_sessions_and_streams_that_nobody_ends_leave_little_and_for_a_time() -> None:
    async with LegacyUpstream(get_stream=True) as legacy, ModernUpstream() as modern:
        with started() as server, server.admin() as store:
            behind = {"legacy": legacy, "modern": modern}
            more = {"admin": "127.0.0.1:0", "streams": {"resume_ttl_s": 1}}
            async with fleet(behind, store=server.url, **more) as replicas:
                room = asyncio.Semaphore(32)

                async def abandon(era: str) -> None:
                    async with room:
                        session = await replicas.front(f"/{era}").initialize()
                        async with session.get() as stream:
                            stream.reset()

                async def listen() -> None:
                    async with room:
                        params: Json = {"notifications": {"toolsListChanged": True}}
                        async with replicas.front("/modern").modern_open("subscriptions/listen", params) as stream:
                            stream.reset()

                before = [await gauges(replica, "mcp_front_door_tasks") for replica in replicas.replicas]
                await asyncio.gather(*(abandon(era) for era in ("legacy", "modern") for _ in range(SESSIONS)))
                await asyncio.gather(*(listen() for _ in range(SESSIONS)))
                for replica in replicas.replicas:
                    await settled(replica, "mcp_front_door_exchanges_kept", 0)
                    await settled(replica, "mcp_front_door_streams", 0)
                after = [await gauges(replica, "mcp_front_door_tasks") for replica in replicas.replicas]
                assert all(now[0] - then[0] < 20 for now, then in zip(after, before, strict=True)), (before, after)
                keys = list(store.scan_iter(count=1000))
                assert len(keys) <= 2 * 2 * SESSIONS + FIXED_KEYS
                assert [key for key in keys if store.pttl(key) < 0] == [], "each has its time"


@pytest.mark.field("L12")
@either_front
@either_upstream
async def test_a_call_that_a_crash_cut_off_is_never_repeated(front_era: str, upstream_era: str) -> None:
    upstream = LegacyUpstream() if upstream_era == "legacy" else ModernUpstream()
    cut = asyncio.Event()

    async def tool(call: Call) -> Json | None:
        if call.seen.params["name"] != "write":
            return text("later")
        await call.gone()
        cut.set()
        call.close()
        return None

    async with upstream, fleet({"u": upstream}) as replicas:
        upstream.on["tools/call"] = tool
        front = replicas.front("/u")
        session = await front.initialize()
        replicas.hop.turn_to(0)
        message = request("tools/call", {"name": "write"})
        headers = session.headers
        if front_era == "modern":
            message = modern_request("tools/call", {"name": "write"})
            headers = modern_headers(message)
        lost = asyncio.create_task(broken(front, message, headers))
        await upstream.seen("tools/call")
        await replicas.replicas[0].kill()
        async with asyncio.timeout(DEADLINE_S):
            await cut.wait()
        assert await lost, "the client sees its connection break, or a stream without an end"
        await replicas.start_again(0)
        for replica in replicas.replicas:
            session.front = replica.front("/u")
            assert (await session.request("tools/call", {"name": "read"})).said == "later"
            assert (await session.front.modern("tools/call", {"name": "read"})).said == "later"
        assert [seen.params["name"] for seen in upstream.calls("tools/call")] == ["write"] + ["read"] * 4


async def broken(front: Front, message: Json, headers: dict[str, str]) -> bool:
    try:
        answer = await front.post(message, headers)
    except (EOFError, ConnectionError):
        return True
    return not answer.ended or answer.finals == []
