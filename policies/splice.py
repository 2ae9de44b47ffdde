"""A JSON text with some of its values changed, and every other byte as it was.

`splice` writes what was changed anew and copies the rest: blanks, escapes, the form of numbers and the order of members
stay. Where two members of one object share a name, nobody can tell which was meant: that object is written anew, each
name once. What is changed, and why, is not known here.
"""

import re
from enum import Enum
from typing import Any, Final

import msgspec

from policies import jsonrpc


class Gone(Enum):
    """What stands in a list in place of an element that is left out, so that the others keep their places."""

    GONE = "gone"


GONE: Final = Gone.GONE

_Span = tuple[int, int, int]
"""Where an element begins, its value begins, and both end. An element of an array is its value."""

_Part = tuple[_Span, Any, Any]
"""Where an element is, what it is before, and after."""

_objects: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_arrays: Final = msgspec.json.Decoder(list[msgspec.Raw])
_GAP: Final = re.compile(rb"[ \t\r\n]*")
_COMMA: Final = re.compile(rb"[ \t\r\n]*,[ \t\r\n]*")
_KEY: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"[ \t\r\n]*:[ \t\r\n]*', re.DOTALL)


_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
"""Half a pair makes the reader fail that finds out where values are: it gets something else of the same length."""


class _Unlike(ValueError):
    """The text does not read member by member as the value does."""


def splice(raw: bytes, before: Any, after: Any) -> bytes:
    """The text of `after`, of which `raw` is the text before: `before` is what was read from it.

    `after` is made of the very objects of `before` wherever nothing changed. Its lists may hold GONE; a list that has
    another length than before is written anew. Takes time in proportion to the text, times how deep the changes lie.

    Raises ValueError where `after` is nested beyond about 900 levels."""
    if after is before:
        return raw
    parts = _parts(raw, before, after)
    if parts is None and _SURROGATE.search(raw):
        parts = _parts(_SURROGATE.sub(rb"\\u003f", raw), before, after)
    if parts is not None:
        return _written(raw, parts)
    try:
        return jsonrpc.dumps(without_gone(after))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _parts(raw: bytes, before: Any, after: Any) -> list[_Part] | None:
    try:
        if isinstance(before, dict) and isinstance(after, dict):
            return _object(raw, before, after)
        if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
            return _array(raw, before, after)
    except (msgspec.DecodeError, _Unlike, RecursionError):
        pass
    return None


def without_gone(value: Any) -> Any:
    """The value less what is GONE in its lists."""
    if isinstance(value, dict):
        return {name: without_gone(member) for name, member in value.items()}
    if isinstance(value, list):
        return [without_gone(one) for one in value if one is not GONE]
    return value


def _object(raw: bytes, before: dict[str, Any], after: dict[str, Any]) -> list[_Part]:
    if not after.keys() <= before.keys():
        raise _Unlike
    values = _objects.decode(raw)
    spans: dict[str, _Span] = {}
    at = _after_gap(raw, raw.index(b"{") + 1)
    for name, value in values.items():
        begins = _after_comma(raw, at) if spans else at
        key = _KEY.match(raw, begins)
        if key is None:
            raise _Unlike
        spans[name] = begins, key.end(), (at := _after_value(raw, key.end(), value))
    _check_end(raw, at, b"}")
    if spans.keys() != before.keys():
        raise _Unlike
    return [(spans[name], before[name], after.get(name, GONE)) for name in before]


def _array(raw: bytes, before: list[Any], after: list[Any]) -> list[_Part]:
    spans: list[_Span] = []
    at = _after_gap(raw, raw.index(b"[") + 1)
    for value in _arrays.decode(raw):
        begins = _after_comma(raw, at) if spans else at
        spans.append((begins, begins, (at := _after_value(raw, begins, value))))
    _check_end(raw, at, b"]")
    if len(spans) != len(before):
        raise _Unlike
    return list(zip(spans, before, after, strict=True))


def _written(raw: bytes, members: list[_Part]) -> bytes:
    """What is between two that stay is what is between the first of them and its neighbour."""
    if not members:
        return raw
    pieces = [raw[: members[0][0][0]]]
    gap = b""
    for number, ((begins, value_begins, ends), before, after) in enumerate(members):
        if after is not GONE:
            pieces += (gap, raw[begins:value_begins], splice(raw[value_begins:ends], before, after))
            gap = raw[ends : members[number + 1][0][0]] if number + 1 < len(members) else b""
    pieces.append(raw[members[-1][0][2] :])
    return b"".join(pieces)


def _after_gap(raw: bytes, at: int) -> int:
    found = _GAP.match(raw, at)
    return found.end() if found is not None else at


def _after_comma(raw: bytes, at: int) -> int:
    found = _COMMA.match(raw, at)
    if found is None:
        raise _Unlike
    return found.end()


def _after_value(raw: bytes, at: int, value: msgspec.Raw) -> int:
    text = bytes(value)
    if not raw.startswith(text, at):
        raise _Unlike
    return at + len(text)


def _check_end(raw: bytes, at: int, bracket: bytes) -> None:
    at = _after_gap(raw, at)
    if raw[at : at + 1] != bracket:
        raise _Unlike
