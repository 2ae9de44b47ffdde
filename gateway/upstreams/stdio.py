"""An upstream that is a command: its children, and which of them a message goes to.

Specification: 2026-07-28 basic/transports/stdio; 2025-11-25 basic/transports (stdio), basic/lifecycle. Messages without
a session, those of 2026-07-28 among them, go to the one common child. Sessions share it too (`scope: shared`): it is
initialized once, declares nothing that could make it ask anybody, and what one session subscribes to or wants logged
is kept apart here. Or each `initialize` starts a child of its own (`scope: session`), which lives as long as the
session and only in this process. A child that ends fails its calls at once; the next use starts another.
"""

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Literal

from gateway.background import Background
from gateway.upstreams.base import OWN_INFO, Ids
from gateway.upstreams.channel import Channel, Mailbox
from gateway.upstreams.child import Child, Command
from gateway.upstreams.patience import USUAL, Patience, within
from gateway.upstreams.rooms import Room, Rooms, hears
from gateway.upstreams.stdio_reception import Bounds, StdioReception, bounds_of
from gateway.upstreams.underway import Underway
from policies import jsonrpc
from policies.errors import UpstreamFault
from policies.mcp import (
    CANCELLED,
    HEADER_SESSION,
    LATEST_LEGACY,
    LISTEN,
    Json,
)
from policies.restarts import Restarts
from policies.settings import Limits
from policies.settings import Upstream as UpstreamSettings

log = logging.getLogger(__name__)

INHERITED = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
INHERITED_WINDOWS = ("APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT", "PROCESSOR_ARCHITECTURE")
INHERITED_WINDOWS_TOO = ("SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE")
"""What a child gets of this process's environment, as with the official SDKs: what programs need to run at all, and
none of the secrets that a gateway has there."""


class StdioTransport:
    """`request` speaks as `gateway/upstreams/transport.py` says."""

    has_headers = False
    endpoint_count = 1

    def __init__(self, name: str, settings: UpstreamSettings, limits: Limits, ids: Ids) -> None:
        self.name = name
        self.settings = settings
        self.limits = limits
        self._ids = ids
        self._is_shared = settings.scope == "shared"
        self._command = Command(
            settings.command, settings.args, _environment(dict(settings.own_env)), settings.cwd or None
        )
        self._restarts = Restarts()
        self._why = ""
        self._main: Channel | None = None
        self._starting = asyncio.Lock()
        self._rooms = Rooms(self._end_room, self._is_used)
        self._ending = Background()
        self._closed = False
        self._underway = Underway(name)

    @asynccontextmanager
    async def request(
        self,
        method: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        patience: Patience = USUAL,
    ) -> AsyncIterator[StdioReception]:
        """Raises `UpstreamFault`, with `executed` False where no child has seen the message."""
        with self._underway.unless_retired(patience):
            async with self._request(method, headers, body, patience) as reception:
                yield reception

    def known_endpoint(self, _key: str, /) -> str:
        return ""

    def next_endpoint(self, _tried: Collection[str] = (), /) -> str:
        return ""

    def holder(self, session: str, /) -> str:
        return session

    @property
    def is_up(self) -> bool:
        """Whether a process may be started now: not for a time, where it keeps ending."""
        return not self._restarts.wait_s(time.monotonic())

    async def retire(self) -> None:
        """Ends the streams, and waits until nothing else is under way either."""
        self._underway.retired = True
        for channel in {self._main, *(room.channel for room in self._rooms)}:
            if channel is not None:
                channel.end_streams(self._underway.retirement())
        await self._underway.over()

    @asynccontextmanager
    async def _request(
        self, method: str, headers: Mapping[str, str], body: bytes | None, patience: Patience
    ) -> AsyncIterator[StdioReception]:
        session = headers.get(HEADER_SESSION)
        room = self._room(session) if session is not None else None
        if session is not None and room is None:
            yield StdioReception(self.name, 404)
        elif method == "POST":
            async with self._post(jsonrpc.loads(body or b""), body or b"", room, patience) as reception:
                yield reception
        elif method == "GET" and room is not None:
            async with self._get(room) as reception:
                yield reception
        elif method == "DELETE" and room is not None:
            self._end_room(room)
            yield StdioReception(self.name, 200)
        else:
            yield StdioReception(self.name, 405)

    async def close(self) -> None:
        """Ends every child and waits until it is gone."""
        self._closed = True
        for room in self._rooms:
            self._end_room(room)
        if self._main is not None:
            self._end(self._main)
        await self._ending.over()

    # one message

    @asynccontextmanager
    async def _post(
        self, message: Json, raw: bytes, room: Room | None, patience: Patience
    ) -> AsyncIterator[StdioReception]:
        if "method" not in message or "id" not in message:
            await self._tell(message, raw, room)
            yield StdioReception(self.name)
            return
        if message["method"] == "initialize":
            yield await self._initialize(message)
            return
        channel = await self._channel(room)
        if room is not None and room.channel is None:
            answer = self._rooms.take(message, room)
            if answer is not None:
                yield self._at_hand(message, answer)
                return
            raw = jsonrpc.dumps(message)
        async with self._sent(channel, message, raw, room) as mailbox:
            if message["method"] == LISTEN:
                async with within(self.settings.timeouts.first_byte_s, self.name):
                    first = await mailbox.peek()
                kind: Literal["json", "sse"] = "sse" if "method" in (first or {}) else "json"
                yield StdioReception(self.name, 200, mailbox, kind=kind)
            else:
                yield StdioReception(self.name, 200, mailbox, bounds=bounds_of(message, self.settings, patience))

    @asynccontextmanager
    async def _sent(self, channel: Channel, message: Json, raw: bytes, room: Room | None) -> AsyncIterator[Mailbox]:
        async with within(self.settings.timeouts.first_byte_s, self.name):  # a child that does not read
            mailbox = await channel.send(message, raw, room)
        try:
            yield mailbox
        finally:
            channel.leave(mailbox)
            if room is not None:
                self._rooms.used(room)

    async def _tell(self, message: Json, raw: bytes, room: Room | None) -> None:
        """A notification or a response. The common child asks nothing, and its sessions are no secret to be told it."""
        if room is not None and room.channel is None and message.get("method") != CANCELLED:
            return
        channel = room.channel if room is not None and room.channel is not None else self._main
        if channel is not None and not channel.ended:
            channel.child.write_now(raw)

    @asynccontextmanager
    async def _get(self, room: Room) -> AsyncIterator[StdioReception]:
        channel = room.channel or await self._common()
        mailbox = channel.read(room)  # before a new child has been greeted: nothing that it says is missed
        try:
            await self._greet(channel, room)
            yield StdioReception(self.name, 200, mailbox, kind="sse")
        finally:
            channel.stop_reading(room, mailbox)
            self._rooms.used(room)

    def _at_hand(self, message: Json, answer: Json, headers: Mapping[str, str] | None = None) -> StdioReception:
        mailbox = Mailbox()
        mailbox.put({**answer, "jsonrpc": "2.0", "id": message["id"]})
        mailbox.end()
        return StdioReception(self.name, 200, mailbox, headers=headers)

    # sessions

    def _room(self, session: str) -> Room | None:
        """The session's room. The common child's has nothing to lose, so that one from before a restart goes on."""
        room = self._rooms.get(session)
        if room is None and self._is_shared:
            room = self._rooms.add(Room(session))
            self._rooms.used(room)
        return room

    async def _initialize(self, message: Json) -> StdioReception:
        if self._is_shared:
            channel = await self._common()
            if channel.is_modern:
                return StdioReception(self.name, 400)  # it is spoken to in its own era; the bridge serves sessions
            answer = await self._handshake(channel)
            room = Room(self._ids.name())
        else:
            self._make_room()
            channel = self._adopted() or await self._start(is_shared=False)
            room = Room(self._ids.name(), channel)
            answer = await self._ask(channel, message)
        if not isinstance(answer.get("result"), dict):
            if room.channel is not None:
                self._end(room.channel)
            return self._at_hand(message, answer)
        self._rooms.add(room)
        self._rooms.used(room)
        return self._at_hand(message, answer, {HEADER_SESSION: room.id})

    async def _ask(self, channel: Channel, message: Json) -> Json:
        """One request of the life cycle and its answer; the child that does not give one is ended."""
        answer: Json | None = None
        bounds = Bounds(self.settings.timeouts.first_byte_s, self.settings.timeouts.first_byte_s)
        try:
            async with self._sent(channel, message, jsonrpc.dumps(message), None) as mailbox:
                answer = await StdioReception(self.name, 200, mailbox, bounds=bounds).response()
        finally:
            if answer is None and not self._is_shared:
                self._end(channel)
        return answer

    async def _handshake(self, channel: Channel) -> Json:
        """Initializes the common child, once, and tells it again what the sessions wanted of the one before."""
        async with channel.handshake:
            if channel.initialized is not None:
                return channel.initialized
            params: Json = {"protocolVersion": LATEST_LEGACY, "capabilities": {}, "clientInfo": OWN_INFO}
            answer = await self._ask(channel, self._own("initialize", params))
            if isinstance(answer.get("result"), dict):
                channel.child.write_now(jsonrpc.notification("notifications/initialized"))
                channel.initialized = answer
                await self._replay(channel)
            return answer

    async def _replay(self, channel: Channel) -> None:
        if self._rooms.level is not None:
            await self._ask(channel, self._own("logging/setLevel", {"level": self._rooms.level}))
        for uri in self._rooms.uris:
            await self._ask(channel, self._own("resources/subscribe", {"uri": uri}))

    def _own(self, method: str, params: Json) -> Json:
        return {"jsonrpc": "2.0", "id": self._ids.next(), "method": method, "params": params}

    def _is_used(self, room: Room) -> bool:
        channel = room.channel or self._main
        return channel is not None and channel.is_used_by(room)

    def _end_room(self, room: Room) -> None:
        if not self._rooms.remove(room):
            return
        if room.channel is not None:
            self._end(room.channel)
        elif self._main is not None and not self._main.ended:
            for uri in room.uris - self._rooms.uris:
                self._main.child.write_now(jsonrpc.dumps(self._own("resources/unsubscribe", {"uri": uri})))

    def _make_room(self) -> None:
        """Raises `UpstreamFault` where no more sessions' children may run."""
        if not self._rooms.make_room(self.settings.max_children):
            why = f"upstream {self.name} has {len(self._rooms)} sessions with a process each (max_children); end one"
            raise UpstreamFault(why, http=503, executed=False)

    # children

    async def _channel(self, room: Room | None) -> Channel:
        channel = (room.channel if room is not None else None) or await self._common()
        await self._greet(channel, room)
        return channel

    async def _greet(self, channel: Channel, room: Room | None) -> None:
        """Sees to it that the common child has been initialized, where a session uses it."""
        if room is None or room.channel is not None:
            return
        if not isinstance((await self._handshake(channel)).get("result"), dict):
            raise UpstreamFault(f"upstream {self.name} refused to initialize", executed=False, contradiction=True)

    async def _common(self) -> Channel:
        """The common child, started where none runs."""
        async with self._starting:
            main = self._main
            if main is None or main.ended:
                main = self._main = await self._start(is_shared=True)
        return main

    def _adopted(self) -> Channel | None:
        """The common child as a session's own, where a probe has found that it speaks sessions and nobody uses it."""
        main = self._main
        if main is None or main.ended or main.is_modern or main.is_busy:
            return None
        self._main = None
        main.become_owned()
        return main

    async def _start(self, *, is_shared: bool) -> Channel:
        """Raises `UpstreamFault`: 503 while the breaker is open, or where the command can't be started."""
        if self._closed:
            raise UpstreamFault(f"upstream {self.name} is shut down", http=503, executed=False)
        wait_s = self._restarts.wait_s(time.monotonic())
        if wait_s:
            seconds = int(wait_s) + 1
            why = f"upstream {self.name}: {self._why}; it may be started again in {seconds} s"
            fault = UpstreamFault(why, http=503, executed=False)
            fault.headers = (("Retry-After", str(seconds)),)
            raise fault
        try:
            child = await Child.start(self.name, self._command, self.limits.max_event_bytes)
        except UpstreamFault:
            self._failed(0.0, "its command cannot be started")
            raise
        channel = Channel(child, is_shared=is_shared, hears=hears)
        channel.on_end = lambda: self._on_end(channel)
        channel.attend()
        log.info("upstream %s: started process %d", self.name, child.pid)
        return channel

    def _on_end(self, channel: Channel) -> None:
        child = channel.child
        for room in [room for room in self._rooms if room.channel is channel]:
            self._end_room(room)
        if self._main is channel:
            self._main = None
        if not child.is_closing and (channel.is_shared or not channel.has_spoken):
            self._failed(time.monotonic() - child.started_s, child.why)

    def _failed(self, lived_s: float, why: str) -> None:
        self._why = why
        self._restarts = self._restarts.after_end(lived_s, time.monotonic())

    def _end(self, channel: Channel) -> None:
        """Ends a child in the background; `close` waits for it."""
        if channel.child.is_closing:
            return
        channel.child.is_closing = True
        self._ending.start(channel.child.close(), f"ending a child of {self.name}")


def _environment(own: Mapping[str, str]) -> dict[str, str]:
    names = INHERITED + INHERITED_WINDOWS + INHERITED_WINDOWS_TOO if os.name == "nt" else INHERITED
    return {name: os.environ[name] for name in names if name in os.environ} | dict(own)
