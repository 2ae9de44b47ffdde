"""What a host that shows no Apps gets of a message: all of it but the user interface.

Specification: MCP Apps 2026-01-26; where things stand is in the schema of 2026-07-28, of 2025-11-25, and of the
extension io.modelcontextprotocol/tasks. What counts as interface is told in `policies/apps_marks.py`. One function each
for results, notifications, questions to the client, and requests; the very same object comes back where there is
nothing to take out, and what is not known here stays. Text that merely quotes an interface is text. Which hosts show
Apps is not known here.
"""

from collections.abc import Callable
from typing import Any, Final

from policies import jsonrpc
from policies.apps_marks import is_app_only, is_ui_resource, is_ui_uri, might_show, without_ui_meta
from policies.errors import Rejection
from policies.exchange import RequestId
from policies.mcp import (
    ACKNOWLEDGED,
    APPS_EXTENSION,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    LEGACY_RESOURCE_NOT_FOUND,
    LISTEN,
    RESOURCE_UPDATED,
    Era,
    Json,
)

MAX_READ_BYTES: Final = 8 << 20
"""Of the answer to a read of a `ui://` resource: a published server has 4,336,789 bytes of HTML."""

PLACEHOLDER: Final = "[This is a user interface, which cannot be shown here.]"
"""What stands where nothing else is left: an empty `content` reads like a tool that said nothing."""

_TEXT_LIKE: Final = frozenset({"text", "image", "audio", "tool_use"})
"""Blocks that hold no resource, whatever they have beside their own members."""

_STRAY: Final = {"params": ("result", "error"), "result": ("params",)}
"""Members of other messages, by what a message is read by."""

_READS: Final = frozenset({"resources/read", "resources/subscribe", "resources/unsubscribe"})


def _same(old: list[Any], new: list[Any]) -> bool:
    return len(old) == len(new) and all(one is other for one, other in zip(old, new, strict=True))


def _with(value: Json, name: str, new: Any) -> Json:
    """`value` with another member; the very same where that is what it has."""
    return value if value[name] is new else {**value, name: new}


def _each(value: Json, name: str, change: Callable[[Any], Any]) -> Json:
    """`value` with each element of a list in it changed, those that become None left out."""
    old = value.get(name)
    if not isinstance(old, list):
        return value
    new = [after for one in old if (after := change(one)) is not None or one is None]
    return value if _same(old, new) else {**value, name: new}


# content


def _is_ui_block(block: Json) -> bool:
    if block.get("type") in _TEXT_LIKE:
        return False
    inner = block.get("resource")
    return is_ui_resource(block) or (isinstance(inner, dict) and is_ui_resource(inner))


def _inner(block: Any) -> list[Any] | None:
    """The blocks inside a block (`tool_result` of sampling)."""
    inner = block.get("content") if isinstance(block, dict) and block.get("type") not in _TEXT_LIKE else None
    return inner if isinstance(inner, list) else None


def _blocks(content: list[Any]) -> list[Any]:
    """Content blocks less those of an interface, at every depth; without recursion, since they nest as deep as JSON."""
    levels = [content]
    for level in levels:  # grows while it is walked: what is inside comes after what it is in
        levels += [inner for block in level if (inner := _inner(block)) is not None]
    done: dict[int, list[Any]] = {}
    for level in reversed(levels):
        done[id(level)] = _level(level, done)
    return done[id(content)]


def _level(level: list[Any], done: dict[int, list[Any]]) -> list[Any]:
    kept = []
    for block in level:
        if isinstance(block, dict):
            if _is_ui_block(block):
                continue
            stripped = without_ui_meta(block)
            if isinstance(block.get("resource"), dict):
                stripped = _with(stripped, "resource", without_ui_meta(block["resource"]))
            if (inner := _inner(block)) is not None:
                stripped = _with(stripped, "content", _filled(stripped, inner, done[id(inner)]))
            kept.append(stripped)
        else:
            kept.append(block)
    return level if _same(level, kept) else kept


def _filled(holder: Json, before: list[Any], after: list[Any]) -> list[Any]:
    """Never emptied: the structured result as text, or that there was an interface."""
    if after or not before:
        return after
    structured = holder.get("structuredContent")
    text = PLACEHOLDER if structured is None else jsonrpc.dumps(structured).decode()
    return [{"type": "text", "text": text}]


def _call_result(result: Any) -> Any:
    """A CallToolResult."""
    if not isinstance(result, dict):
        return result
    result = without_ui_meta(result)
    content = result.get("content")
    if not isinstance(content, list):
        return result
    return _with(result, "content", _filled(result, content, _blocks(content)))


def _message(message: Any) -> Any:
    """A message of a prompt, or to be sampled: its content is one block, or since 2025-11-25 a list."""
    if not isinstance(message, dict):
        return message
    message = without_ui_meta(message)
    content = message.get("content")
    if isinstance(content, list):
        return _with(message, "content", _filled({}, content, _blocks(content)))
    if isinstance(content, dict):
        return _with(message, "content", _filled({}, [content], _blocks([content]))[0])
    return message


# lists and reads


def _tool(tool: Any) -> Any:
    if not isinstance(tool, dict):
        return tool
    return None if is_app_only(tool) else without_ui_meta(tool)


def _resource(resource: Any) -> Any:
    if not isinstance(resource, dict):
        return resource
    return None if is_ui_resource(resource) else without_ui_meta(resource)


def _uri(value: Any) -> Any:
    return None if is_ui_uri(value) else value


def _completion(result: Json) -> Json:
    completion = result.get("completion")
    if not isinstance(completion, dict):
        return result
    stripped = _each(completion, "values", _uri)
    total = completion.get("total")
    if stripped is not completion and isinstance(total, int) and not isinstance(total, bool):
        gone = len(completion["values"]) - len(stripped["values"])
        stripped = {**stripped, "total": max(total - gone, len(stripped["values"]))}
    return _with(result, "completion", stripped)


def _described(result: Json) -> Json:
    """Less the upstream's word that it has Apps."""
    capabilities = result.get("capabilities")
    extensions = capabilities.get("extensions") if isinstance(capabilities, dict) else None
    if not isinstance(extensions, dict) or APPS_EXTENSION not in extensions:
        return result
    kept = {name: said for name, said in extensions.items() if name != APPS_EXTENSION}
    rest = {name: said for name, said in result["capabilities"].items() if name != "extensions"}
    return {**result, "capabilities": {**rest, "extensions": kept} if kept else rest}


def _task(value: Json) -> Json:
    """What a task that is over, or in need of input, has in it (ext-tasks, Task)."""
    if isinstance(value.get("result"), dict):
        value = _with(value, "result", _asking(_call_result(value["result"])))
    return _asking(value)


def _asking(value: Json) -> Json:
    """The requests in an `InputRequiredResult`, or in a task."""
    requests = value.get("inputRequests")
    if not isinstance(requests, dict):
        return value
    stripped = strip_asks(requests)
    return value if all(stripped[key] is requests[key] for key in requests) else {**value, "inputRequests": stripped}


def _entry(entry: Any) -> Any:
    if not isinstance(entry, dict):
        return entry
    entry = without_ui_meta(entry)
    if not isinstance(entry.get("method"), str) or not isinstance(entry.get("params"), dict):
        return entry
    return _with(entry, "params", strip_ask(entry["method"], entry["params"]))


_RESULTS: Final[dict[str, Callable[[Json], Json]]] = {
    "initialize": _described,
    "server/discover": _described,
    "tools/list": lambda result: _each(result, "tools", _tool),
    "resources/list": lambda result: _each(result, "resources", _resource),
    "resources/templates/list": lambda result: _each(result, "resourceTemplates", _resource),
    "resources/read": lambda result: _each(result, "contents", _resource),
    "tools/call": _call_result,
    "tasks/result": _call_result,
    "tasks/get": _task,
    "tasks/update": _task,
    "tasks/cancel": _task,
    "prompts/get": lambda result: _each(result, "messages", _message),
    "prompts/list": lambda result: _each(result, "prompts", _prompt),
    "completion/complete": _completion,
}


def _prompt(prompt: Any) -> Any:
    return without_ui_meta(prompt) if isinstance(prompt, dict) else prompt


# what the gateway asks


def strip_result(method: str, params: Json, result: Json, era: Era) -> Json | Rejection:
    """The result of a request of this method. A resource of which only interface was read is not found, since an empty
    `contents` would say that it is there (2026-07-28 server/resources, Error Handling). What is not all of it is for
    nobody to share with other hosts."""
    known = _RESULTS.get(method)
    stripped = _asking(without_ui_meta(known(result) if known is not None else result))
    if method == "resources/read" and result.get("contents") and not stripped.get("contents"):
        return not_found(params.get("uri"), era)
    if stripped is not result and stripped.get("cacheScope") == "public":
        return {**stripped, "cacheScope": "private"}
    return stripped


def strip_notification(method: str, params: Json) -> Json | None:
    """The parameters of a notification, None where its host gets none of it."""
    if method == RESOURCE_UPDATED and is_ui_uri(params.get("uri")):
        return None
    if method == ACKNOWLEDGED:
        params = _filter(params)
    elif method == "notifications/tasks" or method.startswith("notifications/tasks/"):
        params = _task(params)
    return without_ui_meta(params)


def strip_ask(method: str, params: Json) -> Json:
    """The parameters of what an upstream asks the client for (sampling, elicitation, roots), in either era's form."""
    if method == "sampling/createMessage":
        params = _each(_each(params, "messages", _message), "tools", _tool)
    return without_ui_meta(params)


def strip_asks(requests: Json) -> Json:
    """Requests to the client by key, as `inputRequests` has them."""
    return {key: _entry(entry) for key, entry in requests.items()}


def refusal(method: str, params: Json, era: Era) -> Rejection | None:
    """Why a request is not sent: it names a resource that is an interface."""
    if method in _READS and is_ui_uri(params.get("uri")):
        return not_found(params["uri"], era)
    ref = params.get("ref")
    if method == "completion/complete" and isinstance(ref, dict) and is_ui_uri(ref.get("uri")):
        return Rejection(INVALID_PARAMS, "Resource not found: params.ref.uri")
    return None


def strip_request(method: str, params: Json) -> Json:
    """The parameters of a request as they are sent: a listener hears nothing of interfaces."""
    return _filter(params) if method == LISTEN else params


def _filter(params: Json) -> Json:
    wanted = params.get("notifications")
    if not isinstance(wanted, dict):
        return params
    return _with(params, "notifications", _each(wanted, "resourceSubscriptions", _uri))


def not_found(uri: Any, era: Era) -> Rejection:
    """What a server says of a resource that it does not have (server/resources, Error Handling)."""
    data = {"uri": uri} if isinstance(uri, str) else None
    return Rejection(INVALID_PARAMS if era == "modern" else LEGACY_RESOURCE_NOT_FOUND, "Resource not found", data)


def too_large(method: str, uri: Any, size: int, max_bytes: int) -> Rejection | None:
    """Why the answer to a read of an interface is not passed on: an error, since half a page is none."""
    if size <= max_bytes or method != "resources/read" or not is_ui_uri(uri):
        return None
    why = f"the resource is larger than the {max_bytes} bytes that limits.max_app_bytes allows"
    return Rejection(INTERNAL_ERROR, why, {"uri": uri}, http=502)


def unknown_tool(name: Any) -> Rejection:
    """What a server says of a tool that it does not have (server/tools, Error Handling)."""
    return Rejection(INVALID_PARAMS, f"Unknown tool: {name}" if isinstance(name, str) else "Unknown tool")


def strip_message(raw: bytes, method: str, uri: str | None = None) -> bytes | None:
    """One message of a modern upstream's that answers a request of this method (of a resource at `uri`), or comes
    before the answer: the very bytes where there is nothing to take out. None where the host gets none of it.

    Raises ValueError for a message that cannot be read, which is not to be passed on unread."""
    if not might_show(raw):
        return raw
    message = jsonrpc.loads(raw)
    if not isinstance(message, dict):
        raise ValueError("a message is a JSON object")
    part = "params" if "method" in message else "result"
    before = message.get(part)
    # nobody knows what a member means that its kind of message has not; of one that stands twice, readers differ in
    # which they take
    proper = {name: member for name, member in message.items() if name not in _STRAY[part]}
    is_odd = len(proper) < len(message) or jsonrpc.may_repeat(raw)
    if not isinstance(before, dict):
        return jsonrpc.dumps(proper) if is_odd else raw
    after: Json | Rejection | None
    if part == "params":
        after = strip_notification(str(message["method"]), before)
    else:
        after = strip_result(method, {} if uri is None else {"uri": uri}, before, "modern")
    if isinstance(after, Rejection):
        return _failed(message.get("id"), after)
    if after is None:
        return None
    return raw if after is before and not is_odd else jsonrpc.dumps({**proper, part: after})


def _failed(request_id: RequestId | None, why: Rejection) -> bytes:
    return jsonrpc.error_response(request_id, why.code, why.message, why.data)
