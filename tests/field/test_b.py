"""Field reports B1, B3, B5: a GET that cannot be served is 405, says what is, and asks for no login; a stream that is
served is kept open."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.door import Door
from tests.field.pairs import PAIRS, either_upstream, every_pair
from tests.gateway.test_keys import CI, STRANGER, bearer, digest
from tests.gateway_process import GatewayProcess, running
from tests.peers import CAPABILITIES, LegacyUpstream, ModernUpstream, text
from tests.raw_front import LEGACY, MODERN, Answer, Front, Json, Open
from tests.scripted import Call

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
    assert answer.error["message"]
    assert allowed(answer) == ({"POST"} if "modern" in name else {"POST", "GET", "DELETE"})


def allowed(answer: Answer) -> set[str]:
    return {each.strip() for each in (answer.headers.get("Allow") or "").split(",")}


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
@either_upstream
@pytest.mark.parametrize("accept", ["application/json", "text/html", "text/event-stream;q=0, application/json"])
async def test_a_session_that_cannot_read_the_stream_is_told_405(door: Door, upstream_era: str, accept: str) -> None:
    session = await door.front(upstream_era).initialize()
    answer = await door.front(upstream_era).send("GET", {**session.headers, "Accept": accept})
    assert (answer.status, allowed(answer)) == (405, {"POST", "GET", "DELETE"}), repr(answer)
    assert "result" in (await session.request("tools/list")).final


@asynccontextmanager
async def locked() -> AsyncIterator[GatewayProcess]:
    """Routes `/legacy` and `/modern` that want a client's key."""
    names = ("legacy", "modern")
    clients = {"ci": {"keys": [digest(CI)], "routes": [f"/{name}" for name in names]}}
    routes = [{"path": f"/{name}", "http_sse": f"/{name}/sse", "upstream": name} for name in names]
    async with LegacyUpstream(get_stream=True) as legacy, ModernUpstream() as modern:
        async with running({"legacy": legacy, "modern": modern}, routes=routes, clients=clients) as gateway:
            yield gateway


@pytest.mark.field("B3")
async def test_a_get_that_is_never_served_asks_for_no_login_and_one_that_is_does() -> None:
    sse = {"Accept": "text/event-stream"}
    async with locked() as gateway:
        for era in ("legacy", "modern"):
            front = gateway.front(f"/{era}")
            session = await front.initialize(headers=bearer(CI))
            here = {**session.headers, "Authorization": None}
            for headers in (*GETS.values(), {**here, **sse, "MCP-Protocol-Version": MODERN}):
                for key in ({}, bearer(STRANGER)):
                    answer = await front.send("GET", {**headers, **key})
                    assert answer.status == 405, repr(answer)
                    assert "WWW-Authenticate" not in answer.headers
            offered = {front: {**here, **sse}, front.at(f"/{era}/sse"): sse}
            for where, headers in offered.items():
                answer = await where.send("GET", headers)
                assert answer.status == 401, repr(answer)
                assert (answer.headers.get("WWW-Authenticate") or "").startswith("Bearer")


async def idle(stream: Open) -> None:
    """Two comments, and nothing else."""
    while stream.reader.comments < 2:
        for event in stream.reader.feed(await stream.read()):
            assert not event.data, "nothing but the first event of a stream, which is empty, was sent"


def held_back_by_nobody(stream: Open) -> None:
    """The head of a stream that proxies will neither hold back nor change."""
    assert stream.status == 200
    assert (stream.headers.get("Content-Type") or "").startswith("text/event-stream")
    assert stream.headers.get("X-Accel-Buffering") == "no"
    assert "no-cache" in (stream.headers.get("Cache-Control") or "")
    assert "no-transform" in (stream.headers.get("Cache-Control") or "")
    assert [name for name in ("Content-Length", "Content-Encoding") if name in stream.headers] == []


ZIPPED = {"Accept-Encoding": "gzip, br, zstd"}


@asynccontextmanager
async def silent(front: Front, front_era: str) -> AsyncIterator[Open]:
    """A stream on which nothing is said, its head and a modern one's acknowledgement read."""
    if front_era == "legacy":
        session = await front.initialize()
        async with session.get(ZIPPED) as stream:
            held_back_by_nobody(stream)
            yield stream
        return
    wanted = {"notifications": {"toolsListChanged": True}}
    async with front.modern_open("subscriptions/listen", wanted, ident="l", headers=ZIPPED) as stream:
        held_back_by_nobody(stream)
        acknowledged = await stream.message()
        assert acknowledged is not None
        assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
        assert acknowledged["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == "l"
        yield stream


CHANGING = {**CAPABILITIES, "tools": {"listChanged": True}}


@pytest.mark.field("B5")
async def test_silent_streams_are_kept_open() -> None:
    async def stays_open(front: Front, front_era: str) -> None:
        async with silent(front, front_era) as stream:
            await idle(stream)

    async with (
        LegacyUpstream(get_stream=True, capabilities=CHANGING) as legacy,
        ModernUpstream(capabilities=CHANGING) as modern,
        running({"legacy": legacy, "modern": modern}, streams={"keep_alive_s": 1}) as gateway,
    ):
        # side by side, since each takes two seconds of silence
        await asyncio.gather(*(stays_open(gateway.front(f"/{upstream}"), front) for front, upstream in PAIRS))


@pytest.mark.field("B5")
@every_pair
async def test_a_streams_head_is_sent_at_once_and_no_comment_needed_for_it(front_era: str, upstream_era: str) -> None:
    """The first comment is due in five minutes, far beyond what a test waits for."""
    upstream = LegacyUpstream(get_stream=True) if upstream_era == "legacy" else ModernUpstream(capabilities=CHANGING)
    async with upstream, running({"up": upstream}, streams={"keep_alive_s": 300}) as gateway:
        async with silent(gateway.front("/up"), front_era) as stream:
            assert stream.reader.comments == 0


@pytest.mark.field("B5")
@every_pair
async def test_comments_stand_between_events_and_never_inside_one(front_era: str, upstream_era: str) -> None:
    """An answer that is seconds in coming, in parts of a mebibyte, each begun when a comment is due or just was."""
    due = asyncio.Event()

    async def tool(call: Call) -> Json:
        token = call.seen.meta["progressToken"]
        for progress in range(2):
            step: Json = {"progressToken": token, "progress": progress, "message": "x" * 2**20}
            await call.notify("notifications/progress", step)
            await due.wait()
            due.clear()
        return text("done")

    upstream = LegacyUpstream() if upstream_era == "legacy" else ModernUpstream()
    upstream.on["tools/call"] = tool
    async with upstream, running({"up": upstream}, streams={"keep_alive_s": 1}) as gateway:
        front, meta = gateway.front("/up"), {"progressToken": 1}
        if front_era == "modern":
            opening = front.modern_open("tools/call", {"name": "t"}, meta=meta)
        else:
            opening = (await front.initialize()).open("tools/call", {"name": "t", "_meta": meta})
        async with opening as stream:
            for progress in range(2):
                step = await stream.message()
                assert step is not None
                assert step["params"]["progress"] == progress
                commented = stream.reader.comments
                while stream.reader.comments == commented:
                    assert [*stream.reader.feed(await stream.read())] == []
                due.set()
            [final] = await stream.rest()
            assert final["result"]["content"] == text("done")["content"]
            assert stream.reader.inside == 0
