"""The status page in a real browser: `make test-system`."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import pytest
import pytest_asyncio

from tests.gateway_process import GatewayProcess, running
from tests.peers import LEGACY, LegacyUpstream, ModernUpstream
from tests.status.browser import Browser, chromium
from tests.status.conftest import TOKEN

EVIL = "<script>document.title = 'evil'</script>"
CALL = ("tools/call", {"name": "t", "arguments": {}})
ADMIN = {"admin": "127.0.0.1:0"}
NO_SCRIPT = {"profile.managed_default_content_settings.javascript": 2}
TAB, ENTER = "\ue004", "\ue007"

LIVE = "return document.getElementById('live').textContent === 'live'"
STATE = "return document.querySelector('#upstreams tbody td .badge').textContent"
WATCH = """
window.seen = new Promise((done) => new MutationObserver(() => {
  if (document.querySelector('#upstreams tbody td .badge').textContent === 'down') done(performance.now());
}).observe(document.getElementById('upstreams'), {childList: true, subtree: true}));
return performance.now();
"""


WIDER = """
return [...document.querySelectorAll('main *')]
  .filter((one) => one.getBoundingClientRect().right > innerWidth)
  .map((one) => one.outerHTML.slice(0, 100));
"""


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def window() -> AsyncIterator[Browser]:
    async with chromium() as browser:
        yield browser


async def opened(browser: Browser, gateway: GatewayProcess, path: str = "/status") -> Browser:
    """The page, kept up; nothing is left of how another test looked at one."""
    await browser.go("about:blank")
    await browser.console()
    await browser.devtools("Emulation.setEmulatedMedia", features=[])
    await browser.resize(1280, 900)
    await browser.go(gateway.admin_url + path)
    await browser.until(LIVE)
    return browser


async def test_the_page_is_kept_up_and_the_console_has_nothing_to_say(gateway: GatewayProcess, window: Browser) -> None:
    await opened(window, gateway)
    await gateway.front("/browser-was-here").modern(*CALL)
    await window.until("return document.getElementById('errors').textContent.includes('admission 404')")
    await gateway.front().modern(*CALL)
    await window.until("return document.querySelector('#upstreams svg') !== null")
    assert await window.console() == []


async def test_a_server_that_fails_is_shown_within_two_seconds(window: Browser) -> None:
    """Two seconds are the page's promise, so that here, time is the matter itself: from the client's error on."""
    async with ModernUpstream() as upstream, running({"mcp": upstream}, **ADMIN) as gateway:
        await gateway.front().modern(*CALL)
        await opened(window, gateway)
        await window.until(STATE + " === 'up'")
        await window.script(WATCH)
        await upstream.stop()
        assert (await gateway.front().modern(*CALL)).status in (502, 503)
        failed_ms = await window.script("return performance.now()")
        shown_ms = await window.script("return window.seen")
        assert shown_ms - failed_ms < 2000
        await upstream.start()
        await window.until(STATE + " === 'up'")


async def test_a_server_that_calls_itself_a_script_is_text(window: Browser) -> None:
    async with LegacyUpstream(sessions=False) as upstream:
        info = {"name": EVIL, "version": "1"}
        upstream.on["initialize"] = {"protocolVersion": LEGACY, "capabilities": {}, "serverInfo": info}
        async with running({"evil": upstream}, **ADMIN) as gateway:
            await gateway.front("/evil").initialize()
            await opened(window, gateway)
            await gateway.front("/evil").modern(*CALL)
            await window.until("return document.querySelector('#upstreams svg') !== null")  # an event has come
            assert EVIL in await window.text_of("#upstreams")
            assert await window.script("return [document.title, document.scripts.length]") == [
                "mcp-front-door: status",
                1,
            ]
            assert await window.console() == []


async def test_without_scripts_the_page_is_all_there(gateway: GatewayProcess) -> None:
    async with chromium(NO_SCRIPT) as browser:
        await browser.go(gateway.admin_url + "/status")
        said = await browser.text_of("body")
    for text in ("Upstreams", "mcp", "2026-07-28", "desktop-apps-2026-01-26-v1", "✓ negotiated", "Routes", "/mcp"):
        assert text in said
    assert "Pause" not in said, "what needs a script is not there without"


@pytest.mark.parametrize("width", [320, 600, 960, 1280])
async def test_nothing_is_wider_than_the_screen(gateway: GatewayProcess, window: Browser, width: int) -> None:
    await opened(window, gateway)
    await window.resize(width, 800)
    wide, seen = await window.script("return [document.documentElement.scrollWidth, innerWidth]")
    assert (wide, seen) == (width, width)
    assert await window.script(WIDER) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_text_can_be_read_in_light_and_in_dark(gateway: GatewayProcess, window: Browser, scheme: str) -> None:
    """Contrasts of at least 4.5 to 1 (WCAG 2.2, 1.4.3)."""
    await opened(window, gateway)
    await window.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    ground = await window.script("return getComputedStyle(document.body).backgroundColor")
    assert (luminance(ground) > 0.5) == (scheme == "light")
    found: list[list[Any]] = await window.script(CONTRASTS)
    assert len(found) > 20
    assert [each for each in found if contrast(each[1], each[2]) < 4.5] == []


CONTRASTS = """
const ground = (one) => {
  const color = getComputedStyle(one).backgroundColor;
  return color === 'rgba(0, 0, 0, 0)' && one.parentElement ? ground(one.parentElement) : color;
};
return [...document.querySelectorAll('body *')]
  .filter((one) => [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim()))
  .filter((one) => one.getClientRects().length && !one.closest('svg'))
  .map((one) => [one.outerHTML.slice(0, 80), getComputedStyle(one).color, ground(one)]);
"""


def luminance(color: str) -> float:
    """Of `rgb(r, g, b)`, as WCAG defines it."""
    parts = [int(part) / 255 for part in color.removeprefix("rgb(").removesuffix(")").split(", ")]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


async def test_the_page_is_used_with_the_keyboard_alone(gateway: GatewayProcess, window: Browser) -> None:
    await opened(window, gateway)
    focused = "return document.activeElement.textContent"
    await window.press(TAB)
    assert await window.script(focused) == "To the content"
    assert await window.script("return document.activeElement.getBoundingClientRect().left >= 0"), "it is seen"
    await window.press(TAB)
    assert await window.script(focused) == "Pause"
    await window.press(ENTER)
    assert await window.text_of("#live") == "paused"
    assert await window.script(focused) == "Go on", "the focus stays where it was"
    await window.press(ENTER)
    await window.until(LIVE)
    stops = []
    for _ in range(5):
        await window.press(TAB)
        stops.append(await window.script(focused))
    assert stops == ["Upstreams", "Hosts by profile", "Numbers", "Routes", "Recent errors"]
    await window.press(ENTER)
    assert await window.script("return location.hash") == "#errors-title"


async def test_the_structure_is_told_to_those_who_do_not_see_it(gateway: GatewayProcess, window: Browser) -> None:
    await opened(window, gateway)
    nodes = (await window.devtools("Accessibility.getFullAXTree"))["nodes"]
    roles = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node["ignored"]]
    for wanted in (
        *(("navigation", "Parts of this page"), ("heading", "Upstreams"), ("region", "Hosts by profile")),
        *(("columnheader", "Protocol Connection"), ("rowheader", "mcp"), ("button", "Pause")),
    ):
        assert wanted in roles


async def test_a_browser_logs_in_with_the_token_as_a_password(guarded: GatewayProcess) -> None:
    async with chromium() as browser:
        at = urlsplit(guarded.admin_url)
        await browser.go(f"{at.scheme}://operator:{TOKEN}@{at.netloc}/status")
        await browser.until(LIVE)
        assert await browser.console() == []


async def test_a_page_finds_its_gateway_again_after_a_restart(window: Browser) -> None:
    async with ModernUpstream() as upstream:
        async with running({"mcp": upstream}, **ADMIN) as gateway:
            await opened(window, gateway)
            port = urlsplit(gateway.admin_url).port
        await window.until("return document.getElementById('live').textContent.startsWith('not connected')")
        async with running({"mcp": upstream}, admin=f"127.0.0.1:{port}"):
            await window.until(LIVE)
        await asyncio.wait_for(window.go("about:blank"), 30)
