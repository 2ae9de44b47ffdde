"""Starts the demo's processes, each in a process group of its own, and ends them whatever happens to the demo.

Refuses to know what they are; it knows that each prints `listening on URL` once it is ready.
"""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

READY_S: Final = 30.0
"""How long a child may take to listen: a cold start on a slow machine takes a few seconds."""
STOP_S: Final = 8.0
"""How long a child may take to end after SIGTERM before it is killed."""
_READY: Final = "listening on "


class ChildFailed(Exception):
    """A child did not listen in time (`code` is None), or ended with `code` and has said why on stderr."""

    def __init__(self, name: str, code: int | None) -> None:
        super().__init__(f"{name} does not listen after {READY_S:.0f} s")
        self.code = code


@asynccontextmanager
async def running(module: str, *arguments: str) -> AsyncIterator[str]:
    """Runs `python -m gateway.demo.MODULE ARGUMENTS` inside the block, and gives the URL that it listens on."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", f"gateway.demo.{module}", *arguments),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,  # so that Ctrl-C reaches the demo alone, which then ends its children in order
    )
    try:
        yield await _ready(process, " ".join((module, *arguments)))
    finally:
        await _stop(process)


async def _ready(process: asyncio.subprocess.Process, name: str) -> str:
    assert process.stdout is not None
    try:
        async with asyncio.timeout(READY_S):
            async for line in process.stdout:
                if line.decode().startswith(_READY):
                    return line.decode().removeprefix(_READY).strip()
            raise ChildFailed(name, await process.wait())
    except TimeoutError:
        raise ChildFailed(name, None) from None


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), STOP_S)
    if sys.platform != "win32":  # whatever it may have started
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    elif process.returncode is None:
        process.kill()
    await process.communicate()  # closes the pipes
