"""The sessions at a command, and what those of one common child do to it without knowing of each other.

Specification: 2025-11-25 server/resources (Subscriptions), server/utilities/logging. The child is told the union of
what they subscribe to and the most verbose of their levels; each hears only what it asked for.
"""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from gateway.upstreams.channel import Channel
from policies.mcp import LOG_LEVELS, LOG_MESSAGE, RESOURCE_UPDATED, Json


@dataclass(eq=False, slots=True)
class Room:
    """One session at the upstream. `channel` is its own child; None where it is the common one."""

    id: str
    channel: Channel | None = None
    uris: set[str] = field(default_factory=set)
    level: str | None = None
    used_s: float = field(default_factory=time.monotonic)
    expiry: asyncio.TimerHandle | None = None


class Rooms:
    """All sessions of one upstream, by their ids."""

    def __init__(self) -> None:
        self._by_id: dict[str, Room] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Room]:
        return iter(tuple(self._by_id.values()))

    def __contains__(self, room: Room) -> bool:
        return self._by_id.get(room.id) is room

    def get(self, session: str) -> Room | None:
        return self._by_id.get(session)

    def add(self, room: Room) -> Room:
        self._by_id[room.id] = room
        return room

    def remove(self, room: Room) -> bool:
        """Whether it was there."""
        return self._by_id.pop(room.id, None) is not None

    @property
    def level(self) -> str | None:
        """The most verbose level that any session wants."""
        levels = [room.level for room in self if room.level is not None]
        return min(levels, key=LOG_LEVELS.index, default=None)

    @property
    def uris(self) -> set[str]:
        """What any session has subscribed to."""
        return {uri for room in self for uri in room.uris}

    def take(self, message: Json, room: Room) -> Json | None:
        """A request of one session to the common child: the answer where the child need not hear of it, else None, the
        message changed in place where it must hear something else."""
        params = message.get("params") or {}
        uri, level = params.get("uri"), params.get("level")
        if message["method"] == "resources/subscribe" and isinstance(uri, str):
            room.uris.add(uri)
        elif message["method"] == "resources/unsubscribe" and isinstance(uri, str):
            room.uris.discard(uri)
            if uri in self.uris:
                return {"result": {}}
        elif message["method"] == "logging/setLevel" and level in LOG_LEVELS:
            room.level = level
            message["params"] = {**params, "level": self.level}
        return None


def hears(room: object, method: str, params: Json) -> bool:
    """Whether a session of the common child may see what names no request."""
    if not isinstance(room, Room):
        return True
    if method == RESOURCE_UPDATED:
        uri = str(params.get("uri"))
        return any(uri == one or uri.startswith(one.removesuffix("/") + "/") for one in room.uris)
    if method == LOG_MESSAGE and room.level is not None and params.get("level") in LOG_LEVELS:
        return LOG_LEVELS.index(params["level"]) >= LOG_LEVELS.index(room.level)
    return True
