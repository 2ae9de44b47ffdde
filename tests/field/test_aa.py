"""Field reports AA2, AA10, AA12: how an upstream's failures are recovered from, and what they become."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.door import Door
from tests.field.pairs import ask, every_pair
from tests.gateway_process import GatewayProcess, running
from tests.peers import LegacyUpstream
from tests.raw_front import NO_STREAM
from tests.scripted import Call

LOST = {
    "404 and a code": (404, b'{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"Session not found"}}'),
    "404 and HTML": (404, b"<html>not found</html>"),
    "404 and nothing": (404, b""),
}
UNCLEAR = {
    "400": (400, b'{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Session not found"}}'),
    "410": (410, b"gone"),
    "503": (503, b"session unknown"),
}


def losing_once(upstream: LegacyUpstream, status: int, body: bytes) -> list[str | None]:
    """The first tool call's session is lost to the upstream; returns the sessions of the calls that came."""
    calls: list[str | None] = []

    async def on_http(call: Call) -> bool:
        if call.seen.method != "tools/call":
            return False
        calls.append(call.seen.session)
        if len(calls) > 1:
            return False
        upstream.live.discard(call.seen.session or "")
        kind = "application/json" if body.startswith(b"{") else "text/html"
        await call.reply(status, body, [("Content-Type", kind)])
        return True

    upstream.on_http = on_http
    return calls


@pytest.mark.field("AA2")
@pytest.mark.parametrize("name", LOST)
async def test_a_shared_session_that_404_says_is_gone_is_replaced_and_the_call_sent_again_once(name: str) -> None:
    async with LegacyUpstream() as upstream, running({"x": upstream}) as gateway:
        calls = losing_once(upstream, *LOST[name])
        answer = await gateway.front("/x").modern("tools/call", {"name": "echo"})
        assert "result" in answer.final
        assert len(calls) == 2
        assert calls[0] != calls[1]


@pytest.mark.field("AA2")
@pytest.mark.parametrize("name", UNCLEAR)
async def test_a_failure_that_may_have_run_is_returned_and_the_next_call_is_served(name: str) -> None:
    async with LegacyUpstream() as upstream, running({"x": upstream}) as gateway:
        calls = losing_once(upstream, *UNCLEAR[name])
        assert "error" in (await gateway.front("/x").modern("tools/call", {"name": "echo"})).final
        assert len(calls) == 1, "a write is never repeated on a guess"
        assert "result" in (await gateway.front("/x").modern("tools/call", {"name": "echo"})).final


def failing(status: int, headers: list[tuple[str, str]]) -> Any:
    async def on_http(call: Call) -> bool:
        if call.seen.method != "tools/list":
            return False
        await call.reply(
            status, b"<html>/srv/secret/path.py: 10.1.2.3</html>", [("Content-Type", "text/html"), *headers]
        )
        return True

    return on_http


CHALLENGE = [("WWW-Authenticate", 'Bearer error="invalid_token"')]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def forwarding(shared_door: Door) -> AsyncIterator[GatewayProcess]:
    """A second gateway before the same upstreams, to which callers' credentials go."""
    forwards = {"forward_headers": ["Authorization"]}
    async with running({era: (shared_door.upstream(era), forwards) for era in ("legacy", "modern")}) as gateway:
        yield gateway


@pytest.mark.field("AA10")
@every_pair
@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_credential_is_its_owners_to_mend(
    door: Door, forwarding: GatewayProcess, front_era: str, upstream_era: str, status: int
) -> None:
    door.upstream(upstream_era).on_http = failing(status, CHALLENGE)
    answer = await ask(door.front(upstream_era), front_era, "tools/list", headers=NO_STREAM)
    assert "gateway's credentials" in answer.error["message"]
    assert answer.status == (502 if front_era == "modern" else 200)
    assert "WWW-Authenticate" not in answer.headers
    answer = await ask(forwarding.front(f"/{upstream_era}"), front_era, "tools/list", headers=NO_STREAM)
    assert answer.status == status
    assert answer.headers.get("WWW-Authenticate") == CHALLENGE[0][1]


@pytest.mark.field("AA10")
@pytest.mark.parametrize("path", ["/nowhere", "/modern/undefined", "/undefined", "/"])
async def test_an_unknown_path_is_404(door: Door, path: str) -> None:
    answer = await door.gateway.front(path).modern("tools/list")
    assert answer.status == 404
    assert answer.code == -32600


@pytest.mark.field("AA12")
@every_pair
@pytest.mark.parametrize(("status", "becomes"), [(429, 429), (500, 502), (502, 502), (503, 503), (504, 504)])
async def test_a_page_in_place_of_an_answer_is_an_error_without_a_word_of_it(
    door: Door, front_era: str, upstream_era: str, status: int, becomes: int
) -> None:
    door.upstream(upstream_era).on_http = failing(status, [("Retry-After", "7")])
    answer = await ask(door.front(upstream_era), front_era, "tools/list", ident="seven", headers=NO_STREAM)
    assert answer.final["id"] == "seven"
    assert answer.code == -32603
    assert str(status) in answer.error["message"]
    assert answer.status == (becomes if front_era == "modern" else 200)
    assert answer.headers.get("Retry-After") == "7"
    assert b"secret" not in answer.body
    assert b"10.1.2.3" not in answer.body
