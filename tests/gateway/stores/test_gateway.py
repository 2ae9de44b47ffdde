"""Running gateways and their store: what one does to a session the other knows, and health tells of an outage."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from tests import valkey
from tests.gateway_process import GatewayProcess, running
from tests.http_wire import DEADLINE_S
from tests.peers import LegacyUpstream, ModernUpstream
from tests.raw_front import Front, Session

SHARED: dict[str, Any] = {"keys": ["k1:" + "A" * 43], "admin": "127.0.0.1:0"}


async def admin(gateway: GatewayProcess, path: str) -> tuple[int, str]:
    answer = await Front(gateway.admin_url).at(path).send("GET", {})
    return answer.status, answer.body.decode()


async def until(what: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not await what():
            await asyncio.sleep(0.02)


@asynccontextmanager
async def elsewhere(session: Session, gateway: GatewayProcess) -> AsyncIterator[None]:
    """The same client, whose requests a balancer sends to another gateway meanwhile."""
    own, session.front = session.front, gateway.front("/legacy")
    try:
        yield
    finally:
        session.front = own


async def test_a_session_that_one_gateway_ends_is_ended_for_the_other() -> None:
    with valkey.started("--requirepass", "hunter2") as server:
        store = {"url": server.url, "password": "${STORE_PASSWORD}"}
        more: dict[str, Any] = {**SHARED, "store": store, "env": {"STORE_PASSWORD": "hunter2"}}
        async with LegacyUpstream() as upstream:
            async with running({"legacy": upstream}, **more) as one, running({"legacy": upstream}, **more) as two:
                session = await one.front("/legacy").initialize()
                async with elsewhere(session, two):
                    assert (await session.request("ping")).status == 200
                assert (await one.front("/legacy").send("DELETE", session.headers)).status in (200, 202, 204)
                async with elsewhere(session, two):
                    assert (await session.request("ping")).status == 404
                assert (await session.request("ping")).status == 404
                assert "hunter2" not in one.stderr() + two.stderr()


async def test_an_outage_of_the_store_is_told_and_passes() -> None:
    with valkey.started() as server:
        server.kill()
        async with LegacyUpstream() as legacy, ModernUpstream() as modern:
            behind = {"legacy": legacy, "modern": modern}
            async with running(behind, **SHARED, store={"url": server.url}) as gateway:
                status, said = await admin(gateway, "/readyz")
                assert (status, json.loads(said)) == (200, {"status": "ready", "store": "down"})
                assert "mcp_front_door_store_up 0.0" in (await admin(gateway, "/metrics"))[1]
                assert (await gateway.front("/modern").modern("tools/call", {"name": "echo"})).status == 200

                server.start()

                async def up() -> bool:
                    return "mcp_front_door_store_up 1.0" in (await admin(gateway, "/metrics"))[1]

                await until(up)
                assert json.loads((await admin(gateway, "/readyz"))[1]) == {"status": "ready", "store": "up"}
                session = await gateway.front("/legacy").initialize()
                assert (await session.request("ping")).status == 200
                assert gateway.stderr().count(f"store {server.url}: ") == 2


async def test_a_gateway_without_a_store_says_nothing_of_one() -> None:
    async with ModernUpstream() as upstream, running({"mcp": upstream}, admin="127.0.0.1:0") as gateway:
        assert json.loads((await admin(gateway, "/readyz"))[1]) == {"status": "ready"}
        assert "mcp_front_door_store_up 1.0" in (await admin(gateway, "/metrics"))[1]
