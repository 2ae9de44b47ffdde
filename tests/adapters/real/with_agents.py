"""The `openai-agents` package: an agent with an MCP server, on both of OpenAI's APIs. `<api>-structured` has it send
the data of a result in place of the words where there are both."""

from typing import Any

from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, RunConfig, Runner
from agents.mcp import MCPServerStreamableHttp
from openai import AsyncOpenAI
from plan import MODEL, PATIENCE_S, QUESTIONS, SYSTEM, Conversation, http_client, run

QUIET = RunConfig(tracing_disabled=True)
MODELS = {"chat": OpenAIChatCompletionsModel, "responses": OpenAIResponsesModel}


async def converse(one: Conversation, mcp_url: str) -> list[str]:
    client = AsyncOpenAI(api_key=one["key"], base_url=one["provider"], max_retries=0)
    api, _, form = one["client"].partition("-")
    model: Any = MODELS[api](MODEL, openai_client=client)
    history: list[Any] = []
    said = []
    reached: Any = {"url": mcp_url, "httpx_client_factory": http_client, "timeout": PATIENCE_S}
    async with MCPServerStreamableHttp(
        reached, client_session_timeout_seconds=PATIENCE_S, use_structured_content=form == "structured"
    ) as server:
        agent = Agent(name="draws", instructions=SYSTEM, model=model, mcp_servers=[server])
        for question in QUESTIONS:
            history.append({"role": "user", "content": question})
            if one["stream"]:
                result: Any = Runner.run_streamed(agent, history, run_config=QUIET)
                async for _ in result.stream_events():
                    pass
            else:
                result = await Runner.run(agent, history, run_config=QUIET)
            history = result.to_input_list()
            said.append(result.final_output)
    return said


run(converse)
