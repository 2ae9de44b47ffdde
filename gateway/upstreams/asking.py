"""The rounds of a modern upstream's `InputRequiredResult` for a caller that must be asked one by one.

Specification: 2026-07-28 basic/patterns/mrtr. Each entry becomes an ask of the exchange; with all answers in, the
request is tried again, which is a new request and executes nothing twice. Rounds and time are bounded.
"""

import asyncio
import secrets

from gateway.exchange import Exchange
from policies import apps
from policies.errors import Fault, Rejection, UpstreamFault
from policies.exchange import Ask, Call, Dialect, Fail, Notify
from policies.mcp import INTERNAL_ERROR, MISSING_CLIENT_CAPABILITY, Json, at_least
from policies.translation import mrtr

MAX_ROUNDS = 10
"""Times that a user is asked for one call; the official SDKs' own drivers stop there."""

_STATE_PAUSES_S = (0.05, 0.1, 0.25)
"""Pauses where the server only wants to be called again with its state; the last one repeats."""

_URL_PAUSES_S = (1.0, 2.0, 5.0)
"""Pauses between looks whether a user is done at an address; the last one repeats."""

COMPLETE = "notifications/elicitation/complete"

TOO_OFTEN = f"the upstream has asked for input {MAX_ROUNDS} times; no more is asked of the client"


class Asking:
    """The state of one call's rounds. `exchange.call` is the caller's own, `dialect` the upstream's."""

    def __init__(self, call: Call, exchange: Exchange, dialect: Dialect) -> None:
        self._call = call
        self._exchange = exchange
        self._dialect = dialect
        self._rounds = 0
        self._idle = 0
        self._visited: dict[str, str] = {}

    async def round(self, needs: mrtr.Needs) -> Json:
        """Asks for everything in `needs`: the parameters to try again with. Raises a `Fault` where the client answers
        with an error, or cannot be asked, or has been asked too often."""
        if needs.asks and not self._only_visits(needs):
            self._rounds += 1
            self._idle = 0
        else:
            pauses = _URL_PAUSES_S if needs.asks else _STATE_PAUSES_S
            await asyncio.sleep(pauses[min(self._idle, len(pauses) - 1)])
            self._idle += 1
        if self._rounds > MAX_ROUNDS:
            raise UpstreamFault(TOO_OFTEN)
        self._leave(needs)
        # one failure ends the call, and with it the other asks
        answers = await asyncio.gather(*(self._one(*ask) for ask in needs.asks.values()))
        params = {k: v for k, v in self._call.params.items() if k not in ("inputResponses", "requestState")}
        if needs.asks:
            params["inputResponses"] = dict(zip(needs.asks, answers, strict=True))
        if needs.state is not None:
            params["requestState"] = needs.state
        return params

    def done(self) -> None:
        """The call has its answer: nobody waits at an address any more."""
        self._leave(mrtr.Needs({}, None))

    async def _one(self, method: str, params: Json) -> Json:
        url = params.get("url") if params.get("mode") == "url" else None
        if isinstance(url, str) and url in self._visited:
            return {"action": "accept"}  # agreed to already: the user is not prompted twice for one address
        version = self._call.front.version
        shown = params if self._call.profile.shows_apps else apps.strip_ask(method, params)  # before it is made text
        request = mrtr.ask_to_legacy(method, shown, version, self._call.capabilities)
        if isinstance(request, Rejection):
            if method == "elicitation/create":
                return mrtr.CANCEL
            raise Fault(request.message, code=MISSING_CLIENT_CAPABILITY, http=400, data=request.data)
        if isinstance(url, str):
            request = {**request, "elicitationId": secrets.token_hex(8)}
        reply = await self._exchange.ask(Ask(secrets.token_hex(4), method, request, self._dialect))
        if reply.error is not None:  # inputResponses has no form for it, and a made-up cancel would be asked again
            code, message = reply.error.get("code"), reply.error.get("message")
            raise Fault(
                message if isinstance(message, str) else f"the client refused {method}",
                code=code if isinstance(code, int) else INTERNAL_ERROR,
                http=200,
                data=reply.error.get("data"),
            )
        result = reply.result or {}
        if isinstance(url, str) and result.get("action") == "accept":
            self._visited[url] = request["elicitationId"]
        return result

    def _only_visits(self, needs: mrtr.Needs) -> bool:
        return all(params.get("url") in self._visited for _, params in needs.asks.values())

    def _leave(self, needs: mrtr.Needs) -> None:
        """Tells the client about the addresses that the server no longer asks for."""
        asked = {params.get("url") for _, params in needs.asks.values()}
        for url in [url for url in self._visited if url not in asked]:
            params = {"elicitationId": self._visited.pop(url)}
            if at_least(self._call.front.version, "2025-11-25"):
                self._exchange.emit(Notify(COMPLETE, params, self._dialect))


class Visits:
    """What the -32042 of a legacy upstream wants visited before it runs a call, over all tries of that call: none of
    them has run it, so that it may be sent again. What the user has agreed to is not asked again, but tried."""

    def __init__(self, exchange: Exchange, dialect: Dialect) -> None:
        self._exchange = exchange
        self._dialect = dialect
        self._agreed: set[str] = set()
        self._rounds = 0
        self._idle = 0

    async def agreed(self, refused: Fail) -> bool:
        """Whether the call may be tried again now; False where the user does not go there. Raises an `UpstreamFault`
        where it has been asked too often. Cancel-safe."""
        asks = {key: params for key, params in mrtr.url_asks(refused.data).items() if key not in self._agreed}
        if not asks:
            await asyncio.sleep(_URL_PAUSES_S[min(self._idle, len(_URL_PAUSES_S) - 1)])
            self._idle += 1
            return True
        self._rounds += 1
        self._idle = 0
        if self._rounds > MAX_ROUNDS:
            raise UpstreamFault(TOO_OFTEN)
        replies = await asyncio.gather(*(self._one(params) for params in asks.values()))
        self._agreed |= {key for key, accepted in zip(asks, replies, strict=True) if accepted}
        return all(replies)

    async def _one(self, params: Json) -> bool:
        reply = await self._exchange.ask(Ask(secrets.token_hex(4), "elicitation/create", params, self._dialect))
        return (reply.result or {}).get("action") == "accept"
