"""Field report B1: a GET that cannot be served as an event stream is 405, and says what is served."""

import pytest

from tests.field.conftest import Door
from tests.field.pairs import either_upstream
from tests.raw_front import LEGACY, MODERN

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
