"""The `langchain-mcp-adapters` package, with the models of `langchain-anthropic` and `langchain-openai`."""

from typing import Any

from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_mcp_adapters.tools import load_mcp_tools
from langchain_openai import ChatOpenAI
from plan import MODEL, QUESTIONS, SYSTEM, Conversation, mcp_session, run


def model_of(one: Conversation) -> Any:
    common: dict[str, Any] = {"model": MODEL, "api_key": one["key"], "base_url": one["provider"], "max_retries": 0}
    if one["client"] == "anthropic":
        return ChatAnthropic(**common)
    return ChatOpenAI(**common, use_responses_api=one["client"] == "responses", stream_usage=False)


async def converse(one: Conversation, mcp_url: str) -> list[str]:
    history: list[Any] = [SystemMessage(SYSTEM)]
    said = []
    async with mcp_session(mcp_url) as session:
        tools = {tool.name: tool for tool in await load_mcp_tools(session)}
        model = model_of(one).bind_tools(list(tools.values()))
        for question in QUESTIONS:
            history.append(HumanMessage(question))
            while True:
                if one["stream"]:
                    message = None
                    async for chunk in model.astream(history):
                        message = chunk if message is None else message + chunk
                else:
                    message = await model.ainvoke(history)
                history.append(message)
                history += [await tools[call["name"]].ainvoke(call) for call in message.tool_calls]
                if not message.tool_calls:
                    break
            said.append(message.text)
    return said


run(converse)
