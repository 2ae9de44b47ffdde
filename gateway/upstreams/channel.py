"""One channel to a server, a child's pipes or an HTTP+SSE stream, as many conversations: whose each line is, by its id,
its token, its subscription.

Specification: 2026-07-28 basic/transports/stdio (Receiving Messages), basic/patterns/subscriptions; 2025-11-25
basic/transports (stdio); 2024-11-05 basic/transports. A line that names no request belongs to the one call that it can
belong to, or to whoever reads for its session, and never to another client: what could be either's is dropped.
Processes and streams are started elsewhere.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from policies import jsonrpc
from policies.errors import UpstreamFault
from policies.mcp import (
    CANCELLED,
    LIST_CHANGED,
    LISTEN,
    LOG_MESSAGE,
    MAY_ASK,
    META_LOG_LEVEL,
    META_PROGRESS_TOKEN,
    META_SUBSCRIPTION_ID,
    META_VERSION,
    METHOD_NOT_FOUND,
    PROGRESS,
    RESOURCE_UPDATED,
    Json,
)

log = logging.getLogger(__name__)

BACKLOG = 64
"""Messages kept for a session whose stream nobody reads yet: servers ask for roots and announce lists right after
`initialized`, before their client has opened it."""


class Line(Protocol):
    """What carries a channel. `why`: what became of it, in words fit for a client. `is_closing`: it is being ended on
    purpose. `started_s` is of the monotonic clock."""

    name: str
    ended: bool
    why: str
    is_closing: bool
    started_s: float

    def attend(self, on_line: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        """Starts to read. To be called once."""

    async def write(self, line: bytes) -> None:
        """Writes one message. Raises `UpstreamFault`."""

    def write_now(self, line: bytes) -> None:
        """Writes one short message without waiting, if it still can."""

    async def close(self) -> None:
        """Ends it, and waits until it is gone."""


class Mailbox:
    """What belongs to one request, or to one reader, in the order in which it came."""

    def __init__(self, message: Json | None = None, room: object = None) -> None:
        params = _object((message or {}).get("params"))
        meta = _object(params.get("_meta"))
        self.id: Any = (message or {}).get("id")
        self.method = (message or {}).get("method")
        self.room = room
        self.is_modern = META_VERSION in meta
        self.token: Any = meta.get(META_PROGRESS_TOKEN)
        self.may_log = META_LOG_LEVEL in meta if self.is_modern else self.method in MAY_ASK
        self.answered = False
        self.on_response: Callable[[Json], None] = lambda _: None
        self._messages: deque[Json] = deque()
        self._over = False
        self._fault: UpstreamFault | None = None
        self._grown = asyncio.Event()

    def put(self, message: Json) -> None:
        self._messages.append(message)
        self._grown.set()

    def end(self, fault: UpstreamFault | None = None) -> None:
        """Nothing follows; the reader that comes to the end gets `fault`, if there is one."""
        self._over, self._fault = True, fault
        self._grown.set()

    async def peek(self) -> Json | None:
        """The next message, which stays; None at the end. Raises the `UpstreamFault` that ended it. Cancel-safe."""
        while not self._messages:
            if self._fault is not None:
                raise self._fault
            if self._over:
                return None
            self._grown.clear()
            await self._grown.wait()
        return self._messages[0]

    async def next(self) -> Json | None:
        """As `peek`, and takes it."""
        message = await self.peek()
        if message is not None:
            self._messages.popleft()
        return message


class Channel:
    """`is_shared`: several clients speak through it, none of which is asked anything. `hears(room, method, params)`:
    whether the reader of a room may see a notification that names no request."""

    def __init__(
        self, child: Line, *, is_shared: bool, hears: Callable[[object, str, Json], bool] = lambda *_: True
    ) -> None:
        self.child = child
        self.on_end: Callable[[], None] = lambda: None
        self.has_spoken = False
        self.is_modern = False
        self.initialized: Json | None = None
        """The child's answer to `initialize`, once it has given one."""
        self.handshake = asyncio.Lock()
        self.is_shared = is_shared
        self._hears = hears
        self._pending: dict[Any, Mailbox] = {}
        self._readers: dict[object, Mailbox] = {}
        self._asks: dict[tuple[type, Any], Mailbox] = {}
        self._backlog: deque[Json] = deque(maxlen=BACKLOG)
        self._dropped = 0

    @property
    def ended(self) -> bool:
        return self.child.ended

    def become_owned(self) -> None:
        """From now on it is one session's own."""
        self.is_shared = False

    @property
    def is_busy(self) -> bool:
        """Whether anybody waits for it or listens to it."""
        return bool(self._pending or self._readers)

    def is_used_by(self, room: object) -> bool:
        return room in self._readers or any(mailbox.room is room for mailbox in self._pending.values())

    def attend(self) -> None:
        self.child.attend(self._on_line, self._on_end)

    def expect(self, message: Json, room: object = None) -> Mailbox:
        """The mailbox of a request that is about to be written, to be given back with `leave`."""
        mailbox = Mailbox(message, room)
        self._pending[mailbox.id] = mailbox
        return mailbox

    async def send(self, message: Json, raw: bytes, room: object = None) -> Mailbox:
        """Writes a request; its mailbox, to be given back with `leave`."""
        mailbox = self.expect(message, room)
        written = False
        try:
            await self.child.write(raw)
            written = True
        finally:
            if not written:
                self._pending.pop(mailbox.id, None)
        return mailbox

    def leave(self, mailbox: Mailbox) -> None:
        """Nobody waits for the request any more. One of 2026-07-28 that is not answered is cancelled; in a session its
        connector does that, since it must know the difference between a cancel and a lost client."""
        self._pending.pop(mailbox.id, None)
        if mailbox.is_modern and not mailbox.answered and mailbox.method != "server/discover":
            params = {"requestId": mailbox.id, "reason": "the client no longer waits"}
            self.child.write_now(jsonrpc.notification(CANCELLED, params))

    def read(self, room: object) -> Mailbox:
        """The mailbox of all that names no request. A second reader of a room supersedes the first."""
        older = self._readers.get(room)
        if older is not None:
            older.end()
        mailbox = self._readers[room] = Mailbox()
        while self._backlog:
            self._hand(mailbox, self._backlog.popleft())
        return mailbox

    def stop_reading(self, room: object, mailbox: Mailbox) -> None:
        if self._readers.get(room) is mailbox:
            del self._readers[room]

    def end_streams(self, fault: UpstreamFault) -> None:
        """Ends what has no end of its own, with `fault`; calls go on."""
        for mailbox in (*self._readers.values(), *self._pending.values()):
            if mailbox.method in (None, LISTEN):
                mailbox.end(fault)

    # what the child says

    def _on_line(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            value = jsonrpc.loads(line)
        except ValueError:
            value = None
        messages = value if isinstance(value, list) else [value]
        if not all(isinstance(one, dict) and _is_message(one) for one in messages):
            self._dropped += 1
            if str(self._dropped).strip("0") == "1":  # the 1st, 10th, 100th, ...: some servers log there all day
                text = "upstream %s: a line of %d bytes is no message and was dropped, %d so far"
                log.warning(text, self.child.name, len(line), self._dropped)
            return
        self.has_spoken = True
        for message in messages:
            self._on_message(message)

    def _on_message(self, message: Json) -> None:
        method = message.get("method")
        if method is None:
            self._on_response(message)
        elif "id" in message:
            self._on_request(message)
        else:
            self._on_notification(method, message)

    def _on_response(self, message: Json) -> None:
        """An error that could not name its request is that of the only one there is."""
        identity = message.get("id")
        if identity is None and "error" in message and len(self._pending) == 1:
            mailbox = next(iter(self._pending.values()))
        else:
            found = self._pending.get(identity) if isinstance(identity, int | str) else None
            if found is None or type(found.id) is not type(identity):
                return
            mailbox = found
        mailbox.answered = True
        if mailbox.is_modern and isinstance(message.get("result"), dict):
            self.is_modern = True
        mailbox.on_response(message)
        mailbox.put(message)
        mailbox.end()

    def _on_request(self, message: Json) -> None:
        identity = message["id"]
        if message["method"] == "ping":
            self.child.write_now(jsonrpc.response(identity, {}))
        elif self.is_shared:
            if not self.is_modern:  # 2026-07-28 has no responses from clients
                why = "no client of this session can be asked"
                self.child.write_now(jsonrpc.error_response(identity, METHOD_NOT_FOUND, why))
        else:
            calls = [one for one in self._pending.values() if one.method in MAY_ASK]
            reader = next(iter(self._readers.values()), None)
            self._hand(calls[0] if len(calls) == 1 else reader or (calls[-1] if calls else None), message)

    def _on_notification(self, method: str, message: Json) -> None:
        params = _object(message.get("params"))
        subscription = _object(params.get("_meta")).get(META_SUBSCRIPTION_ID)
        if method == PROGRESS:
            token = params.get(META_PROGRESS_TOKEN)
            found = [one for one in self._pending.values() if one.token == token and token is not None]
            if found:
                found[0].put(message)
        elif method == CANCELLED:
            self._on_cancelled(params, message)
        elif subscription is not None:
            listener = self._pending.get(subscription) if isinstance(subscription, int | str) else None
            if listener is not None and listener.method == LISTEN:
                listener.put(message)
        elif method in LIST_CHANGED or method == RESOURCE_UPDATED:
            for room, reader in self._readers.items():
                if not self.is_shared or self._hears(room, method, params):
                    reader.put(message)
            if not self._readers and not self.is_shared:
                self._backlog.append(message)
        else:
            self._unnamed(method, message)

    def _unnamed(self, method: str, message: Json) -> None:
        """A log message, or one that nobody knows: of the only call that it can come from. In a session of its own
        everything is its client's."""
        params = _object(message.get("params"))
        is_log = method == LOG_MESSAGE
        calls = [one for one in self._pending.values() if (one.may_log if is_log else one.method in MAY_ASK)]
        if len(calls) == 1 and (not self.is_shared or self._hears(calls[0].room, method, params)):
            calls[0].put(message)
        elif not self.is_shared:
            self._hand(next(iter(self._readers.values()), None), message)

    def _on_cancelled(self, params: Json, message: Json) -> None:
        """The child gives up a stream that it was to write, or a question that it has put."""
        identity = params.get("requestId")
        if not isinstance(identity, int | str):
            return
        asked = self._asks.pop((type(identity), identity), None)
        listener = self._pending.get(identity)
        if asked is not None:
            asked.put(message)
        elif listener is not None and listener.method == LISTEN:
            listener.answered = True
            listener.end()

    def _hand(self, mailbox: Mailbox | None, message: Json) -> None:
        """Gives a message to a mailbox of its session, or keeps it until somebody reads."""
        if mailbox is None:
            self._backlog.append(message)
            return
        if "id" in message:
            if len(self._asks) >= BACKLOG:
                self._asks.pop(next(iter(self._asks)))
            self._asks[(type(message["id"]), message["id"])] = mailbox
        mailbox.put(message)

    def _on_end(self) -> None:
        fault = UpstreamFault(f"upstream {self.child.name}: {self.child.why}")
        for mailbox in (*self._pending.values(), *self._readers.values()):
            mailbox.end(None if mailbox.answered else fault)
        self._readers.clear()
        self.on_end()


def _is_message(value: Json) -> bool:
    """Whether it has a message's members, and a method and an id of the types by which they are looked up."""
    has_members = any(key in value for key in ("method", "result", "error"))
    return has_members and isinstance(value.get("method", ""), str) and not isinstance(value.get("id"), dict | list)


def _object(value: object) -> Json:
    return value if isinstance(value, dict) else {}
