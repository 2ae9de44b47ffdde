"""What every front works with: one configuration's parts, and the session tokens of legacy clients."""

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from multidict import CIMultiDictProxy

from gateway.drain import Drain
from gateway.exchange import Exchanges
from gateway.stores.base import Store
from gateway.upstreams.pool import Upstream, Upstreams
from policies import identity, routing, session
from policies.errors import Rejection
from policies.exchange import FrontSession
from policies.headers import Headers, param_of
from policies.sealing import KeyRing
from policies.settings import Route, Settings

MAX_REMEMBERED = 4096
"""Unsealed tokens kept: a session's token comes with each request, and opening one costs more than a look-up."""


class Caller(Protocol):
    """Who sends a message, whatever it came by: an HTTP request, or a host at the other end of a pipe."""

    @property
    def headers(self) -> CIMultiDictProxy[str]: ...


@dataclass(slots=True)
class Service:
    settings: Settings
    store: Store
    ring: KeyRing
    upstreams: Upstreams
    exchanges: Exchanges
    loopback_only: bool
    drain: Drain
    _opened: dict[tuple[str, str], FrontSession] = field(default_factory=dict)

    def evolve(self, settings: Settings, ring: KeyRing) -> "Service":
        """The service of another configuration; what is under way goes on with this one."""
        self.exchanges.resume_ttl_s = settings.streams.resume_ttl_s
        return replace(self, settings=settings, ring=ring, upstreams=self.upstreams.evolve(settings), _opened={})

    def upstream_for(self, route: Route, method: str, name: str | None, headers: Headers | None = None) -> Upstream:
        """The upstream behind a route for a request of this name; rules on parameters look at the headers, if any."""

        def param(suffix: str) -> str | None:
            return param_of(headers, suffix) if headers is not None else None

        return self.upstreams[routing.choose_upstream(route, method, name, param) or route.fallback]

    def forwarded(self, upstream: Upstream, headers: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
        """The caller's headers that this upstream is configured to get."""
        return tuple((n, headers[n]) for n in upstream.settings.forward_headers if n in headers)

    def principal(self, route: Route, headers: Mapping[str, str]) -> str:
        """Who calls: told apart by what goes upstream on the caller's behalf."""
        names = [n for reference in route.references() for n in self._forwarding(reference[1])]
        return identity.principal([(name, headers[name]) for name in names if name in headers])

    def _forwarding(self, upstream: str) -> Sequence[str]:
        return self.upstreams[upstream].settings.forward_headers

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
        if not live or await self.store.get(f"ended:{found.id}") is not None:
            return session.NOT_FOUND
        return found

    async def end_session(self, ended: FrontSession) -> None:
        """From now on the token is dead; what runs in the session is cancelled."""
        await self.store.set(f"ended:{ended.id}", b"1", max(1.0, ended.expires_s - time.time()))
        self.exchanges.end_session(ended.id)
