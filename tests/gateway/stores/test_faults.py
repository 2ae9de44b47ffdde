"""What a real server does to its users, and what the store makes of it: an error in time, words in the log, recovery.

Waiting is for the store's own recovery, under a deadline; how long an operation took is never asserted, but that it
ended although the server says nothing.
"""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any

import pytest
from redis.exceptions import ResponseError

from gateway.stores import redis as redis_store
from gateway.stores.base import Store, StoreUnavailable
from gateway.stores.redis import RedisStore
from gateway.stores.redis_errors import refusal
from policies.settings_store import Store as Settings
from tests import valkey
from tests.certificates import issue
from tests.ports import free_port

DEADLINE_S = 30.0


@pytest.fixture(autouse=True)
def lines(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    caplog.set_level(logging.WARNING, "gateway.stores")
    return lambda: [record.getMessage() for record in caplog.records]


@pytest.fixture
def server() -> Iterator[valkey.Server]:
    with valkey.started() as one:
        yield one


@asynccontextmanager
async def opened(url: str, **more: Any) -> AsyncIterator[RedisStore]:
    async with asyncio.timeout(DEADLINE_S):
        store = RedisStore(Settings(url=url, **more))
        try:
            yield store
        finally:
            await store.close()


@pytest.fixture
async def store(server: valkey.Server) -> AsyncIterator[RedisStore]:
    async with opened(server.url) as one:
        await one.set("before", b"1", 60)
        yield one


async def recovers(what: Callable[[], Awaitable[Any]]) -> Any:
    """What it returns, once it does not raise any more."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            try:
                return await what()
            except StoreUnavailable:
                await asyncio.sleep(0.02)


async def outage(store: Store) -> list[str]:
    """Enough failures to open the breaker; what they said."""
    said = []
    for _ in range(3):
        with pytest.raises(StoreUnavailable) as raised:
            await store.get("k")
        said.append(raised.value.message)
    return said


OPERATIONS: dict[str, Callable[[Store], Awaitable[Any]]] = {
    "get": lambda store: store.get("k"),
    "set": lambda store: store.set("k", b"1", 60),
    "set_nx": lambda store: store.set_nx("k", b"1", 60),
    "delete": lambda store: store.delete("k"),
    "delete_if": lambda store: store.delete_if("k", b"1"),
    "renew": lambda store: store.renew("k", b"1", 60),
    "incr": lambda store: store.incr("n", 60),
    "put_field": lambda store: store.put_field("h", "a", b"1", 60),
    "fields": lambda store: store.fields("h"),
    "append": lambda store: store.append("log", b"1", 60, 10),
    "read": lambda store: store.read("log", "", 0),
    "read and wait": lambda store: store.read("log", "", 0.1),
    "publish": lambda store: store.publish("channel", b"1"),
    "ping": lambda store: store.ping(),
}


@pytest.mark.parametrize("name", OPERATIONS)
async def test_each_operation_fails_while_there_is_no_server(name: str, lines: Callable[[], list[str]]) -> None:
    async with opened(f"redis://127.0.0.1:{free_port()}") as store:
        for _ in range(5):
            with pytest.raises(StoreUnavailable) as raised:
                await OPERATIONS[name](store)
            assert raised.value.http == 503
            assert "127.0.0.1" not in raised.value.message
        assert not store.up
    assert len(lines()) == 1


@pytest.mark.parametrize("name", OPERATIONS)
async def test_each_operation_ends_while_the_server_says_nothing(
    name: str, server: valkey.Server, store: RedisStore
) -> None:
    server.pause()
    with pytest.raises(StoreUnavailable, match="no answer in time"):
        await OPERATIONS[name](store)
    server.resume()
    await OPERATIONS[name](store)
    assert store.up


async def test_a_server_that_is_killed_is_missed_and_found_again(
    server: valkey.Server, store: RedisStore, lines: Callable[[], list[str]]
) -> None:
    server.kill()
    assert set(await outage(store)) == {"the store can't be used: can't be reached"}
    assert not store.up
    server.start()
    assert await recovers(lambda: store.get("before")) is None
    assert store.up
    await store.set("after", b"2", 60)
    assert await store.get("after") == b"2"
    down, up = lines()
    assert down == f"store {server.url}: down: can't be reached"
    assert up.startswith(f"store {server.url}: up again after ")


async def test_a_server_that_is_paused_is_missed_and_found_again(
    server: valkey.Server, store: RedisStore, lines: Callable[[], list[str]]
) -> None:
    server.pause()
    assert set(await outage(store)) == {"the store can't be used: no answer in time"}
    server.resume()
    assert await recovers(lambda: store.get("before")) == b"1"
    assert [line.partition(": ")[2][:8] for line in lines()] == ["down: no", "up again"]


async def test_a_server_that_was_never_there_is_down_at_once(lines: Callable[[], list[str]]) -> None:
    async with opened(f"redis://127.0.0.1:{free_port()}") as store:
        with pytest.raises(StoreUnavailable):
            await store.ping()
        assert not store.up
    assert len(lines()) == 1


async def test_a_store_closes_while_the_server_says_nothing(server: valkey.Server) -> None:
    async with opened(server.url, timeout_ms=2000) as store:  # a busy machine is no outage
        await asyncio.gather(*(store.set(f"k{number}", b"1", 60) for number in range(10)))
        waiting = asyncio.create_task(store.read("log", "", DEADLINE_S * 2))
        async with store.subscribe("channel"):
            server.pause()
            await store.close()
        with pytest.raises(StoreUnavailable):
            await waiting


# what an older server says from within a script, which no server on PyPI does any more
OF_SCRIPTS = {
    "ERR Error running script (call to f_8a1): @user_script:1: @user_script: 1: -OOM command not allowed": "OOM",
    "ERR Error running script (call to f_8a1): @user_script:1: @user_script: 1: -READONLY You can't write": "READONLY",
    "ERR value is not an integer or out of range script: 8a1, on @user_script:1.": "ERR",
    "WRONGTYPE Operation against a key holding the wrong kind of value script: 8a1, on @user_script:1.": "WRONGTYPE",
}


@pytest.mark.parametrize("said", OF_SCRIPTS)
def test_an_error_within_a_script_is_known_by_its_own_code(said: str) -> None:
    assert refusal(ResponseError(said)) == OF_SCRIPTS[said]


async def test_one_failure_is_no_outage(server: valkey.Server, store: RedisStore) -> None:
    server.pause()
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            await store.get("before")
    server.resume()
    assert await store.get("before") == b"1"
    assert store.up


async def test_a_restart_between_operations_costs_none_of_them(server: valkey.Server, store: RedisStore) -> None:
    await asyncio.gather(*(store.get("before") for _ in range(20)))  # connections that will be dead
    server.kill()
    await asyncio.to_thread(server.start)  # meanwhile the loop sees that they are closed
    assert await asyncio.gather(*(store.get("before") for _ in range(20))) == [None] * 20


async def test_what_was_late_is_not_taken_for_the_answer_to_the_next(server: valkey.Server, store: RedisStore) -> None:
    keys = [f"k{number}" for number in range(10)]
    for key in keys:
        await store.set(key, key.encode(), 60)
    for key in keys[:2]:
        server.pause()
        with pytest.raises(StoreUnavailable):
            await store.get(key)
        server.resume()
    assert [await store.get(key) for key in keys] == [key.encode() for key in keys]


async def test_what_is_called_off_is_not_taken_for_the_answer_to_the_next(store: RedisStore) -> None:
    keys = [f"k{number}" for number in range(50)]
    await asyncio.gather(*(store.set(key, key.encode(), 60) for key in keys))
    for steps in range(40):
        task = asyncio.create_task(store.get("before"))
        for _ in range(steps % 10):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
    assert await asyncio.gather(*(store.get(key) for key in keys)) == [key.encode() for key in keys]


async def test_a_flushed_store_has_forgotten_and_works(server: valkey.Server, store: RedisStore) -> None:
    await store.append("log", b"1", 60, 10)
    [(cursor, _)] = await store.read("log", "", 0)
    waiting = asyncio.create_task(store.read("log", cursor, DEADLINE_S * 2))
    with closing(server.admin()) as admin:
        admin.flushall()
        admin.script_flush()
    assert await store.get("before") is None
    assert await store.incr("n", 60) == 1
    await store.append("log", b"2", 60, 10)
    assert [value for _, value in await waiting] == [b"2"]


async def test_a_full_store_refuses_what_is_new_and_still_reads(
    server: valkey.Server, store: RedisStore, lines: Callable[[], list[str]]
) -> None:
    with closing(server.admin()) as admin:
        admin.config_set("maxmemory", 1)
        for write in ("set", "set_nx", "incr", "put_field", "append") * 2:
            with pytest.raises(StoreUnavailable, match="the store is full"):
                await OPERATIONS[write](store)
        assert await store.get("before") == b"1"
        assert await store.delete_if("before", b"1")
        assert len(lines()) == 1
        assert store.up
        admin.config_set("maxmemory", 0)
    for write in ("set", "incr", "append"):
        await OPERATIONS[write](store)
    assert lines() == [
        f"store {server.url}: is full (OOM); give it more memory (maxmemory)",
        f"store {server.url}: takes writes again",
    ]


async def test_a_server_that_leads_no_longer_takes_no_writes(
    server: valkey.Server, store: RedisStore, lines: Callable[[], list[str]]
) -> None:
    with valkey.started() as leader, closing(server.admin()) as admin:
        admin.replicaof("127.0.0.1", leader.port)
        for _ in range(5):
            with pytest.raises(StoreUnavailable, match="READONLY"):
                await store.set("k", b"1", 60)
        admin.replicaof("NO", "ONE")
        await store.set("k", b"1", 60)
    assert [line.rpartition(": ")[2] for line in lines()] == [
        "takes no writes (READONLY); it leads no longer",
        "takes writes again",
    ]


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        (("--requirepass", "right"), {"password": "wrong-secret"}),
        (("--requirepass", "right"), {}),
        (("--user", "gateway", "on", ">right"), {"username": "gateway", "password": "wrong-secret"}),
    ],
    ids=["a wrong password", "no password", "a wrong password of a user"],
)
async def test_wrong_credentials_are_said_without_being_shown(
    options: tuple[str, ...], settings: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    with valkey.started(*options) as server:
        async with opened(server.url, **settings) as store:
            for message in await outage(store):
                assert "credentials are refused" in message
        assert "check store.username and store.password" in caplog.text
        assert "wrong-secret" not in caplog.text


async def down(url: str, **settings: Any) -> None:
    async with opened(url, **settings) as store:
        with pytest.raises(StoreUnavailable):
            await store.get("k")


async def test_a_url_of_another_kind_of_store_is_said(lines: Callable[[], list[str]]) -> None:
    with valkey.started() as server, valkey.nodes() as servers:
        await down(f"redis+cluster://127.0.0.1:{server.port}")
        await down(f"redis+sentinel://127.0.0.1:{server.port}/main")
        for node in servers:
            async with opened(node.url) as store:
                with suppress(StoreUnavailable):  # a third of the keys is this node's
                    await store.get("k")
    assert [line.partition(": ")[2] for line in lines()] == [
        "down: is no cluster; begin store.url with redis:// or redis+sentinel://",
        "down: is no Sentinel; begin store.url with redis:// or redis+cluster://",
        *["is a node of a cluster (MOVED); begin store.url with redis+cluster://"] * 2,
    ]


@pytest.mark.parametrize("kind", ["", "+cluster"])
@pytest.mark.parametrize(
    ("signer", "names"),
    [("other", {"address": "127.0.0.1"}), ("ca", {"names": ["elsewhere"]})],
    ids=["another authority", "another name"],
)
async def test_a_server_with_a_wrong_certificate_gets_no_password(
    signer: str, names: dict[str, Any], kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    signers = {name: issue(tmp_path, name, None, authority=True) for name in ("ca", "other")}
    issue(tmp_path, "server", signers[signer], **names)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "server.pem", tmp_path / "server.key")
    heard = []

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read())
        writer.close()

    async with await asyncio.start_server(hear, "127.0.0.1", 0, ssl=context) as impostor:
        port = impostor.sockets[0].getsockname()[1]
        await down(f"rediss{kind}://127.0.0.1:{port}", password="hunter2", tls={"ca": str(tmp_path / "ca.pem")})
    assert not any(heard)
    assert "its certificate is not trusted" in caplog.text


async def test_a_command_that_the_user_lacks_is_said_once(lines: Callable[[], list[str]]) -> None:
    rights = ("~*", "&*", "+@all", "-eval")
    with valkey.started("--user", "gateway", "on", ">right", *rights) as server:
        async with opened(server.url, username="gateway", password="right") as store:
            for _ in range(2):
                with pytest.raises(StoreUnavailable, match="NOPERM"):
                    await store.incr("n", 60)
                await store.set("k", b"1", 60)
            assert store.up
    assert len(lines()) == 1


# readers that wait, subscribers


async def test_a_reader_that_waits_learns_that_the_server_is_gone(server: valkey.Server, store: RedisStore) -> None:
    waiting = [asyncio.create_task(store.read("log", "", DEADLINE_S * 2)) for _ in range(3)]
    with closing(server.admin()) as admin:
        await asyncio.to_thread(valkey.until, lambda: int(admin.info("clients")["blocked_clients"]) == 3)
    server.kill()
    for task in waiting:
        with pytest.raises(StoreUnavailable):
            await task


async def test_more_readers_than_connections_still_get_their_entries(
    server: valkey.Server,
) -> None:
    count = redis_store.MAX_WAITING
    async with opened(server.url, timeout_ms=10_000) as store:  # a busy machine is no outage
        held = [asyncio.create_task(store.read("quiet", "", DEADLINE_S * 2)) for _ in range(count)]
        with closing(server.admin()) as admin:
            await asyncio.to_thread(valkey.until, lambda: int(admin.info("clients")["blocked_clients"]) == count)
        late = asyncio.create_task(store.read("log", "", 0.3))
        await store.append("log", b"1", 60, 10)
        assert [value for _, value in await late] == [b"1"]
        for task in held:
            task.cancel()
        await asyncio.wait(held)
        await store.append("log", b"2", 60, 10)
        assert [value for _, value in await store.read("log", "", 1)] == [b"1", b"2"]


async def test_a_subscriber_hears_on_after_a_restart_and_is_told_of_the_gap(
    server: valkey.Server, store: RedisStore
) -> None:
    async with store.subscribe("channel") as one, store.subscribe("channel") as two:
        await store.publish("channel", b"1")
        assert [await anext(one), await anext(two)] == [b"1", b"1"]
        server.kill()
        server.start()
        assert [await anext(one), await anext(two)] == [None, None]
        await recovers(lambda: store.publish("channel", b"2"))
        assert [await anext(one), await anext(two)] == [b"2", b"2"]


async def test_a_subscription_begins_while_the_server_is_down(server: valkey.Server, store: RedisStore) -> None:
    server.kill()
    async with store.subscribe("channel") as messages:
        server.start()
        assert await anext(messages) is None
        await recovers(lambda: store.publish("channel", b"1"))
        assert await anext(messages) == b"1"


async def test_a_connection_that_was_cut_is_a_gap(server: valkey.Server, store: RedisStore) -> None:
    async with store.subscribe("channel") as messages:
        for number in range(3):
            with closing(server.admin()) as admin:
                admin.client_kill_filter(_type="pubsub")
            assert await anext(messages) is None
            await store.publish("channel", b"%d" % number)
            assert await anext(messages) == b"%d" % number


# groups of servers


async def test_sentinels_lead_to_the_new_leader(lines: Callable[[], list[str]]) -> None:
    with valkey.watched() as group:
        async with opened(group.url) as store, store.subscribe("channel") as messages:
            await store.set("k", b"1", 60)
            with closing(group.leader.admin()) as admin:
                admin.wait(1, 5000)  # the follower has it
            await asyncio.to_thread(group.fail_over)
            assert await recovers(lambda: store.get("k")) == b"1"
            await store.set("k", b"2", 60)
            assert await anext(messages) is None
            await recovers(lambda: store.publish("channel", b"1"))
            assert await anext(messages) == b"1"
    assert len(lines()) <= 2


async def test_one_sentinel_that_is_gone_does_no_harm() -> None:
    with valkey.watched() as group:
        group.sentinels[0].kill()
        async with opened(group.url) as store:
            await recovers(lambda: store.set("k", b"1", 60))
            assert await store.get("k") == b"1"


async def test_a_node_of_a_cluster_that_is_gone_is_missed_and_found_again() -> None:
    with valkey.nodes() as servers:
        async with opened(valkey.cluster_url(servers)) as store:
            keys = [f"k{number}" for number in range(20)]
            for key in keys:
                await store.set(key, key.encode(), 60)
            servers[1].kill()
            failed = await asyncio.gather(*(store.get(key) for key in keys), return_exceptions=True)
            assert {type(outcome) for outcome in failed} <= {StoreUnavailable, bytes}
            assert any(isinstance(outcome, StoreUnavailable) for outcome in failed)
            servers[1].start()
            for key in keys:
                assert await recovers(lambda key=key: store.get(key)) in (key.encode(), None)
                await recovers(lambda key=key: store.set(key, b"new", 60))
                assert await store.get(key) == b"new"


async def test_a_slot_that_moves_takes_its_keys_along() -> None:
    with valkey.nodes() as servers:
        async with opened(valkey.cluster_url(servers), timeout_ms=5000) as store:
            await store.set("k", b"1", 60)
            await asyncio.to_thread(valkey.move, servers, "mcpfd:1:k")
            assert await store.get("k") == b"1"
            assert await store.renew("k", b"1", 60)
            await store.append("{k}log", b"1", 60, 10)
            assert [value for _, value in await store.read("{k}log", "", 1)] == [b"1"]
