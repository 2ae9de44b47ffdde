"""What is left of a tool's result on its way to a provider: what is said, and nothing that was only to be shown.

Looked at in this order: the structure of MCP's own objects, JSON in strings, digests of known interfaces, and pages of
HTML where the called tool is known to have an interface. A plain JSON document is the user's data, whatever its members
are called. Where results stand in a provider's body is told in `policies/provider_shapes.py`.
"""

import json
import re
from collections.abc import Callable
from typing import Any, Final

import pydantic_core

from policies import jsonrpc
from policies import provider_heads as heads
from policies import provider_marks as marks
from policies.apps import PLACEHOLDER
from policies.apps_marks import is_app_only
from policies.mcp import Json
from policies.provider_blocks import (
    ENCODED,
    STRUCTURED,
    has_mcp,
    is_heavy,
    is_image,
    is_mcp,
    is_plain,
    is_presentation,
    is_tool,
    is_ui_block,
    less_meta,
    media_of,
    says_nothing,
    with_meta,
)
from policies.provider_look import Look
from policies.splice import GONE, splice, without_gone

TOO_DEEP: Final = "[This is nested too deeply to be passed on.]"

_NEXT: Final = re.compile(r"\s*(?=[{\[])")
_reader: Final = json.JSONDecoder()

_SHORT: Final = marks.MIN_BODY_BYTES // 4
"""Shorter texts have no digest, but for markup."""
_BEGINS: Final = frozenset('{["' + " \t\n\r")
"""What JSON in a string may begin with."""

Form = Callable[[str], Any]
"""How a provider writes a block of text."""


def mcp_text(text: str) -> Json:
    """A block of text in MCP's form, which Anthropic's and OpenAI's chats share."""
    return {"type": "text", "text": text}


def _is_short(text: str) -> bool:
    """Whether a text is neither JSON nor markup nor long enough for a digest."""
    return len(text) < _SHORT and text[:1] not in _BEGINS and "<" not in text


class Results(Look):
    """A look at what tools have answered."""

    __slots__ = ()

    def text(self, text: str, tool: str, depth: int = 0) -> str:
        """A string of a result: the very same where there is nothing to take out."""
        if self.is_long(text) and self.is_body(self.digest(text), tool):
            return self.instead("body")
        begins = text[:1]
        if begins.isspace():
            begins = text.lstrip()[:1]
        if begins and begins in '{["':
            return self._document(text, tool, depth)
        return self._pages(self._among_others(text, tool), tool)

    def _among_others(self, text: str, tool: str) -> str:
        """Text without the known interfaces that stand in it on lines of their own."""
        if not self.has_ledger:
            return text
        pieces, at = [], 0
        for begins, line in heads.starts_in(text):
            self.wanted.add(line)
            if begins < at:
                continue
            for ends, digest in heads.spans(text, begins, line, self.known.heads):
                if self.is_body(digest, tool):
                    pieces += [text[at:begins], self.instead("body")]
                    at = ends
                    break
        return "".join([*pieces, text[at:]]) if pieces else text

    def _pages(self, text: str, tool: str) -> str:
        """Text around a page stays."""
        sniffs = self.has_ui(tool)
        if not (sniffs or self.is_long(text)):
            return text
        if sniffs and marks.is_base64_page(text):
            return self.instead("html")
        spans = marks.pages_in(text)
        if sniffs and spans:
            begins, ends = spans[0]
            return text[:begins] + self.instead("html") + text[ends:]
        pieces, at = [], 0
        for begins, ends in spans:
            page = text[begins:ends]
            if self.is_long(page) and self.is_body(self.digest(page), tool) and begins >= at:
                pieces += [text[at:begins], self.instead("body")]
                at = ends
        return "".join([*pieces, text[at:]]) if pieces else text

    def _document(self, text: str, tool: str, depth: int) -> str:
        """JSON in a string, written anew only where something in it changed, and there alone."""
        raw = marks.utf8(text)
        is_marked = marks.has_marks(raw) or (not self.keeps_structured and marks.has_structured(raw))
        if not is_marked and not self.has_ui(tool) and not self._could_hold(raw):
            return text
        try:
            value = jsonrpc.loads(raw)
        except ValueError:
            several = self._several(text, tool, depth)
            return self._torn(text, raw, tool, depth) if several == text else several
        return self._changed(text, raw, value, tool, depth)

    def _changed(self, text: str, raw: bytes, value: Any, tool: str, depth: int) -> str:
        after = self.json(value, tool, depth)
        if after is GONE:
            return PLACEHOLDER
        once = self._unequivocal(raw, value)
        return text if after is value and once is raw else splice(once, value, after).decode()

    def _several(self, text: str, tool: str, depth: int) -> str:
        """JSON that more follows, JSON or not; then JSON line by line. Each text is read once, each line once more."""
        pieces, at = [], 0
        while begins := _NEXT.match(text, at):
            try:
                _, ends = _reader.raw_decode(text, begins.end())
            except (ValueError, RecursionError):
                break
            pieces += [begins[0], self._piece(text[begins.end() : ends], tool, depth)]
            at = ends
        lines = text[at:].split("\n")
        pieces.append("\n".join(self._piece(line, tool, depth) if line[:1] in ("{", "[") else line for line in lines))
        return "".join(pieces)

    def _piece(self, text: str, tool: str, depth: int) -> str:
        raw = marks.utf8(text)
        try:
            value = jsonrpc.loads(raw)
        except ValueError:
            return text
        return self._changed(text, raw, value, tool, depth)

    def _torn(self, text: str, raw: bytes, tool: str, depth: int) -> str:
        """What hosts and writers make of JSON: it ends too early, or has numbers that are none. What there is of it is
        looked at, and where something is taken out, written anew."""
        try:
            value = pydantic_core.from_json(raw)
        except ValueError as error:
            if str(error).startswith("recursion limit exceeded"):  # it was JSON as far as that
                holds = self._could_hold(raw.translate(None, b"[]{}"))  # which are no long string
                return self.instead("depth", TOO_DEEP) if holds else text
            if not str(error).startswith(
                "EOF while parsing"
            ):  # else it would be read up to the error, and the rest lost
                return self._pages(text, tool)
            value = pydantic_core.from_json(raw, allow_partial="trailing-strings")
        after = self.json(value, tool, depth)
        if after is value:
            return self._pages(text, tool)
        return PLACEHOLDER if after is GONE else json.dumps(without_gone(after), ensure_ascii=False)

    def _unequivocal(self, raw: bytes, value: Any) -> bytes:
        """Where an object of MCP's names a member twice, a model reads both: it is written anew, with the last."""
        try:
            if not marks.has_marks(raw) or not jsonrpc.repeats(raw, value):
                return raw
            if not (has_mcp(value) or has_mcp(jsonrpc.first_reading(raw)[0])):
                return raw
            once = jsonrpc.dumps(value)
        except ValueError:
            return raw
        self.removed["repeated"] += 1
        return once

    # JSON

    def json(self, value: Any, tool: str, depth: int = 0) -> Any:
        """A value of a result: the very same where there is nothing to take out, GONE where nothing is left."""
        if isinstance(value, str):
            return self.text(value, tool, depth)
        if isinstance(value, dict):
            return self._object(value, tool, depth)
        if isinstance(value, list):
            return self._array(value, tool, depth)
        return value

    def blocks(self, value: list[Any], tool: str, form: Form) -> list[Any]:
        """A provider's own list of blocks: what is left out stands as GONE, also where that is all of it."""
        after = [self._block(one, tool, 1, form) if isinstance(one, dict) else self.json(one, tool, 1) for one in value]
        return value if all(one is other for one, other in zip(value, after, strict=True)) else after

    def _array(self, value: list[Any], tool: str, depth: int) -> Any:
        if depth >= self.bounds.max_depth:
            return self._deep(value)
        is_short = not self.has_ui(tool)
        after: list[Any] | None = None
        for place, one in enumerate(value):  # of a long list, what needs no look costs next to nothing
            if isinstance(one, dict):
                new = self._object(one, tool, depth + 1)
            elif isinstance(one, list) or (isinstance(one, str) and not (is_short and _is_short(one))):
                new = self.json(one, tool, depth + 1)
            else:
                continue
            if new is not one:
                after = list(value) if after is None else after
                after[place] = new
        if after is None:
            return value
        return [mcp_text(PLACEHOLDER)] if all(one is GONE for one in after) else after

    def _deep(self, value: Any) -> Any:
        """What lies too deep is passed on where it could hold nothing."""
        try:
            if not value or not self._could_hold(jsonrpc.dumps(value)):
                return value
        except ValueError:  # deeper than can be written
            pass
        return self.instead("depth", TOO_DEEP)

    def _could_hold(self, raw: bytes) -> bool:
        """Whether a text of JSON could hold what is told by its structure, or a text that the ledger may know."""
        return marks.has_marks(raw) or (self.has_ledger and (marks.has_markup(raw) or marks.has_long_string(raw)))

    def _object(self, value: Json, tool: str, depth: int) -> Any:
        if depth >= self.bounds.max_depth:
            return self._deep(value)
        if is_plain(value):
            return self._members(value, value, tool, depth)
        return self._telling(value, tool, depth)

    def _block(self, value: Json, tool: str, depth: int, form: Form) -> Any:
        """A provider's own block."""
        media = media_of(value, is_native=True)
        if media is not None:
            return form(self.instead("media", f"[{media}]"))
        return self._telling(value, tool, depth, form, is_native=True)

    def _telling(self, value: Json, tool: str, depth: int, form: Form = mcp_text, *, is_native: bool = False) -> Any:
        """What may be one of MCP's objects, or is a provider's block."""
        found = self._whole(value, is_native=is_native)
        if found is not value:
            return found
        is_known = is_native or is_mcp(value)
        kept: Json = {}
        for name, member in value.items():
            if (rest := self._member(value, name, member, is_known=is_known)) is not GONE:
                kept[name] = rest
        after = self._members(value, kept, tool, depth, form)
        if is_known:
            after = self._filled(value, after)
            if says_nothing(value, after, PLACEHOLDER):
                return GONE
        return after

    def _members(self, value: Json, kept: Json, tool: str, depth: int, form: Form = mcp_text) -> Json:
        """What is kept of an object's members, each looked at: `value` itself where that is all of it unchanged."""
        is_short = not self.has_ui(tool)
        changed: Json = {}
        for name, member in kept.items():
            if isinstance(member, str):
                if (is_short and _is_short(member)) or is_image(value, name):
                    continue
                new: Any = self._encoded(name, member, tool) or self.text(member, tool, depth + 1)
            elif isinstance(member, dict | list) and not is_image(value, name):
                new = self.json(member, tool, depth + 1)
            else:
                continue
            if new is not member:
                changed[name] = form(PLACEHOLDER) if new is GONE else new
        if changed:
            return {**kept, **changed}
        return value if len(kept) == len(value) and all(kept[name] is value[name] for name in kept) else kept

    def _whole(self, value: Json, *, is_native: bool) -> Any:
        """What becomes of a block, a resource or a tool as a whole."""
        if is_ui_block(value, is_native=is_native):
            self.removed["resource"] += 1
            return GONE
        if (media := media_of(value, is_native=False)) is not None:
            return mcp_text(self.instead("media", f"[{media}]"))
        if is_heavy(value):
            self.removed["data"] += 1
            return GONE
        if is_tool(value) and is_app_only(with_meta(value)):
            self.removed["tool"] += 1
            return GONE
        if value.get("type") == "tool_reference" and self.is_gone(value.get("tool_name")):
            self.removed["tool_choice"] += 1
            return GONE
        return value

    def _member(self, value: Json, name: str, member: Any, *, is_known: bool) -> Any:
        """What becomes of a member because of its name."""
        if name == "_meta" and is_known:
            self.removed["meta"] += 1
            return GONE
        if name == "meta" and is_known and isinstance(member, dict):
            kept = less_meta(value, member)
            if len(kept) < len(member):
                self.removed["meta"] += 1
                return kept or None
        if name == "mcp_app" and (is_known or is_presentation(member)):
            self.removed["presentation"] += 1
            return GONE
        return member

    def _encoded(self, name: str, value: str, tool: str) -> str | None:
        """What stands instead of the base64 of an interface."""
        if name not in ENCODED or not self.is_long(value):
            return None
        if self.has_ui(tool) and marks.is_base64_page(
            value.partition(",")[2] if value[:5].lower() == "data:" else value
        ):
            return self.instead("html")
        inner = marks.decoded(value)
        if inner is not None and self.is_body(self.digest(value, inner), tool):
            return self.instead("body")
        return None

    def _filled(self, value: Json, after: Json) -> Json:
        """A result whose content is gone says what it has in its structured form; where a setting wants one copy of
        both, that is the content."""
        content, name = after.get("content"), next((one for one in STRUCTURED if after.get(one) is not None), None)
        if name is None or not content:
            return after
        if content is not value.get("content") and content == [mcp_text(PLACEHOLDER)]:
            after = {**after, "content": [mcp_text(jsonrpc.dumps(without_gone(after[name])).decode())]}
        if not self.keeps_structured:
            self.removed["structured"] += 1
            after = {key: member for key, member in after.items() if key != name}
        return after
