"""What every front works with: one configuration's parts, and the session tokens of legacy clients."""

import asyncio
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol
from weakref import WeakValueDictionary

import msgspec
from aiohttp import HttpVersion10, HttpVersion11, web
from multidict import CIMultiDict, CIMultiDictProxy

from gateway.cache.cache import Cache
from gateway.drain import Drain
from gateway.exchange import Exchange, Exchanges
from gateway.metrics import Metrics
from gateway.parking import Parking
from gateway.provider.ledger import Ledger
from gateway.provider.line import Lines
from gateway.stores.changes import ENDED
from gateway.stores.shared import Shared
from gateway.tracing import Sent, Tracing
from gateway.upstreams.pool import Upstream, Upstreams
from policies import edge, forwarded, identity, routing, session, task_ids, trace_context
from policies.admission import Head
from policies.delivery import Addressee, Message, deliver
from policies.edge import Doorman
from policies.errors import Rejection
from policies.exchange import Call, Event, FrontSession
from policies.forwarded import Network
from policies.headers import Headers, param_of
from policies.mcp import INVALID_REQUEST, LISTEN, Era, Json
from policies.profiles import Effective, Profile, Profiles
from policies.request_state import Bond
from policies.sealing import KeyRing
from policies.settings import Settings
from policies.settings_routes import Route
from policies.stripped import Items
from policies.task_ids import TaskIds

CALLER = web.RequestKey("caller", forwarded.Caller)
"""The key under which a request holds its `Caller`."""

TOPIC_ENDED = "ended"
"""What all replicas are told of a session that has ended: its inner id."""

MAX_REMEMBERED = 4096
"""Unsealed tokens kept: a session's token comes with each request, and opening one costs more than a look-up."""


class Locks:
    """One lock a session, for as long as somebody holds it or waits for it."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def of(self, session_id: str) -> asyncio.Lock:
        return self._locks.setdefault(session_id, asyncio.Lock())


class Caller(Protocol):
    """Who sends a message, whatever it came by: an HTTP request, a host at the other end of a pipe, another replica."""

    @property
    def headers(self) -> CIMultiDictProxy[str]: ...


class _Packed(msgspec.Struct, array_like=True):
    headers: list[tuple[str, str]]
    came: tuple[list[str], str, str] | None


@dataclass(frozen=True, slots=True)
class Relayed:
    """A client whose request came before, or to another replica: what of its headers goes upstream, and how it came."""

    headers: CIMultiDictProxy[str]
    came: forwarded.Caller | None

    def pack(self) -> bytes:
        came = None if self.came is None else (list(self.came.chain), self.came.host, self.came.proto)
        return msgspec.msgpack.encode(_Packed([(str(name), value) for name, value in self.headers.items()], came))

    @staticmethod
    def unpack(raw: bytes) -> "Relayed":
        said = msgspec.msgpack.decode(raw, type=_Packed)
        came = None if said.came is None else forwarded.Caller(tuple(said.came[0]), *said.came[1:])
        return Relayed(CIMultiDictProxy(CIMultiDict(said.headers)), came)


NOBODY = Relayed(CIMultiDictProxy(CIMultiDict()), None)
"""A caller of whom nothing goes upstream: no header reaches a command."""


@dataclass(slots=True)
class Service:
    settings: Settings
    state: Shared
    ring: KeyRing
    upstreams: Upstreams
    exchanges: Exchanges
    drain: Drain
    parking: Parking
    metrics: Metrics
    built_in: Sequence[Profile]
    cache: Cache
    ledger: Ledger
    lines: Lines
    tracing: Tracing
    profiles: Profiles = field(init=False)
    clients: identity.Clients = field(init=False)
    doorman: Doorman = field(init=False)
    trusted: Sequence[Network] = field(init=False)
    may_pass_unread: bool = field(init=False)
    """Whether any upstream verifies headers itself."""
    locks: Locks = field(default_factory=Locks)
    _routes: Mapping[str, Route] = field(init=False)
    _opened: dict[tuple[str, str], FrontSession] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.profiles = Profiles.of(self.built_in, self.settings.profiles)
        self.clients = identity.Clients.of(self.settings)
        self.doorman = edge.doorman(self.settings)
        self.trusted = forwarded.networks(self.settings.trusted_proxies)
        self.may_pass_unread = any(upstream.verifies_headers for upstream in self.settings.upstreams.values())
        self._routes = {session.route_key(route): route for route in self.settings.routes}

    def evolve(self, settings: Settings, ring: KeyRing) -> "Service":
        """The service of another configuration; what is under way goes on with this one."""
        is_same = settings.tracing == self.settings.tracing
        evolved = replace(
            self,
            settings=settings,
            ring=ring,
            upstreams=self.upstreams.evolve(settings),
            lines=self.lines.evolve(settings),
            tracing=self.tracing if is_same else Tracing(settings.tracing),
            _opened={},
        )
        self.cache.evolve(settings.cache, evolved.upstreams)
        self.exchanges.resume_ttl_s = settings.streams.resume_ttl_s
        self.ledger.configure(settings.clients, on=bool(settings.providers))
        self.parking.ttl_s = settings.streams.ask_ttl_s
        return evolved

    def caller(self, request: web.BaseRequest) -> forwarded.Caller | Rejection:
        """How this request came in, if its head is one that can be read in one way only."""
        came = self.came(request.raw_path, request.headers, request.raw_headers, request.remote or "", request.scheme)
        if isinstance(came, Rejection):
            return came
        if request.version not in (HttpVersion10, HttpVersion11):
            return Rejection(INVALID_REQUEST, "the request is not HTTP/1.1", http=400, headers=edge.CLOSE)
        return came

    def came(
        self, target: str, headers: Headers, lines: Iterable[tuple[bytes, bytes]], peer: str, scheme: str
    ) -> forwarded.Caller | Rejection:
        """How a request with this head came in, by a connection of `peer`'s."""
        refused = edge.check_lines(target, headers, lines, self.settings.limits.max_head_bytes)
        return refused or forwarded.caller_of(peer, scheme, headers, self.trusted)

    def upstream_for(self, route: Route, method: str, name: str | None, headers: Headers | None = None) -> Upstream:
        """The upstream behind a route for a request of this name; rules on parameters look at the headers, if any.

        A task's name, also one that a listener asks for, leads to the upstream that minted it, whatever the rules."""
        if name is not None and route.has_several and (method == LISTEN or task_ids.names_task(method)):
            minted = task_ids.upstream_of(self.ring, session.route_key(route), name)
            if minted is not None and any(minted == known for _, known in route.references()):
                return self.upstreams[minted]
            name = name if method != LISTEN else None

        def param(suffix: str) -> str | None:
            return param_of(headers, suffix) if headers is not None else None

        return self.upstreams[routing.choose_upstream(route, method, name, param) or route.fallback]

    def forwarded(self, upstream: Upstream, request: Caller) -> tuple[tuple[str, str], ...]:
        """The caller's headers that this upstream is configured to get, a key of ours never one of them, and those that
        say how the request came in, if it did."""
        headers = request.headers
        private = edge.connection_options(headers)
        sent = [
            (n, headers[n])
            for n in upstream.settings.forward_headers
            if n in headers and n.lower() not in private and self._goes(n, headers)
        ]
        came = _came(request)
        if came is not None:
            sent += came.headers()
            if upstream.settings.preserve_host:
                sent.append(("Host", came.host))
        return tuple(sent)

    def sent(self, upstream: Upstream, request: Caller, meta: Json) -> Sent:
        """The headers and the `_meta` that a call of this caller's has, trace context among them."""
        baggage = self.settings.tracing.baggage
        headers, meta = trace_context.sent_on(request.headers, meta, baggage=baggage)
        return (*self.forwarded(upstream, request), *headers), meta

    def relayed(self, route: Route, request: Caller) -> Relayed:
        """What must be known of a caller to speak for it at the upstreams of this route after its request is over, or
        at another replica. No key of ours is in it."""
        names = {n.lower(): n for _, name in route.references() for n in self._forwarding(name)}
        headers, private = request.headers, edge.connection_options(request.headers)
        sent = [(n, headers[n]) for n in names.values() if n in headers and self._goes(n, headers)]
        kept = [pair for pair in sent if pair[0].lower() not in private]
        return Relayed(CIMultiDictProxy(CIMultiDict(kept)), _came(request))

    def identify(self, head: Head, headers: Headers) -> Head | Rejection:
        """Rung 5, identity: the head with the client whose key this is, before anything about sessions is looked at."""
        client = self.clients.identify(head.route, headers.getall("Authorization", ()))
        if isinstance(client, Rejection):
            return client
        return head if client is None else replace(head, client=client)

    def principal(self, head: Head, headers: Mapping[str, str]) -> str:
        """Who calls: told apart by whose key it is, and by what goes upstream on the caller's behalf."""
        names = [n for reference in head.route.references() for n in self._forwarding(reference[1])]
        sent = [(name, headers[name]) for name in names if name in headers and self._goes(name, headers)]
        return identity.principal(sent, head.client)

    def _goes(self, name: str, headers: Mapping[str, str]) -> bool:
        return name.lower() != "authorization" or self.clients.owner(headers[name]) is None

    def _forwarding(self, upstream: str) -> Sequence[str]:
        return self.upstreams[upstream].settings.forward_headers

    def ceiling(self, route: Route, client: str | None) -> Profile | None:
        """The most that hosts of this client's (None: of nobody's) are shown on this route; None where nothing says."""
        known = self.settings.clients.get(client) if client is not None else None
        return self.profiles.ceiling(route.profile, known.profile if known is not None else None)

    def effective(self, route: Route, client: str | None, declared: Json) -> Effective:
        """Rung 9: what holds for a host that declares these capabilities."""
        return self.profiles.effective(self.ceiling(route, client), declared)

    def of_session(self, owner: FrontSession) -> Effective:
        """What holds for a request in this session: what held at its `initialize`, or less, if less is allowed now."""
        return self.effective(self._routes[owner.route], identity.client_of(owner.principal), owner.capabilities)

    def showing(self, to: Addressee, profile: Profile) -> Addressee:
        """An addressee whose host shows what this profile says."""
        return replace(to, shows_apps=profile.shows_apps, max_app_bytes=self.settings.limits.max_app_bytes)

    def deliver(self, event: Event, to: Addressee, upstream: str) -> Message | None:
        """The message for an event of that upstream's, or None where this client gets none."""
        message = deliver(event, to)
        if message is not None and message.stripped:
            self.count_stripped(upstream, message.stripped)
        return message

    def count_stripped(self, upstream: str, items: Items) -> None:
        for item, count in items:
            self.metrics.stripped.add(upstream, item, by=count)

    def addressee(self, exchange: Exchange) -> Addressee:
        """Whom a kept exchange answers, and what their host is shown by now."""
        to, owner = self.exchanges.addressee(exchange), exchange.call.owner
        if owner is None or owner.route not in self._routes:
            return replace(to, shows_apps=False)
        return self.showing(to, self.of_session(owner).profile)

    def end_narrowed(self) -> None:
        """Ends the streams without an answer whose hosts are shown no Apps any more: they are opened anew."""
        for stream in self.exchanges.standalones():
            owner = stream.call.owner
            if owner is not None and stream.call.profile.shows_apps and not self.addressee(stream).shows_apps:
                self.exchanges.end_stream(owner.id)

    def bond(self, head: Head, upstream: Upstream, request: Caller) -> Bond | None:
        """Whom this upstream's own `requestState` is sealed to: a known caller of whom nothing goes upstream by which
        the upstream could tell it from another. None where it passes byte for byte."""
        names = upstream.settings.forward_headers
        if head.client is None or any(n in request.headers and self._goes(n, request.headers) for n in names):
            return None
        return Bond(self.ring, session.route_key(head.route), upstream.name, identity.principal((), head.client))

    def task_ids(self, head: Head, upstream: Upstream, request: Caller, era: Era) -> TaskIds | None:
        """How the ids of this upstream's tasks look to a caller of this era. None where they pass byte for byte: it is
        the only one behind the route, in one place (a session has its own), and binds nobody to what it makes."""
        bond = self.bond(head, upstream, request)
        strict = bond is not None or head.route.has_several
        one_place = upstream.wire.endpoint_count <= 1 and not (upstream.http is None and self.state.store.shared)
        if not strict and (era == "legacy" or one_place):
            return None
        key, principal = session.route_key(head.route), bond.principal if bond is not None else ""
        return TaskIds(self.ring, key, upstream.name, principal, lenient=not strict)

    # session tokens

    def seal(self, opened: FrontSession) -> str:
        """The token that stands for this session; a `Rejection` where the client declares more than fits."""
        return session.seal(self.ring, opened, secrets.token_bytes(28))

    async def session(self, route: Route, token: str, principal: str) -> FrontSession | Rejection:
        """The live session that `token` stands for on this route and for this principal, else one and the same 404:
        unknown, expired, ended and foreign tokens are not told apart."""
        key = session.route_key(route)
        found = self._opened.get((key, token))
        if found is None:
            found = session.unseal(self.ring, key, token)
            if found is None:
                return session.NOT_FOUND
            if len(self._opened) >= MAX_REMEMBERED:
                self._opened.pop(next(iter(self._opened)))
            self._opened[(key, token)] = found
        live = found.principal == principal and found.expires_s > time.time()
        if not live or ENDED in await self.state.changes.of(found.id):
            return session.NOT_FOUND
        return found

    async def end_session(self, ended: FrontSession) -> None:
        """From now on the token is dead, at every replica; what runs in the session is cancelled. Raises
        `StoreUnavailable` where the others cannot be told."""
        self.exchanges.end_session(ended.id)
        self.metrics.sessions_ended.add()
        self.metrics.sessions.observe((ended.version,), max(0.0, time.time() - ended.issued_s))
        await self.state.changes.put(ended.id, ENDED, b"1", max(1.0, ended.expires_s - time.time()))
        await self.state.mail.tell_all(TOPIC_ENDED, ended.id.encode())

    def exchange(self, call: Call) -> Exchange:
        """A new exchange, whose id says at which replica it runs."""
        return Exchange(call, self.state.mail.new_id())


def _came(request: Caller) -> forwarded.Caller | None:
    """How a request came in, where it came in by HTTP."""
    match request:
        case web.BaseRequest():
            return request[CALLER]
        case Relayed():
            return request.came
        case _:
            return None
