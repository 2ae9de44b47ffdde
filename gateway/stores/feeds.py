"""What runs here and is read by a client at another replica: a row of items, pulled a few at a time.

The reader names the last item it has, so that a pull that was lost, or given up, is made again without loss; what it
has named is forgotten. A reader that pulls no more has gone, and what it read ends.
"""

import asyncio
import secrets
from collections import deque
from collections.abc import AsyncGenerator
from typing import Final

import msgspec

from gateway.background import Background
from gateway.stores.base import StoreUnavailable
from gateway.stores.mail import Mail, Unanswered
from policies.errors import Fault, GatewayFault

PULL_S: Final = 5.0
"""How long a pull waits for the first item."""

ABANDONED_S: Final = 15.0
"""After so long without a pull nobody reads any more: three pulls."""

READ_ON_S: Final = 10.0
"""How long a pull that fails is made again: a store has a new leader by then, and what is read is not abandoned yet."""

PAUSE_S: Final = 0.25
"""Before the next try."""

MAX_ITEMS: Final = 64
MAX_BYTES: Final = 1 << 20
"""What is kept ahead of a reader; beyond, or with one item larger than that, the writer waits."""


class _Pull(msgspec.Struct, array_like=True):
    feed: str
    after: int
    wait_s: float


class _Pulled(msgspec.Struct, array_like=True):
    """`over`: these are the last ones."""

    items: list[bytes]
    over: bool


class _Offered:
    def __init__(self, items: AsyncGenerator[bytes, None], *, is_elsewhere: bool) -> None:
        self._items = items
        self._is_elsewhere = is_elsewhere
        self._pulls = 0
        self._kept: deque[bytes] = deque()
        self._taken = 0
        self._bytes = 0
        self._over = False
        self._fault: Fault | None = None
        self._changed = asyncio.Event()
        self.task = asyncio.create_task(self._pump())

    async def _pump(self) -> None:
        try:
            async for item in self._items:
                self._kept.append(item)
                self._bytes += len(item)
                self._wake()
                while len(self._kept) >= MAX_ITEMS or self._bytes >= MAX_BYTES:
                    await self._changed.wait()
        except Fault as fault:
            self._fault = fault
        finally:
            self._over = True
            self._wake()
            await self._items.aclose()

    @property
    def is_waited_for(self) -> bool:
        """Whether somebody may still want it of this replica. What can be had elsewhere and is not being read is waited
        for by nobody: its reader may have died."""
        return self._pulls > 0 or not self._is_elsewhere

    async def pulled(self, after: int, wait_s: float) -> _Pulled:
        self._pulls += 1
        try:
            return await self._next(after, wait_s)
        finally:
            self._pulls -= 1

    async def _next(self, after: int, wait_s: float) -> _Pulled:
        while self._taken < after and self._kept:
            self._taken += 1
            self._bytes -= len(self._kept.popleft())
        self._wake()
        try:
            async with asyncio.timeout(wait_s):
                while not self._kept and not self._over:
                    await self._changed.wait()
        except TimeoutError:
            return _Pulled([], over=False)
        if not self._kept and self._fault is not None:
            raise self._fault
        return _Pulled(list(self._kept), self._over and self._fault is None)

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class Feeds:
    """What this replica offers to others."""

    def __init__(self, mail: Mail) -> None:
        self._offered: dict[str, _Offered] = {}
        self._expiries: dict[str, asyncio.TimerHandle] = {}
        self._ending = Background()
        mail.answer("pull", self._pull)
        mail.hear("leave", self._leave)

    def __len__(self) -> int:
        return len(self._offered)

    @property
    def are_waited_for(self) -> bool:
        """Whether a reader may still want what only this replica has."""
        return any(offered.is_waited_for for offered in self._offered.values())

    def offer(self, items: AsyncGenerator[bytes, None], *, is_elsewhere: bool = False) -> bytes:
        """The name under which `items` can be read from now on. They are closed when the reader leaves, or is gone.

        `is_elsewhere`: a reader that finds them gone has them from elsewhere, and misses nothing."""
        name = secrets.token_hex(8)
        self._offered[name] = _Offered(items, is_elsewhere=is_elsewhere)
        self._expire_later(name)
        return name.encode()

    async def close(self) -> None:
        for name in list(self._offered):
            await self._end(name)
        await self._ending.over()

    async def _pull(self, body: bytes) -> bytes:
        pull = msgspec.msgpack.decode(body, type=_Pull)
        offered = self._offered.get(pull.feed)
        if offered is None:
            raise GatewayFault("nobody has read on for too long", http=502)
        self._expire_later(pull.feed)
        return msgspec.msgpack.encode(await offered.pulled(pull.after, min(pull.wait_s, PULL_S)))

    def _leave(self, body: bytes) -> None:
        self._end_later(body.decode())

    async def _end(self, name: str) -> None:
        offered = self._offered.pop(name, None)
        if offered is None:
            return
        self._expiries.pop(name).cancel()
        offered.task.cancel()
        await asyncio.wait({offered.task})

    def _expire_later(self, name: str) -> None:
        before = self._expiries.pop(name, None)
        if before is not None:
            before.cancel()
        self._expiries[name] = asyncio.get_running_loop().call_later(ABANDONED_S, self._end_later, name)

    def _end_later(self, name: str) -> None:
        self._ending.start(self._end(name))


class Feed:
    """One feed of another replica's, read here."""

    def __init__(self, mail: Mail, replica: str, name: bytes) -> None:
        self._mail = mail
        self._replica = replica
        self._name = name.decode()
        self._read = 0
        self._over = False

    async def read(self) -> list[bytes]:
        """The next items; waits until there is one, [] at the end. Raises the `Fault` that ended it, or one of
        `Mail.ask`'s, `StoreUnavailable` only where the store fails for `READ_ON_S`. Cancel-safe."""
        while not self._over:
            pulled = await self._pulled()
            self._read += len(pulled.items)
            self._over = pulled.over
            if pulled.items:
                return pulled.items
        return []

    async def _pulled(self) -> _Pulled:
        loop = asyncio.get_running_loop()
        until = loop.time() + READ_ON_S
        while True:
            pull = msgspec.msgpack.encode(_Pull(self._name, self._read, PULL_S))
            try:
                raw = await self._mail.ask(self._replica, "pull", pull, PULL_S)
                return msgspec.msgpack.decode(raw, type=_Pulled)
            except (StoreUnavailable, Unanswered):
                if loop.time() >= until:
                    raise
                await asyncio.sleep(PAUSE_S)

    def leave(self) -> None:
        """Ends it, read to its end or not; an owner that cannot be told notices by itself."""
        self._mail.tell_soon(self._replica, "leave", self._name.encode())
