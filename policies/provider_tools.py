"""What a provider is told of tools, less the tools for interfaces alone: definitions, choices, and what is allowed.

What each provider takes for no tools at all differs, and is told here:
Anthropic an empty list without `tool_choice`; OpenAI's chat neither `tools` nor what speaks of them ("[] is too
short", "only allowed when tools are specified"); Gemini no `functionCallingConfig` without declarations; Bedrock no
`toolConfig`, but at least one tool where the conversation has calls or results: one stands in that can do nothing.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, Literal

from policies.apps_marks import is_app_only, is_ui_uri
from policies.mcp import Json
from policies.provider_blocks import with_meta
from policies.provider_look import Look
from policies.splice import GONE

ProviderDialect = Literal["anthropic", "openai", "gemini", "bedrock"]

STAND_IN: Final[Json] = {
    "toolSpec": {
        "name": "none",
        "description": "There is no tool. Do not call this.",
        "inputSchema": {"json": {"type": "object", "properties": {}}},
    }
}
"""Bedrock refuses a conversation with calls and results that defines no tool."""

_LOCAL: Final = ("_meta", "mcp_app")
_OPAQUE: Final = frozenset(
    {"input", "arguments", "args", "parameters", "parametersJsonSchema", "parameters_json_schema", "input_schema"}
    | {"inputSchema", "response", "json", "structuredContent", "text", "metadata", "schema"}
)
"""Members that hold a user's or a model's own JSON."""


def with_member(value: Json, name: str, member: Any) -> Json:
    """`value` with another member, or without it where that is GONE; the very same where that is what it has."""
    if name in value and value[name] is member:
        return value
    if member is GONE:
        return {key: one for key, one in value.items() if key != name} if name in value else value
    return {**value, name: member}


def each(value: Json, name: str, change: Callable[[Any], Any]) -> Json:
    """`value` with each element of a list in it changed; those that become GONE stand as GONE."""
    old = value.get(name)
    if not isinstance(old, list):
        return value
    new = [change(one) for one in old]
    return value if all(one is other for one, other in zip(old, new, strict=True)) else {**value, name: new}


def each_or_one(value: Json, name: str, change: Callable[[Any], Any]) -> Json:
    """The same where a list of one may stand as its element (Gemini, as protocol buffers are read)."""
    old = value.get(name)
    return with_member(value, name, change(old)) if isinstance(old, dict) else each(value, name, change)


def local_members(look: Look, value: Any, depth: int = 0) -> Any:
    """A provider's own object, less the members that hosts keep for themselves, at any depth."""
    if depth > look.bounds.max_depth:
        return value
    if isinstance(value, list):
        new = [local_members(look, one, depth + 1) for one in value]
        return value if all(one is other for one, other in zip(value, new, strict=True)) else new
    if not isinstance(value, dict):
        return value
    after: Json = {}
    for name, member in value.items():
        if name in _LOCAL:
            look.removed["meta" if name == "_meta" else "presentation"] += 1
        elif name in _OPAQUE or not isinstance(member, dict | list):
            after[name] = member
        else:
            after[name] = local_members(look, member, depth + 1)
    return value if len(after) == len(value) and all(after[name] is value[name] for name in value) else after


# definitions


def definitions(look: Look, value: Json, name: str) -> Json:
    """A list of definitions under a name, less those of tools for interfaces alone; the point up to which a prompt is
    cached moves to the definition before."""
    return with_breakpoints(value, each(value, name, lambda tool: _entry(look, tool)), name)


def with_breakpoints(before: Json, after: Json, name: str) -> Json:
    """Less of a list, with the `cache_control` of what is gone at what stands before it."""
    if after is before:
        return after
    new = list(after[name])
    last = None
    for place, (old, one) in enumerate(zip(before[name], new, strict=False)):
        if one is not GONE:
            last = place
        elif last is not None and isinstance(old, dict) and "cache_control" in old and isinstance(new[last], dict):
            new[last] = {"cache_control": old["cache_control"]} | new[last]
    return {**after, name: new}


def _entry(look: Look, tool: Any) -> Any:
    if not isinstance(tool, dict):
        return tool
    for declared in ("functionDeclarations", "function_declarations", "tools"):
        if isinstance(tool.get(declared), dict) and declared != "tools":
            less = each_or_one(tool, declared, lambda one: _entry(look, one))
            if declared not in less:
                return GONE if not less.keys() - {"type", "name", "description"} else less
            tool = less
        if isinstance(tool.get(declared), list):
            less = definitions(look, tool, declared)
            if is_empty(less[declared]) and tool[declared] and less is not tool:
                less = with_member(less, declared, GONE)
                return GONE if not less.keys() - {"type", "name", "description"} else less
            tool = less
    if tool.get("type") == "mcp":
        return _allowed(look, tool)
    if tool.get("type") == "mcp_toolset":
        return _toolset(look, tool)
    return _definition(look, tool)


def _definition(look: Look, tool: Json) -> Any:
    """One tool: itself, or what is under the word for its kind."""
    inner = next((one for name in ("function", "custom", "toolSpec") if isinstance(one := tool.get(name), dict)), tool)
    name = inner.get("name")
    if not isinstance(name, str):
        return local_members(look, tool)
    hides = is_app_only(with_meta(tool)) or is_app_only(with_meta(inner))
    if not hides and look.has_ledger:
        schema = next((inner[one] for one in _SCHEMAS if one in inner), None)
        if isinstance(schema, dict) and isinstance(schema.get("json"), dict):
            schema = schema["json"]
        description = inner.get("description")
        hides = look.definition(name, description if isinstance(description, str) else None, schema)
    if hides:
        look.gone.add(name)
        look.removed["tool"] += 1
        return GONE
    look.defined.add(name)
    if _links_ui(tool) or _links_ui(inner):
        look.with_ui.add(name)
    return local_members(look, tool)


_SCHEMAS: Final = ("input_schema", "inputSchema", "parameters", "parametersJsonSchema", "parameters_json_schema")


def _links_ui(tool: Json) -> bool:
    meta = tool.get("_meta")
    if not isinstance(meta, dict):
        return False
    nested = meta.get("ui")
    links = [meta.get(name) for name in ("ui/resourceUri", "resourceUri", "openai/outputTemplate")]
    return any(map(is_ui_uri, [*links, nested.get("resourceUri") if isinstance(nested, dict) else None]))


def is_empty(tools: Any) -> bool:
    """Whether a list has nothing left, or nothing but a point of a cache."""
    return isinstance(tools, list) and all(
        one is GONE or (isinstance(one, dict) and one.keys() == {"cachePoint"}) for one in tools
    )


# names


def _name(look: Look, name: Any) -> Any:
    """A name in a list of what is allowed: it may be all that is known of a tool."""
    look.name(name)
    if not look.is_gone(name):
        return name
    look.removed["tool_choice"] += 1
    return GONE


def _allowed(look: Look, tool: Json) -> Any:
    """A server that OpenAI connects to: where none of its tools is left, it is left out."""
    tool = local_members(look, tool)
    allowed = tool.get("allowed_tools")
    holder, name = (allowed, "tool_names") if isinstance(allowed, dict) else (tool, "allowed_tools")
    less = each(holder, name, lambda one: _name(look, one))
    if less is holder:
        return tool
    if is_empty(less[name]):
        return GONE
    return less if holder is tool else {**tool, "allowed_tools": less}


def _toolset(look: Look, tool: Json) -> Json:
    """A server that Anthropic connects to: a tool that its default would allow is named as one that is not."""
    tool = local_members(look, tool)
    configs = tool.get("configs")
    if not isinstance(configs, dict):
        return tool
    default = tool.get("default_config")
    is_open = not isinstance(default, dict) or default.get("enabled", True) is not False
    after: Json = {}
    for name, config in configs.items():
        look.name(name)
        if not look.is_gone(name):
            after[name] = config
        elif is_open:
            is_off = isinstance(config, dict) and config.get("enabled") is False
            after[name] = config if is_off else {"enabled": False}
    if len(after) == len(configs) and all(after[name] is configs[name] for name in after):
        return tool
    look.removed["tool_choice"] += 1
    return {**tool, "configs": after}


def _servers(look: Look, body: Json) -> Json:
    def server(one: Any) -> Any:
        if not isinstance(one, dict) or not isinstance(one.get("tool_configuration"), dict):
            return one
        configuration = one["tool_configuration"]
        less = each(configuration, "allowed_tools", lambda name: _name(look, name))
        return with_member(one, "tool_configuration", less)

    return each(body, "mcp_servers", server)


def _unchosen(look: Look, body: Json, name: str, otherwise: Any, *ways: tuple[str, ...]) -> Json:
    """A choice of one tool, by each way to its name; where that is gone, what stands instead."""
    choice = body.get(name)
    for way in ways:
        chosen: Any = choice
        for step in way:
            chosen = chosen.get(step) if isinstance(chosen, dict) else None
        if isinstance(chosen, str):
            look.name(chosen)
            if look.is_gone(chosen):
                look.removed["tool_choice"] += 1
                return with_member(body, name, otherwise)
    return body


# providers


def strip_tools(look: Look, dialect: ProviderDialect, body: Json) -> Json:
    """A body with what it says of tools, and nothing of those for interfaces alone."""
    match dialect:
        case "anthropic":
            return _anthropic(look, body)
        case "openai":
            return _openai(look, body)
        case "gemini":
            return _gemini(look, body)
        case "bedrock":
            return _bedrock(look, body)


def _is_emptied(before: Json, after: Json, name: str) -> bool:
    return after is not before and bool(before.get(name)) and is_empty(after.get(name))


def _without(body: Json, names: Iterable[str]) -> Json:
    for name in names:
        body = with_member(body, name, GONE)
    return body


def _anthropic(look: Look, body: Json) -> Json:
    after = definitions(look, body, "tools")
    if _is_emptied(body, after, "tools"):
        after = _without({**after, "tools": []}, ("tool_choice",))
    after = _servers(look, after)
    choice = after.get("tool_choice")
    auto: Any = {"type": "auto"}
    if isinstance(choice, dict) and "disable_parallel_tool_use" in choice:
        auto["disable_parallel_tool_use"] = choice["disable_parallel_tool_use"]
    return _unchosen(look, after, "tool_choice", auto, ("name",))


def _openai(look: Look, body: Json) -> Json:
    after = definitions(look, body, "tools")
    if _is_emptied(body, after, "tools"):
        gone = ("tools", "tool_choice", "parallel_tool_calls") if "messages" in body else ("tools", "tool_choice")
        after = _without(after, gone)
    less = definitions(look, after, "functions")
    if _is_emptied(after, less, "functions"):
        less = _without(less, ("functions", "function_call"))
    after = _unchosen(look, less, "function_call", "auto", ("name",))
    after = _unchosen(look, after, "tool_choice", "auto", ("name",), ("function", "name"), ("custom", "name"))
    return _server_choice(body, _allowed_choice(look, after))


def _server_choice(before: Json, after: Json) -> Json:
    """A choice of a server that is not there any more."""
    choice = after.get("tool_choice")
    if after is before or not isinstance(choice, dict) or choice.get("type") != "mcp":
        return after
    labels = [one.get("server_label") for one in after.get("tools", ()) if isinstance(one, dict)]
    return after if choice.get("server_label") in labels else {**after, "tool_choice": "auto"}


def _allowed_choice(look: Look, body: Json) -> Json:
    """`allowed_tools` among the choices: where none of them is left, none may be called."""
    choice = body.get("tool_choice")
    if not isinstance(choice, dict) or choice.get("type") != "allowed_tools":
        return body
    inner = choice.get("allowed_tools")
    holder = inner if isinstance(inner, dict) else choice

    def one(tool: Any) -> Any:
        if not isinstance(tool, dict):
            return tool
        named = next((member for name in ("function", "custom") if isinstance(member := tool.get(name), dict)), tool)
        return GONE if _name(look, named.get("name")) is GONE else tool

    less = each(holder, "tools", one)
    if less is holder:
        return body
    if is_empty(less["tools"]):
        return {**body, "tool_choice": "none"}
    return {**body, "tool_choice": less if holder is choice else {**choice, "allowed_tools": less}}


def _gemini(look: Look, body: Json) -> Json:
    if isinstance(body.get("tools"), dict):  # a list of one may stand as its element
        listed = {**body, "tools": [body["tools"]]}
        less = _gemini(look, listed)
        return body if less is listed else with_member(less, "tools", less["tools"][0] if "tools" in less else GONE)
    after = definitions(look, body, "tools")
    has_none = after is not body and not any(map(_declares, after["tools"]))
    if _is_emptied(body, after, "tools"):
        after = _without(after, ("tools",))
    for name, calling, allowed in (
        ("toolConfig", "functionCallingConfig", "allowedFunctionNames"),
        ("tool_config", "function_calling_config", "allowed_function_names"),
    ):
        config = after.get(name)
        if not isinstance(config, dict) or not isinstance(config.get(calling), dict):
            continue
        less = each(config[calling], allowed, lambda one: _name(look, one))
        if has_none:
            rest = with_member(config, calling, GONE)
            after = with_member(after, name, rest or GONE)
        elif less is not config[calling]:
            if is_empty(less[allowed]):  # names go with ANY alone: what is left is any tool, or none
                less = with_member({**less, "mode": "AUTO"}, allowed, GONE)
            after = {**after, name: {**config, calling: less}}
    return after


def _declares(tool: Any) -> bool:
    return isinstance(tool, dict) and bool(tool.get("functionDeclarations") or tool.get("function_declarations"))


def _bedrock(look: Look, body: Json) -> Json:
    config = body.get("toolConfig")
    if not isinstance(config, dict):
        return body
    less = definitions(look, config, "tools")
    if _is_emptied(config, less, "tools"):
        if not _has_calls(body):
            return with_member(body, "toolConfig", GONE)
        less = _without({**less, "tools": [STAND_IN]}, ("toolChoice",))
    less = _unchosen(look, less, "toolChoice", {"auto": {}}, ("tool", "name"))
    return with_member(body, "toolConfig", less)


def _has_calls(body: Json) -> bool:
    messages = body.get("messages")
    contents = [one.get("content") for one in messages if isinstance(one, dict)] if isinstance(messages, list) else []
    return any(
        isinstance(block, dict) and ("toolUse" in block or "toolResult" in block)
        for content in contents
        if isinstance(content, list)
        for block in content
    )
