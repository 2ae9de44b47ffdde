"""A sessions-only upstream on the official Python SDK 1.x, with the tools of `tools.mjs`. Prints its URL when ready."""

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import AsyncIterator
from typing import Any

import uvicorn
from mcp import types
from mcp.server.experimental.task_context import ServerTaskContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.routing import Mount

server: Server[Any, Any] = Server("tasks")
support = server.experimental.enable_tasks()


def said(value: Any, *, is_error: bool = False, meta: dict[str, Any] | None = None) -> types.CallToolResult:
    text = types.TextContent(type="text", text=json.dumps(value, ensure_ascii=False))
    return types.CallToolResult(content=[text], isError=is_error, _meta=meta)


async def work(task: ServerTaskContext) -> types.CallToolResult:
    await asyncio.sleep(0.3)
    return said({"done": True}, meta={"v/x": 1})


async def ask(task: ServerTaskContext) -> types.CallToolResult:
    who = await task.elicit("Wer?", {"type": "object", "properties": {"name": {"type": "string"}}})
    message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text="Say hi € ☃"))
    hi = await task.create_message([message], max_tokens=5)
    content = hi.content.model_dump(mode="json", exclude_none=True)  # type: ignore[union-attr]
    return said({"who": [who.action, who.content], "hi": content})


async def fail(task: ServerTaskContext) -> types.CallToolResult:
    await task.fail("größe")
    return said("größe", is_error=True)


async def endless(task: ServerTaskContext) -> types.CallToolResult:
    await asyncio.Event().wait()
    raise AssertionError


async def die(task: ServerTaskContext) -> types.CallToolResult:
    os._exit(1)


TASKS = {run.__name__: run for run in (work, ask, fail, endless, die)}


@server.list_tools()
async def tools() -> list[types.Tool]:
    required = types.ToolExecution(taskSupport=types.TASK_REQUIRED)
    plain = types.Tool(name="statuses", inputSchema={"type": "object"})
    return [*(types.Tool(name=name, inputSchema={"type": "object"}, execution=required) for name in TASKS), plain]


@server.call_tool()
async def call(name: str, arguments: dict[str, Any]) -> types.CallToolResult | types.CreateTaskResult:
    if name == "statuses":
        found, _ = await support.store.list_tasks()
        return said([task.status for task in found])
    context = server.request_context.experimental
    context.validate_task_mode(types.TASK_REQUIRED)
    return await context.run_task(TASKS[name])


manager = StreamableHTTPSessionManager(server)


@contextlib.asynccontextmanager
async def lifespan(_app: Starlette) -> AsyncIterator[None]:
    async with manager.run():
        yield


def main() -> None:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    app = Starlette(routes=[Mount("/", app=manager.handle_request)], lifespan=lifespan)
    uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)).run(sockets=[listener])


main()
