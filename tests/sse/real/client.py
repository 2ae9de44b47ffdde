"""A client over HTTP+SSE on the official Python SDK, 1.0 or the last 1.x. The plan on standard input: {"urls": [...],
"rich": whether to read all that can be read}. On standard output, what it understood of each server."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

from mcp import ClientSession
from mcp.client.sse import sse_client
from pydantic import AnyUrl


def shown(model: Any) -> Any:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


async def drained(session: Any) -> None:
    """The SDK 1.0 waits until somebody takes the notifications that came."""
    async for _ in getattr(session, "incoming_messages", nothing()):
        pass


async def nothing() -> AsyncIterator[None]:
    return
    yield


async def usual(session: ClientSession) -> Any:
    tools = [tool.name for tool in (await session.list_tools()).tools]
    said = await session.call_tool("echo", {"text": "größe 日本"})
    prompt = await session.get_prompt("p", {"a": "b"})
    return {"tools": tools, "said": shown(said.content[0]), "prompt": shown(prompt.messages[0])}


async def rich(session: ClientSession) -> Any:
    return {
        "tools/list": shown(await session.list_tools()),
        "tools/call": shown(await session.call_tool("rich", {})),
        "resources/list": shown(await session.list_resources()),
        "resources/read": shown(await session.read_resource(AnyUrl("note://one"))),
        "prompts/list": shown(await session.list_prompts()),
        "prompts/get": shown(await session.get_prompt("p", {})),
    }


async def main() -> None:
    plan, outcomes = json.loads(sys.stdin.buffer.read()), []
    for url in plan["urls"]:
        async with sse_client(url) as (read, write), ClientSession(read, write) as session:
            draining = asyncio.create_task(drained(session))
            await session.initialize()
            outcomes.append(await (rich if plan["rich"] else usual)(session))
            draining.cancel()
    sys.stdout.buffer.write(json.dumps(outcomes).encode())


asyncio.run(main())
