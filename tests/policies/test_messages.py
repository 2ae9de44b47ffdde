"""Results, errors and notifications of one era in the words of the other, and of older revisions."""

import copy
from typing import Any

import mcp_types.methods
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.errors import Rejection
from policies.mcp import LEGACY_VERSIONS, Json
from policies.translation import messages
from tests.policies.samples import AUDIO, AUDIO_TEXT, EMBEDDED, IMAGE, LINK, TEXT, mirroring, tool, tools

L11, L06, L03, L2024 = LEGACY_VERSIONS
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
INFO = {"name": "s", "version": "1"}


# `_meta`


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ({"_meta": {"a": 1, "b": 2}, "x": 3}, {"_meta": {"b": 2}, "x": 3}),
        ({"_meta": {"a": 1}, "x": 3}, {"x": 3}),
        ({"_meta": {"a": None, "c": 1}}, {}),
        ({"_meta": {}, "x": 3}, {"_meta": {}, "x": 3}),
        ({"_meta": {"b": 2}}, {"_meta": {"b": 2}}),
        ({"x": 3}, {"x": 3}),
        ({"_meta": ["a"]}, {"_meta": ["a"]}),
        ({"_meta": "a"}, {"_meta": "a"}),
        ({"_meta": None}, {"_meta": None}),
    ],
)
def test_members_of_meta_leave_and_nothing_else(value: Json, kept: Json) -> None:
    assert messages.without_meta(value, "a", "c") == kept


# legacy to modern

COMPLETE: Json = {"resultType": "complete"}
FRESH: Json = {**COMPLETE, "ttlMs": 0, "cacheScope": "private"}

TO_MODERN: list[tuple[str, str, Json, Json | None, Json]] = [
    # sentence, method, result, serverInfo, the result that a modern client gets
    ("a call's result is complete", "tools/call", {"content": [TEXT]}, None, {**COMPLETE, "content": [TEXT]}),
    (
        "the server is named",
        "tools/call",
        {"content": []},
        INFO,
        {**COMPLETE, "content": [], "_meta": {SERVER_INFO: INFO}},
    ),
    (
        "the server is named beside what it says itself",
        "prompts/get",
        {"messages": [], "_meta": {"k": [1]}, "x": None},
        INFO,
        {**COMPLETE, "messages": [], "_meta": {SERVER_INFO: INFO, "k": [1]}, "x": None},
    ),
    ("a list has caching hints", "prompts/list", {"prompts": []}, None, {**FRESH, "prompts": []}),
    ("a resource has caching hints", "resources/read", {"contents": []}, None, {**FRESH, "contents": []}),
    (
        "templates have caching hints",
        "resources/templates/list",
        {"resourceTemplates": []},
        None,
        {**FRESH, "resourceTemplates": []},
    ),
    (
        "a page keeps its cursor",
        "resources/list",
        {"resources": [], "nextCursor": "c"},
        None,
        {**FRESH, "resources": [], "nextCursor": "c"},
    ),
    (
        "a completion has none",
        "completion/complete",
        {"completion": {"values": []}},
        None,
        {**COMPLETE, "completion": {"values": []}},
    ),
    ("an empty result is complete", "subscriptions/listen", {}, None, COMPLETE),
    ("what a method is that nobody knows does not matter", "com.example/x", {"y": 1}, None, {**COMPLETE, "y": 1}),
    (
        "a failed tool stays a result",
        "tools/call",
        {"content": [], "isError": True},
        None,
        {**COMPLETE, "content": [], "isError": True},
    ),
    (
        "every block and structure passes",
        "tools/call",
        {"content": [AUDIO, LINK, EMBEDDED, {"type": "new"}], "structuredContent": {"a": 1}},
        None,
        {**COMPLETE, "content": [AUDIO, LINK, EMBEDDED, {"type": "new"}], "structuredContent": {"a": 1}},
    ),
    (
        "execution leaves a tool",
        "tools/list",
        tools(tool(execution={"taskSupport": "optional"}, x=1)),
        None,
        {**FRESH, "tools": [tool(x=1)]},
    ),
    ("annotated tools pass", "tools/list", tools(mirroring("Region")), None, {**FRESH, "tools": [mirroring("Region")]}),
    (
        "a tool with a bad annotation leaves the list",
        "tools/list",
        tools(mirroring("My Region"), tool()),
        None,
        {**FRESH, "tools": [tool()]},
    ),
    ("a result type of the server's own making is none", "tools/call", {"resultType": "x"}, None, COMPLETE),
    (
        "caching hints of its own making are none",
        "tools/list",
        tools(ttlMs="x", cacheScope="public"),
        None,
        {**FRESH, "tools": []},
    ),
    ("they pass where they mean nothing", "tools/call", {"ttlMs": "x"}, None, {**COMPLETE, "ttlMs": "x"}),
    ("odd _meta passes unnamed", "tools/call", {"_meta": "text"}, None, {**COMPLETE, "_meta": "text"}),
    (
        "odd _meta gives way to the name",
        "tools/call",
        {"_meta": "text"},
        INFO,
        {**COMPLETE, "_meta": {SERVER_INFO: INFO}},
    ),
    (
        "null _meta gives way to the name",
        "tools/call",
        {"_meta": None},
        INFO,
        {**COMPLETE, "_meta": {SERVER_INFO: INFO}},
    ),
    (
        "tools that are no objects pass",
        "tools/list",
        tools(None, 7, "t", [tool()]),
        None,
        {**FRESH, "tools": [None, 7, "t", [tool()]]},
    ),
    (
        "tools with odd schemas pass",
        "tools/list",
        tools(tool(inputSchema=True), tool(inputSchema=[1])),
        None,
        {**FRESH, "tools": [tool(inputSchema=True), tool(inputSchema=[1])]},
    ),
    ("a list that is none passes", "tools/list", {"tools": {"t": 1}}, None, {**FRESH, "tools": {"t": 1}}),
    ("a list that is missing stays so", "tools/list", {}, None, FRESH),
]


@pytest.mark.parametrize(
    ("method", "result", "info", "expected"), [r[1:] for r in TO_MODERN], ids=[r[0] for r in TO_MODERN]
)
def test_a_legacy_result_for_a_modern_client(method: str, result: Json, info: Json | None, expected: Json) -> None:
    before = copy.deepcopy(result)
    assert messages.result_to_modern(method, result, info) == expected
    assert result == before


# modern to legacy

TO_LEGACY: list[tuple[str, str, Json, str, Json]] = [
    # sentence, method, result, version, the result that a legacy client gets
    (
        "what only modern clients know leaves",
        "tools/list",
        {**FRESH, "tools": [tool()], "nextCursor": "c", "_meta": {SERVER_INFO: INFO, SUBSCRIPTION: 1}},
        L11,
        {"tools": [tool()], "nextCursor": "c"},
    ),
    (
        "what nobody knows stays",
        "tools/call",
        {**COMPLETE, "content": [TEXT], "_meta": {SERVER_INFO: INFO, "com.example/k": {"deep": [1.5]}}, "x": None},
        L2024,
        {"content": [TEXT], "_meta": {"com.example/k": {"deep": [1.5]}}, "x": None},
    ),
    ("a result without a type is complete", "resources/read", {"contents": []}, L11, {"contents": []}),
    ("an empty result is one", "completion/complete", COMPLETE, L11, {}),
    ("odd _meta passes", "tools/call", {**COMPLETE, "content": [], "_meta": 5}, L11, {"content": [], "_meta": 5}),
    ("a tool with a bad annotation leaves the list", "tools/list", tools(mirroring(""), tool()), L11, tools(tool())),
    ("a tool with a good one stays", "tools/list", tools(mirroring("Region")), L11, tools(mirroring("Region"))),
    ("a list that is none passes", "tools/list", {**FRESH, "tools": "t"}, L11, {"tools": "t"}),
    (
        "a result is translated to the client's own version",
        "tools/call",
        {**COMPLETE, "content": [AUDIO]},
        L2024,
        {"content": [AUDIO_TEXT]},
    ),
]


@pytest.mark.parametrize(
    ("method", "result", "version", "expected"), [r[1:] for r in TO_LEGACY], ids=[r[0] for r in TO_LEGACY]
)
def test_a_modern_result_for_a_legacy_client(method: str, result: Json, version: str, expected: Json) -> None:
    before = copy.deepcopy(result)
    assert messages.result_to_legacy(method, result, version) == expected
    assert result == before


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("input_required", "input_required"),
        ("task", "'task'"),
        ("com.example/partial", "'com.example/partial'"),
        ("", "''"),
        ("Complete", "'Complete'"),
        (None, "wrong type"),
        (True, "wrong type"),
        (["complete"], "wrong type"),
        ({"a": "secret"}, "wrong type"),
    ],
)
def test_another_result_type_is_an_error_and_no_empty_success(kind: Any, shown: str) -> None:
    rejection = messages.result_to_legacy("tools/call", {"resultType": kind, "content": []}, L11)
    assert isinstance(rejection, Rejection)
    assert rejection.code == -32603
    assert shown in rejection.message
    assert "secret" not in rejection.message


def test_an_error_repeats_little_of_a_foreign_word() -> None:
    rejection = messages.result_to_legacy("tools/call", {"resultType": "x" * 100_000}, L11)
    assert isinstance(rejection, Rejection)
    assert len(rejection.message) < 200


# what the official SDK says of the outcome

BOOLEANS = {"type": "object", "properties": {"yes": True, "no": False}}
RICH: list[tuple[str, Json]] = [
    ("tools/list", tools(tool(inputSchema=BOOLEANS, outputSchema=BOOLEANS), tool(outputSchema={"type": "array"}))),
    ("tools/call", {"content": [TEXT, IMAGE, AUDIO, LINK, EMBEDDED], "structuredContent": [1, 2]}),
    ("tools/call", {"content": [], "structuredContent": {"a": 1}, "isError": True}),
    (
        "prompts/get",
        {"messages": [{"role": "user", "content": block} for block in (TEXT, IMAGE, AUDIO, LINK, EMBEDDED)]},
    ),
    ("prompts/list", {"prompts": [{"name": "p", "arguments": [{"name": "a"}]}]}),
    ("resources/list", {"resources": [{"uri": "file:///a", "name": "a", "size": 5}]}),
    ("resources/templates/list", {"resourceTemplates": [{"uriTemplate": "file:///{a}", "name": "a"}]}),
    ("resources/read", {"contents": [{"uri": "file:///a", "text": "t"}]}),
    ("completion/complete", {"completion": {"values": ["a"], "total": 1}}),
]


@pytest.mark.parametrize(("method", "result"), RICH)
@pytest.mark.parametrize("version", LEGACY_VERSIONS)
def test_the_sdk_reads_a_modern_result_as_the_client_gets_it(method: str, result: Json, version: str) -> None:
    modern = {**FRESH, **result, "_meta": {SERVER_INFO: INFO}}
    mcp_types.methods.validate_server_result(method, "2026-07-28", modern)
    mcp_types.methods.validate_server_result(method, version, messages.result_to_legacy(method, modern, version))


@pytest.mark.parametrize(("method", "result"), RICH)
def test_the_sdk_reads_a_legacy_result_as_a_modern_client_gets_it(method: str, result: Json) -> None:
    legacy = messages.result_to_legacy(method, result, L11)
    assert isinstance(legacy, dict)
    mcp_types.methods.validate_server_result(method, L11, legacy)
    mcp_types.methods.validate_server_result(method, "2026-07-28", messages.result_to_modern(method, legacy, INFO))


# errors

NAMES_URI: Json = {"uri": "file:///a"}
ERRORS_TO_MODERN: list[tuple[str, str, Json, int, Any, tuple[int, Any, int]]] = [
    # sentence, method, params, code, data, (code, data, HTTP status)
    ("a missing resource", "resources/read", NAMES_URI, -32002, None, (-32602, NAMES_URI, 200)),
    (
        "a missing resource that is named",
        "resources/read",
        NAMES_URI,
        -32002,
        {"uri": "x:y", "k": 1},
        (-32602, {"uri": "file:///a", "k": 1}, 200),
    ),
    ("a missing resource with odd data", "resources/read", NAMES_URI, -32002, "gone", (-32602, NAMES_URI, 200)),
    ("a missing resource of the Python SDK 1.x", "resources/read", NAMES_URI, 0, None, (-32602, NAMES_URI, 200)),
    (
        "a missing resource of a tool",
        "tools/call",
        {"name": "t"},
        -32002,
        {"uri": "x:y"},
        (-32602, {"uri": "x:y"}, 200),
    ),
    ("a missing resource of a tool that names none", "tools/call", {"name": "t"}, -32002, None, (-32602, None, 200)),
    ("a missing resource of a tool with odd data", "tools/call", {"name": "t"}, -32002, "gone", (-32602, "gone", 200)),
    ("code 0 of a tool is its own", "tools/call", {"name": "t"}, 0, {"k": 1}, (0, {"k": 1}, 200)),
    (
        "a URL to open first",
        "tools/call",
        {"name": "t"},
        -32042,
        {"elicitations": [{"url": "https://x"}]},
        (-32021, {"requiredCapabilities": {"elicitation": {"url": {}}}}, 400),
    ),
    ("a header mismatch of its own making", "tools/call", {}, -32020, {"k": 1}, (-32603, {"k": 1}, 200)),
    (
        "an unsupported version of its own making",
        "tools/call",
        {},
        -32022,
        {"supported": []},
        (-32603, {"supported": []}, 200),
    ),
    (
        "a capability it misses",
        "tools/call",
        {},
        -32021,
        {"requiredCapabilities": {"roots": {}}},
        (-32021, {"requiredCapabilities": {"roots": {}}}, 400),
    ),
    ("invalid params", "tools/call", {}, -32602, {"k": [1]}, (-32602, {"k": [1]}, 200)),
    ("a method it does not have", "tools/call", {}, -32601, None, (-32601, None, 404)),
    ("an internal error", "tools/call", {}, -32603, None, (-32603, None, 200)),
    ("a code of a server's own", "tools/call", {}, -32000, 0, (-32000, 0, 200)),
    ("a code of an application's own", "tools/call", {}, 42, False, (42, False, 200)),
]


@pytest.mark.parametrize(
    ("method", "params", "code", "data", "expected"),
    [r[1:] for r in ERRORS_TO_MODERN],
    ids=[r[0] for r in ERRORS_TO_MODERN],
)
def test_a_legacy_error_for_a_modern_client(
    method: str, params: Json, code: int, data: Any, expected: tuple[int, Any, int]
) -> None:
    rejection = messages.error_to_modern(method, params, code, "größe", data)
    assert (rejection.code, rejection.data, rejection.status) == expected
    assert rejection.message == "größe"


@pytest.mark.parametrize(
    ("method", "code", "data", "expected"),
    [
        ("resources/read", -32602, {"uri": "file:///a", "k": 1}, -32002),
        ("resources/read", -32602, {"k": 1}, -32602),
        ("resources/read", -32602, ["uri"], -32602),
        ("resources/read", -32602, "uri", -32602),
        ("resources/read", -32602, None, -32602),
        ("resources/read", -32603, {"uri": "file:///a"}, -32603),
        ("tools/call", -32602, {"uri": "file:///a"}, -32602),
        ("tools/call", -32021, {"requiredCapabilities": {"roots": {}}}, -32021),
        ("tools/call", 42, 0, 42),
    ],
)
def test_a_modern_error_for_a_legacy_client(method: str, code: int, data: Any, expected: int) -> None:
    rejection = messages.error_to_legacy(method, code, "größe", data)
    assert (rejection.code, rejection.message, rejection.data) == (expected, "größe", data)


@pytest.mark.parametrize(
    ("params", "kept"),
    [
        ({"uri": "a", "_meta": {SUBSCRIPTION: 1}}, {"uri": "a"}),
        ({"_meta": {SUBSCRIPTION: "x", "k": 1}, "x": 2}, {"_meta": {"k": 1}, "x": 2}),
        (
            {"level": "info", "data": {"_meta": {SUBSCRIPTION: 1}}},
            {"level": "info", "data": {"_meta": {SUBSCRIPTION: 1}}},
        ),
        ({"_meta": [SUBSCRIPTION]}, {"_meta": [SUBSCRIPTION]}),
        ({}, {}),
    ],
)
def test_a_notification_for_a_legacy_client_loses_the_streams_id(params: Json, kept: Json) -> None:
    assert messages.notification_to_legacy(params) == kept


# properties

names = st.sampled_from(["type", "name", "uri", "content", "text", "x", "_meta", "data", "properties"]) | st.text()
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(["audio", "resource_link", "object"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4),
    max_leaves=10,
)
objects = st.dictionaries(names, json_values, max_size=4)
blocks = st.dictionaries(st.just("type"), st.sampled_from(["audio", "resource_link", "text"]), min_size=1).flatmap(
    lambda block: objects.map(lambda rest: rest | block)
)
edited = st.fixed_dictionaries(
    {},
    optional={
        "content": st.lists(blocks | json_values, max_size=3) | json_values,
        "messages": st.lists(st.fixed_dictionaries({"content": blocks}) | json_values, max_size=2) | json_values,
        "tools": st.lists(
            st.dictionaries(st.sampled_from(["inputSchema", "outputSchema", "x"]), json_values) | json_values
        ),
        "structuredContent": json_values,
        "_meta": objects | json_values,
        "resultType": st.just("complete"),
    },
)
results = st.builds(
    lambda unknown, known: {**unknown, **known}, st.dictionaries(st.text(), json_values, max_size=3), edited
)
methods = st.sampled_from(["tools/list", "tools/call", "prompts/get", "resources/read", "com.example/x"])
versions = st.sampled_from(LEGACY_VERSIONS)
EDITED = {"content", "messages", "tools", "structuredContent", "_meta", "resultType", "ttlMs", "cacheScope"}


def unknown(result: Json) -> Json:
    return {k: v for k, v in result.items() if k not in EDITED}


@given(methods, results, versions)
def test_no_unknown_member_is_lost_and_nothing_is_too_odd(method: str, result: Json, version: str) -> None:
    before = copy.deepcopy(result)
    legacy = messages.result_to_legacy(method, result, version)
    assert isinstance(legacy, dict)
    modern = messages.result_to_modern(method, result, INFO)
    assert (
        unknown(legacy)
        == unknown(messages.result_to_older(method, result, version))
        == unknown(modern)
        == unknown(result)
    )
    if isinstance(result.get("_meta"), dict):
        assert modern["_meta"] == {SERVER_INFO: INFO, **result["_meta"]}
        assert legacy["_meta"] == result["_meta"]
    assert result == before


@given(methods, results, versions)
def test_what_is_translated_to_an_older_version_stays_as_it_is(method: str, result: Json, version: str) -> None:
    once = messages.result_to_older(method, result, version)
    assert messages.result_to_older(method, once, version) == once
    legacy = messages.result_to_legacy(method, result, version)
    assert isinstance(legacy, dict)
    assert messages.result_to_legacy(method, legacy, version) == legacy


@given(st.sampled_from(["tools/call", "prompts/get"]), results)
def test_versions_may_be_stepped_through(method: str, result: Json) -> None:
    stepped = result
    for version in LEGACY_VERSIONS:
        stepped = messages.result_to_older(method, stepped, version)
    assert stepped == messages.result_to_older(method, result, L2024)
