"""What a client of an older legacy revision can read: content blocks, structured content, tools."""

import copy
from typing import Any

import pytest

from policies.mcp import LEGACY_VERSIONS, Json
from policies.translation import messages
from tests.policies.samples import AUDIO, AUDIO_TEXT, EMBEDDED, IMAGE, LINK, LINK_TEXT, TEXT, mirroring, tool, tools

L11, L06, L03, L2024 = LEGACY_VERSIONS


def until_links(text: str) -> dict[str, Json]:
    """What a block becomes for the versions before resource links."""
    return {version: {"type": "text", "text": text} for version in (L2024, L03)}


# content, by version

BLOCKS: list[tuple[str, Any, dict[str, Any]]] = [
    # sentence, block, what it becomes for a version; versions not named get the block itself
    ("text is as old as the protocol", TEXT, {}),
    ("so are images", IMAGE, {}),
    ("so are embedded resources", EMBEDDED, {}),
    ("audio came with 2025-03-26", AUDIO, {L2024: AUDIO_TEXT}),
    ("audio of no type", {"type": "audio"}, {L2024: {"type": "text", "text": "[audio, unknown type]"}}),
    ("resource links came with 2025-06-18", LINK, {L2024: LINK_TEXT, L03: LINK_TEXT}),
    (
        "a link without a name",
        {"type": "resource_link", "uri": "a:b"},
        until_links("a:b"),
    ),
    ("a link to nothing", {"type": "resource_link"}, until_links("")),
    (
        "a link of odd members",
        {"type": "resource_link", "uri": 5, "name": ["a"]},
        until_links("['a'] 5"),
    ),
    ("a kind that nobody knows", {"type": "hologram", "data": 1}, {}),
    ("a kind that is an array", {"type": ["audio"]}, {}),
    ("a kind that is an object", {"type": {"audio": 1}}, {}),
    ("a kind that is null", {"type": None}, {}),
    ("a block without a kind", {"text": "hi"}, {}),
    ("a block that is no object", "text", {}),
    ("a block that is null", None, {}),
    ("a block that is a list", [AUDIO], {}),
]
BY_VERSION = [
    pytest.param(version, block, changed.get(version, block), id=f"{sentence}, for {version}")
    for sentence, block, changed in BLOCKS
    for version in LEGACY_VERSIONS
]


@pytest.mark.parametrize(("version", "block", "expected"), BY_VERSION)
def test_a_block_for_an_older_client(version: str, block: Any, expected: Any) -> None:
    called = {"content": [TEXT, block], "isError": False}
    assert messages.result_to_older("tools/call", called, version) == called | {"content": [TEXT, expected]}
    got = {"messages": [{"role": "user", "content": block, "x": 1}], "description": "d"}
    wanted = {"messages": [{"role": "user", "content": expected, "x": 1}], "description": "d"}
    assert messages.result_to_older("prompts/get", got, version) == wanted


ODD_RESULTS: list[tuple[str, Json]] = [
    ("tools/call", {}),
    ("tools/call", {"content": None}),
    ("tools/call", {"content": {"type": "audio"}}),
    ("tools/call", {"content": "text", "isError": "yes"}),
    ("prompts/get", {}),
    ("prompts/get", {"messages": None}),
    ("prompts/get", {"messages": {"content": AUDIO}}),
    ("prompts/get", {"messages": [None, 7, "m", [AUDIO], {}]}),
    ("tools/list", {}),
    ("tools/list", {"tools": None}),
    ("tools/list", {"tools": {"a": tool()}}),
    ("tools/list", {"tools": [None, 7, "t", [tool()], {}]}),
    ("resources/read", {"contents": [AUDIO]}),
    ("resources/list", {"resources": [LINK]}),
    ("com.example/x", {"content": [AUDIO], "structuredContent": 1, "tools": [tool(outputSchema=1)]}),
]


@pytest.mark.parametrize("version", LEGACY_VERSIONS)
@pytest.mark.parametrize(("method", "result"), ODD_RESULTS)
def test_what_is_not_understood_passes(method: str, result: Json, version: str) -> None:
    assert messages.result_to_older(method, result, version) == result


# structuredContent, by version

OBJECT = {"a": [1, None]}
SHOWN = [{"type": "text", "text": '{"a":[1,null]}'}]
STRUCTURED: list[tuple[str, Json, str, Json]] = [
    (
        "an object stays",
        {"content": [TEXT], "structuredContent": OBJECT},
        L11,
        {"content": [TEXT], "structuredContent": OBJECT},
    ),
    (
        "an object stays in 2025-06-18",
        {"content": [], "structuredContent": OBJECT},
        L06,
        {"content": [], "structuredContent": OBJECT},
    ),
    ("an empty object stays", {"content": [], "structuredContent": {}}, L06, {"content": [], "structuredContent": {}}),
    ("before, the content stands for it", {"content": [TEXT], "structuredContent": OBJECT}, L03, {"content": [TEXT]}),
    (
        "before, it is the content where there is none",
        {"content": [], "structuredContent": OBJECT},
        L2024,
        {"content": SHOWN},
    ),
    ("an array leaves", {"content": [TEXT], "structuredContent": [1]}, L11, {"content": [TEXT]}),
    (
        "an array is the content where there is none",
        {"content": [], "structuredContent": [1]},
        L11,
        {"content": [{"type": "text", "text": "[1]"}]},
    ),
    (
        "an array is the content where that is missing",
        {"structuredContent": [1]},
        L06,
        {"content": [{"type": "text", "text": "[1]"}]},
    ),
    ("a number is", {"content": [], "structuredContent": 1.5}, L11, {"content": [{"type": "text", "text": "1.5"}]}),
    ("null is", {"content": [], "structuredContent": None}, L11, {"content": [{"type": "text", "text": "null"}]}),
    (
        "a text is, in quotes",
        {"content": [], "structuredContent": "größe"},
        L11,
        {"content": [{"type": "text", "text": '"größe"'}]},
    ),
    (
        "the rest of the result stays",
        {"content": [], "structuredContent": 1, "isError": True, "x": 1},
        L11,
        {"content": [{"type": "text", "text": "1"}], "isError": True, "x": 1},
    ),
]


@pytest.mark.parametrize(("result", "version", "expected"), [r[1:] for r in STRUCTURED], ids=[r[0] for r in STRUCTURED])
def test_structured_content_for_an_older_client(result: Json, version: str, expected: Json) -> None:
    before = copy.deepcopy(result)
    assert messages.result_to_older("tools/call", result, version) == expected
    assert result == before


# tools, by version

PROPERTIES = {
    "type": "object",
    "properties": {"yes": True, "no": False, "s": {"type": "string"}},
    "required": ["no"],
    "x": 1,
}
SPELLED = {
    "type": "object",
    "properties": {"yes": {}, "no": {"not": {}}, "s": {"type": "string"}},
    "required": ["no"],
    "x": 1,
}
RESULT = {"type": "object", "properties": {"a": {"type": "number"}}}
NESTED = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"a": {"items": True, "properties": {"b": False}}},
}
SCHEMAS: list[tuple[str, Json, str, Json]] = [
    (
        "a tool without schemas to change",
        tool(title="T", icons=[], annotations={}, x=1),
        L2024,
        tool(title="T", icons=[], annotations={}, x=1),
    ),
    ("an outputSchema", tool(outputSchema=RESULT), L11, tool(outputSchema=RESULT)),
    ("an outputSchema in 2025-06-18", tool(outputSchema=RESULT), L06, tool(outputSchema=RESULT)),
    ("an outputSchema before", tool(outputSchema=RESULT), L03, tool()),
    ("an outputSchema of an array", tool(outputSchema={"type": "array"}), L11, tool()),
    ("an outputSchema of several types", tool(outputSchema={"type": ["object", "null"]}), L11, tool()),
    ("an outputSchema that refers", tool(outputSchema={"$ref": "#/$defs/a", "$defs": {}}), L11, tool()),
    ("an outputSchema that composes", tool(outputSchema={"oneOf": [RESULT]}), L06, tool()),
    ("an outputSchema that is a boolean", tool(outputSchema=True), L11, tool()),
    ("an outputSchema that is null", tool(outputSchema=None), L11, tool()),
    ("booleans among the properties of a result", tool(outputSchema=PROPERTIES), L06, tool(outputSchema=SPELLED)),
    ("booleans among the properties of an input", tool(inputSchema=PROPERTIES), L11, tool(inputSchema=SPELLED)),
    (
        "booleans among the properties of both",
        tool(inputSchema=PROPERTIES, outputSchema=PROPERTIES),
        L11,
        tool(inputSchema=SPELLED, outputSchema=SPELLED),
    ),
    (
        "booleans for the oldest clients",
        tool(inputSchema=PROPERTIES, outputSchema=PROPERTIES),
        L2024,
        tool(inputSchema=SPELLED),
    ),
    (
        "booleans where every client reads them",
        tool(inputSchema=NESTED, outputSchema=NESTED),
        L11,
        tool(inputSchema=NESTED, outputSchema=NESTED),
    ),
    (
        "properties that are no object",
        tool(inputSchema={"type": "object", "properties": [True]}),
        L11,
        tool(inputSchema={"type": "object", "properties": [True]}),
    ),
    ("an inputSchema that is a boolean", tool(inputSchema=True), L11, tool(inputSchema=True)),
    ("no inputSchema", {"name": "t"}, L11, {"name": "t"}),
    (
        "execution between legacy revisions",
        tool(execution={"taskSupport": "optional"}),
        L06,
        tool(execution={"taskSupport": "optional"}),
    ),
    ("an annotation that means nothing to legacy servers", mirroring("My Region"), L06, mirroring("My Region")),
]


@pytest.mark.parametrize(("listed", "version", "expected"), [r[1:] for r in SCHEMAS], ids=[r[0] for r in SCHEMAS])
def test_a_tool_for_an_older_client(listed: Json, version: str, expected: Json) -> None:
    before = copy.deepcopy(listed)
    assert messages.result_to_older("tools/list", tools(listed, nextCursor="c"), version) == tools(
        expected, nextCursor="c"
    )
    assert listed == before
