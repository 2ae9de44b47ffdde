"""What tools answer day by day, none of it an interface: texts that quote one, documents with names like MCP's, pages.

`TEXTS` are results as text, `DOCUMENTS` as JSON. Each comes from a kind of tool that people use, in that tool's form.
"""

import base64
import json
from typing import Any

PAGE = (
    "<!DOCTYPE html>\n<html lang='en'><head><title>News</title><meta name='_meta'></head><body>"
    + "<article><h1>ui:// explained</h1><p>All about <code>text/html;profile=mcp-app</code>.</p></article>\n" * 30
    + "</body></html>\n"
)
PIXELS = base64.b64encode(bytes(range(256)) * 40).decode()
ROWS = [
    {"id": number, "name": f"customer {number}", "tags": ["new", "uk"], "balance": number * 1.5, "meta": {"v": 1}}
    for number in range(400)
]

TEXTS: dict[str, str] = {
    "TypeScript that registers an App": (
        'import { registerAppResource } from "@modelcontextprotocol/ext-apps/server";\n'
        'const resourceUri = "ui://get-time/mcp-app.html";\n'
        'server.registerTool("get-time", { _meta: { ui: { resourceUri } } }, async () => ({\n'
        '  content: [{ type: "resource", resource: { uri: resourceUri, mimeType: "text/html;profile=mcp-app" } }],\n'
        "}));\n"
    ),
    "Python that makes one": (
        'def view():\n    return {"type": "resource", "resource": {"uri": "ui://x", "_meta": {"ui": {}}}}\n'
    ),
    "Python as one literal": "['ui://x', {'_meta': {'ui': {'resourceUri': 'ui://x'}}}]",
    "a change to code": (
        '--- a/app.json\n+++ b/app.json\n@@ -1 +1 @@\n-{"uri": "ui://old"}\n+{"uri": "ui://new", "_meta": {}}\n'
    ),
    "what grep finds": 'src/a.ts:12:  uri: "ui://a/b.html",\nsrc/b.ts:3:  _meta: {"ui": {"visibility": ["app"]}},\n',
    "a page about Apps in Markdown": '# Apps\n\nThe scheme is `ui://`.\n\n```json\n{"_meta": {"ui": {"resourceUri": "ui://x"}}}\n```\n',
    "a page that was fetched": PAGE,
    "a page that was fetched, in a frame": f"Contents of https://example.com:\n\n{PAGE}\n\n[end]",
    "a part of a page": "<div data-uri='ui://x'><script type='application/json'>{\"_meta\":{\"ui\":1}}</script></div>",
    "a page that is cut": PAGE[:700],
    "a feed": '<?xml version="1.0"?><rss><item><enclosure type="audio/mpeg" url="https://a/b.mp3"/></item></rss>',
    "a log": '2026-12-01T00:00:00Z INFO got {"uri":"ui://x","_meta":{"ui":1}} from upstream\n' * 40,
    "a log of lines of JSON": "".join(
        json.dumps({"t": number, "msg": "resource ui://x", "_meta": {"ui": number}}) + "\n" for number in range(60)
    ),
    "a table": "uri,_meta,mime\nui://a,{},text/html;profile=mcp-app\n" * 30,
    "YAML": "_meta:\n  ui:\n    resourceUri: ui://x\ntype: resource\nmimeType: text/html;profile=mcp-app\n",
    "SQL": "[SELECT] * FROM apps WHERE uri LIKE 'ui://%' AND \"_meta\" -> 'ui' IS NOT NULL;",
    "a stack trace": '[ERROR] ValueError: {"_meta": {"ui": missing}}\n  File "ui://x", line 3\n',
    "a question about JSON": '{"_meta": ...} is what a result carries; "ui://" is the scheme.',
    "a template": '{"uri": "ui://{{ name }}", "_meta": {{ meta | tojson }}}',
    "a quotation": '"ui://x" and "_meta" are names.',
    "a list in brackets": "[x] read ui://x\n[ ] write _meta\n",
    "JSON that is cut": '{"mappings": {"_meta": {"ui": {"resourceUri": "ui://x"}}, "properties": {"blob": {"type": "b',
    "JSON with a comment": '// settings\n{"_meta": {"ui": 1}, /* see ui:// */ "data": 1}',
    "JSON with a comma too many": '{"_meta": {"ui": 1}, "uri": "ui://x",}',
    "base64 of a picture": PIXELS,
    "an address with data": f"data:image/png;base64,{PIXELS}",
    "escapes": r"[\u0075\u0069://x] C:\temp\new \"_meta\" \\ua",
    "half of a pair": "\ud83d ui:// \udc00 {}",
    "nothing": "",
    "a number": "12345678901234567890.50",
    "a word": "null",
    "Cyrillic, Chinese and faces": "\u0434\u0430 \u4e2d\u6587 \U0001f600 ui:// _meta" * 60,
    "what this gateway says of an interface": "[This is a user interface, which cannot be shown here.]",
}

DOCUMENTS: dict[str, Any] = {
    "a mapping of Elasticsearch": {
        "my-index": {
            "mappings": {
                "_meta": {"ui": {"resourceUri": "ui://kibana/view"}, "created_by": "x"},
                "properties": {"text": {"type": "text"}, "blob": {"type": "binary"}, "uri": {"type": "keyword"}},
            }
        }
    },
    "hits of Elasticsearch": {
        "hits": {"hits": [{"_id": "1", "_source": {"type": "article", "text": "ui://", "_meta": {"ui": 1}}}]}
    },
    "long rows": {"rows": ROWS},
    "a schema": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "properties": {"_meta": {"type": "object"}, "uri": {"const": "ui://x"}, "mcp_app": {"type": "boolean"}},
    },
    "an OpenAPI document": {
        "openapi": "3.1.0",
        "paths": {"/ui": {"get": {"responses": {"200": {"content": {"text/html;profile=mcp-app": {}}}}}}},
        "tools": [{"name": "x", "uri": "ui://y", "_meta": {"ui": 1}}, "more"],
    },
    "an archive of requests": {
        "log": {"entries": [{"response": {"content": {"mimeType": "text/html", "text": PAGE, "size": 9}, "_meta": 1}}]}
    },
    "a message of a mailbox": {
        "id": "1",
        "payload": {"mimeType": "text/html", "body": {"size": 9, "data": PIXELS}, "filename": "ui.html"},
    },
    "a notebook": {
        "cells": [{"cell_type": "code", "outputs": [{"data": {"text/html": [PAGE], "image/png": PIXELS}}]}],
        "metadata": {"_meta": {"ui": 1}},
    },
    "a search for films": {
        "items": [{"type": "video", "url": "https://a/b", "title": "ui://", "data": "x", "mimeType": "video"}] * 3
    },
    "a list of podcasts": [{"type": "audio", "url": "https://a/b.mp3", "length": 9}, {"type": "audio/mpeg", "data": 3}],
    "a list of songs": {"tracks": [{"type": "track", "uri": "spotify:track:1", "name": "a", "_meta": {"ui": 1}}]},
    "a page of an editor": {
        "type": "doc",
        "_meta": {"ui": 1},
        "content": [{"type": "paragraph", "_meta": 1, "content": [{"type": "text", "text": "ui://", "marks": []}]}],
    },
    "blocks of a wiki": {
        "results": [{"type": "text", "text": {"content": "ui://"}, "_meta": {"ui": 1}}, {"type": "image", "data": {}}]
    },
    "a patient": {
        "resourceType": "Patient",
        "meta": {"versionId": "1", "profile": ["ui://x"]},
        "text": {"status": "generated", "div": "<div>x</div>"},
    },
    "resources of JSON:API": {
        "data": [{"type": "apps", "id": "1", "attributes": {"uri": "ui://x"}, "meta": {"ui": 1}}],
        "meta": {"ui": {"page": 1}},
        "jsonapi": {"version": "1.1"},
    },
    "a manifest of Kubernetes": {
        "kind": "ConfigMap",
        "metadata": {"name": "ui", "annotations": {"ui/resourceUri": "ui://x", "openai/x": "y"}},
        "data": {"view.html": PAGE, "blob": PIXELS},
    },
    "a package": {"name": "x", "uri": "ui://x", "_meta": {"ui": {}}, "dependencies": {"@modelcontextprotocol/ui": "1"}},
    "names of tools": {"tools": ["ui://x", "_meta", "show"], "visibility": ["app"], "_meta": {"ui": 1}},
    "a listing of a registry": {
        "servers": [{"server": {"name": "a", "_meta": {"ui": 1}}, "_meta": {"io.modelcontextprotocol.registry": {}}}]
    },
    "flags": {"features": {"mcp_app": True, "ui": "ui://x"}, "data": PIXELS},
    "a file": {"path": "a.html", "encoding": "base64", "content": PIXELS, "type": "file", "url": "ui://x"},
    "a file as text": {"path": "a.json", "content": '{"_meta": {"ui": {"resourceUri": "ui://x"}}}'},
    "a search of code": {"items": [{"path": "a.ts", "fragment": TEXTS["TypeScript that registers an App"]}] * 3},
    "messages of a chat": {"messages": [{"role": "user", "content": "ui://", "_meta": {"ui": 1}, "type": "message"}]},
    "an answer with nothing in it": {"content": [], "_meta": {"ui": 1}},
    "a page of a content system": {"content": [{"type": "hero", "text": "ui://", "_meta": {"ui": 1}}], "_meta": {}},
    "numbers": {"exact": 2**53 + 1, "price": 1.50, "_meta": [1e300, -0.0, 123456789012345678901234567890]},
    "a stream of sensors": [[number, number / 7, "_meta", "ui://x"] for number in range(500)],
    "base64 under a name of its own": {"screenshot": "A" * 20_000, "_meta": {"ui": 1}},
    "files of an App": [
        {"type": "file", "name": "app.html", "mimeType": "text/html;profile=mcp-app", "size": 9, "_meta": {"ui": 1}},
        {"file": {"mimeType": "text/html;profile=mcp-app"}, "url": "ui://x", "document": {"mime_type": "text/html"}},
    ],
    "resources of a server": [{"name": "app", "uri": "ui://x", "mimeType": "text/html;profile=mcp-app"}],
    "nothing": {},
    "a list of nothing": [[], {}, None],
}
