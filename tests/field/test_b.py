"""Field reports B1, B5: a GET that cannot be served is 405 and says what is; a stream that is served is kept open."""

import asyncio

import pytest

from tests.door import Door
from tests.field.pairs import PAIRS, either_upstream
from tests.gateway_process import running
from tests.peers import CAPABILITIES, LegacyUpstream, ModernUpstream
from tests.raw_front import LEGACY, MODERN, Front, Open

GETS = {
    "any type": {"Accept": "*/*"},
    "JSON": {"Accept": "application/json"},
    "an event stream": {"Accept": "text/event-stream"},
    "nothing said": {},
    "a legacy version": {"Accept": "text/event-stream", "MCP-Protocol-Version": LEGACY},
    "the modern version": {"Accept": "text/event-stream", "MCP-Protocol-Version": MODERN},
    "a browser": {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"},
}


@pytest.mark.field("B1")
@either_upstream
@pytest.mark.parametrize("verb", ["GET", "DELETE"])
@pytest.mark.parametrize("name", GETS)
async def test_a_get_or_delete_without_a_session_is_405(door: Door, upstream_era: str, verb: str, name: str) -> None:
    answer = await door.front(upstream_era).send(verb, GETS[name])
    assert answer.status == 405, repr(answer)
    allowed = {each.strip() for each in (answer.headers.get("Allow") or "").split(",")}
    assert "POST" in allowed
    assert allowed <= {"POST", "GET", "DELETE", "OPTIONS"}
    if "modern" in name:
        assert allowed <= {"POST", "OPTIONS"}, "a modern client may only POST"


@pytest.mark.field("B1")
@either_upstream
@pytest.mark.parametrize("verb", ["PUT", "PATCH", "HEAD", "TRACE"])
async def test_other_verbs_are_405(door: Door, upstream_era: str, verb: str) -> None:
    answer = await door.front(upstream_era).send(verb, {"Accept": "*/*", "Content-Length": "0"})
    assert answer.status == 405
    assert "POST" in (answer.headers.get("Allow") or "")


@pytest.mark.field("B1")
@pytest.mark.parametrize(
    "accept", ["text/event-stream", "*/*", "text/*", "TEXT/Event-Stream; q=0.5", "a/b, text/*", None]
)
async def test_a_session_reads_its_stream_with_any_accept_that_allows_it(door: Door, accept: str | None) -> None:
    session = await door.front("legacy").initialize()
    async with session.get({"Accept": accept}) as stream:
        assert stream.status == 200
        assert (stream.headers.get("Content-Type") or "").startswith("text/event-stream")


@pytest.mark.field("B1")
async def test_a_session_that_cannot_read_the_stream_is_told_so(door: Door) -> None:
    session = await door.front("legacy").initialize()
    answer = await door.front("legacy").send("GET", {**session.headers, "Accept": "application/json"})
    assert answer.status in (405, 406)


async def idle(stream: Open) -> None:
    """Two comments, and nothing else, on a stream that proxies will neither hold back nor change."""
    assert stream.status == 200
    assert (stream.headers.get("Content-Type") or "").startswith("text/event-stream")
    assert stream.headers.get("X-Accel-Buffering") == "no"
    assert "no-cache" in (stream.headers.get("Cache-Control") or "")
    assert "no-transform" in (stream.headers.get("Cache-Control") or "")
    assert [name for name in ("Content-Length", "Content-Encoding") if name in stream.headers] == []
    while stream.reader.comments < 2:
        for event in stream.reader.feed(await stream.read()):
            assert not event.data, "nothing but the first event of a stream, which is empty, was sent"
    assert stream.reader.fields == [], "a comment stands between events"


async def stays_open(front: Front, front_era: str) -> None:
    if front_era == "legacy":
        session = await front.initialize()
        async with session.get() as stream:
            await idle(stream)
        return
    wanted = {"notifications": {"toolsListChanged": True}}
    async with front.modern_open("subscriptions/listen", wanted, ident="l") as stream:
        acknowledged = await stream.message()
        assert acknowledged is not None
        assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
        assert acknowledged["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == "l"
        await idle(stream)


@pytest.mark.field("B5")
async def test_silent_streams_are_kept_open() -> None:
    changing = {**CAPABILITIES, "tools": {"listChanged": True}}
    async with (
        LegacyUpstream(get_stream=True, capabilities=changing) as legacy,
        ModernUpstream(capabilities=changing) as modern,
        running({"legacy": legacy, "modern": modern}, streams={"keep_alive_s": 1}) as gateway,
    ):
        # side by side, since each takes two seconds of silence
        await asyncio.gather(*(stays_open(gateway.front(f"/{upstream}"), front) for front, upstream in PAIRS))
