"""HTTP/1.1 and SSE as bytes, for test peers and the raw client: just enough to read what is legal, written apart from
the gateway's own parsers so that the two can disagree.

Refuses to know: JSON-RPC, MCP, and every convenience that would hide a header line or a chunk boundary.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

DEADLINE_S = 30.0
"""How long a test waits for an event before it fails: far above any time-out of the gateway that a test sets, and above
what a busy machine of two cores makes of a second."""

Line = tuple[str, str]
_LINE_END = re.compile(rb"\r\n|\r|\n")


class Headers:
    """Header lines as they came, in order and case; look-ups ignore case."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self.lines: list[Line] = list(lines)

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.lines if key.lower() == name.lower()]

    def get(self, name: str, default: str | None = None) -> str | None:
        values = self.all(name)
        return values[0] if values else default

    def __contains__(self, name: str) -> bool:
        return bool(self.all(name))

    def __repr__(self) -> str:
        return f"Headers({self.lines!r})"


class Buffered:
    """A stream that can tell that the peer has gone while it is still being answered.

    `asyncio.StreamReader` says so only to somebody who reads; `gone` reads ahead and keeps what it reads. `silent_s`:
    how long the peer may say nothing before whoever reads gets a `TimeoutError`, None for as long as it likes.
    """

    def __init__(self, reader: asyncio.StreamReader, silent_s: float | None = DEADLINE_S) -> None:
        self._reader = reader
        self._silent_s = silent_s
        self._held = bytearray()
        self._ended = False
        self._fetch = asyncio.Lock()

    async def _more(self) -> bool:
        async with self._fetch:
            if self._ended:
                return False
            try:
                async with asyncio.timeout(self._silent_s):
                    data = await self._reader.read(65536)
            except ConnectionError:
                data = b""
            self._held += data
            self._ended = not data
            return bool(data)

    async def until(self, mark: bytes) -> bytes:
        """Bytes up to and with `mark`; EOFError where the stream ends before it."""
        while (at := self._held.find(mark)) < 0:
            if not await self._more():
                raise EOFError
        return self._take(at + len(mark))

    async def exactly(self, count: int) -> bytes:
        while len(self._held) < count:
            if not await self._more():
                raise EOFError
        return self._take(count)

    async def some(self) -> bytes:
        """At least one byte, or b"" at the end of the stream."""
        while not self._held and await self._more():
            pass
        return self._take(len(self._held))

    async def gone(self) -> None:
        """Returns when the peer has closed or reset its side."""
        while await self._more():
            pass

    def _take(self, count: int) -> bytes:
        taken = bytes(self._held[:count])
        del self._held[:count]
        return taken


async def read_head(stream: Buffered) -> tuple[str, Headers]:
    """The start line and the header lines of one message."""
    text = (await stream.until(b"\r\n\r\n")).decode("latin-1")
    start, *lines = text[:-4].split("\r\n")
    return start, Headers((name, value.strip(" \t")) for name, _, value in (line.partition(":") for line in lines))


async def body_parts(stream: Buffered, headers: Headers, *, response: bool) -> AsyncIterator[bytes]:
    """The body, piece by piece as it comes; EOFError where it is cut short."""
    if (headers.get("Transfer-Encoding") or "").lower() == "chunked":
        while size := await _chunk_size(stream):
            yield (await stream.exactly(size + 2))[:-2]
        while await stream.until(b"\r\n") != b"\r\n":
            pass
    elif (length := headers.get("Content-Length")) is not None:
        left = int(length)
        while left and (piece := await stream.some()):
            assert len(piece) <= left, "bytes after the body"
            left -= len(piece)
            yield piece
        if left:
            raise EOFError
    elif response:
        while piece := await stream.some():
            yield piece


async def _chunk_size(stream: Buffered) -> int:
    line = await stream.until(b"\r\n")
    try:
        return int(line.split(b";")[0], 16)
    except ValueError:
        raise AssertionError(f"no chunk size: {line!r} before {await stream.some()!r}") from None


async def read_body(stream: Buffered, headers: Headers, *, response: bool = False) -> bytes:
    return b"".join([part async for part in body_parts(stream, headers, response=response)])


def chunk(data: bytes) -> bytes:
    """One chunk of the chunked transfer coding."""
    return b"%x\r\n%s\r\n" % (len(data), data)


LAST_CHUNK = b"0\r\n\r\n"


def header_bytes(start: str, lines: Iterable[tuple[str, str | bytes]]) -> bytes:
    """A message head; a value given as bytes goes out as it is, a str as latin-1."""
    head = [start.encode("latin-1")]
    for name, value in lines:
        head.append(name.encode("latin-1") + b": " + (value if isinstance(value, bytes) else value.encode("latin-1")))
    return b"\r\n".join(head) + b"\r\n\r\n"


@dataclass(slots=True)
class SseEvent:
    data: str
    event: str = "message"
    id: str | None = None
    retry: int | None = None

    @property
    def json(self) -> Any:
        return json.loads(self.data)


@dataclass(slots=True)
class SseReader:
    """The event stream grammar of the WHATWG HTML standard; comments are counted, an id belongs to its event alone."""

    comments: int = 0
    inside: int = 0
    """Comments that stood inside an event, which is legal and nothing that the gateway does."""
    fields: list[str] = field(default_factory=list)
    _text: bytearray = field(default_factory=bytearray)
    _first: bool = True

    def feed(self, data: bytes, *, final: bool = False) -> Iterator[SseEvent]:
        self._text += data
        if self._first and len(self._text) >= 3:
            self._first = False
            if self._text.startswith(b"\xef\xbb\xbf"):
                del self._text[:3]
        while (line := self._line(final)) is not None:
            if line:
                self._field(line)
            elif (event := self._dispatch()) is not None:
                yield event

    def _line(self, final: bool) -> str | None:
        found = _LINE_END.search(self._text)
        if found is None or (found[0] == b"\r" and found.end() == len(self._text) and not final):
            return None
        line = self._text[: found.start()].decode()
        del self._text[: found.end()]
        return line

    def _field(self, line: str) -> None:
        if line.startswith(":"):
            self.comments += 1
            self.inside += bool(self.fields)
        else:
            self.fields.append(line)

    def _dispatch(self) -> SseEvent | None:
        got = SseEvent(data="")
        data: list[str] = []
        for line in self.fields:
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "data":
                data.append(value)
            elif name == "event":
                got.event = value or "message"
            elif name == "id":
                got.id = value
            elif name == "retry" and value.isdecimal():
                got.retry = int(value)
        meant = bool(data or got.id is not None or got.retry is not None)
        self.fields.clear()
        got.data = "\n".join(data)
        return got if meant else None
