"""Field reports AA6, AA8: a session that changes its own tools; an upstream that refuses the gateway's credentials."""

from typing import Any

import pytest

from tests.gateway_process import running
from tests.peers import LegacyUpstream, ModernUpstream, text
from tests.scripted import Call

CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}


@pytest.mark.field("AA6")
async def test_a_tool_that_one_session_gained_is_seen_by_its_client_and_by_no_other() -> None:
    """Legacy clients have an upstream session each, and no list is served from memory."""
    async with LegacyUpstream(get_stream=True) as upstream, running({"x": upstream}) as gateway:
        gained: set[str | None] = set()

        async def unlock(call: Call) -> dict[str, Any]:
            gained.add(call.seen.session)
            return text("unlocked")

        async def tools(call: Call) -> dict[str, Any]:
            names = ["unlock", *(["vault"] if call.seen.session in gained else [])]
            return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}

        upstream.on |= {"tools/call": unlock, "tools/list": tools}
        mine, other = await gateway.front("/x").initialize(), await gateway.front("/x").initialize()
        async with mine.get() as my_stream, other.get() as other_stream:
            await mine.request("tools/call", {"name": "unlock", "arguments": {}})
            (session,) = gained
            await upstream.push(CHANGED, session)
            assert await my_stream.message() == CHANGED
            assert await listed(mine) == ["unlock", "vault"]
            assert await listed(other) == ["unlock"]
            # the next thing that the other stream hears was sent after, and is its own
            (theirs,) = {seen.session for seen in upstream.calls("tools/list")} - gained
            await upstream.push(CHANGED | {"params": {"_meta": {"v/n": 2}}}, theirs)
            assert (await other_stream.message() or {})["params"] == {"_meta": {"v/n": 2}}


async def listed(session: Any) -> list[str]:
    return [tool["name"] for tool in (await session.request("tools/list")).result["tools"]]


@pytest.mark.field("AA8")
@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_a_refused_credential_is_one_request_a_call_no_challenge_and_over_when_it_is_accepted(era: str) -> None:
    upstream = ModernUpstream() if era == "modern" else LegacyUpstream()
    credential = {"headers": {"Authorization": "Bearer of-the-gateway"}, "era": era}
    async with upstream, running({"x": (upstream, credential)}) as gateway:
        refusing = True
        refused: list[str | None] = []

        async def on_http(call: Call) -> bool:
            if refusing:
                refused.append(call.seen.method)
                await call.reply(401, b"", [("WWW-Authenticate", 'Bearer error="invalid_token"')])
            return refusing

        upstream.on_http = on_http
        front = gateway.front("/x")
        await front.modern("server/discover")  # the warm-up is over
        before = len(refused)
        answer = await front.modern("tools/call", {"name": "echo", "arguments": {}})
        assert answer.status == 502
        assert "refuses the gateway's credentials" in answer.error["message"]
        assert "WWW-Authenticate" not in answer.headers
        assert len(refused) == before + 1
        refusing = False
        assert "result" in (await front.modern("tools/call", {"name": "echo", "arguments": {}})).final
