"""One legacy session that callers without one of their own borrow, and all who hear its standalone stream.

When it is opened, lent and ended is decided in `gateway/upstreams/sessions.py`.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from policies.exchange import UpstreamSession
from policies.mcp import Json
from policies.translation.discover import Description

Listener = Callable[[str, Json], None]


@dataclass(eq=False, slots=True)
class Shared:
    """A session that calls of one principal and set of capabilities borrow."""

    session: UpstreamSession
    description: Description
    forwarded: tuple[tuple[str, str], ...]
    listeners: set[Listener] = field(default_factory=set)
    subscribed: dict[str, int] = field(default_factory=dict)
    level: str | None = None
    users: int = 0
    leased_as: str = ""
    began_s: float = field(default_factory=time.monotonic)
    can_hear: asyncio.Future[bool] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    pump: asyncio.Task[None] | None = None
    expiry: asyncio.TimerHandle | None = None

    def publish(self, method: str, params: Json) -> None:
        for listener in tuple(self.listeners):
            listener(method, params)
