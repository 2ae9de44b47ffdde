"""`timeouts.total_s` is an upstream's time for one call: a human's, while a question is open, is none of it."""

import asyncio

import pytest

from tests.asks.talk import ACCEPT, ELICIT, EVERYTHING, FORM, TOOL, Modern, heard, next_ask
from tests.gateway_process import running
from tests.peers import LegacyUpstream, ModernUpstream
from tests.scripted import Call, Json

TOTAL_S = 1.0
BOUNDS = {"timeouts": {"first_byte_s": TOTAL_S, "total_s": TOTAL_S, "probe_s": 5}}
THINKS_S = 1.5
"""Longer than the upstream's whole time."""
WANTS: Json = {
    "resultType": "input_required",
    "inputRequests": {"k": {"method": ELICIT, "params": FORM}},
    "requestState": "s",
}


async def asks_twice(call: Call) -> Json:
    return heard(await call.ask(ELICIT, FORM), await call.ask(ELICIT, FORM))


async def asks_and_hangs(call: Call) -> None:
    await call.ask(ELICIT, FORM)
    await call.gone()
    call.close()


@pytest.mark.parametrize("hangs", [False, True], ids=["and then goes on", "and then hangs"])
async def test_a_modern_client_may_think_for_longer_than_its_server_may_take(hangs: bool) -> None:
    async with LegacyUpstream() as upstream, running({"up": (upstream, BOUNDS)}) as gateway:
        upstream.on["tools/call"] = asks_and_hangs if hangs else asks_twice
        client = Modern(gateway.front("/up"))
        answer = await client.call()
        await asyncio.sleep(THINKS_S)  # the human
        answer = await client.answer_all(answer, ACCEPT)
        if hangs:
            assert (answer.status, answer.code) == (504, -32603)
            await upstream.seen("notifications/cancelled")
        else:
            await asyncio.sleep(THINKS_S)
            done = await client.answer_all(answer, ACCEPT)
            assert done.result["structuredContent"]["heard"] == [{"result": ACCEPT}] * 2


@pytest.mark.parametrize("hangs", [False, True], ids=["and then goes on", "and then hangs"])
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_so_may_one_with_a_session(era: str, hangs: bool) -> None:
    async def wants(call: Call) -> Json | None:
        if "inputResponses" not in call.seen.params:
            return WANTS
        if hangs:
            await call.gone()
            call.close()
            return None
        return heard({"result": call.seen.params["inputResponses"]["k"]})

    async with (
        LegacyUpstream() as legacy,
        ModernUpstream() as modern,
        running({"legacy": (legacy, BOUNDS), "modern": (modern, BOUNDS)}) as gateway,
    ):
        legacy.on["tools/call"] = asks_and_hangs if hangs else asks_twice
        modern.on["tools/call"] = wants
        session = await gateway.front(f"/{era}").initialize(capabilities=EVERYTHING)
        async with session.open("tools/call", TOOL) as opened:
            for _ in range(2 if era == "legacy" and not hangs else 1):
                ask = await next_ask(opened)
                await asyncio.sleep(THINKS_S)  # the human
                await session.reply(ask["id"], {"result": ACCEPT})
            [final] = await opened.rest()
        if hangs:
            assert final["error"]["code"] == -32603
        else:
            assert final["result"]["structuredContent"]["heard"][0] == {"result": ACCEPT}
