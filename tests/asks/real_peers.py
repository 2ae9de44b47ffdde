"""Real servers that ask, behind one gateway, and a witness of what goes on in them.

Each server is a process on an official SDK (`tests/asks/real/`), by address or as the gateway's child. It tells the
witness when its tool begins, hears an answer and ends, and that it is gone by the end of its connection; the witness
tells it when to give up an ask or to go on. So nothing here waits for time to pass.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

from tests.asks.talk import ELICIT, EVERYTHING, ROOTS, SAMPLE
from tests.gateway_process import GatewayProcess, running
from tests.http_wire import DEADLINE_S
from tests.matrix.machinery import NODE, SDK1
from tests.raw_front import Front, Session
from tests.scrape import gauges
from tests.scripted import Json

T = TypeVar("T")
HERE = Path(__file__).parent / "real"
COMMANDS: dict[str, list[str]] = {
    "py1": [SDK1, str(HERE / "py1.py")],
    "py2": [sys.executable, str(HERE / "py2.py")],
    "ts1": [NODE, str(HERE / "ts1.mjs")],
}

METHOD = {"form": ELICIT, "url": ELICIT, "sampling": SAMPLE, "sampling with tools": SAMPLE, "roots": ROOTS}
"""The kinds of asks, and the method of each."""

_SAID: Json = {
    "role": "assistant",
    "content": {"type": "text", "text": "hi € ☃"},
    "model": "m",
    "stopReason": "endTurn",
}
_USE: Json = {"type": "tool_use", "id": "u1", "name": "weigh", "input": {"kg": 1.5}}
GOOD: dict[str, Json] = {
    "form": {"action": "accept", "content": {"name": "Änn"}},
    "url": {"action": "accept"},
    "sampling": _SAID,
    "sampling with tools": {**_SAID, "content": [_USE], "stopReason": "toolUse"},
    "roots": {"roots": [{"uri": "file:///projects/x", "name": "würzel"}]},
}
OUTCOMES: dict[str, dict[str, Json]] = {
    "accept": GOOD,
    **{action: {kind: {"action": action} for kind in ("form", "url")} for action in ("decline", "cancel")},
}
"""Every answer that an `inputResponses` can carry: results by kind, by what the user did."""

REFUSED: Json = {"code": -32055, "message": "größe"}
"""An error with which a client answers."""


class Witness:
    """`said` is all that the servers told, in order; `live`, the processes that have not gone, by their ids."""

    def __init__(self) -> None:
        self.said: list[Json] = []
        self.live: dict[int, Json] = {}
        self._writers: set[asyncio.StreamWriter] = set()
        self._changed = asyncio.Condition()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._writers:
            writer.close()

    def env(self, of: str = "") -> dict[str, str]:
        """What a server needs in its environment to find the witness, and to be known as one `of` a gateway."""
        assert self._server is not None
        return {"WITNESS_PORT": str(self._server.sockets[0].getsockname()[1]), "WITNESS_OF": of}

    async def when(self, found: Callable[[], T]) -> T:
        """Waits until `found` gives something true."""
        async with asyncio.timeout(DEADLINE_S), self._changed:
            while not (value := found()):
                await self._changed.wait()
        return value

    async def told(self, count: int = 1, **members: Any) -> Json:
        """The `count`th line that has these members."""
        return await self.when(lambda: (self.lines(**members)[count - 1 :] or [{}])[0])

    def lines(self, **members: Any) -> list[Json]:
        """The lines so far that have these members."""
        return [line for line in self.said if all(line.get(key) == value for key, value in members.items())]

    def order(self, label: str, order: str) -> None:
        """Tells whichever server runs the call `label` to go on, or to give up its ask."""
        for writer in self._writers:
            writer.write(json.dumps({"label": label, "order": order}).encode() + b"\n")

    def process_of(self, label: str) -> int:
        """The process in which the call began."""
        [line] = self.lines(began=label)
        pid: int = line["by_pid"]
        return pid

    def running(self, prefix: str = "") -> set[str]:
        """The calls that have begun in a process that lives, and not ended; with labels that begin so."""
        begun = {line["began"] for line in self.said if "began" in line and line["by_pid"] in self.live}
        return {label for label in begun if label.startswith(prefix)} - {line.get("ended") for line in self.said}

    def children(self, of: str) -> set[int]:
        """The processes of a gateway that live."""
        return {pid for pid, first in self.live.items() if first["of"] == of}

    async def gone(self, pid: int) -> None:
        await self.when(lambda: pid not in self.live)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = json.loads(await reader.readline())
        pid = first["pid"]
        self.live[pid] = first
        self._writers.add(writer)
        await self._tell(first)
        with contextlib.suppress(ConnectionError):
            while line := await reader.readline():
                await self._tell({**json.loads(line), "by_pid": pid})
        self._writers.discard(writer)
        del self.live[pid]
        await self._tell({"gone": pid})
        writer.close()

    async def _tell(self, line: Json) -> None:
        async with self._changed:
            self.said.append(line)
            self._changed.notify_all()


@asynccontextmanager
async def process(command: Sequence[str], witness: Witness) -> AsyncIterator[str]:
    """Runs a server by address; its URL. Killed with its group in the end."""
    assert Path(command[0]).exists(), f"{command[0]} is missing: run 'make environments'"
    server = await asyncio.create_subprocess_exec(
        *command, "http", stdin=asyncio.subprocess.DEVNULL, env={**os.environ, **witness.env()}, start_new_session=True
    )
    try:
        url: str = (await witness.told(pid=server.pid))["url"]
        yield url
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        await server.wait()


def child(name: str, witness: Witness, of: str = "", **more: Any) -> Json:
    """The configuration of an upstream that is run as the gateway's child."""
    command, *arguments = COMMANDS[name]
    return {"command": command, "args": [*arguments, "stdio"], "env": witness.env(of), **more}


CHILDREN = ["py1-stdio", "py2-stdio", "ts1-stdio"]
"""Routes to children that speak sessions, each of which has one of its own."""
LEGACY = ["py1", "py2", "ts1", *CHILDREN]
"""Routes to servers that are spoken to in sessions."""
MODERN = ["py2-modern", "py2-modern-stdio"]
"""Routes to servers that are spoken to as of 2026-07-28."""


def behind(urls: dict[str, str], witness: Witness, of: str = "") -> dict[str, Json]:
    """The upstreams of a gateway before servers at these addresses, and before the same as its children."""
    session = {"era": "legacy", "scope": "session"}
    return {
        **{name: {"url": url, "era": "legacy"} for name, url in urls.items()},
        **{f"{name}-stdio": child(name, witness, of, **session) for name in COMMANDS},
        "py2-modern": {"url": urls["py2"], "era": "modern"},
        "py2-modern-stdio": child("py2", witness, of, era="modern"),
    }


@dataclass(frozen=True, slots=True)
class House:
    """The gateway, what is behind it, and who watches. `urls`: the servers by address."""

    gateway: GatewayProcess
    witness: Witness
    urls: dict[str, str]

    def front(self, route: str) -> Front:
        return self.gateway.front(f"/{route}")

    def url(self, route: str) -> str:
        return f"{self.gateway.url}/{route}"

    async def nothing_left(self) -> None:
        """Waits until no call is under way or parked in the gateway, and none goes on in a server that lives."""
        await self.witness.when(lambda: not self.witness.running())
        async with asyncio.timeout(DEADLINE_S):
            while any(await gauges(self.gateway, "mcp_front_door_calls_parked", "mcp_front_door_requests_in_flight")):
                pass


@asynccontextmanager
async def servers(witness: Witness) -> AsyncIterator[dict[str, str]]:
    """One of each by address, started side by side."""
    async with contextlib.AsyncExitStack() as stack:
        opened = [stack.enter_async_context(process(command, witness)) for command in COMMANDS.values()]
        yield dict(zip(COMMANDS, await asyncio.gather(*opened), strict=True))


class Sessions:
    """A raw legacy client's session at each route, opened once."""

    def __init__(self, at: House) -> None:
        self._at = at
        self.by_route: dict[str, Session] = {}

    async def at(self, route: str) -> Session:
        if route not in self.by_route:
            self.by_route[route] = await self._at.front(route).initialize(capabilities=EVERYTHING)
        return self.by_route[route]


ADMIN: Json = {"admin": "127.0.0.1:0"}


@asynccontextmanager
async def house() -> AsyncIterator[House]:
    async with Witness() as witness, servers(witness) as urls:
        async with running(behind(urls, witness), **ADMIN) as gateway:
            yield House(gateway, witness, urls)


def asks(label: str, *kinds: str, **more: Any) -> Json:
    """The parameters of a call that asks for these."""
    return {"name": "ask", "arguments": {"as": label, "asks": list(kinds), **more}}


SAY: Json = {"name": "say", "arguments": {}}
"""The parameters of a call that asks for nothing."""


def heard(message: Json) -> list[Json]:
    """What the server says that it heard, from the response to its call."""
    assert "result" in message, message
    found: list[Json] = json.loads(message["result"]["content"][0]["text"])["heard"]
    return found


def kind_of(entry: Json) -> str:
    """Which ask of the table an entry or a request is."""
    params = entry.get("params", {})
    match entry["method"]:
        case "elicitation/create":
            return "url" if params.get("mode") == "url" else "form"
        case "sampling/createMessage":
            return "sampling with tools" if "tools" in params else "sampling"
        case _:
            return "roots"


def answers_to(entries: Json, answers: Json = GOOD) -> Json:
    """Good answers to the entries of a round, or the given ones by kind."""
    return {key: answers[kind_of(entry)] for key, entry in entries.items()}


def is_in(part: Any, whole: Any) -> bool:
    """Whether `whole` has all that `part` has: an SDK may add members of its own."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(key in whole and is_in(part[key], whole[key]) for key in part)
    if isinstance(part, list):
        return isinstance(whole, list) and len(part) == len(whole) and all(map(is_in, part, whole))
    return bool(part == whole)
