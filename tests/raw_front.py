"""A client of either era on a raw socket: it sends any bytes and shows every header line, event and byte of the answer.

One TCP connection a request, so that nothing can hang on connection state. `Front.modern` and `Front.initialize` are
the `M(method, params)` and `L-init` of the field reports.
"""

import asyncio
import base64
import json
import re
import socket
import struct
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from tests.http_wire import DEADLINE_S, Buffered, Headers, SseEvent, SseReader, body_parts, header_bytes, read_head

Json = dict[str, Any]
PREFIX = "io.modelcontextprotocol/"
MODERN = "2026-07-28"
LEGACY = "2025-11-25"
BOTH_TYPES = "application/json, text/event-stream"
CLIENT_INFO = {"name": "raw-front", "version": "1.0"}
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"} | dict.fromkeys(
    ("tasks/get", "tasks/update", "tasks/cancel"), "taskId"
)
Overrides = Mapping[str, "str | bytes | Sequence[str | bytes] | None"]
"""Header lines by name: None takes the line out, a list makes several lines of one name."""


def sentinel(value: str) -> str:
    """The Base64 form of a header value, needed or not (2026-07-28 streamable-http, Value Encoding)."""
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="


def header_value(value: str) -> str:
    """A name as a conforming client writes it into `Mcp-Name`."""
    plain = re.fullmatch(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?", value)
    return value if plain and not re.fullmatch(r"=\?base64\?.*\?=", value) else sentinel(value)


def request(method: str, params: Json | None = None, *, ident: Any = 1) -> Json:
    message: Json = {"jsonrpc": "2.0", "id": ident, "method": method}
    return message if params is None else message | {"params": params}


def notification(method: str, params: Json | None = None) -> Json:
    message: Json = {"jsonrpc": "2.0", "method": method}
    return message if params is None else message | {"params": params}


def modern_request(
    method: str,
    params: Json | None = None,
    *,
    ident: Any = 1,
    capabilities: Json | None = None,
    meta: Json | None = None,
) -> Json:
    """A request of 2026-07-28; a `meta` value of None takes that key out."""
    full = {
        PREFIX + "protocolVersion": MODERN,
        PREFIX + "clientInfo": CLIENT_INFO,
        PREFIX + "clientCapabilities": capabilities or {},
    } | (meta or {})
    return request(method, (params or {}) | {"_meta": {k: v for k, v in full.items() if v is not None}}, ident=ident)


def modern_headers(message: Json) -> dict[str, str]:
    headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": message["method"]}
    if (by := NAMED_BY.get(message["method"])) and isinstance(name := message["params"].get(by), str):
        headers["Mcp-Name"] = header_value(name)
    return headers


class Answer:
    """A whole HTTP response."""

    def __init__(self, status: int, headers: Headers, body: bytes, ended: bool) -> None:
        self.status = status
        self.headers = headers
        self.body = body
        self.ended = ended
        """Whether the body came to its proper end."""
        self.content_type = (headers.get("Content-Type") or "").split(";")[0].strip().lower()
        self.events: list[SseEvent] = []
        if self.content_type == "text/event-stream":
            self.events = [*SseReader().feed(body, final=True)]

    def __repr__(self) -> str:
        return f"<{self.status} {self.headers.lines} {self.body[:2000]!r}>"

    @property
    def messages(self) -> list[Any]:
        """Every JSON-RPC message of the response in order, batches flattened."""
        found: list[Any] = []
        if self.content_type == "text/event-stream":
            found = [event.json for event in self.events if event.data and event.event == "message"]
        elif self.body:
            found = [json.loads(self.body)]
        return [message for entry in found for message in (entry if isinstance(entry, list) else [entry])]

    @property
    def finals(self) -> list[Json]:
        return [message for message in self.messages if "method" not in message]

    @property
    def final(self) -> Json:
        """The one response; fails where there are several or none."""
        finals = self.finals
        assert len(finals) == 1, f"{len(finals)} responses in {self!r}"
        return finals[0]

    @property
    def notes(self) -> list[Json]:
        return [message for message in self.messages if "method" in message and "id" not in message]

    @property
    def result(self) -> Json:
        assert "result" in self.final, repr(self)
        return self.final["result"]

    @property
    def error(self) -> Json:
        assert "error" in self.final, repr(self)
        return self.final["error"]

    @property
    def code(self) -> int:
        return self.error["code"]

    @property
    def said(self) -> str:
        """The text of a tool result's first block."""
        return self.result["content"][0]["text"]


class Open:
    """A response whose body is still coming. Whatever is waited for must be there within `DEADLINE_S`, or a test that
    has its own deadline says how long: comments that keep a stream alive do not keep a test waiting."""

    def __init__(self, status: int, headers: Headers, stream: Buffered, writer: asyncio.StreamWriter) -> None:
        self.status = status
        self.headers = headers
        self.received = b""
        self.reader = SseReader()
        self._writer = writer
        self._parts = body_parts(stream, headers, response=True)
        self._ready: list[SseEvent] = []

    async def read(self) -> bytes:
        """The next piece of the body, b"" at its proper end; EOFError where it is cut short."""
        piece = await anext(self._parts, b"")
        self.received += piece
        return piece

    async def whole(self) -> None:
        """Reads to the proper end; EOFError where it is cut short."""
        async with asyncio.timeout(DEADLINE_S):
            while await self.read():
                pass

    async def event(self, within_s: float = DEADLINE_S) -> SseEvent | None:
        """The next event, None at the proper end of the stream."""
        async with asyncio.timeout(within_s):
            while not self._ready:
                piece = await self.read()
                self._ready.extend(self.reader.feed(piece, final=not piece))
                if not piece and not self._ready:
                    return None
        return self._ready.pop(0)

    async def message(self, within_s: float = DEADLINE_S) -> Json | None:
        """The next event that carries a message."""
        async with asyncio.timeout(within_s):
            while (event := await self.event(within_s)) is not None:
                if event.data and event.event == "message":
                    return event.json
        return None

    async def rest(self) -> list[Json]:
        """Every message up to the proper end."""
        found = []
        async with asyncio.timeout(DEADLINE_S):
            while (message := await self.message()) is not None:
                found.append(message)
        return found

    def close(self) -> None:
        self._writer.close()

    def reset(self) -> None:
        reset(self._writer)


def reset(writer: asyncio.StreamWriter) -> None:
    """Ends a connection with a RST."""
    raw = writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


class Front:
    """The clients of one MCP endpoint."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        assert parts.port is not None
        self.host, self.port, self.path = parts.hostname, parts.port, parts.path
        self.version = "HTTP/1.1"

    def at(self, path: str) -> "Front":
        return Front(f"http://{self.host}:{self.port}{path}")

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[tuple[Buffered, asyncio.StreamWriter]]:
        """A connection on which nothing has been sent."""
        reader, writer = await asyncio.open_connection(self.host, self.port)
        try:
            yield Buffered(reader), writer
        finally:
            writer.close()

    @asynccontextmanager
    async def sent(
        self, verb: str, headers: Overrides, body: bytes | None = None
    ) -> AsyncIterator[tuple[Buffered, asyncio.StreamWriter]]:
        """Sends one request and yields its connection, nothing read yet."""
        lines: list[tuple[str, str | bytes]] = []
        base: dict[str, Any] = {"Host": f"{self.host}:{self.port}"}
        if body is not None:
            base["Content-Length"] = str(len(body))
        for name, value in (base | dict(headers)).items():
            if value is not None:
                lines += [(name, each) for each in ([value] if isinstance(value, str | bytes) else value)]
        async with self.connected() as (stream, writer):
            writer.write(header_bytes(f"{verb} {self.path} {self.version}", lines) + (body or b""))
            await writer.drain()
            yield stream, writer

    @asynccontextmanager
    async def open(self, verb: str, headers: Overrides, body: bytes | None = None) -> AsyncIterator[Open]:
        """Sends one request and yields once the response's head is there."""
        async with self.sent(verb, headers, body) as (stream, writer):
            start, got = await read_head(stream)
            yield Open(int(start.split(" ")[1]), got, stream, writer)

    async def send(self, verb: str, headers: Overrides, body: bytes | None = None) -> Answer:
        async with self.open(verb, headers, body) as opened:
            ended = True
            if opened.status not in (204, 304) and verb != "HEAD":
                try:
                    await opened.whole()
                except (EOFError, ConnectionError):
                    ended = False
            return Answer(opened.status, opened.headers, opened.received, ended)

    async def post(self, message: Any, headers: Overrides | None = None) -> Answer:
        """POSTs a message (bytes go out as they are) with the two headers that every POST has."""
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        return await self.send("POST", self.posting(headers), body)

    @staticmethod
    def posting(headers: Overrides | None) -> Overrides:
        return {"Content-Type": "application/json", "Accept": BOTH_TYPES, **(headers or {})}

    # modern

    async def modern(
        self,
        method: str,
        params: Json | None = None,
        *,
        ident: Any = 1,
        capabilities: Json | None = None,
        meta: Json | None = None,
        headers: Overrides | None = None,
    ) -> Answer:
        message = modern_request(method, params, ident=ident, capabilities=capabilities, meta=meta)
        return await self.post(message, {**modern_headers(message), **(headers or {})})

    @asynccontextmanager
    async def modern_open(
        self, method: str, params: Json | None = None, *, ident: Any = 1, headers: Overrides | None = None, **meta: Any
    ) -> AsyncIterator[Open]:
        message = modern_request(method, params, ident=ident, **meta)
        every = self.posting({**modern_headers(message), **(headers or {})})
        async with self.open("POST", every, json.dumps(message).encode()) as opened:
            yield opened

    # legacy

    async def initialize(
        self,
        version: str = LEGACY,
        *,
        capabilities: Json | None = None,
        headers: Overrides | None = None,
        initialized: bool = True,
    ) -> "Session":
        params = {"protocolVersion": version, "capabilities": capabilities or {}, "clientInfo": CLIENT_INFO}
        answer = await self.post(request("initialize", params, ident=0), headers)
        assert answer.status == 200, repr(answer)
        session = Session(self, answer, dict(headers or {}))
        if initialized:
            told = await session.notify("notifications/initialized")
            assert told.status == 202, repr(told)
        return session


class Session:
    """A legacy client after `initialize`."""

    def __init__(self, front: Front, answer: Answer, headers: Overrides) -> None:
        self.front = front
        self.opened = answer
        self.result = answer.result
        self.id = answer.headers.get("Mcp-Session-Id")
        self.version: str = self.result["protocolVersion"]
        self.headers: dict[str, Any] = {**headers, "MCP-Protocol-Version": self.version}
        if self.id is not None:
            self.headers["Mcp-Session-Id"] = self.id

    async def post(self, message: Any, headers: Overrides | None = None) -> Answer:
        return await self.front.post(message, {**self.headers, **(headers or {})})

    async def request(
        self, method: str, params: Json | None = None, *, ident: Any = 1, headers: Overrides | None = None
    ) -> Answer:
        return await self.post(request(method, params, ident=ident), headers)

    async def notify(self, method: str, params: Json | None = None) -> Answer:
        return await self.post(notification(method, params))

    async def reply(self, ident: Any, outcome: Json) -> Answer:
        """Answers a request of the server; `outcome` is {"result": …} or {"error": …}."""
        return await self.post({"jsonrpc": "2.0", "id": ident, **outcome})

    @asynccontextmanager
    async def open(
        self, method: str, params: Json | None = None, *, ident: Any = 1, headers: Overrides | None = None
    ) -> AsyncIterator[Open]:
        every = self.front.posting({**self.headers, **(headers or {})})
        async with self.front.open("POST", every, json.dumps(request(method, params, ident=ident)).encode()) as opened:
            yield opened

    @asynccontextmanager
    async def get(self, headers: Overrides | None = None) -> AsyncIterator[Open]:
        every = {"Accept": "text/event-stream", **self.headers, **(headers or {})}
        async with self.front.open("GET", every) as opened:
            yield opened

    async def delete(self) -> Answer:
        return await self.front.send("DELETE", self.headers)
