"""What a host that shows no Apps gets of results, notifications, questions and requests."""

import copy
import json
from decimal import Decimal
from typing import Any

import pytest

from policies import apps, jsonrpc
from policies.apps import PLACEHOLDER
from policies.errors import Rejection
from policies.mcp import Json
from tests.policies.samples import AUDIO, EMBEDDED, IMAGE, LINK, TEXT

APP = "text/html;profile=mcp-app"
INFO = {"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1"}}
HTML: Json = {"type": "resource", "resource": {"uri": "ui://a/b.html", "mimeType": APP, "text": "<html>"}}
UI_LINK: Json = {"type": "resource_link", "uri": "ui://a/b.html", "name": "b"}
UI_META: Json = {"ui": {"resourceUri": "ui://a", "csp": {}}, "ui/resourceUri": "ui://a"}
SHOWN: Json = {"type": "text", "text": PLACEHOLDER}


def text(said: str) -> Json:
    return {"type": "text", "text": said}


def hidden(name: str) -> Json:
    return {"name": name, "inputSchema": {}, "_meta": {"ui": {"resourceUri": "ui://a", "visibility": ["app"]}}}


TOOL: Json = {
    "name": "t",
    "inputSchema": {"type": "object", "properties": {"ui": {"_meta": {"ui": 1}}}},
    "x": 2**53 + 1,
}

RESULTS: list[tuple[str, str, Json, Json]] = [
    # sentence, method, result, what is left of it
    (
        "a tool loses its link to an interface, in both forms",
        "tools/list",
        {"tools": [{**TOOL, "_meta": UI_META}]},
        {"tools": [TOOL]},
    ),
    (
        "and keeps what else is said of it",
        "tools/list",
        {"tools": [{**TOOL, "_meta": {**UI_META, "openai/outputTemplate": "ui://a", "vendor": 1}}]},
        {"tools": [{**TOOL, "_meta": {"vendor": 1}}]},
    ),
    (
        "a meta that was empty stays",
        "tools/list",
        {"tools": [{**TOOL, "_meta": {}}]},
        {"tools": [{**TOOL, "_meta": {}}]},
    ),
    (
        "a tool for interfaces alone is not listed, and the cursor stays",
        "tools/list",
        {"tools": [hidden("a"), TOOL, hidden("b")], "nextCursor": "2"},
        {"tools": [TOOL], "nextCursor": "2"},
    ),
    (
        "a page may become empty",
        "tools/list",
        {"tools": [hidden("a")], "nextCursor": "2"},
        {"tools": [], "nextCursor": "2"},
    ),
    (
        "what is no tool stays",
        "tools/list",
        {"tools": [None, 1, "ui://a"], "x": 1},
        {"tools": [None, 1, "ui://a"], "x": 1},
    ),
    (
        "resources of interfaces are not listed",
        "resources/list",
        {
            "resources": [
                {"uri": "ui://a", "name": "a"},
                {"uri": "UI://a", "name": "a"},
                {"uri": "https://a/x", "name": "a", "mimeType": "Text/HTML; charset=utf-8; profile=MCP-APP"},
                {"uri": "https://a/y", "name": "a", "mimeType": "text/html", "_meta": {"ui": {}, "k": 1}},
            ],
            "nextCursor": "c",
        },
        {
            "resources": [{"uri": "https://a/y", "name": "a", "mimeType": "text/html", "_meta": {"k": 1}}],
            "nextCursor": "c",
        },
    ),
    (
        "nor are templates",
        "resources/templates/list",
        {"resourceTemplates": [{"uriTemplate": "ui://{x}", "name": "a"}, {"uriTemplate": "file:///{x}", "name": "b"}]},
        {"resourceTemplates": [{"uriTemplate": "file:///{x}", "name": "b"}]},
    ),
    (
        "of what is read, the rest stays",
        "resources/read",
        {"contents": [{"uri": "ui://a", "text": "<html>"}, {"uri": "file:///a", "text": "t", "_meta": {"ui": {}}}]},
        {"contents": [{"uri": "file:///a", "text": "t"}]},
    ),
    ("an empty read stays one", "resources/read", {"contents": []}, {"contents": []}),
    (
        "embedded and linked interfaces leave, text and media stay",
        "tools/call",
        {"content": [TEXT, HTML, IMAGE, UI_LINK, AUDIO, EMBEDDED, LINK], "isError": True, "x": 1},
        {"content": [TEXT, IMAGE, AUDIO, EMBEDDED, LINK], "isError": True, "x": 1},
    ),
    (
        "whatever their type of content is",
        "tools/call",
        {
            "content": [
                TEXT,
                {"type": "resource", "resource": {"uri": "ui://a", "mimeType": "text/html", "blob": "PGh0bWw+"}},
                {"type": "resource", "resource": {"uri": "ui://a", "mimeType": "text/uri-list", "text": "https://a"}},
                {"type": "resource", "resource": {"uri": "ui://a", "text": "<html>"}},
                {"type": "resource", "resource": {"uri": "a:b", "mimeType": "text/html+skybridge", "text": "<html>"}},
                {"type": "resource", "resource": {"uri": "a:b", "mimeType": "application/vnd.mcp-ui.remote-dom+x"}},
                {"resource": {"uri": "ui://a", "text": "<html>"}},
                {"type": "resource_link", "uri": "https://a", "mimeType": APP, "name": "a"},
            ]
        },
        {"content": [TEXT]},
    ),
    (
        "a page that a tool fetched is no interface",
        "tools/call",
        {
            "content": [
                {"type": "resource", "resource": {"uri": "https://a", "mimeType": "text/html", "text": "<html>"}}
            ]
        },
        {
            "content": [
                {"type": "resource", "resource": {"uri": "https://a", "mimeType": "text/html", "text": "<html>"}}
            ]
        },
    ),
    (
        "what is said of an interface leaves at every place",
        "tools/call",
        {
            "content": [
                {**TEXT, "_meta": UI_META},
                {
                    "type": "resource",
                    "_meta": {"ui": 1, "k": 1},
                    "resource": {"uri": "a:b", "_meta": {"mcpui.dev/x": 1, "k": 2}},
                },
            ],
            "_meta": {**UI_META, **INFO, "viewUUID": "u"},
        },
        {
            "content": [TEXT, {"type": "resource", "_meta": {"k": 1}, "resource": {"uri": "a:b", "_meta": {"k": 2}}}],
            "_meta": {**INFO, "viewUUID": "u"},
        },
    ),
    (
        "nothing of text is taken out",
        "tools/call",
        {"content": [text('{"_meta":{"ui":{}}}'), text("ui://a")]},
        {"content": [text('{"_meta":{"ui":{}}}'), text("ui://a")]},
    ),
    (
        "data that looks like meta is data",
        "tools/call",
        {"content": [TEXT], "structuredContent": {"_meta": {"ui": {}}, "uri": "ui://a", "visibility": ["app"]}},
        {"content": [TEXT], "structuredContent": {"_meta": {"ui": {}}, "uri": "ui://a", "visibility": ["app"]}},
    ),
    ("where nothing is left, the placeholder stands", "tools/call", {"content": [HTML]}, {"content": [SHOWN]}),
    (
        "or the structured result",
        "tools/call",
        {"content": [HTML, UI_LINK], "structuredContent": {"n": 2**64 + 1, "s": "é"}, "isError": True},
        {
            "content": [text('{"n":18446744073709551617,"s":"é"}')],
            "structuredContent": {"n": 2**64 + 1, "s": "é"},
            "isError": True,
        },
    ),
    (
        "also a list",
        "tools/call",
        {"content": [HTML], "structuredContent": [1]},
        {"content": [text("[1]")], "structuredContent": [1]},
    ),
    (
        "also a scalar",
        "tools/call",
        {"content": [HTML], "structuredContent": False},
        {"content": [text("false")], "structuredContent": False},
    ),
    (
        "null says nothing",
        "tools/call",
        {"content": [HTML], "structuredContent": None},
        {"content": [SHOWN], "structuredContent": None},
    ),
    ("content that was empty stays so", "tools/call", {"content": [], "_meta": {"ui": {}}}, {"content": []}),
    ("content that is none stays so", "tools/call", {"content": "ui://a", "_meta": {"ui": {}}}, {"content": "ui://a"}),
    (
        "a tool's result in a message is never emptied",
        "prompts/get",
        {
            "messages": [
                {"role": "user", "content": HTML},
                {"role": "user", "content": {**TEXT, "_meta": {"ui": {}}}, "_meta": {"ui": 1}},
                {"role": "user", "content": [HTML, {"type": "tool_result", "toolUseId": "1", "content": [HTML]}]},
                {"role": "user", "content": "text"},
            ],
            "description": "d",
        },
        {
            "messages": [
                {"role": "user", "content": SHOWN},
                {"role": "user", "content": TEXT},
                {"role": "user", "content": [{"type": "tool_result", "toolUseId": "1", "content": [SHOWN]}]},
                {"role": "user", "content": "text"},
            ],
            "description": "d",
        },
    ),
    (
        "a prompt loses what is said of an interface",
        "prompts/list",
        {"prompts": [{"name": "p", "_meta": {"ui": {}}}]},
        {"prompts": [{"name": "p"}]},
    ),
    (
        "addresses of interfaces are not proposed",
        "completion/complete",
        {"completion": {"values": ["ui://a", "file:///a", "Ui://b"], "total": 12, "hasMore": True}},
        {"completion": {"values": ["file:///a"], "total": 10, "hasMore": True}},
    ),
    (
        "and their number is told where there is one",
        "completion/complete",
        {"completion": {"values": ["ui://a"]}},
        {"completion": {"values": []}},
    ),
    (
        "what the upstream says of Apps is not told on",
        "server/discover",
        {"capabilities": {"tools": {}, "extensions": {"io.modelcontextprotocol/ui": {}, "x/y": {}}}},
        {"capabilities": {"tools": {}, "extensions": {"x/y": {}}}},
    ),
    (
        "nor in a session",
        "initialize",
        {"capabilities": {"extensions": {"io.modelcontextprotocol/ui": {}}}},
        {"capabilities": {}},
    ),
    ("the result of a task is one", "tasks/result", {"content": [HTML], "_meta": {"ui": {}}}, {"content": [SHOWN]}),
    (
        "also inside a task",
        "tasks/get",
        {"taskId": "1", "status": "completed", "result": {"content": [HTML, TEXT], "_meta": UI_META}, "_meta": UI_META},
        {"taskId": "1", "status": "completed", "result": {"content": [TEXT]}},
    ),
    (
        "so is what a task asks for",
        "tasks/get",
        {
            "taskId": "1",
            "inputRequests": {"k": {"method": "elicitation/create", "params": {"message": "m", "_meta": UI_META}}},
        },
        {"taskId": "1", "inputRequests": {"k": {"method": "elicitation/create", "params": {"message": "m"}}}},
    ),
    (
        "and what a call asks for",
        "tools/call",
        {
            "resultType": "input_required",
            "requestState": "ui://s",
            "inputRequests": {
                "a": {
                    "method": "sampling/createMessage",
                    "params": {"messages": [{"role": "user", "content": [HTML, TEXT]}]},
                },
                "b": {"method": "roots/list"},
                "c": None,
            },
        },
        {
            "resultType": "input_required",
            "requestState": "ui://s",
            "inputRequests": {
                "a": {
                    "method": "sampling/createMessage",
                    "params": {"messages": [{"role": "user", "content": [TEXT]}]},
                },
                "b": {"method": "roots/list"},
                "c": None,
            },
        },
    ),
    ("of another method, only the meta is known", "x/y", {"content": [HTML], "_meta": UI_META}, {"content": [HTML]}),
    (
        "what Modern.js puts into data and text is not told from data and text",
        "tools/call",
        {
            "content": [text("<div>rendered</div>")],
            "structuredContent": {"component": "Chart"},
            "_meta": {"modernjs.dev/mcp-app": {"entry": "a"}, "k": 1},
        },
        {"content": [text("<div>rendered</div>")], "structuredContent": {"component": "Chart"}, "_meta": {"k": 1}},
    ),
]


@pytest.mark.parametrize(
    ("method", "result", "left"), [case[1:] for case in RESULTS], ids=[case[0] for case in RESULTS]
)
def test_results(method: str, result: Json, left: Json) -> None:
    before = copy.deepcopy(result)
    stripped = apps.strip_result(method, {}, result, "modern")
    assert stripped == left
    assert result == before, "what came is shared with others, and is not changed"
    assert (stripped is result) is (result == left)


@pytest.mark.parametrize(("era", "code"), [("modern", -32602), ("legacy", -32002)])
@pytest.mark.parametrize("content", [{"uri": "ui://a"}, {"uri": "file:///a", "mimeType": APP, "text": "<html>"}])
def test_a_resource_that_is_nothing_but_interface_is_not_found(era: Any, code: int, content: Json) -> None:
    found = apps.strip_result("resources/read", {"uri": "file:///a"}, {"contents": [content]}, era)
    assert found == Rejection(code, "Resource not found", {"uri": "file:///a"})


@pytest.mark.parametrize(("era", "code"), [("modern", -32602), ("legacy", -32002)])
@pytest.mark.parametrize("method", ["resources/read", "resources/subscribe", "resources/unsubscribe"])
@pytest.mark.parametrize("uri", ["ui://a", "UI://x", "ui:/x", "ui://../other", "ui:"])
def test_a_request_for_an_interface_is_not_sent(method: str, uri: str, era: Any, code: int) -> None:
    assert apps.refusal(method, {"uri": uri}, era) == Rejection(code, "Resource not found", {"uri": uri})


@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_nor_is_one_to_complete_its_address(era: Any) -> None:
    refused = apps.refusal("completion/complete", {"ref": {"type": "ref/resource", "uri": "ui://{x}"}}, era)
    assert refused is not None
    assert refused.code == -32602


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("resources/read", {"uri": "file:///a"}),
        ("resources/read", {"uri": ["ui://a"]}),
        ("resources/read", {}),
        ("tools/call", {"name": "t", "uri": "ui://a", "arguments": {"uri": "ui://a"}}),
        ("prompts/get", {"name": "ui://a"}),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "ui://a"}, "argument": {"value": "ui://"}}),
        ("completion/complete", {"ref": "ui://a"}),
    ],
)
def test_every_other_request_is(method: str, params: Json) -> None:
    assert apps.refusal(method, params, "modern") is None
    assert apps.strip_request(method, params) is params


def test_a_listener_is_not_heard_for_interfaces() -> None:
    wanted = {"notifications": {"toolsListChanged": True, "resourceSubscriptions": ["ui://a", "file:///a"]}}
    kept = {"notifications": {"toolsListChanged": True, "resourceSubscriptions": ["file:///a"]}}
    assert apps.strip_request("subscriptions/listen", wanted) == kept
    assert apps.strip_notification("notifications/subscriptions/acknowledged", wanted) == kept


@pytest.mark.parametrize(
    ("method", "params", "left"),
    [
        ("notifications/resources/updated", {"uri": "ui://a"}, None),
        ("notifications/resources/updated", {"uri": "file:///a", "_meta": {"ui": 1}}, {"uri": "file:///a"}),
        (
            "notifications/message",
            {"level": "info", "data": {"_meta": {"ui": 1}}},
            {"level": "info", "data": {"_meta": {"ui": 1}}},
        ),
        ("notifications/progress", {"progress": 1, "_meta": {"ui/x": 1, "k": 1}}, {"progress": 1, "_meta": {"k": 1}}),
        (
            "notifications/tasks",
            {"taskId": "1", "result": {"content": [HTML]}},
            {"taskId": "1", "result": {"content": [SHOWN]}},
        ),
        ("notifications/tools/list_changed", {}, {}),
    ],
)
def test_notifications(method: str, params: Json, left: Json | None) -> None:
    assert apps.strip_notification(method, params) == left


def test_a_message_to_be_sampled_shows_no_interface() -> None:
    asked = {
        "messages": [{"role": "user", "content": HTML}, {"role": "user", "content": TEXT, "_meta": UI_META}],
        "tools": [hidden("a"), {**TOOL, "_meta": UI_META}],
        "maxTokens": 1,
        "_meta": {"progressToken": 1, "ui": {}},
    }
    assert apps.strip_ask("sampling/createMessage", asked) == {
        "messages": [{"role": "user", "content": SHOWN}, {"role": "user", "content": TEXT}],
        "tools": [TOOL],
        "maxTokens": 1,
        "_meta": {"progressToken": 1},
    }


# whole messages


def message(result: str, ident: str = "7") -> bytes:
    return f'{{"jsonrpc":"2.0","id":{ident},"result":{result}}}'.encode()


@pytest.mark.parametrize(
    ("result", "left"),
    [
        (r'{"_meta":{"\u0075i":{}},"x":12345678901234567890.5}', r'{"x":12345678901234567890.5}'),
        (r'{"_meta":{"ui":1},"x":9007199254740993,"y":1e400}', r'{"x":9007199254740993,"y":1e400}'),
        (r'{"_meta":{"ui":1},"x":"\ud800"}', r'{"x":"\ud800"}'),
        (r'{"_meta":{"ui":1},"_meta":{"k":1}}', r'{"_meta":{"k":1}}'),
        (r'{"_meta":{"k":1},"_meta":{"ui":1}}', r"{}"),
        (r'{"_meta":{"k":1,"ui":1,"ui":2}}', r'{"_meta":{"k":1}}'),
    ],
)
def test_numbers_and_strings_stay_to_the_last_digit(result: str, left: str) -> None:
    stripped = apps.strip_message(message(result), "tools/call")
    assert stripped is not None
    assert json.loads(stripped, parse_float=Decimal) == json.loads(message(left), parse_float=Decimal)
    assert b'"ui"' not in stripped


def test_a_message_that_shows_nothing_is_passed_on_as_it_came() -> None:
    raw = b'{ "jsonrpc":"2.0","id":1, "result" : {"content":[{"type":"text","text":"a \\u0075i"}]} }'
    assert apps.strip_message(raw, "tools/call") is raw


@pytest.mark.parametrize("depth", [10, 400])
def test_depth_is_no_danger(depth: int) -> None:
    block: Json = HTML
    for _ in range(depth):
        block = {"type": "tool_result", "toolUseId": "1", "content": [block, {**TEXT, "_meta": UI_META}]}
    stripped = apps.strip_message(jsonrpc.response(1, {"content": [block]}), "tools/call")
    assert stripped is not None
    assert b"ui" not in stripped
    assert stripped.count(b'"hi"') == depth


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b'{"result":{"_meta":{"ui":1}', "delimiter"),
        (b'["ui:x"]', "object"),
        (b'"ui:x"', "object"),
        (b'{"a":' + b"[" * 5000 + b'"ui:x"', "nested"),
    ],
)
def test_what_cannot_be_read_is_not_passed_on(raw: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        apps.strip_message(raw, "tools/call")


def test_an_error_is_passed_on() -> None:
    raw = jsonrpc.error_response(1, -32602, "Unknown", {"uri": "ui://a"})
    assert apps.strip_message(raw, "resources/read", "file:///a") is raw


def test_a_read_that_turns_out_to_be_an_interface_is_an_error() -> None:
    raw = jsonrpc.response("i", {"contents": [{"uri": "file:///a", "mimeType": APP, "text": "<html>"}]})
    stripped = apps.strip_message(raw, "resources/read", "file:///a")
    assert jsonrpc.loads(stripped or b"") == {
        "jsonrpc": "2.0",
        "id": "i",
        "error": {"code": -32602, "message": "Resource not found", "data": {"uri": "file:///a"}},
    }


def test_an_update_of_an_interface_is_no_message() -> None:
    assert apps.strip_message(jsonrpc.notification("notifications/resources/updated", {"uri": "ui://a"}), "x") is None


@pytest.mark.parametrize(
    ("method", "uri", "size", "refused"),
    [
        ("resources/read", "ui://a", 100, False),
        ("resources/read", "ui://a", 101, True),
        ("resources/read", "UI:a", 101, True),
        ("resources/read", "file:///a", 101, False),
        ("tools/call", "ui://a", 101, False),
    ],
)
def test_an_interface_over_its_bound_is_an_error(method: str, uri: str, size: int, refused: bool) -> None:
    why = apps.too_large(method, uri, size, 100)
    assert (why is not None) is refused
    assert why is None or "limits.max_app_bytes" in why.message


INTERFACE = '{"content":[{"type":"resource","resource":{"uri":"ui://a"}}]}'


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ('"id":1,"result":%s,"result":null,"error":{"code":1,"message":"m"}', {"id", "result", "error"}),
        ('"id":1,"error":{"code":1,"message":"m"},"params":%s', {"id", "error"}),
        ('"id":1,"result":{},"params":%s', {"id", "result"}),
        ('"method":"notifications/message","params":{},"result":%s', {"method", "params"}),
        ('"method":"notifications/message","error":%s', {"method"}),
    ],
)
def test_a_member_in_which_nobody_looks_holds_no_interface(said: str, left: set[str]) -> None:
    raw = ('{"jsonrpc":"2.0",' + said % INTERFACE + "}").encode()
    stripped = apps.strip_message(raw, "tools/call")
    assert stripped is not None
    assert b"ui://" not in stripped
    assert set(json.loads(stripped)) == {"jsonrpc", *left}
