"""What ends entries, at every replica: marks, whose values are renewed when an upstream says that something changed.

An entry is good as long as the marks that it stands under have the values that they had before it was fetched. The
values are in the store, so that what is kept there needs not be found to be ended; a word to all replicas ends what
they hold themselves. A mark that could not be renewed, as the store was down, is owed, and what stands under it is not
looked for in the store until it is paid. Words that were missed count for everything.
"""

import asyncio
import secrets
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from gateway.cache.shelf import Name
from gateway.stores.base import Store, StoreUnavailable
from gateway.stores.mail import Mail
from policies.jsonrpc import dumps, loads

TTL_S: Final = 3 * 86_400.0
"""How long a renewed mark is remembered: longer than any entry that was fetched before lasts, which is two days."""

MAX_RENEWED: Final = 4096
"""Marks of which it is known when they were renewed; what is older counts as renewed with the oldest of them."""

_RETRY_S: Final = 0.5
_TOPIC: Final = "cache-renewed"


class Marks:
    """`on_renewed` is told which marks were renewed, None for all of them."""

    def __init__(self, store: Store, mail: Mail) -> None:
        self._store = store
        self._mail = mail
        self._moment = 0
        self._floor = 0
        self._renewed: dict[Name, int] = {}
        self._owed: dict[Name, None] = {}
        self._paying: asyncio.Task[None] | None = None
        self.on_renewed: Callable[[Sequence[Name] | None], None] = lambda _: None
        mail.hear(_TOPIC, self._on_word)
        mail.on_missed(self._missed)

    @property
    def moment(self) -> int:
        """Now, for `changed_since`."""
        return self._moment

    def changed_since(self, moment: int, upstream: str, marks: Iterable[str]) -> bool:
        """Whether any of these marks was renewed after that moment, as far as this replica knows."""
        return self._floor > moment or any(self._renewed.get((upstream, mark), 0) > moment for mark in marks)

    async def values(self, upstream: str, marks: Iterable[str]) -> tuple[str, ...] | None:
        """Their values in the store; None where one is owed. Raises `StoreUnavailable`."""
        names = [(upstream, mark) for mark in marks]
        if any(name in self._owed for name in names):
            return None
        found = await asyncio.gather(*(self._store.get(_key(name)) for name in names))
        return tuple((value or b"").decode(errors="replace") for value in found)

    async def renew(self, upstream: str, marks: Iterable[str]) -> bool:
        """Ends what stands under these marks, here at once; whether all replicas know it now."""
        names = [(upstream, mark) for mark in marks]
        self._note(names)
        if not self._store.shared:
            return True
        self._owed.update(dict.fromkeys(names))
        if await self._pay(names):
            return True
        if self._paying is None:
            self._paying = asyncio.create_task(self._pay_later(), name="cache marks")
        return False

    async def close(self) -> None:
        if self._paying is not None:
            self._paying.cancel()
            await asyncio.wait({self._paying})

    async def _pay(self, names: Sequence[Name]) -> bool:
        try:
            value = secrets.token_hex(8).encode()
            await asyncio.gather(*(self._store.set(_key(name), value, TTL_S) for name in names))
            await self._mail.tell_all(_TOPIC, dumps([list(name) for name in names]))
        except StoreUnavailable:
            return False
        for name in names:
            self._owed.pop(name, None)
        return True

    async def _pay_later(self) -> None:
        try:
            while self._owed:
                await asyncio.sleep(_RETRY_S)
                await self._pay(tuple(self._owed))
        finally:
            self._paying = None

    def _on_word(self, body: bytes) -> None:
        self._note([(upstream, mark) for upstream, mark in loads(body)])

    def _missed(self) -> None:
        self._moment += 1
        self._floor = self._moment
        self.on_renewed(None)

    def _note(self, names: Sequence[Name]) -> None:
        self._moment += 1
        for name in names:
            self._renewed.pop(name, None)
            self._renewed[name] = self._moment
        while len(self._renewed) > MAX_RENEWED:
            self._floor = max(self._floor, self._renewed.pop(next(iter(self._renewed))))
        self.on_renewed(names)


def _key(name: Name) -> str:
    upstream, mark = name
    return f"cache-mark:{upstream}:{mark}"
