"""The status page as its readers meet it: over HTTP, on the admin listener of a real gateway."""

import asyncio
import base64
import json
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.front.status_page import CSP, MAX_STREAMS
from tests.gateway_process import GatewayProcess, running, settings
from tests.http_wire import DEADLINE_S
from tests.peers import LEGACY, MODERN, LegacyUpstream, ModernUpstream
from tests.ports import free_port
from tests.raw_front import Front, Open
from tests.status.conftest import TOKEN

ADMIN = {"admin": "127.0.0.1:0"}
EVIL = "<script>alert(1)</script>"
CALL = ("tools/call", {"name": "t", "arguments": {"secret": "argument-that-nobody-sees"}})
GETS = ("/status", "/status.json", "/status/events", "/status/page.css", "/status/page.mjs", "/status/icon.svg")


def at(gateway: GatewayProcess, path: str) -> Front:
    return Front(gateway.admin_url + path)


async def told(gateway: GatewayProcess) -> Any:
    answer = await at(gateway, "/status.json").send("GET", {})
    assert answer.status == 200
    return json.loads(answer.body)


async def next_parts(stream: Open) -> dict[str, str]:
    event = await stream.event()
    assert event is not None
    changed: dict[str, str] = json.loads(event.data or b"")
    return changed


async def until(stream: Open, part: str, text: str) -> None:
    """Reads events until a part of the page has a text."""
    async with asyncio.timeout(DEADLINE_S):
        while text not in (await next_parts(stream)).get(part, ""):
            pass


def basic(password: str, user: str = "") -> dict[str, str]:
    return {"Authorization": f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"}


async def test_what_has_gone_on_is_told() -> None:
    dead = {"url": f"http://127.0.0.1:{free_port()}/mcp"}
    async with (
        ModernUpstream() as modern,
        LegacyUpstream() as legacy,
        running({"modern": modern, "legacy": legacy, "dead": dead}, **ADMIN) as gateway,
    ):
        await gateway.front("/modern").modern(*CALL, capabilities={"elicitation": {"form": {}, "url": {}}})
        session = await gateway.front("/legacy").initialize()
        await session.request(*CALL)
        assert (await gateway.front("/dead").modern("tools/list")).status == 503
        assert (await gateway.front("/nowhere").modern("tools/list")).status == 404
        said = await told(gateway)
    assert said.keys() == {
        *("status", "version", "now", "process", "numbers", "cache", "store", "routes", "upstreams", "errors")
    }
    assert (said["status"], said["process"]["kind"], said["process"]["workers"]) == ("ready", "gateway", 0)
    assert said["numbers"]["sessions_opened"] == 1
    assert [route["address"] for route in said["routes"]] == ["/modern", "/legacy", "/dead"]
    known = {upstream["name"]: upstream for upstream in said["upstreams"]}
    assert {name: (up["state"], up["eras"], up["version"]) for name, up in known.items()} == {
        "modern": ("up", ["modern"], MODERN),
        "legacy": ("up", ["legacy"], LEGACY),
        "dead": ("down", [], ""),
    }
    assert known["modern"]["server"] == {"name": "scripted", "version": "1.0"}
    assert known["modern"]["calls"]["calls"] == 1
    assert known["modern"]["calls"]["failed"] == 0
    assert sum(point["calls"] for point in known["legacy"]["latency"]["points"]) == 1
    matrix = {
        (name, profile): [layer["state"] for layer in layers]
        for name, upstream in known.items()
        for profile, layers in upstream["hosts"].items()
    }
    assert matrix["modern", "interactive-v1"] == ["negotiated", "negotiated", "negotiated", "unavailable"]
    assert matrix["legacy", "interactive-v1"] == ["negotiated", "negotiated", "supported", "unavailable"]
    assert matrix["dead", "desktop-apps-2026-01-26-v1"] == ["unavailable"] * 4
    errors = {(error["kind"], error["code"], error["upstream"]) for error in said["errors"]}
    assert {("connection", "connect", "dead"), ("refused", "admission 404", "")} <= errors
    assert "argument-that-nobody-sees" not in json.dumps(said)


async def test_a_server_that_calls_itself_a_script_is_text() -> None:
    """In the page, in events, and in the JSON, where it stands as it is."""
    async with LegacyUpstream(sessions=False) as upstream:
        info = {"name": EVIL, "version": '"><img src=x onerror=alert(1)>'}
        upstream.on["initialize"] = {"protocolVersion": LEGACY, "capabilities": {}, "serverInfo": info}
        async with running({"evil": upstream}, **ADMIN) as gateway:
            await gateway.front("/evil").initialize()
            page = (await at(gateway, "/status").send("GET", {})).body.decode()
            async with at(gateway, "/status/events").open("GET", {}) as stream:
                parts = await next_parts(stream)
            assert (await told(gateway))["upstreams"][0]["server"]["name"] == EVIL
    for written in (page, parts["upstreams"]):
        assert EVIL not in written
        assert "<img" not in written
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in written


async def test_every_answer_forbids_what_the_page_does_not_need(gateway: GatewayProcess) -> None:
    for path in GETS:
        async with at(gateway, path).open("GET", {}) as answer:
            assert answer.status == 200, path
            assert answer.headers.get("Content-Security-Policy") == CSP
            assert answer.headers.get("X-Content-Type-Options") == "nosniff"
            assert answer.headers.get("Cache-Control") == "no-store"
        refused = await at(gateway, path).send("POST", {}, b"{}")
        assert (refused.status, refused.headers.get("Allow")) == (405, "GET, HEAD")
        assert (await at(gateway, path).send("HEAD", {})).status == 200
    assert "unsafe" not in CSP
    assert "http" not in CSP


async def test_the_page_loads_nothing_from_elsewhere_and_has_no_script_of_its_own(gateway: GatewayProcess) -> None:
    page = (await at(gateway, "/status").send("GET", {})).body.decode()
    loaded = re.findall(r'(?:src|href)="([^"#]+)"', page)
    assert loaded == ["/status/icon.svg", "/status/page.css", "/status/page.mjs", "/status.json"]
    assert page.count("<script") == 1
    assert not re.search(r" (?:style|on[a-z]+)=", page)
    for path in ("/status/page.css", "/status/page.mjs"):
        assert not re.search(r"url\(|import|https?:", (await at(gateway, path).send("GET", {})).body.decode())


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": f"Bearer {TOKEN}"}, 200),
        (basic(TOKEN), 200),
        (basic(TOKEN, "anybody"), 200),
        (basic(TOKEN + "x"), 401),
        (basic(""), 401),
        ({"Authorization": "Basic"}, 401),
        ({"Authorization": "Basic not-base64!"}, 401),
        ({"Authorization": f"Basic {TOKEN}"}, 401),
        ({"Authorization": f"Digest {TOKEN}"}, 401),
    ],
)
async def test_who_may_look(guarded: GatewayProcess, headers: dict[str, str], status: int) -> None:
    for path in GETS:
        async with at(guarded, path).open("GET", headers) as answer:
            assert answer.status == status
            if status == 401:
                assert (answer.headers.get("WWW-Authenticate") or "").startswith("Basic realm=")


async def test_what_a_browser_sends_by_itself_opens_nothing_but_the_page(guarded: GatewayProcess) -> None:
    for path, verb in [("/metrics", "GET"), ("/admin/cache/purge", "POST")]:
        answer = await at(guarded, path).send(verb, basic(TOKEN))
        assert (answer.status, answer.headers.get("WWW-Authenticate")) == (401, 'Bearer realm="admin"')


@pytest.mark.parametrize(
    ("path", "site", "mode", "status"),
    [
        ("/status/events", "same-origin", "cors", 200),
        ("/status/events", "none", "navigate", 200),
        ("/status/events", "cross-site", "no-cors", 403),
        ("/status/events", "cross-site", "navigate", 403),
        ("/status/events", "same-site", "cors", 403),
        ("/status", "cross-site", "navigate", 200),
        ("/status", "cross-site", "no-cors", 403),
        ("/status.json", "same-site", "cors", 403),
    ],
)
async def test_pages_of_other_sites_get_nothing_though_a_link_may_lead_here(
    gateway: GatewayProcess, path: str, site: str, mode: str, status: int
) -> None:
    async with at(gateway, path).open("GET", {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode}) as answer:
        assert answer.status == status


async def test_a_page_under_a_name_that_points_here_gets_nothing(gateway: GatewayProcess) -> None:
    assert (await at(gateway, "/status").send("GET", {"Host": "evil.example"})).status == 403


async def test_events_carry_the_parts_that_change_and_no_others(gateway: GatewayProcess) -> None:
    await gateway.front().modern(*CALL)
    async with at(gateway, "/status/events").open("GET", {}) as stream:
        assert stream.headers.get("Content-Type") == "text/event-stream"
        first = await next_parts(stream)
        assert first.keys() == {"state", "upstreams", "hosts", "numbers", "routes", "errors"}
        await gateway.front("/nowhere").modern(*CALL)
        async with asyncio.timeout(DEADLINE_S):
            while "errors" not in (later := await next_parts(stream)):
                pass
        assert "admission 404" in later["errors"]
        assert not {"routes", "state"} & later.keys()


async def test_an_upstream_that_fails_and_comes_back_is_shown() -> None:
    async with ModernUpstream() as upstream, running({"mcp": upstream}, **ADMIN) as gateway:
        await gateway.front().modern(*CALL)
        async with at(gateway, "/status/events").open("GET", {}) as stream:
            await until(stream, "upstreams", '<span class="badge good">up</span>')
            await upstream.stop()
            assert (await gateway.front().modern(*CALL)).status in (502, 503)
            await until(stream, "upstreams", '<span class="badge bad">down</span>')
            await upstream.start()
            await until(stream, "upstreams", '<span class="badge good">up</span>')


async def test_streams_are_bounded_and_a_place_becomes_free_again(gateway: GatewayProcess) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(MAX_STREAMS):
            stream = await stack.enter_async_context(at(gateway, "/status/events").open("GET", {}))
            await next_parts(stream)
        refused = await at(gateway, "/status/events").send("GET", {})
        assert (refused.status, refused.headers.get("Retry-After")) == (503, "5")
        assert (await at(gateway, "/status").send("GET", {})).status == 200
    async with asyncio.timeout(DEADLINE_S):
        while True:
            async with at(gateway, "/status/events").open("GET", {}) as stream:
                if stream.status == 200:
                    break


async def test_streams_have_a_proper_end_when_the_gateway_stops() -> None:
    async with AsyncExitStack() as stack:
        async with ModernUpstream() as upstream, running({"mcp": upstream}, **ADMIN) as gateway:
            stream = await stack.enter_async_context(at(gateway, "/status/events").open("GET", {}))
            await next_parts(stream)
            reading = asyncio.create_task(stream.whole())
        await reading  # raises where the last chunk is missing


async def test_streams_end_where_the_token_is_another(tmp_path: Path) -> None:
    async with ModernUpstream() as upstream, reloadable(tmp_path, upstream, TOKEN) as (gateway, file):
        async with at(gateway, "/status/events").open("GET", basic(TOKEN)) as stream:
            await next_parts(stream)
            fresh = file.with_suffix(".new")
            fresh.write_text(json.dumps(settings({"mcp": upstream}, **ADMIN, admin_token=TOKEN + "-new")))
            fresh.replace(file)
            await stream.whole()
        assert (await at(gateway, "/status").send("GET", basic(TOKEN))).status == 401
        assert (await at(gateway, "/status").send("GET", basic(TOKEN + "-new"))).status == 200


@asynccontextmanager
async def reloadable(folder: Path, upstream: ModernUpstream, token: str) -> AsyncIterator[tuple[GatewayProcess, Path]]:
    file = folder / "gateway.yaml"
    file.write_text(json.dumps(settings({"mcp": upstream}, **ADMIN, admin_token=token)))
    gateway = await GatewayProcess.start(["serve", "-c", str(file)], folder)
    try:
        yield gateway, file
    finally:
        await gateway.stop()
