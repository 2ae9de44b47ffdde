"""Takes the picture of the status page that the README shows, in the system's Chromium: a gateway before three scripted
servers, one of which is away, and hosts of each profile for two minutes.

    python -m tests.tools.status_picture        (writes docs/images/status.png)
"""

import asyncio
import random
from pathlib import Path
from typing import Any, Final

from tests.gateway_process import GatewayProcess, running
from tests.peers import LEGACY, LegacyUpstream, ModernUpstream, text
from tests.ports import free_port
from tests.scripted import Call, Err
from tests.status.browser import chromium

PICTURE: Final = Path(__file__).parents[2] / "docs" / "images" / "status.png"
TRAFFIC_S: Final = 120.0
WIDTH, HEIGHT = 1180, 1000
APPS: Final = {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}
INTERACTIVE: Final = {"elicitation": {"form": {}, "url": {}}}
CALL: Final = ("tools/call", {"name": "echo", "arguments": {}})


async def _slowly(call: Call) -> Any:
    await asyncio.sleep(random.lognormvariate(-3.6, 0.7))
    return Err(-32603, status=500) if random.random() < 0.01 else text("done")


async def _traffic(gateway: GatewayProcess) -> None:
    weather, harbour = gateway.front("/weather"), gateway.front("/harbour")
    session = await harbour.initialize(capabilities=INTERACTIVE)
    until_s = asyncio.get_running_loop().time() + TRAFFIC_S
    while asyncio.get_running_loop().time() < until_s:
        await asyncio.gather(
            weather.modern(*CALL, capabilities={}),
            weather.modern(*CALL, capabilities=INTERACTIVE),
            weather.modern(*CALL, capabilities={**INTERACTIVE, "extensions": APPS}),
            session.request(*CALL),
            asyncio.sleep(random.uniform(0.1, 1.0)),
        )
    await gateway.front("/memory").modern("tools/list")
    await gateway.front("/elsewhere").modern("tools/list")


async def main() -> None:
    async with ModernUpstream() as weather, LegacyUpstream() as harbour:
        info = {"name": "harbour-pilot", "version": "4.1.0"}
        offered = {"tools": {}, "resources": {}, "prompts": {}}
        harbour.on["tools/call"] = weather.on["tools/call"] = _slowly
        harbour.sessions = False
        harbour.on["initialize"] = {"protocolVersion": LEGACY, "capabilities": offered, "serverInfo": info}
        weather.on["server/discover"] = {
            "supportedVersions": ["2026-07-28"],
            "capabilities": {**offered, "extensions": APPS},
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "weather", "version": "2.3.1"}},
        }
        away = {"url": f"http://127.0.0.1:{free_port()}/mcp"}
        behind = {"weather": weather, "harbour": harbour, "memory": away}
        async with running(behind, admin="127.0.0.1:0") as gateway, chromium() as browser:
            await _traffic(gateway)
            await browser.resize(WIDTH, HEIGHT)
            await browser.go(gateway.admin_url + "/status")
            await browser.until("return document.getElementById('live').textContent === 'live'")
            PICTURE.parent.mkdir(exist_ok=True)
            PICTURE.write_bytes(await browser.picture())


if __name__ == "__main__":
    asyncio.run(main())
