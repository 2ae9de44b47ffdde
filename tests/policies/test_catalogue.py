"""Names are told where their upstream lists them, and never more than fit."""

import json

import pytest

from policies.catalogue import MAX_CHARS, MAX_NAMES, Catalogue
from policies.mcp import Json
from policies.peek import MAX_ASKS_BYTES, input_required, listed_names


@pytest.mark.parametrize(
    ("method", "name", "label"),
    [
        ("tools/call", "listed", "listed"),
        ("tools/call", "greet", "_OTHER"),
        ("tools/call", "Listed", "_OTHER"),
        ("tools/call", None, "_OTHER"),
        ("tools/call", ["listed"], "_OTHER"),
        ("prompts/get", "greet", "greet"),
        ("resources/read", "note://secret", ""),
        ("tools/list", None, ""),
        ("_OTHER", "listed", ""),
    ],
)
def test_a_name_is_one_that_the_upstream_lists_or_other(method: str, name: object, label: str) -> None:
    known = Catalogue()
    known.learn("tools/list", {"tools": [{"name": "listed"}, {"name": 1}, {}, "x", None]})
    known.learn("prompts/list", {"prompts": [{"name": "greet"}]})
    known.learn("resources/list", {"resources": [{"name": "note://secret"}]})
    assert known.label(method, name) == label


@pytest.mark.parametrize("result", [{}, {"tools": None}, {"tools": {"name": "x"}}, {"tools": "x"}])
def test_an_odd_list_names_nothing(result: Json) -> None:
    known = Catalogue()
    known.learn("tools/list", result)
    assert known.label("tools/call", "x") == "_OTHER"


def test_there_is_room_for_so_many_names_and_they_stay() -> None:
    known = Catalogue()
    names = [f"tool-{number}" for number in range(MAX_NAMES + 5)]
    for each in (names[:100], names):
        known.learn("tools/list", {"tools": [{"name": name} for name in each]})
    known.learn("tools/list", {"tools": []})
    labels = [known.label("tools/call", name) for name in names]
    assert labels == names[:MAX_NAMES] + ["_OTHER"] * 5
    known.learn("prompts/list", {"prompts": [{"name": "room of its own"}]})
    assert known.label("prompts/get", "room of its own") == "room of its own"


@pytest.mark.parametrize("name", ["x" * (MAX_CHARS + 1), "two\nlines", "\x1b[31m", "\x00"])
def test_a_name_that_no_server_should_have_is_not_told(name: str) -> None:
    known = Catalogue()
    known.learn("tools/list", {"tools": [{"name": name}]})
    assert known.label("tools/call", name) == "_OTHER"


@pytest.mark.parametrize(
    ("raw", "names"),
    [
        (b'{"id":1,"result":{"tools":[{"name":"a","inputSchema":{"type":"object"}},{"name":"b"}]}}', ["a", "b"]),
        (b'{"id":1,"result":{"prompts":[{"name":"p"}],"nextCursor":"x"}}', ["p"]),
        (b'{"id":1,"result":{"tools":[{"name":1},{},{"name":"c"}]}}', ["c"]),
        (b'{"id":1,"result":{"tools":{"name":"a"}}}', []),
        (b'{"id":1,"error":{"code":-32603,"message":"m"}}', []),
        (b"{", []),
    ],
)
def test_the_names_of_a_list_are_read_off_its_bytes(raw: bytes, names: list[str]) -> None:
    assert list(listed_names(raw)) == names


ASKS = {"resultType": "input_required", "inputRequests": {"k": {"method": "roots/list", "params": {}}}}


@pytest.mark.parametrize(
    ("message", "found"),
    [
        ({"result": ASKS}, True),
        ({"result": {"content": [{"type": "text", "text": '"input_required"'}]}}, False),
        ({"result": {"content": [], "structuredContent": {"resultType": "input_required"}}}, False),
        ({"error": {"code": 1, "message": "input_required"}}, False),
        ({"result": {**ASKS, "pad": "x" * MAX_ASKS_BYTES}}, False),
    ],
)
def test_an_answer_that_asks_is_told_from_one_that_speaks_of_asking(message: Json, found: bool) -> None:
    assert (input_required(json.dumps(message).encode()) is not None) == found
