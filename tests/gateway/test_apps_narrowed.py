"""A host that showed Apps and does not any more, in the middle of a call or of a session, is shown none from there."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from policies.mcp import APPS_EXTENSION
from tests.asks.talk import SAMPLE, Modern, entries
from tests.gateway.test_reload import serving
from tests.gateway_process import running, settings
from tests.peers import LegacyUpstream
from tests.scripted import Call, Json

SAMPLING: Json = {"sampling": {"tools": {}}}
WITH_APPS: Json = {**SAMPLING, "extensions": {APPS_EXTENSION: {"mimeTypes": ["text/html;profile=mcp-app"]}}}
BLOCK: Json = {
    "type": "resource",
    "resource": {"uri": "ui://x/mark", "mimeType": "text/html;profile=mcp-app", "text": "mark"},
}
ASK: Json = {
    "messages": [{"role": "user", "content": [BLOCK, {"type": "text", "text": "kept"}], "_meta": {"ui": "mark"}}],
    "maxTokens": 1,
    "_meta": {"ui/resourceUri": "ui://x/mark", "vendor/a": 1},
}


@pytest.mark.parametrize("answered", [False, True])
async def test_what_is_asked_again_is_asked_as_the_retry_can_show_it(answered: bool) -> None:
    async def tool(call: Call) -> Json:
        await call.ask(SAMPLE, ASK)
        return {"content": [BLOCK, {"type": "text", "text": "end"}]}

    async with LegacyUpstream() as upstream, running({"up": upstream}) as gateway:
        upstream.on["tools/call"] = tool
        client = Modern(gateway.front("/up"), capabilities=WITH_APPS)
        asked = await client.call()
        assert b"ui://x/mark" in asked.body
        retry: dict[str, Any] = {}
        if answered:
            reply = {"role": "assistant", "content": {"type": "text", "text": "y"}, "model": "m"}
            retry = dict.fromkeys(entries(asked), reply)
        again = await client.retry(asked, retry, capabilities=SAMPLING)
        assert b"mark" not in again.body, again.body
        assert b"kept" in again.body or b"end" in again.body


async def test_the_rest_of_a_stream_is_shown_as_the_reload_allows(tmp_path: Path) -> None:
    is_less = asyncio.Event()
    async with LegacyUpstream(get_stream=True) as upstream, serving(tmp_path, settings({"up": upstream})) as live:

        async def tool(call: Call) -> None:
            await call.notify("notifications/message", {"level": "info", "data": "first"})
            await is_less.wait()
            await call.answer({"content": [BLOCK, {"type": "text", "text": "end"}]})

        upstream.on["tools/call"] = tool
        session = await live.gateway.front("/up").initialize(capabilities=WITH_APPS)
        async with session.open("tools/call", {"name": "t", "arguments": {}}, ident=5) as stream:
            while True:
                event = await stream.event()
                assert event is not None
                if event.data and b"first" in json.dumps(event.json).encode():
                    break
        less = [{"path": "/up", "upstream": "up", "profile": "core-v1"}, {"path": "/new", "upstream": "up"}]
        live.write(settings({"up": upstream}, routes=less))
        await live.until_answered("/new", 200)
        is_less.set()
        async with session.get({"Last-Event-ID": event.id}) as rest:
            message = await rest.message()
        assert message is not None
        assert message["result"]["content"] == [{"type": "text", "text": "end"}]


@pytest.mark.parametrize("is_narrower", [True, False])
async def test_a_standalone_stream_ends_where_a_reload_allows_its_host_no_apps(
    tmp_path: Path, is_narrower: bool
) -> None:
    def updated(uri: str) -> Json:
        return {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}}

    async with LegacyUpstream(get_stream=True) as upstream, serving(tmp_path, settings({"up": upstream})) as live:
        session = await live.gateway.front("/up").initialize(capabilities=WITH_APPS)
        async with session.get() as stream:
            await upstream.push(updated("ui://x/first"))
            assert await stream.message() == updated("ui://x/first")
            ceiling = {"profile": "core-v1"} if is_narrower else {}
            routes = [{"path": "/up", "upstream": "up", **ceiling}, {"path": "/new", "upstream": "up"}]
            live.write(settings({"up": upstream}, routes=routes))
            await live.until_answered("/new", 200)
            if is_narrower:
                assert await stream.rest() == []
        async with session.get() as again:
            await upstream.push(updated("ui://x/mark"))
            await upstream.push(updated("file:///kept"))
            wanted = updated("file:///kept" if is_narrower else "ui://x/mark")
            assert await again.message() == wanted
