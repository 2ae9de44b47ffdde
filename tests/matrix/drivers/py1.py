"""Drives the official Python SDK 1.x `ClientSession`, which knows the legacy era alone. mode: legacy."""

import asyncio
from datetime import timedelta
from importlib.metadata import version
from typing import Any, cast

from mcp import ClientSession, McpError, types
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from pydantic import AnyUrl
from steps import ANSWERS, dump, read_plan, show, walk

asked: list[Any] = []


class Py1:
    error = McpError

    def __init__(self, session: ClientSession) -> None:
        self.session = session
        self.progress: list[Any] = []

    async def list(self, what: str, cursor: str | None) -> tuple[list[str], str | None]:
        lists: Any = {
            "tools": self.session.list_tools,
            "prompts": self.session.list_prompts,
            "resources": self.session.list_resources,
            "templates": self.session.list_resource_templates,
        }
        page = await lists[what](params=types.PaginatedRequestParams(cursor=cursor) if cursor is not None else None)
        items = getattr(page, "resourceTemplates" if what == "templates" else what)
        return [item.name for item in items], page.nextCursor

    async def call(self, name: str, arguments: dict[str, Any] | None, meta: dict[str, Any] | None) -> Any:
        async def on_progress(*report: Any) -> None:
            self.progress.append(report)

        return dump(await self.session.call_tool(name, arguments, progress_callback=on_progress, meta=meta))

    async def set_level(self, level: str) -> dict[str, Any] | None:
        await self.session.set_logging_level(cast("types.LoggingLevel", level))
        return None

    async def read(self, uri: str) -> Any:
        return dump(await self.session.read_resource(AnyUrl(uri)))

    async def get(self, name: str, arguments: dict[str, str] | None) -> Any:
        return dump(await self.session.get_prompt(name, arguments))

    async def complete(self, ref: dict[str, Any], argument: dict[str, str]) -> Any:
        kind = types.PromptReference if ref["type"] == "ref/prompt" else types.ResourceTemplateReference
        return dump(await self.session.complete(kind.model_validate(ref), argument))

    def describe_error(self, error: Exception) -> dict[str, Any]:
        assert isinstance(error, McpError)
        return {"code": error.error.code, "message": error.error.message, "data": error.error.data}


async def elicit(_context: Any, params: Any) -> types.ElicitResult:
    asked.append({"kind": "elicitation", "params": dump(params)})
    return types.ElicitResult.model_validate(ANSWERS["elicitation"])


async def sample(_context: Any, params: Any) -> types.CreateMessageResult:
    asked.append({"kind": "sampling", "params": dump(params)})
    return types.CreateMessageResult.model_validate(ANSWERS["sampling"])


async def roots(_context: Any) -> types.ListRootsResult:
    asked.append({"kind": "roots"})
    return types.ListRootsResult.model_validate(ANSWERS["roots"])


def connect(plan: dict[str, Any]) -> Any:
    if "url" in plan:
        return streamable_http_client(plan["url"])
    program, *arguments = plan["command"]
    return stdio_client(StdioServerParameters(command=program, args=arguments))


async def main() -> None:
    plan = read_plan()
    assert plan["mode"] == "legacy"
    asks: Any = {}
    if plan["asks"]:
        asks = {"elicitation_callback": elicit, "sampling_callback": sample, "list_roots_callback": roots}
    async with (
        connect(plan) as (read, write, *_),
        ClientSession(read, write, read_timeout_seconds=timedelta(seconds=20), **asks) as session,
    ):
        hello = await session.initialize()
        document = await walk(Py1(session), plan)
        show(
            {
                "sdk": {"mcp": version("mcp")},
                "negotiated": hello.protocolVersion,
                "server": dump(hello.serverInfo),
                "instructions": hello.instructions,
                "capabilities": dump(hello.capabilities),
                "asked": asked,
                **document,
            }
        )


asyncio.run(main())
