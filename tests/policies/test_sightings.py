"""What is remembered of answers to hosts that show Apps: by wire examples, and a book's bounds."""

import base64
from typing import Any

import pytest

from policies.provider import body_digests, digest_tool
from policies.provider_heads import head_of
from policies.sightings import MAX_MARKS, Book, can_show, marks_of

HTML = "text/html;profile=mcp-app"
PAGE = "<html>" + "x" * 1100 + "</html>"
BODIES = {("head", head_of(PAGE)), *(("body", digest) for digest in body_digests(PAGE))}
BLOCK: dict[str, Any] = {"type": "resource", "resource": {"uri": "ui://a", "mimeType": HTML, "text": PAGE}}
HIDDEN: dict[str, Any] = {"name": "poll", "description": "d", "inputSchema": {}, "_meta": {"ui": {"visibility": []}}}
HIDES = {("hidden", "poll"), ("definition", digest_tool("poll", "d", {}))}

CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any], set[tuple[str, str]]]] = {
    "a list without interfaces": (
        "tools/list",
        {},
        {"tools": [{"name": "a"}, {"name": "b", "_meta": {"v": 1}}]},
        set(),
    ),
    "a list with one": (
        "tools/list",
        {},
        {"tools": [{"name": "a"}, {"name": "b", "_meta": {"ui/resourceUri": "ui://b"}}]},
        {("plain", "a"), ("shown", "b")},
    ),
    "the OpenAI Apps SDK's": (
        "tools/list",
        {},
        {"tools": [{"name": "b", "_meta": {"openai/outputTemplate": "ui://b"}}]},
        {("shown", "b")},
    ),
    "a tool for interfaces alone": ("tools/list", {}, {"tools": [HIDDEN]}, HIDES),
    "odd tools": ("tools/list", {}, {"tools": [None, {"name": 1}, {"name": "x" * 300}, HIDDEN]}, HIDES),
    "no list": ("tools/list", {}, {"tools": {"name": "a"}}, set()),
    "a read of an interface": (
        "resources/read",
        {"uri": "UI://a"},
        {"contents": [{"uri": "a", "text": PAGE}]},
        BODIES,
    ),
    "a read of something else": (
        "resources/read",
        {"uri": "note://a"},
        {"contents": [{"uri": "a", "text": PAGE}]},
        set(),
    ),
    "by its type alone": (
        "resources/read",
        {"uri": "note://a"},
        {"contents": [{"uri": "a", "mimeType": HTML, "text": PAGE}, {"uri": "b", "text": PAGE + "b"}]},
        BODIES,
    ),
    "in base64": (
        "resources/read",
        {"uri": "ui://a"},
        {"contents": [{"uri": "ui://a", "blob": base64.b64encode(PAGE.encode()).decode()}]},
        BODIES | {("body", one) for one in body_digests(base64.b64encode(PAGE.encode()).decode())},
    ),
    "no base64": (
        "resources/read",
        {"uri": "ui://a"},
        {"contents": [{"uri": "ui://a", "blob": "\u00e9" * 2000}]},
        {("body", one) for one in body_digests("\u00e9" * 2000)},
    ),
    "a short one": ("resources/read", {"uri": "ui://a"}, {"contents": [{"uri": "ui://a", "text": "<html>"}]}, set()),
    "embedded in a result": (
        "tools/call",
        {"name": "show"},
        {"content": [{"type": "text", "text": PAGE}, BLOCK]},
        BODIES | {("shown", "show")},
    ),
    "embedded by its type": (
        "tools/call",
        {"name": 1},
        {"content": [{"type": "resource", "resource": {"uri": "a", "mimeType": "text/html+skybridge", "text": PAGE}}]},
        BODIES,
    ),
    "in a block in a block": (
        "tools/call",
        {"name": "show"},
        {"content": [{"type": "tool_result", "content": [{"type": "tool_result", "content": [BLOCK]}]}]},
        BODIES | {("shown", "show")},
    ),
    "in a task that is over": ("tasks/get", {"taskId": "t"}, {"result": {"content": [BLOCK]}}, BODIES),
    "in a task's result": ("tasks/result", {"taskId": "t"}, {"content": [BLOCK]}, BODIES),
    "in a prompt": (
        "prompts/get",
        {"name": "p"},
        {"messages": [{"role": "user", "content": BLOCK}, {"role": "user", "content": [BLOCK]}, "odd"]},
        BODIES,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_remembered(case: str) -> None:
    method, params, result, wanted = CASES[case]
    assert can_show(method)
    found = marks_of(method, params, result)
    assert set(found) == wanted
    assert len(found) == len(wanted)


def test_of_one_message_no_more_than_so_much_is_remembered() -> None:
    tools = [{"name": f"t{n}", "_meta": {"ui": {}}} for n in range(MAX_MARKS + 10)]
    assert len(marks_of("tools/list", {}, {"tools": tools})) == MAX_MARKS


def test_other_methods_have_nothing_to_remember() -> None:
    assert not any(map(can_show, ("resources/list", "initialize", "server/discover", "ping", "completion/complete")))


def test_a_mark_is_news_where_it_is_new_or_was_seen_long_ago() -> None:
    book = Book(10, 400)
    assert [book.add(("shown", "a"), now_s) for now_s in (0, 1, 100, 101, 102, 300)] == [
        True,
        False,
        False,
        True,
        False,
        True,
    ]


def test_a_mark_counts_for_its_time_after_it_was_seen() -> None:
    book = Book(10, 400)
    book.add(("body", "d"), 0)
    assert book.among("body", {"d", "e"}, 400) == {"d"}
    assert book.among("shown", {"d"}, 0) == frozenset()
    assert book.among("body", {"d"}, 401) == frozenset()
    assert not book.has_names(0)
    book.add(("plain", "t"), 0)
    assert book.has_names(400)
    assert not book.has_names(401)


def test_the_least_used_mark_is_the_first_to_go() -> None:
    book = Book(2, 400)
    for word in "abac":
        book.add(("shown", word), 0)
    assert book.among("shown", "abc", 0) == {"a", "c"}
    assert len(book) == 2
