"""Tools that an official SDK's server runs only as tasks of 2025-11-25, called by a client of 2026-07-28."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.asks.talk import ACCEPT, EVERYTHING, Modern, entries
from tests.gateway_process import running
from tests.http_wire import DEADLINE_S
from tests.matrix import machinery
from tests.raw_front import Front
from tests.scripted import Json

HERE = Path(__file__).parent
SERVERS = {
    "TypeScript 1.x": [machinery.NODE, str(HERE / "tools.mjs")],
    "Python 1.x": [machinery.SDK1, str(HERE / "tools.py")],
}
HI: Json = {"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m"}
RELATED = "io.modelcontextprotocol/related-task"


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest) -> Iterator[str]:
    with machinery.running(SERVERS[request.param], "http://") as process:
        yield f"http://{process.said}"


@pytest.fixture
async def front(server: str) -> AsyncIterator[Front]:
    async with running({"up": {"url": server}}) as gateway:
        yield gateway.front("/up")


def client(front: Front, name: str, **more: Json) -> Modern:
    return Modern(front, {"name": name, "arguments": {}}, **more)


async def statuses(front: Front, wanted: list[str]) -> None:
    """Waits until the server's tasks stand so."""
    async with asyncio.timeout(DEADLINE_S):
        while json.loads((await client(front, "statuses").call()).said) != wanted:
            pass


async def test_a_tool_that_runs_only_as_a_task_answers_as_any_other(front: Front) -> None:
    listed = await front.modern("tools/list")
    assert {"work", "statuses"} <= {tool["name"] for tool in listed.result["tools"]}
    assert not any("execution" in tool for tool in listed.result["tools"])
    for capabilities in ({}, EVERYTHING):
        answer = await client(front, "work", capabilities=capabilities).call(ident="w")
        assert (answer.final["id"], json.loads(answer.said)) == ("w", {"done": True})
        assert answer.result["resultType"] == "complete"
        assert answer.result["_meta"]["v/x"] == 1
        assert RELATED not in answer.result["_meta"]
        assert "task" not in answer.result
    await statuses(front, ["completed", "completed"])


async def test_what_a_task_asks_is_asked_of_the_client(front: Front) -> None:
    answers = {"elicitation/create": ACCEPT, "sampling/createMessage": HI}
    asker = client(front, "ask")
    reply, asked = await asker.call(), []
    while reply.result["resultType"] == "input_required":
        for entry in entries(reply).values():
            asked.append(entry["method"])
            assert RELATED not in entry["params"].get("_meta", {})
        reply = await asker.retry(reply, {key: answers[entry["method"]] for key, entry in entries(reply).items()})
    assert asked == list(answers)
    assert json.loads(reply.said) == {"who": ["accept", ACCEPT["content"]], "hi": HI["content"]}
    await statuses(front, ["completed"])


async def test_a_task_that_failed_is_a_tool_that_failed(front: Front) -> None:
    """The Python SDK 1.x keeps no result of one, only its message: an error, and never an empty success."""
    answer = await client(front, "fail").call()
    if "result" in answer.final:
        assert (answer.result["isError"], json.loads(answer.said)) == (True, "größe")
    else:
        assert (answer.code, answer.error["message"]) == (-32603, "größe")


async def test_a_client_that_goes_cancels_the_task(front: Front) -> None:
    calling = asyncio.create_task(client(front, "endless").call())
    await statuses(front, ["working"])
    calling.cancel()
    await asyncio.wait({calling})
    await statuses(front, ["cancelled"])


async def test_a_server_that_dies_with_the_task_is_a_failed_upstream(front: Front) -> None:
    answer = await client(front, "die").call()
    assert answer.status in (502, 503)  # the connection broke, or was refused
    assert answer.code == -32603
