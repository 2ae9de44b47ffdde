"""Calls that wait for a modern client to come back with its answers.

Specification: 2026-07-28 basic/patterns/mrtr. The call goes on running at its upstream; what it says meanwhile is kept
with its exchange, its outcome too. Bounded per principal, in bytes over all, and each for `ttl_s`: then the call is
cancelled.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from gateway.exchange import Exchange
from policies.errors import GatewayFault
from policies.exchange import Fail
from policies.identity import ANONYMOUS
from policies.mcp import INTERNAL_ERROR, Json

MAX_PER_PRINCIPAL = 64
"""A user answers one form at a time; agents of one principal that wait by the hundred are an accident."""

MAX_PARKED = 4096
"""Of all principals together; callers that nothing tells apart may be many users and share this bound alone."""

MAX_BYTES = 128 << 20
"""What all of them together may keep of notifications and outcomes: a quarter of a common container's memory."""

TOO_MUCH = Fail(
    INTERNAL_ERROR, "the call has run while it waited for its client, and its outcome could not be kept", http=503
)
"""The outcome of a call for whose own there was no room."""


@dataclass(slots=True)
class Parked:
    """`asked`: what the client was shown and has not answered, by our keys; `cursor`: the last event it was told of."""

    exchange: Exchange
    principal: str
    asked: dict[str, Json]
    cursor: int
    round: int
    expiry: asyncio.TimerHandle
    bytes: int = 0


@dataclass(slots=True)
class Parking:
    """`on_end` is told how a wait ended: `resumed`, `expired`."""

    ttl_s: float
    on_end: Callable[[str], None] = lambda _: None
    bytes: int = 0
    _parked: dict[str, Parked] = field(default_factory=dict)
    _count: Counter[str] = field(default_factory=Counter)

    def __len__(self) -> int:
        return len(self._parked)

    def park(self, exchange: Exchange, principal: str, asked: dict[str, Json], cursor: int, round_: int) -> None:
        """Raises `GatewayFault` (429, 503) where too many wait already."""
        if len(self._parked) >= MAX_PARKED:
            raise GatewayFault(f"{MAX_PARKED} calls wait here for their clients' input already")
        if principal != ANONYMOUS and self._count[principal] >= MAX_PER_PRINCIPAL:
            raise GatewayFault(f"{MAX_PER_PRINCIPAL} calls of this client wait for its input already", http=429)
        expiry = asyncio.get_running_loop().call_later(self.ttl_s, self._expire, exchange.id)
        parked = self._parked[exchange.id] = Parked(exchange, principal, asked, cursor, round_, expiry)
        self._count[principal] += 1
        exchange.on_growth = partial(self._weigh, parked)
        self._weigh(parked)

    def claim(self, exchange_id: str, round_: int) -> Parked | None:
        """The call, for the one retry of this round that comes first; None for every other."""
        parked = self._parked.get(exchange_id)
        if parked is None or parked.round != round_:
            return None
        self._forget(exchange_id)
        self.on_end("resumed")
        return parked

    async def close(self) -> None:
        """Cancels everything and waits for the legs to let go."""
        exchanges = [parked.exchange for parked in self._parked.values()]
        for exchange in exchanges:
            self._expire(exchange.id)
        for exchange in exchanges:
            await exchange.finished()

    def _weigh(self, parked: Parked) -> None:
        """Counts what is kept of a call; where all is too much, those that keep the most let go of it."""
        self._put(parked, parked.exchange.weight())
        while self.bytes > MAX_BYTES:
            heaviest = max(self._parked.values(), key=lambda one: one.bytes)
            heaviest.exchange.thin(TOO_MUCH)
            self._put(heaviest, heaviest.exchange.weight())

    def _put(self, parked: Parked, weight: int) -> None:
        self.bytes += weight - parked.bytes
        parked.bytes = weight

    def _expire(self, exchange_id: str) -> None:
        parked = self._forget(exchange_id)
        self.on_end("expired")
        if not parked.exchange.ended:
            parked.exchange.cancel()

    def _forget(self, exchange_id: str) -> Parked:
        parked = self._parked.pop(exchange_id)
        parked.expiry.cancel()
        parked.exchange.on_growth = lambda: None
        self._put(parked, 0)
        self._count[parked.principal] -= 1
        if not self._count[parked.principal]:
            del self._count[parked.principal]
        return parked
