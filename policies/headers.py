"""The `Mcp-*` request headers: their value encoding, what a body and a tool put into them, and whether they agree.

Source: https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http (Request Metadata,
Custom Headers, Value Encoding, Server Validation). The checks are rungs of the request ladder and are called in the
order in which they stand here. Not known here: which routes, tools or extension methods exist, and who calls. No
message repeats the value of a header or argument.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Protocol

from policies.errors import Rejection
from policies.jsonrpc import Request
from policies.mcp import (
    HEADER_METHOD,
    HEADER_MISMATCH,
    HEADER_NAME,
    HEADER_PARAM,
    HEADER_VERSION,
    INVALID_PARAMS,
    LATEST_MODERN,
    META_CLIENT_CAPABILITIES,
    META_VERSION,
    METHOD_NOT_FOUND,
    MODERN_METHODS,
    MODERN_VERSIONS,
    NAMED_BY,
    REMOVED_METHODS,
    UNSUPPORTED_VERSION,
    Json,
)


class Headers(Protocol):
    """Header lines under case-insensitive names, as multidict has them; bytes that are no UTF-8 as surrogates."""

    def get(self, name: str, /) -> str | None: ...
    def getall(self, name: str, default: Sequence[str], /) -> Sequence[str]: ...


# Value encoding

_MARKER: Final = "=?base64?"
_MARKER_END: Final = "?="
_PLAIN: Final = re.compile(r"[\x20-\x7e]*")
_FIELD_VALUE: Final = re.compile(r"[\t\x20-\x7e]*")


def encode(value: str | int | bool) -> str:
    """The header value for a name or parameter; base64 where the plain text would not arrive as it is.

    Raises ValueError for a string that has no UTF-8 form (a lone surrogate).
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    looks_encoded = text.startswith(_MARKER) and text.endswith(_MARKER_END)
    if _PLAIN.fullmatch(text) and text == text.strip(" ") and not looks_encoded:
        return text
    try:
        raw = text.encode()
    except UnicodeEncodeError:
        raise ValueError("a name or argument is no Unicode text: it holds a lone surrogate") from None
    return f"{_MARKER}{base64.b64encode(raw).decode()}{_MARKER_END}"


def decode(value: str) -> str:
    """The text that a header value stands for.

    Raises ValueError for characters that no header value may hold, and for base64 that is not exactly what an encoder
    writes (padding, alphabet, unused bits) or not UTF-8 within. A marker in other letters is plain text.
    """
    value = value.strip(" \t")
    if not _FIELD_VALUE.fullmatch(value):
        raise ValueError("the value holds characters that must be base64-encoded")
    if not (value.startswith(_MARKER) and value.endswith(_MARKER_END)):
        return value
    payload = value[len(_MARKER) : -len(_MARKER_END)]
    try:
        raw = base64.b64decode(payload, validate=True)
        text = raw.decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ValueError("the value is not base64 of UTF-8") from error
    if len(value) < len(_MARKER) + len(_MARKER_END) or base64.b64encode(raw).decode() != payload:
        raise ValueError("the value is not canonical base64")
    return text


# What a tool mirrors

_ANNOTATION: Final = "x-mcp-header"
_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_TYPES: Final = ("string", "integer", "boolean")
# The keywords of JSON Schema (2020-12 and draft-07) that hold schemas. What stands elsewhere is data (`default`,
# `const`, `enum`, `examples`) or a reference, and references are not followed.
_SCHEMAS: Final = frozenset(
    {"items", "prefixItems", "additionalItems", "unevaluatedItems", "contains", "additionalProperties"}
    | {"unevaluatedProperties", "propertyNames", "allOf", "anyOf", "oneOf", "not", "if", "then", "else"}
    | {"contentSchema"}
)
_SCHEMA_MAPS: Final = frozenset({"patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions"})


class InvalidAnnotation(ValueError):
    """An `x-mcp-header` breaks a rule, which makes the whole tool definition invalid; the message says which rule."""


@dataclass(frozen=True, slots=True)
class ParamHeader:
    """One argument that is mirrored: its path in `arguments`, the header's name after `Mcp-Param-`, the schema type."""

    path: tuple[str, ...]
    name: str
    type: str


def param_headers(input_schema: Any) -> tuple[ParamHeader, ...]:
    """What a tool with this `inputSchema` mirrors into headers. Raises InvalidAnnotation."""
    found: dict[str, ParamHeader] = {}
    for path, schema in _positions(input_schema):
        if _ANNOTATION not in schema:
            continue
        if not path:
            raise InvalidAnnotation(f"{_ANNOTATION} stands where no chain of properties leads")
        where = f"property {'.'.join(path)!r}: {_ANNOTATION}"
        name, kind = schema[_ANNOTATION], schema.get("type")
        if not isinstance(name, str) or not _TOKEN.fullmatch(name):
            raise InvalidAnnotation(f"{where} is no header name (RFC 9110 token)")
        if kind not in _TYPES:
            raise InvalidAnnotation(f"{where} needs the type string, integer or boolean")
        if name.lower() in found:
            raise InvalidAnnotation(f"{where} {name!r} is used twice")
        found[name.lower()] = ParamHeader(path, name, kind)
    return tuple(found.values())


def _positions(root: Any) -> Iterator[tuple[tuple[str, ...] | None, Json]]:
    """Every schema in a schema, with the chain of properties that leads to it or None where another keyword does."""
    ahead: list[tuple[tuple[str, ...] | None, Any]] = [((), root)]
    for path, schema in ahead:  # grows while it is walked: no recursion, however deep the schema
        if not isinstance(schema, dict):
            continue
        yield path, schema
        for keyword, value in schema.items():
            if keyword == "properties" and isinstance(value, dict):
                ahead += (((*path, name) if path is not None else None, inner) for name, inner in value.items())
            elif keyword in _SCHEMAS:
                ahead += ((None, inner) for inner in (value if isinstance(value, list) else [value]))
            elif keyword in _SCHEMA_MAPS and isinstance(value, dict):
                ahead += ((None, inner) for inner in value.values())


# From a body to headers


def name_of(method: str, params: Json) -> str | None:
    """What `Mcp-Name` mirrors, or None where the method has no name or its params hold none."""
    member = NAMED_BY.get(method)
    name = params.get(member) if member is not None else None
    return name if isinstance(name, str) else None


def build(method: str, params: Json, version: str, specs: Iterable[ParamHeader] = ()) -> dict[str, str]:
    """The `Mcp-*` headers of a request. Raises ValueError where a name or argument holds a lone surrogate, or the
    method, which has no encoded form, what no header can carry."""
    if not _PLAIN.fullmatch(method) or method != method.strip(" "):
        raise ValueError("the method holds characters that no method has")
    headers = {HEADER_VERSION: version, HEADER_METHOD: method}
    name = name_of(method, params)
    if name is not None:
        headers[HEADER_NAME] = encode(name)
    for spec in specs:
        text = _text(_value_at(params.get("arguments"), spec.path))
        if text is not None:
            headers[HEADER_PARAM + spec.name] = encode(text)
    return headers


def _value_at(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def _text(value: Any) -> str | None:
    """An argument as header text; None for null, objects and arrays, which are not mirrored."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value) if isinstance(value, int | float | Decimal) else None


# Whether headers and body agree


def check(headers: Headers, request: Request) -> Rejection | None:
    """All rungs that need nothing but the request; `unknown_method` belongs before the last, `check_params` after."""
    return check_version(headers, request) or check_envelope(request) or check_name(headers, request)


def check_version(headers: Headers, request: Request) -> Rejection | None:
    """The version is there in header and body and they agree, the method agrees, the version is one we serve."""
    lines = headers.getall(HEADER_VERSION, ())
    if not lines:
        return _mismatch(HEADER_VERSION, "is missing; send the version that params._meta names")
    version = _meta(request).get(META_VERSION)
    if not isinstance(version, str):
        return _invalid_meta(META_VERSION, "a string")
    if not _all_say(lines, version):
        return _mismatch(HEADER_VERSION, "does not match the version in params._meta")
    lines = headers.getall(HEADER_METHOD, ())
    if not lines:
        return _mismatch(HEADER_METHOD, "is missing; send the body's method")
    if not _all_say(lines, request.method):
        return _mismatch(HEADER_METHOD, "does not match the body's method")
    if version not in MODERN_VERSIONS:
        data = {"supported": list(MODERN_VERSIONS), "requested": version}
        return Rejection(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
    return None


def check_envelope(request: Request) -> Rejection | None:
    """The other required member of `_meta`: the client's capabilities."""
    if not isinstance(_meta(request).get(META_CLIENT_CAPABILITIES), dict):
        return _invalid_meta(META_CLIENT_CAPABILITIES, "an object")
    return None


def unknown_method(method: str) -> Rejection | None:
    """Whether the method is none of this revision's. Extension methods are the caller's to let through before."""
    if method in MODERN_METHODS:
        return None
    removed = f": {method} is not part of {LATEST_MODERN}" if method in REMOVED_METHODS else ""
    return Rejection(METHOD_NOT_FOUND, f"Method not found{removed}")


def check_name(headers: Headers, request: Request) -> Rejection | None:
    """`Mcp-Name` is there and says what the body says, for the methods that have a name; others may send anything.

    Of a task it may be missing: the extension bids clients to send it, no server to insist, and FastMCP's client (4.1)
    sends none."""
    member = NAMED_BY.get(request.method)
    if member is None:
        return None
    lines = headers.getall(HEADER_NAME, ())
    name = name_of(request.method, request.params)
    if name is None and not lines:
        return Rejection(INVALID_PARAMS, f"Invalid params: params.{member} must be a string", http=400)
    if not lines:
        return None if member == "taskId" else _mismatch(HEADER_NAME, f"is missing; send params.{member}")
    try:
        agree = all(decode(line) == name for line in lines)
    except ValueError as error:
        return _mismatch(HEADER_NAME, f"is malformed: {error}")
    return None if agree else _mismatch(HEADER_NAME, f"does not match params.{member}")


def name_in(headers: Headers) -> str | None:
    """What `Mcp-Name` says, decoded; None where it is missing or malformed."""
    value = headers.get(HEADER_NAME)
    try:
        return decode(value) if value is not None else None
    except ValueError:
        return None


def param_of(headers: Headers, name: str) -> str | None:
    """What `Mcp-Param-{name}` says, decoded, for routing; None where it is missing, malformed or contradicts itself."""
    lines = set(headers.getall(HEADER_PARAM + name, ()))
    try:
        return decode(lines.pop()) if len(lines) == 1 else None
    except ValueError:
        return None


def check_params(headers: Headers, arguments: Json, specs: Iterable[ParamHeader]) -> Rejection | None:
    """Each argument that the tool mirrors is in its header, and no header claims an argument that is not there."""
    for spec in specs:
        header = HEADER_PARAM + spec.name
        value = _value_at(arguments, spec.path)
        text = _text(value)
        lines = headers.getall(header, ())
        if text is None:
            if lines:
                return _mismatch(header, "stands for an argument that the body does not have; leave it out")
            continue
        if not lines:
            return _mismatch(header, "is missing; the body has the argument that it mirrors (see tools/list)")
        try:
            agree = all(_same(decode(line), value, text, spec.type) for line in lines)
        except ValueError as error:
            return _mismatch(header, f"is malformed: {error}")
        if not agree:
            return _mismatch(header, "does not match the argument that it mirrors")
    return None


_DECIMAL: Final = re.compile(r"-?[0-9]{1,1000}(\.[0-9]{1,1000})?")


def _same(header: str, value: Any, text: str, kind: str) -> bool:
    if header == text:
        return True
    is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    return bool(kind == "integer" and is_number and _DECIMAL.fullmatch(header) and Decimal(header) == value)


def _all_say(lines: Sequence[str], expected: str) -> bool:
    return all(line.strip(" \t") == expected for line in lines)


def _meta(request: Request) -> Json:
    meta = request.params.get("_meta")
    return meta if isinstance(meta, dict) else {}


def _mismatch(header: str, what: str) -> Rejection:
    return Rejection(HEADER_MISMATCH, f"Header mismatch: {header} {what}")


def _invalid_meta(key: str, kind: str) -> Rejection:
    return Rejection(INVALID_PARAMS, f"Invalid params: params._meta[{key!r}] must be {kind}", http=400)
