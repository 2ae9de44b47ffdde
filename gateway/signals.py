"""What the operator's signals mean: the first SIGTERM or SIGINT drains, the second ends at once, SIGHUP reloads."""

import asyncio
import signal
import sys
from collections.abc import Callable, Coroutine
from typing import Any


class Signals:
    """Takes the signals from its making on. On Windows, Ctrl-C raises `KeyboardInterrupt` instead."""

    def __init__(self) -> None:
        self._first = asyncio.Event()
        self._second = asyncio.Event()
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

    async def unless_second(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs `work` to its end, or until the second signal cuts it short."""
        task, cut = asyncio.create_task(work), asyncio.create_task(self._second.wait())
        await asyncio.wait({task, cut}, return_when=asyncio.FIRST_COMPLETED)
        cut.cancel()
        if not task.done():
            task.cancel()
        await asyncio.wait({task})
        if not task.cancelled():
            task.result()

    def _stop(self) -> None:
        (self._second if self._first.is_set() else self._first).set()
