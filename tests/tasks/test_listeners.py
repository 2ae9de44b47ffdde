"""One listen stream about tasks that are in several places, and what is left of them where a place has gone.

Specification: io.modelcontextprotocol/tasks (ext-tasks, draft), Task Status Notifications; 2026-07-28
basic/patterns/subscriptions.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.fleet import KEYS, fleet
from tests.gateway.test_keys import CI, OPS, bearer, digest
from tests.gateway_process import running
from tests.http_wire import DEADLINE_S
from tests.peers import LegacyUpstream, subscribed
from tests.raw_front import PREFIX, Front, Open
from tests.scripted import Call, Err, Json
from tests.tasks.test_ids import (
    CHILD,
    KNOWS,
    LISTEN,
    OWN,
    ROUTE,
    STAMPS,
    TOOLS,
    Tasking,
    ask,
    created,
    one_each,
    refused,
    replicated,
    two,
)

TOLD, CHANGED = "notifications/tasks", "notifications/tools/list_changed"
TAG: Json = {PREFIX + "subscriptionId": "größe"}
COMMAND: dict[str, Any] = {"command": sys.executable, "args": ["-c", CHILD], "era": "modern"}


@asynccontextmanager
async def listening(front: Front, wanted: Json, agreed: Json, **more: Any) -> AsyncIterator[Open]:
    """A stream that is acknowledged: `agreed`, and in one word."""
    params = {"notifications": wanted}
    async with front.modern_open(LISTEN, params, ident="größe", capabilities=KNOWS, **more) as stream:
        message = await stream.message()
        assert message is not None
        assert message["method"] == "notifications/subscriptions/acknowledged", message
        assert message["params"] == {"notifications": agreed, "_meta": TAG}
        yield stream


async def heard(stream: Open) -> tuple[str, Json]:
    message = await stream.message()
    assert message is not None
    return message["method"], message["params"]


def filters(upstream: Tasking | LegacyUpstream) -> list[Json]:
    return [seen.params["notifications"] for seen in upstream.calls(LISTEN)]


async def both(front: Front) -> dict[str, str]:
    return {name: await created(front, tool) for name, tool in TOOLS.items()}


async def each_is_told(upstreams: dict[str, Tasking], tasks: dict[str, str], stream: Open) -> None:
    """Of each upstream's task, though both call theirs alike, and of nobody else's."""
    for name, upstream in upstreams.items():
        for own in ("somebody else's", OWN):
            await upstream.push(TOLD, {"taskId": own, "status": "completed", "by": name, **STAMPS})
        told = {"taskId": tasks[name], "status": "completed", "by": name, **STAMPS, "_meta": TAG}
        assert await heard(stream) == (TOLD, told)


@pytest.mark.parametrize("several", [two, replicated], ids=["one process", "two replicas"])
async def test_a_listener_is_told_of_tasks_that_several_servers_have(several: Any) -> None:
    async with several() as (upstreams, front):
        tasks = await both(front)
        wanted = ["unknown", tasks["two"], tasks["one"]]
        async with listening(front, {"taskIds": wanted}, {"taskIds": [tasks["two"], tasks["one"]]}) as stream:
            assert [filters(upstream) for upstream in upstreams.values()] == [[{"taskIds": [OWN]}]] * 2
            await each_is_told(upstreams, tasks, stream)
        for upstream in upstreams.values():
            await upstream.when(lambda upstream=upstream: not upstream.listeners)  # type: ignore[misc]


async def test_what_else_a_listener_wants_it_hears_from_the_server_of_its_route() -> None:
    async with two() as (upstreams, front):
        tasks = await both(front)
        others: Json = {"x": [1.50], "toolsListChanged": True}
        ids = {"taskIds": [tasks["two"], tasks["one"]]}
        async with listening(front, others | ids, others | {"taskIds": ids["taskIds"][::-1]}) as stream:
            assert filters(upstreams["one"]) == [others | {"taskIds": [OWN]}]
            assert filters(upstreams["two"]) == [{"taskIds": [OWN]}]
            await upstreams["one"].push(CHANGED, {"x": 1})
            assert await heard(stream) == (CHANGED, {"x": 1, "_meta": TAG})
            await each_is_told(upstreams, tasks, stream)
        only = {"taskIds": [tasks["two"]]}
        async with listening(front, others | only, others | only):
            assert filters(upstreams["one"])[1:] == [others]
            assert filters(upstreams["two"])[1:] == [{"taskIds": [OWN]}]


async def test_a_listener_is_told_of_tasks_at_several_endpoints() -> None:
    async with Tasking("one") as one, Tasking("two") as other:
        entry = {"urls": [one.url, other.url], "balance": "round_robin"}
        async with running({"up": entry}) as gateway:
            front = gateway.front("/up")
            ids = await one_each(front)
            async with listening(front, {"taskIds": ids}, {"taskIds": ids}) as stream:
                for upstream in (one, other):
                    assert filters(upstream) == [{"taskIds": [OWN]}]
                    await upstream.push(TOLD, {"taskId": OWN, "status": "working", **STAMPS})
                assert {(await heard(stream))[1]["taskId"] for _ in ids} == set(ids)


async def test_a_listener_is_told_of_tasks_of_several_processes() -> None:
    async with fleet({"up": COMMAND}) as replicas:
        front = replicas.front("/up")
        made = [(await ask(front, "tools/call", {"name": "t", "arguments": {}})).result for _ in range(2)]
        ids = [one["taskId"] for one in made]
        for number, replica in enumerate(replicas.replicas):  # who asks alike would hear the stream of before
            params, meta = {"notifications": {"taskIds": ids}}, {"com.example/number": number}
            async with replica.front("/up").modern_open(LISTEN, params, capabilities=KNOWS, meta=meta) as stream:
                agreed = (await heard(stream))[1]["notifications"]["taskIds"]
                assert sorted(agreed) == sorted(ids)
                told = [(await heard(stream))[1] for _ in ids]
                assert {(one["taskId"], one["pid"]) for one in told} == {(one["taskId"], one["pid"]) for one in made}


SORRY = Err(-32055, "not here", {"x": 1})
ALL: Json = {"toolsListChanged": True}
REFUSED: dict[str, tuple[list[str], Json, list[str] | None]] = {
    # who refuses; what is asked for besides tasks; whose tasks are agreed to, None where the refusal is the client's
    "one of them": (["two"], {}, ["one"]),
    "the other": (["one"], {}, ["two"]),
    "all of them": (["one", "two"], {}, None),
    "the one that has tasks alone": (["two"], ALL, ["one"]),
    "the one that has more": (["one"], ALL, None),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_tasks_whose_server_refuses_are_left_out_and_whatever_else_it_refuses_is_refused(name: str) -> None:
    refusing, others, left = REFUSED[name]
    async with two() as (upstreams, front):
        tasks = await both(front)
        for one in refusing:
            upstreams[one].on[LISTEN] = SORRY
        wanted = {**others, "taskIds": list(tasks.values())}
        if left is not None:
            async with listening(front, wanted, {**others, "taskIds": [tasks[one] for one in left]}) as stream:
                await each_is_told({one: upstreams[one] for one in left}, tasks, stream)
        else:
            answer = await ask(front, LISTEN, {"notifications": wanted})
            assert (answer.code, answer.error["message"], answer.error["data"]) == (-32055, "not here", {"x": 1})
        for upstream in upstreams.values():
            await upstream.when(lambda upstream=upstream: not upstream.listeners)  # type: ignore[misc]


async def test_a_server_that_is_gone_takes_only_its_own_tasks_with_it() -> None:
    async with two() as (upstreams, front):
        tasks = await both(front)
        await upstreams["two"].stop()
        async with listening(front, {"taskIds": list(tasks.values())}, {"taskIds": [tasks["one"]]}) as stream:
            await each_is_told({"one": upstreams["one"]}, tasks, stream)


async def test_a_server_with_sessions_behind_the_same_route_honours_what_it_can() -> None:
    async with (
        LegacyUpstream(get_stream=True, capabilities={"tools": {"listChanged": True}}) as old,
        Tasking("two") as new,
        running({"one": old, "two": new}, routes=[ROUTE]) as gateway,
    ):
        task = await created(gateway.front(), "eu_t")
        async with listening(gateway.front(), {**ALL, "taskIds": [task]}, {**ALL, "taskIds": [task]}) as stream:
            await old.push({"jsonrpc": "2.0", "method": CHANGED})
            assert await heard(stream) == (CHANGED, {"_meta": TAG})
            await each_is_told({"two": new}, {"two": task}, stream)


async def test_once_a_server_ends_its_stream_for_good_the_client_listens_anew() -> None:
    async def less(call: Call) -> None:
        await call.notify("notifications/subscriptions/acknowledged", {"notifications": {}} | subscribed(call))
        await call.stay()

    async with two() as (upstreams, front):
        ids = list((await both(front)).values())
        async with listening(front, {"taskIds": ids}, {"taskIds": ids}) as stream:
            upstreams["two"].on[LISTEN] = less
            upstreams["two"].listeners[0].reset()
            [final] = await stream.rest()
            assert final == {"jsonrpc": "2.0", "id": "größe", "result": {"resultType": "complete", "_meta": TAG}}
        await upstreams["one"].when(lambda: not upstreams["one"].listeners)


async def test_a_stop_ends_it_with_the_result_and_then_the_cancel() -> None:
    async with (
        Tasking("one") as one,
        Tasking("two") as other,
        running({"one": one, "two": other}, routes=[ROUTE]) as gateway,
    ):
        ids = list((await both(gateway.front())).values())
        async with listening(gateway.front(), {"taskIds": ids}, {"taskIds": ids}) as stream:
            await gateway.stop()
            result, cancel = await stream.rest()
            assert (result["id"], result["result"]["_meta"]) == ("größe", TAG)
            assert cancel["params"] == {"requestId": "größe", "_meta": TAG}


async def test_who_does_not_know_tasks_is_told_so_whatever_else_it_asks_for() -> None:
    async with two() as (upstreams, front):
        ids = list((await both(front)).values())
        answer = await ask(front, LISTEN, {"notifications": {**ALL, "taskIds": ids}}, capabilities={})
        assert (answer.status, answer.code) == (400, -32021)
        assert answer.error["data"] == {"requiredCapabilities": KNOWS}
        assert [filters(upstream) for upstream in upstreams.values()] == [[], []]


async def test_another_callers_tasks_are_asked_for_nowhere() -> None:
    clients = {who: {"keys": [digest(key)], "routes": ["/mcp"]} for who, key in (("ci", CI), ("ops", OPS))}
    async with (
        Tasking("one") as one,
        Tasking("two") as other,
        running({"one": one, "two": other}, routes=[ROUTE], clients=clients) as gateway,
    ):
        front = gateway.front()
        own, theirs = await created(front, headers=bearer(CI)), await created(front, "eu_t", headers=bearer(OPS))
        async with listening(front, {"taskIds": [theirs, own]}, {"taskIds": [own]}, headers=bearer(CI)):
            assert filters(one) == [{"taskIds": [OWN]}]
            assert filters(other) == []


# what is left of tasks whose process has gone


async def test_a_task_whose_process_has_gone_with_its_replica_is_not_known_any_more() -> None:
    async with fleet({"up": COMMAND}) as replicas:
        goes, stays = (replica.front("/up") for replica in replicas.replicas)
        lost, kept = [
            (await ask(front, "tools/call", {"name": "t", "arguments": {}})).result["taskId"] for front in (goes, stays)
        ]
        assert (await ask(stays, "tasks/get", {"taskId": lost})).result["taskId"] == lost
        await replicas.replicas[0].kill()
        for method, params in (("tasks/get", {}), ("tasks/update", {"inputResponses": {}}), ("tasks/cancel", {})):
            for accept in ({}, {"Accept": "application/json"}):
                assert refused(await ask(stays, method, {"taskId": lost, **params}, headers=accept))
        for others in ({}, {"toolsListChanged": True}):
            async with listening(stays, {**others, "taskIds": [lost, kept]}, {**others, "taskIds": [kept]}) as stream:
                assert (await heard(stream))[1]["taskId"] == kept
            async with listening(stays, {**others, "taskIds": [lost]}, others):
                pass


HOLDS = """
    if params.get("x"):
        socket.create_connection(("127.0.0.1", int(sys.argv[1])))
        continue
    said ="""


async def test_a_request_about_a_task_that_is_under_way_when_its_replica_goes_is_about_no_task() -> None:
    asked = asyncio.Event()

    def rung(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        writer.close()

    async with await asyncio.start_server(rung, "127.0.0.1", 0) as bell:
        child = CHILD.replace("import json, os, sys", "import json, os, socket, sys").replace("\n    said =", HOLDS)
        args = ["-c", child, str(bell.sockets[0].getsockname()[1])]
        async with fleet({"up": COMMAND | {"args": args}}) as replicas:
            goes, stays = replicas.replicas
            task = (await ask(goes.front("/up"), "tools/call", {"name": "t", "arguments": {}})).result["taskId"]
            asking = asyncio.create_task(ask(stays.front("/up"), "tasks/get", {"taskId": task, "x": 1}))
            async with asyncio.timeout(DEADLINE_S):
                await asked.wait()
            await goes.kill()
            assert refused(await asking)


async def test_a_task_of_an_earlier_process_of_the_gateway_is_not_known_to_the_next() -> None:
    """Without a store, and bound to its caller: its process is gone, and another's may call a task alike."""
    more: dict[str, Any] = {"keys": KEYS, "clients": {"ci": {"keys": [digest(CI)], "routes": ["/up"]}}}
    async with running({"up": COMMAND}, **more) as gateway:
        task = (await ask(gateway.front("/up"), "tools/call", {"name": "t"}, headers=bearer(CI))).result["taskId"]
        assert (await ask(gateway.front("/up"), "tasks/get", {"taskId": task}, headers=bearer(CI))).result
    async with running({"up": COMMAND}, **more) as gateway:
        front = gateway.front("/up")
        assert refused(await ask(front, "tasks/get", {"taskId": task}, headers=bearer(CI)))
        async with listening(front, {"taskIds": [task]}, {}, headers=bearer(CI)):
            pass
