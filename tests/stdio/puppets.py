"""Scripted stdio servers (`tests/stdio/puppet.py`): every child that the gateway starts, and all that it reads.

    async with Puppets("legacy") as puppets, running({"p": puppets.entry()}) as gateway:
        puppets.on["tools/call"] = answer

An answer is a result, an `Err`, or an async function of (child, message) that gives one of them or None for no answer.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Self, TypeVar

from tests.http_wire import DEADLINE_S
from tests.peers import CAPABILITIES, DEFAULTS, LEGACY, MODERN, PREFIX, SERVER_INFO, complete, text
from tests.scripted import Err, Json

T = TypeVar("T")
Answer = Json | Err | Callable[["Puppet", Json], Awaitable[Json | Err | None]]
PUPPET = str(Path(__file__).parent / "puppet.py")
LINE_BYTES = 64 << 20


class Puppet:
    """One child. `lines` is all it read, as messages."""

    def __init__(self, pid: int, writer: asyncio.StreamWriter) -> None:
        self.pid = pid
        self.lines: list[Json] = []
        self.at_end = False
        self.gone = False
        self._writer = writer

    def order(self, **what: object) -> None:
        self._writer.write(json.dumps(what).encode() + b"\n")

    def say(self, message: Json) -> None:
        self.order(out=json.dumps({"jsonrpc": "2.0", **message}) + "\n")

    def answer(self, message: Json, result: Json) -> None:
        self.say({"id": message["id"], "result": result})

    def calls(self, method: str) -> list[Json]:
        return [line for line in self.lines if line.get("method") == method]


class Puppets:
    """`era`: what the children speak; `mute`: they answer no probe."""

    def __init__(self, era: str = "legacy") -> None:
        self.era = era
        self.children: list[Puppet] = []
        self.on: dict[str, Answer] = {}
        self.obeys_eof = True
        self._server: asyncio.Server | None = None
        self._changed = asyncio.Condition()
        self._work: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=LINE_BYTES)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._work:
            task.cancel()

    def entry(self, *arguments: str, **more: Any) -> Json:
        """The configuration of an upstream that is these children."""
        assert self._server is not None
        port = self._server.sockets[0].getsockname()[1]
        env = {"PUPPET_PORT": str(port)}
        return {"command": sys.executable, "args": [PUPPET, *arguments], "env": env, **more}

    async def when(self, found: Callable[[], T]) -> T:
        """Waits until `found` gives something true."""
        async with asyncio.timeout(DEADLINE_S), self._changed:
            while not (value := found()):
                await self._changed.wait()
        return value

    async def child(self, number: int) -> Puppet:
        """The child that was started as the `number`th, from 1."""
        return await self.when(lambda: self.children[number - 1] if len(self.children) >= number else None)

    async def call(self, method: str, count: int = 1) -> Json:
        """The `count`th message of this method to any child."""
        return await self.when(lambda: self.messages(method)[count - 1] if len(self.messages(method)) >= count else {})

    def messages(self, method: str) -> list[Json]:
        return [message for child in self.children for message in child.calls(method)]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        child = Puppet(json.loads(await reader.readline())["pid"], writer)
        self.children.append(child)
        await self._tell()
        try:
            while line := await reader.readline():
                match json.loads(line):
                    case {"eof": _}:
                        child.at_end = True
                        if self.obeys_eof:
                            child.order(exit=0)
                    case {"line": raw}:
                        child.lines.append(json.loads(raw))
                        task = asyncio.create_task(self._answer(child, child.lines[-1]))
                        self._work.add(task)
                        task.add_done_callback(self._work.discard)
                await self._tell()
        except ConnectionError:
            pass
        child.gone = True
        await self._tell()
        writer.close()

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _answer(self, child: Puppet, message: Json) -> None:
        method = message.get("method")
        if method is None or "id" not in message:
            return
        answer = self.on.get(method, self._default(message))
        outcome = await answer(child, message) if callable(answer) else answer
        if isinstance(outcome, Err):
            error = {"code": outcome.code, "message": outcome.message}
            child.say({"id": message["id"], "error": error})
        elif outcome is not None:
            if self.era == "modern":
                outcome = complete(method, outcome)
            child.answer(message, outcome)

    def _default(self, message: Json) -> Json | Err:
        method, params = message["method"], message.get("params", {})
        if method == "initialize" and self.era == "legacy":
            version = {"protocolVersion": LEGACY, "capabilities": CAPABILITIES | {"resources": {"subscribe": True}}}
            return {**version, "serverInfo": SERVER_INFO}
        if method == "server/discover" and self.era == "modern":
            return {"supportedVersions": [MODERN], "capabilities": CAPABILITIES, "ttlMs": 0, "cacheScope": "private"}
        if method == "tools/call":
            return text(json.dumps({"name": params.get("name"), "arguments": params.get("arguments")}))
        if method in ("resources/subscribe", "resources/unsubscribe", "logging/setLevel"):
            return {}
        default = DEFAULTS.get(method)
        return default if isinstance(default, dict) else Err(-32601, "Method not found")


def subscription(message: Json) -> Json:
    """The `_meta` of what belongs to a listen request."""
    return {"_meta": {PREFIX + "subscriptionId": message["id"]}}
