"""Field report L7 at its own size: sessions that nobody ends, and streams that their clients reset.

Run as `make abandoned`. Prints what a gateway holds on the way and at the end, and ends with 1 where it does not come
back to what it was. Takes a minute or two on two cores; the tests ask the same of fewer.
"""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from tests.edge.process import connections, resident_bytes
from tests.gateway_process import GatewayProcess, running
from tests.peers import LISTEN, LegacyUpstream, ModernUpstream
from tests.scrape import gauges, settled

SESSIONS, STREAMS = 20_000, 2_000
"""Without a DELETE; of each era."""
WARM = 500
AT_ONCE = 32
PLATEAU_BYTES = 2048
"""A session more may cost this in the second half: less than its own token, so that nothing is kept for each."""


async def session(gateway: GatewayProcess) -> None:
    await gateway.front("/legacy").initialize(initialized=False)


async def get(gateway: GatewayProcess) -> None:
    opened = await gateway.front("/legacy").initialize(initialized=False)
    async with opened.get() as stream:
        stream.reset()


async def listen(gateway: GatewayProcess) -> None:
    wanted = {"notifications": {"toolsListChanged": True}}
    async with gateway.front("/modern").modern_open(LISTEN, wanted) as stream:
        stream.reset()


class Watch:
    """Does things many times over, and says what the gateway holds then."""

    def __init__(self, gateway: GatewayProcess) -> None:
        self.gateway = gateway

    async def many(self, what: str, count: int, one: Callable[[GatewayProcess], Awaitable[None]]) -> int:
        """Bytes of memory more, for each."""
        turns, began, before = asyncio.Semaphore(AT_ONCE), time.perf_counter(), resident_bytes(self.gateway)

        async def in_turn() -> None:
            async with turns:
                await one(self.gateway)

        await asyncio.gather(*(in_turn() for _ in range(count)))
        took, more = time.perf_counter() - began, (resident_bytes(self.gateway) - before) // count
        print(f"{count:6} {what:32} {took:6.1f} s {more:7} bytes each   {await self.held()}", flush=True)
        return more

    async def held(self) -> str:
        [tasks] = await gauges(self.gateway, "mcp_front_door_tasks")
        return f"{resident_bytes(self.gateway) >> 20} MiB, {self.descriptors()} descriptors, {tasks:.0f} tasks"

    async def settle(self) -> None:
        for name in ("mcp_front_door_exchanges_kept", "mcp_front_door_streams"):
            await settled(self.gateway, name, 0)
        while connections(self.gateway):
            await asyncio.sleep(0.1)

    def descriptors(self) -> int:
        return sum(1 for _ in Path(f"/proc/{self.gateway.process.pid}/fd").iterdir())


async def main() -> int:
    more = {"admin": "127.0.0.1:0", "streams": {"resume_ttl_s": 1}}
    async with LegacyUpstream(get_stream=True) as legacy, ModernUpstream() as modern:
        async with running({"legacy": legacy, "modern": modern}, **more) as gateway:
            watch = Watch(gateway)
            for what, one in (("sessions to warm up", session), ("GET streams", get), ("listen streams", listen)):
                await watch.many(what, WARM, one)
            await watch.settle()
            before = await gauges(gateway, "mcp_front_door_tasks"), watch.descriptors()
            await watch.many("sessions without a DELETE", SESSIONS // 2, session)
            each = await watch.many("more of them", SESSIONS // 2, session)
            await watch.many("GET streams that are reset", STREAMS, get)
            await watch.many("listen streams that are reset", STREAMS, listen)
            await watch.settle()
            after = await gauges(gateway, "mcp_front_door_tasks"), watch.descriptors()
            print(f"at the end: {await watch.held()}")
            # connections to the upstreams that are kept for the next request come and go
            is_back = after[0][0] - before[0][0] < AT_ONCE and after[1] - before[1] < AT_ONCE
            return 0 if is_back and each < PLATEAU_BYTES else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
