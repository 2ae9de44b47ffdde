"""Who has how much of a bounded room, and what goes first where more is wanted than there is.

The room has two sides: what all callers share, and what each has for itself. Where it is full, the side that has more
gives, so that each has half of it where it wants that much. Within a side, the holder that has most gives: a caller
that keeps much takes nothing from one that keeps little. Within a holder, what was used again goes after what was used
once, unless it takes more than three quarters: whoever asks for many things once each, in as many forms as it likes,
drives out no more than its like. Otherwise what was not used for longest goes first.
"""

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

_BINS_DIGITS: Final = 2
"""Digits of its digest by which a caller is told from another here: 256 holders of one's own, however many callers, so
that the one that has most is found at once. Two callers in the same bin have one holder's part together."""

_SWEEP_S: Final = 10.0
"""How often what has gone by itself is looked for; one look at all, where the room is full."""


@dataclass(frozen=True, slots=True)
class Holder:
    """`is_shared`: all callers may use what it has. `name`: an upstream's there, else a bin of callers."""

    is_shared: bool
    name: str


def holder(partition: str, upstream: str, *, shared: bool) -> Holder:
    """Who holds an entry of this partition (`Key.partition`), or one that all share."""
    return Holder(True, upstream) if shared else Holder(False, partition.rpartition(" ")[2][:_BINS_DIGITS])


@dataclass(eq=False, slots=True)
class _Part:
    """What one holder has, by key its size, what was not used for longest first: what was used once, and what was used
    again."""

    holder: Holder
    bytes: int = 0
    once: OrderedDict[str, int] = field(default_factory=OrderedDict)
    again: OrderedDict[str, int] = field(default_factory=OrderedDict)
    once_bytes: int = 0

    def first_to_go(self) -> str:
        """What came last goes only where nothing else is left: else nothing new would ever be used again."""
        is_once = not self.again or (len(self.once) > 1 and self.once_bytes > self.bytes // 4)
        return next(iter(self.once if is_once else self.again))


class Room:
    """Keys, their sizes and their holders; bounded by `max_bytes` as far as what `surplus` names is dropped."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.bytes = 0
        self._part_of: dict[str, _Part] = {}
        self._sides: dict[bool, dict[str, _Part]] = {True: {}, False: {}}
        self._side_bytes = {True: 0, False: 0}

    def __len__(self) -> int:
        return len(self._part_of)

    def __contains__(self, key: str) -> bool:
        return key in self._part_of

    def add(self, key: str, size: int, of: Holder) -> None:
        """What is there under that key already is replaced."""
        self.drop(key)
        part = self._sides[of.is_shared].setdefault(of.name, _Part(of))
        self._part_of[key] = part
        part.once[key] = 0
        self._grow(part, part.once, key, size)

    def grow(self, key: str, by: int) -> None:
        """It takes more; nothing happens where it is not there."""
        part = self._part_of.get(key)
        if part is not None:
            self._grow(part, part.once if key in part.once else part.again, key, by)

    def use(self, key: str) -> bool:
        """It was used again; whether for the first time."""
        part = self._part_of.get(key)
        if part is None:
            return False
        size = part.once.pop(key, None)
        if size is None:
            part.again.move_to_end(key)
            return False
        part.again[key] = size
        part.once_bytes -= size
        return True

    def drop(self, key: str) -> None:
        part = self._part_of.get(key)
        if part is None:
            return
        kept = part.once if key in part.once else part.again
        self._grow(part, kept, key, -kept[key])
        del kept[key], self._part_of[key]
        if not part.once and not part.again:
            del self._sides[part.holder.is_shared][part.holder.name]

    def surplus(self) -> str | None:
        """What is to be dropped next, None where everything has room."""
        if self.bytes <= self.max_bytes or not self._part_of:
            return None
        side = self._sides[self._side_bytes[True] > self._side_bytes[False]]
        return max(side.values(), key=lambda part: part.bytes).first_to_go()

    def _grow(self, part: _Part, kept: OrderedDict[str, int], key: str, by: int) -> None:
        kept[key] += by
        part.bytes += by
        if kept is part.once:
            part.once_bytes += by
        self.bytes += by
        self._side_bytes[part.holder.is_shared] += by


class Deposits:
    """What this process has put elsewhere, where each goes by itself after a time. Times are of any one clock, in
    seconds."""

    def __init__(self, max_bytes: int) -> None:
        self._room = Room(max_bytes)
        self._until_s: dict[str, float] = {}
        self._swept_s = float("-inf")

    @property
    def max_bytes(self) -> int:
        return self._room.max_bytes

    @max_bytes.setter
    def max_bytes(self, most: int) -> None:
        self._room.max_bytes = most

    @property
    def bytes(self) -> int:
        return self._room.bytes

    def add(self, key: str, size: int, of: Holder, until_s: float, now_s: float) -> tuple[str, ...]:
        """Counts what is put there until then; the keys that are to be removed there to make room for it. It is among
        them where it has none itself."""
        self._room.add(key, size, of)
        self._until_s[key] = until_s
        if self._room.surplus() is not None and now_s >= self._swept_s + _SWEEP_S:
            self._swept_s = now_s
            for gone in [known for known, end_s in self._until_s.items() if end_s <= now_s]:
                self.drop(gone)
        removed: list[str] = []
        while (first := self._room.surplus()) is not None:
            self.drop(first)
            removed.append(first)
        return tuple(removed)

    def use(self, key: str) -> None:
        self._room.use(key)

    def drop(self, key: str) -> None:
        self._room.drop(key)
        self._until_s.pop(key, None)
