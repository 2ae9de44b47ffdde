"""Owns the listening socket. A connection's first bytes arrive here, and aiohttp takes it over on the same transport.

This is the seam at which a connection can be served without aiohttp; today every one is handed over. What a peer that
connects and says nothing may cost is bounded here, since aiohttp's own timers start with its first byte.
"""

import asyncio
import socket
from collections.abc import Callable
from typing import cast

FIRST_BYTE_S = 30.0
"""How long a new connection may stay silent. Browsers and proxies open connections ahead of need, for seconds."""

_BACKLOG = 1024


class Port(asyncio.Protocol):
    def __init__(self, server: Callable[[], asyncio.Protocol], open_ports: set["Port"]) -> None:
        self._server = server
        self._open = open_ports
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._open.add(self)
        self._timer = asyncio.get_running_loop().call_later(FIRST_BYTE_S, self.close)

    def data_received(self, data: bytes) -> None:
        transport = self._transport
        self._forget()
        if transport is not None:
            handler = self._server()
            transport.set_protocol(handler)
            handler.connection_made(transport)
            handler.data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self._forget()

    def close(self) -> None:
        """Closes a connection that has not said anything yet."""
        if self._transport is not None:
            self._transport.close()

    def _forget(self) -> None:
        self._transport = None
        self._open.discard(self)
        if self._timer is not None:
            self._timer.cancel()


class Listener:
    """A bound socket and the connections on it that are still silent."""

    def __init__(self, host: str, port: int, server: Callable[[], asyncio.Protocol]) -> None:
        self._host = host
        self._wanted = port
        self._server = server
        self._silent: set[Port] = set()
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
            lambda: Port(self._server, self._silent), sock=bound, backlog=_BACKLOG
        )

    def stop(self) -> None:
        """No new connections; silent ones are closed. Those under way stay with aiohttp."""
        if self._listening is not None:
            self._listening.close()
        for port in tuple(self._silent):
            port.close()
