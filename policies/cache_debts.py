"""Which marks of the cache are yet to be ended for all replicas, since the store could not be told when they were ended
here.

A debt stands until a payment that began after it was made. However many there are, they are few: beyond `MAX_OWED`
each counts for everything that it is a part of.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from policies import cache

Name = tuple[str, str]
"""An upstream and one of its marks."""

MAX_OWED: Final = 1024
"""Beyond it an upstream's are at most as many as it has marks that are no resource's own."""


class Debts:
    def __init__(self) -> None:
        self._made: dict[Name, int] = {}
        self._count = 0

    def __bool__(self) -> bool:
        return bool(self._made)

    def __len__(self) -> int:
        return len(self._made)

    def owe(self, names: Iterable[Name]) -> None:
        self._count += 1
        self._made.update(dict.fromkeys(names, self._count))
        if len(self._made) > MAX_OWED:
            made: dict[Name, int] = {}
            for (upstream, mark), when in self._made.items():
                whole = (upstream, cache.whole_of(mark))
                made[whole] = max(when, made.get(whole, 0))
            self._made = made

    def owes(self, names: Iterable[Name]) -> bool:
        """Whether one of these is owed. What was read stands under all resources too, so that it is found to be owed
        where its own mark counts for them."""
        return any(name in self._made for name in names)

    @property
    def due(self) -> Mapping[Name, int]:
        """What a payment that begins now is for."""
        return dict(self._made)

    def paid(self, due: Mapping[Name, int]) -> None:
        """That payment has been made. What was owed again meanwhile still is."""
        for name, when in due.items():
            if self._made.get(name) == when:
                del self._made[name]
