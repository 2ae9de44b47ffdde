"""Letters and feeds between replicas, on a real store."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import pytest

from gateway.stores.feeds import MAX_ITEMS, Feed, Feeds
from gateway.stores.mail import NAME_CHARS, PIECE_BYTES, Mail, ReplicaGone
from gateway.stores.opening import open_store
from policies.errors import Fault, GatewayFault
from policies.sealing import KeyRing, new_key
from policies.settings_store import Store as StoreSettings
from tests.http_wire import DEADLINE_S
from tests.valkey import valkey

RING = KeyRing.of(new_key("k", b"k" * 32))
OTHER_RING = KeyRing.of(new_key("k", b"o" * 32))


async def echo(body: bytes) -> bytes:
    return body[::-1]


async def refuse(_: bytes) -> bytes:
    fault = Fault("not here", code=-32602, http=429)
    fault.headers = (("Retry-After", "7"),)
    raise fault


async def crash(_: bytes) -> bytes:
    raise KeyError("a secret")


async def never(_: bytes) -> bytes:
    return await asyncio.get_running_loop().create_future()


@asynccontextmanager
async def replica(url: str, ring: KeyRing = RING) -> AsyncIterator[Mail]:
    """One that lives: its lease and its inbox are there."""
    store = open_store(StoreSettings(url=url, timeout_ms=5000))  # a busy machine is no outage
    mail = Mail(store, lambda: ring)
    for topic, answerer in (("echo", echo), ("refuse", refuse), ("crash", crash), ("never", never)):
        mail.answer(topic, answerer)
    heard = asyncio.Event()
    mail.hear("up", lambda _: heard.set())
    await mail.start()
    try:
        async with asyncio.timeout(DEADLINE_S):
            while not await store.get(f"replica:{mail.replica}"):
                await asyncio.sleep(0.02)
        yield mail
    finally:
        await mail.close()
        await store.close()


@asynccontextmanager
async def two() -> AsyncIterator[tuple[Mail, Mail]]:
    async with valkey() as url, replica(url) as one, replica(url) as other:
        yield one, other


@pytest.mark.parametrize("size", [0, 1, PIECE_BYTES, PIECE_BYTES + 1, 5 * PIECE_BYTES])
async def test_a_question_is_answered_whole_whatever_its_size(size: int) -> None:
    async with two() as (one, other):
        body = bytes(i % 251 for i in range(size))
        assert await one.ask(other.replica, "echo", body, DEADLINE_S) == body[::-1]


async def test_answers_find_those_who_asked() -> None:
    async with two() as (one, other):
        asked = [one.ask(other.replica, "echo", b"%d" % i, DEADLINE_S) for i in range(100)]
        back = [other.ask(one.replica, "echo", b"%d" % -i, DEADLINE_S) for i in range(100)]
        answers = await asyncio.gather(*asked, *back)
        assert answers == [(b"%d" % i)[::-1] for i in range(100)] + [(b"%d" % -i)[::-1] for i in range(100)]


async def test_a_refusal_is_raised_where_was_asked_and_a_crash_tells_nothing() -> None:
    async with two() as (one, other):
        with pytest.raises(Fault, match="not here") as refused:
            await one.ask(other.replica, "refuse", b"", DEADLINE_S)
        assert (refused.value.code, refused.value.http) == (-32602, 429)
        assert refused.value.headers == (("Retry-After", "7"),)
        with pytest.raises(Fault, match=r"internal error [0-9a-f]{8}$"):
            await one.ask(other.replica, "crash", b"", DEADLINE_S)
        with pytest.raises(Fault, match="versions"):
            await one.ask(other.replica, "unknown", b"", DEADLINE_S)


async def test_who_is_gone_is_not_waited_for() -> None:
    async with valkey() as url, replica(url) as one:
        async with replica(url) as other:
            asked = asyncio.create_task(one.ask(other.replica, "never", b"", 10 * DEADLINE_S))
            await one.ask(other.replica, "echo", b"", DEADLINE_S)  # the one before has been heard
        async with asyncio.timeout(DEADLINE_S):
            with pytest.raises(ReplicaGone):
                await asked
            with pytest.raises(ReplicaGone):
                await one.ask(other.replica, "echo", b"", 10 * DEADLINE_S)


async def test_a_replica_whose_lease_was_lost_with_the_stores_memory_is_still_asked() -> None:
    async with valkey() as url, replica(url) as one, replica(url) as other:
        store = open_store(StoreSettings(url=url, timeout_ms=5000))
        await store.delete(f"replica:{other.replica}")
        await store.close()
        assert await one.ask(other.replica, "echo", b"ab", DEADLINE_S) == b"ba"


async def test_an_answer_that_takes_too_long_is_an_error() -> None:
    async with two() as (one, other):
        with pytest.raises(GatewayFault, match="in time") as late:
            await one.ask(other.replica, "never", b"", 0.0)
        assert late.value.http == 504


async def test_a_word_to_all_reaches_the_others() -> None:
    async with valkey() as url, replica(url) as one, replica(url) as two, replica(url) as three:
        heard: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue()
        for name, mail in (("one", one), ("two", two), ("three", three)):
            mail.hear("word", lambda body, name=name: heard.put_nowait((name, body)))
        async with asyncio.timeout(DEADLINE_S):
            seen: set[tuple[str, bytes]] = set()
            while len({name for name, _ in seen}) < 2:  # who is not subscribed yet hears the next one
                await one.tell_all("word", b"w")
                seen.add(await heard.get())
        assert {name for name, _ in seen} == {"two", "three"}


async def test_what_no_replica_wrote_is_not_read_and_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async with valkey() as url, replica(url) as one, replica(url, OTHER_RING) as stranger:
        store = open_store(StoreSettings(url=url, timeout_ms=5000))
        for raw in (b"", b"\xff", b"1k.AAAA", "ü".encode()):
            await store.append(f"inbox:{one.replica}", raw, 60, 100)
        await store.close()
        with pytest.raises(GatewayFault, match="in time"):
            await stranger.ask(one.replica, "echo", b"mark", 0.0)
        async with replica(url) as other:
            assert await other.ask(one.replica, "echo", b"ab", DEADLINE_S) == b"ba"
    assert "same keys" in caplog.text
    assert "mark" not in caplog.text


def test_an_id_says_where_it_was_made() -> None:
    mail = Mail(open_store(None), lambda: RING)
    assert mail.new_id()[:NAME_CHARS] == mail.replica
    assert mail.elsewhere("0" * 24) is None  # a store of this process's own: there is nobody else


@asynccontextmanager
async def fed(items: AsyncGenerator[bytes, None], **more: bool) -> AsyncIterator[tuple[Feeds, Feed]]:
    async with valkey() as url:
        store = open_store(StoreSettings(url=url, timeout_ms=5000))
        owner = Mail(store, lambda: RING)
        feeds = Feeds(owner)
        await owner.start()
        async with replica(url) as reader, asyncio.timeout(DEADLINE_S):
            while not await store.get(f"replica:{owner.replica}"):
                await asyncio.sleep(0.02)
            yield feeds, Feed(reader, owner.replica, feeds.offer(items, **more))
            await feeds.close()
        await owner.close()
        await store.close()


async def numbers(count: int, seen: list[int], fault: Fault | None = None) -> AsyncGenerator[bytes, None]:
    try:
        for number in range(count):
            seen.append(number)
            yield b"%d" % number
        if fault is not None:
            raise fault
    finally:
        seen.append(-1)


async def all_of(feed: Feed) -> list[bytes]:
    found: list[bytes] = []
    while items := await feed.read():
        found += items
    return found


async def test_a_feed_comes_whole_and_in_order_and_waits_for_its_reader() -> None:
    seen: list[int] = []
    async with fed(numbers(1000, seen)) as (feeds, feed):
        first = await feed.read()
        assert len(seen) <= len(first) + 2 * MAX_ITEMS
        assert first + await all_of(feed) == [b"%d" % number for number in range(1000)]
        assert await feed.read() == []
        feed.leave()
        while len(feeds):
            await asyncio.sleep(0)
    assert seen[-1] == -1


async def test_a_pull_that_was_given_up_loses_nothing() -> None:
    async with fed(numbers(200, [])) as (_, feed):
        found: list[bytes] = []
        while True:
            reading = asyncio.create_task(feed.read())
            await asyncio.sleep(0)
            reading.cancel()
            await asyncio.wait({reading})
            items = await feed.read()
            if not items:
                break
            found += items
        assert found == [b"%d" % number for number in range(200)]


async def test_a_fault_ends_a_feed_after_what_came_before_it() -> None:
    async with fed(numbers(2, [], Fault("broken", code=-32001, http=404))) as (_, feed):
        assert await feed.read() == [b"0", b"1"]
        with pytest.raises(Fault, match="broken") as broken:
            await feed.read()
        assert (broken.value.code, broken.value.http) == (-32001, 404)


async def test_who_leaves_early_closes_what_it_read() -> None:
    seen: list[int] = []
    async with fed(numbers(10_000, seen)) as (feeds, feed):
        await feed.read()
        feed.leave()
        while len(feeds):
            await asyncio.sleep(0)
        with pytest.raises(Fault, match="too long"):
            await feed.read()
    assert seen[-1] == -1
    assert len(seen) < 10_000


async def until(event: asyncio.Event) -> AsyncGenerator[bytes, None]:
    yield b"first"
    await event.wait()


@pytest.mark.parametrize("is_elsewhere", [True, False])
async def test_what_can_be_had_elsewhere_is_waited_for_only_while_it_is_read(is_elsewhere: bool) -> None:
    """A replica that ends does not wait for the reader of it that has died."""
    over = asyncio.Event()
    async with fed(until(over), is_elsewhere=is_elsewhere) as (feeds, feed):
        assert feeds.are_waited_for is not is_elsewhere
        assert await feed.read() == [b"first"]
        assert feeds.are_waited_for is not is_elsewhere
        reading = asyncio.create_task(feed.read())
        while not feeds.are_waited_for:
            await asyncio.sleep(0)
        over.set()
        assert await reading == []
        assert feeds.are_waited_for is not is_elsewhere
        feed.leave()
        while len(feeds):
            await asyncio.sleep(0)
        assert not feeds.are_waited_for
