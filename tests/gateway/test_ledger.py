"""The ledger's bounds, and what it does with a store that others write to."""

import asyncio
from functools import partial

import msgspec
import pytest

from gateway.exchange import Exchange
from gateway.provider import ledger as module
from gateway.provider.ledger import MAX_ALL, MAX_MARKS, Ledger
from gateway.stores.memory import MemoryStore
from policies.exchange import Answer, Call, Dialect, Event, Notify
from policies.profiles import Profile
from policies.provider import Inspected, Known
from policies.sightings import Mark
from tests.http_wire import DEADLINE_S


class SharedStore(MemoryStore):
    """This process's memory, which two ledgers share as replicas share a store."""

    shared = True  # type: ignore[assignment,misc]


def asking(*names: str, digests: frozenset[str] = frozenset()) -> Inspected:
    return Inspected(b"", "openai", "", digests, frozenset(names))


async def known(ledger: Ledger, client: str | None, inspected: Inspected) -> Known:
    return ledger.known(client, inspected) if await ledger.has_any(client) else Known()


def names(prefix: str, count: int) -> list[Mark]:
    return [("shown", f"{prefix}{number}") for number in range(count)]


def started(store: MemoryStore | None = None, *clients: str) -> Ledger:
    ledger = Ledger(MemoryStore() if store is None else store)
    ledger.configure(clients, on=True)
    return ledger


async def test_one_caller_at_one_server_has_so_many_marks() -> None:
    ledger = started()
    ledger.note(None, "a", names("t", MAX_MARKS + 5))
    assert len(ledger) == MAX_MARKS
    found = await known(ledger, None, asking("t4", "t5"))
    assert found.ui_tools == {"t5"}


async def test_all_callers_have_so_many_and_who_was_not_heard_of_for_longest_loses_first() -> None:
    clients = [f"c{number}" for number in range(MAX_ALL // MAX_MARKS + 2)]
    ledger = started(None, *clients)
    for client in clients:
        ledger.note(client, "a", names("t", MAX_MARKS))
        assert len(ledger) <= MAX_ALL
    assert (await known(ledger, clients[0], asking("t9"))).ui_tools == frozenset()
    assert (await known(ledger, clients[-1], asking("t9"))).ui_tools == {"t9"}


async def test_clients_that_are_gone_leave_nothing_and_without_apis_there_is_nothing() -> None:
    ledger = started(None, "ci", "ops")
    for client in ("ci", "ops", None):
        ledger.note(client, "a", names("t", 3))
    ledger.configure(["ops"], on=True)
    assert len(ledger) == 6
    ledger.configure(["ops"], on=False)
    assert len(ledger) == 0
    ledger.note("ops", "a", names("t", 3))
    assert len(ledger) == 0


async def test_texts_of_one_server_share_the_names_that_they_count_in() -> None:
    """There may be thousands of both: each server is asked for its names once."""
    ledger = started()
    digests = frozenset({"d1", "d2"})
    ledger.note(None, "a", [("plain", "read"), *(("body", one) for one in sorted(digests))])  # type: ignore[list-item]
    found = await known(ledger, None, asking("read", "fetch", digests=digests))
    assert found.only_in == dict.fromkeys(digests, frozenset({"read"}))
    assert found.only_in["d1"] is found.only_in["d2"]


async def test_a_text_counts_in_tools_of_the_servers_that_gave_it() -> None:
    ledger = started()
    body: Mark = ("body", "d1")
    ledger.note(None, "a", [body, ("plain", "read"), ("shown", "show")])
    ledger.note(None, "b", [("plain", "fetch")])
    found = await known(ledger, None, asking("read", "fetch", digests=frozenset({"d1", "d2"})))
    assert found.ui_bodies == {"d1"}
    assert found.only_in == {"d1": {"read"}}
    ledger.note(None, "c", [body])  # of whose tools nothing is known
    assert (await known(ledger, None, asking("read", digests=frozenset({"d1"})))).only_in == {}


async def test_what_others_have_seen_is_read_however_much_it_is() -> None:
    store = SharedStore()
    one, other = started(store), started(store)
    one.note(None, "a", names("t", 1000))
    async with asyncio.timeout(DEADLINE_S):
        while (await known(other, None, asking("t999"))).ui_tools != {"t999"}:
            await asyncio.sleep(0)
    assert len(other) == 1000
    await one.close()
    await other.close()


async def test_entries_of_another_version_are_passed_over() -> None:
    store = SharedStore()
    for raw in (b"", b"\xff", msgspec.msgpack.encode(["a", "unheard", "x", 1e12]), msgspec.msgpack.encode({"a": 1})):
        await store.append("ledger:anonymous", raw, 60, 10)
    for word, seen_s in (("t", 1e12), ("old", 1e9)):  # of a clock that is ahead, and of long ago
        await store.append("ledger:anonymous", msgspec.msgpack.encode(["a", "shown", word, seen_s]), 60, 10)
    ledger = started(store)
    assert (await known(ledger, None, asking("t", "old"))).ui_tools == {"t"}
    await ledger.close()


VIEW = {"uri": "ui://a", "mimeType": "text/html;profile=mcp-app", "text": "x" * 1100}
RESULT = {"content": [{"type": "resource", "resource": VIEW}]}
DIALECT = Dialect("modern", "2026-07-28")
EVENTS: dict[str, tuple[str, Event, bool]] = {
    "an answer": ("tools/call", Answer(RESULT, DIALECT), True),
    "an answer without an interface": ("tools/call", Answer({"content": []}, DIALECT), False),
    "an answer to a request that can hold none": ("resources/list", Answer(RESULT, DIALECT), False),
    "a task that is over": ("subscriptions/listen", Notify("notifications/tasks", {"result": RESULT}, DIALECT), True),
    "another notification": ("tools/call", Notify("notifications/message", {"result": RESULT}, DIALECT), False),
}


@pytest.mark.parametrize("shows_apps", [True, False])
@pytest.mark.parametrize("name", EVENTS)
async def test_what_a_host_with_apps_is_about_to_read_is_remembered(name: str, shows_apps: bool) -> None:
    method, event, holds = EVENTS[name]
    profile = Profile("p", apps=("text/html;profile=mcp-app",) if shows_apps else ())
    exchange = Exchange(Call(method, {}, {}, {}, None, "client:ci:digest", DIALECT, profile=profile))
    ledger = started(None, "ci")
    exchange.on_event = partial(ledger.heard, "a", exchange)
    exchange.emit(event)
    assert bool(len(ledger)) == (holds and shows_apps)
    assert await ledger.has_any("ci") == (holds and shows_apps)
    assert not await ledger.has_any(None)


@pytest.mark.parametrize("raw", [b"{", b"[1]", b'{"result": 1}', b'{"result": {"contents": 1}, "ui://": "ui://"}'])
async def test_an_answer_that_cannot_be_read_is_nothing(raw: bytes) -> None:
    ledger = started()
    ledger.see_raw(None, "a", "resources/read", {"uri": "ui://a"}, raw)
    assert len(ledger) == 0


def test_what_is_kept_in_the_store_is_bounded() -> None:
    assert module.MAX_LOG >= MAX_MARKS
