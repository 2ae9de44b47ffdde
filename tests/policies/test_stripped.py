"""What is taken out for hosts without Apps is counted by what it was."""

from typing import Any

import pytest

from policies import apps
from policies.delivery import Addressee, deliver
from policies.exchange import Answer, Dialect
from policies.stripped import MAX_DEPTH, taken_out

MODERN = Dialect("modern", "2026-07-28")
UI = {"resourceUri": "ui://shop/cart"}
TEXT = {"type": "text", "text": "two eggs"}


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **more}


CASES = {
    "nothing": ("tools/list", {"tools": [tool("a")]}, {}),
    "a tool that is for interfaces alone": (
        "tools/list",
        {"tools": [tool("a"), tool("b", _meta={"ui": {"visibility": ["app"]}}), tool("c")]},
        {"tools": 1},
    ),
    "the metadata of tools that stay": (
        "tools/list",
        {"tools": [tool("a", _meta={"ui": UI}), tool("b", _meta={"ui": UI, "kept": 1}), tool("c")]},
        {"_meta": 2},
    ),
    "both": (
        "tools/list",
        {"tools": [tool("b", _meta={"ui": {"visibility": ["app"]}}), tool("a", _meta={"ui": UI})]},
        {"tools": 1, "_meta": 1},
    ),
    "resources": (
        "resources/list",
        {"resources": [{"uri": "ui://shop/cart", "name": "cart"}, {"uri": "note://a", "name": "a"}]},
        {"resources": 1},
    ),
    "content of a result": (
        "tools/call",
        {"content": [TEXT, {"type": "resource", "resource": {"uri": "ui://shop/cart", "text": "<p>"}}]},
        {"content": 1},
    ),
    "all the content there is": (
        "tools/call",
        {"content": [{"type": "resource", "resource": {"uri": "ui://shop/cart", "text": "<p>"}}]},
        {"content": 1},
    ),
    "what a server says of itself": (
        "server/discover",
        {"capabilities": {"extensions": {"io.modelcontextprotocol/ui": {}, "other": {}}}},
        {"extensions": 1},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_items_are_counted_by_what_they_were(name: str) -> None:
    method, result, counts = CASES[name]
    stripped = apps.strip_result(method, {}, result, "modern")
    assert dict(taken_out(result, stripped)) == counts
    message = deliver(Answer(result, MODERN), Addressee(MODERN, 1, method, {}))
    assert message is not None
    assert dict(message.stripped) == counts
    shown = deliver(Answer(result, MODERN), Addressee(MODERN, 1, method, {}, shows_apps=True))
    assert shown is not None
    assert shown.stripped == ()


def test_a_message_of_which_nothing_is_left_counts_as_one() -> None:
    assert taken_out({"params": {"uri": "ui://x"}}, None) == (("message", 1),)


def test_what_lies_deep_is_not_looked_for() -> None:
    before: Any = {"gone": 1}
    after: Any = {}
    for _ in range(10 * MAX_DEPTH):
        before, after = {"in": before}, {"in": after}
    assert taken_out(before, after) == ()
