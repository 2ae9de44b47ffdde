"""The contract of a store, for every implementation: what is set is there until its time is over, and only once.

An implementation joins by a line in `STORES`: how to open it, and how its time passes.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

import pytest

from gateway.stores.base import Store
from gateway.stores.memory import MemoryStore

DEADLINE_S = 30.0


@dataclass(frozen=True, slots=True)
class Opened:
    """A fresh store, and `passes(seconds)`: returns when at least that much time has gone by for it."""

    store: Store
    passes: Callable[[float], Awaitable[None]]


@asynccontextmanager
async def memory() -> AsyncIterator[Opened]:
    now_s = 1000.0

    async def passes(seconds: float) -> None:
        nonlocal now_s
        now_s += seconds

    store = MemoryStore(lambda: now_s)
    yield Opened(store, passes)
    await store.close()


STORES: dict[str, Callable[[], AbstractAsyncContextManager[Opened]]] = {"memory": memory}


@pytest.fixture(params=STORES)
async def opened(request: pytest.FixtureRequest) -> AsyncIterator[Opened]:
    async with asyncio.timeout(DEADLINE_S), STORES[request.param]() as one:
        yield one


@pytest.fixture
def store(opened: Opened) -> Store:
    return opened.store


async def test_what_was_never_set_is_not_there(store: Store) -> None:
    assert await store.get("k") is None


VALUES = {"text": b"value", "nothing": b"", "any bytes": bytes(range(256)), "a mebibyte": b"\xff" * 1024 * 1024}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
async def test_a_value_comes_back_as_it_was(store: Store, value: bytes) -> None:
    await store.set("k", value, 60)
    for _ in range(2):
        assert await store.get("k") == value


KEYS = ["k", "session:größe:日本", "a b\tc\nd", "*", "k" * 1000, "era:http://127.0.0.1:1/mcp?a=b#c", "{tag}", ""]


@pytest.mark.parametrize("key", KEYS, ids=ascii)
async def test_any_text_is_a_key_of_its_own(store: Store, key: str) -> None:
    await store.set(key, b"1", 60)
    await store.set(key + "'", b"2", 60)
    assert await store.get(key) == b"1"
    assert await store.get(key + "'") == b"2"


async def test_keys_tell_letters_apart(store: Store) -> None:
    await store.set("a", b"1", 60)
    assert await store.get("A") is None


async def test_the_last_value_counts(store: Store) -> None:
    await store.set("k", b"1", 60)
    await store.set("k", b"2", 60)
    assert await store.get("k") == b"2"


async def test_a_value_is_gone_after_its_time(opened: Opened) -> None:
    await opened.store.set("k", b"1", 0.05)
    await opened.passes(0.06)
    assert await opened.store.get("k") is None


async def test_a_value_is_there_within_its_time(opened: Opened) -> None:
    await opened.store.set("k", b"1", 3600)
    await opened.passes(0.06)
    assert await opened.store.get("k") == b"1"


async def test_each_value_has_its_own_time(opened: Opened) -> None:
    await opened.store.set("short", b"1", 0.05)
    await opened.store.set("long", b"2", 3600)
    await opened.passes(0.06)
    assert [await opened.store.get(key) for key in ("short", "long")] == [None, b"2"]


async def test_setting_again_gives_a_new_time(opened: Opened) -> None:
    await opened.store.set("longer", b"1", 0.05)
    await opened.store.set("longer", b"1", 3600)
    await opened.store.set("shorter", b"1", 3600)
    await opened.store.set("shorter", b"1", 0.05)
    await opened.passes(0.06)
    assert [await opened.store.get(key) for key in ("longer", "shorter")] == [b"1", None]


@pytest.mark.parametrize("ttl_s", [0, -1])
async def test_a_time_that_is_over_leaves_nothing(store: Store, ttl_s: float) -> None:
    await store.set("k", b"1", 60)
    await store.set("k", b"2", ttl_s)
    assert await store.get("k") is None


async def test_a_time_of_thirty_days_is_kept(store: Store) -> None:
    await store.set("k", b"1", 30 * 86_400.0)
    assert await store.get("k") == b"1"


async def test_set_nx_sets_where_nothing_is(store: Store) -> None:
    assert await store.set_nx("k", b"1", 60) is True
    assert await store.get("k") == b"1"


@pytest.mark.parametrize("value", [b"1", b""])
async def test_set_nx_leaves_what_is_there(store: Store, value: bytes) -> None:
    await store.set("k", value, 60)
    assert await store.set_nx("k", b"2", 60) is False
    assert await store.get("k") == value


async def test_set_nx_that_did_not_set_gives_no_new_time(opened: Opened) -> None:
    await opened.store.set("k", b"1", 0.05)
    assert await opened.store.set_nx("k", b"1", 3600) is False
    await opened.passes(0.06)
    assert await opened.store.get("k") is None


async def test_set_nx_sets_again_when_the_time_is_over(opened: Opened) -> None:
    assert await opened.store.set_nx("k", b"1", 0.05)
    await opened.passes(0.06)
    assert await opened.store.set_nx("k", b"2", 60)
    assert await opened.store.get("k") == b"2"


async def test_of_many_at_once_one_wins(store: Store) -> None:
    won = await asyncio.gather(*(store.set_nx("k", b"%d" % number, 60) for number in range(50)))
    assert sum(won) == 1
    assert await store.get("k") == b"%d" % won.index(True)


async def test_what_is_deleted_is_gone(store: Store) -> None:
    await store.set("k", b"1", 60)
    await store.set("other", b"2", 60)
    await store.delete("k")
    assert await store.get("k") is None
    assert await store.get("other") == b"2"
    assert await store.set_nx("k", b"3", 60) is True


async def test_deleting_nothing_is_no_error(store: Store) -> None:
    await store.delete("k")
    await store.set("k", b"1", 60)
    await store.delete("k")
    await store.delete("k")
    assert await store.get("k") is None


async def test_many_keys_at_once_do_not_cross(store: Store) -> None:
    keys = [f"k{number}" for number in range(200)]
    await asyncio.gather(*(store.set(key, key.encode(), 60) for key in keys))
    assert await asyncio.gather(*(store.get(key) for key in keys)) == [key.encode() for key in keys]


async def test_a_store_is_closed_twice_without_harm(store: Store) -> None:
    await store.set("k", b"1", 60)
    await store.close()
    await store.close()


# the embedded store alone


async def test_a_value_is_over_at_its_very_moment() -> None:
    async with memory() as one:
        await one.store.set("k", b"1", 5)
        await one.passes(5)
        assert await one.store.get("k") is None


async def test_abandoned_values_do_not_stay_in_memory() -> None:
    async with memory() as one:
        assert isinstance(one.store, MemoryStore)
        for number in range(1000):
            await one.store.set(f"short{number}", b"1", 1)
        await one.passes(2)
        for number in range(100):
            await one.store.set(f"long{number}", b"1", 60)
        assert len(one.store) == 100


async def test_the_sweep_gets_past_values_that_live_long() -> None:
    async with memory() as one:
        assert isinstance(one.store, MemoryStore)
        for number in range(200):
            await one.store.set(f"long{number}", b"1", 3600)
            await one.store.set(f"short{number}", b"1", 1)
        await one.passes(2)
        for _ in range(100):
            await one.store.set("again", b"1", 3600)
        assert len(one.store) == 201
        assert await one.store.get("long199") == b"1"


async def test_a_closed_store_holds_nothing() -> None:
    store = MemoryStore()
    await store.set("k", b"1", 60)
    await store.close()
    assert len(store) == 0
