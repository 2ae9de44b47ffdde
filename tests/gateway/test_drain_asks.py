"""SIGTERM while a server's question is open: its answer is still taken, nobody is asked anything new, nothing stays.

Specification: 2026-07-28 basic/patterns/mrtr, basic/patterns/cancellation; field reports L10, L11.
"""

import asyncio
import json
import signal

import pytest

from gateway.drain import NOT_ASKED
from tests.asks.talk import (
    ACCEPT,
    ELICIT,
    EVERYTHING,
    FOREIGN_STATE,
    FORM,
    ROOTS,
    TOOL,
    Modern,
    asking,
    entries,
    heard,
    next_ask,
    only,
)
from tests.gateway_process import GatewayProcess, running
from tests.http_wire import DEADLINE_S, header_bytes, read_body, read_head
from tests.peers import LegacyUpstream, ModernUpstream
from tests.raw_front import CLIENT_INFO, LEGACY, Answer, Front, request
from tests.scripted import Call, Json
from tests.stdio.puppets import Puppet, Puppets

ADMIN = {"admin": "127.0.0.1:0"}
WANTS: Json = {
    "resultType": "input_required",
    "inputRequests": {"k": {"method": ELICIT, "params": FORM}},
    "requestState": "s",
}


async def draining(gateway: GatewayProcess) -> None:
    """Tells the gateway to stop, and waits until it knows."""
    ready = Front(gateway.admin_url).at("/readyz")
    gateway.process.send_signal(signal.SIGTERM)
    async with asyncio.timeout(DEADLINE_S):
        while (await ready.send("GET", {})).status == 200:
            pass


async def ended(gateway: GatewayProcess) -> None:
    async with asyncio.timeout(DEADLINE_S):
        assert await gateway.process.wait() == 0


def shut(answer: Answer) -> bool:
    """Whether it is the refusal of a gateway that shuts down, which says when to come again and hangs up."""
    assert (answer.status, answer.code) == (503, -32603), repr(answer)
    return (answer.headers.get("Retry-After"), answer.headers.get("Connection")) == ("1", "close")


@pytest.mark.field("L11")
async def test_the_retry_of_a_call_that_waits_is_served_on_a_new_connection_and_nothing_new_is() -> None:
    async with LegacyUpstream() as upstream, running({"up": upstream}, **ADMIN) as gateway:
        upstream.on["tools/call"] = asking()
        front = gateway.front("/up")
        session = await front.initialize()
        client = Modern(front)
        asked = await client.call()
        await draining(gateway)
        before = len(upstream.requests)
        assert shut(await front.modern("tools/call", TOOL))
        assert shut(await front.modern("server/discover"))
        hello = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": CLIENT_INFO}
        assert shut(await front.post(request("initialize", hello)))
        refused = await session.request("tools/call", TOOL)
        assert (refused.status, refused.code) == (200, -32603)  # another status ends some clients' transport
        async with session.get() as stream:
            assert stream.status == 503
        assert len(upstream.requests) == before
        done = await client.answer_all(asked, ACCEPT)
        assert done.result["structuredContent"]["heard"] == [{"result": ACCEPT}]
        await ended(gateway)
        assert len(upstream.calls("tools/call")) == 1
        assert not upstream.calls("notifications/cancelled")


@pytest.mark.parametrize("streams", [False, True], ids=["as JSON", "on its stream"])
async def test_a_call_that_would_have_to_wait_ends_with_an_error_and_is_cancelled_upstream(streams: bool) -> None:
    began, ask = asyncio.Event(), asyncio.Event()

    async def tool(call: Call) -> Json:
        if streams:
            await call.notify(
                "notifications/progress", {"progressToken": call.seen.meta["progressToken"], "progress": 1}
            )
        began.set()
        await ask.wait()
        return heard(await call.ask(ELICIT, FORM))

    async with LegacyUpstream() as upstream, running({"up": upstream}, **ADMIN) as gateway:
        upstream.on["tools/call"] = tool
        calling = asyncio.create_task(Modern(gateway.front("/up"), meta={"progressToken": "p"}).call())
        async with asyncio.timeout(DEADLINE_S):
            await began.wait()
        await draining(gateway)
        ask.set()
        answer = await calling
        assert (answer.code, answer.error["message"]) == (-32603, NOT_ASKED)
        assert answer.status == (200 if streams else 503)
        [cancel] = await upstream.seen("notifications/cancelled")
        [call] = upstream.calls("tools/call")
        assert cancel.params["requestId"] == call.id
        await ended(gateway)
        assert upstream.replies == []


@pytest.mark.parametrize("answers", [{}, {"all": ACCEPT}], ids=["without an answer", "to be asked again"])
async def test_a_retry_that_would_have_to_wait_again_ends_too(answers: Json) -> None:
    async def tool(call: Call) -> Json:
        return heard(await call.ask(ELICIT, FORM), await call.ask(ROOTS, {}))

    async with LegacyUpstream() as upstream, running({"up": upstream}, **ADMIN) as gateway:
        upstream.on["tools/call"] = tool
        client = Modern(gateway.front("/up"))
        asked = await client.call()
        await draining(gateway)
        answer = await client.retry(asked, {only(asked): one for one in answers.values()})
        assert (answer.status, answer.error["message"]) == (503, NOT_ASKED)
        await upstream.seen("notifications/cancelled")
        await ended(gateway)


async def test_a_call_that_still_waits_at_the_end_is_cancelled_and_its_state_is_good_nowhere() -> None:
    keys = {"keys": ["k1:" + "A" * 43 + "="]}
    async with LegacyUpstream(get_stream=True) as upstream:
        upstream.on["tools/call"] = asking()
        async with running({"up": upstream}, grace_s=0.3, **keys) as gateway:
            client = Modern(gateway.front("/up"))
            asked = await client.call()
            gateway.process.send_signal(signal.SIGTERM)
            await ended(gateway)
        [cancel] = upstream.calls("notifications/cancelled")
        assert cancel.params["requestId"] == upstream.calls("tools/call")[0].id
        assert upstream.replies == []
        assert upstream.live == set()
        async with running({"up": upstream}, **keys) as gateway:
            refused = await Modern(gateway.front("/up")).answer_all(asked, ACCEPT)
            assert (refused.status, refused.code) == (400, FOREIGN_STATE)


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_client_with_a_session_may_still_answer_what_it_was_asked(era: str) -> None:
    async with (
        LegacyUpstream() as legacy,
        ModernUpstream() as modern,
        running({"legacy": legacy, "modern": modern}, **ADMIN) as gateway,
    ):
        legacy.on["tools/call"] = asking()

        async def tool(call: Call) -> Json:
            responses = call.seen.params.get("inputResponses")
            return heard({"result": responses["k"]}) if responses else WANTS

        modern.on["tools/call"] = tool
        session = await gateway.front(f"/{era}").initialize(capabilities=EVERYTHING)
        async with session.open("tools/call", TOOL) as opened:
            ask = await next_ask(opened)
            await draining(gateway)
            assert (await session.reply(ask["id"], {"result": ACCEPT})).status == 202
            [final] = await opened.rest()
        assert final["result"]["structuredContent"]["heard"] == [{"result": ACCEPT}]
        await ended(gateway)


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_client_with_a_session_is_asked_nothing_new(era: str) -> None:
    began, ask = asyncio.Event(), asyncio.Event()
    async with (
        LegacyUpstream() as legacy,
        ModernUpstream() as modern,
        running({"legacy": legacy, "modern": modern}, **ADMIN) as gateway,
    ):

        async def tool(call: Call) -> Json:
            await call.stream()
            began.set()
            await ask.wait()
            return heard(await call.ask(ELICIT, FORM)) if era == "legacy" else WANTS

        legacy.on["tools/call"] = modern.on["tools/call"] = tool
        session = await gateway.front(f"/{era}").initialize(capabilities=EVERYTHING)
        async with session.open("tools/call", TOOL) as opened:
            async with asyncio.timeout(DEADLINE_S):
                await began.wait()
            await draining(gateway)
            ask.set()
            [final] = await opened.rest()
        said = {"code": -32603, "message": NOT_ASKED}
        if era == "legacy":
            assert final["result"]["structuredContent"]["heard"] == [{"error": said}]
        else:
            assert final["error"] == said
        await ended(gateway)


KEPT: dict[str, tuple[Json, int]] = {
    "initialize": ({"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": CLIENT_INFO}, 503),
    "tools/call": (TOOL, 200),
}


@pytest.mark.field("L10", "L11")
@pytest.mark.parametrize("method", KEPT)
async def test_a_request_that_was_arriving_on_a_kept_connection_is_answered_and_opens_no_session(method: str) -> None:
    params, status = KEPT[method]
    async with LegacyUpstream() as upstream, running({"up": upstream}, **ADMIN) as gateway:
        front, metrics = gateway.front("/up"), Front(gateway.admin_url).at("/metrics")
        session = await front.initialize()
        opened = len(upstream.calls("initialize"))
        headers = {"Host": front.host, **front.posting(session.headers)}

        def head(body: bytes) -> bytes:
            return header_bytes(f"POST {front.path} HTTP/1.1", [*headers.items(), ("Content-Length", str(len(body)))])

        async with front.connected() as (stream, writer), asyncio.timeout(DEADLINE_S):
            ping, body = (json.dumps(request(*one)).encode() for one in (("ping",), (method, params)))
            writer.write(head(ping) + ping)
            _, got = await read_head(stream)
            await read_body(stream, got, response=True)
            writer.write(head(body) + body[:10])
            while b"mcp_front_door_requests_in_flight 1" not in (await metrics.send("GET", {})).body:
                pass
            await draining(gateway)
            writer.write(body[10:])
            start, got = await read_head(stream)
            said = json.loads(await read_body(stream, got, response=True))
        assert start.split()[1] == str(status)
        if method == "initialize":
            assert (said["error"]["code"], got.get("Retry-After")) == (-32603, "1")
        else:
            assert json.loads(said["result"]["content"][0]["text"]) == TOOL
        await ended(gateway)
        assert len(upstream.calls("initialize")) == opened


async def test_a_command_whose_call_still_waits_at_the_end_is_told_of_the_cancel() -> None:
    async def tool(child: Puppet, message: Json) -> None:
        child.say({"id": "q", "method": ELICIT, "params": FORM})

    async with Puppets() as puppets:
        puppets.on["tools/call"] = tool
        async with running({"up": puppets.entry(scope="session")}, grace_s=0.3) as gateway:
            entries(await Modern(gateway.front("/up")).call())
            gateway.process.send_signal(signal.SIGTERM)
            await ended(gateway)
        cancel, call = await puppets.call("notifications/cancelled"), await puppets.call("tools/call")
        assert cancel["params"]["requestId"] == call["id"]
        await puppets.when(lambda: all(child.gone for child in puppets.children))
