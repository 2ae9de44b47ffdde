"""An upstream on FastMCP with tasks of 2026-07-28. Prints its URL when ready."""

import asyncio
import socket

import uvicorn
from fastmcp import FastMCP
from fastmcp.exceptions import ToolError
from fastmcp_tasks import TasksExtension

server = FastMCP("tasks")
server.add_extension(TasksExtension(url="memory://"))


@server.tool(task=True)
async def work(number: int) -> str:
    await asyncio.sleep(0.3)
    return f"größe {number}"


@server.tool(task=True)
async def fail() -> str:
    raise ToolError("größe")


@server.tool(task=True)
async def endless() -> str:
    await asyncio.Event().wait()
    raise AssertionError


def main() -> None:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    config = uvicorn.Config(server.http_app(), log_level="error", timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listener])


main()
