"""The operating system's Chromium, driven over WebDriver (W3C), which is HTTP and JSON: what these tests need of it is
a few requests, and no library."""

import asyncio
import base64
import os
import re
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from tests.http_wire import DEADLINE_S

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars"),
)
WAIT_S = 3 * DEADLINE_S
"""A browser starts slowly on a busy machine."""


class Browser:
    """One window. `script` runs a function's body in the page and gives what it returns."""

    def __init__(self, http: aiohttp.ClientSession, session: str) -> None:
        self._http = http
        self._session = session

    async def go(self, url: str) -> None:
        await self._do("POST", "/url", {"url": url})

    async def script(self, body: str, *arguments: Any) -> Any:
        return await self._do("POST", "/execute/sync", {"script": body, "args": list(arguments)})

    async def until(self, body: str, *arguments: Any, within_s: float = WAIT_S) -> None:
        """Asks until a script returns something true."""
        async with asyncio.timeout(within_s):
            while not await self.script(body, *arguments):
                await asyncio.sleep(0.02)

    async def console(self) -> list[str]:
        """What the browser has complained of since it was asked last."""
        return [entry["message"] for entry in await self._do("POST", "/se/log", {"type": "browser"})]

    async def source(self) -> str:
        return str(await self._do("GET", "/source"))

    async def text_of(self, css: str) -> str:
        """What a reader sees of an element."""
        found = await self._do("POST", "/element", {"using": "css selector", "value": css})
        return str(await self._do("GET", f"/element/{next(iter(found.values()))}/text"))

    async def press(self, *keys: str) -> None:
        """Keys, one after the other, wherever the focus is."""
        strokes = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        await self._do("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": strokes}]})

    async def devtools(self, command: str, **parameters: Any) -> Any:
        return await self._do("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    async def picture(self) -> bytes:
        """What is seen of the page, as PNG."""
        taken = await self.devtools("Page.captureScreenshot")
        return base64.b64decode(taken["data"])

    async def resize(self, width: int, height: int) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        await self.devtools("Emulation.setDeviceMetricsOverride", **size)

    async def _do(self, verb: str, path: str, body: Any = None) -> Any:
        async with self._http.request(verb, f"/session/{self._session}{path}", json=body) as answer:
            value = (await answer.json())["value"]
        assert answer.status == 200, value
        return value


@asynccontextmanager
async def chromium(preferences: dict[str, Any] | None = None) -> AsyncIterator[Browser]:
    """A browser of its own, with an empty profile."""
    with tempfile.TemporaryDirectory() as profile:
        driver = await asyncio.create_subprocess_exec(
            *("chromedriver", "--port=0"), stdout=asyncio.subprocess.PIPE, start_new_session=True
        )
        try:
            async with asyncio.timeout(WAIT_S):
                address = await _address(driver)
            async with aiohttp.ClientSession(address) as http:
                options = {"args": [*FLAGS, f"--user-data-dir={profile}"], "prefs": preferences or {}}
                wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
                async with http.post("/session", json={"capabilities": {"alwaysMatch": wanted}}) as answer:
                    value = (await answer.json())["value"]
                assert answer.status == 200, value
                yield Browser(http, value["sessionId"])
                async with http.delete(f"/session/{value['sessionId']}"):
                    pass
        finally:
            os.killpg(driver.pid, signal.SIGKILL)
            await driver.wait()


async def _address(driver: asyncio.subprocess.Process) -> str:
    assert driver.stdout is not None
    async for line in driver.stdout:
        if found := re.search(rb"started successfully on port (\d+)", line):
            return f"http://127.0.0.1:{int(found[1])}"
    raise AssertionError("chromedriver has ended")
