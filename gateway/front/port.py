"""Owns the listening socket. A connection's first request head arrives here, then aiohttp takes over the transport.

This is the seam at which a connection can be served without aiohttp; today every one is handed over. What a peer that
connects and never says all of a request's head may cost is bounded here: aiohttp's own timers start with the first
answer.
"""

import asyncio
import socket
from collections.abc import Callable
from typing import cast

FIRST_HEAD_S = 30.0
"""How long a new connection may take for its first head. Browsers and proxies open connections ahead of need, for
seconds."""

_HEAD_ENDS = (b"\r\n\r\n", b"\n\n")
"""The second is one that aiohttp refuses, at once."""

_MAX_HELD = 1 << 16
"""Bytes held here: more is no head that aiohttp takes."""

_BACKLOG = 1024


class Port(asyncio.Protocol):
    def __init__(self, server: Callable[[], asyncio.Protocol], open_ports: set["Port"]) -> None:
        self._server = server
        self._open = open_ports
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._held = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._open.add(self)
        self._timer = asyncio.get_running_loop().call_later(FIRST_HEAD_S, self.close)

    def data_received(self, data: bytes) -> None:
        if self._held or _HEAD_ENDS[0] not in data:
            if self._is_early(data):
                return
            data = bytes(self._held)
        transport = self._transport
        self._forget()
        if transport is not None:
            handler = self._server()
            transport.set_protocol(handler)
            handler.connection_made(transport)
            handler.data_received(data)

    def _is_early(self, data: bytes) -> bool:
        """Adds `data` to what is held: whether that may yet become a head. Only the new bytes are searched."""
        known = max(0, len(self._held) - len(_HEAD_ENDS[0]) + 1)
        self._held += data
        if not self._held[:1].isupper() or len(self._held) > _MAX_HELD:  # no request line, or one without an end
            return False
        return all(self._held.find(end, known) < 0 for end in _HEAD_ENDS)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self._forget()

    def close(self) -> None:
        """Closes a connection that has not said a whole head yet."""
        if self._transport is not None:
            self._transport.close()

    def _forget(self) -> None:
        self._transport = None
        self._open.discard(self)
        if self._timer is not None:
            self._timer.cancel()


class Listener:
    """A bound socket and the connections on it that have not sent a whole head yet."""

    def __init__(self, host: str, port: int, server: Callable[[], asyncio.Protocol]) -> None:
        self._host = host
        self._wanted = port
        self._server = server
        self._early: set[Port] = set()
        self._listening: asyncio.Server | None = None
        self.port = port

    async def start(self) -> None:
        """Binds and listens. Raises `OSError` where the address cannot be had."""
        family, kind, _, _, address = socket.getaddrinfo(
            self._host, self._wanted, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        # IPPROTO_TCP: without it plain asyncio leaves Nagle on, and every event of a stream waits for 40 ms
        bound = socket.socket(family, kind, socket.IPPROTO_TCP)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
        except OSError:
            bound.close()
            raise
        self.port = bound.getsockname()[1]
        loop = asyncio.get_running_loop()
        self._listening = await loop.create_server(
            lambda: Port(self._server, self._early), sock=bound, backlog=_BACKLOG
        )

    def stop(self) -> None:
        """No new connections; those without a whole head are closed. Those under way stay with aiohttp."""
        if self._listening is not None:
            self._listening.close()
        for port in tuple(self._early):
            port.close()
