"""Field reports L2 to L7, Y2: paths, Hosts, Origins and what browsers ask before they send."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.door import Door
from tests.edge.process import connections, resident_bytes, until
from tests.field.pairs import ask, either_upstream, every_pair
from tests.gateway_process import GatewayProcess, running
from tests.peers import LegacyUpstream, ModernUpstream
from tests.raw_front import modern_headers, modern_request
from tests.scripted import Call

EVIL = "https://evil.example"
APP = "https://app.example.com"
ASKED = "mcp-protocol-version, mcp-method, mcp-name, mcp-param-region, authorization, content-type"


@pytest.mark.field("L2")
@every_pair
@pytest.mark.parametrize("suffix", ["", "/", "?a=b", "/?a=b"])
async def test_a_path_is_served_with_and_without_its_slash(
    door: Door, front_era: str, upstream_era: str, suffix: str
) -> None:
    front = door.gateway.front(f"/{upstream_era}{suffix}")
    front.path = f"/{upstream_era}{suffix}"
    answer = await ask(front, front_era, "tools/list")
    assert answer.status == 200
    assert answer.result["tools"]


@pytest.mark.field("L2")
@pytest.mark.parametrize("path", ["/modern", "/modern/", "/legacy/", "/nowhere", "/nowhere/", "/", "//modern"])
@pytest.mark.parametrize("verb", ["GET", "POST", "DELETE", "PUT"])
async def test_nothing_is_ever_a_redirect(door: Door, verb: str, path: str) -> None:
    answer = await door.gateway.front(path).send(verb, {"Content-Type": "application/json"}, b"{}")
    assert answer.status in (400, 404, 405)
    assert "Location" not in answer.headers


@pytest.mark.field("L3")
@every_pair
async def test_an_upstream_sees_its_own_host_and_the_callers_beside_it(
    door: Door, front_era: str, upstream_era: str
) -> None:
    upstream = door.upstream(upstream_era)

    async def guard(call: Call) -> bool:
        if call.seen.headers.all("Host") == [upstream.authority]:
            return False
        await call.reply(421)
        return True

    upstream.on_http = guard
    front = door.front(upstream_era)
    answer = await ask(front, front_era, "tools/call", {"name": "echo", "arguments": {}})
    assert "result" in answer.final
    headers = upstream.calls("tools/call")[0].headers
    authority = f"{front.host}:{front.port}"
    assert headers.all("X-Forwarded-Host") == [authority]
    assert headers.all("X-Forwarded-Proto") == ["http"]
    assert headers.all("X-Forwarded-For") == ["127.0.0.1"]
    assert headers.all("Forwarded") == [f'for=127.0.0.1;host="{authority}";proto=http']


@pytest.mark.field("L3")
@either_upstream
async def test_an_upstream_may_be_shown_the_callers_host(upstream_era: str) -> None:
    async with ModernUpstream() if upstream_era == "modern" else LegacyUpstream() as upstream:
        async with running({"x": (upstream, {"preserve_host": True})}) as gateway:
            front = gateway.front("/x")
            assert "result" in (await ask(front, upstream_era, "tools/list")).final
            assert upstream.calls("tools/list")[0].headers.all("Host") == [f"{front.host}:{front.port}"]


@pytest.mark.field("L3")
@every_pair
async def test_a_host_guard_is_named_and_is_no_missing_method(door: Door, front_era: str, upstream_era: str) -> None:
    async def guard(call: Call) -> bool:
        if call.seen.method != "tools/call":
            return False
        await call.reply(421, b"Invalid Host header")
        return True

    door.upstream(upstream_era).on_http = guard
    answer = await ask(door.front(upstream_era), front_era, "tools/call", {"name": "echo"})
    assert answer.code != -32601
    assert "421" in answer.error["message"]
    assert answer.status == (502 if front_era == "modern" else 200)


@pytest.mark.field("L4")
@pytest.mark.parametrize("verb", ["POST", "GET", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("origin", [EVIL, "null", "http://localhost.evil.example", "http://[::1", "https://", "x"])
async def test_a_foreign_origin_is_refused_before_any_upstream_hears_of_it(door: Door, verb: str, origin: str) -> None:
    for era in ("modern", "legacy"):
        message = modern_request("tools/list")
        headers = door.front(era).posting({**modern_headers(message), "Origin": origin})
        body = json.dumps(message).encode() if verb == "POST" else None
        answer = await door.front(era).send(verb, headers, body)
        assert answer.status in (403, 405 if verb == "OPTIONS" and origin == "x" else 403)
        assert "Access-Control-Allow-Origin" not in answer.headers
        assert door.upstream(era).calls("tools/list") == []


@pytest.mark.field("L4")
@pytest.mark.parametrize("origin", ["http://localhost:6274", "http://127.0.0.1:1", "http://[::1]:80", None])
async def test_a_page_of_this_machine_may_call_a_loopback_listener(door: Door, origin: str | None) -> None:
    answer = await door.front("modern").modern("tools/list", headers={"Origin": origin})
    assert answer.status == 200
    assert answer.headers.get("Access-Control-Allow-Origin") == origin


PUBLIC = {
    "public_url": "https://mcp.example.com",
    "origins": [APP, "https://*.pages.example", "http://dev.example:*"],
}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def public() -> AsyncIterator[tuple[ModernUpstream, GatewayProcess]]:
    """A gateway that the world reaches by a name."""
    async with ModernUpstream() as upstream, running({"x": upstream}, **PUBLIC) as gateway:
        yield upstream, gateway


@pytest.mark.field("L4")
@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (APP, 200),
        ("https://APP.example.com", 200),
        ("https://one.pages.example", 200),
        ("https://a.b.pages.example", 200),
        ("https://pages.example", 403),
        ("https://evilpages.example", 403),
        ("http://app.example.com", 403),
        ("https://app.example.com:8443", 403),
        ("https://app.example.com.evil.example", 403),
        ("http://dev.example:3000", 200),
        ("http://dev.example", 200),
        ("https://mcp.example.com", 200),
    ],
)
async def test_listed_origins_are_served_by_name_wildcard_and_port(
    public: tuple[ModernUpstream, GatewayProcess], origin: str, status: int
) -> None:
    _, gateway = public
    answer = await gateway.front("/x").modern("tools/list", headers={"Origin": origin, "Host": "mcp.example.com"})
    assert answer.status == status
    assert answer.headers.get("Access-Control-Allow-Origin") == (origin if status == 200 else None)


@pytest.mark.field("L4")
@pytest.mark.parametrize(
    ("host", "status"),
    [("mcp.example.com", 200), ("MCP.example.com:443", 200), ("evil.example", 403), ("x.mcp.example.com", 403)],
)
async def test_the_hosts_of_the_public_url_are_served_and_no_others(
    public: tuple[ModernUpstream, GatewayProcess], host: str, status: int
) -> None:
    upstream, gateway = public
    upstream.reset()
    answer = await gateway.front("/x").modern("tools/list", headers={"Host": host})
    assert answer.status == status
    assert bool(upstream.calls("tools/list")) == (status == 200)


@pytest.mark.field("L4")
async def test_every_host_is_served_only_where_that_is_said_and_logged() -> None:
    async with ModernUpstream() as upstream, running({"x": upstream}, hosts="any") as gateway:
        assert (await gateway.front("/x").modern("tools/list", headers={"Host": "evil.example"})).status == 200
        assert "hosts: any" in gateway.stderr()
        rebound = {"Host": "evil.example", "Origin": "http://evil.example"}
        assert (await gateway.front("/x").modern("tools/list", headers=rebound)).status == 403


@pytest.mark.field("L4", "Y2")
@either_upstream
async def test_a_preflight_allows_what_the_protocol_needs(door: Door, upstream_era: str) -> None:
    asking = {
        "Origin": "http://localhost:6274",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": ASKED,
    }
    answer = await door.front(upstream_era).send("OPTIONS", asking)
    assert answer.status == 204
    assert answer.headers.get("Access-Control-Allow-Origin") == "http://localhost:6274"
    assert set((answer.headers.get("Access-Control-Allow-Methods") or "").split(", ")) == {"POST", "GET", "DELETE"}
    allowed = {name.strip().lower() for name in (answer.headers.get("Access-Control-Allow-Headers") or "").split(",")}
    assert allowed >= {name.strip() for name in ASKED.split(",")} | {"mcp-session-id", "last-event-id"}


@pytest.mark.field("L4", "Y2")
async def test_a_page_may_read_the_session_id_and_the_challenge(door: Door) -> None:
    origin = {"Origin": "http://localhost:6274"}
    session = await door.front("legacy").initialize(headers=origin)
    for answer in (session.opened, await session.request("tools/list"), await door.front("legacy").post({}, origin)):
        exposed = (answer.headers.get("Access-Control-Expose-Headers") or "").split(", ")
        assert {"Mcp-Session-Id", "WWW-Authenticate"} <= set(exposed), repr(answer)
        assert answer.headers.all("Vary") == ["Origin"]
    async with session.get() as stream:
        assert stream.headers.get("Access-Control-Allow-Origin") == origin["Origin"]
    assert "Access-Control-Expose-Headers" not in (await door.front("modern").modern("tools/list")).headers


@pytest.mark.field("L5")
@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("application/json; charset=utf-8", 200),
        ("Application/JSON", 200),
        ('application/json;charset="UTF-8"', 200),
        ("application/json; charset=iso-8859-1", 415),
        ("text/plain", 415),
        (None, 415),
    ],
)
async def test_content_types_are_read_as_they_are_meant(door: Door, kind: str | None, status: int) -> None:
    assert (await door.front("modern").modern("tools/list", headers={"Content-Type": kind})).status == status
    session = await door.front("legacy").initialize()
    assert (await session.request("tools/list", headers={"Content-Type": kind})).status == status


@pytest.mark.field("L5")
@every_pair
@pytest.mark.parametrize("kind", ["application/json;charset=utf-8", "application/vnd.x+json", "APPLICATION/JSON", None])
async def test_an_upstreams_json_is_read_under_any_of_its_names(
    door: Door, front_era: str, upstream_era: str, kind: str | None
) -> None:
    async def answer(call: Call) -> None:
        lines = [("Content-Type", kind)] if kind is not None else []
        text = b'{"jsonrpc":"2.0","id":%s,"result":{"tools":[],"resultType":"complete"}}'
        ident = call.seen.id if isinstance(call.seen.id, int) else f'"{call.seen.id}"'
        await call.reply(200, text % str(ident).encode(), lines)

    door.upstream(upstream_era).on["tools/list"] = answer
    assert (await ask(door.front(upstream_era), front_era, "tools/list")).result["tools"] == []


@pytest.mark.field("L6")
@every_pair
@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("application/json", "application/json"),
        ("text/event-stream", "text/event-stream"),
        ("*/*", "application/json"),
        (None, "application/json"),
        ("APPLICATION/JSON, Text/Event-Stream", "application/json"),
        (["application/json", "text/event-stream"], "application/json"),
        ("application/json;q=0, text/event-stream", "text/event-stream"),
    ],
)
async def test_accept_is_read_leniently_and_both_forms_are_asked_for_upstream(
    door: Door, front_era: str, upstream_era: str, accept: str | list[str] | None, form: str
) -> None:
    front, headers = door.front(upstream_era), {"Accept": accept}
    if front_era == "modern":
        answer = await front.modern("tools/list", headers=headers)
    else:
        answer = await (await front.initialize()).request("tools/list", headers=headers)
    assert answer.status == 200
    both = accept != "application/json"  # who reads both gets a stream in a session where the answer takes long
    assert answer.content_type in {form, "text/event-stream" if front_era == "legacy" and both else form}
    assert "tools" in answer.result
    sent = door.upstream(upstream_era).calls("tools/list")[-1].headers.get("Accept") or ""
    assert {part.strip() for part in sent.split(",")} == {"application/json", "text/event-stream"}


@pytest.mark.field("L6")
async def test_an_accept_that_fits_nothing_is_406(door: Door) -> None:
    for accept in ("text/html", "application/json;q=0", "application/json;q=0, text/event-stream;q=0.0"):
        assert (await door.front("modern").modern("tools/list", headers={"Accept": accept})).status == 406


@pytest.mark.field("L7")
async def test_sessions_and_streams_that_nobody_ends_are_freed() -> None:
    async with LegacyUpstream(get_stream=True) as legacy, ModernUpstream() as modern:
        async with running({"legacy": legacy, "modern": modern}) as gateway:
            await _abandon(gateway, 200)
            before = resident_bytes(gateway)
            await _abandon(gateway, 400)
            await until(lambda: connections(gateway) == 0)
            assert resident_bytes(gateway) - before < 400 * 64 * 1024, "far less than what a session cost elsewhere"


async def _abandon(gateway: GatewayProcess, count: int) -> None:
    """Sessions without a DELETE, and streams of either era that their clients reset."""
    room = asyncio.Semaphore(32)

    async def one() -> None:
        async with room:
            session = await gateway.front("/legacy").initialize(initialized=False)
            async with session.get() as stream:
                stream.reset()
            async with gateway.front("/modern").modern_open("subscriptions/listen", {"notifications": {}}) as stream:
                stream.reset()

    await asyncio.gather(*(one() for _ in range(count)))
