"""Several replicas of the gateway on one store, behind a hop that gives each request to the next."""

import asyncio
import copy
from collections.abc import AsyncIterator, Awaitable, Callable, MutableSequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from policies.sealing import new_key
from tests.gateway_process import Behind, GatewayProcess, running
from tests.hop import Hop, address, hopping
from tests.raw_front import Front, Session
from tests.valkey import valkey

KEYS = [new_key("k", b"k" * 32)]


class Fleet:
    """What a `GatewayProcess` is to its clients."""

    def __init__(
        self,
        hop: Hop,
        replicas: MutableSequence[GatewayProcess],
        store: str,
        start: Callable[[], Awaitable[GatewayProcess]],
    ) -> None:
        self.hop = hop
        self.url = hop.url
        self.keys = KEYS
        self.replicas = replicas
        self.store = store
        self._start = start

    def front(self, path: str = "/mcp") -> Front:
        return Front(self.url + path)

    def check(self) -> None:
        """All of them run."""
        for replica in self.replicas:
            replica.check()

    async def start_another(self) -> GatewayProcess:
        """One more replica, to which the hop does not lead."""
        return await self._start()

    async def start_again(self, index: int) -> None:
        """Another replica in the place of one that was killed."""
        self.replicas[index] = await self._start()
        self.hop.targets[index] = address(self.replicas[index].url)

    def stderr(self) -> str:
        return "".join(replica.stderr() for replica in self.replicas)


def at(session: Session, replica: GatewayProcess) -> Session:
    """The same session, its requests to this replica alone."""
    there = copy.copy(session)
    there.front = replica.front(session.front.path)
    return there


@asynccontextmanager
async def fleet(
    behind: Behind, *, count: int = 2, store: str = "", timeout_ms: int = 2000, **more: Any
) -> AsyncIterator[Fleet]:
    """`count` replicas before the same upstreams; `store`: the URL of one that runs, else a Valkey of its own, whose
    answers they wait `timeout_ms` for."""
    async with AsyncExitStack() as stack:
        url = store or await stack.enter_async_context(valkey())

        async def start() -> GatewayProcess:
            return await stack.enter_async_context(
                running(behind, keys=KEYS, store={"url": url, "timeout_ms": timeout_ms}, **more)
            )

        replicas = await asyncio.gather(*(start() for _ in range(count)))
        hop = await stack.enter_async_context(hopping([replica.url for replica in replicas]))
        yield Fleet(hop, replicas, url, start)
