"""Tools for interfaces alone leave what a provider is told of tools; what is left is valid for its API."""

from typing import Any

import pytest

from policies.mcp import Json
from policies.provider import Known, digest_tool
from tests.policies.conversations import APIS, PLACEHOLDER, SCHEMA, Api, stripped

HIDDEN: dict[str, Json] = {
    "nested": {"ui": {"visibility": ["app"]}},
    "flat": {"ui/visibility": ["app"]},
    "bare": {"visibility": ["app"]},
    "nested before flat": {"ui": {"visibility": ["app", "app"]}, "ui/visibility": ["model"]},
    "empty": {"ui": {"visibility": []}},
    "a string": {"ui": {"visibility": "app"}},
    "unknown values": {"ui": {"visibility": ["operator"]}},
}
SHOWN: dict[str, Json] = {
    "the default": {"ui": {"resourceUri": "ui://x"}},
    "both": {"ui": {"visibility": ["model", "app"]}},
    "nested before flat": {"ui": {"visibility": ["model"]}, "ui/visibility": ["app"]},
    "neither a list nor a string": {"ui": {"visibility": 1}},
    "another's": {"vendor/x": 1},
}


def marked(tool: Json, meta: Json) -> Json:
    return {**tool, "_meta": meta}


@pytest.mark.parametrize("name", HIDDEN)
@pytest.mark.parametrize("api", APIS)
def test_a_definition_for_interfaces_alone_is_left_out(api: str, name: str) -> None:
    one = APIS[api]
    body = one.body([one.tool("a"), marked(one.tool("poll"), HIDDEN[name]), one.tool("b")], [])
    sent, removed, _ = stripped(one, body)
    assert sent == one.body([one.tool("a"), one.tool("b")], [])
    assert removed == {"tool": 1}


@pytest.mark.parametrize("name", SHOWN)
@pytest.mark.parametrize("api", APIS)
def test_a_definition_for_models_is_kept_without_what_a_host_keeps_of_it(api: str, name: str) -> None:
    one = APIS[api]
    sent, removed, _ = stripped(one, one.body([marked(one.tool("a"), SHOWN[name])], []))
    assert (sent, removed) == (one.body([one.tool("a")], []), {"meta": 1})


def test_a_definition_in_openais_form_may_be_marked_within() -> None:
    one = APIS["chat"]
    hidden = {"type": "function", "function": {"name": "poll", "_meta": HIDDEN["flat"]}}
    assert stripped(one, one.body([one.tool("a"), hidden], []))[0] == one.body([one.tool("a")], [])


def test_a_schema_that_has_such_names_is_untouched() -> None:
    one = APIS["anthropic"]
    tool = {**one.tool("a"), "input_schema": {"properties": {"_meta": {"type": "object"}, "mcp_app": {}}}}
    assert stripped(one, one.body([tool], []))[2]


@pytest.mark.parametrize("prefix", ["", "mcp__server__", "server.", "server_", "server-", "a/b:"])
@pytest.mark.parametrize("api", APIS)
def test_a_definition_that_the_ledger_knows_is_left_out_whatever_the_host_puts_before_its_name(
    api: str, prefix: str
) -> None:
    one = APIS[api]
    known = Known(app_only=frozenset({digest_tool("poll", "d", SCHEMA)}))
    body = one.body([one.tool("a"), one.tool(prefix + "poll")], [])
    sent, removed, _ = stripped(one, body, known)
    assert (sent, removed) == (one.body([one.tool("a")], []), {"tool": 1})


OTHERS: dict[str, tuple[str, str | None, Json]] = {
    "another name": ("pull", "d", SCHEMA),
    "another description": ("poll", "e", SCHEMA),
    "no description": ("poll", None, SCHEMA),
    "another parameter": ("poll", "d", {"type": "object", "properties": {"town": {"type": "string"}}}),
    "a parameter within": ("poll", "d", {"properties": {"city": {"properties": {"name": {}}}}}),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_definition_is_known_by_all_of_it(name: str) -> None:
    one = APIS["anthropic"]
    known = Known(app_only=frozenset({digest_tool(*OTHERS[name])}))
    assert stripped(one, one.body([one.tool("poll")], []), known)[2]


REWRITTEN: dict[str, Json] = {
    "as strict mode wants it": {
        "type": "object",
        "properties": {"city": {"type": ["string", "null"], "title": "City"}},
        "required": ["city"],
        "additionalProperties": False,
    },
    "as Gemini writes it": {"type": "OBJECT", "properties": {"city": {"type": "STRING", "nullable": True}}},
}


@pytest.mark.parametrize("name", REWRITTEN)
def test_an_adapter_may_write_a_schema_anew(name: str) -> None:
    assert digest_tool("poll", " d\n", REWRITTEN[name]) == digest_tool("poll", "d", SCHEMA)


def hidden(one: Api, name: str = "poll") -> Json:
    return marked(one.tool(name), HIDDEN["nested"])


FUNCTION_ONE = {"type": "function", "function": {"name": "a"}}
FUNCTION_GONE = {"type": "function", "function": {"name": "poll"}}
CHOICES: dict[str, tuple[str, Any, Any]] = {
    # which API, a choice beside a tool that stays, and what becomes of it
    "Anthropic, one that is gone": ("anthropic", {"type": "tool", "name": "poll"}, {"type": "auto"}),
    "Anthropic, one that is gone, no two at once": (
        "anthropic",
        {"type": "tool", "name": "poll", "disable_parallel_tool_use": True},
        {"type": "auto", "disable_parallel_tool_use": True},
    ),
    "Anthropic, one that stays": ("anthropic", {"type": "tool", "name": "a"}, None),
    "Anthropic, any": ("anthropic", {"type": "any"}, None),
    "chat, one that is gone": ("chat", FUNCTION_GONE, "auto"),
    "chat, one that stays": ("chat", FUNCTION_ONE, None),
    "chat, required": ("chat", "required", None),
    "chat, some of which one is gone": (
        "chat",
        {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [FUNCTION_GONE, FUNCTION_ONE]}},
        {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [FUNCTION_ONE]}},
    ),
    "chat, some that are gone": (
        "chat",
        {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [FUNCTION_GONE]}},
        "none",
    ),
    "Responses, one that is gone": ("responses", {"type": "function", "name": "poll"}, "auto"),
    "Responses, some of which one is gone": (
        "responses",
        {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "poll"}, {"type": "web"}]},
        {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "web"}]},
    ),
    "Bedrock, one that is gone": ("bedrock", {"tool": {"name": "poll"}}, {"auto": {}}),
    "Bedrock, any": ("bedrock", {"any": {}}, None),
}


@pytest.mark.parametrize("name", CHOICES)
def test_a_choice_of_what_is_gone(name: str) -> None:
    api, before, after = CHOICES[name]
    one = APIS[api]

    def body(tools: list[Json], choice: Any) -> Json:
        made = one.body(tools, [])
        holder = made["toolConfig"] if api == "bedrock" else made
        holder["toolChoice" if api == "bedrock" else "tool_choice"] = choice
        return made

    sent, removed, _ = stripped(one, body([one.tool("a"), hidden(one)], before))
    assert sent == body([one.tool("a")], before if after is None else after)
    assert removed == {"tool": 1} | ({} if after is None else {"tool_choice": 1})


GEMINI = {
    # functionCallingConfig beside a tool that stays, and what becomes of it
    "some of which one is gone": (
        {"mode": "ANY", "allowedFunctionNames": ["poll", "a"]},
        {"mode": "ANY", "allowedFunctionNames": ["a"]},
    ),
    "some that are gone": ({"mode": "ANY", "allowedFunctionNames": ["poll"]}, {"mode": "AUTO"}),
    "any": ({"mode": "ANY"}, {"mode": "ANY"}),
}


@pytest.mark.parametrize("name", GEMINI)
def test_names_that_gemini_may_call(name: str) -> None:
    before, after = GEMINI[name]
    one = APIS["gemini"]
    tools = [one.tool("a"), hidden(one)]
    sent, _, _ = stripped(one, one.body(tools, []) | {"toolConfig": {"functionCallingConfig": before, "x": 1}})
    assert sent == one.body([one.tool("a")], []) | {"toolConfig": {"functionCallingConfig": after, "x": 1}}


def test_names_that_gemini_may_call_in_snake_case() -> None:
    one = APIS["gemini"]
    calling = {"mode": "ANY", "allowed_function_names": ["poll", "a"]}
    tools = [{"function_declarations": [hidden(one), one.tool("a")]}]
    sent, _, _ = stripped(one, {"tools": tools, "tool_config": {"function_calling_config": calling}})
    after = {"mode": "ANY", "allowed_function_names": ["a"]}
    assert sent == {
        "tools": [{"function_declarations": [one.tool("a")]}],
        "tool_config": {"function_calling_config": after},
    }


NO_TOOLS: dict[str, tuple[str, Json, Json]] = {
    # which API, what a body with nothing but a hidden tool has beside it, and what is left of tools and this
    "Anthropic": ("anthropic", {"tool_choice": {"type": "any"}, "x": 1}, {"tools": [], "x": 1}),
    "chat": ("chat", {"tool_choice": "required", "parallel_tool_calls": False, "x": 1}, {"x": 1}),
    "Responses": ("responses", {"tool_choice": {"type": "function", "name": "poll"}}, {}),
    "Gemini": ("gemini", {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}, {}),
    "Gemini, with more": (
        "gemini",
        {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}, "retrievalConfig": {}}},
        {"toolConfig": {"retrievalConfig": {}}},
    ),
    "Bedrock": ("bedrock", {"x": 1}, {"x": 1}),
}


@pytest.mark.parametrize("name", NO_TOOLS)
def test_a_list_of_tools_that_becomes_empty(name: str) -> None:
    api, beside, left = NO_TOOLS[name]
    one = APIS[api]
    sent, removed, _ = stripped(one, one.body([hidden(one)], []) | beside)
    assert (sent, removed) == (one.body([], []) | left, {"tool": 1})


def test_bedrock_gets_a_tool_that_does_nothing_where_its_conversation_has_calls() -> None:
    one = APIS["bedrock"]
    body = one.body([hidden(one), {"cachePoint": {"type": "default"}}], [("a", [{"text": "t"}])])
    body["toolConfig"]["toolChoice"] = {"any": {}}
    sent, _, _ = stripped(one, body)
    (tool,) = sent["toolConfig"].pop("tools")
    assert sent == one.body([], [("a", [{"text": "t"}])]) | {"toolConfig": {}}
    assert tool["toolSpec"]["inputSchema"] == {"json": {"type": "object", "properties": {}}}


def test_functions_of_former_times() -> None:
    one = APIS["chat"]
    tools = [{"name": "poll", "parameters": SCHEMA, "_meta": HIDDEN["flat"]}]
    beside = {"messages": [], "function_call": {"name": "poll"}}
    assert stripped(one, {"functions": tools, **beside})[0] == {"messages": []}
    more = {"name": "a", "parameters": SCHEMA}
    assert stripped(one, {"functions": [*tools, more], **beside})[0] == {
        "functions": [more],
        "messages": [],
        "function_call": "auto",
    }


def test_a_point_of_a_cache_moves_to_the_definition_before() -> None:
    one = APIS["anthropic"]
    last = {**hidden(one), "cache_control": {"type": "ephemeral"}}
    sent, _, _ = stripped(one, one.body([one.tool("a"), one.tool("b"), last], []))
    assert sent["tools"] == [one.tool("a"), {**one.tool("b"), "cache_control": {"type": "ephemeral"}}]


ALLOWED: dict[str, tuple[str, Json, Json]] = {
    # what a connector of the provider's may call: all that is known of these tools is the name
    "Anthropic's former list": (
        "anthropic",
        {"mcp_servers": [{"name": "s", "tool_configuration": {"enabled": True, "allowed_tools": ["a", "poll"]}}]},
        {"mcp_servers": [{"name": "s", "tool_configuration": {"enabled": True, "allowed_tools": ["a"]}}]},
    ),
    "Anthropic's toolset, open": (
        "anthropic",
        {"tools": [{"type": "mcp_toolset", "mcp_server_name": "s", "configs": {"poll": {"enabled": True}, "a": {}}}]},
        {"tools": [{"type": "mcp_toolset", "mcp_server_name": "s", "configs": {"poll": {"enabled": False}, "a": {}}}]},
    ),
    "Anthropic's toolset, closed": (
        "anthropic",
        {
            "tools": [
                {
                    "type": "mcp_toolset",
                    "mcp_server_name": "s",
                    "default_config": {"enabled": False},
                    "configs": {"poll": {"enabled": True}, "a": {"enabled": True}},
                }
            ]
        },
        {
            "tools": [
                {
                    "type": "mcp_toolset",
                    "mcp_server_name": "s",
                    "default_config": {"enabled": False},
                    "configs": {"a": {"enabled": True}},
                }
            ]
        },
    ),
    "OpenAI's list": (
        "responses",
        {"tools": [{"type": "mcp", "server_label": "s", "allowed_tools": ["poll", "a"]}]},
        {"tools": [{"type": "mcp", "server_label": "s", "allowed_tools": ["a"]}]},
    ),
    "OpenAI's filter": (
        "responses",
        {"tools": [{"type": "mcp", "server_label": "s", "allowed_tools": {"tool_names": ["a", "poll"]}}]},
        {"tools": [{"type": "mcp", "server_label": "s", "allowed_tools": {"tool_names": ["a"]}}]},
    ),
    "OpenAI's list that becomes empty": (
        "responses",
        {
            "tools": [{"type": "mcp", "server_label": "s", "allowed_tools": ["poll"]}, {"type": "web_search"}],
            "tool_choice": {"type": "mcp", "server_label": "s"},
        },
        {"tools": [{"type": "web_search"}], "tool_choice": "auto"},
    ),
    "OpenAI's choice of a server's tool": (
        "responses",
        {
            "tools": [{"type": "mcp", "server_label": "s"}],
            "tool_choice": {"type": "mcp", "server_label": "s", "name": "poll"},
        },
        {"tools": [{"type": "mcp", "server_label": "s"}], "tool_choice": "auto"},
    ),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_names_that_a_providers_connector_may_call(name: str) -> None:
    api, before, after = ALLOWED[name]
    known = Known(app_only=frozenset({"poll"}))
    sent, removed, _ = stripped(APIS[api], before, known)
    assert sent == after
    assert removed == {"tool_choice": 1}
    assert stripped(APIS[api], before)[2], "what nobody knows to be for interfaces alone stays"


def test_a_tool_that_a_connector_has_listed_is_left_out_of_the_list() -> None:
    tools = [{"name": "a", "input_schema": SCHEMA}, {"name": "poll", "description": "d", "input_schema": SCHEMA}]
    listed = {"type": "mcp_list_tools", "server_label": "s", "tools": tools}
    known = Known(app_only=frozenset({digest_tool("poll", "d", SCHEMA)}))
    sent, removed, _ = stripped(APIS["responses"], {"input": [listed]}, known)
    assert (sent, removed) == ({"input": [{**listed, "tools": tools[:1]}]}, {"tool": 1})


def test_references_to_a_definition_that_is_gone_are_left_out() -> None:
    one = APIS["anthropic"]
    references = [{"type": "tool_reference", "tool_name": name} for name in ("poll", "a")]
    body = one.body([one.tool("a"), hidden(one)], [("search", references)])
    found = {"type": "tool_search_tool_search_result", "tool_references": references}
    body["messages"].append({"content": [{"type": "tool_search_tool_result", "tool_use_id": "x", "content": found}]})
    sent, removed, _ = stripped(one, body)
    assert sent["messages"][2]["content"][0]["content"] == references[1:]
    assert sent["messages"][3]["content"][0]["content"]["tool_references"] == references[1:]
    assert removed == {"tool": 1, "tool_choice": 2}


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("how", ["by its mark", "by its digest", "by its name alone"])
def test_a_call_of_a_tool_for_interfaces_alone_keeps_its_pair(api: str, how: str) -> None:
    one = APIS[api]
    tools = {"by its mark": [hidden(one)], "by its digest": [one.tool("poll")], "by its name alone": []}[how]
    known = {
        "by its mark": Known(),
        "by its digest": Known(app_only=frozenset({digest_tool("poll", "d", SCHEMA)})),
        "by its name alone": Known(app_only=frozenset({"poll"})),
    }[how]
    calls = [("poll", one.text('{"cpu": 0.5}')), ("a", one.text("kept"))]
    sent, removed, _ = stripped(one, one.body([one.tool("a"), *tools], calls), known)
    if api == "gemini":
        expected = one.body([one.tool("a")], [("poll", PLACEHOLDER), ("a", "kept")])
    else:
        expected = one.body([one.tool("a")], [("poll", one.text(PLACEHOLDER)), ("a", one.text("kept"))])
    assert sent == expected
    assert removed == {"app_result": 1} | ({"tool": 1} if tools else {})
    assert stripped(one, sent, known)[2], "what was stripped once has nothing more to take out"


def test_the_data_of_a_tool_for_interfaces_alone_goes_too_and_its_error_stays() -> None:
    one = APIS["anthropic"]
    body = one.body([hidden(one)], [("poll", [{"type": "text", "text": "t"}])])
    body["messages"][-1]["content"][0] |= {"structuredContent": {"cpu": 1}, "is_error": True}
    sent, _, _ = stripped(one, body)
    assert sent["messages"][-1]["content"][0] == {
        "type": "tool_result",
        "tool_use_id": "c0",
        "content": [{"type": "text", "text": PLACEHOLDER}],
        "is_error": True,
    }


def test_a_name_that_another_servers_definition_has_too_is_theirs() -> None:
    one = APIS["anthropic"]
    body = one.body([one.tool("poll")], [("poll", "kept")])
    assert stripped(one, body, Known(app_only=frozenset({"poll"})))[2]


def test_requests_of_one_batch_know_nothing_of_each_others_tools() -> None:
    one = APIS["anthropic"]
    first, second = one.body([hidden(one)], []), one.body([one.tool("poll")], [("poll", "kept")])
    before = {"requests": [{"custom_id": str(n), "params": body} for n, body in enumerate((first, second))]}
    sent, _, _ = stripped(one, before)
    assert sent["requests"][1] == before["requests"][1]
    assert sent["requests"][0]["params"]["tools"] == []
