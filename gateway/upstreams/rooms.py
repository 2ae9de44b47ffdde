"""The sessions that live in this process: at a command, or at an upstream over HTTP+SSE. When each of them ends that
nobody uses, and what those of one common child do to it without knowing of each other.

Specification: 2025-11-25 server/resources (Subscriptions), server/utilities/logging. The child is told the union of
what they subscribe to and the most verbose of their levels; each hears only what it asked for.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from gateway.upstreams.channel import Channel
from policies.mcp import LOG_LEVELS, LOG_MESSAGE, RESOURCE_UPDATED, Json

IDLE_S = 1800.0
"""How long a session's own channel is kept while nobody calls on it or reads its stream: its client is gone without a
word."""

YIELDS_AFTER_S = 60.0
"""How long it must have been so before it makes room for another session where there may be no more."""


@dataclass(eq=False, slots=True)
class Room:
    """One session at the upstream. `channel` is its own; None where it is that of the common child."""

    id: str
    channel: Channel | None = None
    uris: set[str] = field(default_factory=set)
    level: str | None = None
    used_s: float = field(default_factory=time.monotonic)
    expiry: asyncio.TimerHandle | None = None


class Rooms:
    """All sessions of one upstream, by their ids. `end` ends one of them; `is_used`: whether anybody uses it now."""

    def __init__(self, end: Callable[[Room], None], is_used: Callable[[Room], bool]) -> None:
        self._by_id: dict[str, Room] = {}
        self._end = end
        self._is_used = is_used

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
        if room.expiry is not None:
            room.expiry.cancel()
        return self._by_id.pop(room.id, None) is not None

    def used(self, room: Room) -> None:
        """It ends after `IDLE_S` more without a call or a reader."""
        room.used_s = time.monotonic()
        if room.expiry is not None:
            room.expiry.cancel()
        if room in self:
            room.expiry = asyncio.get_running_loop().call_later(IDLE_S, self._expire, room)

    def make_room(self, bound: int) -> bool:
        """Whether one more may be opened where there may be `bound`: one that has been idle for long ends for it."""
        if len(self) < bound:
            return True
        idle = [room for room in self if room.channel is not None and not room.channel.is_busy]
        oldest = min(idle, key=lambda room: room.used_s, default=None)
        if oldest is None or time.monotonic() - oldest.used_s < YIELDS_AFTER_S:
            return False
        self._end(oldest)
        return True

    def _expire(self, room: Room) -> None:
        if self._is_used(room):
            self.used(room)
        else:
            self._end(room)

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
