"""What a desktop host keeps of an App, within its bounds."""

import base64
import json
from typing import Any

import pytest

from policies.mcp import Json
from policies.presentation import MAX_BYTES, MAX_INLINE, bounded

NAMED: Json = {"server": "maps", "tool": "show", "generation": 2**53 + 1, "resourceUri": "ui://maps/a.html"}
CSP: Json = {"connectDomains": ["https://a.example"]}
TEXT: Json = {"type": "text", "text": "n=1"}


def size(value: Any) -> int:
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())


def filled(value: Json, member: str, total: int) -> Json:
    """`value` with a string member that makes it exactly `total` bytes long."""
    bare = {**value, member: {"t": ""}}
    return {**value, member: {"t": "x" * (total - size(bare))}}


def test_what_fits_is_the_very_same() -> None:
    whole = {**NAMED, "csp": CSP, "rawResult": {"content": [TEXT], "_meta": {"viewUUID": "u"}}, "structured": [1]}
    assert bounded(whole) is whole


@pytest.mark.parametrize("members", [{}, {"csp": CSP}, {"csp": CSP, "rawResult": {"content": [TEXT]}}])
def test_exactly_at_the_cap_it_stays_whole_and_one_byte_over_it_gives_something_up(members: Json) -> None:
    at = filled({**NAMED, **members}, "structured", MAX_BYTES)
    assert size(at) == MAX_BYTES
    assert bounded(at) is at
    over = filled({**NAMED, **members}, "structured", MAX_BYTES + 1)
    assert bounded(over) == {**NAMED, **members}


def heavy(member: str, share: float) -> Json:
    return {member: {"t": "x" * int(MAX_BYTES * share)}}


STEPS: list[tuple[str, Json, set[str] | None]] = [
    # sentence, members beside the names, what of them stays
    ("the structured result goes first", {**heavy("rawResult", 0.6), **heavy("structured", 0.6), "csp": CSP}, {"csp"}),
    (
        "where the raw one alone is too much, the structured one comes back",
        {**heavy("rawResult", 1.1), **heavy("structured", 0.5), "csp": CSP},
        {"structured", "csp"},
    ),
    ("both go", {**heavy("rawResult", 1.1), **heavy("structured", 1.1), "csp": CSP}, {"csp"}),
    ("then what it may load", {"csp": {"connectDomains": ["x" * MAX_BYTES]}, "structured": 1}, set()),
    ("at last all of it", {"resourceUri": "ui://" + "x" * MAX_BYTES, "csp": CSP}, None),
]


@pytest.mark.parametrize(("sentence", "members", "kept"), STEPS)
def test_over_the_cap_it_is_given_up_in_order(sentence: str, members: Json, kept: set[str] | None) -> None:
    whole = {**NAMED, **members}
    if sentence == "the structured result goes first":
        kept = {"rawResult", "csp"}
    expected = None if kept is None else {**NAMED, **{name: members[name] for name in kept}}
    assert bounded(whole) == expected


B64 = base64.b64encode(b"x" * 524_387).decode()

BLOCKS: list[tuple[str, Json, bool]] = [
    ("audio", {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}, False),
    ("video", {"type": "video", "data": "aGk="}, False),
    ("anything of a video's type", {"type": "resource_link", "uri": "file:///a", "mimeType": "Video/mp4"}, False),
    ("data at the limit", {"type": "image", "data": "x" * MAX_INLINE, "mimeType": "image/png"}, True),
    ("data one over it", {"type": "image", "data": "x" * (MAX_INLINE + 1), "mimeType": "image/png"}, False),
    ("a blob at the limit", {"type": "resource", "resource": {"uri": "a:b", "blob": "x" * MAX_INLINE}}, True),
    ("a blob one over it", {"type": "resource", "resource": {"uri": "a:b", "blob": "x" * (MAX_INLINE + 1)}}, False),
    ("data deep inside", {"type": "x", "a": [{"b": [{"data": "x" * 4097}]}]}, False),
    ("a long text", {"type": "text", "text": "x" * 9000}, True),
    ("data that is no string", {"type": "x", "data": {"a": "x" * 9000}}, True),
]


@pytest.mark.parametrize(("sentence", "block", "stays"), BLOCKS)
def test_inline_media_leave_before_anything_is_counted(sentence: str, block: Json, stays: bool) -> None:
    whole = {**NAMED, "rawResult": {"content": [TEXT, block], "isError": True, "x": 2**64 + 1}}
    kept = bounded(whole)
    assert kept == {**whole, "rawResult": {**whole["rawResult"], "content": [TEXT, block] if stays else [TEXT]}}


def test_base64_under_another_name_counts_like_anything_else() -> None:
    assert len(B64) == 699_184
    whole = {**NAMED, "rawResult": {"content": [TEXT, {"type": "x", "payload": B64}]}, "structured": {"n": 1}}
    assert bounded(whole) == {**NAMED, "structured": {"n": 1}}


@pytest.mark.parametrize("raw", [None, [], "text", {"content": "x"}, {"content": None}])
def test_a_raw_result_that_is_none_stays_as_it_is(raw: Any) -> None:
    whole = {**NAMED, "rawResult": raw}
    assert bounded(whole) is whole


def test_depth_is_no_danger() -> None:
    deep: Any = {"data": "x" * 5000}
    for _ in range(400):
        deep = {"a": [deep]}
    assert bounded({**NAMED, "rawResult": {"content": [deep]}}) == {**NAMED, "rawResult": {"content": []}}
