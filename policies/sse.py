"""Server-sent events: bytes in, events out, whatever the framing and wherever the chunks are cut; and back.

Source: https://html.spec.whatwg.org/multipage/server-sent-events.html (parsing and interpreting an event stream). There
is one reader: `Splitter` gives each event with the very bytes it stood in, for streams that are passed on untouched,
`Decoder` the events alone. What the data means is not known here, nor when to reconnect.
"""

import re
from dataclasses import dataclass
from typing import Final

KEEP_ALIVE: Final = b":\n\n"
"""A comment and the end of a block: no client may see an event in it."""

_BOM: Final = b"\xef\xbb\xbf"
_LINE_END: Final = re.compile(rb"\r\n|\r|\n")
_MAX_RETRY_DIGITS: Final = 15
"""Some 30,000 years in milliseconds: a longer number is no delay."""


class EventTooLarge(ValueError):
    """One event, or a line outside of events, is longer than the reader's bound. The stream can't be read on."""


@dataclass(frozen=True, slots=True)
class Event:
    """One block of a stream that holds data, an id or a retry.

    `data` is None without any data line (then the standard dispatches nothing) and b"" for an empty one. `id` and
    `retry_ms` are what this block says, None where it is silent: they are not carried over from earlier blocks.
    """

    data: bytes | None
    event: str = "message"
    id: str | None = None
    retry_ms: int | None = None


class Splitter:
    """Cuts a stream into blocks, each with its exact bytes. Takes time linear in the bytes, however they arrive.

    `max_event_bytes` bounds one block, its field names and line ends included.
    """

    __slots__ = ("_after_cr", "_block", "_fields", "_first", "_loose", "_max_bytes", "_partial", "_size", "_too_large")

    def __init__(self, max_event_bytes: int) -> None:
        self._max_bytes = max_event_bytes
        self._reset()

    def _reset(self) -> None:
        self._partial: list[bytes] = []  # pieces of the unfinished last line
        self._block: list[bytes] = []  # finished lines since the first field of this block
        self._fields: list[bytes] = []  # their field lines without the line ends
        self._loose: list[bytes] = []  # comments and blank lines outside of any block
        self._size = 0  # bytes in partial and block
        self._first = True
        self._after_cr = False
        self._too_large = False

    @property
    def pending(self) -> bool:
        """Whether an event has begun that no blank line has ended yet."""
        return bool(self._block) or bool(self._partial and not self._partial[0].startswith(b":"))

    def end(self) -> None:
        """The stream is over: what is pending is no event (ask `pending` first) and is forgotten."""
        self._reset()

    def feed(self, chunk: bytes) -> list[tuple[bytes, Event | None]]:
        """The blocks that `chunk` completes: their bytes, and the event, None where a block dispatches nothing.

        The bytes of all blocks put together are the stream. Comments and blank lines between events come at once, as
        one block of their own. A LF that a chunk cut off its CR opens the next block's bytes. Raises EventTooLarge,
        after the events before it have been given out.
        """
        blocks: list[tuple[bytes, Event | None]] = []
        if self._after_cr and chunk.startswith(b"\n"):
            (self._block or self._loose).append(b"\n")
            self._size += bool(self._block)
            self._after_cr = False
            chunk = chunk[1:]
        if chunk and not self._too_large:
            self._after_cr = chunk.endswith(b"\r")
            for line in chunk.splitlines(keepends=True):
                self._size += len(line)
                if self._size > self._max_bytes:
                    self._too_large = True
                    break
                if line.endswith((b"\n", b"\r")):
                    self._line(line, blocks)
                else:
                    self._partial.append(line)
        if self._loose:
            self._flush_loose(blocks)
        if self._too_large and not blocks:
            raise EventTooLarge(f"an event is longer than {self._max_bytes} bytes")
        return blocks

    def _line(self, line: bytes, blocks: list[tuple[bytes, Event | None]]) -> None:
        if self._partial:
            line = b"".join((*self._partial, line))
            self._partial.clear()
        text = line.rstrip(b"\r\n")
        if self._first:
            self._first = False
            text = text.removeprefix(_BOM)
        if text and not text.startswith(b":"):
            self._fields.append(text)
            self._block.append(line)
        elif not self._block:
            self._loose.append(line)
            self._size = 0
        else:
            self._block.append(line)
            if not text:
                self._flush_block(blocks)

    def _flush_loose(self, blocks: list[tuple[bytes, Event | None]]) -> None:
        blocks.append((b"".join(self._loose), None))
        self._loose.clear()

    def _flush_block(self, blocks: list[tuple[bytes, Event | None]]) -> None:
        if self._loose:
            self._flush_loose(blocks)
        blocks.append((b"".join(self._block), _event(self._fields)))
        self._block.clear()
        self._fields.clear()
        self._size = 0


class Decoder:
    """Reads events; `max_event_bytes` bounds one event, its field names and line ends included."""

    __slots__ = ("_splitter",)

    def __init__(self, max_event_bytes: int) -> None:
        self._splitter = Splitter(max_event_bytes)

    @property
    def pending(self) -> bool:
        """Whether an event has begun that no blank line has ended yet."""
        return self._splitter.pending

    def end(self) -> None:
        """The stream is over: what is pending is no event (ask `pending` first) and is forgotten."""
        self._splitter.end()

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that `chunk` completes. Raises EventTooLarge, after the events before it have been given out."""
        return [event for _, event in self._splitter.feed(chunk) if event is not None]


def _event(fields: list[bytes]) -> Event | None:
    data: list[bytes] = []
    kind = "message"
    identity = retry_ms = None
    for field in fields:
        name, _, value = field.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            data.append(value)
        elif name == b"event":
            kind = value.decode(errors="replace") or "message"
        elif name == b"id" and b"\0" not in value:
            identity = value.decode(errors="replace")
        elif name == b"retry" and value.isdigit() and len(value) <= _MAX_RETRY_DIGITS:
            retry_ms = int(value)
    if not data and identity is None and retry_ms is None:
        return None
    return Event(b"\n".join(data) if data else None, kind, identity, retry_ms)


def encode(
    data: bytes | None,
    *,
    event: str | None = None,
    id: str | None = None,  # noqa: A002 - the field's own name
    retry_ms: int | None = None,
) -> bytes:
    """One event; each line of `data` becomes a data line, None gives none. CR and CRLF in `data` arrive as LF.

    Raises ValueError where `event` or `id` hold what would end the line (or, in an id, make it be ignored).
    """
    lines: list[bytes] = []
    for name, text in ((b"id: ", id), (b"event: ", event)):
        if text is not None:
            if "\n" in text or "\r" in text or "\0" in text:
                raise ValueError("an event's name or id can't hold line ends or NUL")
            lines.append(name + text.encode())
    if retry_ms is not None:
        lines.append(b"retry: %d" % retry_ms)
    if data is not None:
        lines += [b"data: " + line for line in _LINE_END.split(data)]
    return b"\n".join((*lines, b"", b""))
