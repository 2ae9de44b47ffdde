"""Real clients and servers of HTTP+SSE, the oldest of each SDK that still install and the last, through the gateway.

Specification: 2024-11-05 basic/transports (HTTP with SSE), schema of 2024-11-05.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import pytest
import pytest_asyncio

from tests.field.rich_results import RESULTS
from tests.gateway_process import running
from tests.hop import hopping
from tests.peers import LegacyUpstream, ModernUpstream
from tests.raw_front import Front
from tests.sse.peers import CLIENTS, SERVERS, served, understood


@dataclass(frozen=True, slots=True)
class Both:
    """The servers' own addresses, and those of the gateway's routes to them, by name."""

    direct: dict[str, str]
    routed: dict[str, str]
    front: Front


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def servers() -> AsyncIterator[Both]:
    async with AsyncExitStack() as stack:
        urls = await asyncio.gather(*(stack.enter_async_context(served(command)) for command in SERVERS.values()))
        direct = dict(zip(SERVERS, urls, strict=True))
        behind = {name.replace(".", "-"): {"url": url} for name, url in direct.items()}
        routes = [{"path": f"/{name}", "http_sse": f"/{name}/sse", "upstream": name} for name in behind]
        gateway = await stack.enter_async_context(running(behind, routes=routes, trusted_proxies=["127.0.0.1"]))
        routed = {name: f"{gateway.url}/{name.replace('.', '-')}/sse" for name in direct}
        yield Both(direct, routed, gateway.front())


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_client_of_any_age_understands_a_server_of_any_age_as_without_the_gateway(
    servers: Both, client: str
) -> None:
    direct = await understood(client, list(servers.direct.values()))
    routed = await understood(client, list(servers.routed.values()))
    assert routed == direct
    assert all(one["said"]["text"] == "größe 日本" for one in routed)
    assert all(one["asked"] == "würzel" for one in routed if client.startswith("ts"))


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_client_of_any_age_posts_through_a_proxy_that_takes_a_prefix_off(servers: Both, client: str) -> None:
    def without_prefix(head: bytes) -> bytes:
        first, rest = head.split(b"\r\n", 1)
        assert b" /some/tools/" in first, first
        return b"\r\n".join([first.replace(b"/some/tools/", b"/"), b"X-Forwarded-Prefix: /some/tools", rest])

    async with hopping([f"http://{servers.front.host}:{servers.front.port}"]) as proxy:
        proxy.rewritten = without_prefix
        through = [f"{proxy.url}/some/tools{urlsplit(url).path}" for url in servers.routed.values()]
        assert await understood(client, through) == await understood(client, list(servers.direct.values()))


@pytest.mark.parametrize("server", SERVERS)
async def test_clients_of_later_transports_reach_a_server_over_http_sse(servers: Both, server: str) -> None:
    front = servers.front.at(f"/{server.replace('.', '-')}")
    call = {"name": "echo", "arguments": {"text": "größe"}}
    session = await front.initialize()
    assert (await session.request("tools/call", call)).said == "größe"
    assert (await front.modern("tools/call", call)).said == "größe"
    assert (await session.delete()).status == 200
    assert (await session.request("ping")).status == 404


@pytest.mark.parametrize("server", SERVERS)
async def test_a_modern_client_is_asked_by_a_server_over_http_sse(servers: Both, server: str) -> None:
    front = servers.front.at(f"/{server.replace('.', '-')}")
    call: dict[str, Any] = {"name": "ask", "arguments": {"text": ""}}
    asked = (await front.modern("tools/call", call, capabilities={"roots": {}})).result
    [(key, ask)] = asked["inputRequests"].items()
    assert ask["method"] == "roots/list"
    answers = {key: {"roots": [{"uri": "file:///x", "name": "würzel"}]}}
    again = call | {"requestState": asked["requestState"], "inputResponses": answers}
    assert (await front.modern("tools/call", again, capabilities={"roots": {}})).said == "würzel"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def rich() -> AsyncIterator[Both]:
    async with LegacyUpstream() as legacy, ModernUpstream() as modern:

        async def answered(call: Any) -> None:
            text, _ = RESULTS[call.seen.method]
            ends = (
                ', "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}' if call.upstream is modern else "}"
            )
            result = text.rstrip().removesuffix("}") + ends
            await call.json(f'{{"jsonrpc": "2.0", "id": {call.seen.id}, "result": {result}}}'.encode())

        names = ("legacy", "modern")
        routes = [{"path": f"/{name}", "http_sse": f"/{name}/sse", "upstream": name} for name in names]
        async with running({"legacy": legacy, "modern": modern}, routes=routes) as gateway:
            for upstream in (legacy, modern):
                upstream.on.update(dict.fromkeys(RESULTS, answered))
            yield Both({}, {name: f"{gateway.url}/{name}/sse" for name in names}, gateway.front())


@pytest.mark.field("M3")
@pytest.mark.parametrize("client", CLIENTS)
async def test_a_client_of_any_age_can_read_all_that_a_newer_server_says(rich: Both, client: str) -> None:
    for said in await understood(client, list(rich.routed.values()), rich=True):
        blocks = said["tools/call"]["content"]
        whole = [block["type"] for block in blocks]
        assert len(whole) == 6
        if client.endswith("0"):
            assert whole == ["text", "image", "text", "text", "resource", "resource"]
            assert blocks[2]["text"] == "[audio, audio/wav]"
            assert "note://one" in blocks[3]["text"]
        else:
            assert whole == ["text", "image", "audio", "resource_link", "resource", "resource"]
        [tool] = said["tools/list"]["tools"]
        assert (tool["name"], tool["inputSchema"]["type"]) == ("rich", "object")
        [resource] = said["resources/list"]["resources"]
        assert (resource["uri"].rstrip("/"), said["resources/list"]["nextCursor"]) == ("note://one", "größe=+/")
        [prompt] = said["prompts/list"]["prompts"]
        assert (prompt["name"], prompt["arguments"][0]["name"]) == ("p", "a")
        assert said["resources/read"]["contents"][0]["uri"].startswith("note://one")
        assert said["prompts/get"]["messages"][0]["content"]["text"] == "hello"
