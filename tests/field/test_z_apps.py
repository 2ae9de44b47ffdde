"""Field reports Z10 and Z12: a host without Apps gets none of their HTML, and it is the host that decides.

Specification: MCP Apps 2026-01-26 (Graceful Degradation). The path to a model is the provider plane's.
"""

import json

import pytest

from tests.door import Door
from tests.field.pairs import ask_pair, every_pair
from tests.matrix.compare import differences
from tests.scripted import Json

MIME = "text/html;profile=mcp-app"
DESKTOP: Json = {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": [MIME]}}}
INTERACTIVE: Json = {"elicitation": {"form": {}, "url": {}}}
VIEW = "ui://charts/view.html"
HTML = "<!doctype html><script>planted</script>" + "<p>ä</p>" * 25_000
"""200 KB."""
BASE64 = "QUJD" * 100_000

without_apps = pytest.mark.parametrize("without", [{}, INTERACTIVE], ids=["core", "interactive"])

WORDS: Json = {"type": "text", "text": "three rows", "annotations": {"priority": 1}, "_meta": {"com.example/b": 1}}
EMBEDDED: Json = {"type": "resource", "resource": {"uri": VIEW, "mimeType": MIME, "text": HTML}}
PACKED: Json = {"type": "resource", "resource": {"uri": VIEW, "mimeType": MIME, "blob": BASE64}}
LINK: Json = {"type": "resource_link", "uri": VIEW, "name": "view", "mimeType": MIME}
PAGE: Json = {
    "type": "resource",
    "resource": {"uri": "https://a.example/", "mimeType": "text/html", "text": "<p>fetched</p>"},
}
IMAGE: Json = {"type": "image", "data": "QUJD", "mimeType": "image/png"}
LINKED = {"ui": {"resourceUri": VIEW}, "ui/resourceUri": VIEW}

TOOLS: Json = {
    "tools": [
        {"name": "draw", "inputSchema": {"type": "object"}, "_meta": {**LINKED, "com.example/t": 1}},
        {"name": "linked", "inputSchema": {"type": "object"}, "_meta": LINKED},
        {"name": "refresh", "inputSchema": {"type": "object"}, "_meta": {"ui": {"visibility": ["app"]}}},
        {"name": "plain", "inputSchema": {"type": "object"}},
    ],
    "nextCursor": "2",
}
SHOWN_TOOLS: Json = {
    "tools": [
        {"name": "draw", "inputSchema": {"type": "object"}, "_meta": {"com.example/t": 1}},
        {"name": "linked", "inputSchema": {"type": "object"}},
        {"name": "plain", "inputSchema": {"type": "object"}},
    ],
    "nextCursor": "2",
}
VIEWS: Json = {
    "resources": [{"uri": VIEW, "name": "view", "mimeType": MIME}, {"uri": "note://one", "name": "one"}],
    "nextCursor": "2",
}
SHOWN_VIEWS: Json = {"resources": [{"uri": "note://one", "name": "one"}], "nextCursor": "2"}
DATA: Json = {"structuredContent": {"bytes": BASE64}, "isError": True}
NOTES: Json = {"uriTemplate": "note://{id}", "name": "n"}
DRAW: Json = {"name": "draw", "arguments": {}}


def prompt(*contents: Json) -> Json:
    return {"description": "d", "messages": [{"role": "user", "content": content} for content in contents]}


ANSWERS: dict[str, tuple[str, Json, Json, Json]] = {
    "tools": ("tools/list", {}, TOOLS, SHOWN_TOOLS),
    "resources": ("resources/list", {}, VIEWS, SHOWN_VIEWS),
    "a page of views alone keeps its cursor": (
        "resources/list",
        {"cursor": "1"},
        {"resources": [VIEWS["resources"][0]], "nextCursor": "2"},
        {"resources": [], "nextCursor": "2"},
    ),
    "templates": (
        "resources/templates/list",
        {},
        {
            "resourceTemplates": [
                {"uriTemplate": "ui://a/{id}", "name": "a"},
                {"uriTemplate": "note://{id}", "name": "n"},
            ]
        },
        {"resourceTemplates": [{"uriTemplate": "note://{id}", "name": "n"}]},
    ),
    "a result with words": (
        "tools/call",
        DRAW,
        {
            "content": [EMBEDDED, WORDS, PACKED, LINK, PAGE, IMAGE],
            "structuredContent": {"bytes": BASE64},
            "isError": True,
        },
        {"content": [WORDS, PAGE, IMAGE], "structuredContent": {"bytes": BASE64}, "isError": True},
    ),
    "a prompt": ("prompts/get", {"name": "p"}, prompt(WORDS, PAGE), prompt(WORDS, PAGE)),
}


@pytest.mark.field("Z10")
@every_pair
@without_apps
@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
async def test_a_host_without_apps_gets_all_but_the_interface(
    door: Door, front_era: str, upstream_era: str, without: Json, answer: tuple[str, Json, Json, Json]
) -> None:
    method, params, own, shown = answer
    door.upstream(upstream_era).on[method] = own
    got = await ask_pair(door, (front_era, upstream_era), method, params, capabilities=without)
    assert differences(shown, {name: got.result[name] for name in got.result if name in own}) == []
    assert b"planted" not in got.body
    whole = await ask_pair(door, (front_era, upstream_era), method, params, capabilities=DESKTOP)
    assert differences(own, {name: whole.result[name] for name in whole.result if name in own}) == []


@pytest.mark.field("Z10")
@every_pair
@without_apps
@pytest.mark.parametrize("content", [[EMBEDDED], [PACKED, LINK], [LINK]], ids=["embedded", "packed", "linked"])
async def test_what_has_nothing_else_to_show_says_so_in_words(
    door: Door, front_era: str, upstream_era: str, without: Json, content: list[Json]
) -> None:
    pair = (front_era, upstream_era)
    upstream = door.upstream(upstream_era)
    upstream.on["tools/call"] = {"content": content}
    upstream.on["prompts/get"] = prompt(WORDS, *content)
    called = await ask_pair(door, pair, "tools/call", DRAW, capabilities=without)
    [block] = called.result["content"]
    assert block["type"] == "text"
    assert block["text"].strip()
    got = await ask_pair(door, pair, "prompts/get", {"name": "p"}, capabilities=without)
    first, *others = got.result["messages"]
    assert first["content"] == WORDS
    assert {json.dumps(message["content"]) for message in others} == {json.dumps(block)}
    for answer in (called, got):
        assert b"ui://" not in answer.body
        assert b"planted" not in answer.body


@pytest.mark.field("Z10")
@every_pair
async def test_data_without_words_is_shown_as_data(door: Door, front_era: str, upstream_era: str) -> None:
    structured = {"rows": [1, 2.5, None], "größe": "☃", "exact": 9007199254740993}
    door.upstream(upstream_era).on["tools/call"] = {"content": [EMBEDDED], "structuredContent": structured}
    got = await ask_pair(door, (front_era, upstream_era), "tools/call", DRAW, capabilities={})
    assert json.loads(got.said) == structured
    assert got.result["structuredContent"] == structured


@pytest.mark.field("Z10")
@every_pair
async def test_words_about_an_interface_are_words(door: Door, front_era: str, upstream_era: str) -> None:
    said = {"type": "text", "text": f'see {VIEW} of type {MIME} in _meta["ui/resourceUri"]: {{"_meta":{{"ui":1}}}}'}
    own = {"content": [said], "structuredContent": {"_meta": {"ui": {"resourceUri": VIEW}}, "html": HTML}}
    door.upstream(upstream_era).on["tools/call"] = own
    got = await ask_pair(door, (front_era, upstream_era), "tools/call", DRAW, capabilities={})
    assert differences(own, {name: got.result[name] for name in own}) == []


@pytest.mark.field("Z12", "Z10")
@every_pair
async def test_hosts_side_by_side_each_get_what_they_can_show(door: Door, front_era: str, upstream_era: str) -> None:
    upstream = door.upstream(upstream_era)
    upstream.on["tools/list"] = TOOLS
    upstream.on["tools/call"] = {"content": [WORDS, EMBEDDED]}
    pair = (front_era, upstream_era)
    for host in (DESKTOP, {}, DESKTOP, INTERACTIVE, {}, DESKTOP):
        listed = await ask_pair(door, pair, "tools/list", {}, capabilities=host)
        called = await ask_pair(door, pair, "tools/call", DRAW, capabilities=host)
        shows = host is DESKTOP
        assert listed.result["tools"] == (TOOLS if shows else SHOWN_TOOLS)["tools"]
        assert called.result["content"] == ([WORDS, EMBEDDED] if shows else [WORDS])
