"""Reads an upstream's answer: its JSON-RPC messages as they come, or the blocks of its stream as they stand.

Specification: basic/transports of every revision (Receiving Messages). Where the bytes come from is not known here.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from policies import jsonrpc, sse
from policies.errors import UpstreamFault
from policies.mcp import Json

Waiting = Callable[[Awaitable[bytes]], Awaitable[bytes]]


class Answer(Protocol):
    """What is read."""

    @property
    def kind(self) -> Literal["json", "sse", "other"]: ...

    async def chunk(self) -> bytes:
        """The next bytes of the body, empty at its end."""

    async def raw(self) -> bytes:
        """The whole body."""

    def refusal(self) -> UpstreamFault:
        """The fault that the status stands for."""

    def too_large(self) -> UpstreamFault:
        """The fault that an event beyond its bound is."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One message, and what its event said about resumption. `message` is None for an event without one."""

    message: Json | None
    event_id: str | None = None
    retry_ms: int | None = None


class Pieces:
    """Iterates over the messages of an answer. An event without its blank line at the end of a stream is none; events
    of another type than `message` are passed over; a JSON array gives its elements."""

    def __init__(self, reception: Answer, decoder: sse.Decoder) -> None:
        self._reception = reception
        self._decoder = decoder
        self._ready: deque[Piece] = deque()
        self._read = False

    def __aiter__(self) -> "Pieces":
        return self

    async def __anext__(self) -> Piece:
        while not self._ready:
            if self._reception.kind == "sse":
                await self._more_events()
            elif self._read:
                raise StopAsyncIteration
            else:
                await self._one_body()
        return self._ready.popleft()

    async def _more_events(self) -> None:
        chunk = await self._reception.chunk()
        if not chunk:
            raise StopAsyncIteration
        try:
            events = self._decoder.feed(chunk)
        except sse.EventTooLarge as error:
            raise self._reception.too_large() from error
        for event in events:
            if event.data and event.event in (None, "message"):
                messages = _messages(event.data) or (None,)  # what is no message is passed over
                self._ready.extend(Piece(message, event.id, event.retry_ms) for message in messages)
            else:
                self._ready.append(Piece(None, event.id, event.retry_ms))

    async def _one_body(self) -> None:
        self._read = True
        messages = [] if self._reception.kind == "other" else _messages(await self._reception.raw())
        if not messages:
            raise self._reception.refusal()
        self._ready.extend(Piece(message) for message in messages)


class Blocks:
    """Iterates over the blocks of an event stream, for one that is passed on as it is."""

    def __init__(self, reception: Answer, splitter: sse.Splitter, waiting: Waiting) -> None:
        self._reception = reception
        self._splitter = splitter
        self._waiting = waiting
        self._ready: deque[tuple[bytes, sse.Event | None]] = deque()

    def __aiter__(self) -> "Blocks":
        return self

    async def __anext__(self) -> tuple[bytes, sse.Event | None]:
        while not self._ready:
            chunk = await self._waiting(self._reception.chunk())
            if not chunk and not self._splitter.pending:
                raise StopAsyncIteration
            try:
                self._ready.extend(self._splitter.feed(chunk))  # at the end, too: what was too large comes out now
                if not chunk:
                    raise StopAsyncIteration
            except sse.EventTooLarge as error:
                raise self._reception.too_large() from error
        return self._ready.popleft()


def _messages(raw: bytes) -> Sequence[Json | None]:
    """The JSON-RPC messages in one body or event; empty where it is anything else."""
    try:
        value = jsonrpc.loads(raw)
    except ValueError:
        return []
    found = value if isinstance(value, list) else [value]
    return found if all(map(_is_message, found)) else []


def _is_message(value: Any) -> bool:
    """Whether it has a message's members, and a method and an id of the types by which they are looked up."""
    return (
        isinstance(value, dict)
        and any(key in value for key in ("method", "result", "error"))
        and isinstance(value.get("method", ""), str)
        and not isinstance(value.get("id"), dict | list)
    )
