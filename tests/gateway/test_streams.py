"""The streams of legacy sessions over a real socket: priming, ids, resumption, the standalone stream.

Specification: 2025-11-25 basic/transports, Resumability and Redelivery, Listening for Messages from the Server.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import pytest_asyncio

from tests.gateway_process import GatewayProcess, running
from tests.http_wire import SseEvent
from tests.peers import CAPABILITIES, LegacyUpstream, ModernUpstream
from tests.raw_front import Front, Open, Session
from tests.scripted import Call, Json

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHANGING = {**CAPABILITIES, "tools": {"listChanged": True}, "prompts": {"listChanged": True}}
TOOLS_CHANGED = "notifications/tools/list_changed"
ERAS = pytest.mark.parametrize("era", ["legacy", "modern"])


@dataclass(frozen=True, slots=True)
class House:
    gateway: GatewayProcess
    legacy: LegacyUpstream
    modern: ModernUpstream

    def front(self, era: str) -> Front:
        return self.gateway.front(f"/{era}")

    async def change(self, era: str) -> None:
        """The upstream's tools change."""
        if era == "legacy":
            await self.legacy.push({"jsonrpc": "2.0", "method": TOOLS_CHANGED})
        else:
            await self.modern.push(TOOLS_CHANGED, {})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def house() -> AsyncIterator[House]:
    async def three_steps(call: Call) -> Json:
        for step in (1, 2, 3):
            params = {"progressToken": call.seen.meta["progressToken"], "progress": step}
            await call.notify("notifications/progress", params)
        return {"content": [], "structuredContent": {"done": True}}

    async with (
        LegacyUpstream(get_stream=True, capabilities=CHANGING) as legacy,
        ModernUpstream(capabilities=CHANGING) as modern,
        running({"legacy": legacy, "modern": modern}) as gateway,
    ):
        legacy.on["tools/call"] = modern.on["tools/call"] = three_steps
        yield House(gateway, legacy, modern)


CALL: Json = {"name": "t", "_meta": {"progressToken": "p"}}


async def events(stream: Open) -> list[SseEvent]:
    found = []
    while (event := await stream.event()) is not None:
        found.append(event)
    return found


@ERAS
async def test_a_stream_of_2025_11_25_begins_with_an_empty_event_to_resume_from(house: House, era: str) -> None:
    session = await house.front(era).initialize("2025-11-25")
    async with session.open("tools/call", CALL) as stream:
        first = await stream.event()
        assert first is not None
        assert first.data == ""
        assert first.id
        assert first.retry is not None
        assert len(await stream.rest()) == 4


@ERAS
@pytest.mark.parametrize("version", ["2025-06-18", "2025-03-26"])
async def test_older_streams_begin_with_a_message(house: House, era: str, version: str) -> None:
    session = await house.front(era).initialize(version)
    async with session.open("tools/call", CALL) as stream:
        every = await events(stream)
    assert all(event.data for event in every), "older TypeScript clients cannot read an empty event"
    assert all(event.retry is None for event in every)
    assert len(every) == 4


@ERAS
async def test_a_stream_can_be_resumed_after_any_of_its_events(house: House, era: str) -> None:
    session = await house.front(era).initialize()
    async with session.open("tools/call", CALL, ident=5) as stream:
        every = await events(stream)
    ids = [event.id for event in every]
    assert None not in ids
    assert len(set(ids)) == len(ids)
    for place, event in enumerate(every):
        async with session.get({"Last-Event-ID": event.id}) as resumed:
            assert resumed.status == 200
            again = [(each.id, each.data) for each in await events(resumed) if each.data]
        assert again == [(each.id, each.data) for each in every[place + 1 :]]


@ERAS
async def test_nobody_resumes_anothers_stream(house: House, era: str) -> None:
    owner, other = await house.front(era).initialize(), await house.front(era).initialize()
    async with owner.open("tools/call", CALL) as stream:
        every = await events(stream)
    async with other.get({"Last-Event-ID": every[1].id}) as strayed:
        assert strayed.status in (400, 404)
    for bogus in ("nonsense", "", "0", (every[1].id or "") + "9", (every[1].id or "")[:-2]):
        async with owner.get({"Last-Event-ID": bogus}) as unknown:
            found = (
                [message for message in await unknown.rest() if "result" in message] if unknown.status == 200 else []
            )
            assert found == [], bogus


@pytest.mark.field("I8")
@ERAS
async def test_a_change_is_told_on_the_standalone_stream(house: House, era: str) -> None:
    session = await house.front(era).initialize()
    assert session.result["capabilities"]["tools"]["listChanged"] is True
    async with session.get() as stream:
        await listening(house, era, session)
        await house.change(era)
        message = await stream.message()
        assert message is not None
        assert message["method"] == TOOLS_CHANGED
        assert "io.modelcontextprotocol/subscriptionId" not in message.get("params", {}).get("_meta", {})


async def listening(house: House, era: str, session: Session) -> None:
    """Waits until the upstream's side of the session's standalone stream is open."""
    if era == "legacy":
        inner = list(house.legacy.opened)[-1]
        await house.legacy.when(lambda: inner in house.legacy.streams)
    else:
        await house.modern.when(lambda: bool(house.modern.listeners))


async def test_a_second_standalone_stream_takes_over_from_the_first(house: House) -> None:
    session = await house.front("legacy").initialize()
    async with session.get() as first:
        await listening(house, "legacy", session)
        inner = list(house.legacy.opened)[-1]
        async with session.get() as second:
            assert await first.rest() == [], "the first one ends"
            await house.legacy.push({"jsonrpc": "2.0", "method": TOOLS_CHANGED}, inner)
            message = await second.message()
            assert message is not None
            assert message["method"] == TOOLS_CHANGED


async def test_what_nobody_asked_for_comes_on_the_standalone_stream_and_what_belongs_to_a_call_on_its_own(
    house: House,
) -> None:
    session = await house.front("legacy").initialize()
    async with session.get() as stream:
        await listening(house, "legacy", session)
        inner = list(house.legacy.opened)[-1]
        answer = await session.request("tools/call", CALL)
        assert [note["method"] for note in answer.notes] == ["notifications/progress"] * 3
        log = {"level": "info", "data": "unasked"}
        await house.legacy.push({"jsonrpc": "2.0", "method": "notifications/message", "params": log}, inner)
        message = await stream.message()
        assert message is not None
        assert (message["method"], message["params"]) == ("notifications/message", log)


async def test_an_upstream_without_a_standalone_stream_has_none_here() -> None:
    async with LegacyUpstream() as upstream, running({"u": upstream}) as gateway:
        session = await gateway.front("/u").initialize()
        async with session.get() as stream:
            assert stream.status == 405
            allowed = {verb.strip() for verb in (stream.headers.get("Allow") or "").split(",")}
            assert allowed == {"POST", "DELETE"}
        assert "result" in (await session.request("tools/list")).final


@ERAS
async def test_a_modern_client_hears_what_it_asked_for_tagged_with_its_own_id(house: House, era: str) -> None:
    wanted = {"notifications": {"toolsListChanged": True}}
    async with house.front(era).modern_open("subscriptions/listen", wanted, ident=7) as stream:
        acknowledged = await stream.message()
        assert acknowledged is not None
        assert acknowledged["params"]["notifications"] == {"toolsListChanged": True}
        await house.change(era)
        told = await stream.message()
        assert told is not None
        assert told["method"] == TOOLS_CHANGED
        for message in (acknowledged, told):
            subscription = message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"]
            assert (type(subscription), subscription) == (int, 7)
