"""What is kept of legacy sessions' exchanges: for cancels, replies and resumption, within bounds, for a time."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from gateway.exchange import Exchange, Exchanges
from policies.delivery import Addressee
from policies.errors import GatewayFault
from policies.exchange import Answer, Call, Cancelled, Dialect, Event

DEADLINE_S = 10.0
LEGACY = Dialect("legacy", "2025-11-25")
CALL = Call("tools/call", {"name": "t"}, {}, {}, None, "anonymous", LEGACY)
DONE = Answer({"content": []}, LEGACY)


@pytest.fixture(autouse=True)
async def deadline() -> AsyncIterator[None]:
    """No test waits for ever."""
    async with asyncio.timeout(DEADLINE_S):
        yield


async def everything(exchange: Exchange) -> list[Event]:
    """All events until the last one is read."""
    found: list[Event] = []
    while items := await exchange.read(len(found)):
        found += [event for _, event in items]
    return found


async def settled() -> None:
    """Lets every task and timer that is due run until it waits for something."""
    for _ in range(10):
        await asyncio.sleep(0)


async def forever(call: Call, exchange: Exchange) -> None:
    await asyncio.Event().wait()


def to(ident: str | int | None) -> Addressee:
    return Addressee(LEGACY, ident, "tools/call", {})


def keep(exchanges: Exchanges, session: str, ident: str | int | None = 1, **how: bool) -> Exchange:
    """A running exchange of `session`."""
    exchange = Exchange(CALL)
    exchanges.keep(exchange, session, to(ident), **how)
    exchange.start(forever)
    return exchange


async def ended(exchange: Exchange) -> Exchange:
    exchange.emit(DONE)
    exchange.cancel()
    await exchange.finished()
    return exchange


@pytest.fixture
async def exchanges() -> AsyncIterator[Exchanges]:
    kept = Exchanges(resume_ttl_s=3600, max_per_session=3)
    yield kept
    await kept.close()
    assert len(kept) == 0


async def test_an_exchange_is_found_by_its_own_session_alone(exchanges: Exchanges) -> None:
    exchange = keep(exchanges, "s")
    assert exchanges.find("s", exchange.id) is exchange
    assert exchanges.find("t", exchange.id) is None
    assert exchanges.find("s", "0") is None
    assert exchanges.find("s", "") is None
    assert exchanges.addressee(exchange) == to(1)


async def test_exchanges_have_ids_that_cannot_be_guessed() -> None:
    assert len({Exchange(CALL).id for _ in range(100)}) == 100
    assert len(Exchange(CALL).id) >= 16


IDS: list[tuple[str | int, str | int, bool]] = [
    (1, 1, True), ("1", "1", True), (0, 0, True), ("", "", True), (2**70, 2**70, True),
    (1, "1", False), ("1", 1, False), (1, 2, False), (1, True, False), (0, False, False), ("a", "A", False),
]  # fmt: skip


@pytest.mark.parametrize(("known", "asked", "hit"), IDS)
async def test_a_cancel_finds_its_call_by_id_and_type(
    exchanges: Exchanges, known: str | int, asked: str | int, hit: bool
) -> None:
    exchange = keep(exchanges, "s", known)
    assert exchanges.cancel("s", asked) is hit
    assert exchange.ended is hit


async def test_a_cancel_reaches_no_other_session(exchanges: Exchanges) -> None:
    exchange = keep(exchanges, "s", 1)
    assert not exchanges.cancel("t", 1)
    assert not exchange.ended


async def test_of_two_calls_with_one_id_the_youngest_is_cancelled_first(exchanges: Exchanges) -> None:
    older, younger = keep(exchanges, "s", 1), keep(exchanges, "s", 1)
    assert exchanges.cancel("s", 1)
    assert (older.ended, younger.ended) == (False, True)
    assert exchanges.cancel("s", 1)
    assert older.ended
    assert not exchanges.cancel("s", 1)


async def test_a_finished_call_is_cancelled_no_more(exchanges: Exchanges) -> None:
    exchange = await ended(keep(exchanges, "s", 1))
    assert not exchanges.cancel("s", 1)
    assert await everything(exchange) == [DONE]


async def test_a_stream_that_no_request_opened_has_no_id_to_cancel(exchanges: Exchanges) -> None:
    exchange = keep(exchanges, "s", None, standalone=True)
    assert not exchanges.cancel("s", "None")
    assert not exchange.ended


async def test_a_second_standalone_stream_supersedes_the_first(exchanges: Exchanges) -> None:
    call, first = keep(exchanges, "s"), keep(exchanges, "s", None, standalone=True)
    elsewhere = keep(exchanges, "t", None, standalone=True)
    second = keep(exchanges, "s", None, standalone=True)
    assert await everything(first) == [Cancelled()]
    assert exchanges.find("s", first.id) is None
    assert exchanges.find("s", second.id) is second
    assert not call.ended
    assert not elsewhere.ended
    assert not second.ended


async def test_a_standalone_stream_that_is_gone_supersedes_nothing(exchanges: Exchanges) -> None:
    exchanges.forget(keep(exchanges, "s", None, standalone=True))
    second = keep(exchanges, "s", None, standalone=True)
    assert exchanges.find("s", second.id) is second
    assert len(exchanges) == 1


async def test_the_end_of_a_session_ends_and_forgets_all_of_it(exchanges: Exchanges) -> None:
    running, stream = keep(exchanges, "s"), keep(exchanges, "s", None, standalone=True)
    finished = await ended(keep(exchanges, "s", 2))
    other = keep(exchanges, "t")
    exchanges.end_session("s")
    assert await everything(running) == await everything(stream) == [Cancelled()]
    assert await everything(finished) == [DONE]
    assert [exchanges.find("s", one.id) for one in (running, stream, finished)] == [None] * 3
    assert exchanges.find("t", other.id) is other
    assert not other.ended
    exchanges.end_session("s")
    assert len(exchanges) == 1


async def test_what_is_forgotten_can_be_resumed_no_more(exchanges: Exchanges) -> None:
    exchange = await ended(keep(exchanges, "s"))
    exchanges.forget(exchange)
    exchanges.forget(exchange)
    assert exchanges.find("s", exchange.id) is None


async def test_close_waits_until_every_leg_has_let_go() -> None:
    let_go: list[str] = []

    async def leg(call: Call, its: Exchange) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await settled()
            let_go.append(its.id)

    exchanges = Exchanges(resume_ttl_s=0)
    running = [Exchange(CALL) for _ in range(3)]
    for number, exchange in enumerate(running):
        exchanges.keep(exchange, f"s{number % 2}", to(number))
        exchange.start(leg)
    await settled()
    await exchanges.close()
    assert sorted(let_go) == sorted(exchange.id for exchange in running)
    assert len(exchanges) == 0


# bounds


async def test_a_session_with_too_many_calls_in_flight_is_told_so(exchanges: Exchanges) -> None:
    running = [keep(exchanges, "s", number) for number in range(3)]
    with pytest.raises(GatewayFault) as caught:
        keep(exchanges, "s", 3)
    assert caught.value.http == 429
    assert "3" in caught.value.message
    assert not any(exchange.ended for exchange in running)
    keep(exchanges, "t", 3)


async def test_the_oldest_finished_call_makes_room(exchanges: Exchanges) -> None:
    first = keep(exchanges, "s", 0)
    second, third = await ended(keep(exchanges, "s", 1)), await ended(keep(exchanges, "s", 2))
    fourth = keep(exchanges, "s", 3)
    found = [exchanges.find("s", one.id) for one in (first, second, third, fourth)]
    assert found == [first, None, third, fourth]


async def test_a_finished_call_that_is_being_read_makes_no_room(exchanges: Exchanges) -> None:
    for number in range(3):
        exchanges.watch(await ended(keep(exchanges, "s", number)))
    with pytest.raises(GatewayFault):
        keep(exchanges, "s", 3)


async def test_a_bound_of_one_is_kept_again_and_again() -> None:
    exchanges = Exchanges(resume_ttl_s=3600, max_per_session=1)
    for number in range(3):
        exchange = keep(exchanges, "s", number)
        assert exchanges.cancel("s", number)
        await exchange.finished()
        assert len(exchanges) == 1
    exchanges.end_session("s")
    assert len(exchanges) == 0


async def test_a_refused_standalone_stream_leaves_no_trace(exchanges: Exchanges) -> None:
    for number in range(3):
        keep(exchanges, "s", number)
    with pytest.raises(GatewayFault):
        keep(exchanges, "s", None, standalone=True)
    exchanges.end_session("s")
    stream = keep(exchanges, "s", None, standalone=True)
    assert exchanges.find("s", stream.id) is stream


async def test_over_all_sessions_the_oldest_finished_call_makes_room() -> None:
    exchanges = Exchanges(resume_ttl_s=3600, max_kept=2)
    running, finished = keep(exchanges, "a"), await ended(keep(exchanges, "b"))
    newest = keep(exchanges, "c")
    assert exchanges.find("a", running.id) is running
    assert exchanges.find("b", finished.id) is None
    assert exchanges.find("c", newest.id) is newest
    keep(exchanges, "d")
    assert len(exchanges) == 3, "running calls are never dropped for it"
    await exchanges.close()


# expiry: with a time of 0, what may expire is gone at the loop's next turn


@pytest.fixture
async def fleeting() -> AsyncIterator[Exchanges]:
    kept = Exchanges(resume_ttl_s=0)
    yield kept
    await kept.close()


async def test_a_finished_call_expires(fleeting: Exchanges) -> None:
    exchange = await ended(keep(fleeting, "s"))
    await settled()
    assert fleeting.find("s", exchange.id) is None
    assert len(fleeting) == 0


async def test_a_running_call_does_not_expire(fleeting: Exchanges) -> None:
    exchange = keep(fleeting, "s")
    fleeting.watch(exchange)
    fleeting.unwatch(exchange)
    await settled()
    assert fleeting.find("s", exchange.id) is exchange
    assert not exchange.ended


async def test_a_call_that_was_left_expires_once_it_is_finished(fleeting: Exchanges) -> None:
    exchange = keep(fleeting, "s")
    fleeting.watch(exchange)
    fleeting.unwatch(exchange)
    await ended(exchange)
    await settled()
    assert fleeting.find("s", exchange.id) is None


async def test_a_call_cancelled_before_its_first_step_expires(fleeting: Exchanges) -> None:
    exchange = keep(fleeting, "s", 1)
    assert fleeting.cancel("s", 1)
    await settled()
    assert len(fleeting) == 0
    assert exchange.ended


async def test_a_call_that_is_read_does_not_expire_until_nobody_reads_it(fleeting: Exchanges) -> None:
    exchange = keep(fleeting, "s")
    fleeting.watch(exchange)
    fleeting.watch(exchange)
    await ended(exchange)
    await settled()
    assert fleeting.find("s", exchange.id) is exchange
    fleeting.unwatch(exchange)
    await settled()
    assert fleeting.find("s", exchange.id) is exchange
    fleeting.unwatch(exchange)
    await settled()
    assert fleeting.find("s", exchange.id) is None


async def test_who_comes_back_in_time_keeps_it(fleeting: Exchanges) -> None:
    exchange = keep(fleeting, "s")
    fleeting.watch(exchange)
    await ended(exchange)
    await settled()
    fleeting.unwatch(exchange)
    fleeting.watch(exchange)
    await settled()
    assert fleeting.find("s", exchange.id) is exchange


async def test_an_abandoned_stream_is_ended(fleeting: Exchanges) -> None:
    exchange = keep(fleeting, "s", None, standalone=True)
    fleeting.watch(exchange)
    fleeting.unwatch(exchange, abandon=True)
    assert await everything(exchange) == [Cancelled()]
    assert len(fleeting) == 0


async def test_an_abandoned_stream_goes_on_for_who_comes_back(fleeting: Exchanges) -> None:
    exchange = keep(fleeting, "s", None, standalone=True)
    fleeting.watch(exchange)
    fleeting.unwatch(exchange, abandon=True)
    fleeting.watch(exchange)
    await settled()
    assert not exchange.ended
    assert fleeting.find("s", exchange.id) is exchange


async def test_watching_what_is_gone_does_nothing(fleeting: Exchanges) -> None:
    exchange = Exchange(CALL)
    fleeting.watch(exchange)
    fleeting.unwatch(exchange)
    fleeting.forget(exchange)
    assert len(fleeting) == 0
