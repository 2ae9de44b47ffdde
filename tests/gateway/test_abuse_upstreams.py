"""Upstreams that lie: whatever one says, the client gets one proper answer with its own id, and no call runs twice.

Specification: 2026-07-28 and 2025-11-25 basic/transports, JSON-RPC 2.0.
"""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio

from gateway.upstreams.streams import MAX_RETRY_MS, MIN_RETRY_MS, Place
from tests.gateway_process import GatewayProcess, running
from tests.http_wire import DEADLINE_S
from tests.peers import LegacyUpstream, ModernUpstream, text
from tests.raw_front import Answer
from tests.scrape import settled
from tests.scripted import Call, Json, Upstream

pytestmark = pytest.mark.asyncio(loop_scope="module")

SHORT = {"timeouts": {"connect_s": 1, "first_byte_s": 1, "idle_s": 1, "total_s": 2, "probe_s": 1}}
"""Time-outs of the gateway: what hangs is answered well before a test's own deadline."""
HALF = "\ud800"
FINE: Json = {**text("fine"), "resultType": "complete"}
Script = Callable[[Call], Awaitable[None]]
PAIRS = pytest.mark.parametrize(
    ("front_era", "upstream_era"), [(f, u) for f in ("modern", "legacy") for u in ("modern", "legacy")]
)


@dataclass(frozen=True, slots=True)
class House:
    gateway: GatewayProcess
    legacy: LegacyUpstream
    modern: ModernUpstream

    def upstream(self, era: str) -> Upstream:
        return self.legacy if era == "legacy" else self.modern

    async def call(self, pair: tuple[str, str], script: Script) -> Answer:
        """One tool call by a client of the first era, answered by the script."""
        upstream = self.upstream(pair[1])
        upstream.reset()
        front = self.gateway.front(f"/{pair[1]}")
        params = {"name": "echo", "arguments": {}}

        async def answer(call: Call) -> None:
            await script(call)

        upstream.on["tools/call"] = answer
        if pair[0] == "modern":
            return await front.modern("tools/call", params, ident="mine")
        return await (await front.initialize()).request("tools/call", params, ident="mine")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def house() -> AsyncIterator[House]:
    async with (
        LegacyUpstream() as legacy,
        ModernUpstream() as modern,
        running({"legacy": (legacy, SHORT), "modern": (modern, SHORT)}) as gateway,
    ):
        yield House(gateway, legacy, modern)


def body(make: Callable[[Any], Any], status: int = 200, **headers: str) -> Script:
    """One JSON body, made of the request's id."""

    async def script(call: Call) -> None:
        made = make(call.seen.id)
        raw = made if isinstance(made, bytes) else json.dumps(made).encode()
        lines = {"Content-Type": "application/json"} | {k.replace("_", "-"): v for k, v in headers.items()}
        await call.reply(status, raw, lines.items())

    return script


def error(value: Any, **more: Any) -> Callable[[Any], Json]:
    return lambda ident: {"jsonrpc": "2.0", "id": ident, "error": value, **more}


def result(value: Any, **more: Any) -> Callable[[Any], Json]:
    return lambda ident: {"jsonrpc": "2.0", "id": ident, "result": value, **more}


def events(*makes: Callable[[Any], Any]) -> Script:
    """An event for each, then the answer."""

    async def script(call: Call) -> None:
        for make in makes:
            made = make(call.seen.id)
            await (call.write(made) if isinstance(made, bytes) and call.streaming else _event(call, made))
        await call.answer(FINE)

    return script


async def _event(call: Call, made: Any) -> None:
    if isinstance(made, bytes):
        await call.stream()
        await call.write(made)
    else:
        await call.event({"jsonrpc": "2.0", **made})


def note(method: Any, params: Any = None) -> Callable[[Any], Json]:
    return lambda _: {"method": method, "params": params}


def moved(location: str) -> Script:
    return body(lambda _: b"", 307, Location=location)


async def hang(call: Call) -> None:
    call.begun = True
    await call.stay()


async def drip(call: Call) -> None:
    """A body that never ends, a byte at a time."""
    await call.stream(content_type="application/json")
    gone = asyncio.ensure_future(call.stay())
    while not gone.done():
        await call.write(b" ")
        await asyncio.wait({gone}, timeout=0.05)


FAILS: dict[str, Script] = {
    "an error that is a string": body(error("bad")),
    "an error that is an array": body(error([])),
    "an error code that is an array": body(error({"code": [], "message": "x"})),
    "an error code that is an array, with a status": body(error({"code": [], "message": "x"}), 400),
    "an error code that is text": body(error({"code": "5", "message": "x"})),
    "an error code that is true": body(error({"code": True, "message": "x"})),
    "an error message that is a number": body(error({"code": 5, "message": 5})),
    "an error with odd data": body(error({"code": -32022, "message": "x", "data": {"supported": 5}}), 400),
    "a result that is an array": body(result([])),
    "a result that is null": body(result(None)),
    "neither a result nor an error": body(lambda ident: {"jsonrpc": "2.0", "id": ident}),
    "another's id": body(lambda _: result(FINE)("other")),
    "an id that is an array": body(lambda ident: result(FINE)([ident])),
    "an id that is an object": body(lambda ident: result(FINE)({})),
    "an id that is true": body(lambda ident: result(FINE)(True)),
    "an empty body": body(lambda _: b""),
    "an empty batch": body(lambda _: []),
    "no JSON": body(lambda _: b"{oops"),
    "JSON in UTF-16": body(lambda ident: json.dumps(result(FINE)(ident)).encode("utf-16")),
    "JSON in Latin-1": body(lambda ident: json.dumps(result(FINE)(ident)).encode().replace(b"fine", b"f\xefne")),
    "HTML": body(lambda _: b"<html>", Content_Type="text/html"),
    "a coding that it has not": body(result(FINE), Content_Encoding="gzip"),
    "a 202": body(lambda _: b"", 202),
    "a 500": body(lambda _: b"oops", 500),
    "a 429 with odd bytes": body(lambda _: b"", 429, Retry_After="\xff"),
    "a redirect to no URL": moved("http://[::1"),
    "a redirect to no port": moved("http://127.0.0.1:99999/"),
    "a redirect to no host": moved("http://"),
    "a redirect elsewhere": moved("http://127.0.0.1:1/"),
    "a redirect to nowhere": body(lambda _: b"", 307),
    "nothing": hang,
    "a body that drips for ever": drip,
}


@PAIRS
@pytest.mark.parametrize("name", FAILS)
async def test_a_lying_answer_becomes_one_error(house: House, front_era: str, upstream_era: str, name: str) -> None:
    answer = await house.call((front_era, upstream_era), FAILS[name])
    assert answer.final["id"] == "mine", repr(answer)
    assert type(answer.error["code"]) is int
    assert isinstance(answer.error["message"], str)
    assert "internal error" not in answer.error["message"]
    assert "127.0.0.1" not in answer.error["message"]


ODD = {"id": 7, "method": "elicitation/create", "params": {"mode": [], "message": "?"}}
SERVED: dict[str, Script] = {
    "a result beside an error that is null": body(result(FINE, error=None)),
    "half a surrogate pair": body(result({**FINE, "x": HALF})),
    "a number of a thousand digits": body(result({**FINE, "x": 10**1000})),
    "white space around it": body(lambda ident: b"\n " + json.dumps(result(FINE)(ident)).encode() + b"\n"),
    "gzip unasked": body(
        lambda ident: gzip.compress(json.dumps(result(FINE)(ident)).encode()), Content_Encoding="gzip"
    ),
    "another session id": body(result(FINE), Mcp_Session_Id="other"),
    "_meta that is text": body(result({**FINE, "_meta": "x"})),
    "events that are no JSON": events(lambda _: b"data: {oops\n\n"),
    "events that are no UTF-8": events(lambda _: b'data: {"a":"\xff"}\n\n'),
    "events that are no messages": events(lambda _: b"data: 5\n\n", lambda _: b"data: []\n\n", lambda _: b"data\n\n"),
    "a method that is a number": events(lambda _: {"method": 5}),
    "a method that is an array": events(lambda _: {"method": []}),
    "params that are an array": events(note("notifications/progress", [])),
    "params that are text": events(note("notifications/message", "x")),
    "progress for an array": events(note("notifications/progress", {"progressToken": []})),
    "progress for an object": events(note("notifications/progress", {"progressToken": {}})),
    "progress for nobody": events(note("notifications/progress", {"progressToken": "nobody", "progress": 1})),
    "a cancel of an array": events(note("notifications/cancelled", {"requestId": []})),
    "a cancel of nothing": events(note("notifications/cancelled")),
    "a log level that is an array": events(note("notifications/message", {"level": [], "data": 1})),
    "a vendor's notification": events(note("vendor/anything", {"a": HALF})),
    "another's answer first": events(lambda _: result(FINE)("other"), lambda _: result(FINE)([])),
    "a request whose id is an array": events(lambda _: {"id": [1], "method": "ping"}),
    "a request whose id is null": events(lambda _: {"id": None, "method": "ping"}),
    "an ask that nobody declared": events(lambda _: {"id": 7, "method": "roots/list"}),
    "an ask with an odd mode": events(lambda _: ODD),
    "an ask whose params are text": events(lambda _: {"id": 7, "method": "elicitation/create", "params": "x"}),
}


@PAIRS
@pytest.mark.parametrize("name", SERVED)
async def test_an_odd_answer_is_still_the_answer(house: House, front_era: str, upstream_era: str, name: str) -> None:
    answer = await house.call((front_era, upstream_era), SERVED[name])
    assert answer.final["id"] == "mine", repr(answer)
    assert answer.said == "fine"
    assert all(isinstance(message["method"], str) for message in answer.notes)
    assert len(house.upstream(upstream_era).calls("tools/call")) == 1


@pytest.mark.parametrize("name", ["größe", "\x01", "x" * 2000, "a b"], ids=repr)
async def test_a_session_id_that_is_none_is_the_upstreams_fault(house: House, name: str) -> None:
    house.legacy.reset()
    opened = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}}
    house.legacy.on["initialize"] = _answering(body(result(opened), Mcp_Session_Id=name))
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    message = {"jsonrpc": "2.0", "id": "mine", "method": "initialize", "params": params}
    answer = await house.gateway.front("/legacy").post(message)
    assert answer.status == 502, repr(answer)
    assert answer.final["id"] == "mine"
    assert "Mcp-Session-Id" not in answer.headers


def _answering(script: Script) -> Callable[[Call], Awaitable[None]]:
    async def answer(call: Call) -> None:
        await script(call)

    return answer


@pytest.mark.parametrize("script", [hang, drip])
async def test_callers_who_wait_for_one_session_fail_together(script: Script) -> None:
    async with (
        LegacyUpstream() as upstream,
        running({"legacy": (upstream, {**SHORT, "era": "legacy"})}) as gateway,
    ):
        await gateway.front("/legacy").modern("tools/list")
        await gateway.front("/legacy").modern("tools/list")
        upstream.reset()
        upstream.on["initialize"] = _answering(script)
        declared = {"experimental": {"a": {}}}
        calls = [gateway.front("/legacy").modern("tools/list", ident=n, capabilities=declared) for n in range(4)]
        answers = await asyncio.gather(*calls)
        assert [answer.status for answer in answers] == [504] * 4
        assert [answer.final["id"] for answer in answers] == [0, 1, 2, 3]
        assert len(upstream.calls("initialize")) == 1


async def test_a_session_that_nobody_waits_for_any_more_may_fail_in_silence() -> None:
    """That the log has no word of it is asserted where the gateway ends."""
    async with (
        LegacyUpstream() as upstream,
        running({"up": (upstream, {"era": "legacy"})}, admin="127.0.0.1:0") as gateway,
    ):
        front = gateway.front("/up")
        await front.modern("tools/list")
        asked, go, failed = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def fails(call: Call) -> None:
            asked.set()
            await go.wait()
            await call.reply(500)
            failed.set()

        upstream.on["initialize"] = _answering(fails)
        declared = {"experimental": {"a": {}}}
        leaving = asyncio.create_task(front.modern("tools/list", capabilities=declared))
        await asyncio.wait_for(asked.wait(), DEADLINE_S)
        leaving.cancel()
        await asyncio.wait({leaving})
        await settled(gateway, "mcp_front_door_requests_in_flight", 0)
        go.set()
        await asyncio.wait_for(failed.wait(), DEADLINE_S)
        del upstream.on["initialize"]
        assert "result" in (await front.modern("tools/list", capabilities=declared)).final


async def test_a_session_whose_first_caller_leaves_is_there_for_the_next() -> None:
    async with LegacyUpstream() as upstream, running({"legacy": (upstream, {"era": "legacy"})}) as gateway:
        front = gateway.front("/legacy")
        await front.modern("tools/list")
        upstream.reset()
        opened = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "x"}}
        asked, go = asyncio.Event(), asyncio.Event()

        async def initialize(call: Call) -> None:
            asked.set()
            await go.wait()
            upstream.live.add("late")
            await body(result(opened), Mcp_Session_Id="late")(call)

        upstream.on["initialize"] = initialize
        declared = {"experimental": {"a": {}}}
        leaving = asyncio.create_task(front.modern("tools/list", capabilities=declared))
        await asyncio.wait_for(asked.wait(), 10)
        leaving.cancel()
        await asyncio.wait({leaving})
        staying = asyncio.create_task(front.modern("tools/list", capabilities=declared))
        go.set()
        assert (await staying).result["tools"]
        assert len(upstream.calls("initialize")) == 1
        assert {seen.session for seen in upstream.calls("tools/list")} == {"late"}


PLACES = [
    ([("1", None)], "1", 1000),
    ([("1", None), ("", None), (None, None)], "1", 1000),
    ([("1", None), ("a\x01b", None), ("\x7f", None)], "1", 1000),
    ([("größe", 250)], "größe", 250),
    ([(None, 0)], None, MIN_RETRY_MS),
    ([(None, 10**14)], None, MAX_RETRY_MS),
]


@pytest.mark.parametrize(("said", "event_id", "retry_ms"), PLACES)
async def test_a_stream_is_resumed_by_an_id_that_a_header_can_say_and_after_a_pause(
    said: list[tuple[str | None, int | None]], event_id: str | None, retry_ms: int
) -> None:
    place = Place()
    for one in said:
        place.pass_by(*one)
    assert (place.event_id, place.retry_ms) == (event_id, retry_ms)


async def test_a_refusal_that_never_ends_does_not_hold_a_listener(house: House) -> None:
    house.modern.reset()
    house.modern.on["subscriptions/listen"] = _answering(drip)
    answer = await house.gateway.front("/modern").modern("subscriptions/listen", {"notifications": {}}, ident="mine")
    assert answer.status == 504, repr(answer)
    assert answer.final["id"] == "mine"
