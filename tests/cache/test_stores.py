"""Whatever becomes of the store, an answer is right and comes: it is flushed, full, short of room, or fails over, and
what it has may be older than what it had."""

import asyncio
import json
from contextlib import AsyncExitStack
from typing import Any

import pytest

from tests.cache.conftest import MAX_BYTES, TELLS
from tests.cache.tagging import Tagging
from tests.cache.test_bounds import odd, stored
from tests.cache.test_replicas import MUTE, Two, entries, made, name, purge, same_at_both, two
from tests.cache.test_what_is_kept import how
from tests.fleet import fleet
from tests.gateway_process import GatewayProcess
from tests.http_wire import DEADLINE_S
from tests.peers import ModernUpstream
from tests.raw_front import Front
from tests.scrape import settled
from tests.valkey import watched


def marks(pair: Two) -> list[bytes]:
    return [key for key in pair.server.admin().scan_iter("*") if b":cache-mark:" in key]


async def becomes(pair: Two, number: int) -> None:
    """Both replicas have the upstream's list of this number, and share it."""
    for index in (0, 1):
        async with asyncio.timeout(DEADLINE_S):
            while made(await pair.list(index)) != number:
                pass
    async with asyncio.timeout(DEADLINE_S):
        while not (how(first := await pair.list(0)) == how(second := await pair.list(1)) == "cache;desc=hit"):
            pass
    assert made(first) == made(second) == number


async def test_a_store_that_was_flushed_revives_nothing_and_is_filled_anew() -> None:
    async with two() as pair:
        await same_at_both(pair)
        pair.tagging.made = 1
        await purge(pair.replicas.replicas[0])
        await becomes(pair, 1)
        pair.server.admin().flushall()
        assert made(await pair.list(0)) == made(await pair.list(1)) == 1
        pair.tagging.made = 2
        await purge(pair.replicas.replicas[1])
        await becomes(pair, 2)


async def test_an_entry_whose_mark_the_store_has_lost_is_a_miss() -> None:
    """Whether it was ended before or not: nobody can tell any more."""
    async with two(tells=False) as pair:
        await pair.list(0)
        await stored(pair, 1)
        [entry] = entries(pair.server)
        [mark] = marks(pair)
        old = pair.server.admin().get(entry)
        pair.server.admin().delete(mark)
        pair.tagging.made = 1
        assert made(await pair.list(1)) == 1
        await purge(pair.replicas.replicas[0])
        pair.tagging.made = 2
        assert marks(pair) == []
        assert isinstance(old, bytes)
        pair.server.admin().set(entry, old)
        assert {made(await pair.list(index)) for index in (1, 0)} == {2}


async def test_a_full_store_keeps_nothing_and_what_ends_still_ends_everywhere() -> None:
    async with two() as pair:
        await same_at_both(pair)
        pair.server.admin().config_set("maxmemory", 1)
        for number in range(20):
            for index in (0, 1):
                found = await pair.list(index, capabilities=odd(number))
                assert name(found) == f"nobody-{MUTE}-first"
        assert how(await pair.list(0, capabilities=odd(19))) == "cache;desc=hit"
        pair.tagging.made = 1
        await purge(pair.replicas.replicas[0])
        for index in (0, 1):
            async with asyncio.timeout(DEADLINE_S):
                while made(await pair.list(index)) != 1:
                    pass
        pair.server.admin().config_set("maxmemory", 0)
        pair.tagging.made = 2
        await purge(pair.replicas.replicas[1])
        await becomes(pair, 2)
        assert any("is full (OOM)" in replica.stderr() for replica in pair.replicas.replicas)


async def test_a_store_that_evicts_what_it_likes_is_missed_and_never_wrong() -> None:
    async with two() as pair:
        await same_at_both(pair)
        admin = pair.server.admin()
        admin.config_set("maxmemory-policy", "allkeys-random")
        for number in range(5):
            used = int(admin.info("memory")["used_memory"])  # type: ignore[index,arg-type]
            admin.config_set("maxmemory", used + 4096)
            pair.tagging.made = number
            await purge(pair.replicas.replicas[number % 2])
            for variant in range(10):
                wanted = {"capabilities": odd(variant)}
                found = await asyncio.gather(*(pair.list(index, **wanted) for index in (0, 1)))
                assert {name(one) for one in found} == {f"nobody-{MUTE}-first"}
            for index in (0, 1):
                async with asyncio.timeout(DEADLINE_S):
                    while made(await pair.list(index)) != number:
                        pass
        assert int(admin.info("stats")["evicted_keys"]) > 0  # type: ignore[index,arg-type]
        pair.replicas.check()


async def test_what_had_ended_before_the_store_went_back_to_what_it_had_ends_again() -> None:
    """As where a follower leads that had not yet heard of it."""
    async with two(tells=False) as pair:
        await pair.list(0)
        await stored(pair, 1)
        pair.server.admin().save()
        pair.tagging.made = 1
        await purge(pair.replicas.replicas[0])
        await becomes(pair, 1)
        await asyncio.to_thread(pair.server.kill)
        await asyncio.to_thread(pair.server.start)
        assert entries(pair.server)
        for replica in pair.replicas.replicas:
            await settled(replica, "mcp_front_door_cache_entries", 0)
        await becomes(pair, 1)


async def test_a_store_that_fails_over_is_done_without_until_it_is_back() -> None:
    async with AsyncExitStack() as stack:
        group = await asyncio.to_thread(stack.enter_context, watched())
        upstream = await stack.enter_async_context(ModernUpstream(capabilities=TELLS))
        tagging = Tagging(upstream)
        given: Any = {"admin": "127.0.0.1:0", "cache": {"max_bytes": MAX_BYTES}}
        replicas = await stack.enter_async_context(fleet({"mcp": upstream}, store=group.url, timeout_ms=1000, **given))
        pair = Two(replicas, group.leader, tagging)
        await same_at_both(pair)
        failing = asyncio.create_task(asyncio.to_thread(group.fail_over))
        number = 0
        while not failing.done():
            number += 1
            for index in (0, 1):
                assert name(await pair.list(index, capabilities=odd(number))) == f"nobody-{MUTE}-first"
        await failing
        tagging.made = 1
        async with asyncio.timeout(DEADLINE_S):
            while not await purged(replicas.replicas[0]):
                pass
        await becomes(Two(replicas, group.follower, tagging), 1)


async def purged(replica: GatewayProcess) -> bool:
    """Whether all replicas know of it."""
    told = await Front(replica.admin_url).at("/admin/cache/purge").send("POST", {})
    assert told.status in (200, 503), json.loads(told.body)
    return told.status == 200


@pytest.mark.parametrize("index", [0, 1])
async def test_a_change_that_is_told_while_the_store_is_down_is_told_to_it_when_it_is_back(index: int) -> None:
    async with two() as pair:
        await same_at_both(pair)
        await stored(pair, 1)
        pair.server.pause()
        try:
            pair.tagging.made = 1
            assert not await purged(pair.replicas.replicas[index])
        finally:
            pair.server.resume()
        await becomes(pair, 1)
