"""Results as rich as the wire allows, as JSON text: numbers, escapes and members that a careless proxy would lose.

`$NAME` stands for a part that is used again and again.
"""

import json
from string import Template
from typing import Any

_PARTS = {
    "META": """"_meta": {"com.example/x": 1, "com.example/deep": {"a": [null, {"b": []}]}}""",
    "ANNOTATIONS": """"annotations": {"audience": ["user"], "priority": 0.30000000000000004, "x": {"k": null}}""",
    "ICONS": """"icons": [{"src": "data:image/png;base64,AAAA", "mimeType": "image/png", "sizes": ["any"], "x": 1}]""",
    "NUMBERS": """"numbers": [0, -0.0, 1.0, 1, 0.1, 1e-7, 1.5e300, 9007199254740993, 18446744073709551616,
        123456789012345678901234567890, -170141183460469231731687303715884105729, 3.141592653589793238]""",
    "STRINGS": r""""strings": ["", "größe 日本 \ud83d\ude00", "\u0000\u001f\u007f", "</a>\u2028", "\"\\\/\b\f\r\t"]""",
    "VENDOR": """"x-vendor": {$NUMBERS, $STRINGS, "null": null, "empty": {}, "none": [], "no": false}""",
}


def _fill(text: str) -> str:
    for _ in range(2):  # parts name parts
        text = Template(text).safe_substitute(_PARTS)
    return text


_TOOLS = """{"tools": [{
  "name": "rich", "title": "A rich tool", "description": "", $ICONS, $META, $VENDOR,
  "inputSchema": {"type": "object", "properties": {"n": {"type": "number", "default": 1.0, "x-unit": "m"}},
                  "$schema": "https://json-schema.org/draft/2020-12/schema", "x-vendor": [1, 2.50]},
  "outputSchema": {"type": "object", "properties": {"v": {"anyOf": [{"type": "null"}, {"const": 1.0}]}}},
  "annotations": {"readOnlyHint": true, "title": "hint", "x-unknown": {"deep": [null]}},
  "execution": {"taskSupport": "optional"}
}], $META, $VENDOR}"""
_CALL = """{"content": [
  {"type": "text", "text": "hello", $ANNOTATIONS, $META, "x-block": 1},
  {"type": "image", "data": "AAAA", "mimeType": "image/png", $ANNOTATIONS, $META},
  {"type": "audio", "data": "AAAA", "mimeType": "audio/wav", $ANNOTATIONS, $META},
  {"type": "resource_link", "uri": "note://one", "name": "one", "size": 12345678901234567890, $ICONS, $META},
  {"type": "resource", "resource": {"uri": "note://two", "text": "two", $META, "x-inner": null}, $ANNOTATIONS},
  {"type": "resource", "resource": {"uri": "note://three", "blob": "AAEC/w==", "mimeType": "a/b"}, $META}
], "structuredContent": {"v": null, $NUMBERS, $STRINGS}, "isError": false, $META, $VENDOR}"""
_RESOURCES = """{"resources": [
  {"uri": "note://one", "name": "one", "title": "One", "size": 0, $ICONS, $ANNOTATIONS, $META, $VENDOR}
], "nextCursor": "größe=+/", $META, $VENDOR}"""
_TEMPLATES = """{"resourceTemplates": [
  {"uriTemplate": "note://{id}", "name": "n", $ICONS, $META, $VENDOR}
], $META}"""
_READ = """{"contents": [
  {"uri": "note://one", "text": "", $META, $VENDOR},
  {"uri": "note://one#b", "blob": "", "mimeType": "text/html;profile=x", $META}
], $META, $VENDOR}"""
_PROMPTS = """{"prompts": [
  {"name": "p", "title": "P", "arguments": [{"name": "a", "required": true, "x-arg": 1.0}], $ICONS, $META, $VENDOR}
], $META}"""
_PROMPT = """{"description": "d", "messages": [
  {"role": "user", "content": {"type": "text", "text": "hello", $ANNOTATIONS, $META, "x-block": 1}, "x-message": 0}
], $META, $VENDOR}"""
_COMPLETION = """{"completion": {"values": ["a"], "total": 1, "hasMore": false, "x-c": 1.0}, $META, $VENDOR}"""

RESULTS: dict[str, tuple[str, dict[str, Any]]] = {
    "tools/list": (_fill(_TOOLS), {}),
    "tools/call": (_fill(_CALL), {"name": "rich", "arguments": {}}),
    "resources/list": (_fill(_RESOURCES), {}),
    "resources/templates/list": (_fill(_TEMPLATES), {}),
    "resources/read": (_fill(_READ), {"uri": "note://one"}),
    "prompts/list": (_fill(_PROMPTS), {}),
    "prompts/get": (_fill(_PROMPT), {"name": "p"}),
    "completion/complete": (
        _fill(_COMPLETION),
        {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}},
    ),
}
"""By method: the text of the result, and the parameters that ask for it."""
for _text, _ in RESULTS.values():
    json.loads(_text)
