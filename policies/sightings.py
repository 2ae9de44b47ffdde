"""What a host that shows MCP Apps was given of them, by marks that tell it again where somebody has made plain text of
it: digests of interfaces' texts and of definitions of tools, and names of tools.

Specification: MCP Apps 2026-01-26; where things stand is in the schema of 2026-07-28, of 2025-11-25, and of the
extension io.modelcontextprotocol/tasks. What is kept of an interface is nothing that it could be made of again. How a
mark is told again is decided in `policies/provider.py`; where the books are kept is not known here.
"""

import base64
import binascii
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from typing import Any, Final, Literal

from policies.apps_marks import is_app_only, is_ui_meta, is_ui_resource, is_ui_uri
from policies.mcp import Json
from policies.provider import body_digests, digest_tool
from policies.provider_heads import head_of, line_of

Kind = Literal["body", "head", "definition", "hidden", "shown", "plain"]
"""A digest of an interface's text; what it is found by among others (`policies/provider_heads.py`); a digest of the
definition of a tool for interfaces alone; the name of such a tool, of one that has an interface, and of any other."""

Mark = tuple[Kind, str]

MAX_NAME: Final = 256
"""Characters of a tool's name; providers take 64 to 128."""

MAX_MARKS: Final = 4096
"""Of one message: more than any list of tools has."""

_METHODS: Final = frozenset({"tools/list", "tools/call", "resources/read", "prompts/get"})


def can_show(method: str) -> bool:
    """Whether the answer to a request of this method can hold anything of an interface that is remembered."""
    return method in _METHODS or method.startswith("tasks/")


def marks_of(method: str, params: Json, result: Json) -> tuple[Mark, ...]:
    """What is to be remembered of a result that goes to a host which shows Apps, each once, at most `MAX_MARKS`."""
    if method == "tools/list":
        found = _tools(result.get("tools"))
    elif method == "resources/read":
        found = _contents(result.get("contents"), is_ui=is_ui_uri(params.get("uri")))
    elif method == "prompts/get":
        found = _messages(result.get("messages"))
    else:
        found = _called(params.get("name"), _blocks([result.get("content"), _inner(result.get("result"))]))
    marks: dict[Mark, None] = {}
    for mark in found:
        marks[mark] = None
        if len(marks) >= MAX_MARKS:
            break
    return tuple(marks)


def _tools(tools: Any) -> Iterator[Mark]:
    """Of a list without any interface in it, nothing; else all names, as interfaces count in results of these tools."""
    named = [one for one in tools if _is_named(one)] if isinstance(tools, list) else []
    if not any(map(_is_of_apps, named)):
        return
    for tool in named:
        name, about = tool["name"], tool.get("description")
        if is_app_only(tool):
            yield "hidden", name
            yield "definition", digest_tool(name, about if isinstance(about, str) else None, tool.get("inputSchema"))
        else:
            yield ("shown" if _is_of_apps(tool) else "plain"), name


def _is_named(tool: Any) -> bool:
    return isinstance(tool, dict) and isinstance(tool.get("name"), str) and len(tool["name"]) <= MAX_NAME


def _is_of_apps(tool: Json) -> bool:
    meta = tool.get("_meta")
    return isinstance(meta, dict) and any(is_ui_meta(key, value) for key, value in meta.items())


def _contents(contents: Any, *, is_ui: bool) -> Iterator[Mark]:
    for resource in contents if isinstance(contents, list) else ():
        if isinstance(resource, dict) and (is_ui or is_ui_resource(resource)):
            yield from _body(resource)


def _messages(messages: Any) -> Iterator[Mark]:
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, dict):
            content = message.get("content")
            yield from _blocks([content if isinstance(content, list) else [content]])


def _called(name: Any, bodies: Iterator[Mark]) -> Iterator[Mark]:
    """A tool whose result has an interface in it has one, whatever its definition says."""
    first = next(bodies, None)
    if first is not None:
        if isinstance(name, str) and len(name) <= MAX_NAME:
            yield "shown", name
        yield first
        yield from bodies


def _inner(value: Any) -> Any:
    return value.get("content") if isinstance(value, dict) else None


def _blocks(levels: list[Any]) -> Iterator[Mark]:
    """The interfaces embedded in lists of content blocks; without recursion, since they nest as deep as JSON."""
    for level in levels:  # grows while it is walked
        for block in level if isinstance(level, list) else ():
            if not isinstance(block, dict):
                continue
            resource = block.get("resource")
            if isinstance(resource, dict) and (is_ui_resource(block) or is_ui_resource(resource)):
                yield from _body(resource)
            elif isinstance(block.get("content"), list):
                levels.append(block["content"])


def _body(resource: Json) -> Iterator[Mark]:
    texts: list[str | bytes] = []
    text, blob = resource.get("text"), resource.get("blob")
    if isinstance(text, str):
        texts.append(text)
    if isinstance(blob, str):
        texts.append(blob)
        with suppress(binascii.Error, ValueError):  # what is no base64 is text
            texts.append(base64.b64decode(blob))
    for one in texts:
        for digest in sorted(body_digests(one)):
            yield "body", digest
        head = head_of(one if isinstance(one, str) else one.decode("utf-8", "replace"))
        if head is not None:
            yield "head", head


class Book:
    """The marks of one caller at one upstream, the least used first to go. Times are in seconds since the epoch."""

    def __init__(self, max_marks: int, ttl_s: float) -> None:
        self._max = max_marks
        self._ttl_s = ttl_s
        self._seen: dict[Mark, float] = {}

    def __len__(self) -> int:
        return len(self._seen)

    def add(self, mark: Mark, now_s: float) -> bool:
        """A mark was seen; whether others must be told, as it is new here or was seen long ago."""
        before_s = self._seen.pop(mark, None)
        is_news = before_s is None or now_s - before_s > self._ttl_s / 4
        self._seen[mark] = now_s if before_s is None or is_news else before_s
        if len(self._seen) > self._max:
            self.drop_oldest()
        return is_news

    def drop_oldest(self) -> None:
        self._seen.pop(next(iter(self._seen)), None)

    def has(self, mark: Mark, now_s: float) -> bool:
        seen_s = self._seen.get(mark)
        return seen_s is not None and now_s - seen_s <= self._ttl_s

    def among(self, kind: Kind, words: Iterable[str], now_s: float) -> frozenset[str]:
        """Those of `words` that are marks of this kind here."""
        return frozenset(word for word in words if self.has((kind, word), now_s))

    def beginning(self, lines: Collection[str], now_s: float) -> list[str]:
        """Marks of interfaces whose first line has one of these digests."""
        heads = (word for kind, word in self._seen if kind == "head" and line_of(word) in lines)
        return [word for word in heads if self.has(("head", word), now_s)]

    def has_names(self, now_s: float) -> bool:
        """Whether any tool of this upstream is known by its name."""
        return any(kind in ("hidden", "shown", "plain") and self.has((kind, word), now_s) for kind, word in self._seen)
