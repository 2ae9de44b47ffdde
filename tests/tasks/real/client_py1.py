"""A client of tasks of 2025-11-25 on the official Python SDK 1.x.

The plan on standard input: {"url", "steps": [{"tool", "do"}]}, where a task is awaited ("result"), called off
("cancel"), outlived ("expire"), or none that there is ("unknown"). On standard output, an object a step: the "status"
that it ended in, its "message", and the "result" or "error" that it has.
"""

import asyncio
import json
import sys
from typing import Any

from mcp import ClientSession, McpError, types
from mcp.client.streamable_http import streamable_http_client


async def elicit(_context: Any, _params: Any) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"name": "größe"})


async def sample(_context: Any, _params: Any) -> types.CreateMessageResult:
    return types.CreateMessageResult(role="assistant", content=types.TextContent(type="text", text="hi"), model="m")


async def run(session: ClientSession, step: dict[str, str]) -> dict[str, Any]:
    tasks, said = session.experimental, dict[str, Any]()
    if step["do"] == "unknown":
        task = "größe"
    else:
        ttl = 1 if step["do"] == "expire" else 60_000
        task = (await tasks.call_tool_as_task(step["tool"], {}, ttl=ttl)).task.taskId
    try:
        if step["do"] == "cancel":
            await tasks.cancel_task(task)
        while step["do"] in ("expire", "unknown"):
            await tasks.get_task(task)
        async for seen in tasks.poll_task(task):
            said |= {"status": seen.status, "message": seen.statusMessage}
            if seen.status == "input_required":
                break
        result = await tasks.get_task_result(task, types.Result)
        said["result"] = result.model_dump(mode="json", by_alias=True, exclude_none=True)
        said |= {"status": (await tasks.get_task(task)).status}
    except McpError as error:
        said["error"] = {"code": error.error.code, "message": error.error.message}
    return dict(json.loads(json.dumps(said).replace(task, "the task")))


async def main() -> None:
    plan = json.loads(sys.stdin.buffer.read())
    async with streamable_http_client(plan["url"]) as (read, write, _):
        async with ClientSession(read, write, elicitation_callback=elicit, sampling_callback=sample) as session:
            await session.initialize()
            print(json.dumps([await run(session, step) for step in plan["steps"]]))


asyncio.run(main())
