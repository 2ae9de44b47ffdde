"""MCP servers on the official Python SDK 1.x: at `/ui` one whose results hold MCP Apps, at `/links` one whose
results link to them, at `/plain` one without any.

Prints its origin when ready. `marks.py` says which text no provider is to see, and which every one.
"""

import asyncio
import base64
import contextlib
import logging
import socket
from collections.abc import AsyncIterator
from typing import Any

import marks
import uvicorn
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.routing import Mount

VIEW = "ui://chart/view.html"
MIME = "text/html;profile=mcp-app"
SCHEMA = {
    "type": "object",
    "properties": {"rows": {"type": "integer", "description": "How many."}, "of": {"type": "string"}},
    "required": ["rows"],
}


def view(uri: str, html: str, *, packed: bool = False) -> types.EmbeddedResource:
    """A view in a result, its HTML as it is or in Base64."""
    common: dict[str, Any] = {"uri": uri, "mimeType": MIME, "_meta": {"ui": {"domain": marks.META}}}
    inner = (
        types.BlobResourceContents(**common, blob=base64.b64encode(html.encode()).decode())
        if packed
        else types.TextResourceContents(**common, text=html)
    )
    return types.EmbeddedResource(type="resource", resource=inner)


def says(text: str) -> types.TextContent:
    return types.TextContent(type="text", text=text)


def linked(*, visibility: list[str] | None = None) -> dict[str, Any]:
    """The `_meta` of a tool with a view."""
    nested: dict[str, Any] = {"resourceUri": VIEW}
    if visibility is not None:
        nested["visibility"] = visibility
    return {"ui": nested, "ui/resourceUri": VIEW}


def tool(name: str, description: str, meta: dict[str, Any] | None = None) -> types.Tool:
    return types.Tool(name=name, description=description, inputSchema=SCHEMA, _meta=meta)


IMAGE = types.ImageContent(type="image", data=marks.PNG, mimeType="image/png")
LARGE, SMALL, FRAGMENT = marks.page(marks.LARGE, 200), marks.page(marks.SMALL, 1), marks.fragment(marks.FRAGMENT, 99)
TOOLS: dict[str, dict[str, tuple[types.Tool, types.CallToolResult]]] = {
    "ui": {
        one[0].name: one
        for one in (
            # no link to a view: what its result holds was seen on the MCP plane, or it looks like any other text
            (
                tool("chart", "Draws a chart."),
                types.CallToolResult(
                    content=[says(marks.kept("chart")), IMAGE, view(VIEW, LARGE)],
                    structuredContent={"rows": [[1, 2.5], ["ä", None]], "kept": marks.kept("structured")},
                    _meta={"viewUUID": marks.META, "ui": {"resourceUri": VIEW}},
                ),
            ),
            # too small a view to be told from other text by what it is
            (
                tool("small", "Draws a small chart.", linked()),
                types.CallToolResult(content=[view(VIEW, SMALL), says(marks.kept("small"))]),
            ),
            (
                tool("packed", "Draws a packed chart.", linked()),
                types.CallToolResult(content=[says(marks.kept("packed")), view(VIEW, FRAGMENT, packed=True)]),
            ),
            (tool("only", "Draws, and says nothing.", linked()), types.CallToolResult(content=[view(VIEW, FRAGMENT)])),
            # its view is a resource that a host reads by itself
            (
                tool("apart", "Draws what is read apart.", linked(visibility=["model", "app"])),
                types.CallToolResult(
                    content=[says(marks.kept("apart"))],
                    structuredContent={"kept": marks.kept("apart")},
                    _meta={"view": marks.META},
                ),
            ),
            (
                tool(marks.HIDDEN, f"Rows anew, for the view alone: {marks.APP_ONLY}.", linked(visibility=["app"])),
                types.CallToolResult(content=[says("rows")]),
            ),
        )
    },
    "links": {
        "point": (
            tool("point", "Points to a chart.", linked()),
            types.CallToolResult(
                content=[
                    says(marks.kept("point")),
                    types.ResourceLink(
                        type="resource_link",
                        name=marks.LINK,
                        uri=f"ui://chart/{marks.LINK}.html",  # type: ignore[arg-type]
                        mimeType=MIME,
                    ),
                ]
            ),
        )
    },
    "plain": {
        one[0].name: one
        for one in (
            (
                tool("look", "Looks it up."),
                types.CallToolResult(
                    content=[
                        says(marks.kept("look")),
                        says(f'{{"_meta": {{"ui": 1}}, "mappings": "{marks.kept("json")}"}}'),
                        says(
                            "<!doctype html><p>a page that was fetched, of ui:// and text/html;profile=mcp-app</p>" * 20
                        ),
                        IMAGE,
                        types.EmbeddedResource(
                            type="resource",
                            resource=types.TextResourceContents(
                                uri="note://one",  # type: ignore[arg-type]
                                mimeType="text/html",
                                text=f"<p>{marks.kept('note')}</p>",
                            ),
                        ),
                        types.EmbeddedResource(
                            type="resource",
                            resource=types.TextResourceContents(
                                uri="note://long",  # type: ignore[arg-type]
                                mimeType="text/markdown",
                                text=f"# {marks.kept('long')}\n\n" + "A line of a long document.\n" * 300,
                            ),
                        ),
                    ],
                ),
            ),
        )
    },
}


def served(name: str) -> StreamableHTTPSessionManager:
    server: Server[Any, Any] = Server(name)
    tools = TOOLS[name]

    @server.list_tools()  # type: ignore[no-untyped-call, untyped-decorator]
    async def list_tools() -> list[types.Tool]:
        return [one for one, _ in tools.values()]

    @server.call_tool(validate_input=False)  # type: ignore[untyped-decorator]
    async def call_tool(called: str, _arguments: dict[str, Any]) -> types.CallToolResult:
        return tools[called][1]

    return StreamableHTTPSessionManager(server)


async def main() -> None:
    managers = {name: served(name) for name in TOOLS}

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            for manager in managers.values():
                await stack.enter_async_context(manager.run())
            yield

    routes = [Mount(f"/{name}", manager.handle_request) for name, manager in managers.items()]
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(Starlette(routes=routes, lifespan=lifespan), log_level="error"))
    logging.disable()  # the SDK tells of every stream that its client has left
    print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
    await server.serve(sockets=[listening])


asyncio.run(main())
