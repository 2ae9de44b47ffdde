"""Drives the FastMCP 4.x `Client`, through its methods that return protocol objects. mode: auto | legacy."""

import asyncio
from importlib.metadata import version
from typing import Any, cast

import mcp_types as types
from fastmcp import Client
from mcp.shared.exceptions import MCPError
from steps import ANSWERS, dump, read_plan, show, walk

asked: list[Any] = []


class FastMcp4:
    error = MCPError

    def __init__(self, client: Client[Any]) -> None:
        self.client = client
        self.progress: list[Any] = []

    async def list(self, what: str, cursor: str | None) -> tuple[list[str], str | None]:
        lists: Any = {
            "tools": self.client.list_tools_mcp,
            "prompts": self.client.list_prompts_mcp,
            "resources": self.client.list_resources_mcp,
            "templates": self.client.list_resource_templates_mcp,
        }
        page = await lists[what](cursor=cursor)
        items = getattr(page, "resource_templates" if what == "templates" else what)
        return [item.name for item in items], page.next_cursor

    async def call(self, name: str, arguments: dict[str, Any] | None, meta: dict[str, Any] | None) -> Any:
        async def on_progress(*report: Any) -> None:
            self.progress.append(report)

        result = await self.client.call_tool_mcp(name, arguments or {}, progress_handler=on_progress, meta=meta)
        return dump(result)

    async def set_level(self, level: str) -> dict[str, Any] | None:
        if self.client.protocol_version == "2026-07-28":
            return {types.LOG_LEVEL_META_KEY: level}
        await self.client.set_logging_level(cast("types.LoggingLevel", level))
        return None

    async def read(self, uri: str) -> Any:
        return dump(await self.client.read_resource_mcp(uri))

    async def get(self, name: str, arguments: dict[str, str] | None) -> Any:
        return dump(await self.client.get_prompt_mcp(name, arguments))

    async def complete(self, ref: dict[str, Any], argument: dict[str, str]) -> Any:
        kind = types.PromptReference if ref["type"] == "ref/prompt" else types.ResourceTemplateReference
        return dump(await self.client.complete_mcp(kind.model_validate(ref), argument))

    def describe_error(self, error: Exception) -> dict[str, Any]:
        assert isinstance(error, MCPError)
        return {"code": error.error.code, "message": error.error.message, "data": error.error.data}


async def elicit(_message: str, _response_type: Any, params: Any, _context: Any) -> Any:
    asked.append({"kind": "elicitation", "params": dump(params)})
    return types.ElicitResult.model_validate(ANSWERS["elicitation"])


async def sample(_messages: Any, params: Any, _context: Any) -> Any:
    asked.append({"kind": "sampling", "params": dump(params)})
    return types.CreateMessageResult.model_validate(ANSWERS["sampling"])


async def roots(_context: Any) -> Any:
    asked.append({"kind": "roots"})
    return [types.Root.model_validate(root) for root in ANSWERS["roots"]["roots"]]


async def main() -> None:
    plan = read_plan()
    asks: Any = {}
    if plan["asks"]:
        asks = {"elicitation_handler": elicit, "sampling_handler": sample, "roots": roots}
    async with Client(plan["url"], mode=plan["mode"], timeout=20, **asks) as client:
        document = await walk(FastMcp4(client), plan)
        show(
            {
                "sdk": {"fastmcp": version("fastmcp")},
                "negotiated": client.protocol_version,
                "server": dump(client.server_info),
                "instructions": client.instructions,
                "capabilities": dump(client.server_capabilities),
                "asked": asked,
                **document,
            }
        )


asyncio.run(main())
