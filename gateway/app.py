"""The composition root: builds every part from one configuration, runs until told to stop, takes it all down again."""

import asyncio
import logging
import secrets
import ssl
import sys
from collections.abc import Callable
from pathlib import Path

from gateway import tls_files
from gateway.config import ConfigError
from gateway.drain import Drain
from gateway.exchange import Exchanges
from gateway.front.http import HttpServer
from gateway.front.mcp import Mcp
from gateway.front.port import Listener
from gateway.front.service import Service
from gateway.front.status import Status
from gateway.reload import Reloader
from gateway.signals import Signals
from gateway.stores.memory import MemoryStore
from gateway.upstreams.pool import Upstreams
from policies.sealing import KeyRing, new_key
from policies.settings import Listen, Settings

if sys.platform != "win32":
    import resource

    import uvloop

    LOOP: Callable[[], asyncio.AbstractEventLoop] | None = uvloop.new_event_loop
else:
    LOOP = None

log = logging.getLogger(__name__)


_FIXED = ("listen", "admin", "tls", "connections")
"""Settings of the listeners, which are opened once."""


class CannotListen(Exception):
    """The address cannot be had; `args[0]` says which and why."""


class Gateway:
    """One running gateway. `start` and `stop` once each, `apply` in between as often as the configuration changes."""

    def __init__(self, settings: Settings) -> None:
        self._store = MemoryStore()
        self._drain = Drain()
        self._ephemeral = KeyRing.of(new_key("ephemeral", secrets.token_bytes(32)))
        self.service = Service(
            settings,
            self._store,
            self._ring(settings),
            Upstreams(settings, self._store),
            Exchanges(settings.streams.resume_ttl_s),
            self._drain,
        )
        bounds, max_head_bytes = settings.connections, settings.limits.max_head_bytes
        self._mcp = HttpServer(Mcp(lambda: self.service).handle, bounds, max_head_bytes)
        self._status = HttpServer(Status(self._drain).handle, bounds, max_head_bytes)
        self._listeners: list[Listener] = []

    async def start(self) -> str:
        """Listens, and starts to find out about the upstreams. Returns the public base URL."""
        settings = self.service.settings
        _make_room(settings.connections.max)
        if settings.hosts == "any":
            log.warning("hosts: any - requests for every Host are served; web pages can reach this under foreign names")
        tls = tls_files.server_context(settings.tls) if settings.tls is not None else None
        listener = await self._listen(settings.listen, self._mcp, tls)
        if settings.admin is not None:
            await self._listen(settings.admin, self._status)
        self.service.upstreams.warm()
        host = settings.listen.host
        return f"http{'s' if tls is not None else ''}://{f'[{host}]' if ':' in host else host}:{listener.port}"

    async def apply(self, settings: Settings) -> None:
        """Puts another configuration into service, for the requests that come from now on.

        Raises `ConfigError` where it changes what only a restart can."""
        now = self.service.settings
        fixed = [
            name for name in ("listen", "admin", "tls", "connections") if getattr(now, name) != getattr(settings, name)
        ]
        if fixed:
            raise ConfigError(f"{name}: can't change while the gateway runs; restart it" for name in fixed)
        self.service = self.service.evolve(settings, self._ring(settings))
        self.service.upstreams.warm()

    async def drain(self) -> None:
        """No new connections, not ready; streams end with their proper last message; calls may end within `grace_s`."""
        self._drain.begin()
        for listener in self._listeners:
            listener.stop()
        self.service.exchanges.end_streams()
        await self._mcp.shutdown(self.service.settings.grace_s)

    async def stop(self) -> None:
        """Ends what is left and lets go of everything."""
        self._drain.begin()
        for listener in self._listeners:
            listener.stop()
        await self._mcp.shutdown(0)
        await self._status.shutdown(0)
        await self.service.exchanges.close()
        await self.service.upstreams.close()
        await self._store.close()

    def _ring(self, settings: Settings) -> KeyRing:
        """The configured keys, or one that dies with this process and with it every session it sealed."""
        return KeyRing(settings.sealing_keys) if settings.keys else self._ephemeral

    async def _listen(self, at: Listen, server: HttpServer, tls: ssl.SSLContext | None = None) -> Listener:
        listener = Listener(at.host, at.port, server, tls=tls, trusted=self.service.trusted)
        try:
            await listener.start()
        except OSError as error:
            raise CannotListen(f"cannot listen on {at}: {error.strerror or error}") from error
        self._listeners.append(listener)
        return listener


def run(settings: Settings, source: Path | None = None, load: Callable[[], Settings] | None = None) -> int:
    """Serves until SIGTERM or SIGINT; the exit code. Raises `CannotListen`.

    `source` and `load`: the file that the settings came from, and how it is read again when it changes."""
    with asyncio.Runner(loop_factory=LOOP) as runner:
        return runner.run(_run(settings, source, load))


async def _run(settings: Settings, source: Path | None, load: Callable[[], Settings] | None) -> int:
    gateway = Gateway(settings)
    stopping = Signals()
    reloading: asyncio.Task[None] | None = None
    try:
        url = await gateway.start()
        if source is not None and load is not None:
            reloader = Reloader(source, load, gateway.apply)
            reloading = asyncio.create_task(reloader.run(), name="reload")
            stopping.on_hangup(reloader.ask)
        print(f"listening on {url}", flush=True)
        await stopping.first()
        await stopping.unless_second(gateway.drain())
    finally:
        if reloading is not None:
            reloading.cancel()
        await gateway.stop()
    return 0


def _make_room(connections: int) -> None:
    """Raises the limit of open files to what so many connections and their calls upstream need, or says what it is."""
    if sys.platform == "win32":
        return
    wanted = 2 * connections + 256
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    if unlimited != soft < wanted:
        allowed = wanted if hard == unlimited else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
        if allowed < wanted:
            log.warning("only %d files may be open: fewer than connections.max = %d may need", allowed, connections)
