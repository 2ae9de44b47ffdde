"""Calls that wait for a modern client to come back with its answers.

Specification: 2026-07-28 basic/patterns/mrtr. The call goes on running at its upstream; what it says meanwhile is kept
with its exchange, its outcome too. Bounded per principal, and each for `ttl_s`: then the call is cancelled.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass, field

from gateway.exchange import Exchange
from policies.errors import GatewayFault
from policies.identity import ANONYMOUS
from policies.mcp import Json

MAX_PER_PRINCIPAL = 64
"""A user answers one form at a time; agents of one principal that wait by the hundred are an accident."""

MAX_PARKED = 4096
"""Of all principals together; callers that nothing tells apart may be many users and share this bound alone."""


@dataclass(slots=True)
class Parked:
    """`asked`: what the client was shown and has not answered, by our keys; `cursor`: the last event it was told of."""

    exchange: Exchange
    principal: str
    asked: dict[str, Json]
    cursor: int
    round: int
    expiry: asyncio.TimerHandle


@dataclass(slots=True)
class Parking:
    ttl_s: float
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
        self._parked[exchange.id] = Parked(exchange, principal, asked, cursor, round_, expiry)
        self._count[principal] += 1

    def claim(self, exchange_id: str, round_: int) -> Parked | None:
        """The call, for the one retry of this round that comes first; None for every other."""
        parked = self._parked.get(exchange_id)
        if parked is None or parked.round != round_:
            return None
        self._forget(exchange_id)
        return parked

    async def close(self) -> None:
        """Cancels everything and waits for the legs to let go."""
        exchanges = [parked.exchange for parked in self._parked.values()]
        for exchange in exchanges:
            self._expire(exchange.id)
        for exchange in exchanges:
            await exchange.finished()

    def _expire(self, exchange_id: str) -> None:
        parked = self._forget(exchange_id)
        if not parked.exchange.ended:
            parked.exchange.cancel()

    def _forget(self, exchange_id: str) -> Parked:
        parked = self._parked.pop(exchange_id)
        parked.expiry.cancel()
        self._count[parked.principal] -= 1
        if not self._count[parked.principal]:
            del self._count[parked.principal]
        return parked
