"""What the scripts of the adapters share: the plan on standard input, and an MCP session that says that it shows Apps.

The plan: {"mcp": origin of the MCP plane, "conversations": [{"key", "provider", "server", "client", "stream"}]}: the
conversation's API key, by which the provider knows it; the provider's base URL; the MCP server's path; which of the
script's clients, and whether its answers are streamed. On standard output, a list a conversation: what the model said
to each question.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

APPS = {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}
QUESTIONS = ("Draw it, würdest du?", "And again.")
SYSTEM = "You draw."
MODEL = "a-model"
PATIENCE_S = 120.0
"""What an answer may take on a machine that others use."""
AT_ONCE = 4
"""Conversations, so that each is short."""
Conversation = dict[str, Any]


class ShowsApps(httpx.AsyncHTTPTransport):
    """The SDK 1.x has no argument for extensions: it is declared in the `initialize` that it sends."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        body = await request.aread()
        if b'"method":"initialize"' in body:
            message = json.loads(body)
            message["params"]["capabilities"]["extensions"] = APPS
            headers = {name: value for name, value in request.headers.items() if name != "content-length"}
            request = httpx.Request(
                request.method, request.url, headers=headers, json=message, extensions=request.extensions
            )
        return await super().handle_async_request(request)


def http_client(
    headers: dict[str, str] | None = None, timeout: httpx.Timeout | None = None, auth: httpx.Auth | None = None
) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=ShowsApps(), headers=headers, timeout=timeout or PATIENCE_S, auth=auth)


@asynccontextmanager
async def mcp_session(url: str, kind: type[ClientSession] = ClientSession) -> AsyncIterator[ClientSession]:
    async with http_client() as client, streamable_http_client(url, http_client=client) as (read, write, _):
        async with kind(read, write) as session:
            await session.initialize()
            yield session


def run(converse: Callable[[Conversation, str], Awaitable[list[str]]]) -> None:
    """Has every conversation of the plan, a few at once. `converse` is given the URL of its MCP server too."""
    plan = json.loads(sys.stdin.buffer.read())

    async def in_turn(one: Conversation, turn: asyncio.Semaphore) -> list[str]:
        async with turn:
            return await converse(one, plan["mcp"] + one["server"])

    async def all_of_them() -> list[list[str]]:
        turn = asyncio.Semaphore(AT_ONCE)
        return list(await asyncio.gather(*(in_turn(one, turn) for one in plan["conversations"])))

    print(json.dumps(asyncio.run(all_of_them())))
