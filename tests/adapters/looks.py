"""What a body for a provider holds: a mark in whatever encoding, and the bytes of its parts as they stand in it.

Written without the gateway's own code, which it checks.
"""

import base64
import binascii
import json
import re
from collections.abc import Collection, Iterator
from typing import Any
from urllib.parse import unquote

MAX_DEPTH = 8
"""Of JSON or Base64 in strings in strings."""
_ENCODED = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")


def held(body: bytes, marks: Collection[str]) -> set[str]:
    """Those of the marks that are in a body: as they are, escaped, in Base64 wherever they begin, percent-encoded, or
    in any of these within a string, at any depth."""
    texts = list(_texts(body.decode(), 0))
    return {
        mark for mark in marks if any(mark in text for text in texts) or any(each in body for each in _shifted(mark))
    }


def _shifted(mark: str) -> Iterator[bytes]:
    """The part of a mark's Base64 that is the same whatever stands around it, for each place where it may begin."""
    for before in range(3):
        whole = base64.b64encode(b"\0" * before + mark.encode())
        yield whole[4 if before else 0 : len(whole) - 4]


def _texts(text: str, depth: int) -> Iterator[str]:
    yield text
    if depth == MAX_DEPTH:
        return
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    for inner in _strings(value):
        yield from _texts(inner, depth + 1)
    if "%" in text and (plain := unquote(text)) != text:
        yield from _texts(plain, depth + 1)
    if depth:  # a body itself is no Base64
        for found in _ENCODED.findall(text):
            if (plain := _decoded(found)) is not None:
                yield from _texts(plain, depth + 1)


def _decoded(text: str) -> str | None:
    text = text.rstrip("=").translate(str.maketrans("-_", "+/"))
    try:
        return base64.b64decode(text[: len(text) // 4 * 4]).decode("utf-8", "replace")
    except binascii.Error:
        return None


def _strings(value: Any) -> Iterator[str]:
    """Every string in a value, the names of members too; a string that stands alone is none in it."""
    rest = [value] if isinstance(value, dict | list) else []
    while rest:
        one = rest.pop()
        for inner in one if isinstance(one, list) else [*one, *one.values()]:
            if isinstance(inner, str):
                yield inner
            elif isinstance(inner, dict | list):
                rest.append(inner)


_BLANK = re.compile(r"\s*")


def members(body: bytes) -> dict[str, str]:
    """The members of a JSON object, each value as it stands in its text."""
    text, decoder, found = body.decode(), json.JSONDecoder(), dict[str, str]()
    at = _after_blanks(text, 0)
    assert text[at] == "{"
    at = _after_blanks(text, at + 1)
    while text[at] != "}":
        name, at = decoder.raw_decode(text, at)
        at = _after_blanks(text, at)
        assert text[at] == ":"
        begins = _after_blanks(text, at + 1)
        _, at = decoder.raw_decode(text, begins)
        found[name] = text[begins:at]
        at = _after_blanks(text, at)
        if text[at] == ",":
            at = _after_blanks(text, at + 1)
    return found


def _after_blanks(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    assert found is not None
    return found.end()


def continues(earlier: str, later: str) -> bool:
    """Whether an array, as it stands in a text, begins with all of another's bytes."""
    return later.startswith(earlier.rstrip().removesuffix("]"))
