"""Upstreams that want the caller's own credentials, era and description included: the gateway has none to ask with."""

from typing import Any

import pytest

from tests.gateway_process import running
from tests.peers import LegacyUpstream, ModernUpstream
from tests.scripted import Call

CHALLENGE = 'Bearer resource_metadata="https://example.com/prm"'
GOOD = {"Authorization": "Bearer of-the-caller-0123456789"}
BAD = {"Authorization": "Bearer of-somebody-else-9876543"}


def guarded(era: str) -> LegacyUpstream | ModernUpstream:
    upstream = LegacyUpstream() if era == "legacy" else ModernUpstream(instructions="for those who may")

    async def on_http(call: Call) -> bool:
        if call.seen.headers.get("Authorization") == GOOD["Authorization"]:
            return False
        await call.reply(401, b"", [("WWW-Authenticate", CHALLENGE)])
        return True

    upstream.on_http = on_http
    return upstream


@pytest.mark.parametrize("upstream_era", ["modern", "legacy"])
async def test_the_era_is_found_out_with_the_callers_credentials(upstream_era: str) -> None:
    upstream = guarded(upstream_era)
    passing: dict[str, Any] = {"forward_headers": ["Authorization"]}
    async with upstream, running({"x": (upstream, passing)}) as gateway:
        front = gateway.front("/x")
        call = ("tools/call", {"name": "echo", "arguments": {}})
        for headers in ({}, BAD):
            refused = await front.modern(*call, headers=headers)
            assert refused.status == 401
            assert refused.headers.get("WWW-Authenticate") == CHALLENGE
            assert refused.error["message"].startswith("upstream x refuses these credentials")
        assert "result" in (await front.modern(*call, headers=GOOD)).final
        described = (await front.modern("server/discover", headers=GOOD)).result
        assert "tools" in described["capabilities"]
        session = await front.initialize(headers=GOOD)
        assert "tools" in session.result["capabilities"]
        assert "result" in (await session.request(*call)).final
        assert (await front.modern(*call, headers=BAD)).status == 401
