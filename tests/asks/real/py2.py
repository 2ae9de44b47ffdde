"""A server on the official Python SDK 2.x that asks, in either era: `python py2.py http|stdio`. What its tool does:
`telling.py`. In 2026-07-28 its asks are the entries of a result, one of them a round unless they go together."""

import json
import sys
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from telling import SAID, SCHEMA, TOOL, TOOLS, URL, Json, main, run, said, serve_http, test

MESSAGE = types.SamplingMessage.model_validate(SAID)
ASKS: dict[str, Any] = {
    "form": types.ElicitRequest(params=types.ElicitRequestFormParams(message="Wie heißt du?", requested_schema=SCHEMA)),
    "url": types.ElicitRequest(
        params=types.ElicitRequestURLParams.model_validate(
            {"mode": "url", "message": "Go there", "url": URL, "elicitationId": "e1"}
        )
    ),
    "sampling": types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[MESSAGE], max_tokens=20)),
    "sampling with tools": types.CreateMessageRequest(
        params=types.CreateMessageRequestParams(
            messages=[MESSAGE], max_tokens=20, tools=[types.Tool.model_validate(TOOL)]
        )
    ),
    "roots": types.ListRootsRequest(),
}


def dumped(model: Any) -> Json:
    found: Json = model.model_dump(mode="json", by_alias=True, exclude_none=True)
    return found


async def ask(context: Any, kind: str) -> Json:
    """Elicitation on the call's own stream, the rest on the session's GET stream."""
    session, call = context.session, context.request_id
    try:
        match kind:
            case "form":
                answer = await session.elicit_form("Wie heißt du?", SCHEMA, related_request_id=call)
            case "url":
                answer = await session.elicit_url("Go there", URL, "e1", related_request_id=call)
            case "sampling":
                answer = await session.create_message([MESSAGE], max_tokens=20)
            case "sampling with tools":
                tools = [types.Tool.model_validate(TOOL)]
                answer = await session.create_message([MESSAGE], max_tokens=20, tools=tools)
            case _:
                answer = await session.list_roots()
    except MCPError as error:
        return {"error": {"code": error.error.code, "message": error.error.message}}
    return {"result": dumped(answer)}


async def call_tool(
    context: Any, params: types.CallToolRequestParams
) -> types.CallToolResult | types.InputRequiredResult:
    arguments = params.arguments or {}
    if params.name != "ask":
        return text(params.name)
    if context.protocol_version != "2026-07-28":
        return text(said(await run(arguments, lambda kind: ask(context, kind))))
    kinds, state = arguments["asks"], got_of(params.request_state)
    got = state | {key: dumped(answer) for key, answer in (params.input_responses or {}).items()}
    left = [kind for kind in kinds if kind not in got]
    if left:
        test.tell(asks=arguments["as"], left=left)
        wanted = left if arguments.get("together") else left[:1]
        return types.InputRequiredResult(
            input_requests={kind: ASKS[kind] for kind in wanted}, request_state=state_of(got)
        )

    async def known(kind: str) -> Json:
        return {"result": got[kind]}

    return text(said(await run(arguments, known)))


def state_of(got: Json) -> str:
    return json.dumps(got)


def got_of(state: str | None) -> Json:
    got: Json = json.loads(state or "{}")
    return got


def text(what: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=what)])


async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[types.Tool.model_validate(tool) for tool in TOOLS])


server = Server("py2", on_list_tools=list_tools, on_call_tool=call_tool)


async def serve() -> None:
    if sys.argv[1] == "http":
        await serve_http("py2", server.streamable_http_app())
    else:
        await test.join("py2")
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())


main(serve())
