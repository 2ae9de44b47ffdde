"""The one protocol through which state that another replica could need is kept.

Keys and channels are any text. A key holds one kind of thing for as long as it lives: a value (`incr` counts in one), a
hash, or a log. Each operation touches one key and is atomic, so that it is one on every node of a cluster too.

Cancel-safe: an operation that is cancelled, or that raised `StoreUnavailable`, either has happened or has not. Whoever
must know looks.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol

from policies.errors import GatewayFault

MAX_READ: Final = 128
"""How many entries one `read` returns: what is left comes with the next, and no reader needs more at a time."""
MAX_UNREAD: Final = 1024
"""How many messages wait for a slow subscriber: more are dropped, and a gap says so."""


class StoreUnavailable(GatewayFault):
    """The store did not do what it was asked within its time, or would not. `message` holds no address."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.headers = (("Retry-After", "1"),)  # a store that is down is probed once a second


class Store(Protocol):
    """Times are in seconds. A `ttl_s` of 0 or less leaves nothing behind; what is positive counts from 1 ms on.

    Every method may raise `StoreUnavailable`, and none waits longer for the store than its time-out; `read` by `wait_s`
    more.
    """

    @property
    def shared(self) -> bool:
        """Whether other processes see what is kept here."""

    @property
    def up(self) -> bool:
        """Whether the store answers, as far as is known; while it does not, operations fail at once."""

    async def get(self, key: str) -> bytes | None:
        """The value, or None where there is none or it has expired."""

    async def set(self, key: str, value: bytes, ttl_s: float) -> None:
        """Sets or replaces; the value is gone after `ttl_s`, at once where that is 0 or less."""

    async def set_nx(self, key: str, value: bytes, ttl_s: float) -> bool:
        """Sets only where nothing is; whether it did."""

    async def delete(self, key: str) -> None:
        """Removes, whatever it is; nothing happens where nothing is."""

    async def delete_if(self, key: str, value: bytes) -> bool:
        """Removes only what still holds `value`, a lease that is given back; whether it did."""

    async def renew(self, key: str, value: bytes, ttl_s: float) -> bool:
        """A new time for what still holds `value`, a lease that is extended; whether it does."""

    async def incr(self, key: str, ttl_s: float, by: int = 1) -> int:
        """Adds to a number that starts at 0, and returns it. Its time starts when it is made, and no later call moves
        it. 64 bits, signed."""

    async def put_field(self, key: str, field: str, value: bytes | None, ttl_s: float) -> None:
        """Sets a field of a hash, or removes it (None). The whole hash is gone `ttl_s` after the last of these."""

    async def fields(self, key: str) -> dict[str, bytes]:
        """All fields of a hash; none where there is no hash. For small ones."""

    async def append(self, key: str, value: bytes, ttl_s: float, bound: int) -> None:
        """Adds an entry to a log, which keeps its newest `bound` entries (1 or more). The whole log is gone `ttl_s`
        after the last of these."""

    async def read(self, key: str, after: str, wait_s: float) -> list[tuple[str, bytes]]:
        """The oldest entries of a log after a cursor, at most `MAX_READ`, each with its own cursor, which is opaque and
        of this log; "" is its start. Where there are none, waits up to `wait_s` for the first; [] at its end.

        Entries that were trimmed, and those of a log that was removed or has expired, are missed unseen. A log that is
        made anew goes on after the cursors of the old one."""

    async def publish(self, channel: str, value: bytes) -> None:
        """Sends to everybody who is subscribed at this moment."""

    def subscribe(self, channel: str) -> AbstractAsyncContextManager[AsyncIterator[bytes | None]]:
        """What is published from the moment that this is entered until it is left, in order.

        None stands for what may be missing there: once after a lost connection, when the next one is subscribed, and
        for what a slow reader left unread beyond `MAX_UNREAD`. Entering waits for the store no longer than one
        operation does and never fails; where it could not subscribe in that time, it goes on trying, and None comes
        first. The iterator ends when the store is closed."""

    async def ping(self) -> None:
        """Asks the store for a sign of life."""

    async def close(self) -> None:
        """Lets go of what the store holds."""
