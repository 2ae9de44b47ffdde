"""Who goes, and when: every cell of that table for both eras of client and of server, as `docs/operations.md` has it.

One row is one experiment: calls at each moment of their lives, all at once, then the fault, then what came of each.
What a client is told is in the cell, step by step, and how often the tool did its work.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final

import pytest
import pytest_asyncio

from tests.fleet import Fleet, fleet
from tests.gateway_process import GatewayProcess
from tests.http_wire import DEADLINE_S
from tests.peers import LegacyUpstream, ModernUpstream
from tests.replicas.stage import BEFORE, MOMENTS, PAIRS, PARKED, RETRY, RUNS, Cell, House, every
from tests.scrape import gauges, settled
from tests.scripted import Json
from tests.valkey import Server, started

ADMIN: Json = {"admin": "127.0.0.1:0"}


@dataclass(frozen=True, slots=True)
class Scene:
    fleet: Fleet
    store: Server
    house: House
    cells: tuple[Cell, ...]


Fault = Callable[[Scene], Awaitable[None]]


async def client_gone(scene: Scene) -> None:
    for cell in scene.cells:
        await (cell.half(0) if cell.moment == BEFORE else cell.hang_up())


async def owner_killed(scene: Scene) -> None:
    await scene.fleet.replicas[0].kill()


async def other_killed(scene: Scene) -> None:
    await scene.fleet.replicas[1].kill()


async def store_gone(scene: Scene) -> None:
    await asyncio.to_thread(scene.store.kill)


async def store_silent(scene: Scene) -> None:
    scene.store.pause()


async def store_flushed(scene: Scene) -> None:
    with contextlib.closing(scene.store.admin()) as admin:
        await asyncio.to_thread(admin.flushall)


async def store_restarted(scene: Scene) -> None:
    """After both replicas have noticed that it was gone, and before the calls go on."""
    await asyncio.to_thread(scene.store.kill)
    await _seen(scene, 0)
    await asyncio.to_thread(scene.store.start)
    await _seen(scene, 1)


async def store_silent_for_a_while(scene: Scene) -> None:
    scene.store.pause()
    await _seen(scene, 0)
    scene.store.resume()
    await _seen(scene, 1)


async def _seen(scene: Scene, up: float) -> None:
    for replica in scene.fleet.replicas:
        await settled(replica, "mcp_front_door_store_up", up)


async def upstream_gone(scene: Scene) -> None:
    for upstream in (scene.house.legacy, scene.house.modern):
        await upstream.stop()


async def upstream_restarted(scene: Scene) -> None:
    await upstream_gone(scene)
    scene.house.legacy.live.clear()
    for upstream in (scene.house.legacy, scene.house.modern):
        await upstream.start()


FAULTS: dict[str, Fault] = {
    "the client hangs up": client_gone,
    "the owner is killed": owner_killed,
    "the other replica is killed": other_killed,
    "the store is gone": store_gone,
    "the store says nothing any more": store_silent,
    "the store says nothing for a while": store_silent_for_a_while,
    "the store is flushed": store_flushed,
    "the store is restarted": store_restarted,
    "the server is gone": upstream_gone,
    "the server is restarted": upstream_restarted,
}

Row = dict[str, tuple[str, str, str, str]]
"""What comes of the calls at each moment, in the order of `PAIRS`: what the client sees, and how often the tool did its
work.

    cut                     its connection ended without an answer: it was made to what has gone
    STATUS CODE             a JSON-RPC error with this HTTP status; in a session 200
    202, 503                what a session's client is told who POSTs the answer to a question
    X then Y                Y is what came of the client's next step
"""

ANSWERED = ("answered, 1",) * 4
TAKEN = ("answered, 1", "answered, 1", "202 then answered, 1", "202 then answered, 1")
OFF = "called off, 1"
UNHARMED: Row = {BEFORE: ANSWERED, RUNS: ANSWERED, PARKED: TAKEN, RETRY: ANSWERED}
ENDED = "cut then 200 -32603, 1"
BROKEN = ("502 -32603, 1", "502 -32603, 1", "200 -32603, 1", "200 -32603, 1")
WITHOUT_STORE: Row = UNHARMED | {
    PARKED: (
        "answered, 1",
        "503 -32603 then answered, 1",
        "503 then 202 then answered, 1",
        "503 then 202 then answered, 1",
    ),
    RETRY: ("answered, 1", "503 -32603, 1", "answered, 1", "answered, 1"),
}

TABLE: Final[dict[str, Row]] = {
    "the client hangs up": {
        BEFORE: ("nothing, 0",) * 4,
        RUNS: (OFF, OFF, "answered, 1", "answered, 1"),
        PARKED: ("nothing, 0", "called off, 0", "202 then answered, 1", "202 then answered, 1"),
        RETRY: (OFF, OFF, "answered, 1", "answered, 1"),
    },
    "the owner is killed": {
        BEFORE: ANSWERED,
        RUNS: ("cut, 1", "cut, 1", ENDED, ENDED),
        PARKED: (
            "answered, 1",
            "502 -32603, 0",
            "202 then cut then 200 -32603, 0",
            "202 then cut then 200 -32603, 0",
        ),
        RETRY: ("answered, 1", "502 -32603, 1", ENDED, ENDED),
    },
    "the other replica is killed": UNHARMED | {RETRY: ("cut, 1", "cut, 1", "answered, 1", "answered, 1")},
    "the store is gone": WITHOUT_STORE,
    "the store says nothing any more": WITHOUT_STORE,
    "the store says nothing for a while": UNHARMED,
    "the store is flushed": UNHARMED,
    "the store is restarted": UNHARMED,
    "the server is gone": {
        BEFORE: ("503 -32603, 0", "503 -32603, 0", "200 -32603, 0", "200 -32603, 0"),
        RUNS: BROKEN,
        PARKED: ("503 -32603, 0", "502 -32603, 0", "202 then 200 -32603, 0", "202 then 200 -32603, 0"),
        RETRY: BROKEN,
    },
    "the server is restarted": {
        BEFORE: ("answered, 1", "answered, 1", "answered, 1", "404 -32001, 0"),
        RUNS: BROKEN,
        PARKED: ("answered, 1", "502 -32603, 0", "202 then answered, 1", "202 then 200 -32603, 0"),
        RETRY: BROKEN,
    },
}

AT_ONCE: Final = 3
"""Experiments side by side: most of their time is waiting, for leases and for what is given up to be given up."""

Seen = dict[tuple[str, str, str], str]
"""What came of each call, by moment, client and server."""


async def finish(cell: Cell, fault: Fault) -> str:
    """What the client does on, and what it sees: steps with "then" between them."""
    other = None if fault is other_killed else 1
    if fault is client_gone:
        return await _finish_alone(cell)
    cell.house.released[cell.label].set()
    steps = []
    if cell.moment == BEFORE:
        return await cell.call(None)
    assert cell.calling is not None
    if cell.moment == PARKED:
        steps.append(await cell.answer(other))
        if steps[0].startswith("503") and fault in (store_gone, store_silent):  # to where it needs no store
            steps.append(await cell.answer(0))
        if cell.client == "modern":
            return " then ".join(steps)
    steps.append(await cell.calling)
    if cell.client == "legacy" and steps[-1] == "cut":
        steps.append(await cell.resume(other))
    return " then ".join(steps)


async def _finish_alone(cell: Cell) -> str:
    """After its client has hung up: one with a session comes back to the other replica."""
    house, label = cell.house, cell.label
    if cell.moment == BEFORE:
        return "nothing"
    if cell.client == "modern":
        if cell.moment != PARKED or cell.upstream == "legacy":
            await house.when(lambda: label in house.called_off)
        return "called off" if label in house.called_off else "nothing"
    house.released[label].set()
    if cell.moment != PARKED:
        return await cell.resume(1)
    resuming = asyncio.create_task(cell.resume(1))
    return f"{await cell.answer(1)} then {await resuming}"


async def experiment(fault: Fault) -> tuple[Seen, list[str]]:
    """Every cell of a row, and what is left behind by the calls of all."""
    async with AsyncExitStack() as stack:
        store = await asyncio.to_thread(stack.enter_context, started())
        legacy = await stack.enter_async_context(LegacyUpstream())
        modern = await stack.enter_async_context(ModernUpstream())
        house = House(legacy, modern)
        more: Json = {**ADMIN, **({"streams": {"ask_ttl_s": 3}} if fault is client_gone else {})}
        behind = {"legacy": legacy, "modern": modern}
        replicas = await stack.enter_async_context(fleet(behind, store=store.url, timeout_ms=1000, **more))
        cells = tuple(Cell(replicas, house, moment, *pair) for moment in MOMENTS for pair in PAIRS)
        for replica in replicas.replicas:  # which have found out about their upstreams, and have no client yet
            for name in behind:
                assert (await replica.front(f"/{name}").modern("tools/list")).status == 200
        before = [await gauges(replica, "mcp_front_door_tasks") for replica in replicas.replicas]
        await asyncio.gather(*(cell.prepare() for cell in cells))
        await fault(Scene(replicas, store, house, cells))
        found = await every([finish(cell, fault) for cell in cells])
        if fault is store_gone:
            await asyncio.to_thread(store.start)
        store.resume()
        seen = {
            (cell.moment, cell.client, cell.upstream): f"{what}, {house.worked[cell.label]}"
            for cell, what in zip(cells, found, strict=True)
        }
        if fault is upstream_gone:  # as long as they are away, each replica looks whether they are back
            for upstream in (legacy, modern):
                await upstream.start()
        left = [
            await _left(replica, count[0])
            for replica, count in zip(replicas.replicas, before, strict=True)
            if not replica.was_killed
        ]
        await house.when(lambda: not house.running)
        return seen, [one for one in left if one]


async def _left(replica: GatewayProcess, tasks: float) -> str:
    """What a replica still has of calls that are over; empty where nothing."""
    names = ("mcp_front_door_calls_parked", "mcp_front_door_requests_in_flight", "mcp_front_door_tasks")
    found: list[float] = []
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(DEADLINE_S):
            while True:
                found = await gauges(replica, *names)
                if found[:2] == [0, 0] and found[2] <= tasks:
                    return ""
                await asyncio.sleep(0.05)
    return f"parked, in flight, tasks: {found}, at first {tasks} tasks"


class Rows:
    """The experiments, begun together and each done once."""

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._rows = {name: asyncio.create_task(self._one(fault)) for name, fault in FAULTS.items()}

    async def of(self, name: str) -> tuple[Seen, list[str]]:
        return await asyncio.shield(self._rows[name])

    async def _one(self, fault: Fault) -> tuple[Seen, list[str]]:
        async with self._turns:
            return await experiment(fault)

    async def close(self) -> None:
        for row in self._rows.values():
            row.cancel()
        await asyncio.gather(*self._rows.values(), return_exceptions=True)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def rows() -> AsyncIterator[Rows]:
    opened = Rows()
    yield opened
    await opened.close()


CELLS = {
    f"{fault}, {moment}: a {pair[0]} client of a {pair[1]} server": (fault, moment, pair)
    for fault in TABLE
    for moment in MOMENTS
    for pair in PAIRS
}


@pytest.mark.parametrize("cell", CELLS)
async def test_what_comes_of_a_call(rows: Rows, cell: str) -> None:
    fault, moment, pair = CELLS[cell]
    seen, _ = await rows.of(fault)
    assert seen[(moment, *pair)] == TABLE[fault][moment][PAIRS.index(pair)]


@pytest.mark.parametrize("fault", TABLE)
async def test_nothing_is_left_behind_where(rows: Rows, fault: str) -> None:
    _, left = await rows.of(fault)
    assert left == []


async def test_every_fault_has_its_row() -> None:
    assert list(TABLE) == list(FAULTS)
