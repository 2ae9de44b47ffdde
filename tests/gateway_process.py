"""The gateway as its users run it: the real command in a process group of its own, its output kept.

`running(...)` starts it before scripted upstreams, one route each, and at the end asserts that it stopped when told to,
with no traceback and no forgotten task in its log.
"""

import asyncio
import json
import os
import re
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.http_wire import DEADLINE_S
from tests.raw_front import Front
from tests.scripted import Upstream

START_S = 30.0
"""A cold start on a busy machine of two cores; a usual one takes half a second."""
FORBIDDEN = (
    "Traceback (most recent call last)",
    "Task was destroyed",
    "never retrieved",
    "never awaited",
    "already running",
    "ResourceWarning",
)
"""What a log never holds: an expected failure is a line, and nothing is lost or left open."""


class GatewayProcess:
    """One running gateway."""

    def __init__(self, process: asyncio.subprocess.Process, url: str, log: Path) -> None:
        self.process = process
        self.url = url
        self.log = log
        self.admin_url = ""
        """Where health and metrics are, if anywhere."""
        self.was_killed = False

    def front(self, path: str = "/mcp") -> Front:
        return Front(self.url + path)

    def check(self) -> None:
        """It runs."""
        assert self.process.returncode is None, self.stderr()[-4000:]

    def stderr(self) -> str:
        return self.log.read_text()

    @classmethod
    async def start(
        cls,
        arguments: list[str],
        folder: Path,
        env: Mapping[str, str] | None = None,
        command: Sequence[str] = (sys.executable, "-m", "gateway"),
    ) -> "GatewayProcess":
        """Runs `python -m gateway <arguments>`, or another command, and waits for its `listening on` line."""
        log = folder / "stderr.log"
        with log.open("wb") as errors:
            process = await asyncio.create_subprocess_exec(
                *command,
                *arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                env={**os.environ, **(env or {})},
                start_new_session=True,
            )
        assert process.stdout is not None
        said = b""
        try:
            async with asyncio.timeout(START_S):
                while line := await process.stdout.readline():
                    said += line
                    if found := re.match(rb"listening on (https?://\S+)", line):
                        started = cls(process, found[1].decode(), log)
                        if admin := re.search(rb"admin on (http://\S+)", said):
                            started.admin_url = admin[1].decode()
                        return started
        except TimeoutError:
            _kill(process)
        await process.wait()
        raise AssertionError(f"the gateway did not start ({process.returncode}): {said.decode()}{log.read_text()}")

    async def stop(self) -> None:
        """Ends it by SIGTERM; raises where it does not end in time or its log shows a fault."""
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(DEADLINE_S):
                await self.process.wait()
        except TimeoutError:
            raise AssertionError(f"the gateway did not end at SIGTERM: {self.stderr()[-4000:]}") from None
        finally:
            _kill(self.process)
            await self.process.wait()
        said = self.stderr()
        for sign in FORBIDDEN:
            assert sign not in said, said[-8000:]
        wanted = -signal.SIGKILL if self.was_killed else 0
        assert self.process.returncode == wanted, f"exit {self.process.returncode}: {said[-4000:]}"

    async def kill(self) -> None:
        """Ends it as a crash does: no word to anybody."""
        self.was_killed = True
        _kill(self.process)
        await self.process.wait()


def _kill(process: asyncio.subprocess.Process) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


Behind = Mapping[str, Upstream | tuple[Upstream, dict[str, Any]] | dict[str, Any]]


def settings(behind: Behind, **more: Any) -> dict[str, Any]:
    """A configuration with one route `/<name>` for each upstream; a tuple adds members to the upstream's entry,
    a dict is an entry."""
    entries: dict[str, dict[str, Any]] = {}
    for name, peer in behind.items():
        if isinstance(peer, dict):
            entries[name] = peer
            continue
        upstream, extra = peer if isinstance(peer, tuple) else (peer, {})
        entries[name] = {"url": upstream.url, **extra}
    routes = [{"path": f"/{name}", "upstream": name} for name in entries]
    return {"listen": "127.0.0.1:0", "upstreams": entries, "routes": routes, **more}


@asynccontextmanager
async def running(
    behind: Behind, *, env: Mapping[str, str] | None = None, **more: Any
) -> AsyncIterator[GatewayProcess]:
    """A gateway with one route `/<name>` for each upstream; `more` adds or replaces members of its configuration."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "gateway.yaml").write_text(json.dumps(settings(behind, **more)))  # JSON is YAML
        gateway = await GatewayProcess.start(["serve", "-c", str(folder / "gateway.yaml")], folder, env)
        try:
            yield gateway
        finally:
            await gateway.stop()
