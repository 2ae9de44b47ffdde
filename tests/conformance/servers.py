"""Starts the programs of a cell, waits until each says where it listens, and ends them with all their children.

A program announces itself with one line on stdout: `listening on URL`. Everything that it writes goes to a log file.
Knows nothing of MCP, but that the gateway's endpoint is at /mcp.
"""

import os
import queue
import shlex
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


def _signal(process: subprocess.Popen[str], number: int, own_group: bool) -> None:
    try:
        if own_group:
            os.killpg(process.pid, number)  # it leads its group (start_new_session), so its id is the group's
        else:
            process.send_signal(number)
    except ProcessLookupError:
        return


def end(process: subprocess.Popen[str], own_group: bool = True) -> None:
    """Ends the process, and its group if that is its own: SIGTERM, then SIGKILL for what is left after END_LIMIT_S."""
    _signal(process, signal.SIGTERM, own_group)
    with suppress(subprocess.TimeoutExpired):
        process.wait(END_LIMIT_S)
    _signal(process, signal.SIGKILL, own_group)
    process.wait()


def run_bounded(command: Sequence[str | Path], log: IO[str], limit_s: float) -> int | None:
    """Runs a command to its end and returns its exit code; None when it took longer than `limit_s` and was killed."""
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    try:
        return process.wait(limit_s)
    except subprocess.TimeoutExpired:
        return None
    finally:
        end(process)


def _copy(stream: IO[str], log_path: Path, announced: "queue.Queue[str | None]") -> None:
    """Copies a program's output to its log, and the URL of its announcement to the queue; None at its end."""
    with log_path.open("w", buffering=1) as log:
        for line in stream:
            log.write(line)
            if line.startswith(ANNOUNCEMENT):
                announced.put(line.removeprefix(ANNOUNCEMENT).strip())
    announced.put(None)


@contextmanager
def running(command: Sequence[str | Path], log_path: Path, own_group: bool = True) -> Iterator[str]:
    """The URL at which the command listens, for as long as the context lasts.

    Without `own_group` it stays in the caller's process group, so that who ends the caller's group ends it too.
    Raises StartError, with the end of the log, when there is no URL within START_LIMIT_S.
    """
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=own_group,
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
            end(process, own_group)
            copier.join(END_LIMIT_S)
            tail = "".join(log_path.read_text().splitlines(keepends=True)[-20:])
            raise StartError(f"{' '.join(map(str, command))} never said where it listens:\n{tail}")
        yield url
    finally:
        end(process, own_group)
        copier.join(END_LIMIT_S)


@contextmanager
def gateway_before(upstream_url: str, command: str, log_path: Path, own_group: bool = True) -> Iterator[str]:
    """The MCP endpoint of a gateway before `upstream_url`, whose place in the command is `{upstream}`. See running."""
    with running(shlex.split(command.replace("{upstream}", upstream_url)), log_path, own_group) as url:
        yield f"{url.rstrip('/')}/mcp"
