"""Requests that the cache has answered before, answered again from where they are read: no task, no parser, no ladder.

What is remembered is that a request of these very bytes, but for its id, has come down the whole ladder under the
configuration in service, and what it asked the cache. One of the same bytes would come down it again: what the ladder
looks at is the configuration, the head, the body and, where proxies are trusted, the peer. Only a fresh answer that is
ready is given out here, as bytes with the id and the freshness that is left put in; everything else goes the ordinary
way, and so does what was remembered longer ago than an upstream's era is taken for granted.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from aiohttp import HttpVersion11, web
from aiohttp.helpers import rfc822_formatted_time
from aiohttp.http import SERVER_SOFTWARE

from gateway.cache.filling import Asked
from gateway.cache.shelf import Held
from gateway.front import operation, reply
from gateway.front.http import Handler
from gateway.front.operation import Operation
from gateway.front.service import Service
from gateway.upstreams.pool import ERA_LOOK_S
from policies import cache, coding
from policies.cache_entry import Packed, opening, packed
from policies.cache_keys import Key
from policies.repeat import ID, STRING, is_of_message
from policies.settings_cache import UpstreamCache

MAX_BYTES: Final = 8 << 20
"""Of the requests that are remembered, and what goes with them: some thousands, where their clients have a few each."""

_OVERHEAD_BYTES: Final = 2048
"""What one takes beside its bytes, which are there twice, about."""

_END: Final = b"\r\n\r\n"
_JOINED_BYTES: Final = 16 * 1024
"""Up to here one write of all pieces together is quicker than several."""
_IN_A_THREAD_BYTES: Final = 1 << 20
_UNLIKE: Final = ("Expect", "Transfer-Encoding", "Content-Encoding", "Upgrade", "traceparent", "tracestate")
"""Headers by which a connection is not used as always, or which are not the same twice."""
_UNLIKE_MEMBERS: Final = (b'"progressToken"', b'"traceparent"')
_OF_CODING: Final = (("Vary", "Accept-Encoding"), ("Content-Encoding", "gzip"))

_Key = tuple[str, bytes, bytes]
"""Of a request, all that is looked at between the connection and the cache: the peer, where proxies are trusted, and
its bytes before and after its id."""


@dataclass(frozen=True, slots=True)
class Came:
    """How a request that was answered by what is `held` came to the cache: under which configuration, and for clients
    of which revision the answer was made."""

    service: Service
    asked: Asked
    held: Held
    version: str


CAME = web.RequestKey("came to the cache", Came)
BODY = web.RequestKey("body", bytes)
"""The body of a request as it was read."""


@dataclass(frozen=True, slots=True)
class _Known:
    """`keys`: where the cache may have the answer, by `key`; `settings`: what holds for it there. `small`, `large`: the
    head of an answer up to its length, below the size from which answers are compressed and from there on, `packs`
    where this client wants that. `head`: the request's own. `until_s`: by `time.perf_counter`. Nothing is kept here of
    what the request said but its bytes, whose number is bounded."""

    upstream: str
    key: Key
    keys: tuple[str, ...]
    settings: UpstreamCache
    version: str
    noted: Operation
    small: bytes
    large: bytes
    packs: bool
    compress_from_bytes: int
    head: bytes
    size: int
    until_s: float


class Repeats:
    """`current` gives the configuration in service; with another one everything is forgotten."""

    def __init__(self, current: Callable[[], Service]) -> None:
        self._current = current
        self._under: Service | None = None
        self._known: dict[_Key, _Known] = {}
        self._heads: dict[bytes, int] = {}
        """Of each known head how long its body is."""
        self._bytes = 0
        self._second = 0
        self._signature = b""

    def answer(self, peer: str, data: bytes) -> Sequence[bytes] | None:
        """The answer to what has come of a request; nothing where the rest of it is to be waited for, None where it is
        to go the ordinary way. See `gateway.front.http.Quick`."""
        began = time.perf_counter()
        service = self._current()
        if service is not self._under:
            self._turn_to(service)
        end = data.find(_END) + len(_END)
        found = ID.search(data, end)
        if found is None:
            return self._awaited(data, end)
        begin, after = found.span(found.lastindex or 1)
        known = self._known.get((peer if service.trusted else "", data[:begin], data[after:]))
        if known is None:
            return self._awaited(data, end)
        if service.drain.begun or began > known.until_s:
            return None
        token = data[begin:after] if found.lastindex != STRING else data[begin - 1 : after + 1]
        pieces = self._made(service, known, token)
        if pieces is not None:
            service.metrics.repeated.add()
            known.noted.record(service.metrics, "", 200, time.perf_counter() - began, whole=True)
        return pieces

    def _awaited(self, data: bytes, end: int) -> Sequence[bytes] | None:
        """Nothing, where that is the beginning of a request whose head is known."""
        return () if len(data) - end < self._heads.get(data[:end], 0) else None

    def _made(self, service: Service, known: _Known, token: bytes) -> Sequence[bytes] | None:
        held, shelf, now_s = None, service.cache.shelf, time.time()
        for key in known.keys:
            held = shelf.get(key)
            if held is not None:
                break
        ready = held.ready.get(known.version) if held is not None else None
        if held is None or ready is None:
            return None
        entry = held.entry
        if cache.state(entry.received_s, entry.ttl_ms, now_s, known.settings) != "fresh":
            return None
        ttl_ms = cache.remaining_ms(entry.received_s, entry.ttl_ms, now_s)
        first, result, rest, head = opening(token), ready.result, ready.rest(ttl_ms), known.small
        last = rest + b"}"
        size = whole = len(first) + len(result) + len(last)
        if size >= known.compress_from_bytes:
            head = known.large
            if known.packs:
                small = held.ready.get(_gzip(known.version))
                if not isinstance(small, Packed):
                    return None
                first, result, last = b"", small.result, small.ended(b'%b,"id":%b}' % (rest, token))
                size = len(result) + len(last)
        if int(now_s) != self._second:
            self._second, self._signature = int(now_s), _signature()
        head = b"%b%d%b%b" % (head, size, self._signature, first)
        service.cache.note(known.upstream, known.key, "hit", held, ttl_ms)
        service.metrics.saved.add(known.upstream, known.key.shown["method"], by=whole)
        return (head, result, last) if size > _JOINED_BYTES else (b"".join((head, result, last)),)

    async def learn(self, request: web.BaseRequest, response: web.StreamResponse) -> None:
        """Remembers a request with the answer that it is given now, if one like it can be answered so."""
        handler = request.protocol
        if not isinstance(handler, Handler):
            return
        raw, came = handler.take(), request.get(CAME)
        if came is None or came.version not in came.held.ready:
            return
        end, body = raw.find(_END) + len(_END), request[BODY]
        if raw[end:] != body or not _is_plain(request, body) or not _is_whole(response):
            return
        cut = ID.search(raw, end)
        wanted = coding.wanted(request.headers.getall("Accept-Encoding", ()))
        if cut is None or wanted == "deflate":
            return
        begin, after = cut.span(cut.lastindex or 1)
        if not is_of_message(raw[end:begin], raw[after:]):
            return
        service = came.service
        if "Content-Encoding" in response.headers:
            await _pack(service, came)
        if service is not self._current():
            return
        self._turn_to(service)
        key = (handler.peer if service.trusted else "", raw[:begin], raw[after:])
        self._remember(key, _known(came, operation.of(request), response, raw[:end], len(raw), packs=wanted == "gzip"))

    def _remember(self, key: _Key, known: _Known) -> None:
        self._forget(key)
        self._known[key] = known
        self._heads[known.head] = known.size - len(known.head)
        self._bytes += _OVERHEAD_BYTES + 2 * known.size
        while self._bytes > MAX_BYTES:
            self._forget(next(iter(self._known)))

    def _forget(self, key: _Key) -> None:
        known = self._known.pop(key, None)
        if known is not None:
            self._heads.pop(known.head, None)
            self._bytes -= _OVERHEAD_BYTES + 2 * known.size

    def _turn_to(self, service: Service) -> None:
        """From now on that configuration counts, and nothing that was learned under another one."""
        if service is not self._under:
            self._under = service
            self._known.clear()
            self._heads.clear()
            self._bytes = 0


def _known(
    came: Came, noted: Operation, response: web.StreamResponse, head: bytes, size: int, *, packs: bool
) -> _Known:
    asked, settings = came.asked, came.asked.upstream.settings.cache
    small, large = _heads(response, packs=packs)
    return _Known(
        asked.upstream.name,
        asked.key,
        asked.keys,
        settings,
        came.version,
        noted.again(),
        small,
        large,
        packs,
        came.service.settings.limits.compress_from_bytes,
        head,
        size,
        time.perf_counter() + ERA_LOOK_S,
    )


def _is_plain(request: web.BaseRequest, body: bytes) -> bool:
    """Whether it is the whole of a request that leaves its connection as it was, and might come again."""
    if request.version != HttpVersion11 or request.method != "POST" or request.content_length != len(body):
        return False
    said = request.headers.getall("Connection", ())  # each of several lines counts: one may end the connection
    if not request.keep_alive or any(option.lower() != "keep-alive" for option in said):
        return False
    return not any(name in request.headers for name in _UNLIKE) and not any(name in body for name in _UNLIKE_MEMBERS)


def _is_whole(response: web.StreamResponse) -> bool:
    """Whether it is a good answer in JSON after which the connection goes on."""
    is_good = isinstance(response, reply.Answer) and response.status == 200 and not response.error
    return is_good and not response.prepared and response.keep_alive is None


def _heads(response: web.StreamResponse, *, packs: bool) -> tuple[bytes, bytes]:
    """The heads of answers like this one, up to their length: of a small one, and of one that may be compressed."""
    told = [line for line in response.headers.items() if line not in _OF_CODING]
    lines = [f"{name}: {value if name != 'Server-Timing' else 'cache;desc=hit'}" for name, value in told]
    more = ["Vary: Accept-Encoding", *(["Content-Encoding: gzip"] if packs else [])]
    small, large = (["HTTP/1.1 200 OK", *lines, *some, "Content-Length: "] for some in ([], more))
    return "\r\n".join(small).encode(), "\r\n".join(large).encode()


async def _pack(service: Service, came: Came) -> None:
    """Keeps the answer compressed, too."""
    plain, kind = came.held.ready[came.version], _gzip(came.version)
    if kind not in came.held.ready:
        is_small = len(plain.result) < _IN_A_THREAD_BYTES
        made = packed(plain) if is_small else await asyncio.to_thread(packed, plain)
        service.cache.shelf.add_ready(came.held, kind, made)


def _gzip(version: str) -> str:
    return f"{version} in gzip"


def _signature() -> bytes:
    """The lines that aiohttp puts under the length."""
    return f"\r\nDate: {rfc822_formatted_time()}\r\nServer: {SERVER_SOFTWARE}\r\n\r\n".encode()
