"""This process's own standard input and output, as lines, without ever stopping the event loop.

Threads do the reading and writing: whatever stands at the other end (a pipe, a file, a terminal), they can, and one
that is stuck there does not keep the process from ending. What the lines mean is not known here.
"""

import asyncio
import os
import queue
import threading
from collections.abc import AsyncIterator

_CHUNK = 1 << 16
_AHEAD = 16
"""Chunks read ahead of what was taken: enough to keep the pipe moving."""


def take_over() -> tuple[int, int]:
    """The descriptors of standard input and output, kept for the protocol: from here on `print` goes to standard error,
    and reading from standard input finds its end, in this process and in what it starts."""
    read_from, write_to = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return read_from, write_to


class Input:
    def __init__(self, descriptor: int, max_line_bytes: int) -> None:
        self._descriptor = descriptor
        self._max_line_bytes = max_line_bytes
        self._chunks: asyncio.Queue[bytes] = asyncio.Queue(_AHEAD)
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, name="standard input", daemon=True).start()

    async def lines(self) -> AsyncIterator[bytes | None]:
        """Until the input ends; None in place of a line that is longer than allowed. The last line needs no end."""
        pieces: list[bytes] = []
        size = 0
        while chunk := await self._chunks.get():
            for index, part in enumerate(chunk.split(b"\n")):
                if index:
                    yield self._line(pieces, size)
                    pieces, size = [], 0
                size += len(part)
                if size <= self._max_line_bytes:
                    pieces.append(part)
        if size:
            yield self._line(pieces, size)

    def _line(self, pieces: list[bytes], size: int) -> bytes | None:
        return b"".join(pieces) if size <= self._max_line_bytes else None

    def _read(self) -> None:
        chunk = b"-"
        while chunk:
            try:
                chunk = os.read(self._descriptor, _CHUNK)
            except OSError:
                chunk = b""
            try:
                asyncio.run_coroutine_threadsafe(self._chunks.put(chunk), self._loop).result()
            except (RuntimeError, asyncio.CancelledError):  # the loop is over
                return


class Output:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lines: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]]] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self.broken = asyncio.Event()
        """Set once nobody reads any more."""
        threading.Thread(target=self._write, name="standard output", daemon=True).start()

    async def line(self, raw: bytes) -> None:
        """Writes one line, after those before it, and waits until it is out. Cancelled, it is written all the same.

        Lines after the reader has gone are dropped."""
        written: asyncio.Future[None] = self._loop.create_future()
        self._lines.put((raw + b"\n", written))
        await asyncio.shield(written)

    def _write(self) -> None:
        is_broken = False
        while True:
            raw, written = self._lines.get()
            view = memoryview(raw)
            try:
                while view and not is_broken:
                    view = view[os.write(self._descriptor, view) :]
            except OSError:
                is_broken = True
            try:
                self._loop.call_soon_threadsafe(self._tell, written, is_broken)
            except RuntimeError:  # the loop is over
                return

    def _tell(self, written: "asyncio.Future[None]", is_broken: bool) -> None:
        if is_broken:
            self.broken.set()
        if not written.done():
            written.set_result(None)
