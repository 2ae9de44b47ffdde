"""What counts as user interface, and whether a message could hold any.

Specification: MCP Apps 2026-01-26 (`io.modelcontextprotocol/ui`); beside it the marks that hosts and servers used
before it and still do (mcp-ui, the OpenAI Apps SDK, Modern.js). What is done with what is found is decided in
`policies/apps.py`; who may be shown it is not known here.
"""

import re
from collections.abc import Iterable
from typing import Any, Final

from policies.mcp import Json

# Case counts for ASCII letters alone, as in the grammars of URIs and of media types: folding by Unicode's rules would
# find marks that the scan below does not see.
_UI_URI: Final = re.compile(r"[\x00- ]*u[\t\n\r]*i[\t\n\r]*:", re.ASCII | re.IGNORECASE)
"""The scheme `ui`, also where a lenient reader of addresses finds it: those skip blanks before, and breaks in it."""

_MIME: Final = re.compile(
    r"[\x00- ]*(text/html(?:\+skybridge)?)[\x00- ]*(?:;(.*))?", re.ASCII | re.IGNORECASE | re.DOTALL
)
_REMOTE_DOM: Final = re.compile(r"[\x00- ]*application/vnd\.mcp-ui\.remote-dom", re.ASCII | re.IGNORECASE)
_PARAMETER: Final = re.compile(r'(?:[^;"]|"(?:[^"\\]|\\.)*"?)+', re.DOTALL)
_PROFILE: Final = re.compile("mcp-app", re.ASCII | re.IGNORECASE)

_META_PREFIXES: Final = ("ui/", "openai/", "mcpui.dev/")
_META_KEYS: Final = frozenset({"ui", "modernjs.dev/mcp-app"})
_AUDIENCE: Final = frozenset({"model", "app"})
_FLAT_VISIBILITY: Final = ("ui/visibility", "visibility")


def is_ui_uri(value: Any) -> bool:
    """Whether it is an address, or a template of addresses, of the scheme `ui`."""
    return isinstance(value, str) and _UI_URI.match(value) is not None


def is_ui_mime(value: Any) -> bool:
    """Whether a media type is one of an interface: HTML of the profile, and the types that were used before it."""
    if not isinstance(value, str):
        return False
    found = _MIME.fullmatch(value)
    if found is None:
        return _REMOTE_DOM.match(value) is not None
    return "+" in found[1] or any(_is_profile(one) for one in _PARAMETER.findall(found[2] or ""))


def _is_profile(parameter: str) -> bool:
    """A profile may be a list of them, between quotes (RFC 6906)."""
    name, _, said = parameter.partition("=")
    if name.strip().lower() != "profile":
        return False
    said = said.strip()
    if said.startswith('"'):
        said = re.sub(r"\\(.)", r"\1", said.strip('"'), flags=re.DOTALL)
    return any(_PROFILE.fullmatch(one) for one in said.split())


def is_ui_resource(resource: Json) -> bool:
    """Whether a listed, linked or embedded resource, or a template, is of an interface."""
    return (
        is_ui_uri(resource.get("uri")) or is_ui_uri(resource.get("uriTemplate")) or is_ui_mime(resource.get("mimeType"))
    )


def is_ui_meta(key: str, value: Any) -> bool:
    """Whether a member of `_meta` speaks of an interface. Two bare words only where their value is of its kind."""
    if key in _META_KEYS or key.startswith(_META_PREFIXES):
        return True
    if key == "resourceUri":
        return is_ui_uri(value)
    return key == "visibility" and isinstance(value, list) and all(_is_audience(one) for one in value)


def _is_audience(value: Any) -> bool:
    return isinstance(value, str) and value in _AUDIENCE


def without_ui_meta(value: Json) -> Json:
    """`value` less what its `_meta` says of an interface; a `_meta` that this empties goes too. The very same where
    there is nothing of the kind."""
    meta = value.get("_meta")
    if not isinstance(meta, dict):
        return value
    kept = {key: said for key, said in meta.items() if not is_ui_meta(key, said)}
    if len(kept) == len(meta):
        return value
    return {name: member if name != "_meta" else kept for name, member in value.items() if name != "_meta" or kept}


def is_app_only(tool: Json) -> bool:
    """Whether a tool is for the interface alone: the visibility that it declares lacks `model` (Resource Discovery).

    Nested wins over flat. A string is taken for a list of it alone; what is neither says nothing, and the default is
    both. The OpenAI Apps SDK's word for the same is `openai/visibility: "private"`."""
    meta = tool.get("_meta")
    if not isinstance(meta, dict):
        return False
    nested = meta.get("ui")
    declared = [nested.get("visibility")] if isinstance(nested, dict) else []
    flat = [meta[key] for key in _FLAT_VISIBILITY if key in meta and is_ui_meta(key, meta[key])]
    for visibility in [*declared, *flat]:
        if isinstance(visibility, str):
            return visibility != "model"
        if isinstance(visibility, list):
            return "model" not in visibility
    return meta.get("openai/visibility") == "private"


def app_only_names(tools: Iterable[Any]) -> set[str]:
    """The names of those among listed tools that are for an interface alone."""
    return {
        tool["name"]
        for tool in tools
        if isinstance(tool, dict) and isinstance(tool.get("name"), str) and is_app_only(tool)
    }


# The scan. Every mark is the beginning of a JSON string, a quote that no backslash is before: a search for quotes is a
# search for one byte, which costs next to nothing where strings are long. Within a mark, `/` may be escaped; any other
# escape that could hide a character of a mark is one itself.
_BLANKS: Final = rb"(?: |\\[bfnrt]|\\u00[012][0-9a-fA-F])*"
_BREAKS: Final = rb"(?:\\[nrt]|\\u000[9aAdD])*"
_MARK: Final = re.compile(
    rb'"(?=[ \\uUomvtTaAi])(?<!\\")(?:'
    rb'ui"|ui\\?/|openai\\?/|mcpui\.dev|modernjs\.dev|visibility"|io\.modelcontextprotocol\\?/ui"|'
    + _BLANKS
    + rb"(?:[uU]"
    + _BREAKS
    + rb"[iI]"
    + _BREAKS
    + rb':|(?i:text\\?/html[^"]|application\\?/vnd\.mcp-ui\.)))'
)
_ESCAPED: Final = re.compile(rb"\\u00(?:2[bBdDeEfF]|3[aA]|[46][1-9a-fA-F]|[57][0-9aA])")
"""Escapes of letters and of `+ - . / :`, of which every mark is made; no JSON writer has to use them."""


def might_show(raw: bytes) -> bool:
    """Whether a message could hold anything of an interface, told without decoding it. Never wrongly False."""
    return _MARK.search(raw) is not None or (b"\\" in raw and _ESCAPED.search(raw) is not None)
