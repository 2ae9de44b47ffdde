"""One upstream stream for the listeners of all replicas, and what they hear when the replica that reads it goes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.fleet import Fleet, fleet
from tests.peers import LISTEN, ModernUpstream
from tests.raw_front import Front, Open
from tests.valkey import started

CHANGED = "notifications/tools/list_changed"
WANTED = {"toolsListChanged": True}


@asynccontextmanager
async def listening(front: Front, wanted: dict[str, Any] = WANTED) -> AsyncIterator[Open]:
    async with front.modern_open(LISTEN, {"notifications": wanted}) as stream:
        message = await stream.message()
        assert message is not None
        assert message["params"]["notifications"] == wanted, message
        yield stream


async def hears(stream: Open) -> None:
    message = await stream.message()
    assert message is not None
    assert message["method"] == CHANGED, message


def fronts(replicas: Fleet) -> list[Front]:
    return [replica.front("/up") for replica in replicas.replicas]


async def test_all_replicas_listeners_hear_one_stream_and_its_end_is_the_last_ones() -> None:
    async with ModernUpstream() as upstream, fleet({"up": upstream}, count=3) as replicas:
        one, two, three = fronts(replicas)
        async with listening(two) as third:
            async with listening(one) as first, listening(three) as second, listening(one) as fourth:
                assert len(upstream.calls(LISTEN)) == 1
                for _ in range(3):
                    await upstream.push(CHANGED, {})
                for _ in range(3):
                    for stream in (first, second, third, fourth):
                        await hears(stream)
            await upstream.push(CHANGED, {})
            await hears(third)
            assert len(upstream.calls(LISTEN)) == 1
        await upstream.when(lambda: not upstream.listeners)


@pytest.mark.parametrize("era", ["modern", "legacy"])
@pytest.mark.parametrize("how", ["is killed", "is stopped"])
async def test_where_the_replica_that_reads_it_goes_another_does_and_all_may_have_changed(how: str, era: str) -> None:
    async with ModernUpstream() as upstream, fleet({"up": upstream}) as replicas:
        goes, stays = replicas.replicas
        async with listening(goes.front("/up")):
            session = await stays.front("/up").initialize()
            wanted = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}
            async with (
                listening(goes.front("/up"), wanted),
                listening(stays.front("/up")) if era == "modern" else session.get() as stream,
            ):
                await upstream.when(lambda: len(upstream.listeners) == 2)
                if how == "is killed":
                    await goes.kill()
                else:
                    await goes.stop()
                await hears(stream)
                await upstream.when(lambda: len(upstream.calls(LISTEN)) == 3)
                if era == "modern":
                    await upstream.push(CHANGED, {})
                    await hears(stream)


async def test_without_a_store_each_replica_reads_its_own_and_nobody_misses_anything() -> None:
    with started() as store:
        async with (
            ModernUpstream() as upstream,
            fleet({"up": upstream}, store=store.url) as replicas,
        ):
            one, two = fronts(replicas)
            async with listening(one) as first, listening(two) as second:
                store.kill()
                await hears(second)  # what it read through the store is lost
                await upstream.when(lambda: len(upstream.listeners) == 2)
                await upstream.push(CHANGED, {})
                await hears(first)
                await hears(second)
                store.start()
