"""An upstream that tags every answer with who asked and with what, and counts."""

import asyncio
from dataclasses import dataclass, field

from tests.peers import ModernUpstream
from tests.scripted import Call, Json

TENANT = "X-Tenant"


def tag(call: Call) -> str:
    """Who asks, as far as the upstream can tell: its header, its capabilities, the page."""
    capabilities = call.seen.meta["io.modelcontextprotocol/clientCapabilities"]
    apps = "apps" if "io.modelcontextprotocol/ui" in capabilities.get("extensions", {}) else "plain"
    asks = "asks" if "elicitation" in capabilities else "mute"
    return "-".join([call.seen.headers.get(TENANT) or "nobody", apps, asks, call.seen.params.get("cursor") or "first"])


@dataclass
class Tagging:
    """Scripts `upstream` so. `made` changes with what it says, `long` makes it longer; while `hold` is not set its
    answers wait."""

    upstream: ModernUpstream
    made: int = 0
    hints: Json = field(default_factory=lambda: {"ttlMs": 3_600_000, "cacheScope": "private"})
    long: str = ""
    hold: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.hold.set()
        self.upstream.on["tools/list"] = self._list

    @property
    def count(self) -> int:
        return len(self.upstream.calls("tools/list"))

    async def when(self, count: int) -> None:
        await self.upstream.seen("tools/list", count)

    async def _list(self, call: Call) -> Json:
        made = self.made
        await self.hold.wait()
        tool: Json = {"name": tag(call), "description": str(made), "inputSchema": {"type": "object"}}
        if self.long:
            tool["title"] = self.long
        page = {"nextCursor": "2"} if "cursor" not in call.seen.params else {}
        return {"tools": [tool], **page, **self.hints}
