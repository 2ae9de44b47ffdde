"""Real and scripted peers that speak HTTP+SSE."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.http_wire import DEADLINE_S
from tests.matrix.machinery import NODE, ROOT, SDK1
from tests.peers import CAPABILITIES, DEFAULTS, SERVER_INFO
from tests.scripted import Answer, Call, Json, Seen, Upstream, response

HERE = Path(__file__).parent / "real"
OLDEST = str(ROOT / ".envs/oldest/bin/python")
PYTHONS = {"py1.0": OLDEST, "py1.x": SDK1}
PACKAGES = {"ts1.0": "@modelcontextprotocol/sdk-1.0", "ts1.x": "@modelcontextprotocol/sdk"}
CLIENTS = {
    **{name: [python, str(HERE / "client.py")] for name, python in PYTHONS.items()},
    **{name: [NODE, str(HERE / "client.mjs"), package] for name, package in PACKAGES.items()},
}
SERVERS = {
    **{name: [python, str(HERE / "server.py")] for name, python in PYTHONS.items()},
    **{name: [NODE, str(HERE / "server.mjs"), package] for name, package in PACKAGES.items()},
}
"""Commands, by SDK and line: the oldest that still installs, and the last."""


@asynccontextmanager
async def served(command: list[str]) -> AsyncIterator[str]:
    """A real server; the URL of its stream."""
    assert Path(command[0]).exists(), f"{command[0]} is missing: run 'make environments'"
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, start_new_session=True
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(DEADLINE_S):
            url = (await process.stdout.readline()).decode().strip()
        assert url, f"{command} did not start"
        yield url
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def understood(client: str, urls: list[str], *, rich: bool = False) -> list[Any]:
    """What a real client made of each of these servers."""
    process = await asyncio.create_subprocess_exec(
        *CLIENTS[client],
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(DEADLINE_S):
            out, errors = await process.communicate(json.dumps({"urls": urls, "rich": rich}).encode())
    except TimeoutError:
        os.killpg(process.pid, signal.SIGKILL)
        out, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()[-4000:]
    found: list[Any] = json.loads(out)
    return found


class SseUpstream(Upstream):
    """A server of 2024-11-05: GET opens a stream, whatever is POSTed to the address that it names is answered there.

    `endpoint` is what a stream names, `{}` being its number; `accept` answers the POST itself."""

    path = "/sse"

    def __init__(self, endpoint: str = "/messages?session={}") -> None:
        super().__init__()
        self.endpoint = endpoint
        self.streams: dict[str, Call] = {}
        self.opened: list[Seen] = []
        self.naming: Callable[[str], bytes] = lambda endpoint: f"event: endpoint\ndata: {endpoint}\n\n".encode()
        """The bytes in which a stream names it."""
        self.after_accepting = True
        """Whether a POST is accepted before its answer is on the stream."""

    async def serve(self, call: Call) -> None:
        seen = call.seen
        if seen.verb == "GET" and seen.path == self.path:
            await self._stream(call)
        elif seen.verb != "POST" or seen.path == self.path:
            await call.reply(405, headers=[("Allow", "GET")])
        elif (stream := self.streams.get(seen.path.rpartition("=")[2])) is None:
            await call.reply(404, b"Could not find session")
        else:
            await self._post(call, stream)

    async def _stream(self, call: Call) -> None:
        number = str(next(self.numbers))
        await call.stream()
        await call.write(self.naming(self.endpoint.format(number)))
        self.streams[number] = call
        async with self._arrived:
            self.opened.append(call.seen)
            self._arrived.notify_all()
        await call.stay()
        self.streams.pop(number, None)
        async with self._arrived:
            self._arrived.notify_all()

    async def _post(self, call: Call, stream: Call) -> None:
        message = call.seen.message
        if "method" not in message:
            self.replies.append(call.seen)
            if not (waiting := self.expect_reply(message["id"])).done():
                waiting.set_result(message)
        accepting = call.reply(202, b"Accepted", [("Content-Type", "text/plain")])
        if "method" not in message or "id" not in message:
            await accepting
            return
        if not self.after_accepting:
            await self._say(call, stream)
            await accepting
            return
        await accepting
        task = asyncio.create_task(self._say(call, stream))  # the next POST may come on the same connection meanwhile
        self._tasks.add(task)
        task.add_done_callback(self._said)

    async def _say(self, call: Call, stream: Call) -> None:
        method = call.seen.method or ""
        answer: Answer = self.on.get(method, {**DEFAULTS, "initialize": self._hello}.get(method, self.unknown))
        onto = Call(self, call.seen, call._stream, stream._writer)
        onto.streaming = True
        outcome = await answer(onto) if callable(answer) else answer
        if outcome is not None:
            await stream.event(response(call.seen.id, outcome))

    def _said(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        failure = None if task.cancelled() else task.exception()
        if failure is not None and not isinstance(failure, EOFError | ConnectionError):
            self.failures.append(failure)

    @property
    def _hello(self) -> Json:
        return {"protocolVersion": "2024-11-05", "capabilities": CAPABILITIES, "serverInfo": SERVER_INFO}
