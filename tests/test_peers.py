"""The test peers against each other, without a gateway: what judges others must itself be right."""

import asyncio

import pytest

from tests.http_wire import SseReader
from tests.peers import LegacyUpstream, ModernUpstream
from tests.raw_front import Front, header_value, sentinel
from tests.scripted import Call, Err

FRAMINGS = {
    "LF": "id: 1\nevent: message\ndata: {}\n\n",
    "CRLF": "id: 1\r\nevent: message\r\ndata: {}\r\n\r\n",
    "CR": "id: 1\revent: message\rdata: {}\r\r",
    "no space after the colon": "id:1\ndata:{}\n\n",
    "a comment in the middle": "id: 1\n: hello\ndata: {}\n\n",
    "a byte order mark": "\ufeffid: 1\ndata: {}\n\n",
}


@pytest.mark.parametrize("name", FRAMINGS)
def test_the_event_reader_reads_every_framing_however_it_is_cut(name: str) -> None:
    data = FRAMINGS[name].encode()
    for size in (1, 2, 3, len(data)):
        reader = SseReader()
        pieces = [data[at : at + size] for at in range(0, len(data), size)]
        events = [event for piece in pieces for event in reader.feed(piece)] + [*reader.feed(b"", final=True)]
        assert [(event.id, event.event, event.data) for event in events] == [("1", "message", "{}")], size


def test_the_event_reader_drops_an_event_that_the_stream_ends_in() -> None:
    assert [*SseReader().feed(b"data: {}\n", final=True)] == []


def test_a_name_is_written_as_the_specification_shows() -> None:
    assert header_value("us-west1") == "us-west1"
    assert header_value(" padded ") == "=?base64?IHBhZGRlZCA=?="
    assert header_value("line1\nline2") == "=?base64?bGluZTEKbGluZTI=?="
    assert header_value("=?base64?literal?=") == "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="
    assert sentinel("Hello, 世界") == "=?base64?SGVsbG8sIOS4lueVjA==?="


async def test_a_scripted_legacy_upstream_keeps_sessions() -> None:
    async with LegacyUpstream() as upstream:
        front = Front(upstream.url)
        refused = await front.modern("server/discover")
        assert (refused.status, refused.code) == (400, -32600)
        session = await front.initialize()
        assert session.id in upstream.live
        assert (await session.request("tools/list")).result["tools"][0]["name"] == "echo"
        assert (
            '"arguments": {"a": 1}'
            in (await session.request("tools/call", {"name": "echo", "arguments": {"a": 1}})).said
        )
        assert (await session.delete()).status == 200
        assert (await session.request("tools/list")).status == 404


async def test_a_scripted_legacy_upstream_asks_on_the_call_and_on_the_get_stream() -> None:
    async def asking(call: Call) -> dict[str, object]:
        return {"content": [], "got": (await call.ask("roots/list", {}))["result"]}

    async with LegacyUpstream(get_stream=True) as upstream:
        upstream.on["tools/call"] = asking
        session = await Front(upstream.url).initialize()
        async with session.open("tools/call", {"name": "t"}, ident=7) as opened:
            asked = await opened.message()
            assert asked is not None
            assert (await session.reply(asked["id"], {"result": {"roots": []}})).status == 202
            assert await opened.rest() == [{"jsonrpc": "2.0", "id": 7, "result": {"content": [], "got": {"roots": []}}}]
        async with session.get() as stream:
            waiting = asyncio.create_task(upstream.ask("ping", {}))
            asked = await stream.message()
            assert asked is not None
            await session.reply(asked["id"], {"result": {}})
            assert (await waiting)["result"] == {}


async def test_a_scripted_modern_upstream_answers_discover_and_knows_no_initialize() -> None:
    async with ModernUpstream() as upstream:
        front = Front(upstream.url)
        found = await front.modern("server/discover", ident="a")
        assert found.final["id"] == "a"
        assert found.result["supportedVersions"] == ["2026-07-28"]
        assert (await front.post({"jsonrpc": "2.0", "id": 1, "method": "initialize"})).status == 404
        upstream.on["tools/call"] = Err(-32602, status=400)
        refused = await front.modern("tools/call", {"name": "größe"})
        assert (refused.status, refused.code) == (400, -32602)
        assert upstream.calls("tools/call")[0].headers.get("Mcp-Name") == sentinel("größe")


async def test_a_scripted_upstream_sees_its_caller_go_and_can_cut_it_off() -> None:
    left = asyncio.Event()

    async def slow(call: Call) -> None:
        await call.notify("notifications/progress", {})
        await call.gone()
        left.set()

    async def cut(call: Call) -> None:
        await call.notify("notifications/progress", {})
        call.reset()

    async with ModernUpstream() as upstream:
        front = Front(upstream.url)
        upstream.on["tools/call"] = slow
        async with front.modern_open("tools/call", {"name": "t"}) as opened:
            assert await opened.message() is not None
            opened.reset()
        await asyncio.wait_for(left.wait(), 10)
        upstream.on["tools/call"] = cut
        answer = await front.modern("tools/call", {"name": "t"})
        assert (len(answer.messages), answer.ended) == (1, False)


async def test_a_mistake_in_a_script_is_not_lost() -> None:
    async def wrong(call: Call) -> None:
        raise KeyError("mistake")

    upstream = ModernUpstream()
    async with upstream:
        upstream.on["tools/call"] = wrong
        with pytest.raises(EOFError):
            await Front(upstream.url).modern("tools/call", {"name": "t"})
        with pytest.raises(KeyError):
            upstream.check()
