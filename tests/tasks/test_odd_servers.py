"""What a call becomes whose server makes a task of it, or does not, or goes on about it in no official SDK's way.

Specification: 2025-11-25 basic/utilities/tasks.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.asks.talk import ACCEPT, ELICIT, FORM, TOOL, Modern, entries, heard
from tests.gateway_process import running
from tests.http_wire import DEADLINE_S
from tests.peers import CAPABILITIES, LegacyUpstream, text
from tests.raw_front import Front
from tests.scrape import settled
from tests.scripted import Call, Err, Json

DECLARED: Json = {"tasks": {"requests": {"tools": {"call": {}}}}}
CREATED: Json = {"task": {"taskId": "größe", "status": "working", "pollInterval": 0}}
DONE: Json = {"taskId": "größe", "status": "completed"}
Script = Callable[[Call], Awaitable[Json | Err | None]] | Json | Err


def listing(support: object) -> Json:
    return {"tools": [{"name": "t", "inputSchema": {"type": "object"}, "execution": {"taskSupport": support}}]}


@asynccontextmanager
async def serving(
    on: dict[str, Script], *, declared: Json = DECLARED, support: object = "required", **more: Any
) -> AsyncIterator[tuple[LegacyUpstream, Front]]:
    bounds = {"timeouts": more.pop("timeouts")} if "timeouts" in more else {}
    async with (
        LegacyUpstream(get_stream=True, capabilities=CAPABILITIES | declared) as upstream,
        running({"up": (upstream, bounds)}, **more) as gateway,
    ):
        upstream.on.update({"tools/list": listing(support), "tools/call": CREATED, "tasks/get": DONE, **on})
        yield upstream, gateway.front("/up")


NO_TASK: list[tuple[str, Json, object]] = [
    ("a server that declares none", {}, "required"),
    ("a server that makes tasks of other requests", {"tasks": {"requests": {"tools": {}}}}, "required"),
    ("a tool that may be one", DECLARED, "optional"),
    ("a tool that may not", DECLARED, "forbidden"),
    ("a tool that says nonsense", DECLARED, ["required"]),
]


@pytest.mark.parametrize(("declared", "support"), [row[1:] for row in NO_TASK], ids=[row[0] for row in NO_TASK])
async def test_what_need_not_be_a_task_is_none_whatever_its_caller_says(declared: Json, support: object) -> None:
    async with serving({"tools/call": text("x")}, declared=declared, support=support) as (upstream, front):
        answer = await Modern(front, TOOL | {"task": {"ttl": 1}}).call()
        assert answer.said == "x"
        [call] = upstream.calls("tools/call")
        assert call.params == TOOL


async def test_a_task_is_kept_for_as_long_as_its_caller_may_wait_and_a_plain_result_is_one() -> None:
    async with serving({"tools/call": text("x")}, timeouts={"total_s": 90}) as (upstream, front):
        assert (await Modern(front).call()).said == "x"
        [call] = upstream.calls("tools/call")
        assert call.params == TOOL | {"task": {"ttl": 90_000}}


ENDS: dict[str, tuple[Script, Script, int, int, int]] = {
    # what tasks/get and tasks/result answer; the status and code for the client; how often the result is asked for
    "a task that is not known any more": (Err(-32602, "Task not found"), text("x"), 502, -32603, 0),
    "another task": (DONE | {"taskId": "other"}, text("x"), 502, -32603, 0),
    "no task at all": ({}, text("x"), 502, -32603, 0),
    "an outcome that is an error": (DONE, Err(-32055, "größe", {"x": 1}), 200, -32055, 1),
    "an outcome that is none": (DONE, {}, 200, -32603, 1),
    "a cancelled task without an outcome": (DONE | {"status": "cancelled"}, {}, 200, -32603, 1),
    "a session that is lost": (Err(-32001, "Session not found", status=404), text("x"), 502, -32603, 0),
}


@pytest.mark.parametrize("name", ENDS)
async def test_a_task_that_comes_to_nothing_is_an_error_and_is_not_begun_again(name: str) -> None:
    look, result, status, code, asked = ENDS[name]
    async with serving({"tasks/get": look, "tasks/result": result}) as (upstream, front):
        answer = await Modern(front).call()
        assert (answer.status, answer.code) == (status, code)
        assert len(upstream.calls("tools/call")) == 1
        assert len(upstream.calls("tasks/result")) == asked
        if not asked:
            [cancel] = await upstream.seen("tasks/cancel")
            assert cancel.params == {"taskId": "größe"}
        assert not upstream.calls("notifications/cancelled")


@pytest.mark.parametrize("breaks", [1, 100], ids=["once", "each time"])
async def test_an_outcome_whose_stream_breaks_is_asked_for_again_but_not_without_end(breaks: int) -> None:
    async def result(call: Call) -> Json | None:
        if len(upstream.calls("tasks/result")) > breaks:
            return text("x")
        await call.stream()
        call.close()
        return None

    async with serving({"tasks/result": result}) as (upstream, front):
        answer = await Modern(front).call()
        assert len(upstream.calls("tools/call")) == 1
        if breaks == 1:
            assert answer.said == "x"
        else:
            assert (answer.status, answer.code) == (502, -32603)
            await upstream.seen("tasks/cancel")


async def test_a_task_that_takes_too_long_is_cancelled() -> None:
    look = DONE | {"status": "working", "pollInterval": 100}
    bounds = {"total_s": 0.5, "first_byte_s": 0.5}
    async with serving({"tasks/get": look}, timeouts=bounds) as (upstream, front):
        answer = await Modern(front).call()
        assert answer.status == 504
        [cancel] = await upstream.seen("tasks/cancel")
        assert cancel.params == {"taskId": "größe"}


MADE: dict[str, tuple[Json | Err, list[Json]]] = {
    # what comes of the call, and the cancels of tasks then
    "a task": (CREATED, [{"taskId": "größe"}]),
    "a result": (text("x"), []),
    "an error": (Err(-32602, "no"), []),
}


@pytest.mark.parametrize("made", MADE)
async def test_a_client_that_goes_before_there_is_a_task_cancels_it_once_there_is_one(made: str) -> None:
    """By a notification it could not be (Task Cancellation)."""
    outcome, cancels = MADE[made]
    is_made = asyncio.Event()

    async def make(call: Call) -> Json | Err:
        await is_made.wait()
        return outcome

    async with (
        LegacyUpstream(get_stream=True, capabilities=CAPABILITIES | DECLARED) as upstream,
        running({"up": (upstream, {})}, admin="127.0.0.1:0") as gateway,
    ):
        upstream.on.update({"tools/list": listing("required"), "tools/call": make, "tasks/cancel": {}})
        front = gateway.front("/up")
        calling = asyncio.create_task(Modern(front).call())
        await upstream.seen("tools/call")
        calling.cancel()
        await asyncio.wait({calling})
        await settled(gateway, "mcp_front_door_requests_in_flight", 0)
        is_made.set()
        if cancels:
            await upstream.seen("tasks/cancel")
        assert (await front.modern("tools/list")).status == 200
        assert [cancel.params for cancel in upstream.calls("tasks/cancel")] == cancels
        assert not upstream.calls("notifications/cancelled")


async def test_a_task_whose_question_nobody_answers_is_cancelled() -> None:
    async def result(call: Call) -> Json:
        return heard(await call.ask(ELICIT, FORM))

    look = DONE | {"status": "input_required"}
    async with serving({"tasks/get": look, "tasks/result": result}, streams={"ask_ttl_s": 1}) as (upstream, front):
        entries(await Modern(front).call())
        await upstream.seen("tasks/cancel")
        assert upstream.replies == []


async def test_a_question_and_its_answer_name_the_task_at_the_server_alone() -> None:
    related = {"io.modelcontextprotocol/related-task": {"taskId": "größe"}}

    async def result(call: Call) -> Json:
        answer = await call.ask(ELICIT, FORM | {"_meta": related | {"v/x": 1}})
        return heard(answer) | {"_meta": related}

    look = DONE | {"status": "input_required"}
    async with serving({"tasks/get": look, "tasks/result": result}) as (_, front):
        client = Modern(front)
        asked = await client.call()
        [entry] = entries(asked).values()
        assert entry["params"]["_meta"] == {"v/x": 1}
        done = await client.answer_all(asked, ACCEPT | {"_meta": {"v/y": 2}})
        told = ACCEPT | {"_meta": {"v/y": 2} | related}
        assert done.result["structuredContent"]["heard"] == [{"result": told}]
        assert "io.modelcontextprotocol/related-task" not in done.result["_meta"]


@pytest.mark.parametrize("on_get", [True, False], ids=["on the GET stream", "with the outcome"])
async def test_progress_of_a_task_keeps_the_token_of_its_call(on_get: bool) -> None:
    async def result(call: Call) -> Json:
        token = upstream.calls("tools/call")[0].meta["progressToken"]
        note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": 1}}
        await (upstream.push(note, call.seen.session) if on_get else call.event(note))
        if on_get:
            async with asyncio.timeout(DEADLINE_S):
                await told.wait()
        return text("x")

    told = asyncio.Event()
    async with serving({"tasks/result": result}) as (upstream, front):
        opened = front.modern_open("tools/call", TOOL, capabilities={"roots": {}}, meta={"progressToken": "p"})
        async with opened as stream:
            assert (await stream.message() or {})["params"] == {"progressToken": "p", "progress": 1}
            told.set()
            [final] = await stream.rest()
        assert final["result"]["content"] == text("x")["content"]
