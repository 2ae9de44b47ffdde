"""Owns the listening socket. A connection's first bytes arrive here, and aiohttp takes it over on the same transport.

How many there may be, in all and from one address, is bounded here, and so is what a peer that connects and says
nothing may cost, since the timers of `gateway/front/http.py` start with its first byte.
"""

import asyncio
import contextlib
import socket
import ssl
from collections import Counter
from collections.abc import Sequence
from typing import Final, cast

from gateway.front.http import LINGER_S, HttpServer, answer
from policies.errors import Rejection
from policies.forwarded import Network, is_trusted
from policies.mcp import INTERNAL_ERROR

FIRST_BYTE_S = 30.0
"""How long a new connection may stay silent. Browsers and proxies open connections ahead of need, for seconds."""

RETRY_AFTER_S: Final = 5
"""What a client is told that finds no room: longer than most calls take, shorter than anybody's patience."""

MAX_REFUSING: Final = 256
"""Connections above the bound that are still told so; more are just closed."""

_BACKLOG = 1024


def bind(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """A socket bound to this address; `shared` with others that are bound by the same user and shared as well, among
    which Linux spreads the connections of those that listen. Raises `OSError` where the address cannot be had."""
    family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    # IPPROTO_TCP: without it plain asyncio leaves Nagle on, and every event of a stream waits for 40 ms
    bound = socket.socket(family, kind, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    return bound


class Port(asyncio.Protocol):
    def __init__(self, listener: "Listener") -> None:
        self._listener = listener
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._peer: str | None = None
        self._refusal: Rejection | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        name = transport.get_extra_info("peername")
        self._peer = name[0] if isinstance(name, tuple) else "local"
        self._refusal = self._listener.enter(self, self._peer)
        wait_s = FIRST_BYTE_S if self._refusal is None else LINGER_S
        self._timer = asyncio.get_running_loop().call_later(wait_s, self.close)

    def data_received(self, data: bytes) -> None:
        transport = self._transport
        if transport is None:
            return
        if self._refusal is not None:
            self._refuse(transport, self._refusal)
            return
        self._settle()
        handler = self._listener.server()
        handler.lost = self._left
        transport.set_protocol(handler)
        handler.connection_made(transport)
        handler.data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self._settle()
        self._left()

    def close(self) -> None:
        """Closes a connection that has not said anything yet."""
        if self._transport is not None:
            self._transport.abort()

    def _refuse(self, transport: asyncio.Transport, refusal: Rejection) -> None:
        """Says once that there is no room; what else comes is thrown away until the client or the timer closes."""
        self._transport = None
        transport.write(answer(refusal))
        if transport.can_write_eof():
            transport.write_eof()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(LINGER_S, transport.abort)

    def _settle(self) -> None:
        self._transport = None
        self._listener.silent.discard(self)
        if self._timer is not None:
            self._timer.cancel()

    def _left(self) -> None:
        self._listener.leave(self._peer)
        self._peer = None


class Listener:
    """A bound socket and the connections on it that are still silent. `start` and `stop` once each."""

    def __init__(
        self,
        host: str,
        port: int,
        server: HttpServer,
        *,
        tls: ssl.SSLContext | None = None,
        trusted: Sequence[Network] = (),
    ) -> None:
        self._host = host
        self._wanted = port
        self._tls = tls
        self._listening: asyncio.Server | None = None
        self._queue: socket.socket | None = None
        self._adopting: set[asyncio.Task[None]] = set()
        self._by_peer: Counter[str] = Counter()
        self._open = 0
        self._emptied = asyncio.Event()
        self.server: HttpServer = server
        self.silent: set[Port] = set()
        self.trusted = trusted
        self.port = port

    async def start(self, bound: socket.socket | None = None) -> None:
        """Listens, on a socket that is bound already or on one of its own. Raises `OSError` where the address cannot be
        had."""
        bound = bound or bind(self._host, self._wanted)
        self.port = bound.getsockname()[1]
        self._queue = bound.dup()
        loop = asyncio.get_running_loop()
        self._listening = await loop.create_server(lambda: Port(self), sock=bound, backlog=_BACKLOG, ssl=self._tls)

    def stop(self) -> None:
        """No new connections. Those under way stay with aiohttp, and silent ones may still begin. So may those that the
        system has made and nobody has taken yet: it would reset them, and their clients could not tell whether what
        they had sent was read."""
        queue, self._queue = self._queue, None
        if self._listening is None or queue is None:
            return
        self._listening.close()
        queue.setblocking(False)
        with contextlib.suppress(OSError):  # there are no more
            while True:
                self._adopt(queue.accept()[0])
        queue.close()

    def silence(self) -> None:
        """Closes the connections that have not said anything yet."""
        for task in tuple(self._adopting):
            task.cancel()
        for port in tuple(self.silent):
            port.close()

    async def vacant(self) -> None:
        """Until it has no connection."""
        await asyncio.gather(*self._adopting, return_exceptions=True)
        while self._open:
            self._emptied.clear()
            await self._emptied.wait()

    def _adopt(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        task = asyncio.create_task(self._adopted(connection))
        self._adopting.add(task)
        task.add_done_callback(self._adopting.discard)

    async def _adopted(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):  # its client has gone
            loop = asyncio.get_running_loop()
            await loop.connect_accepted_socket(lambda: Port(self), connection, ssl=self._tls)

    def enter(self, port: Port, peer: str) -> Rejection | None:
        """Counts a new connection; why there is no room for it, if there is none. Each `enter` has its `leave`."""
        bounds = self.server.bounds
        self._open += 1
        self._by_peer[peer] += 1
        self.silent.add(port)
        if self._open > bounds.max:
            what = f"{bounds.max} connections (connections.max)"
        elif self._by_peer[peer] > bounds.max_per_peer and not is_trusted(peer, self.trusted):
            what = f"{bounds.max_per_peer} connections of one address (connections.max_per_peer)"
        else:
            return None
        if self._open > bounds.max + MAX_REFUSING:
            asyncio.get_running_loop().call_soon(port.close)
        headers = (("Retry-After", str(RETRY_AFTER_S)),)
        return Rejection(INTERNAL_ERROR, f"no room: there are {what} already", http=503, headers=headers)

    def leave(self, peer: str | None) -> None:
        if peer is not None:
            self._open -= 1
            if not self._open:
                self._emptied.set()
            self._by_peer[peer] -= 1
            if not self._by_peer[peer]:
                del self._by_peer[peer]
