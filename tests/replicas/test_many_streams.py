"""Thousands of streams of both eras over two replicas: one stream upstream for each filter, and nothing is left."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack

from tests.fleet import Fleet, fleet
from tests.peers import LISTEN, ModernUpstream
from tests.raw_front import Front, Open
from tests.scrape import settled

STREAMS = 2000
"""Of each era. Half of them at each replica."""
AT_ONCE = 50
EVERYTHING = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}
"""What a legacy client's stream stands for, too."""
SOME = {"toolsListChanged": True}
CHANGED = "notifications/tools/list_changed"

Opening = Callable[[Front, AsyncExitStack], Awaitable[Open]]


async def listen(front: Front, stack: AsyncExitStack, wanted: dict[str, bool]) -> Open:
    opened = front.modern_open(LISTEN, {"notifications": wanted})
    stream = await stack.enter_async_context(opened)
    message = await stream.message()
    assert message is not None
    assert message["params"]["notifications"] == wanted
    return stream


async def get(front: Front, stack: AsyncExitStack) -> Open:
    session = await front.initialize()
    opened: AbstractAsyncContextManager[Open] = session.get()
    stream = await stack.enter_async_context(opened)
    assert stream.status == 200
    return stream


async def opened(replicas: Fleet, stack: AsyncExitStack) -> list[Open]:
    """All streams. Legacy ones and a half of the modern ones want the same, the others less."""
    turns = asyncio.Semaphore(AT_ONCE)
    fronts = [replica.front("/up") for replica in replicas.replicas]

    async def one(number: int) -> Open:
        front = fronts[number % len(fronts)]
        async with turns:
            if number < STREAMS:
                return await listen(front, stack, EVERYTHING if number % 4 < 2 else SOME)
            return await get(front, stack)

    return list(await asyncio.gather(*(one(number) for number in range(2 * STREAMS))))


async def all_hear(streams: Sequence[Open]) -> None:
    for message in await asyncio.gather(*(stream.message() for stream in streams)):
        assert message is not None
        assert message["method"] == CHANGED


async def test_thousands_of_streams_are_one_upstream_for_each_filter() -> None:
    room = {"connections": {"max": 3 * STREAMS, "max_per_peer": 3 * STREAMS}, "admin": "127.0.0.1:0"}
    room["streams"] = {"resume_ttl_s": 1}  # for as long, a stream of a session waits for its client
    async with ModernUpstream() as upstream, fleet({"up": upstream}, **room) as replicas:
        async with AsyncExitStack() as stack:
            streams = await opened(replicas, stack)
            filters = [call.params["notifications"] for call in upstream.calls(LISTEN)]
            assert sorted(map(len, filters)) == [1, 3]
            began = time.perf_counter()
            await upstream.push(CHANGED, {})
            await all_hear(streams)
            print(f"{len(streams)} streams have heard of a change after {time.perf_counter() - began:.2f} s")
        await upstream.when(lambda: not upstream.listeners)
        for replica in replicas.replicas:
            await settled(replica, "mcp_front_door_streams", 0)
