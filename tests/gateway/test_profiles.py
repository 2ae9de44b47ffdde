"""Profiles as the running gateway applies them: what an upstream of either era is told of a host, and what not."""

import json
from pathlib import Path
from typing import Any

import pytest

from policies.mcp import APPS_EXTENSION
from tests.gateway.test_keys import CI, OPS, bearer, digest
from tests.gateway.test_reload import serving
from tests.gateway_process import GatewayProcess, running, settings
from tests.peers import LegacyUpstream, ModernUpstream
from tests.raw_front import PREFIX, modern_headers, modern_request, request
from tests.scripted import Call, Err, Json, Seen
from tests.sse.old import opened
from tests.stdio.host import launched

HTML = "text/html;profile=mcp-app"
ERAS = ["modern", "legacy"]
every_pair = pytest.mark.parametrize(("front_era", "era"), [(front, era) for front in ERAS for era in ERAS])

APPS: Json = {APPS_EXTENSION: {"mimeTypes": [HTML]}}
ASKED: Json = {"elicitation": {"form": {}, "url": {}}}
RIDES: Json = {"sampling": {"tools": {}}, "roots": {}, "experimental": {"e": {"x": 1}}}
ALL: Json = {**ASKED, **RIDES, "extensions": {**APPS, "com.example/x": {"a": 1}}}
OTHERS: Json = {"extensions": {"com.example/x": {"a": 1}}}

CEILINGS: list[tuple[str, Json]] = [
    ("core-v1", RIDES | OTHERS),
    ("interactive-v1", ASKED | RIDES | OTHERS),
    ("desktop-apps-2026-01-26-v1", ALL),
    ("kiosk", {"elicitation": {"url": {}}} | RIDES | OTHERS),
    ("open", ALL),
]
LONG = b"0.1000000000000000055511151231257827"
"""More digits than a double holds."""
OPERATORS = {"kiosk": {"elicitation": ["url"]}}


def upstream_of(era: str) -> LegacyUpstream | ModernUpstream:
    return ModernUpstream() if era == "modern" else LegacyUpstream(get_stream=True)


def told(upstream: LegacyUpstream | ModernUpstream, method: str = "tools/list") -> Json:
    """What the upstream was told of the host in whose name it was last asked this."""
    seen: Seen = upstream.calls(method)[-1]
    if isinstance(upstream, ModernUpstream):
        return seen.meta[PREFIX + "clientCapabilities"]
    assert seen.session is not None
    return upstream.opened[seen.session].params["capabilities"]


async def ask(gateway: GatewayProcess, path: str, era: str, declared: Json, **headers: Any) -> Json:
    front = gateway.front(path)
    if era == "modern":
        return (await front.modern("tools/list", capabilities=declared, headers=headers)).result
    return (await (await front.initialize(capabilities=declared, headers=headers)).request("tools/list")).result


def routes(*names: str) -> list[Json]:
    return [{"path": f"/{name}", "upstream": "up", **({"profile": name} if name != "open" else {})} for name in names]


@every_pair
async def test_an_upstream_is_told_what_the_host_declares_and_the_route_allows(front_era: str, era: str) -> None:
    async with (
        upstream_of(era) as upstream,
        running({"up": upstream}, routes=routes(*(name for name, _ in CEILINGS)), profiles=OPERATORS) as gateway,
    ):
        for name, allowed in CEILINGS:
            assert (await ask(gateway, f"/{name}", front_era, ALL))["tools"][0]["name"] == "echo"
            assert told(upstream) == allowed, name
            assert (await ask(gateway, f"/{name}", front_era, {}))["tools"][0]["name"] == "echo"
            assert told(upstream) == {}, name


@every_pair
async def test_apps_are_told_of_in_their_canonical_settings(front_era: str, era: str) -> None:
    declared = {"extensions": {APPS_EXTENSION: {"mimeTypes": ["TEXT/html; profile=mcp-app", "x/y"], "features": ["z"]}}}
    async with upstream_of(era) as upstream, running({"up": upstream}) as gateway:
        await ask(gateway, "/up", front_era, declared)
        assert told(upstream) == {"extensions": APPS}


@pytest.mark.parametrize("verifies", [False, True])
async def test_a_spliced_request_is_written_anew_only_where_something_is_withheld(verifies: bool) -> None:
    behind = {"up": (upstream := ModernUpstream(), {"verifies_headers": verifies})}
    async with upstream, running({}, **entries(behind), routes=routes("open", "core-v1")) as gateway:
        message = modern_request("tools/call", {"name": "echo", "arguments": {"n": 2**60, "f": 1.5}}, capabilities=ALL)
        raw = json.dumps(message, indent=1).encode().replace(b"1.5", LONG)
        for path, whole in (("/open", True), ("/core-v1", False)):
            answer = await gateway.front(path).post(raw, modern_headers(message))
            assert '"n": 1152921504606846976' in answer.said
            seen = upstream.calls("tools/call")[-1]
            assert (seen.body == raw) == whole
            assert LONG in seen.body
            assert seen.message["id"] == message["id"]
        assert told(upstream, "tools/call") == RIDES | OTHERS


def entries(behind: Any) -> dict[str, Any]:
    return {"upstreams": {name: {"url": peer.url, **more} for name, (peer, more) in behind.items()}}


@every_pair
async def test_the_key_of_a_client_may_allow_less_than_its_route(front_era: str, era: str) -> None:
    clients = {
        "ci": {"keys": [digest(CI)], "routes": ["/open", "/interactive-v1"], "profile": "core-v1"},
        "ops": {"keys": [digest(OPS)], "routes": ["/open", "/interactive-v1"], "profile": "desktop-apps-2026-01-26-v1"},
    }
    async with (
        upstream_of(era) as upstream,
        running({"up": upstream}, routes=routes("open", "interactive-v1"), clients=clients) as gateway,
    ):
        for path, key, allowed in (
            ("/open", CI, RIDES | OTHERS),
            ("/open", OPS, ALL),
            ("/interactive-v1", CI, RIDES | OTHERS),
            ("/interactive-v1", OPS, ASKED | RIDES | OTHERS),
        ):
            await ask(gateway, path, front_era, ALL, **bearer(key))
            assert told(upstream) == allowed, (path, key)


async def test_calls_of_hosts_that_can_do_different_things_share_no_session() -> None:
    upstream = LegacyUpstream(get_stream=True)
    async with upstream, running({"up": upstream}, routes=routes("open", "core-v1")) as gateway:
        sessions = {}
        for declared in ({}, {"extensions": APPS}, OTHERS):
            for path in ("/open", "/core-v1"):
                await ask(gateway, path, "modern", declared)
                sessions[json.dumps(declared), path] = upstream.calls("tools/list")[-1].session
                assert told(upstream) == ({} if path == "/core-v1" and declared != OTHERS else declared)
        keys = map(json.dumps, ({}, {"extensions": APPS}, OTHERS))
        plain, apps, others = ({sessions[key, path] for path in ("/open", "/core-v1")} for key in keys)
        assert (len(plain), len(others)) == (1, 1)
        assert len(apps) == 2
        assert plain < apps
        assert not others & apps


@pytest.mark.parametrize(("ceiling", "allowed"), [("core-v1", {}), ("kiosk", {"elicitation": {"url": {}}})])
async def test_a_host_is_not_asked_what_its_route_does_not_allow(ceiling: str, allowed: Json) -> None:
    """A server that asks all the same is told that nobody can answer, and the host hears nothing of it."""
    refusals: list[Json] = []

    async def asks(call: Any) -> Json:
        reply = await call.ask("elicitation/create", {"message": "m", "requestedSchema": {"type": "object"}})
        refusals.append(reply["error"])
        return {"content": [{"type": "text", "text": "went on"}]}

    async with (
        LegacyUpstream() as upstream,
        running({"up": upstream}, routes=routes(ceiling), profiles=OPERATORS) as gateway,
    ):
        upstream.on["tools/call"] = asks
        session = await gateway.front(f"/{ceiling}").initialize(capabilities=ASKED)
        answer = await session.request("tools/call", {"name": "t", "arguments": {}})
        assert answer.said == "went on"
        assert [message["method"] for message in answer.messages if "method" in message] == []
        assert told(upstream, "tools/call") == allowed
        assert refusals[0]["code"] == -32601


async def test_a_session_is_allowed_less_from_the_reload_on_that_says_so(tmp_path: Path) -> None:
    async with ModernUpstream() as upstream, serving(tmp_path, settings({"up": upstream})) as live:
        session = await live.gateway.front("/up").initialize(capabilities=ALL)
        await session.request("tools/list")
        assert told(upstream) == ALL
        less = [{"path": "/up", "upstream": "up", "profile": "core-v1"}, {"path": "/new", "upstream": "up"}]
        live.write(settings({"up": upstream}, routes=less))
        await live.until_answered("/new", 200)
        await session.request("tools/list")
        assert told(upstream) == RIDES | OTHERS


@pytest.mark.parametrize("era", ERAS)
async def test_a_host_that_launches_the_gateway_is_told_of_as_well(tmp_path: Path, era: str) -> None:
    declared = {"extensions": {APPS_EXTENSION: {"mimeTypes": ["text/html; profile=mcp-app"]}}, "elicitation": {}}
    async with upstream_of(era) as upstream, launched(tmp_path, "--upstream", upstream.url) as host:
        await host.modern("tools/list", capabilities=declared)
        assert told(upstream) == {"extensions": APPS, "elicitation": {}}
        await host.initialize(capabilities=declared)
        await host.answer(request("tools/list", ident=7))
        assert told(upstream) == {"extensions": APPS, "elicitation": {}}
        await host.end()


@pytest.mark.parametrize("era", ERAS)
async def test_a_host_of_http_sse_is_told_of_as_well(era: str) -> None:
    route = {"path": "/up", "http_sse": "/sse", "upstream": "up", "profile": "interactive-v1"}
    async with upstream_of(era) as upstream, running({"up": upstream}, routes=[route]) as gateway:
        async with opened(gateway.front("/sse")) as old:
            await old.initialize(capabilities=ALL)
            assert "result" in await old.request("tools/list")
        assert told(upstream) == (RIDES | OTHERS if era == "legacy" else ASKED | RIDES | OTHERS)


# what a host is told

THEIRS: Json = {APPS_EXTENSION: {"theirs": 1}}
LISTED: Json = {"tools": [{"name": "map", "inputSchema": {}, "_meta": {"ui": {"resourceUri": "ui://map/view"}}}]}


async def described(gateway: GatewayProcess, path: str, era: str, declared: Json) -> Json:
    front = gateway.front(path)
    if era == "modern":
        result = (await front.modern("server/discover", capabilities=declared)).result
        assert result["cacheScope"] == "private"
    else:
        result = (await front.initialize(capabilities=declared)).result
    return result["capabilities"].get("extensions", {})


@every_pair
async def test_a_server_that_has_apps_says_so_to_hosts_that_show_them(front_era: str, era: str) -> None:
    offers = {"tools": {}, "extensions": {**THEIRS, "com.example/x": {}}}
    upstream = ModernUpstream(capabilities=offers) if era == "modern" else LegacyUpstream(capabilities=offers)
    more = {"forward_headers": ["X-Tenant"]} if era == "legacy" else {}  # described to each caller
    async with upstream, running({"up": (upstream, more)}) as gateway:
        assert await described(gateway, "/up", front_era, {"extensions": APPS}) == offers["extensions"]
        assert await described(gateway, "/up", front_era, ASKED) == {"com.example/x": {}}


@every_pair
@pytest.mark.parametrize("more", [{}, {"forward_headers": ["X-Tenant"]}], ids=["for all", "for each caller"])
async def test_a_server_that_lists_apps_and_forgets_to_say_so_is_helped_out(
    front_era: str, era: str, more: Json
) -> None:
    upstream = upstream_of(era)
    routes = [{"path": "/up", "upstream": "up", "apps": "advertise"}, {"path": "/silent", "upstream": "up"}]
    async with upstream, running({"up": (upstream, more)}, routes=routes) as gateway:
        upstream.on["tools/list"] = LISTED
        assert await described(gateway, "/up", front_era, {"extensions": APPS}) == APPS
        assert told(upstream) == {"extensions": APPS}
        asked = len(upstream.calls("tools/list"))
        assert await described(gateway, "/up", front_era, ASKED) == {}
        assert await described(gateway, "/silent", front_era, {"extensions": APPS}) == {}
        assert len(upstream.calls("tools/list")) == asked


async def test_what_lists_no_apps_is_not_said_to_have_them_on_whichever_page() -> None:
    async def page(call: Call) -> Json:
        second = call.seen.params.get("cursor") == "2"
        return LISTED if second else {"tools": [{"name": "t", "inputSchema": {}}], "nextCursor": "2"}

    routes = [{"path": f"/{name}", "upstream": name, "apps": "advertise"} for name in ("second", "none", "sick")]
    async with ModernUpstream() as second, ModernUpstream() as none, ModernUpstream() as sick:
        second.on["tools/list"] = page
        sick.on["tools/list"] = Err(-32603, "out of order")
        async with running({"second": second, "none": none, "sick": sick}, routes=routes) as gateway:
            for path, is_told in (("/second", APPS), ("/none", {}), ("/sick", {})):
                assert await described(gateway, path, "modern", {"extensions": APPS}) == is_told
