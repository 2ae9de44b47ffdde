"""The `openai` package, whose users write an MCP result as JSON into the output of a call: both of its APIs."""

import json
from typing import Any

from mcp import ClientSession
from openai import AsyncOpenAI
from plan import MODEL, QUESTIONS, SYSTEM, Conversation, mcp_session, run


async def output(session: ClientSession, name: str, arguments: str) -> str:
    result = await session.call_tool(name, json.loads(arguments))
    return result.model_dump_json(by_alias=True, exclude_none=True)


async def chat(client: AsyncOpenAI, session: ClientSession, *, stream: bool) -> list[str]:
    tools: Any = [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.inputSchema},
        }
        for tool in (await session.list_tools()).tools
    ]
    history: list[Any] = [{"role": "system", "content": SYSTEM}]
    said = []
    for question in QUESTIONS:
        history.append({"role": "user", "content": question})
        while True:
            asked: Any = {"model": MODEL, "messages": history, "tools": tools}
            if stream:
                async with client.chat.completions.stream(**asked) as events:
                    message = (await events.get_final_completion()).choices[0].message
            else:
                message = (await client.chat.completions.create(**asked)).choices[0].message
            if not message.tool_calls:
                break
            calls = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.function.name, "arguments": call.function.arguments},
                }
                for call in message.tool_calls
            ]
            history.append({"role": "assistant", "tool_calls": calls})
            for call in message.tool_calls:
                content = await output(session, call.function.name, call.function.arguments)
                history.append({"role": "tool", "tool_call_id": call.id, "content": content})
        history.append({"role": "assistant", "content": message.content})
        said.append(message.content or "")
    return said


async def responses(client: AsyncOpenAI, session: ClientSession, *, stream: bool) -> list[str]:
    tools: Any = [
        {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.inputSchema,
            "strict": False,
        }
        for tool in (await session.list_tools()).tools
    ]
    history: list[Any] = []
    said = []
    for question in QUESTIONS:
        history.append({"role": "user", "content": question})
        while True:
            asked: Any = {"model": MODEL, "input": history, "tools": tools, "instructions": SYSTEM, "store": False}
            if stream:
                async with client.responses.stream(**asked) as events:
                    response = await events.get_final_response()
            else:
                response = await client.responses.create(**asked)
            history += [
                item.model_dump(exclude_none=True, exclude={"parsed", "parsed_arguments"}) for item in response.output
            ]
            calls = [item for item in response.output if item.type == "function_call"]
            for call in calls:
                content = await output(session, call.name, call.arguments)
                history.append({"type": "function_call_output", "call_id": call.call_id, "output": content})
            if not calls:
                break
        said.append(response.output_text)
    return said


async def converse(one: Conversation, mcp_url: str) -> list[str]:
    client = AsyncOpenAI(api_key=one["key"], base_url=one["provider"], max_retries=0)
    async with mcp_session(mcp_url) as session:
        return await {"chat": chat, "responses": responses}[one["client"]](client, session, stream=one["stream"])


run(converse)
