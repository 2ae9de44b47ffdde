"""What ends entries, at every replica: marks, which are taken away when an upstream says that something changed.

An entry is good as long as the marks that it stands under have the values that they had before it was fetched. The
values are in the store, so that what is kept there needs not be found to be ended: each is made by chance where there
is none, and removed where what stands under it ends. So nothing is good under a mark that is not there, whoever took it
away: a change, its time, a store that was flushed or is short of room. A word to all replicas ends what they hold
themselves.

A mark that could not be removed, as the store was down, is owed, and what stands under it is not looked for in the
store until it is. Words that were missed count for everything.
"""

import asyncio
import secrets
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import islice
from typing import Final

from gateway.stores.base import Store, StoreUnavailable
from gateway.stores.mail import Mail
from policies.cache import EVERY_MARK
from policies.cache_debts import Debts, Name
from policies.jsonrpc import dumps, loads

TTL_S: Final = 3 * 86_400.0
"""How long a mark lasts: longer than any entry that is fetched under a new one, which is two days."""

MAX_RENEWED: Final = 4096
"""Marks of which it is known when they were renewed; what is older counts as renewed with the oldest of them."""

LOST_S: Final = 120.0
"""A store that fails over may have lost what it was told last: what was removed so shortly before is removed again."""

_RETRY_S: Final = 0.5
_TOPIC: Final = "cache-renewed"
_AT_ONCE: Final = 64
"""Marks that are removed, and told of in one word, at a time."""


class Marks:
    """`on_renewed` is told which marks were renewed, None for all of them."""

    def __init__(self, store: Store, mail: Mail) -> None:
        self._store = store
        self._mail = mail
        self._moment = 0
        self._floor = 0
        self._renewed: dict[Name, int] = {}
        self._debts = Debts()
        self._changed: set[str] = set()
        """Upstreams that have said so since a mark of theirs was removed."""
        self._paid_s: dict[str, float] = {}
        """When that was."""
        self._payer: asyncio.Task[None] | None = None
        self._next: asyncio.Future[bool] | None = None
        self._wake = asyncio.Event()
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
        """Their values in the store; None where one is owed or not there. Raises `StoreUnavailable`."""
        names = [(upstream, mark) for mark in marks]
        if self._debts.owes(names):
            return None
        found = await asyncio.gather(*(self._store.get(_key(name)) for name in names))
        values = tuple(value.decode(errors="replace") for value in found if value)
        return values if len(values) == len(names) else None

    async def made(self, upstream: str, marks: Sequence[str]) -> tuple[str, ...] | None:
        """Their values, made where they are not there; None where one is owed. Raises `StoreUnavailable`."""
        values = await self.values(upstream, marks)
        names = [(upstream, mark) for mark in marks]
        if values is None and not self._debts.owes(names):
            value = secrets.token_hex(8).encode()
            await asyncio.gather(*(self._store.set_nx(_key(name), value, TTL_S) for name in names))
            values = await self.values(upstream, marks)
        return values

    def end(self, upstream: str, marks: Iterable[str]) -> "asyncio.Future[bool]":
        """Ends what stands under these marks, here at once; its outcome is whether all replicas know it."""
        names = [(upstream, mark) for mark in marks]
        self._note(names)
        if not self._store.shared:
            told = asyncio.get_running_loop().create_future()
            told.set_result(True)
            return told
        self._debts.owe(names)
        self._changed.add(upstream)
        return self._paid_soon()

    async def renew(self, upstream: str, marks: Iterable[str]) -> bool:
        """The same; whether all replicas know it now. Cancel-safe: it goes on."""
        return await asyncio.shield(self.end(upstream, marks))

    async def close(self) -> None:
        if self._payer is not None:
            self._payer.cancel()
            await asyncio.wait({self._payer})

    # paying: one task, for as long as anything is owed

    def _paid_soon(self) -> "asyncio.Future[bool]":
        """Whether the next payment, which is for all that is owed now, is made."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_future()
        if self._payer is None:
            self._payer = asyncio.create_task(self._pay(), name="cache marks")
        self._wake.set()
        return self._next

    async def _pay(self) -> None:
        told: asyncio.Future[bool] | None = None
        try:
            while self._debts:
                self._wake.clear()
                told, self._next = self._next, None
                paid = await self._pay_all()
                if told is not None:
                    told.set_result(paid)
                if not paid:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(_RETRY_S):
                            await self._wake.wait()
        finally:
            self._payer = None
            left, self._next = self._next, None
            for one in (told, left):
                if one is not None and not one.done():
                    one.set_result(False)

    async def _pay_all(self) -> bool:
        due = self._debts.due
        left = iter(due)
        while names := tuple(islice(left, _AT_ONCE)):
            try:
                await asyncio.gather(*(self._store.delete(_key(name)) for name in names))
                await self._mail.tell_all(_TOPIC, dumps([list(name) for name in names]))
            except StoreUnavailable:
                return False
            self._debts.paid({name: due[name] for name in names})
            told = self._changed & {upstream for upstream, _ in names}
            self._changed -= told
            self._paid_s.update(dict.fromkeys(told, asyncio.get_running_loop().time()))
        return True

    # hearing

    def _on_word(self, body: bytes) -> None:
        self._note([(upstream, mark) for upstream, mark in loads(body)])

    def _missed(self) -> None:
        self._moment += 1
        self._floor = self._moment
        self.on_renewed(None)
        now_s = asyncio.get_running_loop().time()
        self._paid_s = {upstream: paid_s for upstream, paid_s in self._paid_s.items() if now_s < paid_s + LOST_S}
        if self._paid_s:
            self._debts.owe([(upstream, mark) for upstream in self._paid_s for mark in EVERY_MARK])
            self._paid_soon()

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
