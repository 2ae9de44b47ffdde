"""Starts the programs of a cell, waits until each says where it listens, and ends them with all their children.

A program announces itself with one line on stdout: `listening on URL`. Everything that it writes goes to a log file.
Knows nothing of MCP.
"""

import os
import queue
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

ANNOUNCEMENT = "listening on "
START_LIMIT_S = 30.0
END_LIMIT_S = 5.0


class StartError(Exception):
    """The program ended, or stayed silent, before it said where it listens."""


def _signal_group(process: subprocess.Popen[str], number: int) -> None:
    # The process leads its own group (start_new_session), so its id is the group's.
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return


def end(process: subprocess.Popen[str]) -> None:
    """Ends the process and its group: SIGTERM first, SIGKILL for what is left after END_LIMIT_S."""
    _signal_group(process, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(END_LIMIT_S)
    _signal_group(process, signal.SIGKILL)
    process.wait()


def run_bounded(command: Sequence[str | Path], log: IO[str], limit_s: float) -> bool:
    """Runs a command to its end. False when it took longer than `limit_s` and was killed."""
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    try:
        process.wait(limit_s)
    except subprocess.TimeoutExpired:
        return False
    finally:
        end(process)
    return True


def _copy(stream: IO[str], log_path: Path, announced: "queue.Queue[str | None]") -> None:
    """Copies a program's output to its log, and the URL of its announcement to the queue; None at its end."""
    with log_path.open("w", buffering=1) as log:
        for line in stream:
            log.write(line)
            if line.startswith(ANNOUNCEMENT):
                announced.put(line.removeprefix(ANNOUNCEMENT).strip())
    announced.put(None)


@contextmanager
def running(command: Sequence[str | Path], log_path: Path) -> Iterator[str]:
    """The URL at which the command listens, for as long as the context lasts.

    Raises StartError, with the end of the log, when there is no URL within START_LIMIT_S.
    """
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    announced: queue.Queue[str | None] = queue.Queue()
    copier = threading.Thread(target=_copy, args=(process.stdout, log_path, announced), daemon=True)
    copier.start()
    try:
        try:
            url = announced.get(timeout=START_LIMIT_S)
        except queue.Empty:
            url = None
        if url is None:
            end(process)
            copier.join(END_LIMIT_S)
            tail = "".join(log_path.read_text().splitlines(keepends=True)[-20:])
            raise StartError(f"{' '.join(map(str, command))} never said where it listens:\n{tail}")
        yield url
    finally:
        end(process)
        copier.join(END_LIMIT_S)
