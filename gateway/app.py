"""The composition root: builds every part from one configuration, runs until told to stop, takes it all down again."""

import asyncio
import contextlib
import logging
import secrets
import socket
import ssl
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from prometheus_client.core import Metric

from gateway import tls_files
from gateway.background import Background
from gateway.cache.cache import Cache, Done, Order
from gateway.config import ConfigError
from gateway.drain import LOOK_S, Drain
from gateway.exchange import Exchanges
from gateway.explaining.climb import explain
from gateway.front.hosting import Hosting
from gateway.front.http import HttpServer
from gateway.front.http_sse import HttpSse
from gateway.front.mcp import Mcp
from gateway.front.port import Listener
from gateway.front.repeats import Repeats
from gateway.front.seeing import see
from gateway.front.service import Service
from gateway.front.status import READY, Status
from gateway.front.status_page import StatusPage
from gateway.logs import configure, stray
from gateway.metrics import STORE_UP, Metrics, Reloads, own_version, render
from gateway.parking import Parking
from gateway.profiles import built_in
from gateway.provider.ledger import Ledger
from gateway.provider.line import Lines
from gateway.reload import Reloader
from gateway.signals import Signals
from gateway.stores.base import StoreUnavailable
from gateway.stores.opening import open_store
from gateway.stores.shared import Shared
from gateway.tracing import Tracing
from gateway.upstreams import states
from gateway.upstreams.pool import Upstreams
from policies.exchange import UpstreamSession
from policies.explanation import Described
from policies.mcp import Json
from policies.sealing import KeyRing, new_key
from policies.settings import Listen, Settings
from policies.status import Process, Seen

if sys.platform != "win32":
    import resource

    import uvloop

    LOOP: Callable[[], asyncio.AbstractEventLoop] | None = uvloop.new_event_loop
else:
    LOOP = None

log = logging.getLogger(__name__)


_FIXED = ("listen", "admin", "tls", "connections", "store")
"""Settings of the listeners and the store, which are opened once."""

_LINGER_S = 1.0
"""How long a connection without a request stays when draining begins: its next request may be on its way, and a close
would meet it. Longer than a round trip, and than a client takes from one request to the next when it is busy."""

_CUT_S = 0.01
"""How long what is cut off is waited for, by aiohttp, to which 0 means for ever."""


class CannotListen(Exception):
    """The address cannot be had; `args[0]` says which and why."""


class CannotStart(Exception):
    """It does not come up; `args[0]` says what to look for."""


class Server(Protocol):
    """What can be run: a `Gateway`, or a supervisor of several."""

    reloads: Reloads

    async def start(self) -> tuple[str, str | None]: ...

    async def apply(self, settings: Settings) -> None: ...

    async def drain(self) -> None: ...

    async def stop(self) -> None: ...


class Gateway:
    """One running gateway. `start` and `stop` once each, `apply` in between as often as the configuration changes."""

    def __init__(self, settings: Settings) -> None:
        metrics = Metrics()
        self.reloads = Reloads()
        store = open_store(settings.store, metrics.store_operations)
        self._state = Shared.over(store, lambda: self.service.ring)
        self._drain = Drain()
        self._ephemeral = KeyRing.of(new_key("ephemeral", secrets.token_bytes(32)))
        upstreams = Upstreams(settings, self._state, metrics)
        cache = Cache(settings.cache, self._state, lambda: self.service.ring, metrics)
        upstreams.on_change(cache.heard)
        ledger = Ledger(self._state.store)
        ledger.configure(settings.clients, on=bool(settings.providers))
        upstreams.on_event(ledger.heard)
        self.service = Service(
            settings,
            self._state,
            self._ring(settings),
            upstreams,
            Exchanges(settings.streams.resume_ttl_s),
            self._drain,
            Parking(settings.streams.ask_ttl_s, metrics.parked.add),
            metrics,
            built_in(),
            cache,
            ledger,
            Lines(settings),
            Tracing(settings.tracing),
        )
        bounds, max_head_bytes = settings.connections, settings.limits.max_head_bytes
        self._http_sse = HttpSse(lambda: self.service)
        repeats = Repeats(lambda: self.service)
        self._mcp = HttpServer(Mcp(lambda: self.service, self._http_sse, repeats).handle, bounds, max_head_bytes)
        self._mcp.quick = repeats.answer
        self._began_s = time.time()
        self._page = StatusPage(lambda: self.service.settings, self._look)
        status = Status(
            lambda: self.service.settings, self._health, self._rendered, self.order, self._page, self.explain
        )
        self._status = HttpServer(status.handle, bounds, max_head_bytes)
        self._hosting = Hosting(lambda: self.service)
        self._listeners: list[Listener] = []
        self._background = Background()
        self._sweeping: asyncio.Task[None] | None = None
        self._is_live = False
        metrics.labelled += states.gauges(lambda: self.service.upstreams)
        self._add_gauges(metrics)

    def _add_gauges(self, metrics: Metrics) -> None:
        cache = self.service.cache
        metrics.gauges[STORE_UP] = (
            "Whether the store answers; always 1 where it is this process's own memory.",
            lambda: float(self._state.store.up),
        )
        metrics.gauges["mcp_front_door_exchanges_kept"] = (
            "Calls and streams of sessions that run or can be resumed.",
            lambda: len(self.service.exchanges),
        )
        metrics.gauges["mcp_front_door_cache_entries"] = ("Answers of upstreams held here.", lambda: len(cache.shelf))
        metrics.gauges["mcp_front_door_cache_bytes"] = ("What those take.", lambda: cache.shelf.bytes)
        metrics.gauges["mcp_front_door_ledger_marks"] = (
            "What is remembered of MCP Apps that hosts were given, to tell it again in what goes to LLM APIs.",
            lambda: len(self.service.ledger),
        )
        metrics.gauges["mcp_front_door_calls_parked"] = (
            "Calls that wait until their client of 2026-07-28 comes back with its answers.",
            lambda: len(self.service.parking),
        )
        metrics.gauges["mcp_front_door_tasks"] = ("Tasks of the event loop.", lambda: len(asyncio.all_tasks()))

    async def start(self, bound: socket.socket | None = None) -> tuple[str, str | None]:
        """Listens, and starts to find out about the upstreams. Returns the public base URL, and that of the admin
        listener, if there is one.

        `bound`: a socket to listen on, of a supervisor, which then has the admin listener as well."""
        settings = self.service.settings
        _make_room(settings.connections.max)
        if settings.hosts == "any":
            log.warning("hosts: any - requests for every Host are served; web pages can reach this under foreign names")
        tls = tls_files.server_context(settings.tls) if settings.tls is not None else None
        await self._state.mail.start()
        self._is_live = True
        self._sweeping = asyncio.create_task(self._state.held.sweep_on(self._end), name="sweep")
        url = await self._listen(settings.listen, self._mcp, tls, bound)
        admin = None
        if settings.admin is not None and bound is None:
            admin = await self._listen(settings.admin, self._status)
        self.service.upstreams.warm()
        with contextlib.suppress(StoreUnavailable):  # which the log has; the store may come later
            await self._state.store.ping()
        return url, admin

    async def apply(self, settings: Settings) -> None:
        """Puts another configuration into service, for the requests that come from now on.

        Raises `ConfigError` where it changes what only a restart can."""
        check_change(self.service.settings, settings)
        before, self.service = self.service, self.service.evolve(settings, self._ring(settings))
        if before.tracing is not self.service.tracing:
            self._background.start(before.tracing.close())
        for listener in self._listeners:
            listener.trusted = self.service.trusted
            listener.server.max_head_bytes = settings.limits.max_head_bytes
        configure(settings.log.level, settings.log.format)
        self._http_sse.renew(self.service)
        self.service.end_narrowed()
        self.service.upstreams.warm()

    async def drain(self) -> None:
        """Not ready, no new calls; streams end with their proper last message; calls may end within `grace_s`. No new
        connections either, unless a call waits for its client to come back with an answer."""
        self._drain.begin()
        self.service.exchanges.end_streams()
        public = [listener for listener in self._listeners if listener.server is self._mcp]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.service.settings.grace_s):
                # with a store, clients come back to the other replicas, which reach this one
                while not self._state.store.shared and self._is_asking():
                    self._drain.refuse()
                    await asyncio.sleep(LOOK_S)
                self._mcp.leaving = True
                for listener in public:  # the other one says "draining" to the end
                    listener.stop()
                for listener in public:
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(listener.vacant(), _LINGER_S)
                    listener.silence()
                self._drain.refuse()
                while not self._mcp.close_idle():  # noqa: ASYNC110
                    await asyncio.sleep(LOOK_S)
                await self._mcp.shutdown(None)  # aiohttp's own time-out strikes twice, and never where it is 0
                while self._is_asking() or self._state.feeds.are_waited_for:  # noqa: ASYNC110
                    await asyncio.sleep(LOOK_S)

    async def stop(self) -> None:
        """Ends what is left and lets go of everything."""
        self._drain.begin()
        for listener in self._listeners:
            listener.stop()
            listener.silence()
        transports = [connection.transport for connection in self._mcp.connections]
        await self._mcp.shutdown(_CUT_S)
        for transport in transports:
            if transport is not None:
                transport.abort()  # closing waits for a client that does not read
        await self._page.close()
        await self._status.shutdown(_CUT_S)
        if self._sweeping is not None:
            self._sweeping.cancel()
        await self._http_sse.close()
        await self.service.exchanges.close()
        await self.service.parking.close()
        await self.service.cache.close()
        await self.service.ledger.close()
        await self.service.lines.close()
        await self.service.upstreams.close()
        await self._state.close()
        await self.service.tracing.close()
        await self._background.over()

    async def _end(self, name: str, session: UpstreamSession) -> None:
        """Ends an upstream session that a replica held which has died."""
        upstream = self.service.upstreams.get(name)
        if upstream is not None:
            await upstream.legacy.sessions.delete(session, ())

    def _is_asking(self) -> bool:
        """Whether a call here waits for its client."""
        return bool(self.service.parking) or self.service.exchanges.is_asking()

    async def order(self, order: Order, upstream: str | None) -> Done:
        """Does what is asked of the cache."""
        return await self.service.cache.obey(order, self.service.upstreams, upstream)

    async def explain(self, described: Described) -> Json:
        """What would happen to a request, which is not sent."""
        return (await explain(self.service, described, live=self._is_live)).told

    def counted(self) -> tuple[Metric, ...]:
        """Everything that this process has counted."""
        return tuple(self.service.metrics.families())

    def seen(self) -> Seen:
        """What this process sees of itself and of its upstreams."""
        return see(self.service)

    async def _look(self) -> tuple[Process, Seen]:
        return Process((await self._health())["status"], own_version(), self._began_s), self.seen()

    async def _health(self) -> dict[str, str]:
        said = {"status": "draining" if self._drain.begun else READY}
        if self._state.store.shared:  # told, and no reason to send traffic elsewhere: all replicas share it
            said["store"] = "up" if self._state.store.up else "down"
        return said

    async def _rendered(self, accept: str) -> tuple[bytes, str]:
        return render([*self.service.metrics.families(), *self.reloads.collect()], accept)

    def _ring(self, settings: Settings) -> KeyRing:
        """The configured keys, or one that dies with this process and with it every session it sealed."""
        return KeyRing(settings.sealing_keys) if settings.keys else self._ephemeral

    async def _listen(
        self, at: Listen, server: HttpServer, tls: ssl.SSLContext | None = None, bound: socket.socket | None = None
    ) -> str:
        listener = Listener(at.host, at.port, server, tls=tls, trusted=self.service.trusted)
        await listen(listener, at, bound)
        self._listeners.append(listener)
        return base_url(at, listener.port, tls=tls is not None)


async def listen(listener: Listener, at: Listen, bound: socket.socket | None = None) -> None:
    """Starts a listener. Raises `CannotListen`."""
    try:
        await listener.start(bound)
    except OSError as error:
        raise CannotListen(f"cannot listen on {at}: {error.strerror or error}") from error


def base_url(at: Listen, port: int, *, tls: bool = False) -> str:
    """Where a listener is reached that got this port."""
    return f"http{'s' if tls else ''}://{f'[{at.host}]' if ':' in at.host else at.host}:{port}"


def check_change(now: Settings, settings: Settings) -> None:
    """Raises `ConfigError` where `settings` change what only a restart can."""
    fixed = [name for name in _FIXED if getattr(now, name) != getattr(settings, name)]
    if fixed:
        raise ConfigError(f"{name}: can't change while the gateway runs; restart it" for name in fixed)


def run(
    settings: Settings,
    source: Path | None = None,
    load: Callable[[], Settings] | None = None,
    make: Callable[[Settings], Server] = Gateway,
) -> int:
    """Serves until SIGTERM or SIGINT; the exit code. Raises `CannotListen`, `CannotStart`.

    `source` and `load`: the file that the settings came from, and how it is read again when it changes."""
    configure(settings.log.level, settings.log.format)
    with asyncio.Runner(loop_factory=LOOP) as runner:
        runner.get_loop().set_exception_handler(stray)
        return runner.run(_run(lambda: make(settings), source, load))


async def _run(make: Callable[[], Server], source: Path | None, load: Callable[[], Settings] | None) -> int:
    server = make()
    stopping = Signals()
    reloading: asyncio.Task[None] | None = None
    try:
        started = await stopping.unless_first(server.start())
        if started is None:
            return 0
        url, admin = started
        if source is not None and load is not None:
            reloader = Reloader(source, load, server.apply, server.reloads)
            reloading = asyncio.create_task(reloader.run(), name="reload")
            stopping.on_hangup(reloader.ask)
        if admin is not None:
            print(f"admin on {admin}", flush=True)
        print(f"listening on {url}", flush=True)
        await stopping.first()
        await stopping.unless_second(server.drain())
    finally:
        if reloading is not None:
            reloading.cancel()
        await server.stop()
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
