"""What one client can make the gateway hold: a bounded number of bytes, however much its upstream says."""

import json

import pytest

from gateway.exchange import MAX_BYTES, MAX_EVENTS, Exchange
from policies.exchange import Answer, Call, Dialect, Notify

MODERN = Dialect("modern", "2026-07-28")
SIZES = [(20_000, 10), (500, 10**5), (5, 3 * MAX_BYTES), (3, 10)]


@pytest.mark.parametrize(("count", "size"), SIZES, ids=[f"{count} events of {size} bytes" for count, size in SIZES])
async def test_what_nobody_reads_is_bounded_in_number_and_size(count: int, size: int) -> None:
    exchange = Exchange(Call("tools/call", {}, {}, {}, None, "anonymous", MODERN))
    for number in range(count):
        exchange.emit(Notify("notifications/message", {"data": "x" * size, "n": number}, MODERN))
    newest = await exchange.read()
    exchange.emit(Answer({}, MODERN))
    kept = await exchange.read()
    sizes = [len(json.dumps(event.params)) for _, event in kept if isinstance(event, Notify)]
    assert len(kept) <= MAX_EVENTS
    assert sum(sizes) <= MAX_BYTES
    assert newest[-1][0] == count, "the newest is kept, under its own number, whatever its size"
    assert kept[-1] == (count + 1, Answer({}, MODERN)), "the answer is never lost"
    if count * size < MAX_BYTES // 2 and count < MAX_EVENTS:
        assert [number for number, _ in kept] == list(range(1, count + 2)), "and nothing where it is little"
