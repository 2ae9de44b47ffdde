"""The bounded local presentation of a tool's result: what a desktop host keeps beside a message, as `mcp_app`, to show
the App again, and never gives to a model.

For hosts that store it: a library call, no part of the data path. Its members are `server`, `tool`, `generation`,
`resourceUri`, `csp`, `rawResult` (a CallToolResult) and `structured`; others are kept and counted. Order and numbers
are those that Reasonix documents.
"""

from collections.abc import Iterator
from typing import Any, Final

from policies import jsonrpc
from policies.mcp import Json

MAX_BYTES: Final = 524_288
"""Of the whole as compact JSON in UTF-8, metadata and framing included."""

MAX_INLINE: Final = 4096
"""Characters of a string under `data` or `blob`, at any depth of a content block."""

_MEDIA: Final = ("audio", "video")
_STEPS: Final = (("structured",), ("rawResult",), ("structured", "rawResult"), ("structured", "rawResult", "csp"))
"""What is left out together, in turn, until the rest fits. The structured result stands in the raw one too, so that it
goes first; where the raw one must go, it comes back."""


def bounded(presentation: Json, *, max_bytes: int = MAX_BYTES, max_inline: int = MAX_INLINE) -> Json | None:
    """The presentation within its bounds, None where even what names the App does not fit. The very same where nothing
    is left out. Numbers stay exact to the last digit.

    Raises ValueError where it is nested beyond about 900 levels."""
    raw = presentation.get("rawResult")
    if isinstance(raw, dict) and isinstance(raw.get("content"), list):
        kept = [block for block in raw["content"] if not _is_heavy(block, max_inline)]
        if len(kept) < len(raw["content"]):
            presentation = {**presentation, "rawResult": {**raw, "content": kept}}
    if _fits(presentation, max_bytes):
        return presentation
    for gone in _STEPS:
        rest = {name: member for name, member in presentation.items() if name not in gone}
        if _fits(rest, max_bytes):
            return rest
    return None


def _fits(presentation: Json, max_bytes: int) -> bool:
    return len(jsonrpc.dumps(presentation)) <= max_bytes


def _is_heavy(block: Any, max_inline: int) -> bool:
    """Audio or video, or anything with a long string of data: an App asks for these again, through its host."""
    if isinstance(block, dict):
        mime = block.get("mimeType")
        if block.get("type") in _MEDIA or (isinstance(mime, str) and mime.lower().startswith(("audio/", "video/"))):
            return True
    return any(len(data) > max_inline for data in _inline(block))


def _inline(block: Any) -> Iterator[str]:
    """Each string under `data` or `blob`."""
    rest = [block]
    while rest:
        value = rest.pop()
        if isinstance(value, dict):
            yield from (one for name in ("data", "blob") if isinstance(one := value.get(name), str))
            rest += value.values()
        elif isinstance(value, list):
            rest += value
