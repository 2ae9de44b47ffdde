"""The `google-genai` package, which calls the tools of an MCP session by itself."""

from typing import Any

from google import genai
from google.genai import types
from mcp import ClientSession
from mcp.types import CallToolResult
from plan import QUESTIONS, SYSTEM, Conversation, mcp_session, run

MODEL = "gemini-2.5-flash"


class Session(ClientSession):
    """The package writes no URL of SDK 1.x as JSON, so that any resource in a result ends its request: it gets text."""

    async def call_tool(self, *arguments: Any, **named: Any) -> CallToolResult:
        result = await super().call_tool(*arguments, **named)
        for block in result.content:
            resource = block.resource if block.type == "resource" else block
            if hasattr(resource, "uri"):
                resource.uri = str(resource.uri)
        return result


async def converse(one: Conversation, mcp_url: str) -> list[str]:
    client = genai.Client(api_key=one["key"], http_options=types.HttpOptions(base_url=one["provider"])).aio
    history: list[Any] = []
    said = []
    async with mcp_session(mcp_url, Session) as session:
        # a dictionary, as its own type is copied with all that is in it, and a session has no copy
        asked: Any = {"model": MODEL, "config": {"tools": [session], "system_instruction": SYSTEM}}
        for question in QUESTIONS:
            history.append(types.UserContent(question))
            if one["stream"]:
                steps = [step async for step in await client.models.generate_content_stream(**asked, contents=history)]
            else:
                steps = [await client.models.generate_content(**asked, contents=history)]
            history = steps[-1].automatic_function_calling_history
            history.append(steps[-1].candidates[0].content)
            said.append(steps[-1].text or "")
        await client.models.count_tokens(model=MODEL, contents=history)
    return said


run(converse)
