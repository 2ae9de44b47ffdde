"""A JSON text with values changed: what was not changed keeps every byte."""

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies import jsonrpc
from policies.splice import GONE, splice, without_gone


def less(value: Any, *path: Any) -> Any:
    """A value without what is at a path: the very objects of it otherwise, as a transform leaves them."""
    step, *rest = path

    def change(name: Any, one: Any) -> Any:
        return one if name != step else less(one, *rest) if rest else GONE

    if isinstance(value, list):
        return [change(place, one) for place, one in enumerate(value)]
    after = {name: change(name, member) for name, member in value.items()}
    return {name: member for name, member in after.items() if member is not GONE}


KEPT = {
    "a member in the middle": ('{"a": 1, "b": 2, "c": 3}', ("b",), '{"a": 1, "c": 3}'),
    "the first member": ('{ "a" :1 ,\n"b": 2.50 }', ("a",), '{ "b": 2.50 }'),
    "the last member": ('{"a": 1e5, "b": 2 }', ("b",), '{"a": 1e5 }'),
    "the only member": ('{ "a": 1 }', ("a",), "{  }"),
    "the first element": ("[1, 2,\n 3]", (0,), "[2,\n 3]"),
    "the last element": ("[1, 2,\n 3\n]", (2,), "[1, 2\n]"),
    "something deep": ('{"x": [ {"y": 1.0, "z": []} ]}', ("x", 0, "z"), '{"x": [ {"y": 1.0} ]}'),
    "beside exact numbers": ('{"n": 9007199254740993, "f": 0.10000000000000000001, "x": 0}', ("x",), None),
    "beside half a surrogate pair": (r'{"s": "\ud800 \u00e9 \/", "x": 0}', ("x",), None),
    "beside names that look like values": ('{"a": "a", "\\"b\\": ": "\\\\", "c": {"a": "a"}, "x": 0}', ("x",), None),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_is_not_changed_keeps_its_bytes(name: str) -> None:
    text, path, expected = KEPT[name]
    before = jsonrpc.loads(text.encode())
    if expected is None:
        expected = text.replace(', "x": 0', "")
    assert splice(text.encode(), before, less(before, *path)).decode() == expected


def test_an_unchanged_value_is_the_very_same_text() -> None:
    raw = b'{ "a" : [1,  2] }'
    before = jsonrpc.loads(raw)
    assert splice(raw, before, before) is raw


def test_a_list_of_another_length_is_written_anew_and_the_rest_is_not() -> None:
    raw = b'{"a" : [1, 2], "b" : [ 3 ]}'
    before = jsonrpc.loads(raw)
    assert splice(raw, before, {**before, "a": [9]}) == b'{"a" : [9], "b" : [ 3 ]}'


def test_a_member_that_was_not_there_makes_its_object_be_written_anew() -> None:
    raw = b'{"a" : {"b" : 1}, "c" : 2}'
    before = jsonrpc.loads(raw)
    assert splice(raw, before, {**before, "a": {"b": 1, "d": GONE.value}}) == b'{"a" : {"b":1,"d":"gone"}, "c" : 2}'


@pytest.mark.parametrize("text", ['{"a":1,"a":2,"x":0}', '{"a":1,"x":0,"a":1}', '{"x":0,"x":0,"a":2}'])
def test_where_a_name_stands_twice_the_last_is_written_once(text: str) -> None:
    before = jsonrpc.loads(text.encode())
    after = splice(text.encode(), before, less(before, "x"))
    assert json.loads(after, object_pairs_hook=list) == [("a", before["a"])]


def test_what_is_nested_too_deeply_to_be_written_is_an_error() -> None:
    deep: Any = []
    for _ in range(3000):
        deep = [deep]
    with pytest.raises(ValueError, match="nested"):
        splice(b"[0]", [0], [deep, GONE])


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)


def pruned(value: Any, chance: random.Random) -> Any:
    """Some of a value, changed here and there."""
    if chance.random() < 0.1:
        return chance.choice(["new", [1], {"k": GONE.value}])
    if isinstance(value, dict):
        after = {name: pruned(one, chance) for name, one in value.items() if chance.random() > 0.2}
        return value if len(after) == len(value) and all(after[name] is value[name] for name in value) else after
    if isinstance(value, list):
        after = [GONE if chance.random() < 0.2 else pruned(one, chance) for one in value]
        return value if all(one is other for one, other in zip(value, after, strict=True)) else after
    return value


@settings(max_examples=150, deadline=None)
@given(VALUES, st.sampled_from([None, 1, "\t"]), st.booleans(), st.randoms(use_true_random=False))
def test_whatever_is_changed_the_text_is_that_of_the_new_value(
    value: Any, indent: Any, is_ascii: bool, chance: random.Random
) -> None:
    raw = json.dumps(value, indent=indent, ensure_ascii=is_ascii).encode()
    before = jsonrpc.loads(raw)
    after = pruned(before, chance)
    assert jsonrpc.loads(splice(raw, before, after)) == without_gone(after)
