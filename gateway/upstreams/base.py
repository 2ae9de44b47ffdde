"""What every connector offers, whatever era its upstream speaks.

A connector owns all that is the upstream's own: request ids, progress tokens, sessions, resumption. It writes events
in its upstream's dialect and leaves translation to delivery.
"""

import itertools
import secrets
from typing import Protocol

from gateway.exchange import Exchange
from policies.exchange import Call, Dialect
from policies.headers import ParamHeader
from policies.mcp import Json
from policies.translation.discover import Description

OWN_INFO: Json = {"name": "mcp-front-door", "version": "0.1.0"}
"""What the gateway calls itself where it speaks for nobody."""

MAX_PAGES = 100
"""Pages of one list that are walked to find a tool's schema; a list that goes on longer repeats its cursors."""


class Connector(Protocol):
    dialect: Dialect

    async def leg(self, call: Call, exchange: Exchange) -> None:
        """Runs `call` and writes its events, the last one included, or raises a `Fault`. Cancelling it cancels the
        call at the upstream."""

    async def describe(self) -> Description:
        """The upstream in its own words; asked with no caller's credentials and no capabilities."""

    async def schema(self, call: Call, tool: str, *, fresh: bool = False) -> tuple[ParamHeader, ...]:
        """The parameters of `tool` that are mirrored into headers; `fresh`: not from memory."""


class Ids:
    """Request ids towards upstreams: unique over all connectors, callers and replicas, so that no answer can be taken
    for another's. They stay below 2**53, which every JSON reader can hold."""

    def __init__(self) -> None:
        self._count = itertools.count(secrets.randbits(52))

    def next(self) -> int:
        return next(self._count)


class Schemas:
    """The header parameters of tools, as last seen in a list, by the caller whose list it was."""

    MAX_CALLERS = 1024

    def __init__(self) -> None:
        self._by_caller: dict[str, dict[str, tuple[ParamHeader, ...]]] = {}

    def get(self, caller: str, tool: str) -> tuple[ParamHeader, ...] | None:
        return self._by_caller.get(caller, {}).get(tool)

    def learn(self, caller: str, tools: dict[str, tuple[ParamHeader, ...]]) -> None:
        if caller not in self._by_caller and len(self._by_caller) >= self.MAX_CALLERS:
            self._by_caller.pop(next(iter(self._by_caller)))
        self._by_caller.setdefault(caller, {}).update(tools)

    def forget(self, caller: str) -> None:
        self._by_caller.pop(caller, None)
