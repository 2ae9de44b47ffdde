"""The documented edits: all that may differ between a result through the gateway and the same result fetched directly.

Within one era nothing may, but for how long a result is still good, which is never more than it was. Across eras each
edit below may, must, and nothing else: the tests apply the edits to the directly fetched answer and want the gateway's
answer to be exactly that, JSON for JSON, types of numbers included. Written from the specification's two revisions and
without the gateway's own code, which it checks.
"""

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
CACHEABLE = {"tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read"}


@dataclass(frozen=True)
class Call:
    """What an edit may look at besides the answer: the request it answers and who the upstream is."""

    method: str
    params: Json
    server_info: Json


@dataclass(frozen=True)
class Edit:
    """`apply` changes the answer ({"result": …} or {"error": …}) in place. `methods`: None means every request."""

    reason: str
    methods: set[str] | None
    apply: Callable[[Json, Call], None]


def _results(change: Callable[[Json, Call], None]) -> Callable[[Json, Call], None]:
    def apply(answer: Json, call: Call) -> None:
        if "result" in answer:
            change(answer["result"], call)

    return apply


def _errors(change: Callable[[Json, Call], None]) -> Callable[[Json, Call], None]:
    def apply(answer: Json, call: Call) -> None:
        if "error" in answer:
            change(answer["error"], call)

    return apply


def _drop(*members: str) -> Callable[[Json, Call], None]:
    return _results(lambda result, _call: [result.pop(member, None) for member in members] and None)


def _drop_server_info(result: Json, _call: Call) -> None:
    if SERVER_INFO in result.get("_meta", {}):
        del result["_meta"][SERVER_INFO]
        if not result["_meta"]:
            del result["_meta"]


def _structured_to_text(result: Json, _call: Call) -> None:
    if "structuredContent" in result and not isinstance(result["structuredContent"], dict):
        structured = result.pop("structuredContent")
        if not result["content"]:
            result["content"] = [{"type": "text", "text": json.dumps(structured, separators=(",", ":"))}]


def _output_schemas_of_objects(result: Json, _call: Call) -> None:
    for tool in result["tools"]:
        if tool.get("outputSchema", {"type": "object"}).get("type") != "object":
            del tool["outputSchema"]


def _spell_out_booleans(result: Json, _call: Call) -> None:
    for tool in result["tools"]:
        for schema in (tool.get("outputSchema", {}), tool["inputSchema"]):
            for name, subschema in schema.get("properties", {}).items():
                if subschema is True:
                    schema["properties"][name] = {}
                elif subschema is False:
                    schema["properties"][name] = {"not": {}}


def _not_found_to_legacy(error: Json, _call: Call) -> None:
    if error["code"] == -32602 and "uri" in error.get("data", {}):
        error["code"] = -32002


def _not_found_to_modern(error: Json, call: Call) -> None:
    if error["code"] in (0, -32002):
        error["code"] = -32602
        error["data"] = {**(error.get("data") or {}), "uri": call.params["uri"]}


def _complete(result: Json, _call: Call) -> None:
    result["resultType"] = "complete"


def _cache_hints(result: Json, _call: Call) -> None:
    result.update(ttlMs=0, cacheScope="private")


def _add_server_info(result: Json, call: Call) -> None:
    result["_meta"] = {**result.get("_meta", {}), SERVER_INFO: call.server_info}


def _drop_execution(result: Json, _call: Call) -> None:
    for tool in result["tools"]:
        tool.pop("execution", None)


def _drop_unroutable(result: Json, _call: Call) -> None:
    result["tools"] = [tool for tool in result["tools"] if tool["name"] != "unroutable"]


MODERN_TO_LEGACY = (
    Edit("2025-11-25 has no resultType", None, _drop("resultType")),
    Edit("2025-11-25 has no caching hints", CACHEABLE, _drop("ttlMs", "cacheScope")),
    Edit("a legacy client knows the server from initialize", None, _results(_drop_server_info)),
    Edit("structuredContent is an object until 2026-07-28", {"tools/call"}, _results(_structured_to_text)),
    Edit("so is what an outputSchema may describe", {"tools/list"}, _results(_output_schemas_of_objects)),
    Edit("2025-11-25: properties of schemas are objects", {"tools/list"}, _results(_spell_out_booleans)),
    Edit("2025-11-25: a missing resource is -32002", {"resources/read"}, _errors(_not_found_to_legacy)),
)

LEGACY_TO_MODERN = (
    Edit("2026-07-28: every result names its type", None, _results(_complete)),
    Edit("2026-07-28: cacheable results carry hints", CACHEABLE, _results(_cache_hints)),
    Edit("2026-07-28: results name the server", None, _results(_add_server_info)),
    Edit("tasks of 2025-11-25 are gone, and execution with them", {"tools/list"}, _results(_drop_execution)),
    Edit("2026-07-28: tools with a bad x-mcp-header are excluded", {"tools/list"}, _results(_drop_unroutable)),
    Edit("2026-07-28: a missing resource is -32602 with its uri", {"resources/read"}, _errors(_not_found_to_modern)),
)

EDITS: dict[tuple[str, str], tuple[Edit, ...]] = {
    ("modern", "modern"): (),
    ("legacy", "legacy"): (),
    ("modern", "legacy"): MODERN_TO_LEGACY,
    ("legacy", "modern"): LEGACY_TO_MODERN,
}
"""By (era of the upstream, era that the client negotiated with the gateway)."""


def edited(answer: Json, call: Call, eras: tuple[str, str]) -> Json:
    """The direct answer as it must come through the gateway."""
    answer = copy.deepcopy(answer)
    for edit in EDITS[eras]:
        if edit.methods is None or call.method in edit.methods:
            edit.apply(answer, call)
    return answer


def told_of_time(expected: Json, got: Json) -> Json:
    """What was expected with the time that the gateway tells in place of the server's, where it is part of that
    (2026-07-28 server/utilities/caching, Freshness Calculation)."""
    wanted, left = (answer.get("result", {}).get("ttlMs") for answer in (expected, got))
    if type(wanted) is not int or type(left) is not int or not 0 < left <= wanted:
        return expected
    return {**expected, "result": {**expected["result"], "ttlMs": left}}
