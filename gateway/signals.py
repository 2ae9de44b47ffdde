"""What the operator's signals mean: the first SIGTERM or SIGINT drains, the second ends at once, SIGHUP reloads."""

import asyncio
import signal
import sys
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Signals:
    """Takes the signals from its making on. On Windows, Ctrl-C raises `KeyboardInterrupt` instead."""

    def __init__(self) -> None:
        self._first = asyncio.Event()
        self._second = asyncio.Event()
        self._signalled = False
        if sys.platform != "win32":
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, self._stop)
            loop.add_signal_handler(signal.SIGHUP, lambda: None)  # without a file to read again it means nothing

    def on_hangup(self, call: Callable[[], None]) -> None:
        if sys.platform != "win32":
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, call)

    async def first(self) -> None:
        await self._first.wait()

    async def unless_first(self, work: Coroutine[Any, Any, T]) -> T | None:
        """What `work` comes to, None where the first signal cuts it short."""
        return await _unless(self._first, work)

    async def unless_second(self, work: Coroutine[Any, Any, T]) -> T | None:
        """The same with the second signal."""
        return await _unless(self._second, work)

    def drain(self) -> None:
        """As the first signal would, which may still come: what stops a service signals all of its processes."""
        self._first.set()

    def end(self) -> None:
        """As the second signal would."""
        self._first.set()
        self._second.set()

    def _stop(self) -> None:
        if self._signalled:
            self._second.set()
        self._signalled = True
        self._first.set()


async def _unless(event: asyncio.Event, work: Coroutine[Any, Any, T]) -> T | None:
    task, cut = asyncio.create_task(work), asyncio.create_task(event.wait())
    try:
        await asyncio.wait({task, cut}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        cut.cancel()
        task.cancel()  # nothing where it is done
    await asyncio.wait({task})
    return None if task.cancelled() else task.result()
