"""What a gateway process holds, as Linux says."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from tests.gateway_process import GatewayProcess
from tests.http_wire import DEADLINE_S


def connections(gateway: GatewayProcess) -> int:
    """Clients' connections that the gateway has not closed."""
    port = f":{gateway.front().port:04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    closed = ("06", "0A")  # TIME_WAIT belongs to the system, LISTEN to nobody
    return sum(row[1].endswith(port) and row[3] not in closed for row in rows)


def resident_bytes(gateway: GatewayProcess) -> int:
    pages = Path(f"/proc/{gateway.process.pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGESIZE")


async def until(holds: Callable[[], bool]) -> None:
    """Waits for what no event tells."""
    async with asyncio.timeout(DEADLINE_S):
        while not holds():
            await asyncio.sleep(0.02)
