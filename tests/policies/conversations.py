"""Requests of one conversation to each LLM API: a question, a call of a tool and its result, as hosts write them."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from policies import provider
from policies.mcp import Json
from policies.provider import ProviderDialect

SCHEMA: Json = {"type": "object", "properties": {"city": {"type": "string"}}}
QUESTION = 'What is at ui://weather/view.html? It has {"_meta": {"ui": 1}} and text/html;profile=mcp-app.'
PLACEHOLDER = "[This is a user interface, which cannot be shown here.]"


@dataclass(frozen=True)
class Api:
    """One API: how it has a tool's definition, a call with its result, a text in a result, and a choice of a tool."""

    dialect: ProviderDialect
    path: str
    tool: Callable[[str], Json]
    body: Callable[[list[Any], list[tuple[str, Any]]], Json]
    text: Callable[[str], Any]
    form: Callable[[str], Any]


def _anthropic(tools: list[Any], calls: list[tuple[str, Any]]) -> Json:
    messages: list[Json] = [{"role": "user", "content": QUESTION}]
    for number, (name, result) in enumerate(calls):
        use = {"type": "tool_use", "id": f"c{number}", "name": name, "input": {"_meta": {"ui": "the model's"}}}
        done = {"type": "tool_result", "tool_use_id": f"c{number}", "content": result, "is_error": False}
        messages += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [done]}]
    return {"model": "m", "max_tokens": 9, "messages": messages, **({"tools": tools} if tools else {})}


def _chat(tools: list[Any], calls: list[tuple[str, Any]]) -> Json:
    messages: list[Json] = [{"role": "user", "content": QUESTION}]
    for number, (name, result) in enumerate(calls):
        call = {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": '{"_meta":{"ui":1}}'}}
        messages += [{"role": "assistant", "content": None, "tool_calls": [call]}]
        messages += [{"role": "tool", "tool_call_id": f"c{number}", "content": result}]
    return {"model": "m", "messages": messages, **({"tools": tools} if tools else {})}


def _responses(tools: list[Any], calls: list[tuple[str, Any]]) -> Json:
    items: list[Json] = [{"role": "user", "content": QUESTION}]
    for number, (name, result) in enumerate(calls):
        items += [{"type": "function_call", "call_id": f"c{number}", "name": name, "arguments": '{"_meta":{"ui":1}}'}]
        items += [{"type": "function_call_output", "call_id": f"c{number}", "output": result}]
    return {"model": "m", "input": items, **({"tools": tools} if tools else {})}


def _gemini(tools: list[Any], calls: list[tuple[str, Any]]) -> Json:
    contents: list[Json] = [{"role": "user", "parts": [{"text": QUESTION}]}]
    for name, result in calls:
        contents += [{"role": "model", "parts": [{"functionCall": {"name": name, "args": {"_meta": {"ui": 1}}}}]}]
        contents += [{"role": "user", "parts": [{"functionResponse": {"name": name, "response": {"result": result}}}]}]
    return {"contents": contents, **({"tools": [{"functionDeclarations": tools}]} if tools else {})}


def _bedrock(tools: list[Any], calls: list[tuple[str, Any]]) -> Json:
    messages: list[Json] = [{"role": "user", "content": [{"text": QUESTION}]}]
    for number, (name, result) in enumerate(calls):
        use = {"toolUse": {"toolUseId": f"c{number}", "name": name, "input": {"_meta": {"ui": 1}}}}
        done = {"toolResult": {"toolUseId": f"c{number}", "content": result, "status": "success"}}
        messages += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [done]}]
    return {"messages": messages, **({"toolConfig": {"tools": tools}} if tools else {})}


def _spec(name: str) -> Json:
    return {"toolSpec": {"name": name, "description": "d", "inputSchema": {"json": SCHEMA}}}


def mcp_text(text: str) -> Json:
    return {"type": "text", "text": text}


APIS: dict[str, Api] = {
    "anthropic": Api(
        "anthropic",
        "/v1/messages",
        lambda name: {"name": name, "description": "d", "input_schema": SCHEMA},
        _anthropic,
        lambda text: [mcp_text(text)],
        mcp_text,
    ),
    "chat": Api(
        "openai",
        "/v1/chat/completions",
        lambda name: {"type": "function", "function": {"name": name, "description": "d", "parameters": SCHEMA}},
        _chat,
        lambda text: text,
        mcp_text,
    ),
    "responses": Api(
        "openai",
        "/v1/responses",
        lambda name: {"type": "function", "name": name, "description": "d", "parameters": SCHEMA},
        _responses,
        lambda text: text,
        lambda text: {"type": "input_text", "text": text},
    ),
    "gemini": Api(
        "gemini",
        "/v1beta/models/g:generateContent",
        lambda name: {"name": name, "description": "d", "parameters": SCHEMA},
        _gemini,
        lambda text: text,
        mcp_text,
    ),
    "bedrock": Api(
        "bedrock", "/model/x/converse", _spec, _bedrock, lambda text: [{"text": text}], lambda text: {"text": text}
    ),
}


def stripped(
    api: Api, body: Json | bytes, known: provider.Known | None = None, **how: Any
) -> tuple[Any, dict[str, int], bool]:
    """What is sent of a body, what was removed, and whether the bytes are the very same."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    done = provider.strip(provider.candidates(api.dialect, raw, api.path, **how), known or provider.Known())
    return json.loads(done.body), dict(done.removed), done.body is raw
