"""The connector to an upstream that speaks 2026-07-28: no sessions, everything in each request.

Specification: 2026-07-28 basic/transports/streamable-http, basic/index (`_meta`). An `InputRequiredResult` is an answer
like any other here; whether the caller can read it is for delivery to say.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace

from multidict import CIMultiDict

from gateway.exchange import Exchange
from gateway.stores.shared import Shared
from gateway.upstreams.asking import Asking
from gateway.upstreams.base import OWN_INFO, Ids
from gateway.upstreams.listening import Heard, Listening
from gateway.upstreams.patience import STREAM, Patience, within, within_own
from gateway.upstreams.schemas import Schemas
from gateway.upstreams.transport import Reception, Transport
from gateway.upstreams.wire import BOTH
from policies import apps, headers, jsonrpc
from policies.errors import ClientFault, Rejection, UpstreamFault
from policies.exchange import Answer, Call, Dialect, Fail, Notify
from policies.headers import ParamHeader
from policies.mcp import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    LATEST_MODERN,
    LISTEN,
    MAY_ASK,
    META_CLIENT_CAPABILITIES,
    META_CLIENT_INFO,
    META_LOG_LEVEL,
    META_PROGRESS_TOKEN,
    META_VERSION,
    PROGRESS,
    READS,
    Json,
)
from policies.routing import timeouts_for
from policies.settings import Timeouts
from policies.translation import mrtr
from policies.translation.discover import Description, of_discover

log = logging.getLogger(__name__)


class ModernConnector:
    def __init__(self, wire: Transport, ids: Ids, state: Shared, version: str = LATEST_MODERN) -> None:
        self.dialect = Dialect("modern", version)
        self.listening = Listening(wire.name, self._listen, state)
        self._wire = wire
        self._ids = ids
        self._schemas = Schemas(wire.name, self._page)

    async def leg(self, call: Call, exchange: Exchange) -> None:
        if call.method == LISTEN:
            await self.listening.listen(call, exchange)
        else:
            async with within_own(self._limits(call).total_s, self._wire.name, exchange):
                await self._call(call, exchange)

    async def describe(self, credentials: tuple[tuple[str, str], ...] = ()) -> Description:
        message = await self._ask_plainly("server/discover", {}, credentials, {})
        result = message.get("result")
        if not isinstance(result, dict):
            raise UpstreamFault(f"upstream {self._wire.name} does not describe itself")
        return of_discover(result, self.dialect.version)

    async def hides(self, call: Call) -> bool:
        return await self._schemas.hides(call)

    def hides_at_hand(self, call: Call) -> bool | None:
        return self._schemas.hides_at_hand(call)

    def learn(self, call: Call, result: Json) -> None:
        self._schemas.learn(call, result)

    # one call

    async def _specs(self, call: Call, fresh: bool) -> tuple[ParamHeader, ...]:
        """What must be mirrored. A modern caller has mirrored its parameters itself, and they are sent on as they
        came: the upstream judges them."""
        if call.method != "tools/call" or call.mirrors or not self._wire.has_headers:
            return ()
        return await self._schemas.of(call, fresh=fresh)

    async def _call(self, call: Call, exchange: Exchange) -> None:
        """To the answer, asking a caller that cannot carry an `InputRequiredResult` itself what the upstream wants."""
        if await self.hides(call):
            why = apps.unknown_tool(call.params.get("name"))
            exchange.emit(Fail(why.code, why.message))
            return
        if call.method == "tools/call" and call.mirrors and not self._wire.has_headers:
            # nobody behind here can compare what routed this call
            sent, arguments = CIMultiDict(call.param_headers), call.params.get("arguments") or {}
            rejection = headers.check_params(sent, arguments, await self._schemas.of(call))
            if rejection is not None:
                exchange.emit(Fail(rejection.code, rejection.message, rejection.data, rejection.http))
                return
        asking = Asking(call, exchange, self.dialect)
        while True:
            status, message = await self._answered(call, exchange)
            result = message.get("result")
            if not isinstance(result, dict) or result.get("resultType") != "input_required":
                break
            if call.relays_input_required or call.method not in MAY_ASK:
                break
            needs = mrtr.needs(result)
            if isinstance(needs, Rejection):
                raise UpstreamFault(needs.message, http=needs.http)
            call = replace(call, params=await asking.round(needs))
        asking.done()
        if isinstance(result, dict):
            self.learn(call, result)
        self._emit_last(status, message, exchange)

    async def _answered(self, call: Call, exchange: Exchange) -> tuple[int, Json]:
        status, message = await self._attempt(call, exchange, fresh=False)
        if _code(message) == HEADER_MISMATCH and call.method == "tools/call" and not call.mirrors:
            # refused before it ran: the schema has changed since it was listed (streamable-http, Client Behavior)
            status, message = await self._attempt(call, exchange, fresh=True)
        return status, message

    def _emit_last(self, status: int, message: Json, exchange: Exchange) -> None:
        if message.get("error") is not None:
            exchange.emit(fail(message["error"], self.dialect, status if status != 200 else None))
        elif isinstance(message.get("result"), dict):
            exchange.emit(Answer(message["result"], self.dialect, endpoint=exchange.answered_by))
        else:
            raise UpstreamFault(f"upstream {self._wire.name} answered without a result")

    def _limits(self, call: Call) -> Timeouts:
        return timeouts_for(self._wire.settings, call.method, call.params.get("name"))

    async def _attempt(self, call: Call, exchange: Exchange, *, fresh: bool) -> tuple[int, Json]:
        request_id = self._ids.next()
        body, head = self._request(call, request_id, await self._specs(call, fresh))
        at = self._wire.known_endpoint(call.endpoint)
        patience = Patience(limits=self._limits(call), endpoint=at, repeatable=call.method in READS)
        async with self._wire.request("POST", head, body, patience) as reception:
            exchange.answered_by = self._wire.known_endpoint(reception.endpoint)
            return reception.status, await self._last_message(reception, request_id, self._to(exchange))

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

    async def _last_message(self, reception: Reception, request_id: int, heard: Heard) -> Json:
        """The response; notifications before it are heard as they come."""
        async for piece in reception.pieces():
            message = piece.message or {}
            if "method" not in message:
                if message.get("id") in (request_id, None) and message:
                    return message
            elif "id" not in message:
                params = dict(message["params"]) if isinstance(message.get("params"), dict) else {}
                # progress for nobody's token: strict hosts end the connection over it
                if message["method"] != PROGRESS or params.pop(META_PROGRESS_TOKEN, None) == request_id:
                    heard(str(message["method"]), params)
        if reception.status >= 400:  # servers with sessions name no request where they refuse one
            raise reception.refusal()
        raise UpstreamFault(f"upstream {self._wire.name} closed its stream without an answer")

    def _to(self, exchange: Exchange) -> Heard:
        return lambda method, params: exchange.emit(Notify(method, params, self.dialect))

    async def _listen(self, call: Call, heard: Heard) -> None:
        """One listen stream to its end, acknowledgement included."""

        def on(method: str, params: Json) -> None:
            if method == "notifications/tools/list_changed":
                self._schemas.forget()
            heard(method, params)

        request_id = self._ids.next()
        body, head = self._request(call, request_id, ())
        patience = replace(STREAM, endpoint=self._wire.known_endpoint(call.endpoint))
        async with self._wire.request("POST", head, body, patience) as reception:
            # a stream has no end of its own; a refusal has
            async with within(None if reception.kind == "sse" else self._limits(call).total_s, self._wire.name):
                message = await self._last_message(reception, request_id, on)
            if not isinstance(message.get("result"), dict):
                raise _fault(fail(message.get("error"), self.dialect, reception.status))

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
            self._wire.request("POST", head, body, Patience(repeatable=True)) as reception,
        ):
            return await self._last_message(reception, request_id, lambda *_: None)


def _fault(failed: Fail) -> UpstreamFault:
    return UpstreamFault(failed.message, code=failed.code, http=failed.http, data=failed.data)


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
