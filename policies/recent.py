"""What has gone on lately, in bounded memory: how fast an upstream answered, and what went wrong.

Kept by each process while it serves, for the status page. Nothing of a message is in it: numbers, and words out of
closed sets (`policies/metrics.py`). The clock is the caller's, in seconds since 1970, so that what several processes
have kept can be added up.
"""

from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from policies.mcp import Json
from policies.profiles import Profile

SLOT_S: Final = 5
"""What one point of a curve stands for."""

SLOTS: Final = 60
"""Points that are kept: five minutes, which is how far a look at a page goes back; the rest is Prometheus's."""

KINDS: Final = 50
"""Kinds of errors that are kept: a table that can be read."""

MET: Final = 16
"""Profiles of hosts that are remembered of an upstream. Those that have a name are a handful."""


@dataclass(slots=True)
class Slot:
    """The calls that ended within `SLOT_S` seconds, from `at_s` on. `failed`: of them, those without a result."""

    at_s: int
    calls: int = 0
    failed: int = 0
    total_s: float = 0.0
    slowest_s: float = 0.0

    def add(self, other: "Slot") -> None:
        self.calls += other.calls
        self.failed += other.failed
        self.total_s += other.total_s
        self.slowest_s = max(self.slowest_s, other.slowest_s)


class Pace:
    """The calls of the last minutes, by slot; slots in which nothing ended are not there."""

    def __init__(self) -> None:
        self._slots: deque[Slot] = deque(maxlen=SLOTS)
        self._last = Slot(0)

    def note(self, now_s: float, seconds: float, *, failed: bool) -> None:
        slot = self._last
        if not 0 <= now_s - slot.at_s < SLOT_S:
            slot = self._last = Slot(int(now_s) // SLOT_S * SLOT_S)
            self._slots.append(slot)
        slot.calls += 1
        slot.failed += failed
        slot.total_s += seconds
        slot.slowest_s = max(slot.slowest_s, seconds)

    def slots(self) -> tuple[Slot, ...]:
        return tuple(self._slots)


def curve(slots: Iterable[Slot], now_s: float) -> tuple[Slot, ...]:
    """The last `SLOTS` slots until now, each of them there; what several processes have of one is added up."""
    last = int(now_s) // SLOT_S * SLOT_S
    whole = {at_s: Slot(at_s) for at_s in range(last - (SLOTS - 1) * SLOT_S, last + 1, SLOT_S)}
    for slot in slots:
        if slot.at_s in whole:
            whole[slot.at_s].add(slot)
    return tuple(whole.values())


@dataclass(frozen=True, slots=True)
class Trouble:
    """One kind of error. `kind`: what it was (`refused`, `connection`, `call`); `code`: a reason or `error.type`;
    `upstream`, `route`: by their names in the configuration, empty where it concerns none; how often, and when last."""

    kind: str
    code: str
    upstream: str = ""
    route: str = ""
    count: int = 1
    at_s: float = 0.0


Kind = tuple[str, str, str, str]


class Troubles:
    """The last `KINDS` kinds of errors: one that comes a thousand times pushes no other one out."""

    def __init__(self) -> None:
        self._known: OrderedDict[Kind, tuple[int, float]] = OrderedDict()

    def note(self, now_s: float, kind: str, code: str, upstream: str = "", route: str = "") -> None:
        key = (kind, code, upstream, route)
        count = self._known.pop(key, (0, 0.0))[0]
        if len(self._known) >= KINDS:
            self._known.popitem(last=False)
        self._known[key] = (count + 1, now_s)

    def all(self) -> tuple[Trouble, ...]:
        return latest(Trouble(*key, count, at_s) for key, (count, at_s) in self._known.items())


def latest(troubles: Iterable[Trouble]) -> tuple[Trouble, ...]:
    """The last first, each kind once, however many processes have met it."""
    found: dict[Kind, Trouble] = {}
    for one in troubles:
        key = (one.kind, one.code, one.upstream, one.route)
        known = found.get(key)
        count, at_s = (known.count, known.at_s) if known is not None else (0, 0.0)
        found[key] = Trouble(*key, count + one.count, max(at_s, one.at_s))
    return tuple(sorted(found.values(), key=lambda trouble: -trouble.at_s)[:KINDS])


@dataclass(slots=True)
class Met:
    """A host of this kind has been served: what the upstream was told of it, what the upstream then said of itself
    (None where it was not asked anew), and when."""

    profile: Profile
    told: Json
    said: Json | None
    at_s: float


class Hosts:
    """The hosts in whose name an upstream has been asked, the last of each profile."""

    def __init__(self) -> None:
        self.met: dict[str, Met] = {}

    def note(self, now_s: float, profile: Profile, told: Json, said: Json | None = None) -> None:
        known = self.met.get(profile.name)
        if known is None:
            if len(self.met) < MET:
                self.met[profile.name] = Met(profile, told, said, now_s)
            return
        known.profile, known.told, known.at_s = profile, told, now_s
        if said is not None:
            known.said = said
