"""What a session's client is told while the store is gone, where it is more than that its calls go on."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass

import pytest_asyncio

from tests.fleet import Fleet, fleet
from tests.peers import LegacyUpstream
from tests.raw_front import Front, Session
from tests.scripted import Json
from tests.valkey import started

CALL: Json = {"name": "t", "arguments": {}}


@dataclass(frozen=True, slots=True)
class Alone:
    """Two replicas whose store has gone, and a session at a route that leads to `first`, its tool calls to `second`."""

    replicas: Fleet
    first: LegacyUpstream
    second: LegacyUpstream
    session: Session


@pytest_asyncio.fixture(loop_scope="session")
async def alone() -> AsyncIterator[Alone]:
    async with AsyncExitStack() as stack:
        store = await asyncio.to_thread(stack.enter_context, started())
        first, second = [await stack.enter_async_context(LegacyUpstream()) for _ in range(2)]
        routes = [{"path": "/r", "rules": [{"method": "tools/call", "upstream": "second"}], "default": "first"}]
        behind = {"first": first, "second": second}
        replicas = await stack.enter_async_context(fleet(behind, store=store.url, routes=routes))
        session = await replicas.front("/r").initialize()
        await second.seen("notifications/initialized", 2)  # each replica has a session to find out about it
        await asyncio.to_thread(store.kill)
        yield Alone(replicas, first, second, session)


async def test_a_cancel_that_cannot_be_handed_on_is_taken(alone: Alone) -> None:
    assert (await alone.session.notify("notifications/cancelled", {"requestId": 1})).status == 202


async def test_a_session_that_cannot_be_ended_everywhere_is_not_said_to_be(alone: Alone) -> None:
    for _ in range(2):
        refused = await alone.session.delete()
        assert refused.status == 503
        assert refused.error["code"] == -32603
    assert (await alone.session.request("tools/list")).result["tools"]


async def test_an_upstream_session_that_no_replica_could_find_again_is_not_left_there(alone: Alone) -> None:
    before = set(alone.second.live)
    refused = await alone.session.request("tools/call", CALL)
    assert (refused.status, refused.code) == (200, -32603)
    assert len(alone.second.opened) == len(before) + 1
    assert alone.second.live == before
    assert alone.second.calls("tools/call") == []


async def test_a_standalone_stream_that_was_superseded_is_not_resumed_and_ends_no_other() -> None:
    async with LegacyUpstream(get_stream=True) as upstream, fleet({"u": upstream}) as replicas:
        here, there = (Front(f"{replica.url}/u") for replica in replicas.replicas)
        session = await here.initialize()
        async with session.get() as stream:
            first = await stream.event()
            assert first is not None
        session.front = there
        async with session.get() as second:  # takes over
            assert (await second.event()) is not None
            async with session.get({"Last-Event-ID": str(first.id)}) as old:
                assert old.status == 400, "what was superseded does not supersede"
