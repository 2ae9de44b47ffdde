"""A provider on a real socket that keeps the bytes of every request, and answers as its conversation's script says.

A conversation is told by its API key, wherever its API has it.
"""

import gzip
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web

from tests.adapters.dialects import Turn, answer, aside

MAX_BYTES = 1 << 26


@dataclass(frozen=True, slots=True)
class Request:
    """One request that arrived. `body`: its bytes, decompressed."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_aside(self) -> bool:
        """Whether it is no turn of its conversation."""
        return aside(self.path.partition("?")[0]) is not None


class Provider:
    """`scripts`: by the last word of a conversation's key (after its last dot), its turns."""

    def __init__(self, scripts: Mapping[str, Sequence[Turn]]) -> None:
        self.scripts = scripts
        self.url = ""
        self.arrived: dict[str, list[Request]] = defaultdict(list)
        """By key, in order."""
        self._turns: dict[str, int] = defaultdict(int)

    async def handle(self, request: web.Request) -> web.Response:
        body = await request.read()
        if request.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        headers = request.headers
        authorization = headers.get("Authorization", "").removeprefix("Bearer ")
        key = headers.get("x-api-key") or headers.get("x-goog-api-key") or authorization
        self.arrived[key].append(Request(request.path_qs, dict(headers), body))
        if (other := aside(request.path)) is not None:
            return web.json_response(other)
        script, number = self.scripts[key.rpartition(".")[2]], self._turns[key]
        self._turns[key] += 1
        content_type, said = answer(request.path, json.loads(body), script[number], number)
        return web.Response(body=said, headers={"Content-Type": content_type})


@asynccontextmanager
async def provider(scripts: Mapping[str, Sequence[Turn]]) -> AsyncIterator[Provider]:
    one = Provider(scripts)
    app = web.Application(client_max_size=MAX_BYTES)
    app.router.add_route("*", "/{path:.*}", one.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        [(host, port)] = runner.addresses
        one.url = f"http://{host}:{port}"
        yield one
    finally:
        await runner.cleanup()
