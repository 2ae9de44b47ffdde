"""What published adapters make of one result with an App (captured in 2026-12): none of it arrives, and what was said
does. Each is told by its structure, by the digest of the App, or as a page of a tool that has an App.
"""

import json
from typing import Any

import pytest

from policies.mcp import Json
from policies.provider import Known, body_digests
from tests.policies.conversations import APIS, stripped

HTML = "<!doctype html><html><body>APP-MARK" + '<p>\u00e9 "quoted" & more</p>\n' * 60 + "</body></html>"
APP: Json = {
    "type": "resource",
    "resource": {"uri": "ui://fx/app.html", "mimeType": "text/html;profile=mcp-app", "text": HTML},
}
DUMPED: Json = {
    "type": "resource",
    "resource": {**APP["resource"], "meta": {"ui": {"csp": {"connectDomains": ["META-MARK"]}}}},
    "annotations": None,
    "meta": {"m": "META-MARK"},
}
WHOLE: Json = {
    "_meta": {"viewUUID": "META-MARK"},
    "content": [{"type": "text", "text": "n=1"}, {**APP, "_meta": {"m": "META-MARK"}}],
    "structuredContent": {"n": 1},
    "isError": False,
}
TEXT: Json = {"type": "text", "text": "n=1"}

ADAPTERS: dict[str, tuple[str, Any, set[str]]] = {
    # which API, the result that the adapter makes, and by what the App in it is told
    "anthropic's helper": (
        "anthropic",
        [TEXT, {"type": "document", "source": {"type": "text", "data": HTML, "media_type": "text/plain"}}],
        {"digest", "page"},
    ),
    "langchain-mcp-adapters": (
        "anthropic",
        [TEXT | {"id": "lc_1"}, {"type": "text", "text": HTML, "id": "lc_2"}],
        {"digest", "page"},
    ),
    "strands-agents": ("bedrock", [{"text": "n=1"}, {"text": HTML}], {"digest", "page"}),
    "google-genai": ("gemini", [TEXT, {**APP, "_meta": {"m": "META-MARK"}}], {"structure"}),
    "openai-agents": (
        "responses",
        [{"type": "input_text", "text": "n=1"}, {"type": "input_text", "text": json.dumps(DUMPED)}],
        {"structure"},
    ),
    "a host that writes the result as it is": ("chat", json.dumps(WHOLE), {"structure"}),
}
WAYS = {
    "structure": Known(),
    "digest": Known(ui_bodies=body_digests(HTML)),
    "page": Known(ui_tools=frozenset({"get-data"})),
}


@pytest.mark.parametrize(
    ("adapter", "way"), [(adapter, way) for adapter, (_, _, ways) in ADAPTERS.items() for way in sorted(ways)]
)
def test_no_app_of_an_adapters_result_arrives(adapter: str, way: str) -> None:
    api, result, _ = ADAPTERS[adapter]
    one = APIS[api]
    body = one.body([one.tool("get-data")], [("get-data", result)])
    assert "APP-MARK" in json.dumps(body)
    sent, removed, _ = stripped(one, body, WAYS[way])
    assert "MARK" not in json.dumps(sent)
    assert "n=1" in json.dumps(sent)
    assert removed
    if "structure" not in ADAPTERS[adapter][2]:
        assert stripped(one, body)[2], "text that nobody knows is the user's"
