"""Profiles before servers of the official Python SDK, which has MCP Apps built in: what its own helper makes of a host.

In a session the SDK (mcp 2.3) does not say that a server has Apps, since 2025-11-25 has no extensions. `apps:
advertise` says it."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import uvicorn
from mcp.server.apps import Apps, client_supports_apps
from mcp.server.mcpserver import Context, MCPServer

from gateway.demo.one_era import OneEra
from policies.mcp import APPS_EXTENSION
from tests.gateway.test_cli import run
from tests.gateway_process import GatewayProcess, running
from tests.http_wire import DEADLINE_S
from tests.raw_front import Answer, Front
from tests.scripted import Json

HTML = "text/html;profile=mcp-app"
ERAS = {"modern": "stateless", "legacy": "sessions"}


@asynccontextmanager
async def clock(era: str) -> AsyncIterator[str]:
    """The URL of a server of this era that offers Apps, and has a tool that says whether its host shows them."""
    apps = Apps()

    @apps.tool(resource_uri="ui://clock/app.html")
    def shows(ctx: Context) -> str:
        return str(client_supports_apps(ctx))

    apps.add_html_resource("ui://clock/app.html", "<!doctype html>")
    app = OneEra(MCPServer("clock", extensions=[apps]).streamable_http_app(), ERAS[era])  # type: ignore[arg-type]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1))
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        finally:
            server.should_exit = True
            async with asyncio.timeout(DEADLINE_S):
                await serving


async def asked(front: Front, era: str, declared: Json) -> tuple[Json, str]:
    """What a host that declares this is told of the server's extensions, and what the server makes of it."""
    call = ("tools/call", {"name": "shows", "arguments": {}})
    if era == "modern":
        described: Answer = await front.modern("server/discover", capabilities=declared)
        said = (await front.modern(*call, capabilities=declared)).said
    else:
        session = await front.initialize(capabilities=declared)
        described, said = session.opened, (await session.request(*call)).said
    return described.result["capabilities"].get("extensions", {}), said


HOSTS: list[tuple[str, Json, bool]] = [
    ("/open", {"extensions": {APPS_EXTENSION: {"mimeTypes": [HTML]}}}, True),
    ("/open", {"extensions": {APPS_EXTENSION: {"mimeTypes": ['Text/HTML; profile="mcp-app"', "x/y"]}}}, True),
    ("/open", {"extensions": {APPS_EXTENSION: {"mimeTypes": ["text/html+skybridge"]}}}, False),
    ("/open", {"elicitation": {"form": {}, "url": {}}}, False),
    ("/open", {}, False),
    ("/interactive", {"extensions": {APPS_EXTENSION: {"mimeTypes": [HTML]}}}, False),
]


@pytest.mark.parametrize("front_era", ERAS)
@pytest.mark.parametrize("era", ERAS)
async def test_server_and_host_are_told_the_same_of_each_other(front_era: str, era: str) -> None:
    async with clock(era) as url, serving(url) as gateway:
        for path, declared, shows in HOSTS:
            extensions, said = await asked(gateway.front(path), front_era, declared)
            assert (APPS_EXTENSION in extensions, said) == (shows, str(shows)), (path, declared)
        extensions, said = await asked(gateway.front("/silent"), front_era, HOSTS[0][1])
        assert (APPS_EXTENSION in extensions, said) == (era == "modern", "True")


@asynccontextmanager
async def serving(url: str) -> AsyncIterator[GatewayProcess]:
    routes = [
        {"path": "/open", "upstream": "clock", "apps": "advertise"},
        {"path": "/silent", "upstream": "clock"},
        {"path": "/interactive", "upstream": "clock", "profile": "interactive-v1"},
    ]
    async with running({"clock": {"url": url}}, routes=routes) as gateway:
        yield gateway


@pytest.mark.parametrize(
    ("era", "state", "detail"),
    [("modern", "negotiated", APPS_EXTENSION), ("legacy", "degraded", "lists tools with an interface")],
)
async def test_probe_shows_what_hosts_get_of_its_apps(era: str, state: str, detail: str) -> None:
    async with clock(era) as url:
        done = await run("probe", url, "--json")
    protocol, core, interactive, apps = json.loads(done.out)["hosts"]["desktop-apps-2026-01-26-v1"]
    assert [layer["state"] for layer in (protocol, core, interactive, apps)] == [*3 * ["negotiated"], state]
    assert detail in apps["detail"]
