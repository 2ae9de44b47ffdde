"""A recording reverse proxy: what a peer asked and what it was told, as it stood on the wire.

One tap stands before the gateway and sees what each client really got; another stands before the upstream and sees
what the gateway really sent. It forwards bytes as they come (a closed client closes the upstream's stream) and parses
only its own copy. It runs in a thread of its own, so that tests may block on a driver process. It knows no MCP beyond
JSON-RPC framing: JSON bodies, batches left alone, and server-sent events.
"""

import asyncio
import json
import threading
from collections.abc import Coroutine
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, TypeVar

from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout, web

T = TypeVar("T")
# hop-by-hop, or set anew by each hop's HTTP library; accept-encoding so that the copy is plain text
DROPPED = {
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "accept-encoding",
    "date",
    "server",
}
START_DEADLINE_S = 10


@dataclass
class Exchange:
    """One HTTP exchange. `request` is the parsed JSON body or None; header names are in lower case."""

    method: str
    headers: dict[str, str]
    request: Any
    status: int = 0
    response_headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def rpc_method(self) -> str | None:
        return self.request.get("method") if isinstance(self.request, dict) else None

    @property
    def params(self) -> dict[str, Any]:
        return (self.request.get("params") or {}) if isinstance(self.request, dict) else {}

    @property
    def meta(self) -> dict[str, Any]:
        return self.params.get("_meta") or {}

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The JSON-RPC messages of the response so far, in their order."""
        kind = self.response_headers.get("content-type", "")
        if kind.startswith("text/event-stream"):
            return [json.loads(data) for data in event_data(self.body.decode(errors="replace")) if data]
        return [json.loads(self.body)] if kind.startswith("application/json") and self.body else []

    @property
    def answer(self) -> dict[str, Any] | None:
        """The message that answers this request, by its id and that id's type."""
        if not isinstance(self.request, dict) or "id" not in self.request:
            return None
        wanted = self.request["id"]
        answers = [
            message
            for message in self.messages
            if "method" not in message and message.get("id") == wanted and type(message.get("id")) is type(wanted)
        ]
        assert len(answers) <= 1, f"{len(answers)} answers to one request: {answers}"
        return answers[0] if answers else None

    def __str__(self) -> str:
        version = self.headers.get("mcp-protocol-version", "-")
        session = "session" if "mcp-session-id" in self.headers else "no session"
        return f"{self.method} {self.rpc_method or ''} [{version}, {session}] -> {self.status}"


def event_data(text: str) -> list[str]:
    """The data of each server-sent event that is complete; a stream may be cut anywhere, inside a character too."""
    found: list[str] = []
    lines: list[str] = []
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")[:-1]:
        name, _, value = line.partition(":")
        if line == "" and lines:
            found.append("\n".join(lines))
            lines = []
        elif name == "data":
            lines.append(value.removeprefix(" "))
    return found


class Tap:
    """Forwards to `target` (a URL) from `url`, and records into `exchanges` in the order of the requests."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.url = ""
        self.exchanges: list[Exchange] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="tap", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._call(self._start())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._call(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(START_DEADLINE_S)
        self._loop.close()

    def since(self, mark: int) -> list[Exchange]:
        """What was recorded after `mark` = an earlier `len(tap.exchanges)`."""
        return self.exchanges[mark:]

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(START_DEADLINE_S)

    async def _start(self) -> None:
        self._client = ClientSession(timeout=ClientTimeout(total=None), auto_decompress=False)
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_route("*", "/{path:.*}", self._forward)
        # without handler_cancellation a client that leaves would not end the upstream's stream
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}/mcp"

    async def _stop(self) -> None:
        await self._runner.cleanup()
        await self._client.close()

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        exchange = Exchange(request.method, headers, json.loads(body) if body else None)
        self.exchanges.append(exchange)
        sent = [(name, value) for name, value in request.headers.items() if name.lower() not in DROPPED]
        try:
            async with self._client.request(
                request.method, self.target, headers=sent, data=body or None, allow_redirects=False
            ) as answer:
                exchange.status = answer.status
                exchange.response_headers = {name.lower(): value for name, value in answer.headers.items()}
                return await self._relay(request, answer, exchange)
        except ClientError:
            # one of the two broke off; the other sees its connection break too
            if request.transport is not None:
                request.transport.abort()
            return web.Response()

    async def _relay(self, request: web.Request, answer: ClientResponse, exchange: Exchange) -> web.StreamResponse:
        out = web.StreamResponse(status=answer.status, reason=answer.reason)
        out.headers.extend((k, v) for k, v in answer.headers.items() if k.lower() not in DROPPED)
        if answer.content_length is None:
            out.enable_chunked_encoding()
        else:
            out.content_length = answer.content_length
        await out.prepare(request)
        async for chunk in answer.content.iter_any():
            exchange.body += chunk
            await out.write(chunk)
        await out.write_eof()
        return out
