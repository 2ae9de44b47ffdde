"""The little of a message that is looked at where it is passed on as it is: whose it is.

A typed partial decode: what is not named here is skipped unread. Specification: 2026-07-28 basic/transports/
streamable-http (Receiving Messages), basic/patterns/progress.
"""

import re
from collections.abc import Iterator
from typing import Any, Final, Literal, TypeVar

import msgspec

from policies.jsonrpc import loads, readable_id
from policies.mcp import META_CLIENT_CAPABILITIES, Json


class _Params(msgspec.Struct):
    progressToken: Any = None  # noqa: N815 - the wire's own word


class _Error(msgspec.Struct):
    code: int
    message: str


class _Result(msgspec.Struct):
    isError: Any = None  # noqa: N815


class _Answer(msgspec.Struct):
    id: Any = msgspec.UNSET
    method: str | msgspec.UnsetType = msgspec.UNSET
    params: _Params | msgspec.UnsetType = msgspec.UNSET
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: _Error | msgspec.UnsetType | None = msgspec.UNSET


class _Meta(msgspec.Struct):
    progressToken: Any = None  # noqa: N815


class _AskedParams(msgspec.Struct):
    meta: _Meta | msgspec.UnsetType = msgspec.field(default=msgspec.UNSET, name="_meta")


class _Named(msgspec.Struct):
    id: Any = None


class _Asked(_Named):
    params: _AskedParams | msgspec.UnsetType = msgspec.UNSET


class _Listed(msgspec.Struct):
    name: Any = None


class _List(msgspec.Struct):
    tools: list[_Listed] | msgspec.UnsetType = msgspec.UNSET
    prompts: list[_Listed] | msgspec.UnsetType = msgspec.UNSET


class _ListAnswer(msgspec.Struct):
    result: _List | msgspec.UnsetType = msgspec.UNSET


_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_IS_ERROR = re.compile(rb'"isError"')
_STAND_IN = rb"\\u0058"

_answer = msgspec.json.Decoder(_Answer)
_result = msgspec.json.Decoder(_Result)
_asked = msgspec.json.Decoder(_Asked)
_named = msgspec.json.Decoder(_Named)
_list = msgspec.json.Decoder(_ListAnswer)

NAMED_IN_LISTS: Final = {"tools/list": "tools", "prompts/list": "prompts"}
"""Where a list's answer has what it names."""

MAX_ASKS_BYTES: Final = 32 * 1024
"""Of an answer that is looked at for what it asks of a client: forms are small, and what is larger is a result."""

_ASKS: Final = b'"input_required"'


def listed_names(raw: bytes) -> Iterator[str]:
    """The names in the answer to a list of tools or prompts."""
    answer = _read(_list, raw)
    if answer is None or not isinstance(answer.result, _List):
        return
    for listed in (answer.result.tools, answer.result.prompts):
        for one in listed if isinstance(listed, list) else ():
            if isinstance(one.name, str):
                yield one.name


def input_required(raw: bytes) -> Json | None:
    """An answer's `InputRequiredResult`; None where it is another one, as most are, which costs a search."""
    if len(raw) > MAX_ASKS_BYTES or _ASKS not in raw:
        return None
    try:
        result = loads(raw).get("result")
    except ValueError:  # it is counted, and no more than that
        return None
    return result if isinstance(result, dict) and result.get("resultType") == "input_required" else None


class _Capable(msgspec.Struct):
    capabilities: msgspec.Raw | msgspec.UnsetType = msgspec.field(default=msgspec.UNSET, name=META_CLIENT_CAPABILITIES)


class _Trace(msgspec.Struct, omit_defaults=True):
    traceparent: Any = None
    tracestate: Any = None


class _TraceParams(msgspec.Struct):
    meta: _Trace | msgspec.UnsetType = msgspec.field(default=msgspec.UNSET, name="_meta")


class _TraceRequest(msgspec.Struct):
    params: _TraceParams | msgspec.UnsetType = msgspec.UNSET


class _CapableParams(msgspec.Struct):
    meta: _Capable | msgspec.UnsetType = msgspec.field(default=msgspec.UNSET, name="_meta")


class _CapableRequest(msgspec.Struct):
    params: _CapableParams | msgspec.UnsetType = msgspec.UNSET


_traced = msgspec.json.Decoder(_TraceRequest)
_capable = msgspec.json.Decoder(_CapableRequest)


def declared(raw: bytes) -> Json | None:
    """The capabilities that a modern request declares; None where it has none that can be read."""
    request = _read(_capable, raw)
    params = request.params if request is not None else msgspec.UNSET
    meta = params.meta if isinstance(params, _CapableParams) else msgspec.UNSET
    if not isinstance(meta, _Capable) or not isinstance(meta.capabilities, msgspec.Raw):
        return None
    try:
        value = loads(bytes(meta.capabilities))
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def trace_members(raw: bytes) -> Json:
    """The `traceparent` and `tracestate` in a message's `_meta`, whatever they are; none where it has none."""
    message = _read(_traced, raw)
    params = message.params if message is not None else msgspec.UNSET
    meta = params.meta if isinstance(params, _TraceParams) else msgspec.UNSET
    return {"traceparent": meta.traceparent, "tracestate": meta.tracestate} if isinstance(meta, _Trace) else {}


class Splice:
    """What a spliced request's answers are held against: its id and its progress token."""

    def __init__(self, raw: bytes) -> None:
        asked = _read(_asked, raw) or _read(_named, raw) or _Named()
        self._as_read = asked.id
        is_id = isinstance(asked.id, str | int) and not isinstance(asked.id, bool)
        self.id = readable_id(raw) if is_id and _SURROGATE.search(raw) else asked.id if is_id else None
        self.error: int | Literal["tool_error", ""] = ""
        """How the last message says it went: a code, that a tool failed, or nothing of the kind."""
        self._token: Any = None
        if isinstance(asked, _Asked) and isinstance(asked.params, _AskedParams):
            self._token = asked.params.meta.progressToken if isinstance(asked.params.meta, _Meta) else None

    def judge(self, data: bytes) -> Literal["last", "pass", "drop"]:
        """What one message of the upstream's is here: the response (an error of an early rung may lack an id), a
        notification of this request's, or nothing that this client may see: another's response, progress nobody
        asked for, a request (which this revision does not have), no JSON-RPC at all."""
        message = _read(_answer, data) if _is_utf8(data) else None
        if message is None:
            return "drop"
        if message.method is msgspec.UNSET:
            return "last" if self._is_response(message) else "drop"
        if message.id is not msgspec.UNSET:
            return "drop"
        if message.method == "notifications/progress":
            token = message.params.progressToken if isinstance(message.params, _Params) else None
            return "pass" if token is not None and _same(token, self._token) else "drop"
        return "pass"

    def _is_response(self, message: _Answer) -> bool:
        if isinstance(message.error, _Error):
            self.error = message.error.code
            return message.id in (msgspec.UNSET, None) or _same(message.id, self._as_read)
        if not isinstance(message.result, msgspec.Raw) or not _same(message.id, self._as_read):
            return False
        result = memoryview(message.result)
        if _IS_ERROR.search(result):  # most results lack it
            self.error = "tool_error" if (_read(_result, bytes(result)) or _Result()).isError is True else ""
        return result[0] == ord("{")


T = TypeVar("T")


def _read(decoder: msgspec.json.Decoder[T], raw: bytes) -> T | None:
    try:
        return decoder.decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        if not _SURROGATE.search(raw):
            return None
    try:  # halves of surrogate pairs are JSON, which the decoder does not read
        return decoder.decode(_SURROGATE.sub(_STAND_IN, raw))
    except (msgspec.MsgspecError, RecursionError):
        return None


def _is_utf8(raw: bytes) -> bool:
    """Also what the decoder skips goes to a client."""
    try:
        return raw.isascii() or raw.decode() is not None
    except UnicodeDecodeError:
        return False


def _same(one: Any, other: Any) -> bool:
    return bool(one == other) and isinstance(one, str) == isinstance(other, str) and not isinstance(one, bool)
