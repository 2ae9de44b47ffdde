"""Each row of the table of what is shown and to whom, as it stands in a request to each LLM API."""

import json
from typing import Any

import pytest

from policies import provider
from policies.mcp import Json
from policies.provider import KINDS, Known, Unreadable
from tests.policies.conversations import APIS, PLACEHOLDER, SCHEMA, Api, mcp_text, stripped

TEXT: Json = mcp_text("Sunny at ui://, with _meta.")
LINK: Json = {"type": "resource_link", "uri": "file:///a.txt", "name": "a"}
UI: Json = {"uri": "ui://weather/view.html", "mimeType": "text/html;profile=mcp-app", "text": "<html>APP</html>"}
APP: Json = {"type": "resource", "resource": UI}
IMAGE: Json = {"type": "image", "data": "A" * 9000, "mimeType": "image/png"}

RESULTS: dict[str, tuple[Any, Any, dict[str, int]]] = {
    # a CallToolResult, what is left of it, and what was removed
    "an embedded interface": ({"content": [TEXT, APP]}, {"content": [TEXT]}, {"resource": 1}),
    "one told by its MIME type": (
        {"content": [TEXT, {"type": "resource", "resource": {**UI, "uri": "file:///x"}}]},
        {"content": [TEXT]},
        {"resource": 1},
    ),
    "one of the scheme in capitals, without a MIME type": (
        {"content": [TEXT, {"type": "resource", "resource": {"uri": "UI://x", "blob": "PGh0bWw+"}}]},
        {"content": [TEXT]},
        {"resource": 1},
    ),
    "one of mcp-ui's kinds": (
        {
            "content": [
                TEXT,
                {"type": "resource", "resource": {"uri": "ui://a", "mimeType": "text/uri-list", "text": "https://a"}},
                {
                    "type": "resource",
                    "resource": {
                        "uri": "x://a",
                        "mimeType": "application/vnd.mcp-ui.remote-dom+javascript; framework=react",
                        "text": "x",
                    },
                },
                {"type": "resource", "resource": {"uri": "x://a", "mimeType": "text/html+skybridge", "text": "x"}},
            ]
        },
        {"content": [TEXT]},
        {"resource": 3},
    ),
    "a link to an interface": (
        {"content": [LINK, {**LINK, "uri": "ui://weather/view.html"}]},
        {"content": [LINK]},
        {"resource": 1},
    ),
    "a type with blanks, another case and a charset": (
        {"content": [TEXT, {**LINK, "mimeType": 'Text/HTML ; charset=utf-8; Profile="MCP-App"'}]},
        {"content": [TEXT]},
        {"resource": 1},
    ),
    "nothing but an interface": ({"content": [APP]}, {"content": [mcp_text(PLACEHOLDER)]}, {"resource": 1}),
    "nothing but an interface and its data": (
        {"content": [APP], "structuredContent": {"t": 21.50}, "isError": True},
        {"content": [mcp_text('{"t":21.5}')], "structuredContent": {"t": 21.5}, "isError": True},
        {"resource": 1},
    ),
    "an interface and data of no kind": (
        {"content": [APP], "structuredContent": None},
        {"content": [mcp_text(PLACEHOLDER)], "structuredContent": None},
        {"resource": 1},
    ),
    "an interface and a list as data": (
        {"content": [APP], "structuredContent": [1, "a"]},
        {"content": [mcp_text('[1,"a"]')], "structuredContent": [1, "a"]},
        {"resource": 1},
    ),
    "a result's `_meta`": (
        {"content": [TEXT], "_meta": {"viewUUID": "v", "io.modelcontextprotocol/x": 1}},
        {"content": [TEXT]},
        {"meta": 1},
    ),
    "a block's and a resource's `_meta`": (
        {
            "content": [
                {**TEXT, "_meta": {"ui": 1}},
                {"type": "resource", "resource": {"uri": "file:///a", "text": "t", "_meta": {"k": 1}}},
            ]
        },
        {"content": [TEXT, {"type": "resource", "resource": {"uri": "file:///a", "text": "t"}}]},
        {"meta": 2},
    ),
    "audio and video": (
        {
            "content": [
                {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
                {"type": "resource", "resource": {"uri": "file:///v", "mimeType": "Video/mp4", "blob": "aGk="}},
            ]
        },
        {"content": [mcp_text("[audio, audio/wav]"), mcp_text("[video, Video/mp4]")]},
        {"media": 2},
    ),
    "4096 characters of data": (
        {"content": [{"type": "resource", "resource": {"uri": "file:///a", "blob": "A" * 4096}}]},
        {"content": [{"type": "resource", "resource": {"uri": "file:///a", "blob": "A" * 4096}}]},
        {},
    ),
    "4097 characters of data": (
        {"content": [TEXT, {"type": "resource", "resource": {"uri": "file:///a", "blob": "A" * 4097}}]},
        {"content": [TEXT]},
        {"data": 1},
    ),
    "an image of any size": ({"content": [IMAGE]}, {"content": [IMAGE]}, {}),
    "a presentation at any depth": (
        {"content": [TEXT], "structuredContent": {"a": [{"mcp_app": {"resourceUri": "ui://x"}, "b": 1}]}},
        {"content": [TEXT], "structuredContent": {"a": [{"b": 1}]}},
        {"presentation": 1},
    ),
    "an app-only tool in a list of tools": (
        {
            "tools": [
                {"name": "a", "inputSchema": SCHEMA},
                {"name": "b", "inputSchema": SCHEMA, "_meta": {"ui": {"visibility": ["app"]}}},
            ]
        },
        {"tools": [{"name": "a", "inputSchema": SCHEMA}]},
        {"tool": 1},
    ),
    "base64 under a name of its own": (
        {"content": [TEXT], "structuredContent": {"png": "A" * 699_183}},
        {"content": [TEXT], "structuredContent": {"png": "A" * 699_183}},
        {},
    ),
    "what Python's SDK dumps": (
        {
            "meta": {"viewUUID": "v"},
            "content": [{"type": "text", "text": "n", "annotations": None, "meta": {"m": 1}}],
            "structured_content": {"n": 1},
            "is_error": False,
        },
        {
            "meta": None,
            "content": [{"type": "text", "text": "n", "annotations": None, "meta": None}],
            "structured_content": {"n": 1},
            "is_error": False,
        },
        {"meta": 2},
    ),
    "an answer of JSON-RPC": (
        {"jsonrpc": "2.0", "id": 1, "result": {"content": [TEXT, APP], "_meta": {"a": 1}}},
        {"jsonrpc": "2.0", "id": 1, "result": {"content": [TEXT]}},
        {"meta": 1, "resource": 1},
    ),
    "a plain document": (
        {"_meta": {"ui": {"resourceUri": "ui://x"}}, "uri": "ui://x", "type": "doc", "data": "A" * 5000},
        {"_meta": {"ui": {"resourceUri": "ui://x"}}, "uri": "ui://x", "type": "doc", "data": "A" * 5000},
        {},
    ),
}


@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.parametrize("api", APIS)
def test_a_result_as_json_in_a_string(api: str, name: str) -> None:
    before, after, removed = RESULTS[name]
    one = APIS[api]
    body = one.body([], [("f", one.text(json.dumps(before)))])
    sent, counted, is_same = stripped(one, body)
    assert counted == removed
    assert is_same == (not removed)
    if removed:
        assert json.loads(text_of(api, sent)) == after
        assert sent | {"messages": 0, "input": 0, "contents": 0} == body | {"messages": 0, "input": 0, "contents": 0}
    again = json.dumps(sent).encode()
    assert stripped(one, again)[2], "what was stripped once has nothing more to take out"


def text_of(api: str, body: Json) -> str:
    """The text of the only result in a body."""
    if api == "chat":
        return str(body["messages"][-1]["content"])
    if api == "responses":
        return str(body["input"][-1]["output"])
    if api == "gemini":
        return str(body["contents"][-1]["parts"][0]["functionResponse"]["response"]["result"])
    last = body["messages"][-1]["content"][0]
    return str((last["content"] if api == "anthropic" else last["toolResult"]["content"])[0]["text"])


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_as_json_of_gemini_and_of_converse(name: str) -> None:
    before, after, removed = RESULTS[name]
    gemini, bedrock = APIS["gemini"], APIS["bedrock"]
    sent, counted, _ = stripped(gemini, gemini.body([], [("f", before)]))
    assert (sent, counted) == (gemini.body([], [("f", after)]), removed)
    sent, counted, _ = stripped(bedrock, bedrock.body([], [("f", [{"json": before}, {"text": "more"}])]))
    assert (sent, counted) == (bedrock.body([], [("f", [{"json": after}, {"text": "more"}])]), removed)


PDF: Json = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "A" * 9000}}
NATIVE: dict[str, dict[str, tuple[Any, Any, dict[str, int]]]] = {
    # blocks of a result in the API's own form, before and after
    "anthropic": {
        "text, images and documents": (
            [
                TEXT,
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 9000}},
                PDF,
                {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "t" * 9000}},
                {"type": "search_result", "source": "https://a", "title": "ui", "content": [TEXT]},
            ],
            None,
            {},
        ),
        "MCP's own blocks": ([TEXT, APP, LINK], [TEXT, LINK], {"resource": 1}),
        "documents of interfaces": (
            [
                TEXT,
                {"type": "document", "title": "ui://a", "source": {"type": "text", "data": "x"}},
                {"type": "document", "source": {"type": "url", "url": "ui://a"}},
                {"type": "document", "source": {"type": "base64", "media_type": "text/html+skybridge", "data": "x"}},
                {"type": "search_result", "source": "ui://a", "title": "t", "content": [TEXT]},
            ],
            [TEXT],
            {"resource": 4},
        ),
        "nothing but an interface": ([APP], [mcp_text(PLACEHOLDER)], {"resource": 1}),
        "a point of a cache on what goes": (
            [TEXT, {**APP, "cache_control": {"type": "ephemeral"}}],
            [{"cache_control": {"type": "ephemeral"}, **TEXT}],
            {"resource": 1},
        ),
        "members of a host's own": (
            [{**TEXT, "_meta": {"a": 1}, "mcp_app": {"x": 1}}],
            [TEXT],
            {"meta": 1, "presentation": 1},
        ),
        "JSON in a document": (
            [{"type": "document", "source": {"type": "text", "data": json.dumps({"content": [APP, TEXT]})}}],
            [{"type": "document", "source": {"type": "text", "data": json.dumps({"content": [TEXT]})}}],
            {"resource": 1},
        ),
    },
    "chat": {
        "parts": ([TEXT, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}], None, {}),
        "MCP's own blocks": ([TEXT, APP], [TEXT], {"resource": 1}),
        "JSON in a part": ([mcp_text(json.dumps(APP)), TEXT], [TEXT], {"resource": 1}),
        "a file of an interface in Base64": (
            [TEXT, {"type": "file", "file": {"file_data": "data:text/html;profile=mcp-app;base64,PGI+"}}],
            [TEXT],
            {"resource": 1},
        ),
        "audio": (
            [{"type": "input_audio", "input_audio": {"data": "A"}}],
            [mcp_text("[audio, unknown type]")],
            {"media": 1},
        ),
        "nothing but an interface": ([APP], [mcp_text(PLACEHOLDER)], {"resource": 1}),
    },
    "responses": {
        "parts": (
            [
                {"type": "input_text", "text": "a"},
                {"type": "input_image", "image_url": "data:image/png;base64," + "A" * 9000},
                {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64," + "A" * 9000},
            ],
            None,
            {},
        ),
        "a file of an interface": (
            [{"type": "input_text", "text": "a"}, {"type": "input_file", "file_url": "ui://a"}],
            [{"type": "input_text", "text": "a"}],
            {"resource": 1},
        ),
        "a file of an interface in Base64": (
            [
                {"type": "input_text", "text": "a"},
                {"type": "input_file", "filename": "a", "file_data": "data:text/html;profile=mcp-app;base64,PGI+"},
                {"type": "input_file", "filename": "b", "file_data": 'Data:Text/HTML;Profile="mcp-app",%3Cb%3E'},
            ],
            [{"type": "input_text", "text": "a"}],
            {"resource": 2},
        ),
        "a file that is a page": (
            [{"type": "input_file", "filename": "a", "file_data": "data:text/html;base64,PGI+"}],
            None,
            {},
        ),
        "a part that is an interface's JSON": (
            [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": json.dumps(APP)}],
            [{"type": "input_text", "text": "a"}],
            {"resource": 1},
        ),
        "nothing else": (
            [{"type": "input_text", "text": json.dumps(APP)}],
            [{"type": "input_text", "text": PLACEHOLDER}],
            {"resource": 1},
        ),
    },
    "bedrock": {
        "text, images and documents": (
            [
                {"text": "a"},
                {"image": {"format": "png", "source": {"bytes": "A" * 9000}}},
                {"document": {"format": "pdf", "name": "a", "source": {"bytes": "A" * 9000}}},
            ],
            None,
            {},
        ),
        "video": (
            [{"text": "a"}, {"video": {"format": "mp4", "source": {"bytes": "A"}}}],
            [{"text": "a"}, {"text": "[video, mp4]"}],
            {"media": 1},
        ),
        "JSON that is an interface": (
            [{"json": APP}, {"text": "a"}],
            [{"text": "a"}],
            {"resource": 1},
        ),
        "text that is an interface's JSON": (
            [{"text": json.dumps(APP)}, {"text": "a"}],
            [{"text": "a"}],
            {"resource": 1},
        ),
        "nothing else": ([{"text": json.dumps(APP)}], [{"text": PLACEHOLDER}], {"resource": 1}),
    },
}


@pytest.mark.parametrize(("api", "name"), [(api, name) for api, rows in NATIVE.items() for name in rows])
def test_a_result_in_the_blocks_of_an_api(api: str, name: str) -> None:
    before, after, removed = NATIVE[api][name]
    one = APIS[api]
    sent, counted, is_same = stripped(one, one.body([], [("f", before)]))
    assert (sent, counted) == (one.body([], [("f", before if after is None else after)]), removed)
    assert is_same == (after is None)


def test_geminis_parts_beside_a_response() -> None:
    one = APIS["gemini"]
    image = {"inlineData": {"mimeType": "image/png", "data": "A" * 9000}}
    page = {"inlineData": {"mimeType": "text/html;profile=mcp-app", "data": "A"}}
    film = {"inline_data": {"mime_type": "video/mp4", "data": "A"}}
    body = one.body([], [("f", "x")])
    response = body["contents"][-1]["parts"][0]["functionResponse"]
    response["parts"] = [image, page, film]
    sent, removed, _ = stripped(one, body)
    response["parts"] = [image, {"text": "[video, video/mp4]"}]
    assert (sent, removed) == (body, {"media": 1, "resource": 1})
    response["parts"] = [page]
    sent, removed, _ = stripped(one, body)
    del response["parts"]
    assert (sent, removed) == (body, {"resource": 1})


def test_geminis_names_in_snake_case() -> None:
    one = APIS["gemini"]
    response = {"name": "f", "response": {"result": [TEXT, APP]}, "parts": [{"inline_data": {"mime_type": "a/b"}}]}
    sent, removed, _ = stripped(one, {"contents": {"parts": [{"function_response": response}]}})
    assert sent["contents"]["parts"][0]["function_response"] == {**response, "response": {"result": [TEXT]}}
    assert removed == {"resource": 1}


def test_members_of_a_hosts_own_go_wherever_a_provider_has_its_own_objects() -> None:
    body = {
        "mcp_app": {"x": 1},
        "messages": [
            {"role": "user", "content": "a", "_meta": {"a": 1}},
            {"role": "assistant", "content": "b", "mcp_app": {"x": 1}, "tool_calls": [{"id": "c", "_meta": 1}]},
            {"role": "tool", "tool_call_id": "c", "content": "d", "mcp_app": "m", "structuredContent": {"_meta": 1}},
        ],
    }
    sent, removed, _ = stripped(APIS["chat"], body)
    assert sent == {
        "messages": [
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": "b", "tool_calls": [{"id": "c"}]},
            {"role": "tool", "tool_call_id": "c", "content": "d", "structuredContent": {"_meta": 1}},
        ]
    }
    assert removed == {"meta": 2, "presentation": 3}


ELSEWHERE: dict[str, tuple[str, str, Json, Json]] = {
    # dialect, path, body, what is sent
    "a count of tokens": (
        "anthropic",
        "/v1/messages/count_tokens",
        {
            "messages": [
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": [TEXT, APP]}]}
            ]
        },
        {"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": [TEXT]}]}]},
    ),
    "a batch": (
        "anthropic",
        "/v1/messages/batches",
        {
            "requests": [
                {
                    "custom_id": "a",
                    "params": {"messages": [{"content": [{"type": "tool_result", "content": [TEXT, APP]}]}]},
                }
            ]
        },
        {
            "requests": [
                {"custom_id": "a", "params": {"messages": [{"content": [{"type": "tool_result", "content": [TEXT]}]}]}}
            ]
        },
    ),
    "what Anthropic's connector has called": (
        "anthropic",
        "/v1/messages",
        {
            "messages": [
                {
                    "content": [
                        {"type": "mcp_tool_result", "tool_use_id": "c", "content": [mcp_text(json.dumps([TEXT, APP]))]}
                    ]
                }
            ]
        },
        {
            "messages": [
                {
                    "content": [
                        {"type": "mcp_tool_result", "tool_use_id": "c", "content": [mcp_text(json.dumps([TEXT]))]}
                    ]
                }
            ]
        },
    ),
    "what OpenAI's connector has called": (
        "openai",
        "/v1/responses",
        {"input": [{"type": "mcp_call", "name": "f", "server_label": "s", "output": json.dumps([TEXT, APP])}]},
        {"input": [{"type": "mcp_call", "name": "f", "server_label": "s", "output": json.dumps([TEXT])}]},
    ),
    "a role of former times": (
        "openai",
        "/v1/chat/completions",
        {"messages": [{"role": "function", "name": "f", "content": json.dumps([TEXT, APP])}]},
        {"messages": [{"role": "function", "name": "f", "content": json.dumps([TEXT])}]},
    ),
    "items of a conversation": (
        "openai",
        "/v1/conversations/c/items",
        {"items": [{"type": "function_call_output", "call_id": "c", "output": json.dumps([TEXT, APP])}]},
        {"items": [{"type": "function_call_output", "call_id": "c", "output": json.dumps([TEXT])}]},
    ),
    "what an assistant's run waits for": (
        "openai",
        "/v1/threads/t/runs/r/submit_tool_outputs",
        {"tool_outputs": [{"tool_call_id": "c", "output": json.dumps([TEXT, APP])}]},
        {"tool_outputs": [{"tool_call_id": "c", "output": json.dumps([TEXT])}]},
    ),
    "Gemini's count of tokens": (
        "gemini",
        "/v1beta/models/g:countTokens",
        {
            "generateContentRequest": {
                "contents": [{"parts": [{"functionResponse": {"name": "f", "response": {"r": [TEXT, APP]}}}]}]
            }
        },
        {
            "generateContentRequest": {
                "contents": [{"parts": [{"functionResponse": {"name": "f", "response": {"r": [TEXT]}}}]}]
            }
        },
    ),
    "Gemini's batch": (
        "gemini",
        "/v1beta/models/g:batchGenerateContent",
        {
            "batch": {
                "inputConfig": {
                    "requests": {
                        "requests": [
                            {
                                "request": {
                                    "contents": [
                                        {"parts": [{"functionResponse": {"name": "f", "response": {"r": [TEXT, APP]}}}]}
                                    ]
                                }
                            }
                        ]
                    }
                }
            }
        },
        {
            "batch": {
                "inputConfig": {
                    "requests": {
                        "requests": [
                            {
                                "request": {
                                    "contents": [
                                        {"parts": [{"functionResponse": {"name": "f", "response": {"r": [TEXT]}}}]}
                                    ]
                                }
                            }
                        ]
                    }
                }
            }
        },
    ),
    "Claude on Bedrock": (
        "bedrock",
        "/model/anthropic.claude/invoke",
        {
            "anthropic_version": "bedrock-2023-05-31",
            "messages": [{"content": [{"type": "tool_result", "content": [APP]}]}],
        },
        {
            "anthropic_version": "bedrock-2023-05-31",
            "messages": [{"content": [{"type": "tool_result", "content": [mcp_text(PLACEHOLDER)]}]}],
        },
    ),
    "an address that is not known": (
        "openai",
        "/v2/whatever",
        {"messages": [{"role": "tool", "tool_call_id": "c", "content": json.dumps([TEXT, APP])}]},
        {"messages": [{"role": "tool", "tool_call_id": "c", "content": json.dumps([TEXT])}]},
    ),
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_result_elsewhere(name: str) -> None:
    dialect, path, before, after = ELSEWHERE[name]
    done = provider.strip(provider.candidates(dialect, json.dumps(before).encode(), path))  # type: ignore[arg-type]
    assert json.loads(done.body) == after
    assert done.removed == {"resource": 1}


def test_a_listing_of_anthropics_connector_goes_back_unchanged() -> None:
    listing = {"type": "mcp_tool_listing", "tools": [{"name": "f", "_x": {"ui": 1}}]}
    body = {"messages": [{"role": "assistant", "content": [listing]}]}
    assert stripped(APIS["anthropic"], body)[2]


@pytest.mark.parametrize("api", APIS)
def test_a_setting_leaves_one_copy_of_a_result_in_both_forms(api: str) -> None:
    one = APIS[api]
    both = {"content": [TEXT], "structuredContent": {"n": 1}}
    body = one.body([], [("f", one.text(json.dumps(both)))])
    sent, removed, _ = stripped(one, body, keeps_structured=False)
    assert (json.loads(text_of(api, sent)), removed) == ({"content": [TEXT]}, {"structured": 1})
    alone = one.body([], [("f", one.text(json.dumps({"content": [], "structuredContent": {"n": 1}})))])
    assert stripped(one, alone, keeps_structured=False)[2]


def test_a_setting_leaves_one_copy_of_an_emptied_result() -> None:
    body = {"messages": [{"role": "tool", "content": [APP], "structuredContent": {"n": 9007199254740993}}]}
    sent, removed, _ = stripped(APIS["chat"], body, keeps_structured=False)
    assert sent == {"messages": [{"role": "tool", "content": [mcp_text('{"n":9007199254740993}')]}]}
    assert removed == {"resource": 1, "structured": 1}


NOT_READ = {
    "no JSON": b'{"messages": ui',
    "a list": b'[{"_meta": 1}]',
    "UTF-16": '{"messages": []}'.encode("utf-16"),
    "UTF-16 without a mark": '{"messages": []}'.encode("utf-16-le"),
    "bytes that are no UTF-8": b'{"_meta": "\xff"}',
    "nested without end": b'{"_meta":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
}


@pytest.mark.parametrize("name", NOT_READ)
def test_a_body_that_cannot_be_read_is_an_error_that_names_the_fix(name: str) -> None:
    body = NOT_READ[name] if name != "no JSON" else b'{"_meta": ui'
    with pytest.raises(Unreadable, match=r"^body: .*; send "):
        provider.candidates("openai", body, "/v1/chat/completions")


@pytest.mark.parametrize(
    "body", [b"", b" \n", b'{"model": "m"}', b'{"prompt": "ui://"}', b"not JSON, and nothing to see"]
)
def test_a_body_without_anything_to_look_at_is_not_read(body: bytes) -> None:
    done = provider.strip(provider.candidates("openai", body, "/v1/x"), Known(frozenset({"a"}), frozenset({"b"})))
    assert done.body is body
    assert done.removed == {}


def test_kinds_are_a_closed_set() -> None:
    assert len(KINDS) == 13
    assert set(KINDS) >= {kind for rows in (RESULTS, *NATIVE.values()) for row in rows.values() for kind in row[2]}


def test_the_same_turn_becomes_the_same_bytes_in_the_next_request() -> None:
    one: Api = APIS["anthropic"]
    first = one.body([one.tool("f")], [("f", [TEXT, APP])])
    second = one.body([one.tool("f")], [("f", [TEXT, APP]), ("f", [APP]), ("g", [TEXT])])
    sent = [
        provider.strip(provider.candidates(one.dialect, json.dumps({"messages": body["messages"]}).encode(), one.path))
        for body in (first, second)
    ]
    assert sent[1].body.startswith(sent[0].body.removesuffix(b"]}"))
