"""What every connector offers, whatever era its upstream speaks.

A connector owns all that is the upstream's own: request ids, progress tokens, sessions, resumption. It writes events
in its upstream's dialect and leaves translation to delivery.
"""

import itertools
import secrets
from typing import Protocol

from gateway.exchange import Exchange
from policies.exchange import Call, Dialect
from policies.mcp import Json
from policies.translation.discover import Description

OWN_INFO: Json = {"name": "mcp-front-door", "version": "0.1.0"}
"""What the gateway calls itself where it speaks for nobody."""


class Connector(Protocol):
    dialect: Dialect

    async def leg(self, call: Call, exchange: Exchange) -> None:
        """Runs `call` and writes its events, the last one included, or raises a `Fault`. Cancelling it cancels the
        call at the upstream."""

    async def describe(self, credentials: tuple[tuple[str, str], ...] = ()) -> Description:
        """The upstream in its own words, as it tells a caller with these credentials; asked with no capabilities."""

    async def hides(self, call: Call) -> bool:
        """Whether a tool call names what its host, which shows no Apps, is not to know of: such a call is not sent.
        Raises the `Fault` with which the upstream does not list its tools to this caller."""

    def hides_at_hand(self, call: Call) -> bool | None:
        """The same from what is remembered; None where the upstream would have to be asked."""

    def learn(self, call: Call, result: Json) -> None:
        """What the upstream answered to a call; without its `tools` where they hold nothing of an interface. They tell
        what is to be hidden of them from now on."""


class Ids:
    """Request ids towards upstreams: unique over all connectors, callers and replicas, so that no answer can be taken
    for another's. They stay below 2**53, which every JSON reader can hold."""

    def __init__(self, replica: str = "") -> None:
        self._count = itertools.count(secrets.randbits(52))
        self._replica = replica

    def next(self) -> int:
        return next(self._count)

    def name(self) -> str:
        """The name of something that lives in this process: whoever reads it knows at which replica."""
        return self._replica + secrets.token_hex(8)
