"""Which of an upstream's endpoints gets the next request, and when one is taken out of service and let back in.

An endpoint that fails several times in a row is ejected for a time, which grows where it fails again right after; it is
back once that time is over and a check has found it there. Never so many are ejected that the rest would drown, and
where none is in service, the one that is due back first is asked all the same. Of several as good, the one
that has not been asked for longest is: a turn counted by all could pass by one of a set that changes for ever.
The clock is an argument; who counts, connects and checks is `gateway/upstreams/endpoints.py`.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from policies.settings_endpoints import Balance, Ejection

GATEWAY_FAILURES: Final = frozenset({502, 503, 504})
"""Statuses by which an endpoint, or a proxy right before it, says that it cannot serve at all."""

MAX_EJECTED_S: Final = 300.0
"""Where a growing ejection stops, unless `for_s` itself is longer: an endpoint that is mended is not left out for
long."""


@dataclass(frozen=True, slots=True)
class Health:
    """What is known of one endpoint. Times are of the caller's monotonic clock.

    `failures` in a row; `ejections` in a row, with less good time between them than each had lasted. `found`: the last
    check found it there; False from its ejection until one does."""

    failures: int = 0
    ejections: int = 0
    out_until_s: float = 0.0
    found: bool = True

    def in_service(self, now_s: float) -> bool:
        return self.found and now_s >= self.out_until_s

    def after_answer(self) -> "Health":
        """It has answered a request, well or not. An answer to a session that lives there ends no ejection."""
        return self if self.failures == 0 else replace(self, failures=0)

    def after_failure(self, rules: Ejection, now_s: float, *, may_eject: bool) -> "Health":
        """It could not be reached, broke off, or said that it cannot serve."""
        if not self.in_service(now_s):
            return self
        failures = self.failures + 1
        if failures < rules.failures or not may_eject:
            return replace(self, failures=failures)
        again = self.ejections > 0 and now_s < self.out_until_s + ejected_s(rules, self.ejections)
        ejections = self.ejections + 1 if again else 1
        # back in service it is on probation: its next failure ejects it again, its next answer makes it as good as any
        return Health(rules.failures - 1, ejections, now_s + ejected_s(rules, ejections), found=False)

    def after_check(self, now_s: float, *, found: bool) -> "Health":
        """A check has found it there, or not. Back in service, its good time counts from now."""
        if found and not self.found and now_s >= self.out_until_s:
            return replace(self, found=True, out_until_s=now_s)
        return replace(self, found=found)


@dataclass(frozen=True, slots=True)
class Candidate:
    """An endpoint to choose from. `requests`: how many are under way there. `chosen`: the turn at which it was last."""

    requests: int
    health: Health
    chosen: int


def ejected_s(rules: Ejection, ejections: int) -> float:
    """How long the first, second, ... ejection in a row lasts."""
    return float(min(rules.for_s * 2 ** min(ejections - 1, 32), max(rules.for_s, MAX_EJECTED_S)))


def may_eject(everybody: Sequence[Health], rules: Ejection, now_s: float) -> bool:
    """Whether one more may go: at most `max_share` of all, but one of them at least, and never the last."""
    out = sum(not health.in_service(now_s) for health in everybody)
    most = max(1, int(len(everybody) * rules.max_share)) if rules.max_share else 0
    return out < min(most, len(everybody) - 1)


def choose(candidates: Sequence[Candidate], balance: Balance, now_s: float, tried: Collection[int] = ()) -> int | None:
    """The index of the endpoint to ask, None where each has been `tried`."""
    left = [index for index in range(len(candidates)) if index not in tried]
    if not left:
        return None
    able = [index for index in left if candidates[index].health.in_service(now_s)]
    if not able:
        soonest = min(candidates[index].health.out_until_s for index in left)
        able = [index for index in left if candidates[index].health.out_until_s == soonest]
    if balance == "least_requests":
        fewest = min(candidates[index].requests for index in able)
        able = [index for index in able if candidates[index].requests == fewest]
    return min(able, key=lambda index: candidates[index].chosen)
