"""The gateway itself hears what changes, however much else it listens to, and whenever the server came up."""

import asyncio
from typing import Any

import pytest

from tests.cache.conftest import MAX_BYTES, TELLS
from tests.cache.tagging import TENANT
from tests.cache.test_what_is_kept import HOUR, LISTS, READ, how
from tests.gateway_process import GatewayProcess, running
from tests.http_wire import DEADLINE_S
from tests.peers import TOOL, ModernUpstream

CROWD = 70


@pytest.mark.parametrize("of", ["resources that are read", "callers with lists of their own"])
async def test_lists_that_all_share_are_heard_of_however_much_else_is_listened_to(of: str) -> None:
    async with ModernUpstream(capabilities=TELLS) as upstream:
        upstream.on["resources/read"] = READ | HOUR
        upstream.on["tools/list"] = LISTS["tools/list"] | HOUR
        behind: Any = {"mcp": (upstream, {"forward_headers": [TENANT]})}
        async with running(behind, cache={"max_bytes": MAX_BYTES}) as gateway:
            front = gateway.front()
            if of.startswith("resources"):
                asking = [front.modern("resources/read", {"uri": f"note://{n}"}) for n in range(CROWD)]
            else:
                asking = [front.modern("tools/list", headers={TENANT: f"t{n}"}) for n in range(CROWD)]
            await asyncio.gather(*asking)
            await upstream.when(lambda: len(upstream.listeners) >= 64 or None)
            await _ends_when_told(gateway, upstream)
            assert len(upstream.listeners) == 65


async def _ends_when_told(gateway: GatewayProcess, upstream: ModernUpstream) -> None:
    """The list of tools is kept, and fetched anew when the server says that it changed."""
    front = gateway.front()
    async with asyncio.timeout(DEADLINE_S):
        while how(await front.modern("tools/list")) != "cache;desc=hit":
            pass
    stream = await upstream.when(lambda: next((call for call in upstream.listeners if _is_for_all(call.seen)), None))
    async with asyncio.timeout(DEADLINE_S):
        while how(await front.modern("tools/list")) != "cache;desc=hit":
            pass
    upstream.on["tools/list"] = {"tools": [TOOL | {"name": "new"}], **HOUR}
    await stream.notify("notifications/tools/list_changed", {})
    async with asyncio.timeout(DEADLINE_S):
        while (await front.modern("tools/list")).result["tools"][0]["name"] != "new":
            pass


def _is_for_all(seen: Any) -> bool:
    return "toolsListChanged" in seen.params["notifications"] and seen.headers.get(TENANT) is None


@pytest.mark.parametrize("era", ["modern", "auto"])
async def test_a_server_that_was_down_when_the_gateway_came_up_is_listened_to(era: str) -> None:
    upstream = ModernUpstream(capabilities=TELLS)
    upstream.on["tools/list"] = LISTS["tools/list"] | HOUR
    async with running({"mcp": (upstream, {"era": era})}, cache={"max_bytes": MAX_BYTES}) as gateway:
        async with asyncio.timeout(DEADLINE_S):
            while "does not answer yet" not in gateway.stderr():
                await asyncio.sleep(0.02)
        async with upstream:
            await _ends_when_told(gateway, upstream)
