"""What the two Python servers share: the tool's steps, and the line to the test (`tests/asks/real_peers.py`).

`ask` takes {"as": a label, "asks": kinds, "together": bool, "hold": bool}: it asks its client for everything, says
what it heard, and where it holds, waits for the test's order first. Knows no SDK; runs on the standard library alone,
in every Python environment.

To the test, a JSON line each: {"pid", "name", "url", "of"} first; {"began": label}, {"heard": kind, "by": label},
{"ended": label, "how": "answered" | "cancelled" | "failed"}. From the test: {"label", "order": "go on" | "give up"}.
"""

import asyncio
import contextlib
import json
import os
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

Json = dict[str, Any]
Ask = Callable[[str], Awaitable[Json]]

SCHEMA: Json = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
URL = "https://example.com/connect?to=größe"
TOOL: Json = {"name": "weigh", "inputSchema": {"type": "object"}}
SAID: Json = {"role": "user", "content": {"type": "text", "text": "Say hi € ☃"}}
TOOLS: list[Json] = [
    {"name": "ask", "inputSchema": {"type": "object"}},
    {"name": "say", "description": "asks nobody", "inputSchema": {"type": "object"}},
]


class Test:
    """The test that watches."""

    def __init__(self) -> None:
        self._orders: dict[tuple[str, str], asyncio.Event] = {}
        self._writer: asyncio.StreamWriter | None = None
        self._listening: asyncio.Task[None] | None = None

    async def join(self, name: str, url: str | None = None) -> None:
        reader, self._writer = await asyncio.open_connection("127.0.0.1", int(os.environ["WITNESS_PORT"]))
        self._listening = asyncio.create_task(self._listen(reader))
        self.tell(pid=os.getpid(), name=name, url=url, of=os.environ.get("WITNESS_OF"))

    def tell(self, **what: object) -> None:
        assert self._writer is not None
        self._writer.write(json.dumps(what).encode() + b"\n")

    async def order(self, label: str, order: str) -> None:
        """Returns once the test has ordered it."""
        await self._orders.setdefault((label, order), asyncio.Event()).wait()

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        while line := await reader.readline():
            told = json.loads(line)
            self._orders.setdefault((told["label"], told["order"]), asyncio.Event()).set()


test = Test()


async def run(arguments: Mapping[str, Any], ask: Ask) -> list[Json]:
    """The tool's steps: what it heard to each of its asks. `ask` gives the client's result, or its error, as JSON."""
    label, kinds, how = arguments["as"], arguments["asks"], "failed"
    test.tell(began=label)
    try:
        if arguments.get("together"):
            heard = list(await asyncio.gather(*(_one(label, kind, ask) for kind in kinds)))
        else:
            heard = [await _one(label, kind, ask) for kind in kinds]
        if arguments.get("hold"):
            await test.order(label, "go on")
        how = "answered"
    except asyncio.CancelledError:
        how = "cancelled"
        raise
    finally:
        test.tell(ended=label, how=how)
    return heard


async def _one(label: str, kind: str, ask: Ask) -> Json:
    """One ask's answer, unless the test has the server give it up."""
    asking, patience = asyncio.ensure_future(ask(kind)), asyncio.ensure_future(test.order(label, "give up"))
    try:
        await asyncio.wait({asking, patience}, return_when=asyncio.FIRST_COMPLETED)
        told = asking.result() if asking.done() else {"gave": "up"}
    finally:
        for one in (asking, patience):
            one.cancel()
        await asyncio.wait({asking, patience})
    test._orders.pop((label, "give up"), None)
    test.tell(heard=kind, by=label)
    return told


def said(heard: list[Json]) -> str:
    return json.dumps({"heard": heard}, ensure_ascii=False)


async def serve_http(name: str, app: Any) -> None:
    """Serves an ASGI app until the process is told to end."""
    import uvicorn  # noqa: PLC0415 - a stdio server needs none

    listener = socket.create_server(("127.0.0.1", 0))
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # asyncio does that for listeners of its own alone
    await test.join(name, f"http://127.0.0.1:{listener.getsockname()[1]}/mcp")
    await uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)).serve(sockets=[listener])


def main(work: Awaitable[None]) -> None:
    async def all_of_it() -> None:
        await work

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(all_of_it())
    sys.exit(0)
