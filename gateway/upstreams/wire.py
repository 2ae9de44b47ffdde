"""One upstream over HTTP, at one endpoint or several: requests out, JSON or events in.

Every foreign exception becomes an `UpstreamFault` here, and nowhere else; bounds on size and silence are kept here.
A response left unread when its block ends, a cancelled one for instance, closes its connection: that is how a modern
upstream learns of a cancel (2026-07-28 streamable-http, Cancellation). Nothing is ever sent twice here, but for one
same-origin 307 or 308, which by its meaning was not executed. At another endpoint, a request is tried that could not be
sent at all, and one that only reads once more where the connection broke before an answer.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import asynccontextmanager, nullcontext
from copy import copy
from typing import Literal
from urllib.parse import urljoin, urlsplit

import aiohttp
from multidict import CIMultiDict

from gateway import tls_files
from gateway.metrics import Metrics
from gateway.upstreams.endpoints import Endpoint, Endpoints
from gateway.upstreams.faults import FOREIGN, fault_of, reason, sending, unauthorized
from gateway.upstreams.patience import USUAL, Patience, Silence, unless_silent
from gateway.upstreams.reading import Blocks, Pieces, Waiting
from gateway.upstreams.underway import Underway
from policies import affinity, coding, sse
from policies.errors import UpstreamFault
from policies.mcp import Json
from policies.settings import Limits
from policies.settings import Upstream as UpstreamSettings
from policies.settings_edge import UpstreamTls

_BASE = {"Accept-Encoding": "identity", "User-Agent": "mcp-front-door"}
BOTH = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
EVENTS = {"Accept": "text/event-stream"}
_PORTS = {"http": 80, "https": 443}
_CHECK = aiohttp.ClientTimeout(total=None)
"""Of a health check, whose time is bounded as a whole."""

_PASSED_STATUS = frozenset({429, 502, 503, 504})


class Wire:
    has_headers = True

    def __init__(
        self,
        name: str,
        settings: UpstreamSettings,
        limits: Limits,
        http: aiohttp.ClientSession,
        metrics: Metrics | None = None,
    ) -> None:
        self.name = name
        self.settings = settings
        self.limits = limits
        self._http = http
        self._metrics = metrics or Metrics()
        self._own = settings.own_headers
        self._own_cookie = next((value for header, value in self._own if header.lower() == "cookie"), None)
        self.endpoints = Endpoints(name, settings, self._is_there, on_ejected=self._ejected)
        self._underway = Underway(name)
        self._streams: set[asyncio.Timeout] = set()
        self._tls: ssl.SSLContext | bool = True  # the system's roots, by aiohttp's own context
        if settings.tls != UpstreamTls():
            self._tls = tls_files.client_context(settings.tls)
        self.endpoints.watch()

    @property
    def endpoint_count(self) -> int:
        return len(self.endpoints)

    def known_endpoint(self, key: str, /) -> str:
        return key if len(self.endpoints) > 1 and key in self.endpoints else ""

    def next_endpoint(self, tried: Collection[str] = (), /) -> str:
        endpoint = self.endpoints.choose("", tried)
        if tried and endpoint is not None:
            self._metrics.upstream_retries.add(self.name)
        return endpoint.key if endpoint is not None else ""

    @asynccontextmanager
    async def request(
        self,
        method: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        patience: Patience = USUAL,
    ) -> AsyncIterator["Reception"]:
        """Sends one request; the block runs once the response's head is there.

        Raises `UpstreamFault`, and `SessionGone` where the endpoint that must have it is no longer configured.
        """
        sent = CIMultiDict(_BASE)
        sent.update(headers)
        cookie = sent.get("Cookie")  # a session's own
        sent.update(self._own)
        if cookie is not None and self._own_cookie is not None:
            sent["Cookie"] = f"{self._own_cookie}; {cookie}"
        answered = False
        try:
            with self._underway:
                async with (
                    self._scope(patience.long_lived and not patience.needed),
                    self._answered(method, sent, body, patience) as reception,
                ):
                    answered = True
                    yield reception
        except FOREIGN as error:
            if self._underway.retired and patience.long_lived:
                raise self._underway.retirement() from error
            fault = self.fault(error)
            fault.unanswered = not answered and reason(error) == "broken"
            raise fault from error

    @asynccontextmanager
    async def _answered(
        self, method: str, headers: CIMultiDict[str], body: bytes | None, patience: Patience
    ) -> AsyncIterator["Reception"]:
        """The answer of the endpoint that is best asked, or of another one where that could not be: each at most
        once."""
        silence = Silence(patience.limits or self.settings.timeouts, patience.waited)
        repeatable, tried = patience.repeatable, list[str]()
        endpoint = self.endpoints.choose(patience.endpoint)
        while endpoint is not None:
            with endpoint if not patience.long_lived else nullcontext():
                try:
                    response = await self._head(endpoint.url, method, headers, body, patience)
                except FOREIGN as error:
                    self.endpoints.failed(endpoint)
                    tried.append(endpoint.key)
                    unsent = not fault_of(error, self.name).executed
                    may_go_on = unsent or (repeatable and reason(error) == "broken")
                    repeatable = repeatable and unsent
                    endpoint = self.endpoints.choose(patience.endpoint, tried) if may_go_on else None
                    if endpoint is None:
                        raise
                    self._metrics.upstream_retries.add(self.name)
                    self._metrics.lost(self.name, reason(error))
                    continue
                self.endpoints.answered(endpoint, response.status)
                try:
                    yield Reception(response, self, silence, endpoint.key)
                finally:
                    response.close() if not response.content.at_eof() else response.release()
                return

    def at(self, reference: str, endpoint: str) -> "Wire | None":
        """The same upstream at the address that one of its endpoints refers to, None where that is of another origin.
        Retired with this one."""
        found = self.endpoints.choose(endpoint)
        url = same_origin(found.url, reference) if found is not None else None
        if url is None:
            return None
        other = copy(self)
        other.settings = self.settings.model_copy(update={"url": url, "urls": ()})
        other.endpoints = Endpoints(self.name, other.settings, other._is_there, checks_one=False)  # noqa: SLF001 - its own kind
        return other

    def holder(self, _session: str, /) -> str:
        return ""

    def fault(self, error: Exception) -> UpstreamFault:
        """What the HTTP client raised, counted, and as whose fault it is."""
        self._metrics.lost(self.name, reason(error))
        return fault_of(error, self.name)

    def _ejected(self, endpoint: Endpoint) -> None:
        self._metrics.ejections.add(self.name, endpoint.label)

    async def retire(self) -> None:
        """Ends the long-lived streams, and waits until nothing else is under way either."""
        self._underway.retired = True
        for stream in self._streams:
            stream.reschedule(asyncio.get_running_loop().time())
        await self._underway.over()

    @asynccontextmanager
    async def _scope(self, long_lived: bool) -> AsyncIterator[None]:
        """A time-out that has no time: it strikes when the upstream is retired, if this is a stream."""
        async with asyncio.timeout(None) as scope:
            if not long_lived:
                yield
                return
            if self._underway.retired:
                raise self._underway.retirement()
            self._streams.add(scope)
            try:
                yield
            finally:
                self._streams.discard(scope)

    async def close(self) -> None:
        """The connections are those of all upstreams, and not this one's to close."""
        await self.endpoints.close()

    async def _is_there(self, endpoint: Endpoint) -> bool:
        """Whether an endpoint accepts connections or, where a path is configured for that, says that it is well."""
        path, timeouts, url = self.settings.health.path, self.settings.timeouts, urlsplit(endpoint.url)
        try:
            if path:
                asked = self._send("GET", f"{url.scheme}://{url.netloc}{path}", CIMultiDict(self._own), None, _CHECK)
                async with asyncio.timeout(timeouts.probe_s):
                    response = await asked
                response.close()
                return 200 <= response.status < 300
            async with asyncio.timeout(timeouts.connect_s):
                _, writer = await asyncio.open_connection(url.hostname, url.port or _PORTS[url.scheme])
            writer.close()
        except FOREIGN:
            return False
        return True

    async def _head(
        self, url: str, method: str, headers: CIMultiDict[str], body: bytes | None, patience: Patience
    ) -> aiohttp.ClientResponse:
        limits = patience.limits or self.settings.timeouts
        unwatched = patience.long_lived or patience.waited is not None
        bounds = aiohttp.ClientTimeout(
            total=None, sock_connect=limits.connect_s, sock_read=None if unwatched else limits.idle_s
        )
        for _ in range(2):
            async with unless_silent(limits.first_byte_s, patience.waited):
                response = await self._send(method, url, headers, body, bounds)
            if not 300 <= response.status < 400:
                return response
            response.close()
            target = same_origin(url, response.headers.get("Location", ""))
            if response.status not in (307, 308) or target is None:
                break
            url = target
        raise UpstreamFault(f"upstream {self.name} redirects elsewhere; put its final address into the configuration")

    async def _send(
        self, method: str, url: str, headers: CIMultiDict[str], body: bytes | None, bounds: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        with sending():
            return await self._http.request(
                method,
                url,
                headers=headers,
                data=body,
                timeout=bounds,
                allow_redirects=False,
                ssl=self._tls,
                server_hostname=self.settings.tls.server_name,
            )


class Reception:
    """A response whose head has arrived."""

    def __init__(self, response: aiohttp.ClientResponse, wire: Wire, silence: Silence, endpoint: str) -> None:
        self.name = wire.name
        self.endpoint = endpoint
        self.status = response.status
        self.headers = response.headers
        self._response = response
        self._wire = wire
        self._silence = silence
        content = coding.coding_of(response.headers.getall("Content-Encoding", ()))
        if content is None:
            what = "a Content-Encoding that was not asked for and cannot be read"
            raise UpstreamFault(f"upstream {wire.name} answered in {what}; let it send {coding.READABLE} or none")
        self._decoder = coding.Decoder(content) if content != "identity" else None
        self._decoded: Iterator[bytes] = iter(())

    @property
    def cookie(self) -> str:
        return affinity.cookie_header(self._response.cookies.values())

    @property
    def kind(self) -> Literal["json", "sse", "other"]:
        """What the body claims to be; a missing type is taken for JSON, as some servers leave it out."""
        media = self.headers.get("Content-Type", "application/json").partition(";")[0].strip().lower()
        if media == "text/event-stream":
            return "sse"
        return "json" if media == "application/json" or media.endswith("+json") else "other"

    async def raw(self) -> bytes:
        """The whole body, at most `max_response_bytes`."""
        limit = self._wire.limits.max_response_bytes
        pieces: list[bytes] = []
        size = 0
        while piece := await self.chunk():
            size += len(piece)
            if size > limit:
                raise UpstreamFault(f"upstream {self._wire.name} answered with more than {limit} bytes")
            pieces.append(piece)
        return b"".join(pieces)

    def pieces(self) -> "Pieces":
        """The JSON-RPC messages of the answer as they come, whichever form it has."""
        return Pieces(self, sse.Decoder(self._wire.limits.max_event_bytes))

    async def response(self) -> Json:
        """The JSON-RPC response in the answer; what comes before it on a stream is passed over."""
        async for piece in self.pieces():
            if piece.message is not None and "method" not in piece.message:
                return piece.message
        raise UpstreamFault(f"upstream {self._wire.name} closed its stream without an answer")

    async def _read(self) -> bytes:
        if self._silence.waited is None:  # then aiohttp watches over it
            return await self._response.content.readany()
        async with unless_silent(self._silence.limits.idle_s, self._silence.waited):
            return await self._response.content.readany()

    async def chunk(self) -> bytes:
        """The next bytes of the body as they come, decompressed; empty at its end."""
        try:
            while self._decoder is not None:
                piece = next(self._decoded, None)
                if piece is not None:
                    return piece
                data = await self._read()
                if not data:
                    if not self._decoder.complete:
                        raise UpstreamFault(f"upstream {self.name} broke off its answer")
                    return b""
                self._decoded = self._decoder.feed(data)
            return await self._read()
        except coding.Malformed as error:
            raise UpstreamFault(f"upstream {self.name} answered with a body that is not what it says") from error
        except FOREIGN as error:
            raise self._wire.fault(error) from error

    def blocks(self, waiting: "Waiting") -> "Blocks":
        """The blocks of an event stream with their exact bytes; `waiting` wraps each wait for more."""
        return Blocks(self, sse.Splitter(self._wire.limits.max_event_bytes), waiting)

    def too_large(self) -> UpstreamFault:
        limit = self._wire.limits.max_event_bytes
        return UpstreamFault(f"upstream {self.name} sent an event of more than {limit} bytes")

    def refusal(self) -> UpstreamFault:
        """The fault that this status stands for, where there is no JSON-RPC body to say more."""
        name, status = self._wire.name, self.status
        if status in (401, 403):
            return unauthorized(name, self._wire.settings, status, self.headers.get("WWW-Authenticate"))
        fault = UpstreamFault(
            f"upstream {name} answered HTTP {status} without a JSON-RPC message",
            http=status if status in _PASSED_STATUS else 502,
            contradiction=400 <= status < 500 and status != 429,
        )
        if "Retry-After" in self.headers:
            fault.headers = (("Retry-After", self.headers["Retry-After"]),)
        return fault


def same_origin(url: str, location: str) -> str | None:
    """Where a reference found at `url` leads, None for elsewhere and for nowhere. One with a user or password is none:
    they would be sent as credentials that nobody configured."""
    try:
        target = urljoin(url, location)
        is_same = location and _origin(target) == _origin(url) and "@" not in urlsplit(target).netloc
        return target if is_same else None
    except ValueError:  # no URL
        return None


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)
