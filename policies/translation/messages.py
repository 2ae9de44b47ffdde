"""Results, errors and notifications of one era in the words of the other.

Specification: schema of 2026-07-28 and of each legacy revision; 2026-07-28 changelog. Only what the other revision
cannot carry is changed; every unknown member passes.
"""

from typing import Any

from policies.errors import Rejection
from policies.headers import InvalidAnnotation, param_headers
from policies.jsonrpc import dumps
from policies.mcp import (
    CACHEABLE,
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    LEGACY_RESOURCE_NOT_FOUND,
    LEGACY_URL_ELICITATION,
    META_SERVER_INFO,
    META_SUBSCRIPTION_ID,
    MISSING_CLIENT_CAPABILITY,
    UNSUPPORTED_VERSION,
    Json,
    at_least,
)

_RESPONSE_META = (META_SERVER_INFO, META_SUBSCRIPTION_ID)
_NEWER_CONTENT = {
    "audio": ("2025-03-26", ("data", "mimeType")),
    "resource_link": ("2025-06-18", ("uri", "name", "title", "description", "mimeType", "size", "icons")),
}
"""Kinds of content block that came later than others: the first revision with it, and the members of its own."""

_MAX_SHOWN = 64
"""Characters of a foreign word that an error message repeats."""


def without_meta(value: Json, *keys: str) -> Json:
    """`value` less those `_meta` members; an emptied `_meta` goes too, one that was empty stays."""
    meta = value.get("_meta")
    if not isinstance(meta, dict) or not any(key in meta for key in keys):
        return value
    kept = {k: v for k, v in meta.items() if k not in keys}
    rest = {k: v for k, v in value.items() if k != "_meta"}
    return {**rest, "_meta": kept} if kept else rest


def result_to_modern(method: str, result: Json, server_info: Json | None) -> Json:
    """A legacy result as 2026-07-28 has it: `resultType`, caching hints, serverInfo in `_meta`.

    What a legacy server wrote under those names is not what they mean here, so it is replaced.
    """
    out: Json = {**result, "resultType": "complete"}
    if method in CACHEABLE:
        out |= {"ttlMs": 0, "cacheScope": "private"}
    if method == "tools/list":
        out = _usable_tools(out)
        if isinstance(out.get("tools"), list):
            # `execution` speaks of 2025-11-25's tasks, which no modern client can drive
            out["tools"] = [_less(tool, "execution") if isinstance(tool, dict) else tool for tool in out["tools"]]
    if server_info is not None:
        meta = result.get("_meta")
        out["_meta"] = {META_SERVER_INFO: server_info, **(meta if isinstance(meta, dict) else {})}
    return out


def result_to_legacy(method: str, result: Json, version: str) -> Json | Rejection:
    """A modern result for a client of the legacy revision `version`, or why it cannot be one.

    A result that is not `complete` has no legacy form: never an empty success (basic/index, ResultType).
    """
    kind = result.get("resultType", "complete")
    if kind == "input_required":
        return Rejection(
            INTERNAL_ERROR,
            "the server needs input from the user (resultType input_required), which this gateway cannot yet ask of "
            "a client that speaks a version before 2026-07-28",
        )
    if kind != "complete":
        shown = repr(kind[:_MAX_SHOWN]) if isinstance(kind, str) else "of a wrong type"
        return Rejection(INTERNAL_ERROR, f"the server answered with resultType {shown}, which {version} cannot carry")
    out = without_meta(_less(result, "resultType", "ttlMs", "cacheScope"), *_RESPONSE_META)
    return result_to_older(method, _usable_tools(out) if method == "tools/list" else out, version)


def result_to_older(method: str, result: Json, version: str) -> Json:
    """A result in the words of a legacy revision, as the client of `version` can read it."""
    if method == "tools/list" and isinstance(result.get("tools"), list):
        return {**result, "tools": [_tool_to_older(tool, version) for tool in result["tools"]]}
    if method == "tools/call":
        result = _structured_to_older(result, version)
        if isinstance(result.get("content"), list):
            return {**result, "content": [_block_to_older(block, version) for block in result["content"]]}
    if method == "prompts/get" and isinstance(result.get("messages"), list):
        return {**result, "messages": [message_to_older(message, version) for message in result["messages"]]}
    return result


def error_to_modern(method: str, params: Json, code: int, message: str, data: Any) -> Rejection:
    """A legacy error as 2026-07-28 has it: -32002 and -32042 must not be emitted (basic/index, Error Codes).

    The Python SDK 1.x answers a missing resource with code 0. What this revision calls a header mismatch or an
    unsupported version can only be of the server's own making here, and would send the client looking for another era.
    """
    if code == LEGACY_RESOURCE_NOT_FOUND or (code == 0 and method == "resources/read"):
        known = data if isinstance(data, dict) else {}
        if "uri" in params:
            known = {**known, "uri": params["uri"]}
        return Rejection(INVALID_PARAMS, message, known or data)
    if code in (HEADER_MISMATCH, UNSUPPORTED_VERSION):
        return Rejection(INTERNAL_ERROR, message, data)
    if code == LEGACY_URL_ELICITATION:
        return Rejection(MISSING_CLIENT_CAPABILITY, message, {"requiredCapabilities": {"elicitation": {"url": {}}}})
    return Rejection(code, message, data)


def error_to_legacy(method: str, code: int, message: str, data: Any) -> Rejection:
    """A modern error for a legacy client: a resource that is not found has a code of its own there."""
    if code == INVALID_PARAMS and method == "resources/read" and isinstance(data, dict) and "uri" in data:
        return Rejection(LEGACY_RESOURCE_NOT_FOUND, message, data)
    return Rejection(code, message, data)


def notification_to_legacy(params: Json) -> Json:
    """A notification of a modern stream for a legacy client: the stream's own id leaves."""
    return without_meta(params, META_SUBSCRIPTION_ID)


def _usable_tools(result: Json) -> Json:
    """A list less the tools whose `x-mcp-header` annotations are invalid: clients MUST exclude those (streamable-http,
    Schema Extension), and this gateway is the client of the upstream."""
    tools = result.get("tools")
    return {**result, "tools": [t for t in tools if _annotations_hold(t)]} if isinstance(tools, list) else result


def _annotations_hold(tool: Any) -> bool:
    try:
        param_headers(tool.get("inputSchema") if isinstance(tool, dict) else None)
    except InvalidAnnotation:
        return False
    return True


def _tool_to_older(tool: Any, version: str) -> Any:
    """Before 2025-06-18 there is no `outputSchema`. Without a literal `type: "object"` at its root, or with a boolean
    among the properties of either schema, the TypeScript v1 client refuses the whole list."""
    if not isinstance(tool, dict):
        return tool
    output = tool.get("outputSchema")
    if not at_least(version, "2025-06-18") or not isinstance(output, dict) or output.get("type") != "object":
        tool = _less(tool, "outputSchema")
    schemas = {k: _spelled_properties(tool[k]) for k in ("inputSchema", "outputSchema") if k in tool}
    return {**tool, **schemas}


def _spelled_properties(schema: Any) -> Any:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        return schema
    return {**schema, "properties": {k: _spelled_out(v) for k, v in properties.items()}}


def _spelled_out(schema: Any) -> Any:
    return schema if not isinstance(schema, bool) else {} if schema else {"not": {}}


def _structured_to_older(result: Json, version: str) -> Json:
    """`structuredContent` exists since 2025-06-18, and was an object until 2026-07-28; its JSON stays as text."""
    if "structuredContent" not in result:
        return result
    structured = result["structuredContent"]
    if isinstance(structured, dict) and at_least(version, "2025-06-18"):
        return result
    out = _less(result, "structuredContent")
    if not out.get("content"):
        out["content"] = [{"type": "text", "text": dumps(structured).decode()}]
    return out


def _block_to_older(block: Any, version: str) -> Any:
    """A content block that the client's revision does not know becomes text: an unknown type makes it fail. What it
    shares with text (annotations, `_meta`), and what nobody knows, stays."""
    kind = block.get("type") if isinstance(block, dict) else None
    if not isinstance(kind, str) or kind not in _NEWER_CONTENT:
        return block
    since, own = _NEWER_CONTENT[kind]
    if at_least(version, since):
        return block
    text = f"[audio, {block.get('mimeType', 'unknown type')}]"
    if kind == "resource_link":
        text = " ".join(str(block[k]) for k in ("name", "uri") if k in block)
    return {**_less(block, *own), "type": "text", "text": text}


def message_to_older(message: Any, version: str) -> Any:
    """A message of a prompt, or to be sampled, as the client of `version` can read it."""
    if not isinstance(message, dict) or "content" not in message:
        return message
    return {**message, "content": _block_to_older(message["content"], version)}


def _less(value: Json, *keys: str) -> Json:
    return {k: v for k, v in value.items() if k not in keys}
