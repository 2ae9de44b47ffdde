"""What one client can have the cache keep, and that it takes nothing from others by it: in the store and in a
process."""

import asyncio
from typing import Any

import pytest

from tests.cache.conftest import MAX_BYTES
from tests.cache.test_replicas import MUTE, Two, entries, name, two
from tests.cache.test_what_is_kept import how
from tests.gateway.test_keys import bearer, digest
from tests.http_wire import DEADLINE_S
from tests.raw_front import Front

MANY = 200
PER_ENTRY_BYTES = 1024
"""What an entry counts beside its own bytes."""


def odd(number: int) -> dict[str, Any]:
    """Capabilities that no other client has."""
    return {"experimental": {f"com.example/{number}": {}}}


async def flood(front: Front, count: int = MANY, **more: Any) -> None:
    """A client that says of itself another thing each time."""
    for batch in [range(n, n + 8) for n in range(0, count, 8)]:
        await asyncio.gather(*(front.modern("tools/list", capabilities=odd(n), **more) for n in batch))


async def stored(pair: Two, count: int) -> None:
    """Until so many entries are in the store."""
    async with asyncio.timeout(DEADLINE_S):
        while len(await asyncio.to_thread(entries, pair.server)) < count:
            await pair.list(0)


def bytes_in(pair: Two) -> int:
    with_sizes = pair.server.admin()
    return sum(PER_ENTRY_BYTES + int(with_sizes.strlen(key)) for key in entries(pair.server))  # type: ignore[arg-type]


async def test_a_client_that_varies_its_capabilities_does_not_fill_the_store() -> None:
    budget = 100_000
    cache = {"max_bytes": MAX_BYTES, "store_max_bytes": budget}
    async with two(tells=False, cache=cache) as pair:
        await pair.list(0)
        await stored(pair, 1)
        assert how(await pair.list(0)) == "cache;desc=hit"
        [shared] = entries(pair.server)
        for _ in range(2):
            await flood(pair.front(0))
            assert 0 < await asyncio.to_thread(bytes_in, pair) <= budget
        before = pair.tagging.count
        assert shared in entries(pair.server)
        assert name(await pair.list(1)) == f"nobody-{MUTE}-first"
        assert how(await pair.list(0)) == how(await pair.list(1)) == "cache;desc=hit"
        assert pair.tagging.count == before


async def test_a_store_in_which_nothing_is_to_be_kept_has_nothing() -> None:
    async with two(tells=False, cache={"max_bytes": MAX_BYTES, "store_max_bytes": 0}) as pair:
        for _ in range(2):
            for index in (0, 1):
                await pair.list(index)
        assert pair.tagging.count == 2
        assert entries(pair.server) == []


KEYS = {"ci": "mfd_" + "c" * 43, "ops": "mfd_" + "o" * 43}


@pytest.mark.parametrize("scope", ["public", "private"])
async def test_a_caller_that_keeps_much_drives_out_nobodys_else(scope: str) -> None:
    """Neither what all share nor what another has for itself."""
    clients = {who: {"keys": [digest(key)], "routes": ["/mcp", "/uncached"]} for who, key in KEYS.items()}
    cache = {"max_bytes": 60_000, "store_max_bytes": 60_000}
    async with two(entry={"cache": {"trust_public": True}}, tells=False, clients=clients, cache=cache) as pair:
        pair.tagging.hints = {"ttlMs": 3_600_000, "cacheScope": scope}
        await pair.list(0, headers=bearer(KEYS["ci"]))
        pair.tagging.hints = {"ttlMs": 3_600_000, "cacheScope": "private"}
        for _ in range(2):
            await flood(pair.front(0), headers=bearer(KEYS["ops"]))
        before = pair.tagging.count
        assert how(await pair.list(0, headers=bearer(KEYS["ci"]))) == "cache;desc=hit"
        assert pair.tagging.count == before
