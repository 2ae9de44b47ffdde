"""What stands for one gateway in a cell with replicas: two of them on one store, behind a hop that changes the replica
at every request.

Usage: python -m tests.conformance.replicas --upstream URL --era ERA [--cluster]. Says where the hop listens, and ends
with everything it started on SIGTERM.
"""

import argparse
import asyncio
import signal
from contextlib import AsyncExitStack

from tests.fleet import fleet
from tests.valkey import cluster, valkey


async def serve(options: argparse.Namespace) -> None:
    behind = {"suite": {"url": options.upstream, "era": options.era}}
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(cluster() if options.cluster else valkey())
        routes = [{"path": "/mcp", "upstream": "suite"}]
        replicas = await stack.enter_async_context(fleet(behind, store=store, routes=routes))
        print(f"listening on {replicas.url}", flush=True)
        await stop.wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--upstream", required=True)
    parser.add_argument("--era", required=True)
    parser.add_argument("--cluster", action="store_true")
    asyncio.run(serve(parser.parse_args()))
