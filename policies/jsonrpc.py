"""One JSON-RPC message in, one out, and nothing of it lost on the way.

Source: https://modelcontextprotocol.io/specification/2026-07-28/basic (Messages), JSON-RPC 2.0. `loads` and `dumps`
keep every number to its last digit and every string, also those that the fast library rounds or refuses. Of a message
only `id`, `method`, `params`, `result` and `error` are kept: unknown members beside them are lost where a message is
written anew, and only there (bytes that are passed on untouched keep them). What a method or its params mean is not
known here.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final, NoReturn

import msgspec
import orjson

from policies.errors import Rejection
from policies.mcp import INVALID_REQUEST, PARSE_ERROR, PREFIX, Json

MAX_DEPTH: Final = 128
"""Deeper than any message seen in the field, and half of what the JSON writer takes without its slow fallback."""

# Digits and the point become "0", the exponent's letter "e": a run of 16 (more digits than a double is sure to keep) or
# an exponent of three digits below zero (underflow is silent, overflow is not) shows up as a plain substring.
_SHAPE: Final = bytes.maketrans(b"0123456789.E", b"0" * 11 + b"e")
_LONG_NUMBER: Final = b"0" * 16
_TINY_NUMBER: Final = b"e-000"
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_STRING: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_BRACKETS: Final = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS: Final = bytes(byte for byte in range(256) if byte not in b"[]{}")


@dataclass(frozen=True, slots=True)
class Request:
    """A message that is to be answered: `id` keeps its JSON type, `params` is empty where the message has none."""

    id: str | int
    method: str
    params: Json


@dataclass(frozen=True, slots=True)
class Notification:
    """A message that is never answered."""

    method: str
    params: Json


@dataclass(frozen=True, slots=True)
class Response:
    """An answer: exactly one of `result` and `error` is set. `id` is None for an error about an unreadable request."""

    id: str | int | None
    result: Json | None
    error: Json | None


Message = Request | Notification | Response


def _number(text: str) -> float | Decimal:
    """A float where it says exactly what `text` says, else a Decimal."""
    value = float(text)
    if repr(value) == text:
        return value
    try:
        exact = Decimal(text)
    except InvalidOperation as error:
        raise ValueError("a number's exponent is out of range") from error
    return value if Decimal(repr(value)) == exact else exact


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_exact = msgspec.json.Decoder(float_hook=_number)
_exact_writer = msgspec.json.Encoder(decimal_format="number")


def _standard(raw: bytes, pairs: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """The slow reader: lone surrogates and every number survive, `pairs` sees the members of each object in order."""
    return json.loads(raw.decode(), parse_float=_number, parse_constant=_no_constant, object_pairs_hook=pairs)


def _has_exotic_number(raw: bytes) -> bool:
    shape = raw.translate(_SHAPE)
    return _LONG_NUMBER in shape or _TINY_NUMBER in shape


def _exactly(raw: bytes) -> Any:
    """Reads a text with long numbers: fast where writing it out again proves that nothing was rounded."""
    try:
        value = orjson.loads(raw)
        if orjson.dumps(value).translate(None, b" ") == raw.translate(None, b" "):
            return value
    except (orjson.JSONDecodeError, TypeError):
        pass
    return _exact.decode(raw)


def loads(raw: bytes) -> Any:
    """The value of one JSON text in UTF-8; floats that would lose digits are Decimals.

    Raises ValueError for anything else, also for integers of over 4300 digits and nesting beyond about 900 levels.
    """
    try:
        if not _has_exotic_number(raw):
            try:
                return orjson.loads(raw)
            except orjson.JSONDecodeError:  # a lone surrogate, a number beyond doubles, or no JSON at all
                return _standard(raw)
        return _standard(raw) if _SURROGATE.search(raw) else _exactly(raw)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def dumps(value: Any) -> bytes:
    """Compact JSON in UTF-8 of anything that `loads` returns; ValueError where nested beyond about 900 levels."""
    try:
        return orjson.dumps(value)
    except TypeError:
        pass
    try:
        return _exact_writer.encode(value)
    except UnicodeEncodeError:
        pass
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    try:
        return "".join(_written(value)).encode()
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _written(value: Any) -> Iterator[str]:
    """The pieces of a JSON text in which lone surrogates stand as escapes and Decimals as plain numbers."""
    if isinstance(value, dict):
        comma = "{"
        for name, member in value.items():
            yield f"{comma}{json.dumps(name)}:"
            yield from _written(member)
            comma = ","
        yield "}" if value else "{}"
    elif isinstance(value, list):
        comma = "["
        for member in value:
            yield comma
            yield from _written(member)
            comma = ","
        yield "]" if value else "[]"
    else:
        yield str(value) if isinstance(value, Decimal) else json.dumps(value)


def depth_exceeds(raw: bytes, max_depth: int) -> bool:
    """Whether arrays and objects are nested deeper than `max_depth`; brackets in strings don't count.

    Means nothing for a text that is no JSON, and costs no more than a few passes over it.
    """
    if raw.count(b"[") + raw.count(b"{") <= max_depth:
        return False
    brackets = _STRING.sub(b"", raw).translate(_BRACKETS, _NO_BRACKETS)
    depth = 0
    for byte in brackets:
        if byte == 0x5B:
            depth += 1
            if depth > max_depth:
                return True
        else:
            depth -= 1
    return False


def _invalid(message: str) -> Rejection:
    return Rejection(INVALID_REQUEST, f"Invalid Request: {message}", http=400)


def parse(raw: bytes, *, max_depth: int = MAX_DEPTH) -> Message | list[Message | Rejection] | Rejection:
    """The message in a body, a list for a batch (an element that is no message is a Rejection in its place).

    A Rejection of a whole body names no id: `readable_id(raw)` tells the one to answer with.
    """
    if depth_exceeds(raw, max_depth):
        return _invalid(f"nested deeper than {max_depth} levels")
    try:
        value = loads(raw)
    except ValueError:
        return Rejection(PARSE_ERROR, "Parse error: the body is not JSON in UTF-8", http=400)
    if not isinstance(value, list):
        return message(value)
    return [message(element) for element in value] if value else _invalid("the batch is empty")


def message(value: Any) -> Message | Rejection:
    """The message that a JSON value is, or why it is none (-32600, HTTP 400)."""
    if not isinstance(value, dict):
        return _invalid("a message is a JSON object")
    if value.get("jsonrpc") != "2.0":
        return _invalid('"jsonrpc" must be "2.0"')
    if "method" not in value:
        return _response(value)
    method = value["method"]
    if not isinstance(method, str):
        return _invalid('"method" must be a string')
    params = value.get("params", {})
    if not isinstance(params, dict):
        return _invalid('"params" must be an object')
    if "id" not in value:
        return Notification(method, params)
    identity = value["id"]
    if not _is_id(identity):
        return _invalid('"id" must be a string or an integer')
    return Request(identity, method, params)


def _response(value: Json) -> Response | Rejection:
    if ("result" in value) == ("error" in value):
        return _invalid('a message has either a "method", a "result" or an "error"')
    kind = "result" if "result" in value else "error"
    if not isinstance(value[kind], dict):
        return _invalid(f'"{kind}" must be an object')
    identity = value.get("id")
    if not _is_id(identity) and (kind == "result" or identity is not None):
        return _invalid('"id" must be a string or an integer')
    return Response(identity, value.get("result"), value.get("error"))


def _is_id(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def readable_id(raw_or_value: Any) -> str | int | None:
    """The id under which a rejected message, as bytes or as a JSON value, is to be answered.

    None where it has no usable id, and for what is meant as a response: nobody waits for an answer to that.
    """
    value = raw_or_value
    if isinstance(raw_or_value, bytes):
        try:
            value = loads(raw_or_value)
        except ValueError:
            return None
    if not isinstance(value, dict) or not _is_id(value.get("id")):
        return None
    if "method" not in value and ("result" in value or "error" in value):
        return None
    identity: str | int = value["id"]
    return identity


def request(id: str | int, method: str, params: Json | None = None) -> bytes:  # noqa: A002 - the wire's own word
    """A request; `params` is left out where it is empty."""
    return dumps({"jsonrpc": "2.0", "id": id, "method": method, **({"params": params} if params else {})})


def notification(method: str, params: Json | None = None) -> bytes:
    """A notification; `params` is left out where it is empty."""
    return dumps({"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})})


def response(id: str | int, result: Any) -> bytes:  # noqa: A002 - the wire's own word
    """A successful answer."""
    return dumps({"jsonrpc": "2.0", "id": id, "result": result})


def error_response(id: str | int | None, code: int, message: str, data: Any = None) -> bytes:  # noqa: A002
    """An error; `id` and `data` are left out where None (the TypeScript v1 client fails on `"id": null`)."""
    error: Json = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    body: Json = {"jsonrpc": "2.0"}
    if id is not None:
        body["id"] = id
    body["error"] = error
    return dumps(body)


# Members whose two readings (first or last) would let a check and a server see different requests.
_TOP: Final = frozenset({"jsonrpc", "id", "method", "params"})
_PARAMS: Final = frozenset({"name", "uri", "taskId", "_meta", "arguments", "requestState", "inputResponses"})


class _Pairs(tuple[tuple[str, Any], ...]):
    """The members of one object in order, duplicates included."""

    __slots__ = ()


def duplicate_member(raw: bytes) -> str | None:
    """The name of a member that stands twice where two readers could disagree, or None.

    Looked at: the four top-level members, the members of `params` that name or hold the call, and the specification's
    own keys in `params._meta`; in every element of a batch. A body that is no JSON has none.
    """
    if not may_repeat(raw):
        return None
    try:
        value = _standard(raw, _Pairs)
    except (ValueError, RecursionError):
        return None
    bodies = value if isinstance(value, list) else [value]
    return next((name for body in bodies if (name := _repeated_in_body(body))), None)


def may_repeat(raw: bytes) -> bool:
    """Cheap and never wrongly False: parsed and written out again, a body has lost the quotes of repeated members."""
    if b"\\u0022" in raw:  # the one thing that would gain quotes
        return True
    try:
        return orjson.dumps(orjson.loads(raw)).count(b'"') != raw.count(b'"')
    except (orjson.JSONDecodeError, TypeError):
        return True


def repeats(raw: bytes, value: Any) -> bool:
    """Whether an object in a JSON text has two members of one name. `value` is what `loads` made of it.

    Raises ValueError where it is nested too deeply to tell."""
    if b"\\u0022" not in raw and dumps(value).count(b'"') == raw.count(b'"'):
        return False
    return first_reading(raw)[1]


def first_reading(raw: bytes) -> tuple[Any, bool]:
    """The value of a JSON text for a reader that takes the first of members with one name, and whether any object has
    such. `loads` takes the last.

    Raises ValueError for anything else."""
    is_repeated = False

    def first(pairs: list[tuple[str, Any]]) -> Any:
        nonlocal is_repeated
        value = dict(reversed(pairs))
        is_repeated = is_repeated or len(value) < len(pairs)
        return value

    try:
        return _standard(raw, first), is_repeated
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _repeated_in_body(body: Any) -> str | None:
    if not isinstance(body, _Pairs):
        return None
    if name := _repeated(body, _TOP.__contains__):
        return name
    params = dict(body).get("params")
    if not isinstance(params, _Pairs):
        return None
    if name := _repeated(params, _PARAMS.__contains__):
        return name
    meta = dict(params).get("_meta")
    return _repeated(meta, lambda key: key.startswith(PREFIX)) if isinstance(meta, _Pairs) else None


def _repeated(pairs: _Pairs, is_watched: Callable[[str], bool]) -> str | None:
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen and is_watched(name):
            return name
        seen.add(name)
    return None
