"""The connector to an upstream that speaks 2026-07-28: no sessions, everything in each request.

Specification: 2026-07-28 basic/transports/streamable-http, basic/index (`_meta`). An `InputRequiredResult` is an answer
like any other here; whether the caller can read it is for delivery to say.
"""

import asyncio
import logging
from collections.abc import Sequence

from gateway.exchange import Exchange
from gateway.upstreams.base import OWN_INFO, Ids
from gateway.upstreams.schemas import Schemas
from gateway.upstreams.wire import BOTH, Reception, Wire, within
from policies import headers, jsonrpc
from policies.errors import ClientFault, UpstreamFault, UpstreamRetired
from policies.exchange import Answer, Call, Dialect, Fail, Notify
from policies.headers import ParamHeader
from policies.mcp import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    LATEST_MODERN,
    LISTEN,
    META_CLIENT_CAPABILITIES,
    META_CLIENT_INFO,
    META_LOG_LEVEL,
    META_PROGRESS_TOKEN,
    META_VERSION,
    PROGRESS,
    Json,
)
from policies.routing import timeouts_for
from policies.settings import Timeouts
from policies.translation.discover import Description, of_discover

log = logging.getLogger(__name__)

_RECONNECT_S = (1.0, 2.0, 5.0, 10.0, 30.0)
"""Pauses before a lost listen stream of a legacy client is opened again; the last one repeats."""


class ModernConnector:
    def __init__(self, wire: Wire, ids: Ids, version: str = LATEST_MODERN) -> None:
        self.dialect = Dialect("modern", version)
        self._wire = wire
        self._ids = ids
        self._schemas = Schemas(self._page)

    async def leg(self, call: Call, exchange: Exchange) -> None:
        if call.method == LISTEN:
            await self._listen(call, exchange)
        else:
            async with within(self._limits(call).total_s, self._wire.name):
                await self._call(call, exchange)

    async def describe(self) -> Description:
        message = await self._ask_plainly("server/discover", {}, (), {})
        result = message.get("result")
        if not isinstance(result, dict):
            raise UpstreamFault(f"upstream {self._wire.name} does not describe itself")
        return of_discover(result, self.dialect.version)

    # one call

    async def _specs(self, call: Call, fresh: bool) -> tuple[ParamHeader, ...]:
        """What must be mirrored. A modern caller has mirrored its parameters itself, and they are sent on as they
        came: the upstream judges them."""
        if call.method != "tools/call" or call.front.era == "modern":
            return ()
        return await self._schemas.of(call, fresh=fresh)

    async def _call(self, call: Call, exchange: Exchange) -> None:
        status, message = await self._attempt(call, exchange, fresh=False)
        if _code(message) == HEADER_MISMATCH and call.method == "tools/call" and call.front.era == "legacy":
            # refused before it ran: the schema has changed since it was listed (streamable-http, Client Behavior)
            status, message = await self._attempt(call, exchange, fresh=True)
        if "error" in message:
            exchange.emit(fail(message["error"], self.dialect, status if status != 200 else None))
        elif isinstance(message.get("result"), dict):
            exchange.emit(Answer(message["result"], self.dialect))
        else:
            raise UpstreamFault(f"upstream {self._wire.name} answered without a result")

    def _limits(self, call: Call) -> Timeouts:
        return timeouts_for(self._wire.settings, call.method, call.params.get("name"))

    async def _attempt(self, call: Call, exchange: Exchange, *, fresh: bool) -> tuple[int, Json]:
        request_id = self._ids.next()
        body, head = self._request(call, request_id, await self._specs(call, fresh))
        async with self._wire.request("POST", head, body, limits=self._limits(call)) as reception:
            return reception.status, await self._last_message(reception, request_id, exchange)

    def _request(self, call: Call, request_id: int, specs: Sequence[ParamHeader]) -> tuple[bytes, dict[str, str]]:
        meta: Json = {
            **call.meta,
            META_VERSION: self.dialect.version,
            META_CLIENT_INFO: call.client_info or OWN_INFO,
            META_CLIENT_CAPABILITIES: call.capabilities,
        }
        if call.log_level is not None:
            meta[META_LOG_LEVEL] = call.log_level
        if call.wants_progress:
            meta[META_PROGRESS_TOKEN] = request_id
        try:
            head = headers.build(call.method, call.params, self.dialect.version, specs)
        except ValueError as error:  # this revision repeats in headers what they say
            raise ClientFault(f"Invalid params: {error}", code=INVALID_PARAMS) from error
        head |= dict(call.param_headers) | dict(call.forwarded) | BOTH
        return jsonrpc.request(request_id, call.method, {**call.params, "_meta": meta}), head

    async def _last_message(self, reception: Reception, request_id: int, exchange: Exchange) -> Json:
        """The response; notifications before it go to the exchange as they come."""
        async for piece in reception.pieces():
            message = piece.message or {}
            if "method" not in message:
                if message.get("id") in (request_id, None) and message:
                    return message
            elif "id" not in message:
                self._notify(message, request_id, exchange)
        raise UpstreamFault(f"upstream {self._wire.name} closed its stream without an answer")

    def _notify(self, message: Json, request_id: int, exchange: Exchange) -> None:
        params = message.get("params")
        params = dict(params) if isinstance(params, dict) else {}
        if message["method"] == PROGRESS and params.pop(META_PROGRESS_TOKEN, None) != request_id:
            return  # for nobody's token: strict hosts end the connection over it
        exchange.emit(Notify(str(message["method"]), params, self.dialect))

    # a listen stream for a legacy client's GET stream

    async def _listen(self, call: Call, exchange: Exchange) -> None:
        """Stays until cancelled: an end or a loss is followed by a new stream. Refused at the first try, it fails."""
        opened, tries = False, 0
        while True:
            request_id = self._ids.next()
            body, head = self._request(call, request_id, ())
            try:
                async with self._wire.request("POST", head, body, long_lived=True) as reception:
                    if reception.kind == "sse":
                        opened, tries = True, 0
                    message = await self._last_message(reception, request_id, exchange)
                if not opened:
                    return exchange.emit(fail(message.get("error"), self.dialect, 405))
            except UpstreamFault as fault:
                if not opened or isinstance(fault, UpstreamRetired):
                    raise
                log.debug("a listen stream of upstream %s was lost", self._wire.name)
            await asyncio.sleep(_RECONNECT_S[min(tries, len(_RECONNECT_S) - 1)])
            tries += 1

    # for the gateway's own use

    async def _page(self, call: Call, cursor: str | None) -> Json | None:
        params: Json = {} if cursor is None else {"cursor": cursor}
        message = await self._ask_plainly("tools/list", params, call.forwarded, call.capabilities)
        result = message.get("result")
        return result if isinstance(result, dict) else None

    async def _ask_plainly(
        self, method: str, params: Json, forwarded: Sequence[tuple[str, str]], capabilities: Json
    ) -> Json:
        """One read of the gateway's own, its answer as it came; notifications on the way are nobody's."""
        call = Call(method, params, {}, capabilities, None, "", self.dialect, forwarded=tuple(forwarded))
        request_id = self._ids.next()
        body, head = self._request(call, request_id, ())
        async with (
            within(self._wire.settings.timeouts.first_byte_s, self._wire.name),
            self._wire.request("POST", head, body) as reception,
        ):
            return await self._last_message(reception, request_id, Exchange(call))


def _code(message: Json) -> object:
    error = message.get("error")
    return error.get("code") if isinstance(error, dict) else None


def fail(error: object, dialect: Dialect, http: int | None = None) -> Fail:
    """A JSON-RPC error object as an event; one that lacks a code or message is completed, not dropped."""
    known = error if isinstance(error, dict) else {}
    code, message = known.get("code"), known.get("message")
    return Fail(
        code if isinstance(code, int) and not isinstance(code, bool) else -32603,
        message if isinstance(message, str) else "the upstream failed without saying why",
        known.get("data"),
        http,
        dialect,
    )
