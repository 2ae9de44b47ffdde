"""Content blocks and tools that more than one table of messages is made of."""

from typing import Any

from policies.mcp import Json

TEXT: Json = {"type": "text", "text": "hi", "annotations": {"priority": 0.5}, "x": 1}
IMAGE: Json = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
AUDIO: Json = {"type": "audio", "data": "aGk=", "mimeType": "audio/wav", "annotations": {"priority": 1}, "x": 1}
LINK: Json = {
    "type": "resource_link",
    "uri": "file:///a",
    "name": "a",
    "title": "A",
    "size": 5,
    "_meta": {"k": 1},
    "x": 1,
}
EMBEDDED: Json = {"type": "resource", "resource": {"uri": "file:///a", "text": "t"}}
AUDIO_TEXT: Json = {"type": "text", "text": "[audio, audio/wav]", "annotations": {"priority": 1}, "x": 1}
LINK_TEXT: Json = {"type": "text", "text": "a file:///a", "_meta": {"k": 1}, "x": 1}


def tool(**members: Any) -> Json:
    return {"name": "t", "inputSchema": {"type": "object"}, **members}


def mirroring(header: Any) -> Json:
    return tool(inputSchema={"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": header}}})


def tools(*listed: Any, **members: Any) -> Json:
    return {"tools": list(listed), **members}
