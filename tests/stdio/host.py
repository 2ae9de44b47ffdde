"""A host that launches the gateway and speaks to it line by line, as `mcp-front-door stdio` is run."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.gateway_process import FORBIDDEN
from tests.http_wire import DEADLINE_S
from tests.raw_front import CLIENT_INFO, LEGACY, modern_request, notification, request

Json = dict[str, Any]
START_S = 30.0
LINE_BYTES = 64 << 20


class Host:
    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self.process = process
        self.log = log
        self.heard: list[Json] = []
        """Every message that was read, in order."""

    def write(self, *messages: Json | bytes) -> None:
        assert self.process.stdin is not None
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(message).encode()
            self.process.stdin.write(line + b"\n")

    async def read(self) -> Json | None:
        """The next line, which must be one message; None at the end."""
        assert self.process.stdout is not None
        async with asyncio.timeout(START_S):
            line = await self.process.stdout.readline()
        if not line:
            return None
        message: Json = json.loads(line)
        assert message["jsonrpc"] == "2.0", line
        self.heard.append(message)
        return message

    async def until(self, **members: Any) -> Json:
        """Reads up to the message that has these members."""
        async with asyncio.timeout(DEADLINE_S):
            while message := await self.read():
                if all(message.get(key) == value for key, value in members.items()):
                    return message
        raise AssertionError(f"the output ended without {members}: {self.log.read_text()[-4000:]}")

    async def answer(self, message: Json) -> Json:
        """Sends a request and reads up to its answer."""
        self.write(message)
        while found := await self.until(id=message["id"]):
            if "method" not in found:
                return found
        raise AssertionError("unreachable")

    async def modern(self, method: str, params: Json | None = None, ident: Any = 1, **more: Any) -> Json:
        return await self.answer(modern_request(method, params, ident=ident, **more))

    async def initialize(self, version: str = LEGACY, capabilities: Json | None = None) -> Json:
        params = {"protocolVersion": version, "capabilities": capabilities or {}, "clientInfo": CLIENT_INFO}
        answer = await self.answer(request("initialize", params, ident="init"))
        self.write(notification("notifications/initialized"))
        return answer

    async def end(self) -> list[Json]:
        """Closes the input; what is still said, once the process has ended in order."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        rest = []
        while message := await self.read():
            rest.append(message)
        async with asyncio.timeout(DEADLINE_S):
            await self.process.wait()
        said = self.log.read_text()
        assert self.process.returncode == 0, said[-4000:]
        for sign in FORBIDDEN:
            assert sign not in said, said[-8000:]
        return rest


@asynccontextmanager
async def launched(folder: Path, *arguments: str) -> AsyncIterator[Host]:
    """`mcp-front-door stdio` with these arguments; killed with its group if the test has not ended it."""
    log = folder / "stderr.log"
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "gateway", "stdio", *arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            limit=LINE_BYTES,
            start_new_session=True,
        )
    try:
        yield Host(process, log)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
