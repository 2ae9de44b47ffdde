"""What every Python driver shares: read the plan, walk its steps with one client, print one JSON document.

The plan comes on stdin: {"url", "mode", "asks": bool or answers by kind, "steps": [{"id", "op", ...}]}. Ops: list (of
tools, prompts, resources, templates; every page), call, read, get, complete. The document on stdout: {"sdk": {name:
version}, "negotiated", "server", "instructions", "capabilities", "steps": {id: {"ok": ...} | {"error": {code, message,
data}}}, "progress": {id: [...]}, "asked": [...]}: all of it as the SDK gave it to its caller. A tool under `then` of a
step is called beside it. Raw JSON is the tap's part. Knows no SDK: a driver brings an adapter. Runs in every Python
environment, so it imports the standard library alone.
"""

import asyncio
import json
import sys
from typing import Any, Protocol

ANSWERS: dict[str, dict[str, Any]] = {
    "elicitation": {"action": "accept", "content": {"name": "Änn", "age": 7}},
    "sampling": {
        "role": "assistant",
        "content": {"type": "text", "text": "hi € ☃"},
        "model": "a-model",
        "stopReason": "endTurn",
    },
    "roots": {"roots": [{"uri": "file:///projects/x", "name": "würzel"}]},
}


class Adapter(Protocol):
    """One connected client. Results are dumped to JSON under the wire's names, without None."""

    error: type[Exception]
    progress: list[Any]

    async def list(self, what: str, cursor: str | None) -> tuple[list[str], str | None]: ...
    async def call(self, name: str, arguments: dict[str, Any] | None, meta: dict[str, Any] | None) -> Any: ...
    async def set_level(self, level: str) -> dict[str, Any] | None:
        """Asks for log messages from `level` on: for the session, or by the `_meta` it returns for the next call."""

    async def read(self, uri: str) -> Any: ...
    async def get(self, name: str, arguments: dict[str, str] | None) -> Any: ...
    async def complete(self, ref: dict[str, Any], argument: dict[str, str]) -> Any: ...
    def describe_error(self, error: Exception) -> dict[str, Any]: ...


def dump(value: Any) -> Any:
    return None if value is None else value.model_dump(mode="json", by_alias=True, exclude_none=True)


def read_plan() -> dict[str, Any]:
    plan: dict[str, Any] = json.loads(sys.stdin.buffer.read())
    if isinstance(plan["asks"], dict):
        ANSWERS.update(plan["asks"])
    return plan


async def list_all(adapter: Adapter, what: str) -> dict[str, Any]:
    names: list[str] = []
    pages = 0
    cursor: str | None = None
    while pages == 0 or cursor is not None:
        more, cursor = await adapter.list(what, cursor)
        names += more
        pages += 1
        assert pages < 50, "the pages never end"
    return {"names": names, "pages": pages}


async def take(adapter: Adapter, step: dict[str, Any]) -> Any:
    match step["op"]:
        case "list":
            return await list_all(adapter, step["what"])
        case "call":
            meta = step.get("meta")
            if "level" in step:
                meta = await adapter.set_level(step["level"])
            return await adapter.call(step["name"], step.get("arguments"), meta)
        case "read":
            return await adapter.read(step["uri"])
        case "get":
            return await adapter.get(step["name"], step.get("arguments"))
        case "complete":
            return await adapter.complete(step["ref"], step["argument"])
        case op:
            raise ValueError(op)


async def walk(adapter: Adapter, plan: dict[str, Any]) -> dict[str, Any]:
    outcomes: dict[str, Any] = {}
    progress: dict[str, Any] = {}
    for step in plan["steps"]:
        adapter.progress.clear()
        also = [adapter.call(step["then"], None, None)] if "then" in step else []
        try:
            outcomes[step["id"]] = {"ok": (await asyncio.gather(take(adapter, step), *also))[0]}
        except adapter.error as error:
            outcomes[step["id"]] = {"error": adapter.describe_error(error)}
        progress[step["id"]] = list(adapter.progress)
    return {"steps": outcomes, "progress": progress}


def show(document: dict[str, Any]) -> None:
    sys.stdout.buffer.write(json.dumps(document, ensure_ascii=False).encode())
