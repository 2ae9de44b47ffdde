"""A server on the official Python SDK 2.x that is spoken to in sessions asks a modern client through the gateway."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
import pytest
import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel

from tests.asks.talk import EVERYTHING, Modern, entries
from tests.gateway_process import running
from tests.scripted import Upstream

Json = dict[str, Any]


class Name(BaseModel):
    name: str


def build() -> MCPServer:
    server = MCPServer("asks", log_level="WARNING")

    @server.tool()
    async def ask(ctx: Context) -> str:
        who = await ctx.elicit("Who?", Name)
        text = types.TextContent(type="text", text="Say hi € ☃")
        message = types.SamplingMessage(role="user", content=text)
        try:
            said = (await ctx.session.create_message([message], max_tokens=5)).model_dump(mode="json")["content"]
        except MCPError as error:
            said = error.error.message
        roots = await ctx.session.list_roots()
        told = {"who": who.model_dump(mode="json"), "said": said, "roots": [str(root.uri) for root in roots.roots]}
        return json.dumps(told, ensure_ascii=False)

    return server


class Served(Upstream):
    """Stands for the SDK's server where the gateway is configured."""

    def __init__(self, port: int) -> None:
        super().__init__()
        self._port = port


@asynccontextmanager
async def served() -> AsyncIterator[Served]:
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(build().streamable_http_app(), log_level="error", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign]
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield Served(listener.getsockname()[1])
    finally:
        server.should_exit = True
        await serving


WHO: dict[str, tuple[Json, Json]] = {
    "accept": (
        {"action": "accept", "content": {"name": "Änn"}},
        {"action": "accept", "data": {"name": "Änn"}},
    ),
    "decline": ({"action": "decline"}, {"action": "decline"}),
    "cancel": ({"action": "cancel"}, {"action": "cancel"}),
}


@pytest.mark.field("F1")
@pytest.mark.parametrize("action", WHO)
async def test_a_python_server_of_today_in_a_session_asks_for_everything(action: str) -> None:
    answer, told = WHO[action]
    sampled = {"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m"}
    answers = {
        "elicitation/create": answer,
        "sampling/createMessage": sampled,
        "roots/list": {"roots": [{"uri": "file:///work"}]},
    }
    async with served() as upstream, running({"up": (upstream, {"era": "legacy"})}) as gateway:
        client = Modern(gateway.front("/up"), {"name": "ask", "arguments": {}}, capabilities=EVERYTHING)
        reply, asked = await client.call(), []
        while reply.result["resultType"] == "input_required":
            asked += [entry["method"] for entry in entries(reply).values()]
            reply = await client.retry(reply, {key: answers[entry["method"]] for key, entry in entries(reply).items()})
        said = json.loads(reply.said)
    assert asked == list(answers)
    assert told.items() <= said["who"].items()
    assert said["said"]["text"] == "hi"
    assert said["roots"] == ["file:///work"]
