"""What a body for a provider is searched by: bytes that could mean a local presentation, digests, and names of tools.

What counts as user interface is told in `policies/apps_marks.py`; here is where else than in JSON it can be, and what a
digest is of. What is done with what is found is decided in `policies/provider_results.py`.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Iterable
from typing import Any, Final

import orjson

MIN_BODY_BYTES: Final = 1024
"""Shorter texts are not told by their digest: a short page is like another."""

_MAX_PAGES: Final = 8
_MAX_ALIASES: Final = 12
_MAX_NAME: Final = 256
"""Characters of a name that is looked at: twice as many as a tool's may have (2025-11-25 server/tools, Tool Names)."""

# Every mark is the beginning of a JSON string, and a string in a string begins with a quote as well, after backslashes.
_BLANKS: Final = rb"(?: |\\+[bfnrt]|\\+u00[012][0-9a-fA-F])*"
_BREAKS: Final = rb"(?:\\+[nrt]|\\+u000[9aAdD])*"
_MARK: Final = re.compile(
    rb'"(?=[ \\_muUiItTaAvVbdDs])(?:'
    rb"_?meta\\*\"|mcp_app\\*\"|blob\\*\"|data\\*\"|audio|video|"
    + _BLANKS
    + rb"(?:[uU]"
    + _BREAKS
    + rb"[iI]"
    + _BREAKS
    + rb":|(?i:(?:data:)?text\\*/html|(?:data:)?application\\*/vnd\.mcp-ui\.|audio\\*/|video\\*/)))"
)
_LOCAL: Final = (b'meta"', b'mcp_app"')
_STRUCTURED: Final = re.compile(rb'"structured(?:Content|_content)\\*"')
_RESULT: Final = re.compile(
    rb'"(?=[a-z])(?:tool_result"|mcp_tool_result"|tool"|function"|[a-z_]*_call_output"|mcp_call"|'
    rb'functionResponse"|function_response"|toolResult"|tool_outputs")'
)
_TOOLS: Final = re.compile(
    rb'"(?:tools|mcp_servers|toolConfig|tool_config|functions|function_declarations|functionDeclarations)"'
)
_ESCAPED: Final = re.compile(rb"\\u00(?:2[2bBdDeEfF]|3[aA]|[46][1-9a-fA-F]|5[0-9aAcCfF]|7[0-9aA])")
"""Escapes of letters, of quotes, backslashes and of `+ - . / : _`, of which every mark is made. Some writers escape
quotes; such a body is read."""

_QUOTE: Final = re.compile(rb'[^\\]"')
_STRIDE: Final = MIN_BODY_BYTES // 2

# pages

_PAGE: Final = re.compile(r"<(?:!doctype\s+html|html)[\s>]", re.IGNORECASE)
_PAGE_ENDS: Final = ("</html>", "</HTML>")
_BASE64_PAGE: Final = re.compile(r"\s*(?:PCFkb2N0eXBl|PCFET0NUWVBF|PCFEb2N0eXBl|PGh0bWw|PEhUTUw)")


def has_marks(raw: bytes) -> bool:
    """Whether a text of JSON, or one in a string of it, could hold what is told by its structure. Never wrongly
    False."""
    return _MARK.search(raw) is not None or has_escapes(raw)


def has_escapes(raw: bytes) -> bool:
    """Whether an escape could hide what is looked for."""
    return b"\\" in raw and _ESCAPED.search(raw) is not None


def has_local_members(raw: bytes) -> bool:
    """Whether a message, a block or a tool could have members that no provider knows."""
    return any(name in raw for name in _LOCAL)


def has_structured(raw: bytes) -> bool:
    """Whether a result could stand there in its structured form."""
    return _STRUCTURED.search(raw) is not None


def has_results(raw: bytes) -> bool:
    """Whether a body could hold the result of a tool."""
    return _RESULT.search(raw) is not None


def has_tools(raw: bytes) -> bool:
    """Whether a body could hold definitions of tools."""
    return _TOOLS.search(raw) is not None


def has_long_string(raw: bytes) -> bool:
    """Whether a text of JSON could hold a string of MIN_BODY_BYTES: told without reading it, never wrongly False. Half
    as many bytes in a row would lie within it, none of them a quote without a backslash before it."""
    return any(_QUOTE.search(raw, at, at + _STRIDE) is None for at in range(0, len(raw) - _STRIDE + 1, _STRIDE))


def has_markup(raw: bytes) -> bool:
    """Whether a text of JSON could hold markup; some writers escape its first character."""
    return b"<" in raw or b"\\u003c" in raw or b"\\u003C" in raw


# digests


def utf8(text: str) -> bytes:
    """A text as bytes; half a surrogate pair as the escape that it has in JSON."""
    return text.encode("utf-8", "backslashreplace")


def digest_body(text: str | bytes) -> str:
    """SHA-256 in hex of the text of a user interface, or of any that might be one: blanks around it don't count."""
    return hashlib.sha256((utf8(text) if isinstance(text, str) else text).strip()).hexdigest()


def body_digests(text: str | bytes) -> frozenset[str]:
    """What the text of a user interface may be recognised by: itself, and the page in it without what is around."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    pages = (text[begins:ends] for begins, ends in pages_in(text))
    return frozenset(digest_body(one) for one in (text, *pages) if len(utf8(one)) >= MIN_BODY_BYTES)


def pages_in(text: str) -> list[tuple[int, int]]:
    """Where pages of HTML begin and end: the first to the last as one, then each; a page may quote another."""
    begins = [found.start() for found, _ in zip(_PAGE.finditer(text), range(_MAX_PAGES), strict=False)]
    if not begins:
        return []
    spans = [(begins[0], _page_end(text, begins[0], len(text)))]
    # two starts that nothing is between (`<!doctype html><html>`) are one page
    starts = [one for number, one in enumerate(begins) if number == 0 or "</" in text[begins[number - 1] : one]]
    if len(starts) > 1:
        spans += [(one, _page_end(text, one, end)) for one, end in zip(starts, [*starts[1:], len(text)], strict=True)]
    return spans


def _page_end(text: str, begins: int, limit: int) -> int:
    ends = max(text.rfind(end, begins, limit) for end in _PAGE_ENDS)
    return limit if ends < 0 else ends + len(_PAGE_ENDS[0])


_OTHER_ALPHABET: Final = str.maketrans("-_", "+/")


def is_base64_page(text: str) -> bool:
    """Whether a text is the base64 of a page of HTML, going by how it begins."""
    return _BASE64_PAGE.match(text) is not None


def decoded(text: str) -> bytes | None:
    """What a base64 text, or a `data:` URL of one, stands for; None where it is none. Both alphabets of RFC 4648, in
    lines or in one, with or without what fills it up: writers differ."""
    if text[:5].lower() == "data:":
        head, comma, text = text.partition(",")
        if not comma or not head.lower().endswith(";base64"):
            return None
    if not text.isascii():
        return None
    text = "".join(text.split()).translate(_OTHER_ALPHABET).rstrip("=")
    text += "=" * (-len(text) % 4)
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


def digest_tool(name: str, description: str | None, schema: Any) -> str:
    """SHA-256 in hex that a tool's definition is recognised by: its name, its description, and of its schema the names
    of properties at every depth, since adapters write the rest anew for their provider."""
    return tool_digests((name,), description, schema)[0]


def tool_digests(names: Iterable[str], description: str | None, schema: Any) -> list[str]:
    """The same definition under several names."""
    text = utf8((description or "").strip()).decode()
    rest = hashlib.sha256(orjson.dumps([text, _names(schema, 0)])).digest()
    return [hashlib.sha256(utf8(name) + rest).hexdigest() for name in names]


def _names(schema: Any, depth: int) -> Any:
    """The names of properties, sorted, each with those in it."""
    if not isinstance(schema, dict) or depth > 32:
        return None
    properties = schema.get("properties")
    inner = {}
    if isinstance(properties, dict):
        inner = {utf8(name).decode(): _names(one, depth + 1) for name, one in sorted(properties.items())}
    items = _names(schema.get("items"), depth + 1)
    return [inner, items] if inner or items else None


# names


def aliases(name: str) -> tuple[str, ...]:
    """The name of a called tool, and what it may be at its server: hosts put a server's name before it, as in
    `mcp__weather__forecast`, `weather.forecast`, `weather/forecast`."""
    return tuple(_aliases(name, _STRICT))


def loose_aliases(name: str) -> tuple[str, ...]:
    """The same for where more than the name decides: also `weather_forecast` and `weather-forecast`."""
    return tuple(_aliases(name, _LOOSE))


_STRICT: Final = ("__", ".", "/", ":")
_LOOSE: Final = (*_STRICT, "_", "-")


def _aliases(name: str, separators: tuple[str, ...]) -> list[str]:
    found = {name: None}
    if len(name) <= _MAX_NAME:
        for separator in separators:
            rest = name
            while separator in rest and len(found) < _MAX_ALIASES:
                _, _, rest = rest.partition(separator)
                if rest:
                    found[rest] = None
    return list(found)
