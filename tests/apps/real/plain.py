"""The documented edits for hosts that show no MCP Apps: all that may differ from what the server itself says.

Written from MCP Apps 2026-01-26 and the manual's list of what is left out, without the gateway's own code, which it
checks. Works on answers to requests of either era, after the edits between the eras (`tests/matrix/edits.py`).
"""

import copy
import json
from email.message import Message
from typing import Any

from tests.scripted import Json

HIDDEN = "an answer as to a tool that is not there"
UNREADABLE = "an answer as to a resource that is not there"
SOMETHING = [{"type": "text", "text": "whatever stands for content that is not shown"}]


def is_view(uri: Any, mime: Any = None) -> bool:
    """Whether a resource is for hosts with Apps, by its URI or its MIME type."""
    if isinstance(uri, str) and uri.lower().startswith("ui:"):
        return True
    if not isinstance(mime, str):
        return False
    header = Message()
    header["Content-Type"] = mime
    kind = header.get_content_type()
    return (
        (kind == "text/html" and str(header.get_param("profile")).lower() == "mcp-app")
        or kind == "text/html+skybridge"
        or kind.startswith("application/vnd.mcp-ui.remote-dom")
    )


def is_linkage(key: str, value: Any) -> bool:
    """Whether a member of `_meta` only means something to hosts with Apps."""
    if key == "resourceUri":
        return is_view(value)
    if key == "visibility":
        return isinstance(value, list) and all(each in ("model", "app") for each in value)
    return key in ("ui", "modernjs.dev/mcp-app") or key.startswith(("ui/", "openai/", "mcpui.dev/"))


def unlinked(thing: Json) -> Json:
    """A tool, resource, block or result whose own `_meta` says nothing of Apps; an emptied `_meta` goes."""
    if not isinstance(thing.get("_meta"), dict):
        return thing
    kept = {key: value for key, value in thing["_meta"].items() if not is_linkage(key, value)}
    rest = {key: value for key, value in thing.items() if key != "_meta"}
    return {**rest, "_meta": kept} if kept else rest


def is_hidden(tool: Json) -> bool:
    meta = tool.get("_meta", {})
    nested = meta.get("ui", {})
    said = nested["visibility"] if "visibility" in nested else meta.get("visibility", ["model"])
    return isinstance(said, list) and "model" not in said


def blocks(content: list[Json]) -> list[Json]:
    """Content without views; what stays loses its linkage, embedded resources too."""
    kept = []
    for block in content:
        inner = block.get("resource", block)
        if block["type"] in ("resource", "resource_link") and is_view(inner.get("uri"), inner.get("mimeType")):
            continue
        rest = unlinked(block)
        kept.append({**rest, "resource": unlinked(rest["resource"])} if "resource" in rest else rest)
    return kept


def _listed(key: str, result: Json) -> None:
    def shown(entry: Json) -> bool:
        if key == "tools":
            return not is_hidden(entry)
        return not is_view(entry.get("uri", entry.get("uriTemplate")), entry.get("mimeType"))

    result[key] = [unlinked(entry) for entry in result[key] if shown(entry)]


def _called(result: Json) -> None:
    had = result["content"]
    result["content"] = blocks(had)
    if had and not result["content"]:
        structured = result.get("structuredContent")
        result["content"] = (
            SOMETHING if structured is None else [{"type": "text", "text": json.dumps(structured, ensure_ascii=False)}]
        )


def shown(method: str, params: Json, answer: Json, hidden: set[str]) -> Json | str:
    """What a host without Apps is answered where the server answers this. `hidden`: the tools for views alone."""
    if method == "tools/call" and params["name"] in hidden:
        return HIDDEN
    if method == "resources/read" and is_view(params["uri"]):
        return UNREADABLE
    answer = copy.deepcopy(answer)
    result = answer.get("result")
    if result is None:
        return answer
    match method:
        case "tools/list":
            _listed("tools", result)
        case "resources/list":
            _listed("resources", result)
        case "resources/templates/list":
            _listed("resourceTemplates", result)
        case "tools/call":
            _called(result)
        case "prompts/get":
            for message in result["messages"]:
                [message["content"]] = blocks([message["content"]]) or SOMETHING
        case "resources/read":
            result["contents"] = [unlinked(each) for each in result["contents"]]
    answer["result"] = unlinked(result)
    return answer
