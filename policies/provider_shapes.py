"""Where in a provider's request tools' results stand, and which call each of them answers.

Anthropic Messages (also its token count and batches, and on Bedrock and Vertex), OpenAI Chat Completions and Responses
(also conversations and the older assistants' outputs), Gemini in camelCase and snake_case (also its token count and
batches), Bedrock Converse. A body is known by its members; where one address has several forms, by its path. Text of
users, of the model and of the system is never looked at.
"""

from collections.abc import Mapping
from typing import Any, Final

from policies import jsonrpc
from policies.apps import PLACEHOLDER
from policies.mcp import Json
from policies.provider_blocks import STRUCTURED
from policies.provider_results import Form, Results, mcp_text
from policies.provider_tools import (
    ProviderDialect,
    definitions,
    each,
    each_or_one,
    is_empty,
    local_members,
    strip_tools,
    with_breakpoints,
    with_member,
)
from policies.splice import GONE, without_gone

_CALLS: Final = frozenset({"tool_use", "mcp_tool_use", "server_tool_use"})
_RESULTS: Final = frozenset({"tool_result", "mcp_tool_result"})

_WRAPPERS: Final = (
    "generateContentRequest",
    "generate_content_request",
    "batch",
    "requests",
    "inputConfig",
    "input_config",
)
_MAX_WRAPPED: Final = 5
"""Levels of requests in requests: Gemini's batches have four."""


def _input_text(text: str) -> Json:
    return {"type": "input_text", "text": text}


def _converse_text(text: str) -> Json:
    return {"text": text}


def dialect_of(dialect: ProviderDialect, path: str, body: Json) -> ProviderDialect:
    """Whose form a body has: clouds and servers that speak for another take its form."""
    path = path.partition("?")[0].rstrip("/")
    tools = body.get("tools")
    if dialect == "bedrock" and isinstance(tools, list) and "anthropic_version" not in body:  # a model's own form
        is_chat = any(isinstance(tool, dict) and tool.get("type") == "function" for tool in tools)
        return "openai" if is_chat else "anthropic"
    if isinstance(body.get("anthropic_version"), str) or path.endswith(("/messages", "/messages/count_tokens")):
        return "anthropic"
    if path.endswith(("/chat/completions", "/responses")):
        return "openai"
    return dialect


def strip_body(look: Results, dialect: ProviderDialect, path: str, body: Json, wrapped: int = 0) -> Json:
    """A body without what is not for a model: the very same where there is nothing to take out."""
    dialect = dialect_of(dialect, path, body)
    after = _own_members(look, body)
    after = strip_tools(look, dialect, after)
    after = _messages(look, after)
    for name in ("input", "items"):
        after = _items(look, after, name)
    after = _outputs(look, after)
    after = _contents(look, after)
    return _wrapped(look, dialect, path, after, wrapped) if wrapped < _MAX_WRAPPED else after


def _own_members(look: Results, body: Json) -> Json:
    """The body itself less members that only a host knows."""
    for name in ("_meta", "mcp_app"):
        if name in body:
            look.removed["meta" if name == "_meta" else "presentation"] += 1
            body = with_member(body, name, GONE)
    return body


def _wrapped(look: Results, dialect: ProviderDialect, path: str, body: Json, wrapped: int) -> Json:
    """Requests in a request: batches, and Gemini's count of tokens."""

    def inner(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        look.alone()
        return strip_body(look, dialect, path, value, wrapped + 1)

    def one(request: Any) -> Any:
        if not isinstance(request, dict):
            return request
        for name in ("params", "request", "body"):
            if isinstance(request.get(name), dict):
                return with_member(request, name, inner(request[name]))
        return inner(request)

    body = each(body, "requests", one)
    for name in (*_WRAPPERS, "input", "converse") if dialect == "bedrock" else _WRAPPERS:  # its count of tokens
        if isinstance(body.get(name), dict):
            body = with_member(body, name, inner(body[name]))
    return body


# results


def _result(look: Results, holder: Json, name: str, tool: str, form: Form) -> Json:
    """A provider's object that has a tool's result under a name: call and result stay paired, whatever is left."""
    if look.is_gone(tool):
        return _hidden(look, holder, name, form)
    for structured in STRUCTURED:
        if structured in holder:
            holder = with_member(holder, structured, look.json(holder[structured], tool))
    value = holder.get(name)
    if isinstance(value, list):
        holder = with_breakpoints(holder, with_member(holder, name, look.blocks(value, tool, form)), name)
        if is_empty(holder[name]) and value:
            holder = {**holder, name: [form(_structured_text(holder))]}
    elif value is not None:
        after = look.json(value, tool)
        is_gone = after is GONE or (after == PLACEHOLDER and after is not value)
        holder = with_member(holder, name, _structured_text(holder) if is_gone else after)
    if look.keeps_structured or not holder.get(name):
        return holder
    for structured in STRUCTURED:
        if structured in holder:
            look.removed["structured"] += 1
            holder = with_member(holder, structured, GONE)
    return holder


def _structured_text(holder: Json) -> str:
    structured = next((holder[name] for name in STRUCTURED if holder.get(name) is not None), None)
    return PLACEHOLDER if structured is None else jsonrpc.dumps(without_gone(structured)).decode()


def _hidden(look: Results, holder: Json, name: str, form: Form) -> Json:
    """The result of a tool for interfaces alone."""
    value = holder.get(name)
    instead: Any = [form(PLACEHOLDER)] if isinstance(value, list) else PLACEHOLDER
    after = holder
    if value is not None and value != instead:
        after = {**holder, name: instead}
    for structured in STRUCTURED:
        after = with_member(after, structured, GONE)
    if after is not holder:
        look.removed["app_result"] += 1
    return after


# the messages of Anthropic, of OpenAI's chat, of Converse


def _messages(look: Results, body: Json) -> Json:
    messages = body.get("messages")
    if not isinstance(messages, list):
        return body
    names = _called(messages)

    def block(one: Any) -> Any:
        if not isinstance(one, dict):
            return one
        if _key(one.get("type")) in _RESULTS:
            return _result(look, one, "content", look.name(names.get(_key(one.get("tool_use_id")))), mcp_text)
        result = one.get("toolResult")
        if isinstance(result, dict):
            tool = look.name(names.get(_key(result.get("toolUseId"))))
            return with_member(one, "toolResult", _result(look, result, "content", tool, _converse_text))
        found = one.get("content")
        if one.get("type") == "tool_search_tool_result" and isinstance(found, dict):
            return with_member(one, "content", each(found, "tool_references", lambda tool: _reference(look, tool)))
        return one

    def message(one: Any) -> Any:
        if not isinstance(one, dict):
            return one
        one = local_members(look, one) if look.has_local else one
        if one.get("role") in ("tool", "function"):
            name = names.get(_key(one.get("tool_call_id")), one.get("name", one.get("tool_name")))
            return _result(look, one, "content", look.name(name), mcp_text)
        return each(one, "content", block)

    return each(body, "messages", message)


def _reference(look: Results, reference: Any) -> Any:
    """A definition that a search has found: one that is not there any more is refused."""
    if not isinstance(reference, dict) or not look.is_gone(reference.get("tool_name")):
        return reference
    look.removed["tool_choice"] += 1
    return GONE


def _called(messages: list[Any]) -> Mapping[str, Any]:
    """The names of called tools, by the ids of calls."""
    names: dict[str, Any] = {}
    for message in messages:
        if not isinstance(message, dict):
            continue
        for block in _listed(message.get("content")):
            use = block.get("toolUse")
            if _key(block.get("type")) in _CALLS:
                names[_key(block.get("id"))] = block.get("name")
            elif isinstance(use, dict):
                names[_key(use.get("toolUseId"))] = use.get("name")
        for call in _listed(message.get("tool_calls")):
            kind = next((one for kind in ("function", "custom") if isinstance(one := call.get(kind), dict)), {})
            names[_key(call.get("id"))] = kind.get("name")
    names.pop("", None)  # calls without an id are told apart by nothing
    return names


def _listed(value: Any) -> list[Json]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _key(value: Any) -> str:
    return value if isinstance(value, str) else ""


# the items of OpenAI's Responses


def _items(look: Results, body: Json, name: str) -> Json:
    items = body.get(name)
    if not isinstance(items, list):
        return body
    names = {_key(one.get("call_id")): one.get("name") for one in _listed(items) if isinstance(one.get("name"), str)}
    names.pop("", None)

    def item(one: Any) -> Any:
        if not isinstance(one, dict):
            return one
        one = local_members(look, one) if look.has_local else one
        kind = _key(one.get("type"))
        if kind.endswith("_call_output"):
            return _result(look, one, "output", look.name(names.get(_key(one.get("call_id")))), _input_text)
        if kind == "mcp_call":
            return _result(look, one, "output", look.name(one.get("name")), _input_text)
        if kind == "mcp_list_tools":
            return definitions(look, one, "tools")
        return one

    return each(body, name, item)


def _outputs(look: Results, body: Json) -> Json:
    """What the older assistants' runs are told."""

    def output(one: Any) -> Any:
        return _result(look, one, "output", "", mcp_text) if isinstance(one, dict) else one

    return each(body, "tool_outputs", output)


# Gemini's contents


def _contents(look: Results, body: Json) -> Json:
    def part(one: Any) -> Any:
        if not isinstance(one, dict):
            return one
        for name in ("functionResponse", "function_response"):
            if isinstance(one.get(name), dict):
                return with_member(one, name, _function_response(look, one[name]))
        return one

    def content(one: Any) -> Any:
        if not isinstance(one, dict):
            return one
        return each_or_one(local_members(look, one) if look.has_local else one, "parts", part)

    return each_or_one(body, "contents", content)


def _function_response(look: Results, response: Json) -> Json:
    """Its `response` is an object whatever is left, its `parts` are images and documents beside it."""
    tool = look.name(response.get("name"))
    value = response.get("response")
    if look.is_gone(tool):
        hidden = {"result": PLACEHOLDER}
        after = response if value == hidden else {**response, "response": hidden}
        after = with_member(after, "parts", GONE)
        if after is not response:
            look.removed["app_result"] += 1
        return after
    kept = look.json(value, tool)
    if isinstance(value, dict):
        response = with_member(response, "response", kept if isinstance(kept, dict) else {"result": PLACEHOLDER})
    parts = response.get("parts")
    if isinstance(parts, dict):  # read as a list of one
        less = look.blocks([parts], tool, _converse_text)[0]
        return with_member(response, "parts", less)
    if not isinstance(parts, list):
        return response
    kept_parts = look.blocks(parts, tool, _converse_text)
    return with_member(response, "parts", GONE if is_empty(kept_parts) and parts else kept_parts)
