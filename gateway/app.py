"""The composition root: builds every part from one configuration, runs until told to stop, takes it all down again."""

import asyncio
import ipaddress
import logging
import secrets
import signal
import sys
from collections.abc import Callable

from aiohttp import web

from gateway.exchange import Exchanges
from gateway.front.mcp import Mcp
from gateway.front.port import Listener
from gateway.front.service import Service
from gateway.front.status import Status
from gateway.stores.memory import MemoryStore
from gateway.upstreams.pool import Upstreams
from policies.sealing import KeyRing, new_key
from policies.settings import Listen, Settings

if sys.platform != "win32":
    import uvloop

    LOOP: Callable[[], asyncio.AbstractEventLoop] | None = uvloop.new_event_loop
else:
    LOOP = None

log = logging.getLogger(__name__)

_SILENT = logging.getLogger("gateway.front.http")
_SILENT.setLevel(logging.CRITICAL + 1)
"""What aiohttp logs itself: requests that are no HTTP, with a traceback and their bytes. Their client gets its 400."""

GRACE_S = 10.0
"""How long calls may go on after SIGTERM: less than what orchestrators allow by default (30 s)."""


class CannotListen(Exception):
    """The address cannot be had; `args[0]` says which and why."""


class Gateway:
    """One running gateway. `start` and `stop` once each."""

    def __init__(self, settings: Settings) -> None:
        store = MemoryStore()
        self._store = store
        self.settings = settings
        self.service = Service(
            settings,
            store,
            _ring(settings),
            Upstreams(settings, store),
            Exchanges(settings.streams.resume_ttl_s),
            _is_loopback(settings.listen.host),
        )
        # handler_cancellation: a client that closes its connection cancels its handler; off by default in aiohttp
        self._mcp = web.Server(Mcp(self.service).handle, handler_cancellation=True, access_log=None, logger=_SILENT)
        self._status = web.Server(Status(self.service).handle, access_log=None, logger=_SILENT)
        self._listeners: list[Listener] = []

    async def start(self) -> str:
        """Listens, and starts to find out about the upstreams. Returns the public base URL."""
        listener = await self._listen(self.settings.listen, self._mcp)
        if self.settings.admin is not None:
            await self._listen(self.settings.admin, self._status)
        self.service.upstreams.warm()
        host = self.settings.listen.host
        return f"http://{f'[{host}]' if ':' in host else host}:{listener.port}"

    async def stop(self) -> None:
        """No new connections; calls under way may end within the grace period; then everything is let go of."""
        self.service.draining = True
        for listener in self._listeners:
            listener.stop()
        await self._mcp.shutdown(GRACE_S)
        await self._status.shutdown(0.1)
        await self.service.exchanges.close()
        await self.service.upstreams.close()
        await self._store.close()

    async def _listen(self, at: Listen, server: web.Server) -> Listener:
        listener = Listener(at.host, at.port, server)
        try:
            await listener.start()
        except OSError as error:
            raise CannotListen(f"cannot listen on {at}: {error.strerror or error}") from error
        self._listeners.append(listener)
        return listener


def run(settings: Settings) -> int:
    """Serves until SIGTERM or SIGINT; the exit code. Raises `CannotListen`."""
    with asyncio.Runner(loop_factory=LOOP) as runner:
        return runner.run(_run(settings))


async def _run(settings: Settings) -> int:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        if sys.platform != "win32":
            loop.add_signal_handler(number, stopping.set)
    gateway = Gateway(settings)
    try:
        url = await gateway.start()
        print(f"listening on {url}", flush=True)
        await stopping.wait()
    finally:
        await gateway.stop()
    return 0


def _ring(settings: Settings) -> KeyRing:
    """The configured keys, or one that dies with this process and with it every session it sealed."""
    if settings.keys:
        return KeyRing(settings.sealing_keys)
    return KeyRing.of(new_key("ephemeral", secrets.token_bytes(32)))


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
