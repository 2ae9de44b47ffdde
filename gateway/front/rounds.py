"""A legacy server's asks for a modern client: collected into an `InputRequiredResult`, answered by the client's retry.

Specification: 2026-07-28 basic/patterns/mrtr. Asks that arrive together share a round; a late one makes another.
Missing answers are asked for again, those that came are delivered.
"""

import asyncio
import math
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from gateway.drain import NOT_ASKED
from gateway.exchange import Exchange
from gateway.front.elsewhere import Source
from gateway.front.service import Service
from gateway.parking import Parked
from policies import apps, jsonrpc, request_state, session
from policies.delivery import Addressee, Message
from policies.errors import GatewayFault, Rejection
from policies.exchange import Answer, Ask, Event, Fail, Reply, Withdraw, is_last
from policies.mcp import INTERNAL_ERROR, INVALID_PARAMS, Json
from policies.metrics import BRIDGED
from policies.request_state import Bond, State, fingerprint
from policies.sealing import NONCE_BYTES
from policies.settings_routes import Route
from policies.translation import mrtr

Items = list[tuple[int, Event]]

QUIET_S = 0.01
WINDOW_S = 0.05
"""Asks that a tool sends side by side arrive within milliseconds; for stragglers the client waits no longer."""


@dataclass(slots=True)
class Rounds:
    """One exchange on behalf of one modern client. `asked` is open: shown or about to be, and not answered; `parked`:
    the client has been told to come back, and the call waits; `bond`: to whom the upstream's own state is sealed."""

    service: Service
    route: Route
    exchange: Exchange
    to: Addressee
    asked: dict[str, Json] = field(default_factory=dict)
    number: int = 0
    cursor: int = 0
    parked: bool = False
    bond: Bond | None = None

    async def step(self, read: Callable[[Source[tuple[int, Event]]], Awaitable[Items]]) -> list[Message] | None:
        """What is to be written next, None at the end. `read` waits for what it is given to read from."""
        settling = bool(self.asked)
        items = await (self._settle() if settling else read(lambda: self.exchange.read(self.cursor)))
        if not items and (not settling or self.parked):
            return None
        self.cursor = items[-1][0] if items else self.cursor
        upstream = self.exchange.upstream
        found = [
            self.service.deliver(self._sealed(event), self.to, upstream) for _, event in items if not self._saw(event)
        ]
        if settling and self.asked:
            found.append(self._park())
        return [message for message in found if message is not None]

    def leave(self) -> None:
        """Its client is gone or has its answer: a call that nobody waits for any more is cancelled."""
        if not self.exchange.ended and not self.parked:
            self.exchange.cancel()

    def _saw(self, event: Event) -> bool:
        """Takes an ask or its withdrawal; whether `event` was one."""
        if isinstance(event, Ask):
            params = event.params if self.to.shows_apps else apps.strip_ask(event.method, event.params)
            self.asked[event.key] = mrtr.ask_to_modern(event.method, params)
        elif isinstance(event, Withdraw):
            self.asked.pop(event.key, None)
        elif is_last(event):
            self.asked.clear()  # nobody waits for them any more
        return isinstance(event, Ask | Withdraw)

    def _sealed(self, event: Event) -> Event:
        if self.bond is None or not isinstance(event, Answer):
            return event
        try:
            return replace(event, result=self.bond.to_client(event.result, secrets.token_bytes(NONCE_BYTES)))
        except ValueError:
            return Fail(INTERNAL_ERROR, f"the requestState of upstream {self.bond.upstream} cannot be sealed", http=502)

    async def _settle(self) -> Items:
        """What else comes while the asks of this round are collected: up to the first quiet moment."""
        collected: Items = []
        try:
            async with asyncio.timeout(WINDOW_S):
                found = None
                while found != []:  # the last event is read
                    async with asyncio.timeout(QUIET_S):
                        found = await self.exchange.read(collected[-1][0] if collected else self.cursor)
                    collected += found
        except TimeoutError:
            pass
        return collected

    def _park(self) -> Message:
        """Leaves the call waiting; the message that tells the client what for.

        Raises `GatewayFault` while the gateway shuts down, and where too many wait already."""
        if self.service.drain.begun:
            raise GatewayFault(NOT_ASKED)
        ttl_s, principal = self.service.parking.ttl_s, self.exchange.call.principal
        self.service.parking.park(self.exchange, principal, dict(self.asked), self.cursor, self.number)
        self.parked = True
        self.service.metrics.rounds.add(self.exchange.upstream, BRIDGED)
        state = State(
            exchange=self.exchange.id,
            round=self.number,
            principal=principal,
            request=fingerprint(self.to.method, self.to.params),
            expires_s=math.ceil(time.time() + ttl_s),
        )
        route = session.route_key(self.route)
        token = request_state.seal(self.service.ring, route, state, secrets.token_bytes(NONCE_BYTES))
        assert self.to.id is not None
        return Message(jsonrpc.response(self.to.id, mrtr.input_required(dict(self.asked), token)), last=True)


def waits_in(service: Service, route: Route, params: Json) -> str:
    """The exchange that a retry's state names, which another replica may run; empty where it is no live state."""
    state = request_state.unseal(service.ring, session.route_key(route), params.get("requestState"), time.time())
    return "" if state is None else state.exchange


def resumed(service: Service, route: Route, principal: str, method: str, params: Json) -> Parked | Rejection:
    """The call that a retry goes on with, its answers delivered. Nothing reaches the upstream where the state is not
    this caller's for this request."""
    state = request_state.unseal(service.ring, session.route_key(route), params.get("requestState"), time.time())
    if state is None or state.principal != principal or state.request != fingerprint(method, params):
        return request_state.INVALID
    responses = params.get("inputResponses", {})
    if not isinstance(responses, dict) or not all(isinstance(one, dict) for one in responses.values()):
        return Rejection(INVALID_PARAMS, "params.inputResponses must be an object of results", http=400)
    parked = service.parking.claim(state.exchange, state.round)
    if parked is None:
        return request_state.INVALID
    for key in [key for key in parked.asked if key in responses]:
        del parked.asked[key]
        parked.exchange.reply(Reply(key, responses[key]))
    return parked
