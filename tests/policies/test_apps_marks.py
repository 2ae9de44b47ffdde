"""What counts as user interface, and that the scan sees every message that holds any."""

import json
from typing import Any

import pytest

from policies import apps, apps_marks
from policies.mcp import Json

APP = "text/html;profile=mcp-app"


@pytest.mark.parametrize(
    ("uri", "is_ui"),
    [
        ("ui://a/b.html", True),
        ("UI://a", True),
        ("uI://a", True),
        ("ui:/x", True),
        ("ui:x", True),
        ("ui://../other", True),
        ("ui://{name}", True),
        (" \n\tui://a", True),  # lenient parsers of addresses skip what is blank before one, and breaks inside it
        ("u\ni\t://a", True),
        ("gui://a", False),
        ("uix://a", False),
        ("ui+x://a", False),
        ("https://a/?ui://b", False),
        ("file:///ui:/x", False),
        ("{scheme}://a", False),
        ("\u212ai://a", False),
        ("u\u0131://a", False),  # a dotless i is no i
        ("ui", False),
        ("", False),
        (None, False),
        (["ui://a"], False),
    ],
)
def test_an_address_of_an_interface_is_told_by_its_scheme(uri: Any, is_ui: bool) -> None:
    assert apps_marks.is_ui_uri(uri) is is_ui


@pytest.mark.parametrize(
    ("mime", "is_ui"),
    [
        (APP, True),
        ("TEXT/HTML; Profile=MCP-App", True),
        ('text/html ; charset=utf-8 ; profile="mcp-app"', True),
        ("text/html;profile=mcp-app;charset=utf-8", True),
        ('text/html;profile="mcp\\-app"', True),
        ('text/html;profile="https://a/other mcp-app"', True),
        ('text/html;title="a;b";profile=mcp-app', True),
        ("text/html+skybridge", True),
        ("Text/HTML+Skybridge;charset=utf-8", True),
        ("application/vnd.mcp-ui.remote-dom", True),
        ("application/vnd.mcp-ui.remote-dom+javascript; framework=react", True),
        ("text/html", False),
        ("text/html;charset=utf-8", False),
        ("text/html;profile=other", False),
        ("text/html;profile=mcp-apps", False),
        ("text/html;x-profile=mcp-app", False),
        ('text/html;title="profile=mcp-app"', False),
        ("text/plain;profile=mcp-app", False),
        ("text/uri-list", False),
        ("text/html+s\u212aybridge", False),
        ("application/vnd.mcp-ui", False),
        ("", False),
        (None, False),
    ],
)
def test_a_media_type_of_an_interface_is_told_by_its_parameters(mime: Any, is_ui: bool) -> None:
    assert apps_marks.is_ui_mime(mime) is is_ui


@pytest.mark.parametrize(
    "mime", ["text/html;" + " " * 500_000 + "x", "text/html;" + 'a="' * 100_000, "text/html" + " " * 500_000 + "x"]
)
def test_a_media_type_that_is_made_to_be_slow_is_read_once(mime: str) -> None:
    assert apps_marks.is_ui_mime(mime) is False


@pytest.mark.parametrize(
    ("key", "value", "is_ui"),
    [
        ("ui", {"resourceUri": "ui://a"}, True),
        ("ui", None, True),
        ("ui/resourceUri", "ui://a", True),
        ("ui/anything", 1, True),
        ("openai/outputTemplate", "ui://a", True),
        ("openai/widgetAccessible", True, True),
        ("mcpui.dev/ui-preferred-frame-size", [1, 2], True),
        ("modernjs.dev/mcp-app", {}, True),
        ("resourceUri", "ui://a", True),
        ("resourceUri", "https://a", False),
        ("resourceUri", {"a": 1}, False),
        ("visibility", ["model", "app"], True),
        ("visibility", ["app"], True),
        ("visibility", [], True),
        ("visibility", ["public"], False),
        ("visibility", "app", False),
        ("visibility", [{"app": 1}], False),
        ("uix", 1, False),
        ("UI", 1, False),
        ("modernjs.dev/other", 1, False),
        ("openai", 1, False),
        ("io.modelcontextprotocol/serverInfo", {}, False),
        ("io.modelcontextprotocol/ui", {}, False),
        ("traceparent", "00-ui", False),
        ("progressToken", "ui", False),
        ("vendor.example/ui", 1, False),
    ],
)
def test_members_of_meta_that_speak_of_an_interface_are_known(key: str, value: Any, is_ui: bool) -> None:
    assert apps_marks.is_ui_meta(key, value) is is_ui


def nested(visibility: Any) -> Json:
    return {"ui": {"resourceUri": "ui://a", "visibility": visibility}}


@pytest.mark.parametrize(
    ("meta", "hidden"),
    [
        (None, False),
        ({}, False),
        ({"ui": {"resourceUri": "ui://a"}}, False),
        (nested(["model", "app"]), False),
        (nested(["model"]), False),
        (nested(["app"]), True),
        (nested(["app", "app"]), True),
        (nested([]), True),
        (nested(["other"]), True),
        (nested(["other", "model"]), False),
        (nested([["model"]]), True),
        (nested("app"), True),
        (nested("model"), False),
        (nested(None), False),
        (nested({"model": True}), False),
        (nested(7), False),
        ({"ui/visibility": ["app"]}, True),
        ({"visibility": ["app"]}, True),
        ({"visibility": ["model"]}, False),
        ({**nested(["model", "app"]), "ui/visibility": ["app"]}, False),
        ({**nested(["app"]), "ui/visibility": ["model"]}, True),
        ({"ui": {"resourceUri": "ui://a"}, "ui/visibility": ["app"]}, True),
        ({"openai/visibility": "private"}, True),
        ({"openai/visibility": "public"}, False),
        ({**nested(["model"]), "openai/visibility": "private"}, False),
        ("app", False),
        ({"ui": "app"}, False),
    ],
)
def test_a_tool_is_hidden_where_what_it_declares_lacks_the_model(meta: Any, hidden: bool) -> None:
    assert apps_marks.is_app_only({"name": "t", **({"_meta": meta} if meta is not None else {})}) is hidden


# the scan

ESCAPED_ALL = "".join(f"\\u{ord(c):04x}" for c in "ui")


@pytest.mark.parametrize(
    "mark",
    [
        r'{"_meta":{"ui":{}}}',
        r'{"_meta":{"ui/x":{}}}',
        r'{"_meta":{"ui\/x":{}}}',
        r'{"_meta":{"\u0075i":{}}}',
        r'{"_meta":{"u\u0069":{}}}',
        r'{"_meta":{"\u0075\u0069":{}}}',
        r'{"_meta":{"ui\u002fx":{}}}',
        r'{"_meta":{"ui\u002Fx":{}}}',
        r'{"_meta":{"openai/x":1}}',
        r'{"_meta":{"openai\/x":1}}',
        r'{"_meta":{"open\u0061i/x":1}}',
        r'{"_meta":{"mcpui.dev/x":1}}',
        r'{"_meta":{"mcpui\u002Edev/x":1}}',
        r'{"_meta":{"modernjs.dev/mcp-app":1}}',
        r'{"_meta":{"modernjs.dev/mcp\u002Dapp":1}}',
        r'{"_meta":{"visibility":["app"]}}',
        r'{"_meta":{"visib\u0069lity":["app"]}}',
        r'{"\u005fmeta":{"ui":{}}}',
        r'{"uri":"ui://a"}',
        r'{"uri":"UI://a"}',
        r'{"uri":"Ui:\/\/a"}',
        r'{"uri":"\u0075i://a"}',
        r'{"uri":"u\u0049://a"}',
        r'{"uri":"ui\u003a//a"}',
        r'{"uri":"ui\u003A//a"}',
        r'{"uri":" ui://a"}',
        r'{"uri":"\n\t\u0020\u000bui://a"}',
        r'{"uri":"u\r\ni\u0009://a"}',
        r'{"uri" : "ui:x"}',
        r'["ui:x"]',
        r'{"mimeType":"text/html;profile=mcp-app"}',
        r'{"mimeType":"Text\/HTML ;profile=mcp-app"}',
        r'{"mimeType":"text/html\t;profile=mcp-app"}',
        r'{"mimeType":"text/html\u003bprofile=mcp-app"}',
        r'{"mimeType":"tex\u0074/html;profile=mcp-app"}',
        r'{"mimeType":"\u0020text/html+skybridge"}',
        r'{"mimeType":"text/html\u002Bskybridge"}',
        r'{"mimeType":"APPLICATION/VND.MCP-UI.remote-dom"}',
        r'{"mimeType":"application\/vnd.mcp-ui.remote-dom+javascript"}',
        r'{"extensions":{"io.modelcontextprotocol/ui":{}}}',
        r'{"extensions":{"io.modelcontextprotocol\/ui":{}}}',
    ],
)
def test_the_scan_sees_a_mark_in_every_spelling(mark: str) -> None:
    assert apps_marks.might_show(mark.encode())


@pytest.mark.parametrize(
    "plain",
    [
        {"content": [{"type": "text", "text": "A GUI: guide: ui, see https://a/ui/b and C:\\ui\\x\n\t\u00e9"}]},
        {"content": [{"type": "text", "text": '{"_meta": {"ui": {"resourceUri": "ui://a"}}}'}]},
        {"content": [{"type": "text", "text": "mcp-app, text/html;profile=mcp-app, \u4e2d\u6587 \x1b[31mred\x1b[0m"}]},
        {"tools": [{"name": "build_ui", "inputSchema": {"properties": {"uid": {"type": "string"}}}}]},
        {"contents": [{"uri": "https://a/x.html", "mimeType": "text/html", "text": "<html>\n\u003c</html>"}]},
        {"_meta": {"io.modelcontextprotocol/serverInfo": {"name": "ui-kit", "version": "1"}, "traceparent": "00-a"}},
    ],
)
@pytest.mark.parametrize("ascii_only", [True, False])
def test_what_merely_looks_like_it_is_not_decoded(plain: Json, ascii_only: bool) -> None:
    raw = json.dumps({"jsonrpc": "2.0", "id": 1, "result": plain}, ensure_ascii=ascii_only).encode()
    assert not apps_marks.might_show(raw)
    assert apps.strip_message(raw, "tools/call") is raw
