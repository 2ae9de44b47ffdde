"""Drives the official Python SDK 2.x `Client`. mode: auto | legacy | 2026-07-28 (pinned)."""

import asyncio
from importlib.metadata import version
from typing import Any, cast

import mcp_types as types
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError
from steps import ANSWERS, dump, read_plan, show, walk

asked: list[Any] = []


class Py2:
    error = MCPError

    def __init__(self, client: Client) -> None:
        self.client = client
        self.progress: list[Any] = []

    async def list(self, what: str, cursor: str | None) -> tuple[list[str], str | None]:
        lists: Any = {
            "tools": self.client.list_tools,
            "prompts": self.client.list_prompts,
            "resources": self.client.list_resources,
            "templates": self.client.list_resource_templates,
        }
        page = await lists[what](cursor=cursor)
        items = getattr(page, "resource_templates" if what == "templates" else what)
        return [item.name for item in items], page.next_cursor

    async def call(self, name: str, arguments: dict[str, Any] | None, meta: dict[str, Any] | None) -> Any:
        async def on_progress(*report: Any) -> None:
            self.progress.append(report)

        more: Any = {"meta": meta} if meta else {}
        return dump(await self.client.call_tool(name, arguments, progress_callback=on_progress, **more))

    async def set_level(self, level: str) -> dict[str, Any] | None:
        if self.client.protocol_version == "2026-07-28":
            return {types.LOG_LEVEL_META_KEY: level}
        await self.client.set_logging_level(cast("types.LoggingLevel", level))
        return None

    async def read(self, uri: str) -> Any:
        return dump(await self.client.read_resource(uri))

    async def get(self, name: str, arguments: dict[str, str] | None) -> Any:
        return dump(await self.client.get_prompt(name, arguments))

    async def complete(self, ref: dict[str, Any], argument: dict[str, str]) -> Any:
        kind = types.PromptReference if ref["type"] == "ref/prompt" else types.ResourceTemplateReference
        return dump(await self.client.complete(kind.model_validate(ref), argument))

    def describe_error(self, error: Exception) -> dict[str, Any]:
        assert isinstance(error, MCPError)
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


def launched(command: list[str]) -> StdioServerParameters:
    return StdioServerParameters(command=command[0], args=command[1:])


async def main() -> None:
    plan = read_plan()
    asks: Any = {}
    if plan["asks"]:
        asks = {"elicitation_callback": elicit, "sampling_callback": sample, "list_roots_callback": roots}
    peer = plan["url"] if "url" in plan else stdio_client(launched(plan["command"]))
    async with Client(peer, mode=plan["mode"], read_timeout_seconds=20, **asks) as client:
        document = await walk(Py2(client), plan)
        show(
            {
                "sdk": {"mcp": version("mcp")},
                "negotiated": client.protocol_version,
                "server": dump(client.server_info),
                "instructions": client.instructions,
                "capabilities": dump(client.server_capabilities),
                "asked": asked,
                **document,
            }
        )


asyncio.run(main())
