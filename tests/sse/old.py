"""A client of HTTP+SSE on raw sockets: one stream, and the address that it named."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.http_wire import DEADLINE_S
from tests.raw_front import CLIENT_INFO, Answer, Front, Json, Open, Overrides, notification, request

VERSION = "2024-11-05"


class Old:
    def __init__(self, front: Front, stream: Open, headers: Overrides, endpoint: str) -> None:
        self.front = front
        self.stream = stream
        self.headers = headers
        self.endpoint = endpoint
        self.passed: list[Json] = []
        """Messages that came before one that was waited for."""

    async def post(self, message: Any, headers: Overrides | None = None, endpoint: str | None = None) -> Answer:
        front = self.front.at("/")
        front.path = self.endpoint if endpoint is None else endpoint
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        return await front.send("POST", {"Content-Type": "application/json", **self.headers, **(headers or {})}, body)

    async def start(self, method: str, params: Json | None = None, *, ident: Any = 1) -> None:
        taken = await self.post(request(method, params, ident=ident))
        assert (taken.status, taken.body) == (202, b""), repr(taken)

    async def notify(self, method: str, params: Json | None = None) -> None:
        assert (await self.post(notification(method, params))).status == 202

    async def until(self, **members: Any) -> Json:
        """The next message on the stream that has these members."""
        async with asyncio.timeout(DEADLINE_S):
            while (message := await self.stream.message()) is not None:
                if all(message.get(key) == value for key, value in members.items()):
                    return message
                self.passed.append(message)
        raise AssertionError(f"the stream ended without {members}: {self.passed}")

    async def request(self, method: str, params: Json | None = None, *, ident: Any = 1) -> Json:
        await self.start(method, params, ident=ident)
        return await self.until(id=ident)

    async def initialize(self, version: str = VERSION, capabilities: Json | None = None) -> Json:
        params = {"protocolVersion": version, "capabilities": capabilities or {}, "clientInfo": CLIENT_INFO}
        answer = await self.request("initialize", params, ident="hello")
        await self.notify("notifications/initialized")
        result: Json = answer["result"]
        return result


@asynccontextmanager
async def opened(front: Front, headers: Overrides | None = None) -> AsyncIterator[Old]:
    """A stream that has named its endpoint."""
    async with front.open("GET", {"Accept": "text/event-stream", **(headers or {})}) as stream:
        assert stream.status == 200, stream.status
        assert stream.headers.get("Content-Type") == "text/event-stream"
        event = await stream.event()
        assert event is not None
        assert event.event == "endpoint"
        yield Old(front, stream, headers or {}, event.data)
