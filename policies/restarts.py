"""When a child that has ended may be started again: the back-off, and the breaker that its pauses are.

Specification: 2026-07-28 basic/transports/stdio (Unexpected Termination: restart). The clock is an argument; what a
child is, and how it is started, is not known here.
"""

from dataclasses import dataclass
from typing import Final

PAUSES_S: Final = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
"""After the first, second, ... end in a row. One crash costs nobody a pause; a command that never works is tried twice
a minute, which a person who is mending it can wait for, and a machine does not notice."""

STEADY_S: Final = 60.0
"""A child that has lived for so long had started well: its end is the first of a new row."""


@dataclass(frozen=True, slots=True)
class Restarts:
    """`ends`: how many children have ended in a row. `not_before_s`: on the caller's monotonic clock."""

    ends: int = 0
    not_before_s: float = 0.0

    def after_end(self, lived_s: float, now_s: float) -> "Restarts":
        """A child has ended unasked, `lived_s` after its start; 0 for one that could not be started."""
        ends = 1 if lived_s >= STEADY_S else self.ends + 1
        return Restarts(ends, now_s + PAUSES_S[min(ends, len(PAUSES_S)) - 1])

    def wait_s(self, now_s: float) -> float:
        """How long the breaker is still open; 0 where a child may be started now."""
        return max(0.0, self.not_before_s - now_s)
