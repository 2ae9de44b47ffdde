"""A server over HTTP+SSE on the official Python SDK, 1.0 or the last 1.x: `python server.py`. Writes its URL."""

import socket
from typing import Any

import uvicorn
from mcp import types
from mcp.server import Server
from mcp.server.sse import SseServerTransport
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

server: "Server[Any]" = Server("python")
transport = SseServerTransport("/messages/")


@server.list_tools()  # type: ignore[no-untyped-call,untyped-decorator,unused-ignore]
async def list_tools() -> list[types.Tool]:
    return [types.Tool(name=name, description=name, inputSchema={"type": "object"}) for name in ("echo", "ask")]


@server.call_tool()  # type: ignore[untyped-decorator,unused-ignore]
async def call_tool(name: str, arguments: dict[str, Any]) -> list[types.TextContent]:
    said = str(arguments["text"])
    session = server.request_context.session
    if name == "ask":
        said = (await session.list_roots()).roots[0].name or ""
    await session.send_log_message("info", said)
    return [types.TextContent(type="text", text=said)]


@server.get_prompt()  # type: ignore[no-untyped-call,untyped-decorator,unused-ignore]
async def get_prompt(name: str, arguments: dict[str, str] | None) -> types.GetPromptResult:
    content = types.TextContent(type="text", text=f"{name} {sorted((arguments or {}).items())}")
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=content)])


class Finished(Response):
    """The transport has answered already."""

    async def __call__(self, *_: Any) -> None:
        return


async def stream(request: Request) -> Response:
    async with transport.connect_sse(request.scope, request.receive, request._send) as (read, write):
        await server.run(read, write, server.create_initialization_options())
    return Finished()


listener = socket.socket()
listener.bind(("127.0.0.1", 0))
print(f"http://127.0.0.1:{listener.getsockname()[1]}/sse", flush=True)
app = Starlette(routes=[Route("/sse", stream), Mount("/messages/", transport.handle_post_message)])
uvicorn.Server(uvicorn.Config(app, log_level="critical")).run([listener])
