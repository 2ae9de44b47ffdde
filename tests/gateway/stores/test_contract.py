"""The contract of a store, for every implementation: what is set is there until its time is over, and only once.

An implementation joins by a line in `STORES`: how to open it, and how its time passes. Real servers run once for all
tests; each test has a prefix of its own on them.
"""

import asyncio
import itertools
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from gateway.stores.base import MAX_READ, MAX_UNREAD, Store
from gateway.stores.memory import MemoryStore
from gateway.stores.opening import open_store
from policies.settings_store import Store as Settings
from tests import valkey
from tests.certificates import issue

DEADLINE_S = 30.0
MANUAL = Path(__file__).parents[3] / "docs" / "configuration.md"
_PREFIXES = itertools.count()


@dataclass(frozen=True, slots=True)
class Opened:
    """A fresh store, and `passes(seconds)`: returns when at least that much time has gone by for it. `another()` is the
    same store as a second process sees it."""

    store: Store
    passes: Callable[[float], Awaitable[None]]
    another: Callable[[], AbstractAsyncContextManager[Store]]


class Servers:
    """The real servers, each started at its first use."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._settings: dict[str, dict[str, Any]] = {}

    def settings(self, kind: str) -> dict[str, Any]:
        if kind not in self._settings:
            self._settings[kind] = (REAL | SYSTEM)[kind](self._stack)
        return self._settings[kind]


def single(stack: ExitStack) -> dict[str, Any]:
    return {"url": stack.enter_context(valkey.started()).url}


def acl(stack: ExitStack) -> dict[str, Any]:
    """The user as the manual has it, for the prefixes of these tests; nobody else may do anything."""
    [rules] = re.findall(r"^ACL SETUSER gateway (.*)$", MANUAL.read_text(), re.MULTILINE)
    user = rules.replace("PASSWORD", "secret").replace("mcpfd:", "t*")
    server = valkey.started("--user", "default", "off", "--user", "gateway", *user.split())
    return {"url": stack.enter_context(server).url, "username": "gateway", "password": "secret"}


def nodes(stack: ExitStack) -> dict[str, Any]:
    return {"url": valkey.cluster_url(stack.enter_context(valkey.nodes()))}


def sentinels(stack: ExitStack) -> dict[str, Any]:
    return {"url": stack.enter_context(valkey.watched()).url}


REAL: dict[str, Callable[[ExitStack], dict[str, Any]]] = {
    "single": single,
    "ACL user": acl,
    "cluster": nodes,
    "Sentinels": sentinels,
}


def certified(stack: ExitStack) -> tuple[Path, dict[str, Any]]:
    """A folder of certificates, and the settings that use them."""
    place = Path(stack.enter_context(TemporaryDirectory()))
    ca = issue(place, "ca", None, authority=True)
    issue(place, "server", ca, address="127.0.0.1")
    issue(place, "client", ca)
    files = {"ca": "ca.pem", "client_cert": "client.pem", "client_key": "client.key"}
    return place, {"tls": {name: str(place / file) for name, file in files.items()}}


def redis(stack: ExitStack) -> dict[str, Any]:
    return {"url": stack.enter_context(valkey.started(program=REDIS)).url}


def tls(stack: ExitStack) -> dict[str, Any]:
    place, settings = certified(stack)
    return {"url": stack.enter_context(valkey.started(program=REDIS, tls=place)).url, **settings}


def tls_nodes(stack: ExitStack) -> dict[str, Any]:
    place, settings = certified(stack)
    return {"url": valkey.cluster_url(stack.enter_context(valkey.nodes(program=REDIS, tls=place))), **settings}


def tls_sentinels(stack: ExitStack) -> dict[str, Any]:
    place, settings = certified(stack)
    return {"url": stack.enter_context(valkey.watched(program=REDIS, tls=place)).url, **settings}


REDIS = "redis-server"
SYSTEM = {"Redis": redis, "TLS": tls, "TLS, cluster": tls_nodes, "TLS, Sentinels": tls_sentinels}
"""What needs the operating system's own server, as the one on PyPI is built without TLS: `make test-system`."""


@asynccontextmanager
async def memory(_: Servers | None = None) -> AsyncIterator[Opened]:
    now_s = 1000.0

    async def passes(seconds: float) -> None:
        nonlocal now_s
        now_s += seconds

    store = MemoryStore(lambda: now_s)
    yield Opened(store, passes, lambda: nullcontext(store))
    await store.close()


@asynccontextmanager
async def real(kind: str, servers: Servers) -> AsyncIterator[Opened]:
    settings = Settings.model_validate({**servers.settings(kind), "prefix": f"t{next(_PREFIXES)}", "timeout_ms": 5000})

    @asynccontextmanager
    async def opened() -> AsyncIterator[Store]:
        store = open_store(settings)
        try:
            yield store
        finally:
            await store.close()

    async with opened() as store:
        yield Opened(store, asyncio.sleep, opened)


STORES: dict[str, Callable[[Servers], AbstractAsyncContextManager[Opened]]] = {
    "memory": memory,
    **{kind: partial(real, kind) for kind in (REAL | SYSTEM)},
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "opened" in metafunc.fixturenames:
        kinds = SYSTEM if metafunc.config.getoption("--system") else STORES.keys() - SYSTEM.keys()
        metafunc.parametrize("opened", sorted(kinds), indirect=True)


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    with ExitStack() as stack:
        yield Servers(stack)


@pytest.fixture
async def opened(request: pytest.FixtureRequest, servers: Servers) -> AsyncIterator[Opened]:
    async with asyncio.timeout(DEADLINE_S), STORES[request.param](servers) as one:
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


async def test_an_implementation_says_whether_others_see_it(opened: Opened) -> None:
    assert opened.store.shared is not isinstance(opened.store, MemoryStore)
    assert opened.store.up


async def test_others_see_what_is_kept(opened: Opened) -> None:
    async with opened.another() as other:
        await opened.store.set("k", b"1", 60)
        assert await other.get("k") == b"1"
        assert await other.set_nx("k", b"2", 60) is False


async def test_a_sign_of_life_leaves_nothing(store: Store) -> None:
    await store.ping()
    assert await store.get("ping") is None


# leases: whose value it still is


async def test_a_lease_is_given_back_by_its_holder_alone(store: Store) -> None:
    assert await store.set_nx("lease", b"mine", 60)
    assert await store.delete_if("lease", b"yours") is False
    assert await store.get("lease") == b"mine"
    assert await store.delete_if("lease", b"mine") is True
    assert await store.delete_if("lease", b"mine") is False
    assert await store.set_nx("lease", b"yours", 60)


async def test_a_lease_is_extended_by_its_holder_alone(opened: Opened) -> None:
    store = opened.store
    await store.set("lease", b"mine", 0.2)
    assert await store.renew("lease", b"yours", 3600) is False
    assert await store.renew("lease", b"mine", 3600) is True
    await opened.passes(0.25)
    assert await store.get("lease") == b"mine"


async def test_a_lease_that_is_over_is_not_extended(opened: Opened) -> None:
    await opened.store.set("lease", b"mine", 0.05)
    await opened.passes(0.06)
    assert await opened.store.renew("lease", b"mine", 60) is False
    assert await opened.store.get("lease") is None


@pytest.mark.parametrize("ttl_s", [0, -1])
async def test_a_lease_that_is_renewed_for_no_time_is_over(store: Store, ttl_s: float) -> None:
    await store.set("lease", b"mine", 60)
    assert await store.renew("lease", b"mine", ttl_s) is True
    assert await store.get("lease") is None


@pytest.mark.parametrize("ttl_s", [0, -1])
async def test_set_nx_for_no_time_tells_and_leaves_nothing(store: Store, ttl_s: float) -> None:
    assert await store.set_nx("k", b"1", ttl_s) is True
    assert await store.get("k") is None
    await store.set("k", b"1", 60)
    assert await store.set_nx("k", b"2", ttl_s) is False
    assert await store.get("k") == b"1"


# numbers


async def test_a_number_starts_at_nothing(store: Store) -> None:
    assert [await store.incr("n", 60), await store.incr("n", 60, 5), await store.incr("n", 60, -7)] == [1, 6, -1]
    assert await store.get("n") == b"-1"


async def test_everyone_at_once_gets_a_number_of_their_own(store: Store) -> None:
    numbers = await asyncio.gather(*(store.incr("n", 60) for _ in range(100)))
    assert sorted(numbers) == list(range(1, 101))


async def test_the_time_of_a_number_starts_when_it_is_made(opened: Opened) -> None:
    assert await opened.store.incr("n", 0.2) == 1
    assert await opened.store.incr("n", 3600) == 2
    await opened.passes(0.25)
    assert await opened.store.incr("n", 3600) == 1


async def test_a_number_for_no_time_leaves_nothing(store: Store) -> None:
    assert await store.incr("n", 0) == 1
    assert await store.get("n") is None


# hashes


async def test_fields_come_back_as_they_were(store: Store) -> None:
    fields = {"a": b"1", "größe": b"", "": bytes(range(256))}
    for field, value in fields.items():
        await store.put_field("h", field, value, 60)
    assert await store.fields("h") == fields


async def test_a_field_is_replaced_and_removed(store: Store) -> None:
    assert await store.fields("h") == {}
    await store.put_field("h", "a", b"1", 60)
    await store.put_field("h", "a", b"2", 60)
    await store.put_field("h", "b", b"3", 60)
    assert await store.fields("h") == {"a": b"2", "b": b"3"}
    await store.put_field("h", "a", None, 60)
    await store.put_field("h", "never", None, 60)
    assert await store.fields("h") == {"b": b"3"}
    await store.put_field("h", "b", None, 60)
    assert await store.fields("h") == {}


async def test_the_time_of_a_hash_starts_again_with_each_field(opened: Opened) -> None:
    await opened.store.put_field("h", "a", b"1", 0.2)
    await opened.store.put_field("h", "b", b"2", 3600)
    await opened.passes(0.25)
    assert await opened.store.fields("h") == {"a": b"1", "b": b"2"}
    await opened.store.put_field("h", "a", None, 0.05)
    await opened.passes(0.06)
    assert await opened.store.fields("h") == {}


async def test_a_hash_is_deleted_whole(store: Store) -> None:
    await store.put_field("h", "a", b"1", 60)
    await store.delete("h")
    assert await store.fields("h") == {}


async def test_what_is_read_of_a_hash_is_the_readers_own(store: Store) -> None:
    await store.put_field("h", "a", b"1", 60)
    (await store.fields("h"))["a"] = b"2"
    assert await store.fields("h") == {"a": b"1"}


# logs


def values(entries: list[tuple[str, bytes]]) -> list[bytes]:
    return [value for _, value in entries]


async def test_a_log_is_read_from_its_start_and_after_a_cursor(store: Store) -> None:
    assert await store.read("log", "", 0) == []
    for value in (b"1", b"", b"3"):
        await store.append("log", value, 60, 10)
    entries = await store.read("log", "", 0)
    assert values(entries) == [b"1", b"", b"3"]
    assert values(await store.read("log", entries[0][0], 0)) == [b"", b"3"]
    assert await store.read("log", entries[2][0], 0) == []
    assert await store.read("log", "", 0) == entries


async def test_a_log_keeps_its_newest_entries(store: Store) -> None:
    for number in range(10):
        await store.append("log", b"%d" % number, 60, 3)
    assert values(await store.read("log", "", 0)) == [b"7", b"8", b"9"]


async def test_a_long_log_comes_in_pieces(store: Store) -> None:
    for number in range(MAX_READ + 5):
        await store.append("log", b"%d" % number, 60, 1000)
    first = await store.read("log", "", 1)
    rest = await store.read("log", first[-1][0], 1)
    assert len(first) == MAX_READ
    assert values(first + rest) == [b"%d" % number for number in range(MAX_READ + 5)]


async def test_a_reader_gets_what_is_there_without_waiting(store: Store) -> None:
    await store.append("log", b"1", 60, 10)
    assert values(await store.read("log", "", DEADLINE_S * 2)) == [b"1"]


async def test_a_waiting_reader_wakes_at_the_first_entry(opened: Opened) -> None:
    async with opened.another() as other, asyncio.TaskGroup() as tasks:
        waiting = [tasks.create_task(opened.store.read("log", "", DEADLINE_S * 2)) for _ in range(3)]
        await opened.store.get("k")
        await other.append("another", b"0", 60, 10)
        await other.append("log", b"1", 60, 10)
    assert [values(task.result()) for task in waiting] == [[b"1"]] * 3


async def test_a_reader_that_waits_in_vain_gets_nothing(store: Store) -> None:
    assert await store.read("log", "", 0.05) == []


@pytest.mark.parametrize("steps", range(12))
async def test_who_is_called_off_is_called_off_at_whatever_moment(store: Store, steps: int) -> None:
    await store.set("k", b"v", 60)
    asked = asyncio.create_task(_asking(store))
    for _ in range(steps):
        await asyncio.sleep(0)
    asked.cancel()
    await asyncio.wait({asked}, timeout=DEADLINE_S)
    assert asked.cancelled()


async def _asking(store: Store) -> None:
    while True:
        assert await store.get("k") == b"v"
        await asyncio.sleep(0)


async def test_a_reader_that_is_called_off_harms_nobody(store: Store) -> None:
    one = asyncio.create_task(store.read("log", "", DEADLINE_S * 2))
    await store.get("k")
    one.cancel()
    await asyncio.wait([one])
    assert one.cancelled()
    await store.append("log", b"1", 60, 10)
    assert values(await store.read("log", "", 1)) == [b"1"]


async def test_the_time_of_a_log_starts_again_with_each_entry(opened: Opened) -> None:
    await opened.store.append("log", b"1", 0.2, 10)
    await opened.store.append("log", b"2", 3600, 10)
    await opened.passes(0.25)
    assert values(await opened.store.read("log", "", 0)) == [b"1", b"2"]
    await opened.store.append("log", b"3", 0.05, 10)
    await opened.passes(0.06)
    assert await opened.store.read("log", "", 0) == []


async def test_a_log_that_is_made_anew_goes_on_after_the_old_one(opened: Opened) -> None:
    await opened.store.append("log", b"1", 60, 10)
    [(cursor, _)] = await opened.store.read("log", "", 0)
    await opened.store.delete("log")
    await opened.passes(0.002)  # the cursor of a real log is the server's clock, in milliseconds
    await opened.store.append("log", b"2", 60, 10)
    assert values(await opened.store.read("log", cursor, 0)) == [b"2"]


async def test_many_readers_wait_for_logs_of_their_own(store: Store) -> None:
    async with asyncio.TaskGroup() as tasks:
        reading = [tasks.create_task(store.read(f"log{number}", "", DEADLINE_S * 2)) for number in range(50)]
        for number in range(50):
            await store.append(f"log{number}", b"%d" % number, 60, 10)
    assert [values(task.result()) for task in reading] == [[b"%d" % number] for number in range(50)]


# messages


async def test_what_nobody_is_subscribed_to_is_lost(store: Store) -> None:
    await store.publish("channel", b"0")
    async with store.subscribe("channel") as messages:
        await store.publish("other", b"1")
        await store.publish("channel", b"2")
        assert await anext(messages) == b"2"


async def test_every_subscriber_gets_every_message_in_order(opened: Opened) -> None:
    async with AsyncExitStack() as stack:
        other = await stack.enter_async_context(opened.another())
        stores = (opened.store, opened.store, other)
        subscribers = [await stack.enter_async_context(store.subscribe("channel")) for store in stores]
        for number in range(20):
            await opened.store.publish("channel", b"%d" % number)
        for messages in subscribers:
            assert [await anext(messages) for _ in range(20)] == [b"%d" % number for number in range(20)]


async def test_subscriptions_come_and_go(store: Store) -> None:
    for number in range(30):
        async with store.subscribe("channel") as messages, store.subscribe(f"channel{number}") as others:
            await store.publish("channel", b"%d" % number)
            await store.publish(f"channel{number}", b"other")
            assert await anext(messages) == b"%d" % number
            assert await anext(others) == b"other"


async def test_any_text_is_a_channel_and_any_bytes_a_message(store: Store) -> None:
    for channel in KEYS:
        async with store.subscribe(channel) as messages:
            await store.publish(channel, bytes(range(256)))
            assert await anext(messages) == bytes(range(256))


async def test_a_slow_reader_is_told_that_messages_are_missing(store: Store) -> None:
    async with store.subscribe("channel") as messages, store.subscribe("channel") as quick:
        for number in range(MAX_UNREAD + 1):
            await store.publish("channel", b"%d" % number)
            assert await anext(quick) == b"%d" % number
        assert await anext(messages) is None
        assert await anext(messages) == b"%d" % MAX_UNREAD


async def test_an_iteration_ends_with_the_store(store: Store) -> None:
    async with store.subscribe("channel") as messages:
        await store.publish("channel", b"1")
        assert await anext(messages) == b"1"
        await store.close()
        assert [message async for message in messages] == []


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
