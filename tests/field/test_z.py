"""Field reports Z4, Z6: streams that end early, at the upstream's side or the client's, and what they leave behind."""

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest

from tests.door import Door
from tests.field.pairs import PAIRS, ask, ask_pair, every_pair
from tests.gateway_process import running
from tests.peers import CAPABILITIES, LegacyUpstream, ModernUpstream
from tests.raw_front import Front, Session
from tests.scripted import Call, Json, response


async def only_the_head(call: Call) -> None:
    await call.stream()
    call.reset()


async def the_head_and_a_proper_end(call: Call) -> None:
    await call.stream()
    await call.end()


async def progress_and_a_proper_end(call: Call) -> None:
    await call.notify("notifications/progress", {"progressToken": call.seen.meta.get("progressToken"), "progress": 1})
    await call.end()


async def progress_and_the_end_of_the_connection(call: Call) -> None:
    await call.notify("notifications/progress", {"progressToken": call.seen.meta.get("progressToken"), "progress": 1})
    call.close()


EARLY = {
    "only the head": only_the_head,
    "the head and a proper end": the_head_and_a_proper_end,
    "progress and a proper end": progress_and_a_proper_end,
    "progress and the end of the connection": progress_and_the_end_of_the_connection,
}


@pytest.mark.field("Z4")
@every_pair
@pytest.mark.parametrize("name", EARLY)
async def test_a_stream_that_ends_early_is_one_error(door: Door, front_era: str, upstream_era: str, name: str) -> None:
    door.upstream(upstream_era).on["tools/call"] = EARLY[name]
    answer = await ask_pair(door, (front_era, upstream_era), "tools/call", {"name": "t"}, ident="z")
    assert answer.final["id"] == "z"
    assert answer.error["message"]
    assert answer.ended
    assert len(door.upstream(upstream_era).calls("tools/call")) == 1


@pytest.mark.field("Z4")
@pytest.mark.parametrize("front_era", ["modern", "legacy"])
async def test_a_legacy_stream_with_event_ids_is_taken_up_where_it_stopped(door: Door, front_era: str) -> None:
    called: list[Call] = []

    async def tool(call: Call) -> None:
        called.append(call)
        await call.stream()
        await call.write(b"id: first\nretry: 10\ndata:\n\n")
        await call.end()

    async def on_http(call: Call) -> bool:
        if call.seen.headers.get("Last-Event-ID") is None:
            return False
        assert call.seen.headers.get("Last-Event-ID") == "first"
        assert call.seen.session == called[0].seen.session
        result: Json = {"content": [], "structuredContent": {"resumed": True}}
        await call.event(response(called[0].seen.id, result), ident="second")
        await call.end()
        return True

    door.legacy.on["tools/call"] = tool
    door.legacy.on_http = on_http
    answer = await ask_pair(door, (front_era, "legacy"), "tools/call", {"name": "t"}, ident="z")
    assert answer.result["structuredContent"] == {"resumed": True}
    assert len(door.legacy.calls("tools/call")) == 1, "the call itself is never sent again"


async def refuses(call: Call) -> None:
    await call.reply(405)


async def brings_nothing(call: Call) -> None:
    await call.stream()
    await call.end()


async def breaks(call: Call) -> None:
    call.reset()


TAKEN_UP: dict[str, tuple[Callable[[Call], Awaitable[None]], int]] = {
    "refused": (refuses, 1),
    "in vain": (brings_nothing, 5),
    "broken off": (breaks, 2),
}
"""How the upstream answers who takes up its stream, and how often it is asked at most."""


@pytest.mark.field("Z4")
@pytest.mark.parametrize("front_era", ["modern", "legacy"])
@pytest.mark.parametrize("how", TAKEN_UP)
async def test_a_stream_that_cannot_be_taken_up_is_one_error(door: Door, front_era: str, how: str) -> None:
    answers, times = TAKEN_UP[how]
    asked = 0

    async def tool(call: Call) -> None:
        await call.stream()
        await call.write(b"id: first\nretry: 10\ndata:\n\n")
        await call.end()

    async def on_http(call: Call) -> bool:
        nonlocal asked
        if call.seen.headers.get("Last-Event-ID") is None:
            return False
        asked += 1
        await answers(call)
        return True

    door.legacy.on["tools/call"] = tool
    door.legacy.on_http = on_http
    answer = await ask_pair(door, (front_era, "legacy"), "tools/call", {"name": "t"}, ident="z")
    assert (answer.final["id"], answer.code) == ("z", -32603)
    assert answer.ended
    assert len(door.legacy.calls("tools/call")) == 1
    assert 0 < asked <= times


@pytest.mark.field("Z4")
@pytest.mark.parametrize("front_era", ["modern", "legacy"])
async def test_a_modern_stream_is_never_taken_up_whatever_its_events_are_called(door: Door, front_era: str) -> None:
    """2026-07-28 has no resumption (streamable-http, Sending Messages)."""

    async def tool(call: Call) -> None:
        await call.stream()
        await call.write(b"id: first\nretry: 10\ndata:\n\n")
        await call.end()

    door.modern.on["tools/call"] = tool
    answer = await ask_pair(door, (front_era, "modern"), "tools/call", {"name": "t"}, ident="z")
    assert (answer.final["id"], answer.code) == ("z", -32603)
    assert answer.ended
    assert len(door.modern.calls("tools/call")) == 1
    assert {seen.verb for seen in door.modern.requests} == {"POST"}


ABORTS = 500


async def abort(caller: Front | Session, number: int, after: int, way: str) -> None:
    meta = {"progressToken": number}
    if isinstance(caller, Front):
        opening = caller.modern_open("tools/call", {"name": "t"}, ident=number, meta=meta)
    else:
        opening = caller.open("tools/call", {"name": "t", "_meta": meta}, ident=number)
    async with opening as opened:
        for _ in range(after):
            if await opened.message() is None:
                return
        if way == "RST":
            opened.reset()
        elif way == "cancel" and isinstance(caller, Session):
            assert (await caller.notify("notifications/cancelled", {"requestId": number})).status == 202


async def abort_listening(caller: Front | Session, number: int, way: str) -> None:
    wanted = {"notifications": {"toolsListChanged": True}}
    if isinstance(caller, Front):
        opening = caller.modern_open("subscriptions/listen", wanted, ident=number)
    else:
        opening = caller.get()
    async with opening as opened:
        assert opened.status == 200
        if way == "RST":
            opened.reset()


@pytest.mark.field("Z6")
async def test_aborts_at_any_moment_leave_no_trace_in_the_log() -> None:
    """In Python's development mode, where every task, connection and coroutine that is let fall is reported."""
    chance = random.Random(6)

    async def tool(call: Call) -> None:
        leaving = asyncio.create_task(call.stay())
        try:
            for progress in range(4):
                step = {"progressToken": call.seen.meta["progressToken"], "progress": progress}
                await call.notify("notifications/progress", step)
                done, _ = await asyncio.wait({leaving}, timeout=0.002)
                if done:
                    call.close()
                    return
            await call.answer({"content": [], "resultType": "complete"})
        finally:
            leaving.cancel()

    changing = {**CAPABILITIES, "tools": {"listChanged": True}}
    async with (
        LegacyUpstream(get_stream=True, capabilities=changing) as legacy,
        ModernUpstream(capabilities=changing) as modern,
        running({"legacy": legacy, "modern": modern}, env={"PYTHONDEVMODE": "1"}) as gateway,
    ):
        legacy.on["tools/call"] = modern.on["tools/call"] = tool
        fronts = [gateway.front("/legacy"), gateway.front("/modern")]
        callers: list[Front | Session] = [*fronts, *[await front.initialize() for front in fronts]]
        for batch in range(0, ABORTS, 50):
            aborts = [
                abort(chance.choice(callers), batch + n, chance.randrange(5), chance.choice(["RST", "FIN", "cancel"]))
                for n in range(50)
            ]
            listeners = [
                abort_listening(chance.choice(callers), ABORTS + batch + n, chance.choice(["RST", "FIN"]))
                for n in range(10)
            ]
            await asyncio.gather(*aborts, *listeners)
        legacy.on.clear()
        modern.on.clear()
        for front_era, upstream_era in PAIRS:
            answer = await ask(gateway.front(f"/{upstream_era}"), front_era, "tools/call", {"name": "echo"})
            assert "result" in answer.final
