"""What is under way with one upstream, and the end of it when the upstream is retired."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from gateway.upstreams.patience import Patience
from policies.errors import UpstreamRetired


class Underway:
    """`with` it each request is counted. `retired`: only what may end by itself is still awaited."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._active = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self.retired = False

    def __enter__(self) -> None:
        self._active += 1
        self._idle.clear()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._active -= 1
        if self._active == 0:
            self._idle.set()

    @contextmanager
    def unless_retired(self, patience: Patience) -> Iterator[None]:
        """The same, for a transport that ends its streams itself. Raises `UpstreamRetired` for one that would begin
        now and that nothing needs."""
        if self.retired and patience.long_lived and not patience.needed:
            raise self.retirement()
        with self:
            yield

    async def over(self) -> None:
        """Waits until nothing is under way. May be cancelled."""
        await self._idle.wait()

    def retirement(self) -> UpstreamRetired:
        """The fault that ends the streams of a retired upstream."""
        return UpstreamRetired(f"upstream {self._name} is no longer configured as it was", http=503)
