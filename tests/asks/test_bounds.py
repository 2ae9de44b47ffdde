"""Whatever waits is bounded: parked calls and leased sessions of a caller, and what comes back when it is over.

Specification: 2026-07-28 basic/patterns/mrtr. The bounds themselves are the gateway's.
"""

import asyncio

import pytest

from gateway.parking import MAX_PER_PRINCIPAL
from gateway.upstreams.sessions import MAX_EXCLUSIVE
from tests.asks.talk import ACCEPT, ELICIT, FORM, ROOTS, TOOL, Modern, asking, entries, heard
from tests.gateway_process import running
from tests.peers import LegacyUpstream
from tests.scripted import Call, Json, response

FORWARD = {"forward_headers": ["X-User"]}


async def test_a_caller_has_so_many_calls_waiting_and_no_more_and_others_are_not_touched() -> None:
    async with LegacyUpstream() as upstream, running({"up": (upstream, FORWARD)}) as gateway:
        upstream.on["tools/call"] = asking()
        ann = Modern(gateway.front("/up"), headers={"X-User": "ann"})
        bob = Modern(gateway.front("/up"), headers={"X-User": "bob"})
        asked = await asyncio.gather(*(ann.call() for _ in range(MAX_PER_PRINCIPAL)))
        for one in asked:
            entries(one)
        refused = await ann.call()
        assert refused.status == 429
        await upstream.seen("notifications/cancelled")
        assert "result" in (await bob.answer_all(await bob.call(), ACCEPT)).final
        assert "result" in (await ann.answer_all(asked[0], ACCEPT)).final
        asked = [*asked[1:], await ann.call()]
        done = await asyncio.gather(*(ann.answer_all(one, ACCEPT) for one in asked))
        assert all(one.result["structuredContent"]["heard"] == [{"result": ACCEPT}] for one in done)


async def test_a_caller_has_so_many_sessions_for_calls_that_may_ask_and_they_come_back() -> None:
    release = asyncio.Event()

    async def slow(call: Call) -> Json:
        await release.wait()
        return {"content": []}

    async with LegacyUpstream() as upstream, running({"up": (upstream, FORWARD)}) as gateway:
        upstream.on["tools/call"] = slow
        ann = Modern(gateway.front("/up"), headers={"X-User": "ann"})
        running_calls = [asyncio.ensure_future(ann.call()) for _ in range(MAX_EXCLUSIVE)]
        await upstream.seen("tools/call", MAX_EXCLUSIVE)
        refused = await ann.call()
        assert refused.status == 429
        plain = asyncio.ensure_future(ann.call(capabilities={}))  # shares a session
        bob = asyncio.ensure_future(Modern(gateway.front("/up"), headers={"X-User": "bob"}).call())
        await upstream.seen("tools/call", MAX_EXCLUSIVE + 2)
        release.set()
        for done in await asyncio.gather(*running_calls, plain, bob):
            assert "result" in done.final
        assert "result" in (await ann.call()).final
        assert len({seen.session for seen in upstream.calls("tools/call")}) == MAX_EXCLUSIVE + 2


async def test_a_session_whose_caller_left_while_it_was_opened_can_be_leased_again() -> None:
    async with LegacyUpstream() as upstream, running({"up": (upstream, FORWARD)}) as gateway:
        ann = Modern(gateway.front("/up"), headers={"X-User": "ann"})
        await ann.call(capabilities={})
        opening, go_on = asyncio.Event(), asyncio.Event()

        async def slowly(call: Call) -> bool:
            if call.seen.method == "initialize":
                opening.set()
                await go_on.wait()
            return False

        upstream.on_http = slowly
        leaving = asyncio.ensure_future(ann.call())
        await asyncio.wait_for(opening.wait(), 10)
        leaving.cancel()
        await asyncio.wait({leaving})
        assert (await gateway.front("/up").modern("server/discover")).status == 200
        go_on.set()
        for _ in range(3):
            assert "result" in (await ann.call()).final
        asking_sessions = {seen.session for seen in upstream.calls("tools/call")[1:]}
        assert len(asking_sessions) == 1


async def test_asks_without_end_are_rounds_without_end_but_each_call_ends() -> None:
    """A server that asks on and on holds its own call alone."""

    async def tool(call: Call) -> Json:
        answers = [await call.ask(ROOTS, {}) for _ in range(25)]
        return heard(*answers)

    async with LegacyUpstream() as upstream, running({"up": upstream}) as gateway:
        upstream.on["tools/call"] = tool
        client = Modern(gateway.front("/up"))
        answer, rounds = await client.call(), 0
        while answer.result["resultType"] == "input_required":
            rounds += 1
            answer = await client.answer_all(answer, {"roots": []})
        assert rounds == 25


async def test_many_asks_of_one_call_are_one_round() -> None:
    async def tool(call: Call) -> Json:
        await call.stream()
        return heard(*await asyncio.gather(*(call.ask(ELICIT, FORM | {"message": str(n)}) for n in range(50))))

    async with LegacyUpstream() as upstream, running({"up": upstream}) as gateway:
        upstream.on["tools/call"] = tool
        client = Modern(gateway.front("/up"), TOOL)
        answer, shown = await client.call(), 0
        while answer.result["resultType"] == "input_required":
            keys = entries(answer)
            shown += len(keys)
            answers = {key: {"n": entry["params"]["message"]} for key, entry in keys.items()}
            answer = await client.retry(answer, answers)
        assert shown == 50
        assert [one["result"]["n"] for one in answer.result["structuredContent"]["heard"]] == [
            str(n) for n in range(50)
        ]


@pytest.mark.parametrize("streams", [True, False], ids=["that streams", "that answers with plain JSON"])
async def test_a_slow_human_is_no_silence_of_an_upstream(streams: bool) -> None:
    """Servers on the TypeScript SDK 1.x ask on the GET stream; the call itself is silent meanwhile."""
    bounds = {"timeouts": {"first_byte_s": 0.5, "idle_s": 0.5, "probe_s": 5}}

    async def tool(call: Call) -> Json:
        if streams:
            await call.stream()
        return heard(await upstream.ask(ELICIT, FORM, session=call.seen.session))

    async def hangs(call: Call) -> None:
        if streams:
            await call.stream()
        await call.gone()
        call.close()

    async with LegacyUpstream(get_stream=True) as upstream, running({"up": (upstream, bounds)}) as gateway:
        upstream.on["tools/call"] = tool
        client = Modern(gateway.front("/up"))
        asked = await client.call()
        await asyncio.sleep(1.5)  # the human
        done = await client.answer_all(asked, ACCEPT)
        assert done.result["structuredContent"]["heard"] == [{"result": ACCEPT}]
        upstream.on["tools/call"] = hangs
        assert (await client.call()).status == 504


@pytest.mark.parametrize("how", ["on a stream", "as plain JSON", "on a stream that was resumed"])
async def test_the_silence_of_an_upstream_is_counted_from_the_answer_that_it_waited_for(how: str) -> None:
    """Neither the human nor the tool takes as long as the bound, but both together do."""
    bounds = {"timeouts": {"first_byte_s": 1.5, "idle_s": 1.5, "probe_s": 5}}
    tool_s = human_s = 1.0
    called: list[Call] = []

    async def work(call: Call) -> Json:
        result = heard(await upstream.ask(ELICIT, FORM, session=call.seen.session))
        await asyncio.sleep(tool_s)
        return result

    async def tool(call: Call) -> Json | None:
        if how != "as plain JSON":
            await call.stream()
        if how != "on a stream that was resumed":
            return await work(call)
        called.append(call)
        await call.write(b"id: first\nretry: 100\ndata:\n\n")
        await call.end()
        return None

    async def on_http(call: Call) -> bool:
        if call.seen.headers.get("Last-Event-ID") is None:
            return False
        await call.stream()
        await call.event(response(called[0].seen.id, await work(call)))
        await call.end()
        return True

    async with LegacyUpstream(get_stream=True) as upstream, running({"up": (upstream, bounds)}) as gateway:
        upstream.on["tools/call"], upstream.on_http = tool, on_http
        client = Modern(gateway.front("/up"))
        asked = await client.call()
        await asyncio.sleep(human_s)
        done = await client.answer_all(asked, ACCEPT)
        assert done.result["structuredContent"]["heard"] == [{"result": ACCEPT}]
