"""What one process holds ready: entries and the answers made of them, bounded by their bytes. Which goes first is
decided in `policies/cache_room.py`; what may be held, and for how long it is good, is not known here.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from policies.cache_debts import Name
from policies.cache_entry import Entry, Ready
from policies.cache_keys import Key
from policies.cache_room import Holder, Room, holder
from policies.exchange import Call
from policies.jsonrpc import dumps
from policies.sightings import Mark

_OVERHEAD_BYTES: Final = 1024
"""What an entry takes beside its own bytes, about."""


@dataclass(eq=False, slots=True)
class Held:
    """`call`: how the entry was asked for, and can be again; None where that took a caller's own headers, credentials
    perhaps, which nobody else may use and which are not to lie about here. `retry_at_s`: by the loop's clock, when a
    refresh that failed is tried again. `marks_seen`: what it shows of MCP Apps (`policies/sightings.py`), once that was
    looked for."""

    entry: Entry
    upstream: str
    marks: tuple[str, ...]
    call: Call | None
    key: Key
    ready: dict[str, Ready] = field(default_factory=dict)
    retry_at_s: float = 0.0
    marks_seen: tuple[Mark, ...] | None = None
    asked_bytes: int = field(init=False)

    def __post_init__(self) -> None:
        """What its caller sent is held with it, and is as large as the caller likes."""
        if self.call is not None and self.call.forwarded:
            self.call = None
        said = dumps([self.call.params, self.call.capabilities]) if self.call is not None else b""
        self.asked_bytes = _OVERHEAD_BYTES + 2 * len(said)

    @property
    def holder(self) -> Holder:
        return holder(self.key.partition, self.upstream, shared=self.entry.shared)

    @property
    def names(self) -> tuple[Name, ...]:
        """The marks that it stands under, and the page that it names as the one after it."""
        marks = tuple((self.upstream, mark) for mark in self.marks)
        return (*marks, _next(self.upstream, self.entry.next)) if self.entry.next else marks

    @property
    def size(self) -> int:
        return self.asked_bytes + self.entry.size + sum(len(one.result) for one in self.ready.values())


class Shelf:
    def __init__(self, max_bytes: int) -> None:
        self._room = Room(max_bytes)
        self._held: dict[str, Held] = {}
        self._under: dict[Name, set[str]] = {}
        self.on_used: Callable[[str], None] = lambda _: None
        """Told the key of what is used again for the first time."""

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[Held]:
        return iter(tuple(self._held.values()))

    @property
    def bytes(self) -> int:
        return self._room.bytes

    @property
    def max_bytes(self) -> int:
        return self._room.max_bytes

    @max_bytes.setter
    def max_bytes(self, most: int) -> None:
        self._room.max_bytes = most
        self._make_room()

    def get(self, key: str) -> Held | None:
        """What is held under a key, which is now used again."""
        held = self._held.get(key)
        if held is not None and self._room.use(key):
            self.on_used(key)
        return held

    def peek(self, key: str) -> Held | None:
        """The same, and it goes when it would have gone."""
        return self._held.get(key)

    def put(self, held: Held) -> None:
        """Holds an entry, in place of an older one of its key."""
        key = held.entry.key
        self.drop(key)
        self._held[key] = held
        self._room.add(key, held.size, held.holder)
        for name in held.names:
            self._under.setdefault(name, set()).add(key)
        self._make_room()

    def add_ready(self, held: Held, kind: str, ready: Ready) -> None:
        """Keeps an answer that was made of a held entry, for clients of a kind."""
        held.ready[kind] = ready
        if self._held.get(held.entry.key) is held:
            self._room.grow(held.entry.key, len(ready.result))
            self._make_room()

    def drop(self, key: str) -> None:
        held = self._held.pop(key, None)
        if held is None:
            return
        self._room.drop(key)
        for name in held.names:
            keys = self._under[name]
            keys.discard(key)
            if not keys:
                del self._under[name]

    def drop_under(self, names: Iterable[Name]) -> int:
        """Lets go of everything under these marks; how many entries that were."""
        keys = {key for name in names for key in self._under.get(name, ())}
        for key in keys:
            self.drop(key)
        return len(keys)

    def is_named(self, upstream: str, key: str) -> bool:
        """Whether a page that is held names what is under this key as the page after it."""
        return _next(upstream, key) in self._under

    def clear(self) -> None:
        for key in list(self._held):
            self.drop(key)

    def _make_room(self) -> None:
        while (key := self._room.surplus()) is not None:
            self.drop(key)


def _next(upstream: str, key: str) -> Name:
    return upstream, f"next {key}"
