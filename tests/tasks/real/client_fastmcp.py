"""A client of tasks of 2026-07-28 on FastMCP; plan and output as of client_py1.py, with "arguments" of each step, and
"call" for a tool that is called as any other, its task never shown."""

import asyncio
import json
import sys
from typing import Any

import fastmcp_tasks
from fastmcp import Client
from fastmcp.exceptions import ToolError
from mcp import MCPError
from mcp_types import ElicitResult

ANSWERS = {"boolean": True, "string": "größe"}


async def elicit(_message: str, _type: Any, params: Any, _context: Any) -> ElicitResult:
    wanted = params.requested_schema["properties"]
    return ElicitResult(action="accept", content={name: ANSWERS[one["type"]] for name, one in wanted.items()})


async def run(client: Client[Any], step: dict[str, Any]) -> dict[str, Any]:
    said, task = dict[str, Any](), "größe"
    try:
        if step["do"] == "call":
            result = await client.call_tool(step["tool"], step["arguments"])
        else:
            handle = await fastmcp_tasks.call_tool_task(client, step["tool"], step["arguments"])
            task = handle.task_id
            if step["do"] == "unknown":
                handle.create_result.task_id = "größe"
            if step["do"] == "cancel":
                await handle.cancel()
                await handle.wait()
            try:
                result = await handle.result()
            finally:
                seen = await handle.status()
                said |= {"status": seen.status, "message": seen.status_message}
        said["result"] = [content.model_dump(mode="json", exclude_none=True) for content in result.content]
    except MCPError as error:
        said["error"] = {"code": error.error.code, "message": error.error.message}
    except ToolError as error:
        said["error"] = {"message": str(error)}
    return dict(json.loads(json.dumps(said).replace(task, "the task")))


async def main() -> None:
    plan = json.loads(sys.stdin.buffer.read())
    async with Client(plan["url"], elicitation_handler=elicit) as client:
        print(json.dumps([await run(client, step) for step in plan["steps"]]))


asyncio.run(main())
