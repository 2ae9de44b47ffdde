"""Field reports M1, M4, M6: each hop negotiates for itself, and what belongs to one hop stays on it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.door import Door
from tests.field.pairs import either_upstream, every_pair
from tests.gateway_process import GatewayProcess, running
from tests.peers import LEGACY, PREFIX, LegacyUpstream
from tests.raw_front import MODERN, modern_headers, modern_request
from tests.scripted import Call, Err

VERSIONS = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]

Strict = tuple[GatewayProcess, dict[str, LegacyUpstream]]


def refusing_other_versions(upstream: LegacyUpstream) -> None:
    """Any version header on initialize is refused, later any but the negotiated one; absent is fine, as old ones do."""

    async def on_http(call: Call) -> bool:
        said = call.seen.headers.all("MCP-Protocol-Version")
        fine: tuple[Any, ...] = ([],) if call.seen.method == "initialize" else ([], [upstream.version])
        if said in fine:
            return False
        await call.answer(Err(-32000, f"Bad Request: Unsupported protocol version {said}", status=400))
        return True

    upstream.on_http = on_http


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def strict() -> AsyncIterator[Strict]:
    """One legacy upstream of each revision behind one gateway."""
    upstreams = {version: LegacyUpstream(version=version, get_stream=True) for version in VERSIONS}
    for upstream in upstreams.values():
        await upstream.start()
        refusing_other_versions(upstream)
    async with running({f"v-{version}": upstream for version, upstream in upstreams.items()}) as gateway:
        yield gateway, upstreams
    for upstream in upstreams.values():
        await upstream.stop()
        upstream.check()


def check_versions(upstream: LegacyUpstream) -> None:
    """Apart from the probe, every request spoke the negotiated version, and `initialize` none."""
    later = [seen for seen in upstream.requests if seen.method not in ("initialize", "server/discover")]
    assert later
    for seen in later:
        old = upstream.version in ("2025-03-26", "2024-11-05")  # these revisions have no such header
        assert seen.version == upstream.version or (old and seen.version is None), f"{seen.verb} {seen.method}"
    for seen in upstream.calls("initialize"):
        assert "MCP-Protocol-Version" not in seen.headers


@pytest.mark.field("M1")
@pytest.mark.parametrize("upstream_version", VERSIONS)
@pytest.mark.parametrize("asked", [*VERSIONS, MODERN])
async def test_the_upstream_hears_the_version_it_negotiated(strict: Strict, asked: str, upstream_version: str) -> None:
    gateway, upstreams = strict
    front, upstream = gateway.front(f"/v-{upstream_version}"), upstreams[upstream_version]
    upstream.requests.clear()
    if asked == MODERN:
        assert "result" in (await front.modern("tools/list")).final
        assert "result" in (await front.modern("tools/call", {"name": "echo"})).final
    else:
        session = await front.initialize(asked)
        assert session.version == asked, "the client's own version is served whatever the upstream speaks"
        assert "result" in (await session.request("tools/list")).final
        assert "result" in (await session.request("tools/call", {"name": "echo"})).final
        assert (await session.delete()).status == 200
    check_versions(upstream)


@pytest.mark.field("M1")
async def test_two_upstreams_of_different_versions_are_spoken_to_at_once(strict: Strict) -> None:
    gateway, upstreams = strict
    sessions = [await gateway.front(f"/v-{version}").initialize() for version in VERSIONS]
    calls = [session.request("tools/call", {"name": "echo"}, ident=n) for n in range(5) for session in sessions]
    assert all("result" in answer.final for answer in await asyncio.gather(*calls))
    for upstream in upstreams.values():
        check_versions(upstream)


@pytest.mark.field("M1")
@pytest.mark.parametrize("asked", ["2026-07-28", "2027-01-01", "1999-01-01", "draft"])
async def test_an_initialize_with_a_version_that_is_not_served_is_offered_one(strict: Strict, asked: str) -> None:
    gateway, upstreams = strict
    session = await gateway.front("/v-2025-06-18").initialize(asked)
    assert session.version == LEGACY
    assert "result" in (await session.request("tools/list")).final
    assert {seen.params["protocolVersion"] for seen in upstreams["2025-06-18"].calls("initialize")} <= set(VERSIONS)


@pytest.mark.field("M4")
async def test_a_modern_client_is_given_a_session_upstream() -> None:
    async with LegacyUpstream() as upstream, running({"legacy": upstream}) as gateway:
        front = gateway.front("/legacy")
        for method, params in (("tools/list", {}), ("tools/call", {"name": "echo"}), ("resources/list", {})):
            assert "result" in (await front.modern(method, params)).final
        many = [front.modern("tools/call", {"name": "echo", "arguments": {"n": n}}) for n in range(20)]
        assert [f'"n": {n}' in answer.said for n, answer in enumerate(await asyncio.gather(*many))] == [True] * 20
        assert len(upstream.calls("initialize")) == 1
        order = [method for method in upstream.methods() if method not in ("server/discover", None)]
        assert order[:2] == ["initialize", "notifications/initialized"]
        later = [seen for seen in upstream.requests if seen.method not in ("initialize", "server/discover")]
        assert {seen.session for seen in later} == upstream.live


@pytest.mark.field("M4")
async def test_many_first_calls_share_one_session() -> None:
    async with LegacyUpstream() as upstream, running({"legacy": upstream}) as gateway:
        front = gateway.front("/legacy")
        answers = await asyncio.gather(*(front.modern("tools/call", {"name": "echo"}) for _ in range(20)))
        assert all("result" in answer.final for answer in answers)
        assert len(upstream.calls("initialize")) == 1


@pytest.mark.field("M4")
async def test_an_upstream_without_sessions_is_never_sent_one() -> None:
    async with LegacyUpstream(sessions=False) as upstream, running({"legacy": upstream}) as gateway:
        front = gateway.front("/legacy")
        assert "result" in (await front.modern("tools/call", {"name": "echo"})).final
        session = await front.initialize()
        assert session.id is not None, "the gateway's own session does not depend on the upstream's"
        assert "result" in (await session.request("tools/call", {"name": "echo"})).final
        assert [seen.session for seen in upstream.requests] == [None] * len(upstream.requests)


@pytest.mark.field("M4")
@either_upstream
async def test_discover_without_the_version_header_is_a_header_mismatch(door: Door, upstream_era: str) -> None:
    answer = await door.front(upstream_era).modern("server/discover", headers={"MCP-Protocol-Version": None})
    assert (answer.status, answer.code) == (400, -32020)


PRIVATE = {
    "Authorization": "Bearer front-secret",
    "Cookie": "front=secret",
    "Proxy-Authorization": "Basic front-secret",
}
KEPT = {
    "com.example/tenant": {"id": "t", "n": [1.5, None]},
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "tracestate": "vendor=1",
}
HOP_KEYS = [PREFIX + key for key in ("protocolVersion", "logLevel", "subscriptionId", "serverInfo")]


@pytest.mark.field("M6")
@every_pair
async def test_what_belongs_to_one_hop_stays_on_it(door: Door, front_era: str, upstream_era: str) -> None:
    async def tool(call: Call) -> dict[str, Any]:
        await call.notify("notifications/progress", {"progressToken": call.seen.meta["progressToken"], "progress": 1})
        return {"content": []}

    upstream = door.upstream(upstream_era)
    upstream.on["tools/call"] = tool
    meta = {**KEPT, "progressToken": "mine"}
    if front_era == "modern":
        message = modern_request("tools/call", {"name": "echo"}, meta={**meta, PREFIX + "logLevel": "error"})
        headers = {**modern_headers(message), **PRIVATE, "Mcp-Session-Id": "front-session"}
        answer = await door.front(upstream_era).post(message, headers)
        front_session = "front-session"
    else:
        session = await door.front(upstream_era).initialize(headers=PRIVATE)
        assert session.id is not None
        answer = await session.request("tools/call", {"name": "echo", "_meta": meta})
        front_session = session.id
    assert [note["params"]["progressToken"] for note in answer.notes] == ["mine"]
    seen = upstream.calls("tools/call")[0]
    assert {key: seen.meta[key] for key in KEPT} == KEPT
    assert seen.meta["progressToken"] is not None
    if upstream_era == "legacy":
        assert [key for key in HOP_KEYS if key in seen.meta] == []
    else:
        assert seen.meta[PREFIX + "protocolVersion"] == MODERN
        assert seen.meta[PREFIX + "clientCapabilities"] == {}
        assert seen.session is None
    for request in upstream.requests:
        for name, value in request.headers.lines:
            assert "front" not in value.replace("mcp-front-door", ""), f"{name} of {request.method}"
            assert front_session not in value
        assert request.session is None or (isinstance(upstream, LegacyUpstream) and request.session in upstream.live)


@pytest.mark.field("M6", "Y3")
@either_upstream
async def test_named_headers_alone_are_passed_on(door: Door, upstream_era: str) -> None:
    upstream = door.upstream(upstream_era)
    entry = {"forward_headers": ["Authorization", "X-Tenant"], "headers": {"X-Own": "gateway"}}
    async with running({"named": (upstream, entry)}) as gateway:
        sent = {**PRIVATE, "X-Tenant": "t1", "X-Other": "no"}
        assert "result" in (await gateway.front("/named").modern("tools/call", {"name": "echo"}, headers=sent)).final
    seen = upstream.calls("tools/call")[0].headers
    assert (seen.get("Authorization"), seen.get("X-Tenant"), seen.get("X-Own")) == (
        "Bearer front-secret",
        "t1",
        "gateway",
    )
    assert [name for name in ("Cookie", "Proxy-Authorization", "X-Other") if name in seen] == []
