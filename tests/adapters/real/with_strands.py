"""The `strands-agents` package: an agent with an MCP client, on the models of four providers' APIs."""

import asyncio
from typing import Any

from mcp.client.streamable_http import streamable_http_client
from plan import MODEL, QUESTIONS, SYSTEM, Conversation, http_client, run
from strands import Agent
from strands.models.anthropic import AnthropicModel
from strands.models.bedrock import BedrockModel
from strands.models.gemini import GeminiModel
from strands.models.openai import OpenAIModel
from strands.models.openai_responses import OpenAIResponsesModel
from strands.tools.mcp import MCPClient


def model_of(one: Conversation) -> Any:
    key, url = one["key"], one["provider"]
    match one["client"]:
        case "bedrock":
            return BedrockModel(
                model_id=MODEL, region_name="us-east-1", endpoint_url=url, api_key=key, streaming=one["stream"]
            )
        case "anthropic":
            return AnthropicModel(client_args={"api_key": key, "base_url": url}, model_id=MODEL, max_tokens=99)
        case "gemini":
            return GeminiModel(client_args={"api_key": key, "http_options": {"base_url": url}}, model_id=MODEL)
        case "chat":
            return OpenAIModel(client_args={"api_key": key, "base_url": url}, model_id=MODEL)
        case "responses":
            return OpenAIResponsesModel(client_args={"api_key": key, "base_url": url}, model_id=MODEL)
    raise ValueError(one["client"])


async def converse(one: Conversation, mcp_url: str) -> list[str]:
    mcp = MCPClient(lambda: streamable_http_client(mcp_url, http_client=http_client()))
    # it opens its session in a thread of its own, and waits for it
    agent = await asyncio.to_thread(
        Agent, model=model_of(one), tools=[mcp], system_prompt=SYSTEM, callback_handler=None
    )
    try:
        return [str(await agent.invoke_async(question)).strip() for question in QUESTIONS]
    finally:
        await asyncio.to_thread(agent.cleanup)


run(converse)
