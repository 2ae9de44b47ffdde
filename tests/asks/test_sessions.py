"""Every way in which an upstream session is opened for a modern call can carry asks: field report F2.

Specification: 2025-11-25 basic/lifecycle, basic/transports (Session Management).
"""

import pytest

from tests.asks.talk import ACCEPT, ELICIT, FORM, ROOTS, TOOL, Modern, asking, heard
from tests.gateway_process import running
from tests.peers import LEGACY, LegacyUpstream, ModernUpstream
from tests.scripted import Call, Err, Json

pytestmark = pytest.mark.field("F2")


async def asked_and_answered(client: Modern) -> None:
    done = await client.answer_all(await client.call(), ACCEPT)
    assert done.result["structuredContent"]["heard"] == [{"result": ACCEPT}], repr(done)


@pytest.mark.parametrize("get_stream", [True, False], ids=["with a GET stream", "without"])
@pytest.mark.parametrize("sessions", [True, False], ids=["with sessions", "without"])
async def test_the_first_call_and_the_next_in_the_same_session(sessions: bool, get_stream: bool) -> None:
    async with (
        LegacyUpstream(sessions=sessions, get_stream=get_stream) as upstream,
        running({"up": upstream}) as gateway,
    ):
        upstream.on["tools/call"] = asking()
        client = Modern(gateway.front("/up"))
        for _ in range(3):
            await asked_and_answered(client)
        assert len({seen.session for seen in upstream.calls("tools/call")}) == 1


async def test_a_call_after_its_session_was_lost() -> None:
    async with LegacyUpstream(get_stream=True) as upstream, running({"up": upstream}) as gateway:
        upstream.on["tools/call"] = asking()
        client = Modern(gateway.front("/up"))
        await asked_and_answered(client)
        upstream.live.clear()
        await asked_and_answered(client)
        first, second = list(dict.fromkeys(seen.session for seen in upstream.calls("tools/call") if seen.session))
        assert first != second
        told = upstream.opened[second].params["capabilities"]
        assert told == client.more["capabilities"]


async def test_a_call_after_the_upstream_has_changed_its_era() -> None:
    async with ModernUpstream() as modern, LegacyUpstream() as legacy, running({"up": modern}) as gateway:
        await gateway.front("/up").modern("tools/list", {})

        async def as_legacy(call: Call) -> bool:
            await legacy.serve(call)
            return True

        modern.on_http = as_legacy
        legacy.on["tools/call"] = asking()
        legacy.expect_reply = modern.expect_reply  # type: ignore[method-assign]
        legacy._waiting = modern._waiting
        client = Modern(gateway.front("/up"))
        refused = await client.call()
        assert "error" in refused.final, "a call is not sent twice"
        await asked_and_answered(client)


async def test_a_server_that_speaks_both_asks_a_modern_client_in_its_own_way() -> None:
    entry = {"resultType": "input_required", "inputRequests": {"k": {"method": ROOTS}}, "requestState": "s"}
    async with ModernUpstream() as upstream, running({"up": upstream}) as gateway:
        upstream.on["tools/call"] = entry
        upstream.on["initialize"] = {"protocolVersion": LEGACY, "capabilities": {"tools": {}}, "serverInfo": {}}
        asked = await Modern(gateway.front("/up")).call()
        assert asked.result["requestState"] == "s"
        assert upstream.calls("initialize") == []


async def test_an_ask_of_a_session_that_nobody_calls_in_is_refused() -> None:
    async with LegacyUpstream(get_stream=True) as upstream, running({"up": upstream}) as gateway:
        await Modern(gateway.front("/up"), {"name": "echo"}).call()
        for seen in upstream.calls("tools/call"):
            answer = await upstream.ask(ELICIT, FORM, session=seen.session)
            assert answer["error"]["code"] == -32601


async def test_an_ask_of_one_callers_session_is_never_put_to_another() -> None:
    """An upstream without session ids: its streams all look alike, and yet each is somebody's."""
    forward = {"forward_headers": ["X-User"]}
    async with (
        LegacyUpstream(sessions=False, get_stream=True) as upstream,
        running({"up": (upstream, forward)}) as gateway,
    ):
        streams: dict[str, Call] = {}

        async def watch(call: Call) -> bool:
            if call.seen.verb != "GET":
                return False
            await call.stream()
            streams.setdefault(call.seen.headers.get("X-User") or "", call)  # a later one is for lists
            await call.stay()
            return True

        async def tool(call: Call) -> Json:
            """Bob's call: what it asks for comes on Ann's stream first, by mistake, then on his own."""
            heard_of_ann = upstream.expect_reply("to ann")
            ask = {"jsonrpc": "2.0", "method": ELICIT, "params": FORM}
            await streams["ann"].event({"id": "to ann", **ask})
            refused = await heard_of_ann
            heard_of_bob = upstream.expect_reply("to bob")
            await streams["bob"].event({"id": "to bob", **ask})
            return heard(refused, await heard_of_bob)

        upstream.on_http = watch
        ann = Modern(gateway.front("/up"), headers={"X-User": "ann"})
        bob = Modern(gateway.front("/up"), headers={"X-User": "bob"})
        await ann.call()
        upstream.on["tools/call"] = tool
        done = await bob.answer_all(await bob.call(), ACCEPT)
        first, second = done.result["structuredContent"]["heard"]
        assert first["error"]["code"] == -32601
        assert second == {"result": ACCEPT}


@pytest.mark.parametrize("refusal", [409, 405, 503])
async def test_a_session_whose_stream_broke_is_heard_again(refusal: int) -> None:
    """Servers answer 409 to a second stream until they have noticed that the first is gone."""
    async with LegacyUpstream(get_stream=True) as upstream, running({"up": upstream}) as gateway:
        refused: set[str | None] = set()

        async def flaky(call: Call) -> bool:
            if call.seen.verb != "GET" or call.seen.session in refused:
                return False
            refused.add(call.seen.session)
            await call.reply(refusal)
            return True

        client = Modern(gateway.front("/up"))

        async def tool(call: Call) -> Json:
            return heard(await upstream.ask(ELICIT, FORM, session=call.seen.session))

        upstream.on["tools/call"] = tool
        await asked_and_answered(client)
        upstream.on_http = flaky
        for stream in tuple(upstream.streams.values()):
            stream.close()
        upstream.streams.clear()
        await asked_and_answered(client)
        assert upstream.calls("tools/call")[-1].session in refused


async def test_a_level_that_is_refused_spoils_no_call_that_asks() -> None:
    async with LegacyUpstream(get_stream=True) as upstream, running({"up": upstream}) as gateway:
        upstream.on["tools/call"] = asking()
        upstream.on["logging/setLevel"] = Err(-32602)
        level = {"io.modelcontextprotocol/logLevel": "debug"}
        await asked_and_answered(Modern(gateway.front("/up"), TOOL, meta=level))
