"""One subscriber's unread messages, whatever store they come from. Whence and when is not known here."""

import asyncio
from collections import deque

from gateway.stores.base import MAX_UNREAD


class Reader:
    """An async iterator of messages; None stands for some that are missing. One task reads it."""

    def __init__(self) -> None:
        self._unread: deque[bytes | None] = deque()
        self._arrived = asyncio.Event()
        self._ended = False

    def put(self, value: bytes) -> None:
        """A message; where too many are unread already, a gap instead of them."""
        if len(self._unread) >= MAX_UNREAD:
            self._unread.clear()
            self.gap()
        self._add(value)

    def gap(self) -> None:
        """Some messages may be missing here."""
        if not self._unread or self._unread[-1] is not None:
            self._add(None)

    def end(self) -> None:
        """No more come."""
        self._ended = True
        self._arrived.set()

    def __aiter__(self) -> "Reader":
        return self

    async def __anext__(self) -> bytes | None:
        while not self._unread:
            if self._ended:
                raise StopAsyncIteration
            self._arrived.clear()
            await self._arrived.wait()
        return self._unread.popleft()

    def _add(self, value: bytes | None) -> None:
        self._unread.append(value)
        self._arrived.set()
