"""One exchange: the log that its connector writes, and the replies that come back."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from gateway import exchange as exchange_module
from gateway.exchange import Exchange
from policies.errors import ClientFault, Fault, GatewayFault, UpstreamFault
from policies.exchange import Answer, Ask, Call, Cancelled, Dialect, Event, Fail, Notify, Opened, Reply, Withdraw

DEADLINE_S = 10.0
LEGACY = Dialect("legacy", "2025-11-25")
CALL = Call("tools/call", {"name": "t"}, {}, {}, None, "anonymous", LEGACY)
DONE = Answer({"content": []}, LEGACY)
Leg = Callable[[Call, Exchange], Awaitable[None]]


@pytest.fixture(autouse=True)
async def deadline() -> AsyncIterator[None]:
    """No test waits for ever."""
    async with asyncio.timeout(DEADLINE_S):
        yield


def step(number: int) -> Notify:
    return Notify("notifications/progress", {"progress": number}, LEGACY)


def ask(key: str = "k") -> Ask:
    return Ask(key, "roots/list", {}, LEGACY)


def events(items: list[tuple[int, Event]]) -> list[Event]:
    return [event for _, event in items]


async def everything(exchange: Exchange, after: int = 0) -> list[Event]:
    """All events after the cursor, until the last one is read."""
    found: list[Event] = []
    while items := await exchange.read(after):
        assert [number for number, _ in items] == list(range(after + 1, after + 1 + len(items)))
        found += events(items)
        after = items[-1][0]
    return found


async def settled() -> None:
    """Lets every task run until it waits for something."""
    for _ in range(10):
        await asyncio.sleep(0)


async def forever(call: Call, exchange: Exchange) -> None:
    await asyncio.Event().wait()


async def answering(call: Call, exchange: Exchange) -> None:
    exchange.emit(DONE)


# the log of events


async def test_events_are_numbered_from_one_in_their_order() -> None:
    exchange = Exchange(CALL)
    for number in range(3):
        exchange.emit(step(number))
    assert await exchange.read() == [(1, step(0)), (2, step(1)), (3, step(2))]


@pytest.mark.parametrize(
    ("after", "numbers"), [(0, [1, 2, 3]), (1, [2, 3]), (2, [3]), (3, []), (4, []), (10**9, []), (-5, [1, 2, 3])]
)
async def test_a_log_is_read_again_at_any_cursor(after: int, numbers: list[int]) -> None:
    exchange = Exchange(CALL)
    for event in (step(1), step(2), DONE):
        exchange.emit(event)
    for _ in range(2):
        assert [number for number, _ in await exchange.read(max(after, 0))] == numbers


async def test_a_reader_waits_for_what_comes() -> None:
    exchange = Exchange(CALL)
    reading = asyncio.create_task(exchange.read())
    await settled()
    assert not reading.done()
    exchange.emit(Opened())
    assert await reading == [(1, Opened())]


async def test_a_reader_that_is_cancelled_takes_nothing_away() -> None:
    exchange = Exchange(CALL)
    reading = asyncio.create_task(exchange.read())
    await settled()
    reading.cancel()
    exchange.emit(Opened())
    assert await exchange.read() == [(1, Opened())]


async def test_readers_at_their_own_cursors_each_see_all_that_follows() -> None:
    exchange = Exchange(CALL)
    exchange.emit(step(1))
    exchange.emit(step(2))
    readers = [asyncio.create_task(everything(exchange, after)) for after in (0, 0, 1, 2)]
    await settled()
    exchange.emit(step(3))
    await settled()
    exchange.emit(DONE)
    log: list[Event] = [step(1), step(2), step(3), DONE]
    assert await asyncio.gather(*readers) == [log, log, log[1:], log[2:]]


async def test_a_burst_reaches_a_waiting_reader_at_once() -> None:
    exchange = Exchange(CALL)
    reading = asyncio.create_task(exchange.read())
    await settled()
    exchange.emit(step(1))
    exchange.emit(DONE)
    assert events(await reading) == [step(1), DONE]


LAST: list[Event] = [DONE, Fail(-32603, "m"), Cancelled()]


@pytest.mark.parametrize("first", LAST, ids=lambda event: type(event).__name__)
@pytest.mark.parametrize("then", [*LAST, step(9), Opened()], ids=lambda event: type(event).__name__)
async def test_nothing_follows_the_last_event(first: Event, then: Event) -> None:
    exchange = Exchange(CALL)
    exchange.emit(first)
    exchange.emit(then)
    assert exchange.ended
    assert await everything(exchange) == [first]


async def test_a_reader_that_lags_too_far_loses_the_oldest_and_is_told_by_the_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exchange_module, "MAX_EVENTS", 3)
    exchange = Exchange(CALL)
    for number in range(1, 6):
        exchange.emit(step(number))
    exchange.emit(DONE)
    assert await exchange.read(0) == [(4, step(4)), (5, step(5)), (6, DONE)]
    assert await exchange.read(2) == [(4, step(4)), (5, step(5)), (6, DONE)]
    assert await exchange.read(5) == [(6, DONE)]
    assert await exchange.read(6) == []


# the leg


async def test_a_leg_gets_the_call_and_its_exchange() -> None:
    seen: list[Any] = []

    async def leg(call: Call, its: Exchange) -> None:
        seen.extend((call, its))
        its.emit(DONE)

    exchange = Exchange(CALL)
    exchange.start(leg)
    assert await everything(exchange) == [DONE]
    assert seen == [CALL, exchange]


async def test_what_a_leg_does_after_the_answer_is_seen_by_nobody() -> None:
    async def leg(call: Call, its: Exchange) -> None:
        its.emit(DONE)
        its.emit(step(1))
        raise UpstreamFault("too late")

    exchange = Exchange(CALL)
    exchange.start(leg)
    await exchange.finished()
    assert await everything(exchange) == [DONE]


async def test_a_leg_that_ends_in_silence_is_a_failed_upstream() -> None:
    async def leg(call: Call, its: Exchange) -> None:
        its.emit(step(1))

    exchange = Exchange(CALL)
    exchange.start(leg)
    assert await everything(exchange) == [
        step(1), Fail(-32603, "the upstream ended without an answer", http=502)
    ]  # fmt: skip


def faulty(fault: Fault, headers: tuple[tuple[str, str], ...] = ()) -> Fault:
    fault.headers = headers
    return fault


@pytest.mark.parametrize(
    ("fault", "event"),
    [
        (UpstreamFault("upstream u is silent", http=504), Fail(-32603, "upstream u is silent", http=504)),
        (UpstreamFault("u", code=-32000, data={"k": 1}), Fail(-32000, "u", {"k": 1}, 502)),
        (ClientFault("c"), Fail(-32600, "c", http=400)),
        (
            faulty(GatewayFault("g"), (("Retry-After", "1"),)),
            Fail(-32603, "g", http=503, headers=(("Retry-After", "1"),)),
        ),
    ],
)
async def test_a_fault_is_the_answer(fault: Fault, event: Fail) -> None:
    async def leg(call: Call, its: Exchange) -> None:
        raise fault

    exchange = Exchange(CALL)
    exchange.start(leg)
    assert await everything(exchange) == [event]


async def test_an_unknown_failure_is_an_answer_that_tells_nothing_and_a_log_line_with_its_id(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def leg(call: Call, its: Exchange) -> None:
        raise RuntimeError("secret")

    exchange = Exchange(CALL)
    with caplog.at_level(logging.ERROR):
        exchange.start(leg)
        await exchange.finished()
    assert await everything(exchange) == [Fail(-32603, f"internal error {exchange.id}", http=500)]
    assert [exchange.id in record.getMessage() for record in caplog.records] == [True]


async def test_a_cancel_ends_the_leg_and_nothing_more_is_delivered() -> None:
    cancelled = asyncio.Event()

    async def leg(call: Call, its: Exchange) -> None:
        its.emit(step(1))
        try:
            await asyncio.Event().wait()
        finally:
            its.emit(DONE)
            cancelled.set()

    exchange = Exchange(CALL)
    exchange.start(leg)
    await exchange.read()
    exchange.cancel()
    await cancelled.wait()
    await exchange.finished()
    assert await everything(exchange) == [step(1), Cancelled()]


async def test_a_leg_that_is_cancelled_from_elsewhere_counts_as_cancelled() -> None:
    async def leg(call: Call, its: Exchange) -> None:
        raise asyncio.CancelledError

    exchange = Exchange(CALL)
    exchange.start(leg)
    assert await everything(exchange) == [Cancelled()]


async def test_a_cancel_before_the_first_step_is_a_cancel_too() -> None:
    ended = asyncio.Event()
    ran: list[Call] = []

    async def leg(call: Call, its: Exchange) -> None:
        ran.append(call)

    exchange = Exchange(CALL)
    exchange.on_end = ended.set
    exchange.start(leg)
    exchange.cancel()
    await ended.wait()
    await exchange.finished()
    assert await everything(exchange) == [Cancelled()]
    assert ran == []


async def test_a_cancel_wakes_every_reader() -> None:
    exchange = Exchange(CALL)
    exchange.start(forever)
    readers = [asyncio.create_task(everything(exchange)) for _ in range(3)]
    await settled()
    exchange.cancel()
    assert await asyncio.gather(*readers) == [[Cancelled()]] * 3


async def test_finished_waits_until_the_leg_has_let_go() -> None:
    let_go = asyncio.Event()

    async def leg(call: Call, its: Exchange) -> None:
        its.emit(DONE)
        await let_go.wait()

    exchange = Exchange(CALL)
    exchange.start(leg)
    await exchange.read()
    waiting = asyncio.create_task(exchange.finished())
    await settled()
    assert not waiting.done()
    let_go.set()
    await waiting


async def test_what_never_started_is_finished() -> None:
    await Exchange(CALL).finished()


@pytest.mark.parametrize("leg", [answering, forever], ids=["answered", "cancelled"])
async def test_the_end_of_a_leg_is_told_once(leg: Leg) -> None:
    told: list[bool] = []
    exchange = Exchange(CALL)
    exchange.on_end = lambda: told.append(True)
    exchange.start(leg)
    await settled()
    exchange.cancel()
    await exchange.finished()
    await settled()
    assert told == [True]


# asks and replies


@pytest.mark.parametrize(
    "reply",
    [Reply("k", {"roots": []}), Reply("k", {}), Reply("k", error={"code": -1, "message": "no"})],
    ids=["a result", "an empty result", "an error"],
)
async def test_a_reply_reaches_who_asked(reply: Reply) -> None:
    exchange = Exchange(CALL)
    asking = asyncio.create_task(exchange.ask(ask()))
    assert await exchange.read() == [(1, ask())]
    assert exchange.reply(reply)
    assert await asking is reply


async def test_a_reply_counts_once() -> None:
    exchange = Exchange(CALL)
    asking = asyncio.create_task(exchange.ask(ask()))
    await exchange.read()
    assert exchange.reply(Reply("k", {"first": True}))
    assert not exchange.reply(Reply("k", {"second": True}))
    assert (await asking).result == {"first": True}
    assert not exchange.reply(Reply("k", {"third": True}))


async def test_a_reply_to_nothing_is_nobodys() -> None:
    exchange = Exchange(CALL)
    assert not exchange.reply(Reply("k", {}))
    asking = asyncio.create_task(exchange.ask(ask("a")))
    await exchange.read()
    assert not exchange.reply(Reply("b", {}))
    assert not exchange.reply(Reply("", {}))
    assert exchange.reply(Reply("a", {}))
    await asking


async def test_replies_go_to_their_own_asks_in_any_order() -> None:
    exchange = Exchange(CALL)
    asking = {key: asyncio.create_task(exchange.ask(ask(key))) for key in ("a", "b", "c")}
    await settled()
    for key in ("c", "a", "b"):
        assert exchange.reply(Reply(key, {"key": key}))
    assert [(await asking[key]).result for key in asking] == [{"key": "a"}, {"key": "b"}, {"key": "c"}]
    assert events(await exchange.read()) == [ask("a"), ask("b"), ask("c")]


async def test_a_withdrawn_ask_is_told_and_a_late_reply_is_dropped() -> None:
    exchange = Exchange(CALL)
    asking = asyncio.create_task(exchange.ask(ask()))
    await exchange.read()
    withdrawn = Withdraw("k", {"reason": "late"}, LEGACY)
    exchange.withdraw(withdrawn)
    exchange.withdraw(withdrawn)
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert not exchange.reply(Reply("k", {}))
    assert events(await exchange.read()) == [ask(), withdrawn]


async def test_an_ask_that_was_answered_is_withdrawn_no_more() -> None:
    exchange = Exchange(CALL)
    asking = asyncio.create_task(exchange.ask(ask()))
    await exchange.read()
    exchange.reply(Reply("k", {}))
    await asking
    exchange.withdraw(Withdraw("k", {}, LEGACY))
    assert events(await exchange.read()) == [ask()]


@pytest.mark.parametrize("last", LAST, ids=lambda event: type(event).__name__)
async def test_the_end_calls_off_every_open_ask(last: Event) -> None:
    exchange = Exchange(CALL)
    asking = [asyncio.create_task(exchange.ask(ask(key))) for key in ("a", "b")]
    await settled()
    exchange.emit(last)
    outcomes = await asyncio.gather(*asking, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [asyncio.CancelledError] * 2
    assert not exchange.reply(Reply("a", {}))


async def test_an_ask_after_the_end_is_called_off_at_once() -> None:
    exchange = Exchange(CALL)
    exchange.emit(DONE)
    with pytest.raises(asyncio.CancelledError):
        await exchange.ask(ask())
    assert await everything(exchange) == [DONE]


async def test_who_stops_asking_leaves_nothing_to_reply_to() -> None:
    exchange = Exchange(CALL)
    asking = asyncio.create_task(exchange.ask(ask()))
    await exchange.read()
    asking.cancel()
    await settled()
    assert not exchange.reply(Reply("k", {}))
