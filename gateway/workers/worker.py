"""One worker as its supervisor sees it: a process that was started, what it says, and how it ended."""

import asyncio
import itertools
import logging
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import Any, Final

from gateway.cache.cache import Done, Order
from gateway.workers.messages import (
    Count,
    Counted,
    Explain,
    Explained,
    Families,
    Leaving,
    Line,
    Look,
    Looked,
    Message,
    Obey,
    Obeyed,
    Ready,
    Serve,
)
from policies.explanation import Described
from policies.mcp import Json
from policies.settings import Settings
from policies.status import Seen

log = logging.getLogger(__name__)

START_S: Final = 30.0
"""From its start until it accepts connections: a cold start on a busy machine takes a few seconds."""

COUNT_S: Final = 0.5
"""How long metrics, `/readyz` and the status page wait for its numbers, before those of last time are taken: probes
wait 1 s."""

OBEY_S: Final = 60.0
"""How long an order to the cache may take: as long as a server may be silent before its answer."""

EXIT_S: Final = 2.0
"""How long it may take to end once its line has."""


class Worker:
    """Starts at once, with a descriptor of its own of `listener`. `settings` is asked for what is in service when the
    process is there to be told. `on_end` is called once, when it has ended."""

    def __init__(
        self,
        number: int,
        listener: socket.socket,
        settings: Callable[[], Settings],
        on_end: Callable[["Worker"], None],
    ) -> None:
        self.number = number
        self.is_ready = False
        """Whether it accepts connections."""
        self.leaves = False
        """Whether it ends on purpose."""
        self.counted: Families = ()
        """What it said last that it had counted."""
        self.seen = Seen()
        """What it said last that it sees."""
        self.exit = ""
        """How it ended, in words."""
        self.ended = asyncio.Event()
        self._settings = settings
        self._on_end = on_end
        self._unsaid: list[Message] = []
        self._began_s = time.monotonic()
        self._turn = asyncio.Event()  # set where it has become ready, leaves, or ends
        self._line: Line | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._asked: dict[type[Message], asyncio.Future[None]] = {}
        self._telling: dict[int, asyncio.Future[Any]] = {}
        self._numbers = itertools.count()
        self._task = asyncio.create_task(self._run(listener.dup()), name=f"worker {number}")

    # what is asked of it

    async def up(self) -> bool:
        """Whether it has come to accept connections; one that takes longer than `START_S` is killed."""
        try:
            async with asyncio.timeout(START_S):
                while not (self.is_ready or self.ended.is_set()):
                    await self._next_turn()
        except TimeoutError:
            log.error("worker %d did not start within %g s", self.number, START_S)
            self.kill()
            await self.ended.wait()
        return self.is_ready

    async def done(self) -> None:
        """Until it takes no more connections: it leaves, or has ended."""
        while not (self.leaves or self.ended.is_set()):
            await self._next_turn()

    def say(self, message: Message) -> None:
        """To its process, or to be said once there is one."""
        if self._line is not None:
            self._line.send(message)
        else:
            self._unsaid.append(message)

    def kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()

    async def count(self) -> None:
        """Brings `counted` up to date, or leaves it as it is where the worker does not answer in time."""
        await self._ask(Count())

    async def look(self) -> bool:
        """Brings `seen` up to date; whether it answered in time."""
        return await self._ask(Look())

    async def _ask(self, question: Count | Look) -> bool:
        """Whether it was answered in time. One question of a kind for all who ask it meanwhile."""
        if self._line is None or self.ended.is_set():
            return False
        answered = self._asked.get(type(question))
        if answered is None:
            answered = self._asked[type(question)] = asyncio.get_running_loop().create_future()
            self._line.send(question)
        await asyncio.wait({answered}, timeout=COUNT_S)
        return answered.done()

    async def obey(self, order: Order, upstream: str | None) -> Done | None:
        """What came of an order to its cache; None where it ended, or did not say in time. Cancel-safe: the worker
        obeys, and nobody hears what came of it."""
        done: Done | None = await self._tell(lambda number: Obey(number, order, upstream))
        return done

    async def explain(self, described: Described) -> Json | None:
        """What it would do with a request; None as above. Cancel-safe as above."""
        told: Json | None = await self._tell(lambda number: Explain(number, described))
        return told

    async def _tell(self, message: Callable[[int], Message]) -> Any:
        """What it answers to the message of a number, each asker for themselves."""
        if self._line is None or self.ended.is_set():
            return None
        number = next(self._numbers)
        future = self._telling[number] = asyncio.get_running_loop().create_future()
        ending = asyncio.create_task(self.ended.wait())
        try:
            self._line.send(message(number))
            await asyncio.wait({future, ending}, timeout=OBEY_S, return_when=asyncio.FIRST_COMPLETED)
            return future.result() if future.done() else None
        finally:
            ending.cancel()
            del self._telling[number]

    @property
    def lived_s(self) -> float:
        """Since its start; 0 for one that has never been ready."""
        return time.monotonic() - self._began_s if self.is_ready else 0.0

    # what it does

    async def _run(self, listener: socket.socket) -> None:
        try:
            await self._start(listener)
            await self._listen()
        except OSError as error:
            self.exit = f"it cannot be started: {error.strerror or error}"
        finally:
            self.ended.set()
            self._turn.set()
            self._on_end(self)
            for question in tuple(self._asked):
                self._has_answered(question)

    async def _start(self, listener: socket.socket) -> None:
        ours, theirs = socket.socketpair()
        with theirs, listener:
            line = await Line.over(ours)
            descriptors = (theirs.fileno(), listener.fileno())
            try:
                self._process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-P", "-m", "gateway.workers", *map(str, descriptors)),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.DEVNULL,
                    pass_fds=descriptors,
                    start_new_session=True,  # Ctrl-C is for the supervisor
                )
            except OSError:
                await line.close()
                raise
        self._line = line
        for message in (Serve(self._settings()), *self._unsaid):
            line.send(message)

    async def _listen(self) -> None:
        """Until its process has ended."""
        assert self._line is not None
        assert self._process is not None
        while (message := await self._line.receive()) is not None:
            match message:
                case Ready():
                    self.is_ready = True
                    self._turn.set()
                case Leaving():
                    self.leaves = True
                    self._turn.set()
                case Obeyed(number, done) | Explained(number, done):
                    if number in self._telling:
                        self._telling[number].set_result(done)
                case Counted(families):
                    self.counted = families
                    self._has_answered(Count)
                case Looked(seen):
                    self.seen = seen
                    self._has_answered(Look)
                case _:
                    log.error("a worker does not say %s", type(message).__name__)
        try:
            async with asyncio.timeout(EXIT_S):
                await self._process.wait()
        except TimeoutError:
            self.kill()
        code = await self._process.wait()
        self.exit = f"exit code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}"
        await self._line.close()

    def _has_answered(self, question: type[Message]) -> None:
        answered = self._asked.pop(question, None)
        if answered is not None:
            answered.set_result(None)

    async def _next_turn(self) -> None:
        await self._turn.wait()
        self._turn.clear()
