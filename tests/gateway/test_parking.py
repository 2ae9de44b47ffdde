"""What calls that wait for their clients may keep together."""

import asyncio

import pytest

from gateway import parking as parking_module
from gateway.exchange import Exchange
from gateway.parking import TOO_MUCH, Parking
from policies.errors import GatewayFault
from policies.exchange import Answer, Call, Dialect, Event, Fail, Notify

LEGACY = Dialect("legacy", "2025-11-25")
CALL = Call("tools/call", {"name": "t"}, {}, {}, None, "anonymous", LEGACY)
KIB = "x" * 1000
SMALL, LARGE = Answer({"content": []}, LEGACY), Answer({"content": [KIB] * 9}, LEGACY)


def notes(number: int) -> list[Event]:
    return [Notify("notifications/message", {"data": KIB}, LEGACY)] * number


def parked(*calls: list[Event]) -> tuple[Parking, list[Exchange]]:
    """Calls that wait, one after the other told what an upstream says."""
    parking = Parking(60.0)
    exchanges = [Exchange(CALL) for _ in calls]
    for exchange in exchanges:
        parking.park(exchange, "ann", {}, 0, 0)
    for exchange, events in zip(exchanges, calls, strict=True):
        for event in events:
            exchange.emit(event)
    return parking, exchanges


async def kept(exchange: Exchange) -> tuple[int, Event | None]:
    """How many notifications are left, and the outcome."""
    events = [event for _, event in await exchange.read()] if exchange.ended or exchange.weight() else []
    return sum(isinstance(event, Notify) for event in events), exchange.last


TABLE: dict[str, tuple[list[list[Event]], list[tuple[int, Event | None]]]] = {
    "what fits is kept": ([[*notes(4), SMALL], notes(4)], [(4, SMALL), (4, None)]),
    "the heaviest loses its notifications and keeps its outcome": (
        [[*notes(8), SMALL], [*notes(3), SMALL]],
        [(0, SMALL), (3, SMALL)],
    ),
    "also where it still runs": ([notes(8), notes(3)], [(0, None), (3, None)]),
    "an outcome is lost where there is nothing else": ([[LARGE], [*notes(1), SMALL]], [(0, TOO_MUCH), (1, SMALL)]),
    "of two, no more than must": ([[LARGE], [SMALL], [*notes(2), SMALL]], [(0, TOO_MUCH), (0, SMALL), (2, SMALL)]),
    "an error counts as an outcome": ([[Fail(-1, "m", [KIB] * 9)], notes(2)], [(0, TOO_MUCH), (2, None)]),
}


@pytest.mark.parametrize("name", TABLE)
async def test_together_they_keep_so_much_and_no_more(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(parking_module, "MAX_BYTES", 10_000)
    told, wanted = TABLE[name]
    parking, exchanges = parked(*told)
    assert [await kept(exchange) for exchange in exchanges] == wanted
    assert parking.bytes == sum(exchange.weight() for exchange in exchanges) <= 10_000
    for exchange in exchanges:
        assert parking.claim(exchange.id, 0) is not None
    assert (parking.bytes, len(parking)) == (0, 0)


async def test_what_was_claimed_counts_no_more_and_what_was_kept_before_it_waited_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parking_module, "MAX_BYTES", 10_000)
    parking, [exchange] = parked(notes(4))
    claimed = parking.claim(exchange.id, 0)
    assert claimed is not None
    for event in notes(20):
        exchange.emit(event)
    assert (parking.bytes, (await kept(exchange))[0]) == (0, 24)
    parking.park(exchange, "ann", {}, 0, 1)
    assert (parking.bytes, len(parking)) == (0, 1)
    await parking.close()
    assert exchange.ended


async def test_a_call_that_finds_no_room_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parking_module, "MAX_PER_PRINCIPAL", 1)
    parking, [first] = parked(notes(1))
    before = parking.bytes
    second = Exchange(CALL)
    with pytest.raises(GatewayFault):
        parking.park(second, "ann", {}, 0, 0)
    second.emit(notes(1)[0])
    assert (parking.bytes, len(parking)) == (before, 1)
    await asyncio.wait_for(parking.close(), 10)
    assert first.ended
