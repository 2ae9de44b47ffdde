"""A host whose `initialize` was refused has no session: what it sends next is read as if it had never tried."""

from pathlib import Path

import pytest

from tests.peers import ModernUpstream
from tests.raw_front import CLIENT_INFO, LEGACY, request
from tests.scripted import Json
from tests.stdio.host import launched

BARE = "server/discover"
REFUSED: dict[str, Json] = {
    "no parameters": {},
    "no client": {"protocolVersion": LEGACY, "capabilities": {}},
    "capabilities that are none": {"protocolVersion": LEGACY, "capabilities": 1, "clientInfo": CLIENT_INFO},
}


@pytest.mark.parametrize("name", REFUSED)
async def test_a_refused_initialize_leaves_no_session_behind(tmp_path: Path, name: str) -> None:
    async with ModernUpstream() as upstream, launched(tmp_path, "--upstream", upstream.url) as host:
        before = await host.answer(request(BARE, ident=1))
        refused = await host.answer(request("initialize", REFUSED[name], ident=2))
        assert refused["error"]["code"] == -32602
        after = await host.answer(request(BARE, ident=3))
        assert after["error"] == before["error"]
        assert "session" not in after["error"]["message"]
        assert "result" in await host.modern("tools/list", ident=4)
        assert "result" in await host.initialize()
        assert "result" in await host.answer(request("tools/list", ident=5))
        assert await host.end() == []
