"""An LLM API that records what it is sent, byte for byte, and a gateway before it.

Scripted, since the paid ones cannot be asked: it takes any path, and answers in the dialect's own form.
"""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from tests.gateway_process import Behind, GatewayProcess, running
from tests.raw_front import Answer, Front, Overrides
from tests.scripted import Call, Seen, Upstream

Json = dict[str, Any]

PATHS: Final = {
    "anthropic": "/v1/messages",
    "openai": "/v1/chat/completions",
    "gemini": "/v1beta/models/gemini-x:generateContent",
    "bedrock": "/model/anthropic.claude-x/converse",
}
KEY_HEADERS: Final = {
    "anthropic": ("x-api-key", "{}"),
    "openai": ("Authorization", "Bearer {}"),
    "gemini": ("x-goog-api-key", "{}"),
    "bedrock": ("Authorization", "Bearer {}"),
}
ANSWERS: Final[Mapping[str, Json]] = {
    "anthropic": {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "hello"}]},
    "openai": {"object": "chat.completion", "choices": [{"message": {"role": "assistant", "content": "hello"}}]},
    "gemini": {"candidates": [{"content": {"role": "model", "parts": [{"text": "hello"}]}}]},
    "bedrock": {"output": {"message": {"role": "assistant", "content": [{"text": "hello"}]}}},
}


class Api(Upstream):
    """`on_http` scripts an answer; else it is the one of `ANSWERS`, with a header of the API's own."""

    path = ""

    def __init__(self, dialect: str) -> None:
        super().__init__()
        self.dialect = dialect

    @property
    def last(self) -> Seen:
        return self.requests[-1]

    async def serve(self, call: Call) -> None:
        body = b"" if call.seen.verb == "HEAD" else json.dumps(ANSWERS[self.dialect], indent=1).encode()
        await call.reply(200, body, [("Content-Type", "application/json"), ("Request-Id", "req-1")])


def plain_body(dialect: str, text: str = "hello", **more: Any) -> Json:
    """A question without tools, written with blanks that no writer of ours would write."""
    match dialect:
        case "gemini":
            return {"contents": [{"role": "user", "parts": [{"text": text}]}], **more}
        case "bedrock":
            return {"messages": [{"role": "user", "content": [{"text": text}]}], **more}
        case _:
            return {"model": "m", "messages": [{"role": "user", "content": text}], **more}


def result_body(dialect: str, text: str, tool: str = "show") -> Json:
    """A conversation in which a tool has answered with this text."""
    arguments: Json = {}
    match dialect:
        case "anthropic":
            use = {"type": "tool_use", "id": "t1", "name": tool, "input": arguments}
            answer = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": text}]}
            turns = [{"role": "assistant", "content": [use]}, {"role": "user", "content": [answer]}]
            return {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "go"}, *turns]}
        case "openai":
            call = {"id": "t1", "type": "function", "function": {"name": tool, "arguments": "{}"}}
            turns = [
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "t1", "content": text},
            ]
            return {"model": "m", "messages": [{"role": "user", "content": "go"}, *turns]}
        case "gemini":
            use = {"functionCall": {"name": tool, "args": arguments}}
            answer = {"functionResponse": {"name": tool, "response": {"result": text}}}
            turns = [{"role": "model", "parts": [use]}, {"role": "user", "parts": [answer]}]
            return {"contents": [{"role": "user", "parts": [{"text": "go"}]}, *turns]}
        case _:
            use = {"toolUse": {"toolUseId": "t1", "name": tool, "input": arguments}}
            answer = {"toolResult": {"toolUseId": "t1", "content": [{"text": text}]}}
            turns = [{"role": "assistant", "content": [use]}, {"role": "user", "content": [answer]}]
            return {"messages": [{"role": "user", "content": [{"text": "go"}]}, *turns]}


def raw(body: Json) -> bytes:
    return json.dumps(body, indent=1, ensure_ascii=False).encode()


async def ask(
    gateway: GatewayProcess, path: str, body: Json | bytes | None, headers: Overrides | None = None, verb: str = "POST"
) -> Answer:
    """One request on a route to an API."""
    sent = raw(body) if isinstance(body, dict) else body
    typed = {"Content-Type": "application/json"} if sent is not None else {}
    front = Front(gateway.url)
    front.path = path  # with its query
    return await front.send(verb, {**typed, **(headers or {})}, sent)


@asynccontextmanager
async def before(
    apis: Mapping[str, Api], behind: Behind | None = None, *, more_routes: Any = (), **more: Any
) -> AsyncIterator[GatewayProcess]:
    """A gateway with a route `/llm/NAME` for each API, and one `/NAME` for each MCP server. `more` adds or replaces
    members of its configuration; `provider_settings`, `route_settings`: of every API's entry and route."""
    given, of_route = more.pop("provider_settings", {}), more.pop("route_settings", {})
    servers = behind if behind is not None else {"mcp": {"url": "http://127.0.0.1:9/mcp"}}
    providers = {name: {"dialect": api.dialect, "url": api.url, **given} for name, api in apis.items()}
    routes = [{"path": f"/{name}", "upstream": name} for name in servers]
    routes += [{"path": f"/llm/{name}", "provider": name, **of_route} for name in apis]
    async with running(
        servers, providers=more.pop("providers", providers), routes=[*more.pop("routes", routes), *more_routes], **more
    ) as gateway:
        yield gateway


def message_of(dialect: str, answer: Answer) -> str:
    """The words of an error, read where the API's clients read them."""
    body = json.loads(answer.body)
    match dialect:
        case "anthropic":
            assert body["type"] == "error"
            assert isinstance(body["error"]["type"], str)
            return str(body["error"]["message"])
        case "openai":
            assert set(body["error"]) == {"message", "type", "param", "code"}
            return str(body["error"]["message"])
        case "gemini":
            assert body["error"]["code"] == answer.status
            assert body["error"]["status"].isupper()
            return str(body["error"]["message"])
        case _:
            assert answer.headers.get("x-amzn-ErrorType")
            return str(body["message"])
