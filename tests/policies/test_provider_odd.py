"""Bodies that no adapter makes, and some that few do: each is refused with a word, or passes, and nothing breaks."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from policies import provider
from policies.mcp import Json
from policies.provider_heads import gathered, head_of
from tests.policies.conversations import APIS

ODD: list[Any] = [None, True, 1.5, "x", [], {}, [[]], [{}], [None], {"type": []}, {"type": {}}, {"name": []}]
HIDDEN: Json = {"ui": {"visibility": ["app"]}}
UI: Json = {"type": "resource", "resource": {"uri": "ui://x", "mimeType": "text/html", "text": "DROP"}}
SAID: Json = {"type": "text", "text": "[1]", "_meta": {}}


def body_of(api: str) -> Json:
    """A conversation with something of everything that is looked at."""
    one = APIS[api]
    blocks: list[Any] = [{**one.form("a"), "_meta": {}}] if api == "bedrock" else [SAID, UI]
    result = {"content": [SAID, UI], "structuredContent": {"a": 1}, "isError": False}
    told: Any = blocks if api == "anthropic" else one.text(json.dumps(result))
    choice = {"tool_choice": {"type": "tool", "name": "poll", "function": {"name": "poll"}}}
    return {**one.body([{**one.tool("poll"), "_meta": HIDDEN}, one.tool("look")], [("look", told)]), **choice}


def places(value: Any, way: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    yield way
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, member in inner:
        yield from places(member, (*way, step))


def put(value: Any, way: tuple[str | int, ...], member: Any) -> Any:
    if not way:
        return member
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[way[0]] = put(copy[way[0]], way[1:], member)
    return copy


def sent(dialect: provider.ProviderDialect, raw: bytes, known: provider.Known = provider.NOTHING) -> provider.Stripped:
    return provider.strip(provider.candidates(dialect, raw, "/v1/x"), known)


@pytest.mark.parametrize("known", [provider.NOTHING, provider.Known(app_only=frozenset({"look"}))])
@pytest.mark.parametrize("api", APIS)
def test_a_value_of_any_type_at_any_place_is_refused_with_a_word_or_passes(api: str, known: provider.Known) -> None:
    body = body_of(api)
    for way in places(body):
        for odd in ODD:
            raw = json.dumps(put(body, way, odd)).encode()
            try:
                once = sent(APIS[api].dialect, raw, known).body
            except provider.Unreadable as error:
                assert str(error).startswith("body: ")  # noqa: PT017 - either is right
            else:
                assert sent(APIS[api].dialect, once, known).body == once, way


@pytest.mark.parametrize("place", ["messages", "tools"])
@pytest.mark.parametrize("levels", [127, 330, 1020, 5000])
@pytest.mark.parametrize(("opens", "closes"), [(b"[", b"]"), (b'{"x":', b"}"), (b'[{"x":', b"}]")])
def test_a_member_nested_however_deep_is_refused_with_a_word_or_passes(
    opens: bytes, closes: bytes, levels: int, place: str
) -> None:
    deep = opens * levels + b'{"mcp_app":1}' + closes * levels
    function = b'"type":"function","function":{"name":"a"}' if place == "tools" else b'"role":"tool"'
    raw = b'{"%s":[{%s,"content":%s}]}' % (place.encode(), function, deep)
    try:
        assert sent("openai", raw).body
    except provider.Unreadable as error:
        assert str(error).startswith("body: ")  # noqa: PT017 - either is right


PAIR = {"name": "look", "response": {"result": [UI, {"type": "text", "text": "KEEP"}]}}
PART = {"inlineData": {"mimeType": "text/html;profile=mcp-app", "data": "DROP"}}
KEPT = {"name": "KEEP", "parameters": {}}
POLL = {"name": "DROP", "_meta": HIDDEN}
SINGLE: dict[str, Json] = {
    "a turn with one part": {"contents": [{"role": "user", "parts": {"functionResponse": PAIR}}]},
    "one turn with one part": {"contents": {"role": "user", "parts": {"function_response": PAIR}}},
    "a result with one part beside it": {
        "contents": [{"parts": [{"functionResponse": {"name": "a", "response": {"result": "KEEP"}, "parts": PART}}]}]
    },
    "one tool": {"contents": [{"parts": {"text": "KEEP"}}], "tools": {"functionDeclarations": [POLL, KEPT]}},
    "a tool with one declaration": {
        "contents": [{"parts": {"text": "KEEP"}}],
        "tools": [{"functionDeclarations": POLL}, {"function_declarations": KEPT}],
    },
    "one tool with one declaration": {
        "contents": [{"parts": {"text": "KEEP"}}],
        "tools": {"functionDeclarations": POLL},
        "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
    },
}


@pytest.mark.parametrize("case", SINGLE)
def test_what_gemini_reads_as_a_list_of_one_is_looked_at_like_the_list(case: str) -> None:
    body = sent("gemini", json.dumps(SINGLE[case]).encode()).body
    assert b"DROP" not in body
    assert b"KEEP" in body
    assert sent("gemini", body).body is body, "an ordinary one passes as it is"
    assert "toolConfig" not in json.loads(body)


@pytest.mark.parametrize(
    "kind", ["function", "custom_tool", "shell", "local_shell", "apply_patch", "computer", "xyz_tool"]
)
def test_outputs_of_every_kind_of_call_are_looked_at(kind: str) -> None:
    item = {"type": f"{kind}_call_output", "call_id": "c", "output": json.dumps([UI, {"type": "text", "text": "KEEP"}])}
    body = sent("openai", json.dumps({"input": [item]}).encode()).body
    assert b"DROP" not in body
    assert b"KEEP" in body


def test_a_result_is_none_of_another_call_that_has_no_id() -> None:
    calls = [{"function": {"name": "weather"}}, {"function": {"name": "poll"}}]
    known = provider.Known(app_only=frozenset({"poll"}))
    for named in ("name", "tool_name"):
        answers = [
            {"role": "tool", named: "weather", "content": "KEEP"},
            {"role": "tool", named: "poll", "content": "DROP"},
        ]
        raw = json.dumps({"messages": [{"role": "assistant", "tool_calls": calls}, *answers]}).encode()
        body = sent("openai", raw, known).body
        assert b"KEEP" in body
        assert b"DROP" not in body


PAGE = "<!doctype html>\n<html>DROP" + "<p>\u00bf?</p>\n" * 300 + "</html>"
SMALL = "<div class='view'>DROP</div>"
TOLD = provider.Known(
    ui_bodies=provider.body_digests(PAGE) | {provider.digest_body(SMALL)},
    heads=gathered([head for one in (PAGE, SMALL) if (head := head_of(one))]),
)


def chat(content: str) -> bytes:
    return json.dumps({"messages": [{"role": "tool", "content": content}]}).encode()


@pytest.mark.parametrize("text", [PAGE, SMALL], ids=["page", "small"])
@pytest.mark.parametrize("levels", [1, 127, 129, 300, 900, 5000])
@pytest.mark.parametrize("cut", ["whole", "cut"])
def test_a_known_text_in_json_in_a_string_is_found_or_gives_way_however_deep(cut: str, levels: int, text: str) -> None:
    document = "[" * levels + json.dumps(text) + ("]" * levels if cut == "whole" else "")
    assert b"DROP" not in sent("openai", chat(document), TOLD).body


def test_a_small_known_text_is_found_where_its_writer_escapes_markup() -> None:
    document = json.dumps({"text": SMALL}).replace("<", "\\u003c").replace(">", "\\u003e")
    assert b"DROP" not in sent("openai", chat(document), TOLD).body


def test_a_log_with_brackets_that_never_close_is_no_deep_json() -> None:
    raw = chat("[vite] start\n" + '\x1b[32mINFO\x1b[0m "data"\n' * 300)
    assert sent("openai", raw).body is raw


ENCODED = base64.b64encode(PAGE.encode()).decode()
WRITTEN = {
    "as it is": ENCODED,
    "in lines": base64.encodebytes(PAGE.encode()).decode(),
    "in lines of mail": "\r\n".join(ENCODED[at : at + 76] for at in range(0, len(ENCODED), 76)),
    "in the alphabet of URLs": base64.urlsafe_b64encode(PAGE.encode()).decode(),
    "without what fills it up": ENCODED.rstrip("="),
    "as a URL": "DATA:text/html;Base64," + ENCODED,
}


@pytest.mark.parametrize("how", WRITTEN)
def test_a_known_text_is_found_in_base64_however_that_is_written(how: str) -> None:
    block = {"type": "document", "source": {"type": "base64", "media_type": "text/html", "data": WRITTEN[how]}}
    body = {
        "messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": [block]}]}]
    }
    assert sent("anthropic", json.dumps(body).encode(), TOLD).removed == {"body": 1}


def test_a_count_of_tokens_of_converse_is_looked_at() -> None:
    result = {"toolUseId": "t", "content": [{"json": {"content": [UI, {"type": "text", "text": "KEEP"}]}}]}
    body = {"input": {"converse": {"messages": [{"role": "user", "content": [{"toolResult": result}]}]}}}
    after = sent("bedrock", json.dumps(body).encode()).body
    assert b"DROP" not in after
    assert b"KEEP" in after
