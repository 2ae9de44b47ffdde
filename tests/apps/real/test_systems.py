"""Systems that hosts and servers of MCP Apps are part of, with official SDK clients: sunpeak's six cells, Toolgrain.

sunpeak's inspector is on SDK 1.x (0.20.79, 2026-07); a host of 2026-07-28 on SDK 2.x stands for the others. Each is to
show the same of a server, whichever eras the server has. Toolgrain asks which host has Apps: over sessionless HTTP of
2025-11-25 nobody can tell it, while every request of 2026-07-28 does.
"""

import asyncio
import json
from typing import Any

import pytest
import pytest_asyncio

from tests.apps.real.stage import ALL, APPS, ASKS, UI, Stage
from tests.http_wire import DEADLINE_S
from tests.matrix.machinery import NODE
from tests.raw_front import Front
from tests.scripted import Json

SERVERS = ("chart-legacy", "chart-dual", "chart-modern")
CELLS = [(server, client) for server in SERVERS for client in ("legacy", "modern")]
MATCHING = {"chart-legacy": "legacy", "chart-dual": "modern", "chart-modern": "modern"}
"""The client that can speak with the server itself."""


async def seen(cells: list[Json]) -> list[Json]:
    """What real hosts make of servers."""
    script = str(NODE), str(__file__).replace("test_systems.py", "host.mjs")
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*script, stdin=pipe, stdout=pipe, stderr=pipe)
    async with asyncio.timeout(DEADLINE_S):
        out, errors = await process.communicate(json.dumps(cells).encode())
    assert process.returncode == 0, errors.decode()[-4000:]
    found: list[Json] = json.loads(out)
    return found


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def cells(stage: Stage) -> dict[tuple[str, str], Json]:
    """Each cell through the gateway, and as (server, "direct") what a client of its era sees without it."""
    direct = {(server, "direct"): {"client": MATCHING[server], "url": stage.direct[server]} for server in SERVERS}
    through = {(server, client): {"client": client, "url": f"{stage.gateway.url}/{server}"} for server, client in CELLS}
    asked: dict[tuple[str, str], Json] = {**direct, **through}
    return dict(zip(asked, await seen(list(asked.values())), strict=True))


@pytest.mark.parametrize(("server", "client"), CELLS)
async def test_every_pair_of_sunpeaks_matrix_shows_what_the_server_has(
    cells: dict[tuple[str, str], Json], server: str, client: str
) -> None:
    direct, through = cells[server, "direct"], cells[server, client]
    assert "failed" not in direct
    assert {tool["name"] for tool in direct["tools"] if tool.get("view")} == {"draw", "refresh", "embed", "only"}
    assert [tool["name"] for tool in direct["tools"] if tool["hidden"]] == ["refresh"]
    assert list(direct["views"]) == ["ui://chart/view.html"]
    assert through == direct


@pytest.mark.parametrize("server", ["chart-dual", "chart-modern"])
@pytest.mark.parametrize(
    ("declares", "knows"),
    [(APPS, APPS["extensions"][UI]), (ALL, APPS["extensions"][UI]), ({}, None), (ASKS, None)],
    ids=["supported", "supported, with asks", "not advertised", "not advertised, with asks"],
)
async def test_a_server_that_cannot_tell_a_sessions_host_is_told_with_every_call(
    stage: Stage, server: str, declares: Json, knows: Json | None
) -> None:
    session = await Front(f"{stage.gateway.url}/{server}").initialize(capabilities=declares)
    for _ in range(2):
        assert json.loads((await session.request("tools/call", {"name": "host", "arguments": {}})).said) == knows
    assert (await session.delete()).status == 200


async def test_without_the_gateway_that_server_knows_no_host_of_a_session(stage: Stage) -> None:
    session = await Front(stage.direct["chart-dual"]).initialize(capabilities=APPS)
    said: Any = json.loads((await session.request("tools/call", {"name": "host", "arguments": {}})).said)
    assert said is None
