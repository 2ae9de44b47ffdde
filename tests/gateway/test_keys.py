"""Clients' keys and sealing keys, end to end: who is let in, as whom, what the upstream sees of it, and what happens to
sessions when a key is changed."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

from gateway.cli import main
from gateway.demo import children
from gateway.yaml_file import parse
from tests.gateway.test_reload import serving
from tests.gateway_process import GatewayProcess, running, settings
from tests.http_wire import DEADLINE_S
from tests.peers import LegacyUpstream, ModernUpstream
from tests.ports import free_port
from tests.raw_front import Answer, Front, modern_headers, modern_request

CI, OPS, STRANGER = ("mfd_" + letter * 43 for letter in "abc")
ERAS = pytest.mark.parametrize("era", ["legacy", "modern"])


def digest(key: str) -> str:
    return "sha256:" + hashlib.sha256(key.encode()).hexdigest()


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


@asynccontextmanager
async def keyed() -> AsyncIterator[tuple[GatewayProcess, dict[str, LegacyUpstream | ModernUpstream]]]:
    """Routes /legacy and /modern for `ci` and `ops`, /ci for `ci` alone, /open for everybody, its upstream gets the
    caller's Authorization."""
    async with LegacyUpstream() as legacy, ModernUpstream() as modern, LegacyUpstream() as open_to_all:
        behind: dict[str, Any] = {
            "legacy": legacy,
            "modern": modern,
            "ci": legacy,
            "open": (open_to_all, {"forward_headers": ["Authorization"]}),
        }
        routes = [{"path": f"/{name}", "upstream": name, "anonymous": name == "open"} for name in behind]
        clients = {
            "ci": {"keys": [digest(CI)], "routes": ["/legacy", "/modern", "/ci"]},
            "ops": {"keys": [digest(OPS)], "routes": ["/legacy", "/modern"]},
        }
        async with running(behind, routes=routes, clients=clients) as gateway:
            yield gateway, {"legacy": legacy, "modern": modern, "open": open_to_all}


async def call(front: Front, era: str, headers: dict[str, Any]) -> Answer:
    if era == "modern":
        return await front.modern("tools/list", headers=headers)
    return await (await front.initialize(headers=headers)).request("tools/list")


@ERAS
async def test_a_key_opens_its_routes_and_stays_at_the_gateway(era: str) -> None:
    async with keyed() as (gateway, upstreams):
        answer = await call(gateway.front(f"/{era}"), era, bearer(CI))
        assert answer.result["tools"][0]["name"] == "echo"
        for seen in upstreams[era].requests:
            assert "Authorization" not in seen.headers
            assert CI.encode() not in seen.body


async def test_without_a_right_key_nothing_is_told_and_nothing_is_reached() -> None:
    async with keyed() as (gateway, upstreams):
        session = await gateway.front("/ci").initialize(headers=bearer(CI))
        upstreams["legacy"].requests.clear()
        message = modern_request("tools/list")
        gone = {"Mcp-Session-Id": "1k.gone", "MCP-Protocol-Version": "2025-11-25"}
        for headers, status in (
            ({}, 401),
            (bearer(STRANGER), 401),
            ({"Authorization": [f"Bearer {CI}", f"Bearer {CI}"]}, 401),
            ({"X-Api-Key": CI}, 401),
            (bearer(OPS), 403),
        ):
            front = gateway.front("/ci")
            for body, more in (
                (message, modern_headers(message)),
                (b"no json", {}),
                ({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, session.headers),
                ({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, gone),
            ):
                answers = [await front.post(body, {**more, "Authorization": None, **headers})]
                if "Mcp-Session-Id" in more:
                    own = {**more, "Authorization": None, **headers}
                    answers.append(await front.send("GET", {**own, "Accept": "text/event-stream"}))
                    answers.append(await front.send("DELETE", own))
                for answer in answers:
                    assert (answer.status, answer.code) == (status, -32600), repr(answer)
                    assert ("WWW-Authenticate" in answer.headers) == (status == 401)
                    assert answer.body == answers[0].body, "a live session and a dead one are not told apart"
        assert (await front.at("/ci?key=" + CI).post(message, modern_headers(message))).status == 401
        assert upstreams["legacy"].requests == []
        assert (await session.request("tools/list")).status == 200


@ERAS
async def test_a_session_is_its_clients_alone(era: str) -> None:
    async with keyed() as (gateway, _):
        front = gateway.front(f"/{era}")
        session = await front.initialize(headers=bearer(CI))
        for answer in (
            await session.request("tools/list", headers=bearer(OPS)),
            await front.send("DELETE", {**session.headers, **bearer(OPS)}),
            await front.send("GET", {**session.headers, "Accept": "text/event-stream", **bearer(OPS)}),
        ):
            assert (answer.status, answer.code) == (404, -32001)
        assert (await session.request("tools/list")).status == 200


async def test_an_anonymous_route_takes_anybody_and_never_hands_on_a_key_of_the_gateway() -> None:
    async with keyed() as (gateway, upstreams):
        for key, seen_upstream in ((None, None), (STRANGER, f"Bearer {STRANGER}"), (CI, None)):
            upstreams["open"].requests.clear()
            answer = await call(gateway.front("/open"), "legacy", bearer(key) if key else {})
            assert answer.status == 200
            assert {seen.headers.get("Authorization") for seen in upstreams["open"].calls("tools/list")} == {
                seen_upstream
            }


async def test_keygen_makes_a_key_and_the_entry_that_knows_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["keygen", "--client", "ci"]) == 0
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert set(lines) == {"key", "clients"}
    entry = parse(lines["clients"])
    assert entry == {"ci": {"keys": [digest(lines["key"])], "routes": ["/mcp"]}}
    async with ModernUpstream() as upstream, running({"mcp": upstream}, clients=entry) as gateway:
        assert (await call(gateway.front(), "modern", bearer(lines["key"]))).status == 200
        assert (await call(gateway.front(), "modern", bearer(STRANGER))).status == 401


async def test_a_key_that_is_added_and_one_that_is_taken_away_count_from_the_reload_on(tmp_path: Path) -> None:
    async with ModernUpstream() as upstream:

        def of(*keys: str) -> dict[str, Any]:
            clients = {"ci": {"keys": [digest(key) for key in keys], "routes": ["/mcp"]}}
            return settings({"mcp": upstream}, clients=clients)

        async with serving(tmp_path, of(CI)) as live:
            front = live.gateway.front()
            session = await front.initialize(headers=bearer(CI))
            assert (await call(front, "modern", bearer(OPS))).status == 401
            live.write(of(OPS))
            async with asyncio.timeout(DEADLINE_S):
                while (await call(front, "modern", bearer(OPS))).status != 200:
                    pass
            assert (await session.request("tools/list")).status == 401
            kept = await session.request("tools/list", headers=bearer(OPS))
            assert kept.status == 200, "it is the same client, and its session goes on"


@asynccontextmanager
async def official(url: str, mode: str, headers: dict[str, str] | None = None) -> AsyncIterator[Client]:
    async with (
        create_mcp_http_client(headers=headers) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode, read_timeout_seconds=20) as client,
    ):
        yield client


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28", "auto"])
@pytest.mark.parametrize("server", ["harbour", "weather"])
async def test_official_clients_come_in_with_a_key(mode: str, server: str, tmp_path: Path) -> None:
    async with children.running("sample", server) as url:
        file = tmp_path / "gateway.yaml"
        file.write_text(
            f'{{listen: "127.0.0.1:0", upstreams: {{one: {{url: "{url}"}}}}, routes: [{{path: /mcp, upstream: one}}], '
            f'clients: {{ci: {{keys: ["{digest(CI)}"], routes: [/mcp]}}}}}}'
        )
        gateway = await GatewayProcess.start(["serve", "-c", str(file)], tmp_path)
        try:
            async with official(gateway.url + "/mcp", mode, bearer(CI)) as client:
                assert len((await client.list_tools()).tools) > 0
            with pytest.raises(Exception, match=r".") as refused:
                async with official(gateway.url + "/mcp", mode) as client:
                    await client.list_tools()
            assert "tools" not in str(refused.value)
        finally:
            await gateway.stop()


SEALING = tuple(f"{name}:{name * 42}A" for name in ("a", "b"))


async def test_sealing_keys_are_changed_under_running_sessions_of_an_official_client(tmp_path: Path) -> None:
    """Three starts on one port: the old key; the new one before the old; the new one alone."""
    listen = f"127.0.0.1:{free_port()}"
    async with LegacyUpstream() as upstream:

        async def start(*keys: str) -> GatewayProcess:
            file = tmp_path / "gateway.yaml"
            file.write_text(str(settings({"mcp": upstream}, listen=listen, keys=list(keys))))
            return await GatewayProcess.start(["serve", "-c", str(file)], tmp_path)

        async def end(gateway: GatewayProcess) -> None:
            gateway.process.kill()  # nothing may be needed that a process says at its end
            await gateway.process.wait()

        gateway = await start(SEALING[0])
        async with official(f"http://{listen}/mcp", "legacy") as old:
            await old.call_tool("echo", {"n": 1})
            await end(gateway)
            gateway = await start(SEALING[1], SEALING[0])
            await old.call_tool("echo", {"n": 2})
            async with official(f"http://{listen}/mcp", "legacy") as new:
                await new.call_tool("echo", {"n": 3})
                await end(gateway)
                gateway = await start(SEALING[1])
                try:
                    await new.call_tool("echo", {"n": 4})
                    with pytest.raises(Exception, match=r"(?i)session"):
                        await old.call_tool("echo", {"n": 5})
                finally:
                    await end(gateway)
        calls = [seen.params["arguments"]["n"] for seen in upstream.calls("tools/call")]
        assert calls == [1, 2, 3, 4]
        assert len({seen.session for seen in upstream.calls("tools/call")}) == 2, (
            "each client kept its upstream session"
        )
