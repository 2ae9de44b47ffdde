"""Which objects in a tool's result are MCP's own or a provider's blocks, and which of them are not for a model.

Specification: 2026-07-28 schema (ContentBlock, ResourceContents, CallToolResult, Tool, the results of lists), beside it
the same as Python's SDK dumps them (`mime_type`); of the providers, the blocks that a result may hold. A plain JSON
object is none of these. What is done with what is found is decided in `policies/provider_results.py`.
"""

from typing import Any, Final

from policies.apps_marks import is_ui_mime, is_ui_uri
from policies.mcp import Json

MAX_INLINE: Final = 4096
"""Characters of a string under `data` or `blob` of a block that is no image."""

ENCODED: Final = frozenset({"data", "blob", "bytes", "file_data", "fileData"})
_ADDRESSES: Final = ("uri", "uriTemplate", "url", "file_url", "fileUri", "file_uri")
_TITLES: Final = ("title", "context", "source", "name")
_MIMES: Final = ("mimeType", "mime_type", "media_type")
_INNER: Final = ("resource", "source", "inlineData", "inline_data", "fileData", "file_data", "document", "file")
_MCP_RESOURCES: Final = frozenset({"resource", "resource_link"})
_DOCUMENTS: Final = frozenset({"document", "search_result", "input_file", "file", "searchResult"})
_HOLDERS: Final = ("resource", "inlineData", "inline_data")
_MEDIA_DATA: Final = ("data", "source", "url", "base64", "input_audio", "mimeType", "mime_type")
_IMAGES: Final = frozenset({"image", "image_url", "input_image"})


def is_ui_block(value: Json) -> bool:
    """Whether a block of a result is an embedded or linked interface, in MCP's form or in a provider's."""
    kind = value.get("type")
    if kind == "text":
        return False
    if isinstance(kind, str) or is_contents(value):
        is_document = kind in _DOCUMENTS
        if kind in _MCP_RESOURCES or is_document or is_contents(value) or _mime(value) is not None:
            if _points_to_ui(value, titles=is_document):
                return True
        else:
            return False
    inner = [member for name in _INNER if isinstance(member := value.get(name), dict)]
    if kind is None and not any(_mime(one) is not None for one in inner):
        return False
    return any(_points_to_ui(one) for one in inner)


def _points_to_ui(value: Json, *, titles: bool = False) -> bool:
    names = (*_ADDRESSES, *_TITLES) if titles else _ADDRESSES
    return is_ui_mime(_mime(value)) or any(is_ui_uri(value.get(name)) for name in names)


def _mime(value: Json) -> Any:
    return next((value[name] for name in _MIMES if isinstance(value.get(name), str)), None)


def is_contents(value: Json) -> bool:
    """ResourceContents."""
    return isinstance(value.get("uri"), str) and (
        isinstance(value.get("text"), str) or isinstance(value.get("blob"), str)
    )


def _is_block(value: Any) -> bool:
    """A ContentBlock."""
    if not isinstance(value, dict):
        return False
    match value.get("type"):
        case "text":
            return isinstance(value.get("text"), str)
        case "image" | "audio" | "video":
            return isinstance(value.get("data"), str)
        case "resource":
            resource = value.get("resource")
            return isinstance(resource, dict) and isinstance(resource.get("uri"), str)
        case "resource_link":
            return isinstance(value.get("uri"), str)
        case _:
            return False


def is_tool(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return False
    return isinstance(value.get("inputSchema"), dict) or isinstance(value.get("input_schema"), dict)


def _is_listed(value: Any) -> bool:
    return isinstance(value, dict) and (
        is_tool(value)
        or is_contents(value)
        or (isinstance(value.get("name"), str) and ("uri" in value or "uriTemplate" in value))
    )


def _is_result(value: Json) -> bool:
    """A CallToolResult, or the result of a list or a read."""
    if "structuredContent" in value or "structured_content" in value:
        return True
    content = value.get("content")
    if isinstance(content, list):
        return all(map(_is_block, content)) if content else "isError" in value or "is_error" in value
    for name in ("tools", "resources", "resourceTemplates", "contents"):
        listed = value.get(name)
        if isinstance(listed, list) and listed:
            return all(map(_is_listed, listed))
    return False


def is_mcp(value: Json) -> bool:
    """Whether an object is one of MCP's, whose `_meta` is not the user's data."""
    return _is_block(value) or is_contents(value) or is_tool(value) or _is_result(value) or _is_listed(value)


def has_mcp(value: Any) -> bool:
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
    return tool if "_meta" in tool or not isinstance(tool.get("meta"), dict) else {**tool, "_meta": tool["meta"]}


def is_image(value: Json, name: str) -> bool:
    """Whether a member is the data of an image."""
    if value.get("type") in _IMAGES:
        return name in ("data", "source", "image_url", "base64")
    mime = _mime(value)
    return name == "data" and isinstance(mime, str) and mime.lower().startswith("image/")


def media_of(value: Json) -> str | None:
    """What to call a block of audio or video."""
    inner: Json = next((one for name in _HOLDERS if isinstance(one := value.get(name), dict)), {})
    mime = _mime(value) or _mime(inner)
    kind = value.get("type")
    if kind in ("audio", "video", "input_audio", "input_video"):
        if not any(name in value for name in _MEDIA_DATA):
            return None
        return f"{str(kind).removeprefix('input_')}, {mime or 'unknown type'}"
    if not isinstance(mime, str) or not mime.lower().startswith(("audio/", "video/")):
        return None
    if not any(isinstance(one.get(name), str) for one in (value, inner) for name in ("data", "blob")):
        return None
    return f"{mime[:5].lower()}, {mime}"


def is_heavy(value: Json) -> bool:
    """A block of MCP's with a long string of data that is no image."""
    if value.get("type") == "resource" and isinstance(value.get("resource"), dict):
        value = value["resource"]
    elif not is_contents(value) and not (isinstance(value.get("type"), str) and _mime(value) is not None):
        return False
    mime = _mime(value)
    if value.get("type") == "image" or (isinstance(mime, str) and mime.lower().startswith("image/")):
        return False
    return any(len(one) > MAX_INLINE for name in ("data", "blob") if isinstance(one := value.get(name), str))


def says_nothing(before: Json, after: Json, placeholder: str) -> bool:
    """Whether a provider's own block has lost its document."""
    if before.get("type") not in _DOCUMENTS and "document" not in before:
        return False
    after = after.get("document", after)
    source = after.get("source")
    inner = [source.get(name) for name in ("data", "bytes", "text")] if isinstance(source, dict) else []
    return placeholder in [after.get("file_data"), *inner]
