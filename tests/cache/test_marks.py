"""What ends entries, between two replicas and a real store."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from gateway.cache.depot import Depot
from gateway.cache.marks import Marks
from gateway.cache.shelf import Held
from gateway.stores.mail import Mail
from gateway.stores.redis import RedisStore
from policies import cache_keys
from policies.cache import EVERY_MARK, renewed_by
from policies.cache_debts import Name
from policies.cache_entry import Entry
from policies.exchange import Call, Dialect
from policies.mcp import LATEST_MODERN
from policies.sealing import KeyRing, new_key
from policies.settings_store import Store as Settings
from tests.http_wire import DEADLINE_S
from tests.valkey import Server, started

RING = KeyRing.of(new_key("k", b"k" * 32))
TOOLS = ("tools",)
SILENT_MS = 10_000
"""How long a store that says nothing is waited for, by who waits for it at all."""


@dataclass(frozen=True, slots=True)
class Replica:
    store: RedisStore
    marks: Marks
    depot: Depot
    heard: list[Name]

    async def hears(self, count: int) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while len(self.heard) < count:
                await asyncio.sleep(0.02)


@asynccontextmanager
async def replica(server: Server, timeout_ms: int = 2000, max_bytes: int = 1 << 20) -> AsyncIterator[Replica]:
    store = RedisStore(Settings(url=server.url, timeout_ms=timeout_ms))
    mail = Mail(store, lambda: RING)
    marks = Marks(store, mail)
    heard: list[Name] = []
    marks.on_renewed = lambda names: heard.extend(names or ())
    depot = Depot(store, marks, lambda: RING, max_bytes)
    await mail.start()
    try:
        async with asyncio.timeout(DEADLINE_S):
            while not await store.get(f"replica:{mail.replica}"):
                await asyncio.sleep(0.02)
        yield Replica(store, marks, depot, heard)
    finally:
        await depot.close()
        await marks.close()
        await mail.close()
        await store.close()


@asynccontextmanager
async def two(timeout_ms: int = 2000) -> AsyncIterator[tuple[Replica, Replica, Server]]:
    with started() as server:
        async with replica(server, timeout_ms) as one, replica(server, timeout_ms) as other:
            yield one, other, server


async def test_a_mark_that_is_not_there_is_made_and_is_then_the_same_for_all() -> None:
    async with two() as (one, other, _):
        assert await one.marks.values("weather", TOOLS) is None
        made = await asyncio.gather(*(at.marks.made("weather", TOOLS) for at in (one, other, one)))
        assert len(set(made)) == 1
        assert await other.marks.values("weather", TOOLS) == made[0]
        assert await one.marks.made("maps", TOOLS) != made[0]


async def test_a_mark_never_gets_a_value_again_that_it_had() -> None:
    async with two() as (one, other, server):
        values = [await one.marks.made("weather", TOOLS)]
        assert await other.marks.renew("weather", TOOLS)
        await one.hears(1)
        assert await one.marks.values("weather", TOOLS) is None
        values.append(await one.marks.made("weather", TOOLS))
        server.admin().flushall()
        values.append(await other.marks.made("weather", TOOLS))
        assert len({value for value in values if value is not None and value != ("",)}) == 3


async def test_what_is_owed_is_few_however_much_was_told_and_is_paid_when_the_store_is_back() -> None:
    async with two() as (one, other, server):
        await one.marks.made("weather", EVERY_MARK)
        await asyncio.to_thread(server.kill)
        told = [
            one.marks.end("weather", renewed_by("notifications/resources/updated", {"uri": f"note://{number}/a/b/c"}))
            for number in range(2000)
        ]
        assert await one.marks.values("weather", ("resources", "uri-000")) is None
        assert not any(await asyncio.gather(*told))
        await asyncio.to_thread(server.start)
        await other.hears(1)
        assert ("weather", "resources") in other.heard
        assert len(other.heard) < 2000
        async with asyncio.timeout(DEADLINE_S):
            while await one.marks.made("weather", ("resources", "uri-000")) is None:
                await asyncio.sleep(0.02)


async def test_words_that_come_while_others_are_told_are_told_together_and_after_them() -> None:
    async with two() as (one, other, server):
        server.pause()
        first = one.marks.end("weather", TOOLS)
        await asyncio.sleep(0)  # it has begun
        rest = [one.marks.end("weather", TOOLS) for _ in range(100)]
        assert not first.done()
        server.resume()
        assert all(await asyncio.gather(first, *rest))
        await other.hears(2)
        assert await other.marks.renew("weather", ("prompts",))
        await one.hears(102)
        assert other.heard == [("weather", "tools")] * 2 + [("weather", "prompts")]


def held(number: int = 0, size: int = 100, forwarded: tuple[tuple[str, str], ...] = ()) -> Held:
    modern = Dialect("modern", LATEST_MODERN)
    call = Call("tools/list", {}, {}, {"x": number}, None, "", modern, forwarded=forwarded)
    key = cache_keys.key(call, upstream="weather", config="", version=LATEST_MODERN, identity=str(number))
    entry = Entry(
        key=key.private,
        received_s=0.0,
        ttl_ms=1000,
        scope="private",
        shared=False,
        marks=("1",),
        era="modern",
        version=LATEST_MODERN,
        server_info=b"",
        result=b'"%b"' % (b"x" * size),
    )
    return Held(entry, "weather", TOOLS, call, key)


async def test_to_put_something_there_waits_no_longer_than_to_look_there() -> None:
    with started() as server:
        async with replica(server, SILENT_MS) as one:
            assert await one.depot.put(held(), 60.0, 4096)
            server.pause()
            looking = asyncio.create_task(one.store.get("what is not there"))
            try:
                for number in (1, 2):
                    assert not await one.depot.put(held(number), 60.0, 4096)
                assert not looking.done()
            finally:
                server.resume()
            await looking


async def test_what_has_no_room_there_at_all_is_not_put_there() -> None:
    with started() as server:
        async with replica(server, max_bytes=8192) as one:
            assert not await one.depot.put(held(size=8192), 60.0, 1 << 20)
            assert await one.depot.put(held(size=4096), 60.0, 1 << 20)
            assert [key for key in server.admin().scan_iter("*") if b":cache:" in key]


async def test_a_callers_own_headers_are_not_held_with_what_was_fetched_with_them() -> None:
    kept = held(forwarded=(("Authorization", "Bearer planted"),))
    assert kept.call is None
    assert "planted" not in repr(kept)
    assert held().call is not None
