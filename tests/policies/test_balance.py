"""Which endpoint is asked, and when one is left out, as tables."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from policies.balance import MAX_EJECTED_S, Candidate, Health, choose, ejected_s, may_eject
from policies.settings_endpoints import Balance, Ejection

NOW_S = 1000.0
FINE = Health()
OUT = Health(out_until_s=NOW_S + 10, found=False)
OUT_LONGER = Health(out_until_s=NOW_S + 20, found=False)
NOT_FOUND = Health(out_until_s=NOW_S - 1, found=False)
RULES = Ejection(failures=3, for_s=10)


def candidates(*each: int | Health | tuple[int, Health]) -> list[Candidate]:
    """A number: so many requests at an endpoint that is well. A health: an idle one."""
    pairs = [(one, FINE) if isinstance(one, int) else (0, one) if isinstance(one, Health) else one for one in each]
    return [Candidate(requests, health, 0) for requests, health in pairs]


def choices(
    endpoints: Sequence[Candidate], balance: Balance, turns: int, tried: Sequence[int] = ()
) -> Iterator[int | None]:
    """What is chosen turn by turn, where nothing else changes."""
    now = list(endpoints)
    for turn in range(1, turns + 1):
        chosen = choose(now, balance, NOW_S, tried)
        if chosen is not None:
            now[chosen] = replace(now[chosen], chosen=turn)
        yield chosen


@pytest.mark.parametrize(
    ("balance", "endpoints", "tried", "turns", "chosen"),
    [
        ("round_robin", candidates(0, 0, 0), (), 6, [0, 1, 2, 0, 1, 2]),
        ("round_robin", candidates(9, 0), (), 4, [0, 1, 0, 1]),
        ("round_robin", candidates(0, OUT, 0), (), 4, [0, 2, 0, 2]),
        ("round_robin", candidates(0, 0, 0), (1,), 4, [0, 2, 0, 2]),
        ("least_requests", candidates(0, 0), (), 4, [0, 1, 0, 1]),
        ("least_requests", candidates(3, 1, 2), (), 2, [1, 1]),
        ("least_requests", candidates(1, 5, 1), (), 3, [0, 2, 0]),
        ("least_requests", candidates(5, OUT), (), 2, [0, 0]),
        ("least_requests", candidates(1, 2), (0,), 2, [1, 1]),
        ("least_requests", candidates(5, NOT_FOUND), (), 2, [0, 0]),
        ("least_requests", candidates((9, OUT), OUT_LONGER), (), 2, [0, 0]),
        ("least_requests", candidates(OUT, OUT_LONGER), (0,), 2, [1, 1]),
        ("least_requests", candidates(OUT, OUT), (), 3, [0, 1, 0]),
        ("least_requests", candidates((2, OUT), OUT), (), 2, [1, 1]),
        ("least_requests", candidates(0, OUT), (0,), 1, [1]),
        ("least_requests", candidates(0, 0), (0, 1), 1, [None]),
        ("round_robin", candidates(0), (0,), 1, [None]),
    ],
)
def test_an_endpoint_is_chosen(
    balance: Balance, endpoints: Sequence[Candidate], tried: Sequence[int], turns: int, chosen: list[int | None]
) -> None:
    assert list(choices(endpoints, balance, turns, tried)) == chosen


@pytest.mark.parametrize("balance", ["round_robin", "least_requests"])
def test_who_is_left_shares_alike_what_one_that_is_out_would_have_had(balance: Balance) -> None:
    endpoints = candidates(0, OUT, 0, 0)
    assert Counter(choices(endpoints, balance, 300)) == {0: 100, 2: 100, 3: 100}


@pytest.mark.parametrize("balance", ["round_robin", "least_requests"])
@pytest.mark.parametrize("count", [2, 3, 5])
def test_nobody_is_passed_by_whose_neighbour_is_still_busy_with_the_request_before(
    balance: Balance, count: int
) -> None:
    """The next request comes before the last one is over: who is free is another set at each turn."""
    now, seen = candidates(*[0] * count), Counter[int]()
    for turn in range(1, 4 * count + 1):
        chosen = choose(now, balance, NOW_S)
        assert chosen is not None
        seen[chosen] += 1
        now = [replace(one, requests=int(index == chosen)) for index, one in enumerate(now)]
        now[chosen] = replace(now[chosen], chosen=turn)
    assert seen == dict.fromkeys(range(count), 4)


Step = tuple[float, str]
"""Seconds later: `x` fails, `.` answers, `?` is found by a check, `-` is not."""


def after(steps: Sequence[Step], rules: Ejection = RULES) -> tuple[Health, float]:
    health, now_s = FINE, NOW_S
    for later_s, what in steps:
        now_s += later_s
        for one in what:
            match one:
                case "x":
                    health = health.after_failure(rules, now_s, may_eject=True)
                case ".":
                    health = health.after_answer()
                case _:
                    health = health.after_check(now_s, found=one == "?")
    return health, now_s


@pytest.mark.parametrize(
    ("steps", "in_service"),
    [
        ([], True),
        ([(0, "xx")], True),
        ([(0, "xxx")], False),
        ([(0, "xx.xx.xx")], True),
        ([(0, "xxx"), (9, "?")], False),
        ([(0, "xxx"), (11, "")], False),
        ([(0, "xxx"), (11, "-")], False),
        ([(0, "xxx"), (11, "?")], True),
        ([(0, "xxx"), (11, "-"), (11, "?")], True),
        ([(0, "xxx..."), (9, "...")], False),
        ([(0, "xxx"), (11, "?x")], False),
        ([(0, "xxx"), (11, "?.x")], True),
        ([(0, "xxx"), (11, "?.xx")], True),
        ([(0, "xxx"), (11, "?.xxx")], False),
        ([(0, "-")], False),
        ([(0, "-.")], False),
        ([(0, "-?")], True),
    ],
)
def test_failures_in_a_row_take_an_endpoint_out_and_a_check_lets_it_back_in(
    steps: Sequence[Step], in_service: bool
) -> None:
    health, now_s = after(steps)
    assert health.in_service(now_s) == in_service


@pytest.mark.parametrize(
    ("steps", "lasts_s"),
    [
        ([(0, "xxx")], 10),
        ([(0, "xxxxxxxxx")], 10),
        ([(0, "xxx"), (11, "?x")], 20),
        ([(0, "xxx"), (11, "?x"), (21, "?x")], 40),
        ([(0, "xxx"), (11, "?."), (5, "xxx")], 20),
        ([(0, "xxx"), (11, "?."), (11, "xxx")], 10),
        ([(0, "xxx"), (5000, "?x")], 20),
        ([(0, "xxx"), *[(400.0, "?x")] * 9], 300),
    ],
)
def test_an_ejection_lasts_longer_where_the_endpoint_fails_again_soon_after(
    steps: Sequence[Step], lasts_s: float
) -> None:
    health, now_s = after(steps)
    assert health.out_until_s - now_s == lasts_s


def test_failures_that_may_eject_nobody_are_counted_on() -> None:
    health = FINE
    for _ in range(9):
        health = health.after_failure(RULES, NOW_S, may_eject=False)
    assert health.in_service(NOW_S)
    assert not health.after_failure(RULES, NOW_S, may_eject=True).in_service(NOW_S)


@pytest.mark.parametrize(
    ("everybody", "max_share", "may"),
    [
        ([FINE], 1.0, False),
        ([FINE, FINE], 0.5, True),
        ([FINE, OUT], 0.5, False),
        ([FINE, OUT], 1.0, False),
        ([FINE, FINE, FINE], 0.5, True),
        ([FINE, FINE, OUT], 0.5, False),
        ([FINE, FINE, OUT], 0.7, True),
        ([FINE, FINE, NOT_FOUND], 0.5, False),
        ([FINE, OUT, OUT], 1.0, False),
        ([FINE] * 10, 0.01, True),
        ([FINE] * 9 + [OUT], 0.01, False),
        ([FINE, FINE], 0.0, False),
    ],
)
def test_so_many_may_be_out_and_never_the_last(everybody: Sequence[Health], max_share: float, may: bool) -> None:
    assert may_eject(everybody, Ejection(max_share=max_share), NOW_S) == may


@pytest.mark.parametrize(
    ("for_s", "ejections", "lasts_s"),
    [(10, 1, 10), (10, 5, 160), (10, 6, MAX_EJECTED_S), (10, 10**6, MAX_EJECTED_S), (3600, 1, 3600), (3600, 9, 3600)],
)
def test_an_ejection_doubles_up_to_a_bound(for_s: float, ejections: int, lasts_s: float) -> None:
    assert ejected_s(Ejection(for_s=for_s), ejections) == lasts_s
