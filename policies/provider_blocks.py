"""Which objects in a tool's result are MCP's own or a provider's blocks, and which of them are not for a model.

Specification: 2026-07-28 schema (ContentBlock, ResourceContents, CallToolResult, Tool, the results of lists), beside it
the same as Python's SDK dumps them (`mime_type`, `meta`); of the providers, the blocks that a result may hold. A plain
JSON object is none of these. What is done with what is found is decided in `policies/provider_results.py`.
"""

from typing import Any, Final

from policies.apps_marks import is_ui_meta, is_ui_mime, is_ui_uri
from policies.mcp import Json

MAX_INLINE: Final = 4096
"""Characters of a string under `data` or `blob` of a block that is no image."""

ENCODED: Final = frozenset({"data", "blob", "bytes", "file_data", "fileData"})
"""Members that hold base64."""

_ADDRESSES: Final = ("uri", "uriTemplate", "url", "file_url", "fileUri", "file_uri")
_DATA_URLS: Final = ("file_data", "fileData", "url", "file_url", "data")
_MAX_MIME: Final = 256
"""Characters of a media type; longer ones are nobody's."""
_TITLES: Final = ("title", "context", "source", "name")
_MIMES: Final = ("mimeType", "mime_type", "media_type")
_INNER: Final = ("resource", "source", "inlineData", "inline_data", "fileData", "file_data", "document", "file")
_LISTS: Final = ("tools", "resources", "resourceTemplates", "contents")
STRUCTURED: Final = ("structuredContent", "structured_content")
_DOCUMENTS: Final = frozenset({"document", "search_result", "input_file", "file"})
_IMAGES: Final = frozenset({"image", "image_url", "input_image"})
_IMAGE_DATA: Final = frozenset({"data", "source", "image_url", "base64", "image"})
_HOLDERS: Final = ("resource", "inlineData", "inline_data")
_BODIES: Final = ("data", "blob", "text", "base64")
_PRESENTATION: Final = frozenset({"resourceUri", "rawResult", "structured", "csp"})

_TELLING: Final = frozenset(
    {"type", "content", "inputSchema", "input_schema", "_meta", "meta", "mcp_app", "video", "image", *ENCODED}
    | {*_ADDRESSES, *_MIMES, *_INNER, *_LISTS, *STRUCTURED}
)


def is_plain(value: Json) -> bool:
    """Whether an object is the user's data, told by the names of its members alone. Not always found out."""
    return _TELLING.isdisjoint(value)


def is_ui_block(value: Json, *, is_native: bool) -> bool:
    """Whether a block of a result embeds or links an interface, in MCP's form or in a provider's (`is_native`)."""
    kind = _kind(value)
    if is_native:
        if kind == "text":
            return False
        names = (*_ADDRESSES, *_TITLES) if kind in _DOCUMENTS else _ADDRESSES
        inner = [member for name in _INNER if isinstance(member := value.get(name), dict)]
        return _is_ui(value, names) or any(_is_ui(one, _ADDRESSES) for one in inner)
    resource = value.get("resource")
    if kind == "resource" or (kind is None and isinstance(resource, dict) and "uri" in resource):
        return _is_ui(value, _ADDRESSES) or (isinstance(resource, dict) and _is_ui(resource, _ADDRESSES))
    if kind == "resource_link" or is_contents(value):
        return _is_ui(value, _ADDRESSES)
    if not isinstance(kind, str) or kind == "text":
        return False
    return is_ui_mime(_mime(value)) and any(isinstance(value.get(name), str) for name in _BODIES)


def _is_ui(value: Json, names: tuple[str, ...]) -> bool:
    if is_ui_mime(_mime(value)) or any(is_ui_uri(value.get(name)) for name in names):
        return True
    return any(is_ui_mime(_data_mime(value[name])) for name in _DATA_URLS if name in value)


def _data_mime(value: Any) -> str | None:
    """The media type of a `data:` URL (RFC 2397)."""
    if not isinstance(value, str) or value[:5].lower() != "data:":
        return None
    return value[5 : 5 + _MAX_MIME].partition(",")[0].removesuffix(";base64")


def is_presentation(value: Any) -> bool:
    """Whether a member is what a host keeps to show an App again, and no user's flag or schema of that name."""
    return isinstance(value, dict) and not _PRESENTATION.isdisjoint(value)


def _kind(value: Json) -> str | None:
    """What a block says it is; None for what is no word."""
    kind = value.get("type")
    return kind if isinstance(kind, str) else None


def _mime(value: Json) -> Any:
    for name in _MIMES:
        if isinstance(mime := value.get(name), str):
            return mime
    return None


def is_contents(value: Json) -> bool:
    """ResourceContents."""
    return isinstance(value.get("uri"), str) and (
        isinstance(value.get("text"), str) or isinstance(value.get("blob"), str)
    )


def is_block(value: Any) -> bool:
    """A ContentBlock."""
    if not isinstance(value, dict):
        return False
    match value.get("type"):
        case "text":
            return isinstance(value.get("text"), str)
        case "image" | "audio" | "video":
            return isinstance(value.get("data"), str) and isinstance(_mime(value), str)
        case "resource":
            resource = value.get("resource")
            return isinstance(resource, dict) and isinstance(resource.get("uri"), str)
        case "resource_link":
            return isinstance(value.get("uri"), str)
        case _:
            return False


def is_tool(value: Any) -> bool:
    """A Tool."""
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return False
    return isinstance(value.get("inputSchema"), dict) or isinstance(value.get("input_schema"), dict)


def _is_listed(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    is_resource = isinstance(value.get("name"), str) and ("uri" in value or "uriTemplate" in value)
    return is_resource or is_tool(value) or is_contents(value)


def is_result(value: Json) -> bool:
    """A CallToolResult, or the result of a list or a read."""
    if any(name in value for name in STRUCTURED):
        return True
    content = value.get("content")
    if isinstance(content, list):
        if "isError" in value or "is_error" in value:
            return True
        is_other = value.get("type", "tool_result") != "tool_result"
        return bool(content) and not is_other and all(map(is_block, content))
    listed: list[Any] = next((value[name] for name in _LISTS if isinstance(value.get(name), list)), [])
    return bool(listed) and all(map(_is_listed, listed))


def is_mcp(value: Json) -> bool:
    """Whether an object is one of MCP's, whose `_meta` is not the user's data."""
    return (
        is_block(value)
        or is_contents(value)
        or is_tool(value)
        or is_result(value)
        or (_is_listed(value) and _mime(value) is not None)
    )


def has_mcp(value: Any) -> bool:
    """Whether there is an object of MCP's anywhere in a value."""
    rest = [value]
    while rest:
        one = rest.pop()
        if isinstance(one, dict):
            if is_mcp(one):
                return True
            rest += one.values()
        elif isinstance(one, list):
            rest += one
    return False


def with_meta(tool: Json) -> Json:
    """A tool, also as Python's SDK dumps it."""
    return tool if "_meta" in tool or not isinstance(tool.get("meta"), dict) else {**tool, "_meta": tool["meta"]}


def less_meta(value: Json, meta: Json) -> Json:
    """What stays of a bare `meta` of an object of MCP's: nothing where Python's SDK has dumped the object (it writes
    every member, or names the type of a resource), else what does not speak of interfaces."""
    if "annotations" in value or "isError" in value or "is_error" in value or (is_contents(value) and _mime(value)):
        return {}
    return {key: said for key, said in meta.items() if not is_ui_meta(key, said)}


def is_image(value: Json, name: str) -> bool:
    """Whether a member is the data of an image."""
    if name not in _IMAGE_DATA:
        return False
    if _kind(value) in _IMAGES:
        return name != "image"
    if name == "image":
        return isinstance(value[name], dict) and "source" in value[name]
    mime = _mime(value)
    return name == "data" and isinstance(mime, str) and mime.lower().startswith("image/")


def media_of(value: Json, *, is_native: bool) -> str | None:
    """What to call a block of audio or video, in MCP's form or in a provider's (`is_native`); None for any other."""
    kind = value.get("type")
    inner: Json = next((one for name in _HOLDERS if isinstance(one := value.get(name), dict)), {})
    mime = _mime(value) or _mime(inner)
    if is_native:
        if kind in ("audio", "video", "input_audio", "input_video", "video_url", "audio_url"):
            return f"{kind[:5] if kind[:5] in ('audio', 'video') else kind[6:]}, {mime or 'unknown type'}"
        for name in ("video", "audio"):
            if kind is None and isinstance(value.get(name), dict):
                return f"{name}, {value[name].get('format', 'unknown type')}"
    elif not is_block(value) and not is_contents(value):
        return None
    if not isinstance(mime, str) or not mime.lower().startswith(("audio/", "video/")):
        return None
    has_data = any(isinstance(one.get(name), str) for one in (value, inner) for name in ("data", "blob"))
    return f"{mime[:5].lower()}, {mime}" if has_data else None


def is_heavy(value: Json) -> bool:
    """A block of MCP's with a long string of data that is no image."""
    if value.get("type") == "resource" and isinstance(value.get("resource"), dict):
        value = value["resource"]
    elif not is_contents(value) and not (isinstance(value.get("type"), str) and _has_own_mime(value)):
        return False
    mime = _mime(value)
    if value.get("type") == "image" or (isinstance(mime, str) and mime.lower().startswith("image/")):
        return False
    return any(len(one) > MAX_INLINE for name in ("data", "blob") if isinstance(one := value.get(name), str))


def _has_own_mime(value: Json) -> bool:
    """Whether a media type stands there as MCP names it: Anthropic's documents name it otherwise, and are its own."""
    return isinstance(value.get("mimeType"), str) or isinstance(value.get("mime_type"), str)


def says_nothing(before: Json, after: Json, placeholder: str) -> bool:
    """Whether a block has lost all that it said."""
    if _kind(before) in _DOCUMENTS or isinstance(before.get("document"), dict):
        after = after.get("document", after)
        source = after.get("source")
        inner = [source.get(name) for name in ("data", "bytes", "text")] if isinstance(source, dict) else []
        return placeholder in [after.get("file_data"), *inner]
    if "json" in before and after["json"] is not before["json"]:
        return bool(after["json"] == {"text": placeholder})
    return before.get("text") != placeholder and after.get("text") == placeholder
