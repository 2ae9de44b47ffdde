"""Scripted upstreams on raw sockets: they record every request and answer as a test tells them, down to the byte.

A test overrides the answer to one JSON-RPC method with `upstream.on[method] = answer`, where an answer is

    a dict                     the result
    an `Err`                   a JSON-RPC error, with its HTTP status
    an async function of Call  returns one of the above, or writes to the call itself and returns None

and everything below JSON-RPC with `upstream.on_http`, which sees each request first and returns True where it answered.
What each era demands beyond that stands in `tests/peers.py`.
"""

import asyncio
import contextlib
import itertools
import json
import socket
import struct
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from tests.http_wire import DEADLINE_S, LAST_CHUNK, Buffered, Headers, chunk, header_bytes, read_body, read_head

Json = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Err:
    code: int
    message: str = "refused by the script"
    data: Any = None
    status: int = 200


@dataclass(slots=True)
class Seen:
    """One request as it came in; `message` is the parsed body, None where it is empty or no JSON."""

    verb: str
    path: str
    headers: Headers
    body: bytes
    message: Any
    connection: int

    @property
    def method(self) -> str | None:
        return self.message.get("method") if isinstance(self.message, dict) else None

    @property
    def params(self) -> Json:
        return self.message.get("params") or {}

    @property
    def meta(self) -> Json:
        return self.params.get("_meta") or {}

    @property
    def id(self) -> Any:
        return self.message.get("id")

    @property
    def session(self) -> str | None:
        return self.headers.get("Mcp-Session-Id")

    @property
    def version(self) -> str | None:
        return self.headers.get("MCP-Protocol-Version")


class Call:
    """One request being answered."""

    def __init__(self, upstream: "Upstream", seen: Seen, stream: Buffered, writer: asyncio.StreamWriter) -> None:
        self.upstream = upstream
        self.seen = seen
        self.begun = False
        self.streaming = False
        self.broken = False
        self._stream = stream
        self._writer = writer

    # whole answers

    async def reply(self, status: int, body: bytes = b"", headers: Iterable[tuple[str, str]] = ()) -> None:
        lines = [*headers, ("Content-Length", str(len(body)))] if status != 204 else list(headers)
        await self.raw(header_bytes(f"HTTP/1.1 {status} Scripted", lines) + body)

    async def json(self, message: Any, status: int = 200, headers: Iterable[tuple[str, str]] = ()) -> None:
        text = message if isinstance(message, bytes) else json.dumps(message).encode()
        await self.reply(status, text, [("Content-Type", "application/json"), *headers])

    async def answer(self, outcome: "Json | Err", headers: Iterable[tuple[str, str]] = ()) -> None:
        """The response to this request, as an event where a stream has begun and as JSON where not."""
        message = response(self.seen.id, outcome)
        if self.streaming:
            await self.event(message)
            await self.end()
        else:
            await self.json(message, outcome.status if isinstance(outcome, Err) else 200, headers)

    # streams

    async def stream(self, headers: Iterable[tuple[str, str]] = (), *, content_type: str = "text/event-stream") -> None:
        lines = [("Content-Type", content_type), ("Cache-Control", "no-cache"), *headers]
        self.streaming = True
        await self.raw(header_bytes("HTTP/1.1 200 Scripted", [*lines, ("Transfer-Encoding", "chunked")]))

    async def event(self, message: Any, *, ident: str | None = None) -> None:
        if not self.streaming:
            await self.stream()
        prefix = f"id: {ident}\n" if ident is not None else ""
        await self.write(f"{prefix}event: message\ndata: {json.dumps(message)}\n\n".encode())

    async def notify(self, method: str, params: Json) -> None:
        await self.event({"jsonrpc": "2.0", "method": method, "params": params})

    async def write(self, data: bytes) -> None:
        """A piece of the streamed body, in a chunk of its own."""
        await self.raw(chunk(data))

    async def end(self) -> None:
        await self.raw(LAST_CHUNK)

    # the socket

    async def raw(self, data: bytes) -> None:
        self.begun = True
        self._writer.write(data)
        await self._writer.drain()

    def reset(self) -> None:
        """Ends the connection with a RST."""
        self.broken = self.begun = True
        raw = self._writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    def close(self) -> None:
        """Ends the connection with a FIN, whatever of the answer is missing."""
        self.broken = self.begun = True
        self._writer.close()

    async def gone(self) -> None:
        """Returns when whoever asked has hung up."""
        async with asyncio.timeout(DEADLINE_S):
            await self._stream.gone()
        self.broken = True

    async def stay(self) -> None:
        """As `gone`, for as long as it takes."""
        await self._stream.gone()
        self.broken = True

    # asking back, in a session

    async def ask(self, method: str, params: Json, *, ident: Any = None) -> Json:
        """Sends a request of ours on this call's stream and returns the client's JSON-RPC response to it."""
        ident = f"ask-{next(self.upstream.numbers)}" if ident is None else ident
        waiting = self.upstream.expect_reply(ident)
        await self.event({"jsonrpc": "2.0", "id": ident, "method": method, "params": params})
        async with asyncio.timeout(DEADLINE_S):
            return await waiting


Answer = Json | Err | Callable[[Call], Awaitable["Json | Err | None"]]


def response(ident: Any, outcome: Json | Err) -> Json:
    if isinstance(outcome, Err):
        error: Json = {"code": outcome.code, "message": outcome.message}
        if outcome.data is not None:
            error["data"] = outcome.data
        return {"jsonrpc": "2.0", "id": ident, "error": error}
    return {"jsonrpc": "2.0", "id": ident, "result": outcome}


class Upstream:
    """A scripted HTTP server on a port of 127.0.0.1 that the system chose, serving every path alike."""

    path = "/mcp"
    unknown = Err(-32601, "Method not found", status=404)

    def __init__(self) -> None:
        self.requests: list[Seen] = []
        self.replies: list[Seen] = []
        self.on: dict[str, Answer] = {}
        self.on_http: Callable[[Call], Awaitable[bool]] | None = None
        self.numbers = itertools.count(1)
        self.failures: list[BaseException] = []
        self.connections = 0
        self._arrived = asyncio.Condition()
        self._waiting: dict[Any, asyncio.Future[Json]] = {}
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._port = 0

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()
        self.check()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}{self.path}"

    @property
    def authority(self) -> str:
        return f"127.0.0.1:{self._port}"

    async def start(self) -> None:
        """Listens; after `stop`, on the same port as before."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self._port, limit=2**20)
        self._port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Closes the listener and every connection."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def check(self) -> None:
        """Raises what a script raised since the last check: its caller saw only a dead socket."""
        failures, self.failures = self.failures, []
        if failures:
            raise failures[0]

    def reset(self) -> None:
        """Forgets what was recorded and every override; sessions and connections stay."""
        self.requests.clear()
        self.replies.clear()
        self.on.clear()
        self.on_http = None

    def calls(self, method: str) -> list[Seen]:
        """The requests and notifications of one JSON-RPC method, in order of arrival."""
        return [seen for seen in self.requests if seen.method == method]

    def methods(self) -> list[str | None]:
        return [seen.method for seen in self.requests]

    async def seen(self, method: str, count: int = 1) -> list[Seen]:
        """Waits until `count` messages of `method` have arrived."""
        return await self.when(lambda: found if len(found := self.calls(method)) >= count else None)

    async def when(self, found: Callable[[], T | None]) -> T:
        """Waits until `found()` is true of what has arrived, and returns it."""
        async with asyncio.timeout(DEADLINE_S), self._arrived:
            while not (value := found()):
                await self._arrived.wait()
            return value

    def expect_reply(self, ident: Any) -> "asyncio.Future[Json]":
        """The client's response to a request of ours with this id."""
        return self._waiting.setdefault(ident, asyncio.get_running_loop().create_future())

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Known from its first moment: `stop` leaves no connection open that would never be answered."""
        if self._server is None:  # asyncio had accepted it, and tells of it only now
            writer.close()
            return
        task = asyncio.create_task(self._accept(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: writer.close())

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        raw = writer.get_extra_info("socket")
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stream = Buffered(reader, None)  # a client may keep its connection for later
        try:
            while await self._one(stream, writer, number):
                pass
        except (EOFError, ConnectionError, asyncio.CancelledError):
            pass
        except Exception as failure:  # noqa: BLE001 - a script's own mistake, whatever it is: `check` raises it
            self.failures.append(failure)

    async def _one(self, stream: Buffered, writer: asyncio.StreamWriter, number: int) -> bool:
        start, headers = await read_head(stream)
        verb, path, _ = start.split(" ")
        body = await read_body(stream, headers)
        message = None
        with contextlib.suppress(ValueError):
            message = json.loads(body)
        seen = Seen(verb, path, headers, body, message, number)
        async with self._arrived:
            self.requests.append(seen)
            self._arrived.notify_all()
        call = Call(self, seen, stream, writer)
        if self.on_http is None or not await self.on_http(call):
            await self.serve(call)
        assert call.begun, f"the script did not answer {seen.verb} {seen.method}"
        return not call.broken

    async def serve(self, call: Call) -> None:
        """Answers one request; an era overrides this."""
        await self.dispatch(call, {})

    async def dispatch(self, call: Call, defaults: dict[str, Answer]) -> None:
        method = call.seen.method
        answer = self.on.get(method or "", defaults.get(method or "", self.unknown))
        outcome = await answer(call) if callable(answer) else answer
        if outcome is not None:
            await call.answer(outcome)
