"""The `anthropic` package: its own conversion of MCP tools and results, and its loop of tool calls, which has the
provider keep the conversation (`threads`) unless it is told to send the whole of it each time (`whole`)."""

from typing import Any

from anthropic import AsyncAnthropic
from anthropic.lib.tools.mcp import async_mcp_tool
from plan import MODEL, QUESTIONS, SYSTEM, Conversation, mcp_session, run


async def converse(one: Conversation, mcp_url: str) -> list[str]:
    client = AsyncAnthropic(api_key=one["key"], base_url=one["provider"], max_retries=0)
    system: Any = [{"type": "text", "text": SYSTEM, "cache_control": {"type": "ephemeral"}}]
    history: list[Any] = []
    said = []
    async with mcp_session(mcp_url) as session:
        tools = [async_mcp_tool(tool, session) for tool in (await session.list_tools()).tools]
        for question in QUESTIONS:
            history.append({"role": "user", "content": question})
            asked: dict[str, Any] = {"model": MODEL, "max_tokens": 99, "system": system, "messages": history}
            if one["client"] == "whole":
                asked["thread"] = False
            runner: Any = client.beta.messages.tool_runner(**asked, tools=tools, stream=one["stream"])
            async for step in runner:
                message = await step.get_final_message() if one["stream"] else step
                history.append({"role": "assistant", "content": message.content})
                if (results := await runner.generate_tool_call_response()) is not None:
                    history.append(results)
            said.append("".join(block.text for block in message.content if block.type == "text"))
        counted: dict[str, Any] = {"model": MODEL, "system": system, "messages": history}
        counted["tools"] = [tool.to_dict() for tool in tools]
        await client.beta.messages.count_tokens(**counted)
        batch: Any = {"custom_id": "one", "params": {**counted, "max_tokens": 99}}
        await client.beta.messages.batches.create(requests=[batch])
    return said


run(converse)
