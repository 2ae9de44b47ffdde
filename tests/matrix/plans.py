"""What every client does with each upstream: one list of steps an upstream, the same for each driver.

A step's id says what it is about; drivers/steps.py says what the ops mean. Each request of a plan is unlike every other
by its method and name, uri, cursor or arguments, which is how the tests find its answer on the wire.
"""

from typing import Any

Step = dict[str, Any]

LISTS: list[Step] = [
    {"id": f"list {what}", "op": "list", "what": what} for what in ("tools", "prompts", "resources", "templates")
]


def _call(name: str, arguments: dict[str, Any] | None = None, **more: Any) -> Step:
    return {"id": f"call {name}", "op": "call", "name": name, "arguments": arguments or {}, **more}


def _read(uri: str) -> Step:
    return {"id": f"read {uri}", "op": "read", "uri": uri}


def _get(name: str, arguments: dict[str, str] | None = None) -> Step:
    return {"id": f"get {name}", "op": "get", "name": name, **({"arguments": arguments} if arguments else {})}


def _complete(ref: dict[str, str], name: str, value: str) -> Step:
    step = {"op": "complete", "ref": ref, "argument": {"name": name, "value": value}}
    return {"id": f"complete {ref['type']}", **step}


_OWN: list[Step] = [
    *LISTS,
    _call("rich"),
    _call(
        "echo",
        {"ключ": "значение € ☃ 𝄞", "none": None, "deep": {"list": [1, 2.5, None, {"": []}], "yes": True}, "n": -3},
        meta={"com.example/t": {"ä": [None, 0.1]}},
    ),
    _call("fails"),
    _call("progress", {"steps": 3}),
    {**_call("logs"), "level": "info"},
    _call("where", {"region": "Zürich", "level": 2}),
    _call("ツール"),
    _call("no such tool"),
    _read("test://docs/%C3%A4%20x"),
    _read("test://blob"),
    _read("test://missing"),
    _get("greet", {"who": "Jürgen", "lang": "de"}),
    _get("no such prompt"),
    _complete({"type": "ref/prompt", "name": "greet"}, "who", "Z"),
    _complete({"type": "ref/resource", "uri": "test://t/{id}"}, "id", "日"),
]

_EVERYTHING: list[Step] = [
    *LISTS,
    _call("echo", {"message": "hällo ☃"}),
    _call("get-sum", {"a": 1, "b": 2.5}),
    _call("get-structured-content", {"location": "Chicago"}),
    _call("get-tiny-image"),
    _call("get-annotated-message", {"messageType": "error", "includeImage": True}),
    _call("get-resource-links", {"count": 3}),
    _call("trigger-long-running-operation", {"duration": 0.2, "steps": 2}),
    {"id": "call wrongly", "op": "call", "name": "get-sum", "arguments": {"a": "one"}},
    _call("no-such-tool"),
    _read("demo://resource/static/document/architecture.md"),
    _read("demo://resource/static/document/missing.md"),
    _get("simple-prompt"),
    _get("args-prompt", {"city": "Zürich"}),
    _get("no-such-prompt"),
    _complete({"type": "ref/prompt", "name": "completable-prompt"}, "department", "E"),
]

PLANS: dict[str, list[Step]] = {
    "modern-only": [*_OWN, _call("numbers"), _call("loose")],
    "sessions-only": [*_OWN, _call("tasky")],
    "sessionless": [*_OWN, _call("tasky")],
    "everything": _EVERYTHING,
}
"""By upstream."""

TOOL_ERRORS = {"call fails", "call wrongly"}
"""Steps whose result must say isError."""

ERRORS: dict[str, set[str]] = {
    upstream: {"call no such tool", "read test://missing", "get no such prompt"} for upstream in PLANS
}
ERRORS["everything"] = {"read demo://resource/static/document/missing.md", "get no-such-prompt"}
"""Steps that must end in a JSON-RPC error. (The high-level TypeScript server says isError to an unknown tool.)"""

ASKS: dict[str, list[Step]] = {
    "modern-only": [_call("ask"), {**_call("ask", {"kinds": ["elicitation"]}), "id": "call ask for one"}],
    "sessions-only": [_call("ask"), {**_call("ask", {"kinds": ["elicitation"]}), "id": "call ask for one"}],
    "asks-on-get": [_call("ask")],
    "everything": [
        _call("trigger-elicitation-request"),
        _call("trigger-sampling-request", {"prompt": "hi ☃", "maxTokens": 10}),
        _call("get-roots-list"),
    ],
}
"""Calls whose tools ask the client for something, by upstream."""
