"""A legacy upstream on the official Python SDK 1.x, for both legacy kinds of the matrix.

`sessions`: Streamable HTTP that issues an Mcp-Session-Id and demands it. `stateless`: the same revision, no id.
Serves catalogue.json as it stands (the SDK's models keep unknown fields). Prints its URL on stdout when it listens.
Run by the Python of the environment that holds mcp 1.x: `python legacy.py sessions|stateless`.
"""

import contextlib
import functools
import json
import re
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import anyio
import uvicorn
from mcp import McpError, types
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.types import Message, Receive, Scope, Send

CATALOGUE: dict[str, Any] = json.loads(Path(__file__).with_name("catalogue.json").read_text(encoding="utf-8"))
STATELESS = sys.argv[1] == "stateless"
ABOUT = CATALOGUE["server"]
TOOLS = [*CATALOGUE["tools"], *CATALOGUE["legacy_tools"]]
SEVERITIES = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Name", "default": "Ann"},
        "age": {"type": "integer", "minimum": 0},
    },
    "required": ["name"],
}

server: Server[Any] = Server(
    ABOUT["name"],
    version=ABOUT["version"],
    instructions=CATALOGUE["instructions"],
    website_url=ABOUT["websiteUrl"],
    icons=[types.Icon.model_validate(icon) for icon in ABOUT["icons"]],
)
server.create_initialization_options = functools.partial(  # type: ignore[method-assign]
    server.create_initialization_options, experimental_capabilities={"com.example/x": {"on": True}}
)


def fault(code: int, message: str, data: Any) -> McpError:
    return McpError(types.ErrorData(code=code, message=message, data=data))


def page(key: str, items: list[Any], params: types.PaginatedRequestParams | None) -> dict[str, Any]:
    cursor = params.cursor if params else None
    start = 0
    if cursor is not None:
        if (match := re.fullmatch(r"page:(\d+)=", cursor)) is None:
            raise fault(-32602, "Invalid cursor", {"cursor": cursor})
        start = int(match[1])
    end = start + CATALOGUE["page_size"]
    return {key: items[start:end], **({"nextCursor": f"page:{end}="} if end < len(items) else {})}


LISTENING: dict[str, anyio.Event] = {}


def listening(session_id: str) -> anyio.Event:
    """Set once that session's GET stream is open."""
    return LISTENING.setdefault(session_id, anyio.Event())


async def handle(scope: Scope, receive: Receive, send: Send) -> None:
    """The SDK's own handler, watched for GET streams that open."""

    async def watched(message: Message) -> None:
        await send(message)
        session_id = dict(scope["headers"]).get(b"mcp-session-id")
        opened = message["type"] == "http.response.start" and message["status"] == 200
        if scope["method"] == "GET" and opened and session_id is not None:
            listening(session_id.decode()).set()

    await manager.handle_request(scope, receive, watched)


async def ask(kinds: list[str]) -> dict[str, Any]:
    """Asks the client for everything named, one after the other, and shows the answers as they came."""
    session, request_id = server.request_context.session, server.request_context.request_id
    answers: dict[str, Any] = {}
    for kind in kinds:
        answer: Any
        if kind == "elicitation":
            answer = await session.elicit_form("Wie heißt du?", SCHEMA, related_request_id=request_id)
        elif kind == "sampling":
            text = types.TextContent(type="text", text="Say hi € ☃")
            message = types.SamplingMessage(role="user", content=text)
            answer = await session.create_message([message], max_tokens=20, related_request_id=request_id)
        else:
            # SDK 1.x has no related_request_id here: the ask goes out on the GET stream, and is lost if none is open
            await listening(server.request_context.request.headers["mcp-session-id"]).wait()
            answer = await session.list_roots()
        answers[kind] = answer.model_dump(mode="json", by_alias=True, exclude_none=True)
    return {"content": [{"type": "text", "text": json.dumps({"answers": answers}, ensure_ascii=False)}]}


async def progress() -> dict[str, Any]:
    context = server.request_context
    token = context.meta.progressToken if context.meta else None
    for step in (1, 2, 3):
        if token is not None:
            await context.session.send_progress_notification(
                token, step / 2, 1.5, f"Schritt {step}", related_request_id=str(context.request_id)
            )
    return {"content": [{"type": "text", "text": "done"}]}


LEVELS: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
"""The level that each session asked for: a warning where it asked for none, as every stateless one."""


async def log() -> dict[str, Any]:
    context = server.request_context
    wanted = SEVERITIES.index(LEVELS.get(context.session, "warning"))
    for entry in CATALOGUE["logs"]:
        if SEVERITIES.index(entry["level"]) >= wanted:
            await context.session.send_log_message(
                entry["level"], entry["data"], entry.get("logger"), related_request_id=context.request_id
            )
    return {"content": [{"type": "text", "text": "logged"}]}


def set_level(request: types.SetLevelRequest) -> dict[str, Any]:
    LEVELS[server.request_context.session] = request.params.level
    return {}


async def call(request: types.CallToolRequest) -> dict[str, Any]:
    name, arguments = request.params.name, request.params.arguments or {}
    if name == "echo":
        meta = request.params.meta.model_dump(mode="json", by_alias=True) if request.params.meta else {}
        vendor = {key: value for key, value in meta.items() if key.startswith("com.example/")}
        return {"content": [], "structuredContent": {"arguments": arguments, "meta": vendor}}
    if name == "where":
        return {"content": [{"type": "text", "text": f"in {arguments.get('region')}"}]}
    if name == "ask":
        return await ask(arguments.get("kinds", ["elicitation", "sampling", "roots"]))
    if name == "progress":
        return await progress()
    if name == "logs":
        return await log()
    if name not in CATALOGUE["calls"]:
        raise fault(-32602, f"Unknown tool: {name}", {"tool": name, "vendor": 1})
    result: dict[str, Any] = CATALOGUE["calls"][name]
    return result


def get(request: types.GetPromptRequest) -> dict[str, Any]:
    if request.params.name not in CATALOGUE["gets"]:
        raise fault(-32602, f"Unknown prompt: {request.params.name}", None)
    result: dict[str, Any] = CATALOGUE["gets"][request.params.name]
    return result


def read(request: types.ReadResourceRequest) -> dict[str, Any]:
    uri = str(request.params.uri)
    if uri in CATALOGUE["reads"]:
        result: dict[str, Any] = CATALOGUE["reads"][uri]
        return result
    if STATELESS:  # what the SDK's own high-level server answers: code 0 with a text
        raise fault(0, f"Unknown resource: {uri}", None)
    raise fault(-32002, f"Resource not found: {uri}", {"uri": uri})


def serve(kind: type[Any], model: type[Any], handler: Any) -> None:
    """Registers below the decorators, which would rebuild and validate the results."""

    async def handle(request: Any) -> types.ServerResult:
        result = handler(request)
        return types.ServerResult(model.model_validate(result if isinstance(result, dict) else await result))

    server.request_handlers[kind] = handle


def lists(key: str, items: list[Any]) -> Any:
    return lambda request: page(key, items, request.params)


serve(types.ListToolsRequest, types.ListToolsResult, lists("tools", TOOLS))
serve(types.ListPromptsRequest, types.ListPromptsResult, lists("prompts", CATALOGUE["prompts"]))
serve(types.ListResourcesRequest, types.ListResourcesResult, lists("resources", CATALOGUE["resources"]))
serve(
    types.ListResourceTemplatesRequest,
    types.ListResourceTemplatesResult,
    lists("resourceTemplates", CATALOGUE["templates"]),
)
serve(types.CallToolRequest, types.CallToolResult, call)
serve(types.GetPromptRequest, types.GetPromptResult, get)
serve(types.ReadResourceRequest, types.ReadResourceResult, read)
serve(types.CompleteRequest, types.CompleteResult, lambda _request: CATALOGUE["completion"])

serve(types.SetLevelRequest, types.EmptyResult, set_level)

manager = StreamableHTTPSessionManager(server, stateless=STATELESS)


@contextlib.asynccontextmanager
async def lifespan(_app: Starlette) -> AsyncIterator[None]:
    async with manager.run():
        yield


def main() -> None:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    app = Starlette(routes=[Mount("/", app=handle)], lifespan=lifespan)
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])


main()
