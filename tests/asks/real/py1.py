"""A server on the official Python SDK 1.x that asks: `python py1.py http|stdio`. What its tool does: `telling.py`."""

import contextlib
import sys
from collections.abc import AsyncIterator
from typing import Any

from mcp import McpError, types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.routing import Mount
from telling import SAID, SCHEMA, TOOL, TOOLS, URL, main, run, said, serve_http, test

server: Server[Any] = Server("py1")


async def ask(kind: str) -> dict[str, Any]:
    """Elicitation on the call's own stream, the rest on the session's GET stream: `list_roots` knows no other."""
    session, call = server.request_context.session, server.request_context.request_id
    messages = [types.SamplingMessage.model_validate(SAID)]
    answer: Any
    try:
        match kind:
            case "form":
                answer = await session.elicit_form("Wie heißt du?", SCHEMA, related_request_id=call)
            case "url":
                answer = await session.elicit_url("Go there", URL, "e1", related_request_id=call)
            case "sampling":
                answer = await session.create_message(messages, max_tokens=20)
            case "sampling with tools":
                tools = [types.Tool.model_validate(TOOL)]
                answer = await session.create_message(messages, max_tokens=20, tools=tools)
            case _:
                answer = await session.list_roots()
    except McpError as error:
        return {"error": {"code": error.error.code, "message": error.error.message}}
    return {"result": answer.model_dump(mode="json", by_alias=True, exclude_none=True)}


@server.list_tools()  # type: ignore[no-untyped-call,untyped-decorator]
async def list_tools() -> list[types.Tool]:
    return [types.Tool.model_validate(tool) for tool in TOOLS]


@server.call_tool(validate_input=False)  # type: ignore[untyped-decorator]
async def call_tool(name: str, arguments: dict[str, Any]) -> list[types.TextContent]:
    text = said(await run(arguments, ask)) if name == "ask" else name
    return [types.TextContent(type="text", text=text)]


async def serve() -> None:
    if sys.argv[1] == "http":
        manager = StreamableHTTPSessionManager(server)

        @contextlib.asynccontextmanager
        async def lifespan(_app: Starlette) -> AsyncIterator[None]:
            async with manager.run():
                yield

        await serve_http("py1", Starlette(routes=[Mount("/", app=manager.handle_request)], lifespan=lifespan))
    else:
        await test.join("py1")
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())


main(serve())
