"""One child process: started, written to line by line, read line by line, ended with all that it started itself.

Specification: 2026-07-28 basic/transports/stdio, 2025-11-25 basic/lifecycle (Shutdown). What the lines mean is not
known here. Its standard output goes to its owner and never into a log; its standard error goes into the log, line by
line, and nowhere else.
"""

import asyncio
import contextlib
import logging
import os
import signal
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass

from policies.errors import UpstreamFault

log = logging.getLogger(__name__)

CLOSE_S = 1.5
"""How long a child may take to end once its input is closed, before it is sent SIGTERM. Hosts that launch this gateway
itself give it about 2 s (both official SDKs)."""

TERM_S = 1.0
"""How long it may take after SIGTERM, before its group is killed."""

DRAIN_S = 1.0
"""How long output is still read after the process has ended: a grandchild may hold the pipe open for ever."""

MAX_STDERR_LINE = 1024
"""Bytes of one line of standard error that are logged: a stack frame fits, a dumped document does not."""

STDERR_TAIL = 5
"""Lines of standard error that are repeated where a child ends unasked: the reason stands at the end."""

_PIPE_BYTES = 1 << 18
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Command:
    """What to start. `env` is the whole environment."""

    program: str
    arguments: Sequence[str]
    env: Mapping[str, str]
    cwd: str | None


class Child:
    """One running process. `on_line` gets each line of its output, `on_end` is called once, when it has ended."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, pipes: "_Pipes", max_line_bytes: int) -> None:
        self.name = name
        self.ended = False
        self.why = ""
        """What became of it, in words fit for a client."""
        self.started_s = time.monotonic()
        self._process = process
        self._exited = pipes.exited
        self._max_line_bytes = max_line_bytes
        self._tail: deque[str] = deque(maxlen=STDERR_TAIL)
        self.is_closing = False
        """Whether it is being ended on purpose: then its end is no failure."""
        self._watcher: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, name: str, command: Command, max_line_bytes: int) -> "Child":
        """Raises `UpstreamFault` where the process can't be started."""
        loop = asyncio.get_running_loop()
        try:
            transport, pipes = await loop.subprocess_exec(
                lambda: _Pipes(_PIPE_BYTES, loop),
                command.program,
                *command.arguments,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=dict(command.env),
                cwd=command.cwd,
                start_new_session=True,  # a process group of its own, which is what is killed
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it holds a null byte"
            if isinstance(error, OSError) and (error.errno or 0) <= 0:  # uvloop, where descriptors run out
                reason = "the system has no room for it"
            log.warning("upstream %s: its command cannot be started: %s", name, reason)
            why = f"upstream {name}: its command cannot be started ({reason})"
            raise UpstreamFault(why, http=503, executed=False) from error
        return cls(name, asyncio.subprocess.Process(transport, pipes, loop), pipes, max_line_bytes)

    @property
    def pid(self) -> int:
        return self._process.pid

    def attend(self, on_line: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        """Starts to read. To be called once."""
        self._watcher = asyncio.create_task(self._watch(on_line, on_end), name=f"child of {self.name}")

    async def write(self, line: bytes) -> None:
        """Writes one line once the child has read what was written before. Raises `UpstreamFault` where it ends first.

        Cancel-safe: cancelled, nothing was written."""
        assert self._process.stdin is not None
        try:
            await self._process.stdin.drain()
        except OSError:
            self.kill("its process has closed its input and was ended")
        if self.ended or self._exited.is_set() or self._process.stdin.is_closing():
            raise UpstreamFault(f"upstream {self.name}: {self.why or 'its process has ended'}", executed=False)
        self.write_now(line)

    def write_now(self, line: bytes) -> None:
        """Writes one short line without waiting; a child that has ended does not get it."""
        assert self._process.stdin is not None
        if not self.ended and not self._process.stdin.is_closing():
            self._process.stdin.write(line.replace(b"\n", b" ") + b"\n")

    async def close(self) -> None:
        """Ends it: input closed, then SIGTERM, then SIGKILL, to the whole group. Waits until it is gone."""
        self.is_closing = True
        assert self._process.stdin is not None
        self._process.stdin.close()
        for patience_s, number in ((CLOSE_S, signal.SIGTERM), (TERM_S, None)):
            if await self._gone_within(patience_s):
                break
            self._signal(number)
        self._signal(None)  # whatever it has left behind in its group
        if self._watcher is not None:
            await asyncio.wait({self._watcher})

    def kill(self, why: str) -> None:
        """Ends it at once."""
        self.why = self.why or why
        self._signal(None)

    async def _watch(self, on_line: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        reading = asyncio.create_task(self._read(on_line))
        errors = asyncio.create_task(self._read_errors())
        exiting = asyncio.create_task(self._exited.wait())
        try:
            await asyncio.wait({reading, exiting}, return_when=asyncio.FIRST_COMPLETED)
            if not exiting.done():  # it has closed its output, which is how a server says that it ends
                await asyncio.wait({exiting}, timeout=None if self.is_closing else DRAIN_S)
            await asyncio.wait({reading, errors}, timeout=DRAIN_S)
            self._signal(None)
            await exiting
        finally:
            for task in (reading, errors, exiting):
                task.cancel()
            self._end()
            on_end()

    def _end(self) -> None:
        self.ended = True
        code = self._process.returncode
        if not self.why:
            by = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
            self.why = f"its process has ended ({by})"
        if not self.is_closing:
            log.warning("upstream %s: %s", self.name, self.why)
            for line in self._tail:
                log.warning("upstream %s said before it ended: %s", self.name, line)

    async def _read(self, on_line: Callable[[bytes], None]) -> None:
        assert self._process.stdout is not None
        async for line, is_whole in lines(self._process.stdout, self._max_line_bytes):
            if not is_whole:
                self.kill(f"its process was ended: it wrote a line of more than {self._max_line_bytes} bytes")
                return
            on_line(line)

    async def _read_errors(self) -> None:
        assert self._process.stderr is not None
        async for line, is_whole in lines(self._process.stderr, MAX_STDERR_LINE):
            text = _printable(line) + ("" if is_whole else "...")
            self._tail.append(text)
            log.info("upstream %s stderr: %s", self.name, text)

    async def _gone_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._exited.wait()
        except TimeoutError:
            return False
        return True

    def _signal(self, number: signal.Signals | None) -> None:
        """To the group; None kills it."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                self._process.kill()
            else:
                os.killpg(self._process.pid, number or signal.SIGKILL)


class _Pipes(asyncio.subprocess.SubprocessStreamProtocol):
    """Tells of the exit at once, while a grandchild may still hold the pipes open: `Process.wait` does not always."""

    def __init__(self, limit: int, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit, loop)
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()


async def lines(stream: asyncio.StreamReader, max_bytes: int) -> AsyncIterator[tuple[bytes, bool]]:
    """The lines without their ends, and whether each is whole: of one that is longer than `max_bytes` only so much is
    given, as soon as it is there. What stands after the last line end is no line."""
    pieces: list[bytes] = []
    size = 0
    while chunk := await stream.read(_CHUNK):
        for index, part in enumerate(chunk.split(b"\n")):
            if index:
                if size <= max_bytes:
                    yield b"".join(pieces).removesuffix(b"\r"), True
                pieces, size = [], 0
            was_within = size <= max_bytes
            size += len(part)
            if was_within:
                pieces.append(part)
                if size > max_bytes:
                    yield b"".join(pieces)[:max_bytes], False
                    pieces = []


def _printable(line: bytes) -> str:
    """One line of foreign text without what could pass for another line or steer a terminal."""
    return "".join(char if char.isprintable() else "?" for char in line.decode(errors="replace"))
