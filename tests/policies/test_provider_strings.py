"""JSON in strings of results: nested, torn, doubled, escaped, deep; written anew only where something in it changed."""

import json
from typing import Any

import pytest

from policies import provider
from policies.mcp import Json
from policies.provider import Known
from policies.provider_results import TOO_DEEP
from tests.policies.conversations import APIS, PLACEHOLDER, stripped

TEXT = '{"type": "text", "text": "Sunny"}'
APP = '{"type": "resource", "resource": {"uri": "ui://x", "text": "<html>APP</html>"}}'


def sent_of(text: str, **how: Any) -> tuple[str, dict[str, int], bool]:
    """What a chat's tool message says after, what was removed, and whether the bytes are the very same."""
    body = {"messages": [{"role": "tool", "tool_call_id": "c", "content": text}]}
    sent, removed, is_same = stripped(APIS["chat"], body, **how)
    content: str = sent["messages"][0]["content"]
    return content, removed, is_same


KEPT: dict[str, tuple[str, str]] = {
    # a text before and after: all but what is cut out keeps its form
    "indented": (
        f'{{\n  "content": [\n    {TEXT},\n    {APP}\n  ],\n  "n": 1.50\n}}',
        f'{{\n  "content": [\n    {TEXT}\n  ],\n  "n": 1.50\n}}',
    ),
    "with exact numbers": (
        f'[{APP}, {{"n": 9007199254740993, "f": 0.1000000000000000055511151231257827, "e": 1E400, "z": -0}}]',
        '[{"n": 9007199254740993, "f": 0.1000000000000000055511151231257827, "e": 1E400, "z": -0}]',
    ),
    "with escapes": (rf'[{APP},"\u00e9\/\ud83d\ude00 é"]', r'["\u00e9\/\ud83d\ude00 é"]'),
    "with half a surrogate pair": (rf'[{APP},{{"half":"\ud83d"}}]', r'[{"half":"\ud83d"}]'),
    "with half a pair that the body itself escapes": (f'[{APP},"\ud83d"]', r'["\ud83d"]'),
    "with the names of a user": (
        f'{{"_meta": {{"ui": 1}}, "r": [{TEXT}, {APP}]}}',
        f'{{"_meta": {{"ui": 1}}, "r": [{TEXT}]}}',
    ),
    "after blanks": (f" \n[{TEXT},{APP}]", f" \n[{TEXT}]"),
    "in a string in a string": (
        json.dumps([json.dumps({"r": f"[{TEXT},{APP}]", "n": 1})]),
        json.dumps([json.dumps({"r": f"[{TEXT}]", "n": 1})]),
    ),
    "as a string of JSON": (json.dumps(f"[{TEXT},{APP}]"), json.dumps(f"[{TEXT}]", separators=(",", ":"))),
    "before more text": (
        f"[{TEXT}, {APP}] is what it said,\nand {{ more }}",
        f"[{TEXT}] is what it said,\nand {{ more }}",
    ),
    "one after the other": (f"[{TEXT}, {APP}]{TEXT} [{TEXT}]", f"[{TEXT}]{TEXT} [{TEXT}]"),
    "between lines of text": (f"[info] asked\n[{TEXT}, {APP}]\n[info] done", f"[info] asked\n[{TEXT}]\n[info] done"),
    "line by line": (f"{TEXT}\n{APP}\n\nnot JSON", f"{TEXT}\n{PLACEHOLDER}\n\nnot JSON"),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_stays_keeps_its_form(name: str) -> None:
    before, after = KEPT[name]
    content, removed, _ = sent_of(before)
    assert content == after
    assert removed == {"resource": 1}


def test_numbers_that_are_none_hide_nothing() -> None:
    content, removed, _ = sent_of(f'{{"content": [{TEXT}, {APP}], "structuredContent": {{"a": NaN, "b": -Infinity}}}}')
    assert content == f'{{"content": [{TEXT}], "structuredContent": {{"a": NaN, "b": -Infinity}}}}'
    assert removed == {"resource": 1}


HIDDEN_MARKS: dict[str, str] = {
    "a letter of the scheme": r'[{"type":"resource","resource":{"uri":"\u0075i://x","text":"APP"}},T]',
    "the colon": r'[{"type":"resource","resource":{"uri":"ui\u003a//x","text":"APP"}},T]',
    "the name of a member": r'[{"type":"resource","resource":{"\u0075ri":"u\u0069:x","text":"APP"}},T]',
    "a blank before": r'[{"type":"resource","resource":{"uri":"\n\t ui://x","text":"APP"}},T]',
    "a break within": r'[{"type":"resource","resource":{"uri":"u\u000ai://x","text":"APP"}},T]',
    "a slash of the MIME type": r'[{"type":"resource_link","uri":"x:APP","mimeType":"text\/html+skybridge"},T]',
    "the underscore": r'[{"type":"text","text":"Sunny","\u005fmeta":{"x":"APP"}}]',
    "every letter": '[{"type":"text","text":"Sunny","' + "".join(f"\\u{ord(c):04x}" for c in "_meta") + '":"APP"}]',
    "in a string": json.dumps([r'[{"type":"resource","resource":{"uri":"\u0075i://x","text":"APP"}},T]']),
}


@pytest.mark.parametrize("name", HIDDEN_MARKS)
@pytest.mark.parametrize("how", ["plain", "escaped", "all escaped"])
def test_escapes_hide_nothing(name: str, how: str) -> None:
    text = HIDDEN_MARKS[name].replace(",T]", ',{"type":"text","text":"Sunny"}]')
    if name == "in a string":
        text = json.dumps([HIDDEN_MARKS["a letter of the scheme"].replace(",T]", ',{"type":"text","text":"Sunny"}]')])
    body = json.dumps({"messages": [{"role": "tool", "tool_call_id": "c", "content": text}]})
    if how == "escaped":
        body = body.replace('\\"', "\\u0022").replace("\\\\", "\\u005c")
    if how == "all escaped":
        content = "".join(f"\\u{ord(one):04X}" for one in text)
        body = f'{{"messages":[{{"\\u0072ole":"\\u0074ool","content":"{content}"}}]}}'
    done = provider.strip(provider.candidates("openai", body.encode(), "/v1/chat/completions", has_ledger=False))
    assert b"APP" not in done.body
    content = json.loads(done.body)["messages"][0]["content"]
    assert "Sunny" in content
    assert "APP" not in content


TORN: dict[str, tuple[str, str]] = {
    "within the page": (f'{{"content":[{TEXT},{APP[:-20]}', '{"content":[{"type":"text","text":"Sunny"}]}'),
    "after the page": (f'{{"content":[{TEXT},{APP},', '{"content":[{"type":"text","text":"Sunny"}]}'),
    "within a number": (f'{{"content":[{TEXT},{APP}],"n":12', '{"content":[{"type":"text","text":"Sunny"}]}'),
    "within a literal": (f'[{APP},"a",tru', '["a"]'),
    "within an escape": (f'[{APP},"a\\u00', '["a"]'),
}


@pytest.mark.parametrize("name", TORN)
def test_json_that_ends_too_early_is_looked_at_as_far_as_it_goes(name: str) -> None:
    before, after = TORN[name]
    content, removed, _ = sent_of(before)
    assert removed == {"resource": 1}
    assert "APP" not in content
    assert content.replace(" ", "").startswith(after.rstrip("]}"))


UNCHANGED = {
    "torn, with nothing of an interface": '{"content":[{"type":"text","text":"Sun',
    "torn, the user's own": '{"mappings": {"_meta": {"ui": "ui://x"}, "prop',
    "no JSON": "{not JSON, ui:// and _meta}",
    "two values": f"{TEXT} {TEXT}",
    "an error in its midst": f'{{"content":[{TEXT}, oops, {TEXT}], "_meta": {{"ui": 1}}}}',
    "numbers that are none": '{"a": NaN, "_meta": {"ui": 1}}',
    "a member twice, the user's own": '{"_meta": 1, "_meta": 2}',
    "a quote escaped by its number": r'{"_meta": "\u0022"}',
    "a template": '{"_meta": {{ meta }}, "ui": "ui://x"}',
    "code": '["ui://x", "_meta"].forEach(x => register({type: "resource", uri: x}))',
    "a single bracket": "[",
    "a quotation": '"_meta" is a name, "ui://x" an address.',
}


@pytest.mark.parametrize("name", UNCHANGED)
def test_what_only_looks_like_it_is_untouched(name: str) -> None:
    assert sent_of(UNCHANGED[name]) == (UNCHANGED[name], {}, True)


DOUBLED = {
    "the last hides the first": f'{{"content":[{TEXT}],"_meta":{{"x":"APP"}},"content":[{TEXT}]}}',
    "the first of two contents": f'{{"content":[{APP}],"content":[{TEXT}]}}',
    "the first is what makes it MCP's": f'{{"content":[{APP}],"content":"Sunny"}}',
    "the first of two addresses": f'[{TEXT},{{"type":"resource","resource":{{"uri":"ui://x","text":"APP","uri":"x:","text":"t"}}}}]',
}  # fmt: skip


@pytest.mark.parametrize("name", DOUBLED)
def test_of_a_member_that_stands_twice_the_last_is_sent(name: str) -> None:
    content, removed, _ = sent_of(DOUBLED[name])
    assert "APP" not in content
    assert "Sunny" in content
    assert removed
    assert sent_of(content)[2]


def test_of_a_member_that_stands_twice_beside_an_interface_the_last_is_sent() -> None:
    content, removed, _ = sent_of(f'{{"a": 1, "a": 2, "r": [{TEXT}, {APP}]}}')
    assert content == '{"a":2,"r":[{"type":"text","text":"Sunny"}]}'
    assert removed == {"repeated": 1, "resource": 1}


def test_of_a_member_that_stands_twice_in_the_body_the_last_is_sent() -> None:
    text = r"[{\"type\":\"text\",\"text\":\"a\",\"_meta\":0}]"
    body = f'{{"messages":[{{"role":"tool","content":"{text}"}}],"messages":[]}}'.encode()
    done = provider.strip(provider.candidates("openai", body, "/v1/chat/completions"))
    assert (done.body, done.removed) == (b'{"messages":[]}', {"repeated": 1})
    plain = body.replace(b"_meta", b"other")
    assert provider.strip(provider.candidates("openai", plain, "/v1/chat/completions")).body is plain


def nested(levels: int, inner: str, brackets: str = "[]") -> str:
    return brackets[0] * levels + inner + brackets[1] * levels


@pytest.mark.parametrize("levels", [100, 126, 127, 128, 129, 200, 500, 2000, 200_000])
def test_what_is_nested_beyond_the_bound_gives_way_where_it_could_hold_an_interface(levels: int) -> None:
    content, removed, _ = sent_of(nested(levels, f"{TEXT},{APP}"))
    assert "APP" not in content
    assert ("Sunny" in content) == (levels <= 128)
    assert removed == ({"resource": 1} if levels < 128 else {"depth": 1})
    assert (TOO_DEEP in content) == (levels >= 128)
    assert sent_of(nested(levels, '"nothing of it"'))[2]


def test_the_bound_counts_strings_in_strings() -> None:
    text = f"[{TEXT},{APP}]"
    for _ in range(8):
        text = json.dumps(nested(4, json.dumps(text)))
    assert "Sunny" in sent_of(text)[0]
    assert "APP" not in sent_of(text)[0]
    content, removed, _ = sent_of(text, bounds=provider.Bounds(max_depth=20))
    assert removed == {"depth": 1}
    assert "APP" not in content


@pytest.mark.parametrize("levels", [100, 200, 800])
def test_geminis_json_is_bounded_too(levels: int) -> None:
    deep: Any = [json.loads(TEXT), json.loads(APP)]
    for _ in range(levels):
        deep = {"a": deep}
    sent, removed, _ = stripped(APIS["gemini"], APIS["gemini"].body([], [("f", deep)]))
    assert "APP" not in json.dumps(sent)
    assert removed == ({"resource": 1} if levels == 100 else {"depth": 1})


PRESENTATION: Json = {"server": "s", "tool": "t", "resourceUri": "ui://x", "rawResult": {"content": ["APP"]}}


def test_a_presentation_goes_from_strings_and_a_users_flag_stays() -> None:
    text = json.dumps({"result": [{"mcp_app": PRESENTATION, "a": 1}], "features": {"mcp_app": True}})
    content, removed, _ = sent_of(text)
    assert json.loads(content) == {"result": [{"a": 1}], "features": {"mcp_app": True}}
    assert removed == {"presentation": 1}


def test_numbers_of_a_body_keep_their_form_where_something_is_removed() -> None:
    body = b'{ "seed" : 12345678901234567890, "temperature": 1.50, "messages" : [ {"role": "user", "content": "a", "_meta": {}} ] }'  # noqa: E501
    done = provider.strip(provider.candidates("openai", body, "/v1/chat/completions"), Known())
    assert done.body == body.replace(b', "_meta": {}', b"")
