"""Client, gateway and upstream each go away in mid-ask: what the others see, and that nothing is left behind.

Specification: 2026-07-28 basic/patterns/{mrtr,cancellation}; 2025-11-25 basic/transports, basic/utilities/cancellation.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.asks.talk import ACCEPT, ELICIT, EVERYTHING, FOREIGN_STATE, FORM, TOOL, Modern, asking, entries, next_ask
from tests.gateway_process import GatewayProcess, running
from tests.http_wire import DEADLINE_S
from tests.peers import LegacyUpstream, ModernUpstream
from tests.scripted import Call, Json

WANTS: Json = {
    "resultType": "input_required",
    "inputRequests": {"k": {"method": ELICIT, "params": FORM}},
    "requestState": "s",
}


@dataclass
class Upstreams:
    legacy: LegacyUpstream
    modern: ModernUpstream
    gateway: GatewayProcess


@asynccontextmanager
async def house(**more: object) -> AsyncIterator[Upstreams]:
    async with (
        LegacyUpstream(get_stream=True) as legacy,
        ModernUpstream() as modern,
        running({"legacy": legacy, "modern": modern}, **more) as gateway,
    ):
        yield Upstreams(legacy, modern, gateway)


async def cancelled(legacy: LegacyUpstream) -> None:
    """Waits until the upstream is told that nobody waits for its one call."""
    [told] = await legacy.seen("notifications/cancelled")
    [call] = legacy.calls("tools/call")
    assert told.params["requestId"] == call.id
    assert told.session == call.session


def hanging(gone: asyncio.Event) -> Callable[[Call], Awaitable[Json | None]]:
    """A legacy tool that asks and waits for its answer until the gateway hangs up."""

    async def tool(call: Call) -> None:
        await call.event({"jsonrpc": "2.0", "id": "ask-x", "method": ELICIT, "params": FORM})
        await call.gone()
        gone.set()

    return tool


# a modern client over a legacy upstream


async def test_a_client_that_never_comes_back_is_given_up_and_the_upstream_told() -> None:
    gone = asyncio.Event()
    async with house(streams={"ask_ttl_s": 1}) as at:
        at.legacy.on["tools/call"] = hanging(gone)
        client = Modern(at.gateway.front("/legacy"))
        asked = await client.call()
        await cancelled(at.legacy)
        await asyncio.wait_for(gone.wait(), DEADLINE_S)
        refused = await client.answer_all(asked, ACCEPT)
        assert refused.code == FOREIGN_STATE


async def test_a_client_that_leaves_during_its_retry_cancels_the_call() -> None:
    gone = asyncio.Event()

    async def tool(call: Call) -> None:
        await call.ask(ELICIT, FORM)
        answered.set()
        await call.gone()
        gone.set()

    answered = asyncio.Event()
    async with house() as at:
        at.legacy.on["tools/call"] = tool
        front = at.gateway.front("/legacy")
        client = Modern(front, meta={"progressToken": 1})
        asked = await client.call()
        retry = client.again(asked, dict.fromkeys(entries(asked), ACCEPT))
        opening = asyncio.ensure_future(_open_and_leave(client, retry, answered))
        await opening
        await cancelled(at.legacy)
        await asyncio.wait_for(gone.wait(), DEADLINE_S)


async def _open_and_leave(client: Modern, params: Json, answered: asyncio.Event) -> None:
    """POSTs a retry, and closes the connection when the upstream has the answer."""
    posting = asyncio.ensure_future(client.front.modern("tools/call", params, capabilities=EVERYTHING))
    await asyncio.wait_for(answered.wait(), DEADLINE_S)
    posting.cancel()
    await asyncio.wait({posting})


async def test_a_client_that_leaves_before_it_is_asked_cancels_the_call() -> None:
    started, gone = asyncio.Event(), asyncio.Event()

    async def tool(call: Call) -> None:
        await call.stream()
        started.set()
        await call.gone()
        gone.set()

    async with house() as at:
        at.legacy.on["tools/call"] = tool
        await _open_and_leave(Modern(at.gateway.front("/legacy")), TOOL, started)
        await cancelled(at.legacy)
        await asyncio.wait_for(gone.wait(), DEADLINE_S)


UPSTREAM_ENDS: dict[str, Callable[[Call], None]] = {"a reset": Call.reset, "the end of the connection": Call.close}


@pytest.mark.parametrize("name", UPSTREAM_ENDS)
@pytest.mark.parametrize("waiting", [True, False], ids=["while the client thinks", "when it has answered"])
async def test_an_upstream_that_goes_is_an_error_of_the_call(name: str, waiting: bool) -> None:
    thinking = asyncio.Event()

    async def tool(call: Call) -> None:
        if waiting:
            await call.event({"jsonrpc": "2.0", "id": "ask-y", "method": ELICIT, "params": FORM})
            await thinking.wait()
        else:
            await call.ask(ELICIT, FORM)
        UPSTREAM_ENDS[name](call)

    async with house() as at:
        at.legacy.on["tools/call"] = tool
        client = Modern(at.gateway.front("/legacy"))
        asked = await client.call()
        thinking.set()
        answer = await client.retry(asked, {} if waiting else dict.fromkeys(entries(asked), ACCEPT))
        while "result" in answer.final:  # not noticed yet
            answer = await client.retry(answer, {})
        assert (answer.status, answer.code) == (502, -32603)
        assert len(at.legacy.calls("tools/call")) == 1, "it may have run"


async def test_an_upstream_that_is_gone_altogether_is_an_error_and_the_next_call_works_when_it_is_back() -> None:
    async with house() as at:
        at.legacy.on["tools/call"] = asking()
        client = Modern(at.gateway.front("/legacy"))
        asked = await client.call()
        await at.legacy.stop()
        answer = await client.answer_all(asked, ACCEPT)
        while "result" in answer.final:
            answer = await client.retry(answer, {})
        assert answer.status in (502, 503)
        at.legacy.live.clear()
        await at.legacy.start()
        done = await client.answer_all(await client.call(), ACCEPT)
        assert done.result["structuredContent"]["heard"] == [{"result": ACCEPT}]


async def test_a_gateway_that_stops_cancels_what_waits_and_its_successor_knows_no_state_of_it() -> None:
    gone = asyncio.Event()
    key = "k1:" + "A" * 43
    async with LegacyUpstream(get_stream=True) as legacy:
        legacy.on["tools/call"] = hanging(gone)
        async with running({"legacy": legacy}, keys=[key]) as gateway:
            asked = await Modern(gateway.front("/legacy")).call()
        await cancelled(legacy)
        await asyncio.wait_for(gone.wait(), DEADLINE_S)
        assert legacy.live == set(), "its sessions are deleted"
        async with running({"legacy": legacy}, keys=[key]) as gateway:
            refused = await Modern(gateway.front("/legacy")).answer_all(asked, ACCEPT)
            assert (refused.status, refused.code) == (400, FOREIGN_STATE)


async def test_a_gateway_that_is_killed_leaves_no_call_of_its_upstream_waiting() -> None:
    gone = asyncio.Event()
    async with LegacyUpstream(get_stream=True) as legacy:
        legacy.on["tools/call"] = hanging(gone)
        with tempfile.TemporaryDirectory() as folder:
            arguments = ["serve", "--upstream", legacy.url, "--listen", "127.0.0.1:0"]
            gateway = await GatewayProcess.start(arguments, Path(folder))
            await Modern(gateway.front()).call()
            gateway.process.kill()
            await gateway.process.wait()
        await asyncio.wait_for(gone.wait(), DEADLINE_S)


@pytest.mark.parametrize("on_get", [False, True], ids=["on its stream", "on the GET stream"])
async def test_a_call_that_waits_survives_a_new_configuration(on_get: bool) -> None:
    """The upstream is configured anew: the call ends where it began, its successors go by the new configuration."""
    async with LegacyUpstream(get_stream=True) as legacy, running({"legacy": legacy}) as gateway:

        async def tool(call: Call) -> Json:
            heard = []
            for _ in range(2):
                asked = legacy.ask(ELICIT, FORM, session=call.seen.session) if on_get else call.ask(ELICIT, FORM)
                heard.append((await asked)["result"])
            return {"content": [], "structuredContent": {"heard": heard}}

        legacy.on["tools/call"] = tool
        client = Modern(gateway.front("/legacy"))
        asked = await client.call()
        file = gateway.log.with_name("gateway.yaml")
        file.write_text(file.read_text().replace('"url"', '"timeouts": {"connect_s": 4.5}, "url"'))
        await legacy.seen("initialize", len(legacy.calls("initialize")) + 1)  # the new one is described
        again = await client.answer_all(asked, ACCEPT)
        done = await client.answer_all(again, {"action": "decline"})
        assert done.result["structuredContent"]["heard"] == [ACCEPT, {"action": "decline"}]


# a legacy client over a modern upstream


async def test_a_legacy_client_that_ends_its_session_ends_the_call_and_its_asks() -> None:
    async with house() as at:
        at.modern.on["tools/call"] = WANTS
        session = await at.gateway.front("/modern").initialize(capabilities=EVERYTHING)
        async with session.open("tools/call", TOOL) as opened:
            ask = await next_ask(opened)
            assert (await session.delete()).status == 200
            assert await opened.rest() == []
        assert (await session.reply(ask["id"], {"result": ACCEPT})).status == 404
        assert len(at.modern.calls("tools/call")) == 1


async def test_a_legacy_client_that_cancels_is_asked_no_more() -> None:
    async with house() as at:
        at.modern.on["tools/call"] = WANTS
        session = await at.gateway.front("/modern").initialize(capabilities=EVERYTHING)
        async with session.open("tools/call", TOOL, ident="c") as opened:
            ask = await next_ask(opened)
            await session.notify("notifications/cancelled", {"requestId": "c"})
            assert await opened.rest() == []
        assert (await session.reply(ask["id"], {"result": ACCEPT})).status == 202
        assert (await session.request("tools/list")).status == 200
        assert len(at.modern.calls("tools/call")) == 1


async def test_a_legacy_client_that_loses_its_stream_answers_and_resumes_it() -> None:
    async with house() as at:

        async def tool(call: Call) -> Json:
            got = call.seen.params.get("inputResponses")
            return WANTS if got is None else {"content": [], "structuredContent": got}

        at.modern.on["tools/call"] = tool
        session = await at.gateway.front("/modern").initialize(capabilities=EVERYTHING)
        async with session.open("tools/call", TOOL, ident="c") as opened:
            last = None
            while (event := await opened.event()) is not None:
                last = event.id
                if event.data:
                    ask = event.json
                    break
            opened.reset()
        assert (await session.reply(ask["id"], {"result": ACCEPT})).status == 202
        async with session.get({"Last-Event-ID": str(last)}) as resumed:
            [final] = await resumed.rest()
        assert (final["id"], final["result"]["structuredContent"]) == ("c", {"k": ACCEPT})


async def test_a_modern_upstream_that_goes_between_two_rounds_is_an_error_of_the_call() -> None:
    async with house() as at:
        at.modern.on["tools/call"] = WANTS
        session = await at.gateway.front("/modern").initialize(capabilities=EVERYTHING)
        async with session.open("tools/call", TOOL) as opened:
            ask = await next_ask(opened)
            await at.modern.stop()
            await session.reply(ask["id"], {"result": ACCEPT})
            [final] = await opened.rest()
        assert final["error"]["code"] == -32603
        await at.modern.start()


async def test_a_gateway_that_stops_while_a_legacy_client_is_asked_ends_in_time() -> None:
    async with ModernUpstream() as modern, running({"modern": modern}, grace_s=0) as gateway:
        modern.on["tools/call"] = WANTS
        session = await gateway.front("/modern").initialize(capabilities=EVERYTHING)
        async with session.open("tools/call", TOOL) as opened:
            await next_ask(opened)
            await gateway.stop()
