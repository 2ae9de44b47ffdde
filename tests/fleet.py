"""Several replicas of the gateway on one store, behind a hop that gives each request to the next."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from policies.sealing import new_key
from tests.gateway_process import Behind, GatewayProcess, running
from tests.hop import Hop, hopping
from tests.raw_front import Front
from tests.valkey import valkey

KEYS = [new_key("k", b"k" * 32)]


class Fleet:
    """What a `GatewayProcess` is to its clients."""

    def __init__(self, hop: Hop, replicas: Sequence[GatewayProcess], store: str) -> None:
        self.hop = hop
        self.url = hop.url
        self.keys = KEYS
        self.replicas = replicas
        self.store = store

    def front(self, path: str = "/mcp") -> Front:
        return Front(self.url + path)

    def check(self) -> None:
        """All of them run."""
        for replica in self.replicas:
            replica.check()

    def stderr(self) -> str:
        return "".join(replica.stderr() for replica in self.replicas)


@asynccontextmanager
async def fleet(
    behind: Behind, *, count: int = 2, store: str = "", timeout_ms: int = 200, **more: Any
) -> AsyncIterator[Fleet]:
    """`count` replicas before the same upstreams; `store`: the URL of one that runs, else a Valkey of its own, whose
    answers they wait `timeout_ms` for."""
    async with AsyncExitStack() as stack:
        url = store or await stack.enter_async_context(valkey())
        started = [
            stack.enter_async_context(running(behind, keys=KEYS, store={"url": url, "timeout_ms": timeout_ms}, **more))
            for _ in range(count)
        ]
        replicas = await asyncio.gather(*started)
        hop = await stack.enter_async_context(hopping([replica.url for replica in replicas]))
        yield Fleet(hop, replicas, url)
