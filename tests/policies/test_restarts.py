"""When a child is started again, as a table of its ends."""

import pytest

from policies.restarts import PAUSES_S, STEADY_S, Restarts


@pytest.mark.parametrize(
    ("lives_s", "pauses_s"),
    [
        ([], []),
        ([1.0], [0.0]),
        ([STEADY_S], [0.0]),
        ([0.0] * 9, [0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]),
        ([STEADY_S - 0.1] * 3, [0.0, 1.0, 2.0]),
        ([0.0, 0.0, STEADY_S, 0.0], [0.0, 1.0, 0.0, 1.0]),
        ([STEADY_S] * 5, [0.0] * 5),
    ],
)
def test_children_that_end_in_a_row_are_started_after_longer_and_longer_pauses(
    lives_s: list[float], pauses_s: list[float]
) -> None:
    state, now_s, waits = Restarts(), 1000.0, []
    for lived_s in lives_s:
        now_s += lived_s
        state = state.after_end(lived_s, now_s)
        waits.append(state.wait_s(now_s))
        now_s += state.wait_s(now_s)
        assert state.wait_s(now_s) == 0.0
    assert waits == pauses_s


def test_the_breaker_says_how_long_it_is_still_open() -> None:
    state = Restarts().after_end(0.0, 10.0).after_end(0.0, 10.0)
    assert [state.wait_s(now_s) for now_s in (10.0, 10.75, 11.0, 99.0)] == [1.0, 0.25, 0.0, 0.0]


def test_nothing_that_never_ended_waits() -> None:
    assert Restarts().wait_s(0.0) == 0.0
    assert list(PAUSES_S) == sorted(PAUSES_S)
