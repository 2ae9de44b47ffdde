"""One LLM API over HTTP: requests out as they are given, responses in as they come.

Every foreign exception becomes an `UpstreamFault` here, with no address and no word of what came. Nothing is sent
twice, and no redirect is followed. A response left unread when its block ends, a cancelled one for instance, closes its
connection: that is how an API learns that nobody waits any more.
"""

import asyncio
import ssl
from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from io import BytesIO
from typing import Final
from urllib.parse import urlsplit

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from gateway import tls_files
from gateway.upstreams.faults import FOREIGN, fault_of, sending
from gateway.upstreams.patience import unless_silent
from policies.errors import UpstreamFault
from policies.settings import Settings
from policies.settings_edge import UpstreamTls
from policies.settings_providers import Provider

_AUTOMATIC: Final = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
"""What the HTTP client would add: a caller's request goes out with its own, or with none."""

_LARGE_BYTES: Final = 1 << 20
"""From here on a body is written piece by piece, between which others have their turn."""


class Lines:
    """The LLM APIs of one configuration. `evolve` gives those of the next, over the same connections."""

    def __init__(
        self, settings: Settings, http: aiohttp.ClientSession | None = None, room: "Room | None" = None
    ) -> None:
        self.room = room or Room()
        self._http = http or aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=15.0),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            read_bufsize=1 << 18,
        )
        self._by_name: Mapping[str, Line] = {
            name: Line(name, provider, self._http) for name, provider in settings.providers.items()
        }

    def __getitem__(self, name: str) -> "Line":
        return self._by_name[name]

    def evolve(self, settings: Settings) -> "Lines":
        return Lines(settings, self._http, self.room)

    async def close(self) -> None:
        await self._http.close()


class Room:
    """The bodies that are held at a time, in bytes."""

    def __init__(self) -> None:
        self.held = 0


class Line:
    def __init__(self, name: str, settings: Provider, http: aiohttp.ClientSession) -> None:
        self.name = name
        self.settings = settings
        self.path = urlsplit(settings.url).path
        """What the API's paths begin with."""
        self._http = http
        self._tls: ssl.SSLContext | bool = True  # the system's roots, by aiohttp's own context
        if settings.tls != UpstreamTls():
            self._tls = tls_files.client_context(settings.tls)

    @asynccontextmanager
    async def request(
        self,
        method: str,
        target: str,
        headers: Sequence[tuple[str, str]],
        body: bytes | AsyncIterable[bytes] | None,
        moved: Callable[[], float] | None = None,
    ) -> AsyncIterator["Answer"]:
        """Sends one request; `target` is a path, and a query if there is one, as they stand on the request line.
        `moved()`: until when, by the loop's clock, the body was still coming. The block runs once the response's head
        is there, and its end is that of the response. Raises `UpstreamFault`."""
        limits = self.settings.timeouts
        try:
            async with asyncio.timeout(limits.total_s):
                async with unless_silent(limits.first_byte_s, moved):
                    response = await self._send(method, target, headers, body)
                body = None  # it may be large, and the response may take minutes
                try:
                    yield Answer(response, limits.idle_s)
                finally:
                    response.close() if not response.content.at_eof() else response.release()
        except FOREIGN as error:
            raise self.fault(error) from error

    def fault(self, error: Exception) -> UpstreamFault:
        fault = fault_of(error, self.name, "provider")
        fault.http = 504 if fault.http == 504 else 502  # 503 would be the word of the API itself
        return fault

    async def _send(
        self, method: str, target: str, headers: Sequence[tuple[str, str]], body: bytes | AsyncIterable[bytes] | None
    ) -> aiohttp.ClientResponse:
        with sending():
            return await self._http.request(
                method,
                URL(self.settings.url + target, encoded=True),
                headers=CIMultiDict(headers),
                data=BytesIO(body) if isinstance(body, bytes) and len(body) >= _LARGE_BYTES else body,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=self.settings.timeouts.connect_s),
                allow_redirects=False,
                skip_auto_headers=_AUTOMATIC,
                ssl=self._tls,
                server_hostname=self.settings.tls.server_name,
            )


class Answer:
    """A response whose head is there."""

    def __init__(self, response: aiohttp.ClientResponse, idle_s: float) -> None:
        self.status = response.status
        self.reason = response.reason
        self.headers = response.headers
        self._content = response.content
        self._idle_s = idle_s

    @property
    def lines(self) -> list[tuple[str, str]]:
        """The header lines, each as it came."""
        return [(str(name), value) for name, value in self.headers.items()]

    async def chunk(self) -> bytes:
        """The next bytes of the body as they come; empty at its end."""
        async with asyncio.timeout(self._idle_s):
            return await self._content.readany()
