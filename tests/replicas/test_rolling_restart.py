"""Two replicas, stopped and started again one after the other under load: no request fails, no call is lost.

Requests come through a hop that opens a connection for each, and from clients that keep theirs, choose a replica for
each request, and go to the other one only where a connection is refused.
"""

import asyncio
import itertools
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import aiohttp
import pytest

from tests.asks.talk import ACCEPT, EVERYTHING, Modern, heard
from tests.fleet import KEYS
from tests.gateway_process import GatewayProcess, running
from tests.hop import Hop, hopping
from tests.http_wire import DEADLINE_S
from tests.peers import LegacyUpstream, ModernUpstream, text
from tests.raw_front import BOTH_TYPES, Answer, Front, modern_headers, modern_request
from tests.replicas.stage import outcome, said
from tests.scripted import Call, Json
from tests.valkey import free_port, valkey

QUICK: Json = {"name": "quick", "arguments": {}}
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
CHANGED = "notifications/tools/list_changed"
ERAS = ("legacy", "modern")


class Rolling:
    """The replicas, each on a port of its own that it keeps, and what clients saw that was no answer."""

    def __init__(self, settings: Json, upstreams: dict[str, Any]) -> None:
        self.settings, self.upstreams = settings, upstreams
        self.ports = [free_port(), free_port()]
        self.running: list[GatewayProcess | None] = [None, None]
        self.stacks = [AsyncExitStack(), AsyncExitStack()]
        self.hop = Hop([])
        self.failed: list[str] = []
        self.done = 0
        self.changed = asyncio.Condition()
        self.began: asyncio.Queue[str] = asyncio.Queue()
        self.released = asyncio.Event()

    async def start(self, index: int) -> None:
        listen = f"127.0.0.1:{self.ports[index]}"
        replica = running(self.upstreams, keys=KEYS, listen=listen, admin="127.0.0.1:0", **self.settings)
        self.running[index] = await self.stacks[index].enter_async_context(replica)

    def at(self, index: int, era: str) -> Front:
        return Front(f"http://127.0.0.1:{self.ports[index]}/{era}")

    def front(self, era: str) -> Front:
        """Through the hop."""
        return Front(f"{self.hop.url}/{era}")

    async def note(self, what: str) -> None:
        """One request's outcome."""
        if what != "answered":
            self.failed.append(what)
        async with self.changed:
            self.done += 1
            self.changed.notify_all()

    async def more(self, count: int) -> None:
        """Waits for so many more requests."""
        target = self.done + count
        async with asyncio.timeout(DEADLINE_S), self.changed:
            await self.changed.wait_for(lambda: self.done >= target)

    async def tool(self, call: Call) -> Json:
        name = call.seen.params["name"]
        if name == "held":
            await self.began.put(name)
            await self.released.wait()
        if name == "asks":
            return heard(await call.ask("elicitation/create", {"message": "?", "requestedSchema": {"type": "object"}}))
        return text(name)


@asynccontextmanager
async def rolling() -> AsyncIterator[Rolling]:
    async with (
        valkey() as store,
        LegacyUpstream(get_stream=True, capabilities={"tools": {"listChanged": True}}) as legacy,
        ModernUpstream(capabilities={"tools": {"listChanged": True}}) as modern,
        hopping([]) as hop,
    ):
        opened = Rolling({"store": {"url": store, "timeout_ms": 1000}}, {"legacy": legacy, "modern": modern})
        legacy.on["tools/call"] = modern.on["tools/call"] = opened.tool
        hop.targets = [("127.0.0.1", port) for port in opened.ports]
        opened.hop = hop
        try:
            await asyncio.gather(opened.start(0), opened.start(1))
            yield opened
        finally:
            for stack in opened.stacks:
                await stack.aclose()


# the load


async def modern_calls(at: Rolling, era: str) -> None:
    while True:
        await at.note(said(await at.front(era).modern("tools/call", QUICK)))


async def session_calls(at: Rolling, era: str) -> None:
    session = await at.front(era).initialize()
    while True:
        await at.note(said(await session.request("tools/call", QUICK)))


async def new_sessions(at: Rolling, era: str) -> None:
    while True:
        session = await at.front(era).initialize()
        await at.note("answered" if (await session.delete()).status == 200 else "not ended")


async def kept_alive_calls(at: Rolling, era: str) -> None:
    """A client that keeps its connections; the next request goes to the other replica."""
    message = modern_request("tools/call", QUICK)
    headers = {**modern_headers(message), "Accept": BOTH_TYPES}
    async with aiohttp.ClientSession() as http:
        for turn in itertools.count():
            for index in (turn % 2, 1 - turn % 2):
                try:
                    url = f"http://127.0.0.1:{at.ports[index]}/{era}"
                    async with http.post(url, json=message, headers=headers) as response:
                        await at.note(outcome(response.status, await response.json()))
                    break
                except aiohttp.ClientConnectorError:  # nothing was sent
                    continue
                except aiohttp.ClientError as error:
                    await at.note(f"kept: {error!r}")
                    break


async def standalone_stream(at: Rolling, told: asyncio.Queue[str]) -> None:
    """A client with a session that listens, and comes back with the last id that it saw wherever its stream ends."""
    session = await at.front("legacy").initialize()
    headers: dict[str, str] = {}
    while True:
        async with session.get(headers) as stream:
            if stream.status != 200:
                await at.note(f"GET {stream.status}")
                return
            while (event := await stream.event(within_s=2 * DEADLINE_S)) is not None:
                if event.id is not None:
                    headers = {"Last-Event-ID": event.id}
                await told.put(event.json["method"] if event.data else "opened")


async def listen_stream(at: Rolling, told: asyncio.Queue[str]) -> None:
    """A client of 2026-07-28 that listens anew where its stream ends."""
    while True:
        wanted = {"notifications": {"toolsListChanged": True}}
        async with at.front("modern").modern_open("subscriptions/listen", wanted) as stream:
            if stream.status != 200:
                await at.note(f"listen {stream.status}")
                return
            while (message := await stream.message(within_s=2 * DEADLINE_S)) is not None:
                if message.get("method") in (ACKNOWLEDGED, CHANGED):
                    await told.put("opened" if message["method"] == ACKNOWLEDGED else CHANGED)


LOADS: dict[str, Callable[[Rolling, str], Awaitable[None]]] = {
    "calls of 2026-07-28": modern_calls,
    "calls in sessions": session_calls,
    "new sessions": new_sessions,
    "calls on kept connections": kept_alive_calls,
}


async def restart(at: Rolling, index: int) -> None:
    """Stops a replica with calls under way and one parked, ends those, and starts it again."""
    replica = at.running[index]
    assert replica is not None
    at.released.clear()
    held: list[asyncio.Task[Answer]] = []
    for era in ERAS:
        front = at.at(index, era)
        session = await front.initialize()
        held.append(asyncio.create_task(front.modern("tools/call", {**QUICK, "name": "held"})))
        held.append(asyncio.create_task(session.request("tools/call", {**QUICK, "name": "held"})))
    client = Modern(at.at(index, "legacy"), {**QUICK, "name": "asks"}, capabilities=EVERYTHING)
    asked = await client.call()
    async with asyncio.timeout(DEADLINE_S):
        for _ in held:
            await at.began.get()
    replica.process.send_signal(signal.SIGTERM)
    ready = Front(replica.admin_url).at("/readyz")
    async with asyncio.timeout(DEADLINE_S):
        while (await ready.send("GET", {})).status == 200:
            pass
    await at.more(50)
    client.front = at.at(1 - index, "legacy")
    await at.note(said(await client.answer_all(asked, ACCEPT)))
    at.released.set()
    for call in held:
        await at.note(said(await call))
    await at.stacks[index].aclose()  # raises where it has not ended in order
    await at.more(50)
    await at.start(index)
    await at.more(50)


@pytest.mark.field("L11")
async def test_no_request_fails_while_one_replica_after_the_other_is_restarted() -> None:
    async with rolling() as at:
        told: dict[str, asyncio.Queue[str]] = {era: asyncio.Queue() for era in ERAS}
        load = [asyncio.create_task(work(at, era)) for work in LOADS.values() for era in ERAS for _ in range(2)]
        load.append(asyncio.create_task(standalone_stream(at, told["legacy"])))
        load.append(asyncio.create_task(listen_stream(at, told["modern"])))
        try:
            async with asyncio.timeout(2 * DEADLINE_S):
                for queue in told.values():
                    assert await queue.get() == "opened"
                for index in (0, 1):
                    await restart(at, index)
                for era, queue in told.items():
                    while await heard_of_change(at, era, queue) != CHANGED:
                        pass
            for task in load:
                assert not task.done(), task.exception() or at.failed
        finally:
            for task in load:
                task.cancel()
            await asyncio.gather(*load, return_exceptions=True)
        assert at.failed == []


async def heard_of_change(at: Rolling, era: str, queue: asyncio.Queue[str]) -> str:
    """What the client that listens hears next; where that takes long, the change is told again."""
    if queue.empty():
        if era == "legacy":
            await at.upstreams["legacy"].push({"jsonrpc": "2.0", "method": CHANGED})
        else:
            await at.upstreams["modern"].push(CHANGED, {})
    return await queue.get()
