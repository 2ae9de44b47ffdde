"""Tools whose `x-mcp-header` annotations are invalid are left out; the log says how many, and nothing of theirs.

Specification: 2026-07-28 basic/transports/streamable-http (Schema Extension).
"""

import pytest

from tests.gateway_process import running
from tests.peers import LegacyUpstream, ModernUpstream
from tests.scripted import Json

ODD: Json = {"type": "object", "properties": {"secret-property": {"type": "string", "x-mcp-header": "not a token"}}}
TOOLS: Json = {"tools": [{"name": f"secret-{n}", "inputSchema": ODD} for n in range(2)]}


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_tool_that_is_left_out_is_counted_in_the_log_and_not_named(era: str) -> None:
    async with LegacyUpstream() if era == "legacy" else ModernUpstream() as upstream:
        async with running({"up": upstream}) as gateway:
            upstream.on["tools/list"] = TOOLS
            front = gateway.front("/up")
            call = ("tools/call", {"name": "other", "arguments": {}})
            if era == "legacy":
                assert "result" in (await front.modern(*call)).final
                assert (await front.modern("tools/list")).result["tools"] == []
            else:
                session = await front.initialize()
                assert "result" in (await session.request(*call)).final
                assert (await session.request("tools/list")).result["tools"] == []
            said = gateway.stderr()
    assert "upstream up: 2 tools have an invalid x-mcp-header" in said
    assert "secret" not in said
