"""Field report AB9: output schemas are the tool's business: nothing is enforced, and nothing is made a lie."""

import json
from typing import Any

import pytest

from tests.door import Door
from tests.field.pairs import ask_pair, every_pair
from tests.peers import PREFIX
from tests.scripted import Json

STRICT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}


@pytest.mark.field("AB9")
@every_pair
@pytest.mark.parametrize("structured", [{"n": "no integer"}, {}, {"other": None}], ids=repr)
async def test_a_result_that_breaks_its_schema_is_passed_as_it_is(
    door: Door, front_era: str, upstream_era: str, structured: Json
) -> None:
    upstream = door.upstream(upstream_era)
    upstream.on["tools/list"] = {"tools": [{"name": "t", "inputSchema": {"type": "object"}, "outputSchema": STRICT}]}
    upstream.on["tools/call"] = {"content": [], "structuredContent": structured}
    listed = await ask_pair(door, (front_era, upstream_era), "tools/list", {})
    assert listed.result["tools"][0]["outputSchema"] == STRICT
    lists = len(upstream.calls("tools/list"))
    for _ in range(3):
        answer = await ask_pair(door, (front_era, upstream_era), "tools/call", {"name": "t"})
        assert answer.result["structuredContent"] == structured
    # across the eras the input schema says which arguments are headers too; it is looked up once and remembered
    assert len(upstream.calls("tools/list")) - lists <= (front_era != upstream_era)


@pytest.mark.field("AB9")
@pytest.mark.parametrize("structured", [[1, 2], "text", 5, True, None, [], 0, ""], ids=repr)
async def test_an_old_client_is_given_what_it_can_read_of_other_values(door: Door, structured: Any) -> None:
    schema = {"anyOf": [{"type": "array"}, {"type": "string"}]}
    door.modern.on["tools/list"] = {"tools": [{"name": "t", "inputSchema": {"type": "object"}, "outputSchema": schema}]}
    door.modern.on["tools/call"] = {"content": [], "structuredContent": structured}
    session = await door.front("modern").initialize()
    [tool] = (await session.request("tools/list")).result["tools"]
    assert "outputSchema" not in tool, "what cannot be kept is not promised"
    answer = await session.request("tools/call", {"name": "t"})
    assert "structuredContent" not in answer.result
    assert json.loads(answer.said) == structured
    modern = await door.front("modern").modern("tools/call", {"name": "t"})
    assert modern.result["structuredContent"] == structured


@pytest.mark.field("AB9")
async def test_content_that_is_there_stays_what_it_is(door: Door) -> None:
    block = {"type": "text", "text": "in words"}
    door.modern.on["tools/call"] = {"content": [block], "structuredContent": [1], "_meta": {"com.example/x": 1}}
    answer = await ask_pair(door, ("legacy", "modern"), "tools/call", {"name": "t"})
    assert answer.result["content"] == [block]
    assert "structuredContent" not in answer.result
    assert answer.result["_meta"] == {"com.example/x": 1}
    assert PREFIX + "serverInfo" not in answer.result["_meta"]


APPS = {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}}
VIEW = {"type": "resource", "resource": {"uri": "ui://a/view", "mimeType": "text/html", "text": "<p>1</p>"}}


@pytest.mark.field("AB9")
@every_pair
@pytest.mark.parametrize("capabilities", [{}, APPS], ids=["without apps", "with apps"])
@pytest.mark.parametrize("structured", [{"n": 1}, {"n": "no integer"}], ids=["as promised", "not as promised"])
async def test_a_schema_is_promised_and_kept_whatever_the_host_can_show(
    door: Door, front_era: str, upstream_era: str, capabilities: Json, structured: Json
) -> None:
    """What is left out of a tool and its result is no part of its schema: the data of a view is the tool's data."""
    upstream = door.upstream(upstream_era)
    linked = {"ui": {"resourceUri": "ui://a/view"}}
    tool = {"name": "t", "inputSchema": {"type": "object"}, "outputSchema": STRICT, "_meta": linked}
    upstream.on["tools/list"] = {"tools": [tool]}
    upstream.on["tools/call"] = {"content": [VIEW], "structuredContent": structured, "_meta": linked}
    pair = (front_era, upstream_era)
    listed = await ask_pair(door, pair, "tools/list", {}, capabilities=capabilities)
    assert listed.result["tools"][0]["outputSchema"] == STRICT
    answer = await ask_pair(door, pair, "tools/call", {"name": "t"}, capabilities=capabilities)
    assert answer.result["structuredContent"] == structured
    assert "isError" not in answer.result
    [block] = answer.result["content"]
    assert block == VIEW if capabilities else json.loads(block["text"]) == structured
