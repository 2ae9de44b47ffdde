"""Field reports C: the era of an upstream is found out by one probe, whichever way a server refuses it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import pytest_asyncio

from tests.gateway_process import GatewayProcess, running
from tests.peers import LegacyUpstream, ModernUpstream
from tests.scripted import Answer as Script
from tests.scripted import Call, Err, Json, Upstream, response

Refusal = Callable[[Call], Awaitable[None]]
PROBE_S = 1.0


def error(code: int, message: str, status: int) -> Refusal:
    async def refuse(call: Call) -> None:
        await call.answer(Err(code, message, status=status))

    return refuse


def plain(status: int, body: bytes = b"", content_type: str | None = None) -> Refusal:
    async def refuse(call: Call) -> None:
        await call.reply(status, body, [] if content_type is None else [("Content-Type", content_type)])

    return refuse


async def as_event(call: Call) -> None:
    await call.event(response(call.seen.id, Err(-32601, "Method not found")))
    await call.end()


async def anonymous(call: Call) -> None:
    await call.json(response(None, Err(-32600, "Bad Request: missing session id")), 400)


async def unlike_discovery(call: Call) -> None:
    await call.answer({"ok": True})


async def hang(call: Call) -> None:
    await call.stay()
    call.close()


async def hang_up(call: Call) -> None:
    call.reset()


HTML = b"<!doctype html><title>Not here</title>"
FALL_BACK: dict[str, Refusal] = {
    "400 with -32600": error(-32600, "Bad Request: missing session id", 400),
    "400 with -32600 and no id": anonymous,
    "400 with -32602": error(-32602, "Invalid request parameters", 400),
    "400 with -32000": error(-32000, "Bad Request: Unsupported protocol version", 400),
    "400 with -32601": error(-32601, "Method not found", 400),
    "400 empty": plain(400),
    "400 text": plain(400, b"Bad Request", "text/plain"),
    "404 HTML": plain(404, HTML, "text/html"),
    "404 with -32601": error(-32601, "Method not found", 404),
    "405": plain(405),
    "406": plain(406),
    "415": plain(415),
    "422": plain(422, b'{"detail":"no"}', "application/json"),
    "429": plain(429),
    "200 with -32601": error(-32601, "Method not found", 200),
    "200 with -32602": error(-32602, "Invalid request parameters", 200),
    "200 with -32600": error(-32600, "Invalid Request", 200),
    "200 with -32000": error(-32000, "Session required", 200),
    "200 with the error as an event": as_event,
    "200 empty": plain(200, b"", "application/json"),
    "200 HTML": plain(200, HTML, "text/html"),
    "200 with a result unlike a discovery": unlike_discovery,
    "202": plain(202),
    "silence": hang,
    "a reset": hang_up,
}
UNAUTHORIZED: dict[str, Refusal] = {
    "401": plain(401, b'{"error":"invalid_token"}', "application/json"),
    "403": plain(403, b'{"error":"insufficient_scope"}', "application/json"),
}
UNAVAILABLE: dict[str, Refusal] = {
    "500": plain(500, HTML, "text/html"),
    "500 with a JSON-RPC error": error(-32603, "Internal error", 500),
    "503": plain(503),
}


def refusing(upstream: Upstream, refuse: Refusal) -> None:
    """Lets the upstream refuse `server/discover` this way, before it looks at anything else."""

    async def on_http(call: Call) -> bool:
        if call.seen.method != "server/discover":
            return False
        await refuse(call)
        return True

    upstream.on_http = on_http


Sick = tuple[GatewayProcess, dict[str, LegacyUpstream]]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def sick() -> AsyncIterator[Sick]:
    """A gateway before one legacy upstream for each refusal, by the refusal's name."""
    upstreams = {name: LegacyUpstream() for name in [*FALL_BACK, *UNAUTHORIZED, *UNAVAILABLE]}
    for name, refuse in (FALL_BACK | UNAUTHORIZED | UNAVAILABLE).items():
        await upstreams[name].start()
        refusing(upstreams[name], refuse)
    impatient = {"timeouts": {"probe_s": PROBE_S}}
    behind = {slug(name): (peer, impatient if name == "silence" else {}) for name, peer in upstreams.items()}
    async with running(behind) as gateway:
        yield gateway, upstreams
    for upstream in upstreams.values():
        await upstream.stop()
        upstream.check()


def slug(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name.lower())


@pytest.mark.field("C1")
@pytest.mark.parametrize("name", FALL_BACK)
async def test_a_legacy_upstream_is_served_however_it_refuses_the_probe(sick: Sick, name: str) -> None:
    gateway, upstreams = sick
    front, upstream = gateway.front("/" + slug(name)), upstreams[name]
    first = await front.modern("tools/list")
    assert first.result["tools"][0]["name"] == "echo"
    probes, handshakes = len(upstream.calls("server/discover")), len(upstream.calls("initialize"))
    assert probes >= 1
    second = await front.modern("tools/call", {"name": "echo"}, ident="two")
    assert "result" in second.final
    assert len(upstream.calls("server/discover")) == probes, "the era is known by now"
    assert len(upstream.calls("initialize")) == handshakes == 1
    modern = [seen for seen in upstream.requests if seen.version == "2026-07-28"]
    assert {seen.method for seen in modern} <= {"server/discover"}


@pytest.mark.field("C1")
async def test_one_probe_is_enough_for_many_first_callers() -> None:
    async with LegacyUpstream() as upstream, running({"legacy": upstream}) as gateway:
        front = gateway.front("/legacy")
        answers = await asyncio.gather(*(front.modern("tools/list", ident=n) for n in range(20)))
        assert [answer.final["id"] for answer in answers] == [*range(20)]
        assert all("result" in answer.final for answer in answers)
        assert len(upstream.calls("server/discover")) == 1
        assert len(upstream.calls("initialize")) == 1


@pytest.mark.field("C1")
@pytest.mark.parametrize("name", UNAUTHORIZED)
async def test_a_refused_credential_is_no_era(sick: Sick, name: str) -> None:
    gateway, upstreams = sick
    answer = await gateway.front("/" + slug(name)).modern("tools/list")
    assert answer.error["message"], "says what happened"
    assert answer.status >= 400
    assert upstreams[name].calls("initialize") == []


@pytest.mark.field("C1")
@pytest.mark.parametrize("name", UNAVAILABLE)
async def test_a_failing_upstream_gives_no_verdict_and_is_probed_again(sick: Sick, name: str) -> None:
    gateway, upstreams = sick
    front, upstream = gateway.front("/" + slug(name)), upstreams[name]
    refusing(upstream, UNAVAILABLE[name])
    refused = await front.modern("tools/list")
    assert refused.status in (502, 503)
    assert refused.final["id"] == 1
    assert upstream.calls("initialize") == []
    upstream.on_http = None
    assert (await front.modern("tools/list")).result["tools"][0]["name"] == "echo"


BOTH_ERAS = {"supported": ["2026-11-01", "2026-07-28"], "requested": "2026-07-28"}
DISCOVERY = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private"}


async def names_versions_first(call: Call) -> Json | Err:
    """The first answer names the versions that are served, each later one describes the server."""
    if len(call.upstream.calls("server/discover")) == 1:
        return Err(-32022, "Unsupported", BOTH_ERAS, status=400)
    return DISCOVERY


AHEAD = Err(-32022, "Unsupported protocol version", {"supported": ["2026-11-01"]}, status=400)
MODERN_ANSWERS: dict[str, Script] = {
    "ahead": AHEAD,
    "in-common": names_versions_first,
    "wants-capabilities": Err(-32021, "Missing capability", {"requiredCapabilities": {"sampling": {}}}, status=400),
    "wants-headers": Err(-32020, "Header mismatch", status=400),
}
Modern = tuple[GatewayProcess, dict[str, ModernUpstream | LegacyUpstream]]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def modern() -> AsyncIterator[Modern]:
    """A gateway before upstreams that answer the probe as only modern servers do, and one that names old versions."""
    upstreams: dict[str, ModernUpstream | LegacyUpstream] = {name: ModernUpstream() for name in MODERN_ANSWERS}
    for name, answer in MODERN_ANSWERS.items():
        upstreams[name].on["server/discover"] = answer
    upstreams["ahead"].on |= {"tools/list": AHEAD, "tools/call": AHEAD}
    upstreams |= {"login": ModernUpstream(), "old": LegacyUpstream()}
    refusing(upstreams["login"], UNAUTHORIZED["401"])
    refusing(upstreams["old"], names_old_versions)
    for upstream in upstreams.values():
        await upstream.start()
    async with running(upstreams) as gateway:
        yield gateway, upstreams
    for upstream in upstreams.values():
        await upstream.stop()
        upstream.check()


async def names_old_versions(call: Call) -> None:
    await call.answer(Err(-32022, "Unsupported", {"supported": ["2025-11-25", "2025-06-18"]}, status=400))


@pytest.mark.field("C2")
@pytest.mark.parametrize("method", ["tools/list", "tools/call"])
async def test_a_modern_upstream_ahead_of_us_is_named_and_never_initialized(modern: Modern, method: str) -> None:
    gateway, upstreams = modern
    answer = await gateway.front("/ahead").modern(method, {"name": "echo"})
    assert answer.status >= 400
    assert "2026-11-01" in str(answer.error), "the error names the versions that the upstream speaks"
    assert upstreams["ahead"].calls("initialize") == []


@pytest.mark.field("C2")
async def test_a_version_in_common_is_tried_again(modern: Modern) -> None:
    gateway, upstreams = modern
    assert (await gateway.front("/in-common").modern("tools/list")).result["tools"][0]["name"] == "echo"
    assert upstreams["in-common"].calls("initialize") == []
    assert len(upstreams["in-common"].calls("server/discover")) >= 2


@pytest.mark.field("C2")
@pytest.mark.parametrize("name", ["wants-capabilities", "wants-headers"])
async def test_an_error_that_only_modern_servers_know_makes_an_upstream_modern(modern: Modern, name: str) -> None:
    gateway, upstreams = modern
    assert (await gateway.front(f"/{name}").modern("tools/list")).result["tools"][0]["name"] == "echo"
    assert upstreams[name].calls("initialize") == []
    assert {seen.version for seen in upstreams[name].requests} == {"2026-07-28"}


@pytest.mark.field("C2")
async def test_a_server_that_names_only_legacy_versions_is_legacy(modern: Modern) -> None:
    gateway, upstreams = modern
    assert (await gateway.front("/old").modern("tools/list")).result["tools"][0]["name"] == "echo"
    assert len(upstreams["old"].calls("initialize")) == 1


@pytest.mark.field("C2")
@pytest.mark.parametrize("method", ["tools/list", "tools/call"])
async def test_a_modern_upstream_behind_a_login_is_never_initialized(modern: Modern, method: str) -> None:
    gateway, upstreams = modern
    assert "error" in (await gateway.front("/login").modern(method, {"name": "echo"})).final
    assert upstreams["login"].calls("initialize") == []
