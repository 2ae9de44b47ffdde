"""A client on the official Python SDK 1.x that is asked. The plan on standard input: {"peer": a URL or a command,
"calls": [{"params", "answers": {kind: result, or {"error": ...}}}]}. On standard output, one object a call: its
"result" or "error", and the kinds it was "asked"."""

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from typing import Any

from mcp import ClientSession, McpError, types
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

answers: dict[str, Any] = {}
asked: list[str] = []


def told(kind: str, model: Any) -> Any:
    asked.append(kind)
    answer = answers[kind]
    return types.ErrorData(**answer["error"]) if "error" in answer else model.model_validate(answer)


async def elicit(_context: Any, params: Any) -> Any:
    return told("url" if params.mode == "url" else "form", types.ElicitResult)


async def sample(_context: Any, params: Any) -> Any:
    if params.tools is not None:
        return told("sampling with tools", types.CreateMessageResultWithTools)
    return told("sampling", types.CreateMessageResult)


async def roots(_context: Any) -> Any:
    return told("roots", types.ListRootsResult)


async def call(session: ClientSession, params: Any) -> dict[str, Any]:
    asked.clear()
    try:
        result = await session.call_tool(params["name"], params["arguments"])
        outcome: dict[str, Any] = {"result": result.model_dump(mode="json", by_alias=True, exclude_none=True)}
    except McpError as error:
        outcome = {"error": {"code": error.error.code, "message": error.error.message}}
    return {**outcome, "asked": list(asked)}


async def main() -> None:
    plan = json.loads(sys.stdin.buffer.read())
    peer, outcomes = plan["peer"], []
    async with AsyncExitStack() as stack:
        if isinstance(peer, str):
            read, write, *_ = await stack.enter_async_context(streamable_http_client(peer))
        else:
            parameters = StdioServerParameters(command=peer[0], args=peer[1:])
            read, write = await stack.enter_async_context(stdio_client(parameters))
        tools = types.SamplingCapability(tools=types.SamplingToolsCapability())
        callbacks: Any = {"elicitation_callback": elicit, "sampling_callback": sample, "list_roots_callback": roots}
        session = await stack.enter_async_context(ClientSession(read, write, sampling_capabilities=tools, **callbacks))
        await session.initialize()
        for one in plan["calls"]:
            answers.update(one["answers"])
            outcomes.append(await call(session, one["params"]))
    sys.stdout.buffer.write(json.dumps(outcomes, ensure_ascii=False).encode())


asyncio.run(main())
