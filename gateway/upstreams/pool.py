"""Every upstream by name: which eras it speaks, the connectors to it, and what it says of itself.

Eras are a set. A front is paired with its own era where the upstream speaks it, and bridged to the other one where
not. What was found is kept in the store; a contradiction drops it, and the next request probes again.
"""

import asyncio
import contextlib
import hashlib
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import aiohttp

from gateway import tracing
from gateway.background import Background
from gateway.exchange import Exchange
from gateway.metrics import Metrics
from gateway.stores.base import StoreUnavailable
from gateway.stores.shared import Shared as State
from gateway.upstreams.apps import Look
from gateway.upstreams.base import Connector, Ids
from gateway.upstreams.counting import Counting
from gateway.upstreams.faults import unauthorized
from gateway.upstreams.http_sse import EitherTransport, HttpSse
from gateway.upstreams.legacy import LegacyConnector
from gateway.upstreams.modern import ModernConnector
from gateway.upstreams.once import Once
from gateway.upstreams.patience import within
from gateway.upstreams.probe import Credentials, discover, speaks_legacy
from gateway.upstreams.stdio import StdioTransport
from gateway.upstreams.transport import Transport
from gateway.upstreams.wire import Wire
from policies import jsonrpc
from policies.cache_keys import config_digest
from policies.errors import Fault, UpstreamFault
from policies.exchange import Answer, Call, Event
from policies.forwarded import lasting
from policies.mcp import LATEST_LEGACY, MODERN_VERSIONS, READS, Era, Json
from policies.metrics import CANCELLED_CALL, ended_as, error_type
from policies.profiles import Profile
from policies.recent import Hosts
from policies.settings import Settings
from policies.settings_routes import Route
from policies.translation.discover import Description, client_capabilities, of_discover

log = logging.getLogger(__name__)

T = TypeVar("T")

ERA_TTL_S = 86_400.0
"""How long a verdict is kept: servers change era when they are redeployed, and a contradiction drops it at once."""

ERA_LOOK_S = 30.0
"""How old a verdict in hand may be before the store is asked for a newer one, which another process may have found."""

APPS_S = 2.0
"""How long a host's first question waits to learn whether the upstream lists Apps: clients give it 5 s and more."""

DESCRIPTION_TTL_S = 60.0
"""How old a description may be before it is fetched again; the old one is served meanwhile."""


FAREWELL_S = 2.0
"""How long an upstream is told, at the end, of calls called off and sessions ended: a courtesy, which the healthy take
in milliseconds. The processes of a command have their own time to end (`gateway/upstreams/child.py`)."""


@dataclass(frozen=True, slots=True)
class Eras:
    """`legacy` is None where nobody has asked yet: only a legacy client makes the gateway ask a modern upstream."""

    modern: bool
    legacy: bool | None


class Upstream:
    def __init__(self, name: str, settings: Settings, state: State, shared: "_Shared") -> None:
        self.name = name
        self.settings = settings.upstreams[name]
        self._made_from = _concerning(name, settings)
        ids, self._shared = shared.ids, shared
        self.http = (
            None if self.settings.command else Wire(name, self.settings, settings.limits, shared.http, shared.metrics)
        )
        self.wire = self.http or StdioTransport(name, self.settings, settings.limits, ids)
        self.session_transport = self.wire if self.http is None else _for_sessions(self.http, ids)
        self.modern = ModernConnector(self.wire, ids, state)
        self.legacy = LegacyConnector(self.session_transport, state, ids, settings.sessions.ttl_s)
        self.modern.listening.on_change = partial(self._changed, shared)
        self.legacy.sessions.on_change = partial(self._changed, shared)
        self.config = config_digest(self.settings)
        """What tells answers that were given under this configuration from others."""
        self.counting = Counting(name, shared.metrics)
        self.counting.tells_tools = settings.metrics.tools
        self.legacy.sessions.on_end = self.counting.session_ended
        self.apps = Look(name, self.leg)
        self.hosts = Hosts()
        self.is_silent = False
        """Whether it did not describe itself when it was last asked to."""
        self._store = state.store
        self._found: tuple[Eras, float] | None = None
        self._ids = ids
        self._probing = Once()
        self._described: tuple[Description, float] | None = None
        self._describing: asyncio.Task[None] | None = None
        command = jsonrpc.dumps([self.settings.command, *self.settings.args]).decode()
        where = " ".join(self.settings.addresses) or command
        self._key = f"era:{name}:{hashlib.sha256(where.encode()).hexdigest()[:16]}"

    async def connector(self, front: Era, credentials: Credentials = ()) -> Connector:
        """The connector for a front of this era: its own where the upstream speaks it, else the bridge.

        Where that is yet to be found out, the caller's `credentials` are used for it. Raises `UpstreamFault` where it
        cannot be found out now.
        """
        return self._paired(front, await self._eras(front, credentials))

    async def known_connector(self, front: Era) -> Connector | None:
        """The same where the upstream need not be asked for it, else None."""
        eras = await self._told()
        return None if eras is None or (front == "legacy" and eras.legacy is None) else self._paired(front, eras)

    def _paired(self, front: Era, eras: Eras) -> Connector:
        if front == "modern":
            return self.modern if eras.modern else self.legacy
        return self.legacy if eras.legacy else self.modern

    async def leg(self, call: Call, exchange: Exchange) -> None:
        """Runs `call`, whose capabilities are the declared ones, through the connector its caller is paired with."""

        era, error = "", CANCELLED_CALL
        span = self.counting.span(call.method)
        if span is not None:
            headers, meta = tracing.carrying(span, call.forwarded, call.meta)
            call = replace(call, forwarded=headers, meta=meta)

        async def run(connector: Connector) -> None:
            nonlocal era
            era = connector.dialect.era
            effective = client_capabilities(call.capabilities, call.front.era, connector.dialect)
            await connector.leg(replace(call, capabilities=effective), exchange)
            if call.profile.name:
                self.hosts.note(time.time(), call.profile, effective)

        exchange.begins(self.name)
        exchange.on_asked = self.counting.asked
        exchange.on_event = partial(self._shared.on_event, self.name, exchange)
        try:
            await self.paired(call.front.era, run, again=call.method in READS, credentials=call.forwarded)
            error = ended_as(exchange.last)
            if isinstance(exchange.last, Answer):
                self.counting.heard(call.method, exchange.last.result)
        except Fault as fault:
            error = error_type(fault.code, fault.http)
            raise
        finally:
            exchange.comes_back()
            self.counting.called((call.method, call.params.get("name")), era, error, exchange.upstream_s, span)

    async def paired(
        self, front: Era, run: Callable[[Connector], Awaitable[T]], *, again: bool, credentials: Credentials = ()
    ) -> T:
        """Runs something with the connector for this front. Where the upstream turns out to be of another era than
        remembered, that is forgotten, and what may be sent `again` is."""
        try:
            return await run(await self.connector(front, credentials))
        except UpstreamFault as fault:
            if not fault.contradiction or self.settings.era != "auto" or self.settings.transport == "http_sse":
                raise
            await self.forget_era()
            if not again:
                raise
        return await run(await self.connector(front, credentials))

    async def describe(self, deadline_s: float, credentials: Credentials = ()) -> tuple[Description, float] | None:
        """What the upstream says of itself and how many seconds ago: fresh, or as last known where it does not answer
        within `deadline_s`, or None where it has never answered. Never raises for a sick upstream.

        With a caller's credentials, what it tells that caller, which is asked anew and remembered for nobody."""
        if lasting(credentials):
            return await self._described_to(lasting(credentials), deadline_s)
        if self._described is None or time.monotonic() - self._described[1] > DESCRIPTION_TTL_S:
            if self._describing is None:
                self._describing = asyncio.create_task(self._describe(), name=f"describe {self.name}")
            await asyncio.wait({self._describing}, timeout=deadline_s)
        if self._described is None:
            return None
        return self._described[0], time.monotonic() - self._described[1]

    @property
    def known_eras(self) -> tuple[Era, ...]:
        """Those that it speaks, as far as is known here."""
        if self.settings.transport == "http_sse":
            return ("legacy",)
        if self.settings.era != "auto":
            return (self.settings.era,)
        eras = self._found[0] if self._found is not None else Eras(False, False)
        modern: tuple[Era, ...] = ("modern",) if eras.modern else ()
        return (*modern, "legacy") if eras.legacy else modern

    @property
    def description(self) -> Description | None:
        """What the upstream has said of itself last, to whoever has no credentials of their own."""
        return self._described[0] if self._described is not None else None

    async def _described_to(self, credentials: Credentials, deadline_s: float) -> tuple[Description, float] | None:
        try:
            async with within(deadline_s, self.name):
                eras = await self._eras("modern", credentials)
                return await (self.modern if eras.modern else self.legacy).describe(credentials), 0.0
        except Fault as fault:
            log.info("upstream %s does not describe itself to a caller: %s", self.name, fault.message)
            return None

    async def lists_apps(self, route: Route, profile: Profile, credentials: Credentials) -> bool | None:
        """Whether hosts with this profile are to be told of its Apps though it keeps silent; None where the route says
        nothing of that kind."""
        if route.apps is None:
            return None
        return profile.shows_apps and await self.apps.lists_apps(profile, APPS_S, credentials)

    async def forget_era(self) -> None:
        """The upstream has contradicted what was found out about it."""
        self._found = None
        with contextlib.suppress(StoreUnavailable):
            await self._store.delete(self._key)

    def _changed(self, shared: "_Shared", method: str, params: Json) -> None:
        shared.on_change(self.name, method, params)

    def is_configured_by(self, settings: Settings) -> bool:
        """Whether these settings say of this upstream what it was made from."""
        return self._made_from == _concerning(self.name, settings)

    async def retire(self) -> None:
        """Closes once nothing is under way: requests that began with it end with it."""
        self.legacy.sessions.retire()
        await self.session_transport.retire()
        await self.wire.retire()
        await self.close()

    async def close(self) -> None:
        self.apps.close()
        if self._describing is not None:
            self._describing.cancel()
        await self._probing.close()
        try:
            async with asyncio.timeout(FAREWELL_S):
                await self.modern.listening.close()
                await self.legacy.close()
        except TimeoutError:
            log.info("upstream %s has not taken the end of its sessions", self.name)
        await self.session_transport.close()
        await self.wire.close()

    async def _eras(self, front: Era, credentials: Credentials = ()) -> Eras:
        known = await self._told()
        if known is None or (front == "legacy" and known.legacy is None):
            known = await self._probed(known, front, lasting(credentials))
            if front == "legacy" and known.legacy is None:
                return await self._eras(front, credentials)  # that probe had been started for a modern front
        return known

    async def _told(self) -> Eras | None:
        """What the configuration says, or was found out before."""
        if self.settings.transport == "http_sse":
            return Eras(False, True)
        if self.settings.era != "auto":
            return Eras(self.settings.era == "modern", self.settings.era == "legacy")
        return await self._known()

    async def _probed(self, known: Eras | None, front: Era, credentials: Credentials) -> Eras:
        """One probe for all who come meanwhile with the same credentials: another's may be refused."""
        name = f"probe {self.name}"
        return await self._probing.outcome(credentials, lambda: self._probe(known, front, credentials), name)

    async def _known(self) -> Eras | None:
        if self._found is not None and time.monotonic() - self._found[1] < ERA_LOOK_S:
            return self._found[0]
        try:
            value = await self._store.get(self._key)
        except StoreUnavailable:  # what was found holds; to find out once more harms nobody
            return self._found[0] if self._found is not None else None
        if value is None:
            return None
        modern, legacy = jsonrpc.loads(value)
        return self._keep(Eras(modern, legacy))

    def _keep(self, eras: Eras) -> Eras:
        self._found = (eras, time.monotonic())
        return eras

    async def _probe(self, known: Eras | None, front: Era, credentials: Credentials) -> Eras:
        eras = known or await self._discover(credentials)
        if eras.modern and front == "legacy":
            try:
                has_sessions, _ = await speaks_legacy(self.wire, self._ids, credentials)
            except UpstreamFault:
                return Eras(True, False)  # no verdict: bridged for now, asked again next time
            eras = Eras(True, has_sessions)
        self._keep(eras)
        with contextlib.suppress(StoreUnavailable):
            await self._store.set(self._key, jsonrpc.dumps([eras.modern, eras.legacy]), ERA_TTL_S)
        log.info("upstream %s speaks %s", self.name, "2026-07-28" if eras.modern else "sessions")
        return eras

    async def _discover(self, credentials: Credentials) -> Eras:
        verdict = await discover(self.wire, self._ids, credentials)
        match verdict.kind:
            case "modern":
                if verdict.discover is not None and not credentials:  # what one caller is told is not for all
                    self._described = (of_discover(verdict.discover, verdict.versions[0]), time.monotonic())
                return Eras(True, None)
            case "unauthorized":
                raise unauthorized(self.name, self.settings, verdict.status, verdict.challenge)
            case "unavailable":
                raise UpstreamFault(f"upstream {self.name} is out of order", http=503)
            case "legacy":
                # it is one that speaks sessions if `initialize` works, and nothing is remembered until it has
                await self._initializes(credentials)
                return Eras(False, True)
            case _:
                theirs = ", ".join(verdict.versions) or "none that it names"
                ours = ", ".join(MODERN_VERSIONS)
                raise UpstreamFault(f"upstream {self.name} speaks {theirs}; this gateway speaks {ours} and sessions")

    async def _initializes(self, credentials: Credentials) -> None:
        if not credentials:
            await self.legacy.describe()
            return
        session, _ = await self.legacy.sessions.open({}, None, LATEST_LEGACY, credentials)
        await self.legacy.sessions.delete(session, credentials)

    async def _describe(self) -> None:
        try:
            eras = await self._eras("modern")
            described = await (self.modern if eras.modern else self.legacy).describe()
            self._described = (described, time.monotonic())
            self.is_silent = False
        except Fault as fault:
            self.is_silent = True
            log.info("upstream %s does not describe itself: %s", self.name, fault.message)
        finally:
            self._describing = None


def _for_sessions(wire: Wire, ids: Ids) -> Transport:
    """What sessions of an upstream over HTTP are spoken through."""
    match wire.settings.transport:
        case "http_sse":
            return HttpSse(wire, ids)
        case "streamable_http":
            return wire
        case _:
            return EitherTransport(wire, ids)


def _concerning(name: str, settings: Settings) -> tuple[object, ...]:
    """What of a configuration an upstream is made from."""
    return settings.upstreams.get(name), settings.limits, settings.sessions


class _Shared:
    """What outlives a configuration: the HTTP client (no cookies, connections kept for less long than servers commonly
    keep theirs), the request ids, the metrics, the tasks in the background, and the upstreams of earlier configurations
    that still end what they began."""

    def __init__(self, metrics: Metrics, replica: str) -> None:
        self.metrics = metrics
        self.http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=15.0),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            read_bufsize=1 << 18,
        )
        self.ids = Ids(replica)
        self.on_change: Callable[[str, str, Json], None] = lambda *_: None
        self.on_event: Callable[[str, Exchange, Event], None] = lambda *_: None
        self.background = Background()
        self.retiring: set[Upstream] = set()


class Upstreams:
    """The upstreams of one configuration. `evolve` gives those of the next, and keeps what has not changed."""

    def __init__(self, settings: Settings, state: State, metrics: Metrics, before: "Upstreams | None" = None) -> None:
        self._shared: _Shared = before._shared if before is not None else _Shared(metrics, state.mail.replica)  # noqa: SLF001 - its own kind
        self._state = state
        kept = {up.name: up for up in before or () if up.is_configured_by(settings)}
        self._by_name: Mapping[str, Upstream] = {
            name: kept.get(name) or Upstream(name, settings, state, self._shared) for name in settings.upstreams
        }
        for upstream in kept.values():
            upstream.counting.tells_tools = settings.metrics.tools
        for upstream in before or ():
            if upstream.name not in kept:
                self._shared.background.start(self._retire(upstream))

    def __getitem__(self, name: str) -> Upstream:
        return self._by_name[name]

    def get(self, name: str) -> Upstream | None:
        return self._by_name.get(name)

    def __iter__(self) -> Iterator[Upstream]:
        return iter(self._by_name.values())

    def evolve(self, settings: Settings) -> "Upstreams":
        """The upstreams of another configuration. One that is configured as before stays as it is, with its sessions;
        one that is gone or changed is closed once nothing is under way there."""
        return Upstreams(settings, self._state, self._shared.metrics, self)

    def on_change(self, told: Callable[[str, str, Json], None]) -> None:
        """From now on `told` hears what any upstream says that concerns more than one request: its name, the
        notification's method and parameters."""
        self._shared.on_change = told

    def on_event(self, told: Callable[[str, Exchange, Event], None]) -> None:
        """From now on `told` hears what comes of every call that does not pass as it came: the upstream's name, the
        exchange, and each event before anybody else reads it."""
        self._shared.on_event = told

    def warm(self) -> None:
        """Asks every upstream for its description in the background, so that the first client need not wait."""
        for upstream in self:
            self._shared.background.start(self._warm(upstream))

    async def close(self) -> None:
        every = (*self, *self._shared.retiring)
        await self._shared.background.close()
        await asyncio.gather(*(upstream.close() for upstream in every))
        await self._shared.http.close()

    async def _retire(self, upstream: Upstream) -> None:
        self._shared.retiring.add(upstream)
        try:
            await upstream.retire()
        finally:
            self._shared.retiring.discard(upstream)

    async def _warm(self, upstream: Upstream) -> None:
        if await upstream.describe(upstream.settings.timeouts.first_byte_s) is None:
            log.warning("upstream %s does not answer yet", upstream.name)
