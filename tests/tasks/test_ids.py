"""The ids of tasks on their way through the gateway: back to the server that minted them, and to the caller alone whose
they are.

Specification: io.modelcontextprotocol/tasks (ext-tasks, draft); for clients with sessions 2025-11-25
basic/utilities/tasks. Which parts of a message hold one: `tests/policies/test_task_ids.py`.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.asks.talk import ELICIT, FORM, next_ask
from tests.fleet import fleet
from tests.gateway.test_keys import CI, OPS, bearer, digest
from tests.gateway_process import running
from tests.http_wire import DEADLINE_S
from tests.peers import CAPABILITIES, LegacyUpstream, ModernUpstream
from tests.raw_front import Answer, Front, Session, sentinel
from tests.scripted import Call, Err, Json

KNOWS: Json = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
RELATED = "io.modelcontextprotocol/related-task"
UNKNOWN = Err(-32602, "Failed to retrieve task: Task not found")
STAMPS: Json = {"createdAt": "2026-08-01T00:00:00Z", "lastUpdatedAt": "2026-08-01T00:00:00Z", "ttlMs": None}
OWN = "größe-1"
"""Every server calls its first task so: only the way tells them apart."""

SENTINEL = sentinel(OWN)


class Tasking(ModernUpstream):
    """Makes a task of every call, and says in it who it is. `streams`: not without a word before."""

    def __init__(self, name: str, *, streams: bool = False) -> None:
        super().__init__(capabilities=CAPABILITIES | KNOWS)
        self.name = name
        self.streams = streams
        self.on["tools/call"] = self._create
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            self.on[method] = self._about

    async def _create(self, call: Call) -> Json:
        if self.streams:
            await call.notify("notifications/message", {"level": "info", "data": "taskId"})
        return {"resultType": "task", "taskId": OWN, "status": "working", "x": [1.50], **STAMPS}

    async def _about(self, call: Call) -> Json | Err:
        if call.seen.params["taskId"] != OWN:
            return UNKNOWN
        if call.seen.method != "tasks/get":
            return {}
        result = {"content": [], "structuredContent": {"taskId": OWN, "by": self.name}}
        return {"taskId": OWN, "status": "completed", "result": result, **STAMPS}


TOOLS = {"one": "t", "two": "eu_t"}
"""A tool of each upstream behind the route with two."""
ROUTE: Json = {"path": "/mcp", "default": "one", "rules": [{"name": {"prefix": "eu_"}, "upstream": "two"}]}
JSON_ONLY = {"Accept": "application/json"}


async def ask(front: Front, method: str, params: Json, **more: Any) -> Answer:
    return await front.modern(method, params, **{"capabilities": KNOWS, **more})


async def created(front: Front, tool: str = "t", **more: Any) -> str:
    answer = await ask(front, "tools/call", {"name": tool, "arguments": {}}, **more)
    result = answer.result
    assert (result["resultType"], result["status"], result["x"]) == ("task", "working", [1.5]), repr(answer)
    task: str = result["taskId"]
    return task


async def one_each(front: Front, **more: Any) -> list[str]:
    """A task at each of two endpoints, which take turns with all that is asked of them."""
    tasks: set[str] = set()
    async with asyncio.timeout(DEADLINE_S):
        while len(tasks) < 2:
            tasks.add(await created(front, **more))
    assert OWN not in tasks
    return sorted(tasks)


async def minted_by(front: Front, task: str, **more: Any) -> str:
    """Who knows the task, told by all that the extension has."""
    result = (await ask(front, "tasks/get", {"taskId": task}, **more)).result
    assert (result["taskId"], result["resultType"], result["status"]) == (task, "complete", "completed")
    for method, params in (("tasks/update", {"inputResponses": {"k": {}}}), ("tasks/cancel", {})):
        acknowledged = (await ask(front, method, {"taskId": task, **params}, **more)).result
        assert acknowledged["resultType"] == "complete"
    structured = result["result"]["structuredContent"]
    assert structured["taskId"] == OWN  # a tool's own content
    by: str = structured["by"]
    return by


def refused(answer: Answer) -> bool:
    return (answer.status, answer.code) == (200, -32602) and answer.error["message"].startswith(
        "Failed to retrieve task: Task not found"
    )


@asynccontextmanager
async def two() -> AsyncIterator[tuple[dict[str, Tasking], Front]]:
    """Two upstreams behind one route."""
    async with (
        Tasking("one") as one,
        Tasking("two", streams=True) as other,
        running({"one": one, "two": other}, routes=[ROUTE]) as gateway,
    ):
        yield {"one": one, "two": other}, gateway.front()


@asynccontextmanager
async def replicated(**more: Any) -> AsyncIterator[tuple[dict[str, Tasking], Front]]:
    """The same, each request at the other one of two replicas. `more`: members of the upstreams."""
    async with (
        Tasking("one") as one,
        Tasking("two", streams=True) as other,
        fleet({"one": (one, more), "two": (other, more)}, routes=[ROUTE]) as replicas,
    ):
        yield {"one": one, "two": other}, replicas.front()


@pytest.mark.parametrize("more", [{}, {"verifies_headers": True}], ids=["body read", "on its headers alone"])
async def test_a_task_is_asked_for_where_it_was_made_whichever_replica_is_asked(more: Json) -> None:
    async with replicated(**more) as (upstreams, front):
        tasks = {name: await created(front, tool) for name, tool in TOOLS.items()}
        assert len({OWN, *tasks.values()}) == 3
        for name, upstream in upstreams.items():
            for accept in ({}, {}, JSON_ONLY, JSON_ONLY):
                assert await minted_by(front, tasks[name], headers=accept) == name
                assert await created(front, TOOLS[name], headers=accept) == tasks[name]
            asked = [seen for seen in upstream.requests if (seen.method or "").startswith("tasks/")]
            assert len(asked) == 4 * 3
            assert {(seen.params["taskId"], seen.headers.get("Mcp-Name")) for seen in asked} == {(OWN, SENTINEL)}
        altered = tasks["two"][:-1] + ("A" if tasks["two"][-1] != "A" else "Q")
        for strange in (OWN, altered, ""):
            for accept in ({}, JSON_ONLY):
                assert refused(await ask(front, "tasks/get", {"taskId": strange}, headers=accept))
        for upstream in upstreams.values():
            assert len(upstream.calls("tasks/get")) == 4


@pytest.mark.parametrize("verifies", [False, True], ids=["body read", "on its headers alone"])
async def test_a_client_that_names_a_task_in_the_body_alone_is_served_and_the_upstream_gets_the_header(
    verifies: bool,
) -> None:
    """So does FastMCP's client, 4.1."""
    bodies_only, entry = {"Mcp-Name": None}, {"verifies_headers": verifies}
    async with Tasking("one") as one, Tasking("two") as other:
        behind: dict[str, Any] = {"one": (one, entry), "two": (other, entry)}
        routes = [ROUTE, {"path": "/one", "upstream": "one"}]
        async with running(behind, routes=routes) as gateway:
            for path, upstream, tool in (("/one", one, "t"), ("/mcp", other, "eu_t")):
                front = gateway.front(path)
                assert await minted_by(front, await created(front, tool), headers=bodies_only) == upstream.name
                asked = [seen for seen in upstream.requests if (seen.method or "").startswith("tasks/")]
                assert {seen.headers.get("Mcp-Name") for seen in asked} == {SENTINEL}


async def test_an_id_that_header_and_body_do_not_agree_on_leads_nowhere() -> None:
    async with two() as (upstreams, front):
        one, other = await created(front, "t"), await created(front, "eu_t")
        answer = await ask(front, "tasks/get", {"taskId": one}, headers={"Mcp-Name": other})
        assert (answer.status, answer.code) == (400, -32020)
        assert not any(upstream.calls("tasks/get") for upstream in upstreams.values())


async def test_who_does_not_know_tasks_is_told_so_before_an_id_is_looked_at() -> None:
    async with two() as (upstreams, front):
        wanted = {"notifications": {"taskIds": [await created(front)]}}
        for method, params in (("tasks/get", {"taskId": "?"}), ("tasks/cancel", {"taskId": "?"}), (LISTEN, wanted)):
            answer = await ask(front, method, params, capabilities={})
            assert (answer.status, answer.code) == (400, -32021)
            assert answer.error["data"] == {"requiredCapabilities": KNOWS}
        assert not any(upstream.listeners for upstream in upstreams.values())


@pytest.mark.parametrize("accept", [{}, JSON_ONLY], ids=["both kinds accepted", "only JSON accepted"])
async def test_a_task_is_asked_for_at_the_endpoint_that_has_it(accept: Json) -> None:
    async with Tasking("one") as one, Tasking("two") as other:
        entry = {"urls": [one.url, other.url], "balance": "round_robin"}
        async with running({"up": entry}) as gateway:
            front = gateway.front("/up")
            tasks = await one_each(front, headers=accept)
            assert {await minted_by(front, task, headers=accept) for task in tasks} == {"one", "two"}
            for task in tasks * 3:
                assert await minted_by(front, task, headers=accept) == await minted_by(front, task, headers=accept)
            for task in tasks:
                wanted = {"notifications": {"taskIds": [task]}}
                async with front.modern_open(LISTEN, wanted, capabilities=KNOWS) as stream:
                    assert (await stream.message() or {})["params"]["notifications"] == {"taskIds": [task]}
            for upstream in (one, other):
                assert len(upstream.calls(LISTEN)) == 1
            # one that was given out by a single endpoint
            assert (await ask(front, "tasks/get", {"taskId": OWN}, headers=accept)).result["taskId"] == OWN


async def test_where_there_is_one_upstream_and_nobody_to_bind_it_to_an_id_passes_as_it_is() -> None:
    async with Tasking("one") as upstream, running({"up": upstream}) as gateway:
        front = gateway.front("/up")
        assert await created(front) == OWN
        assert await minted_by(front, OWN) == "one"
        unknown = await ask(front, "tasks/get", {"taskId": "?"})
        assert (unknown.code, unknown.error["message"]) == (UNKNOWN.code, UNKNOWN.message)


@pytest.mark.parametrize("accept", [{}, JSON_ONLY], ids=["both kinds accepted", "only JSON accepted"])
async def test_where_the_upstream_cannot_tell_callers_apart_a_task_is_one_callers(accept: Json) -> None:
    async with Tasking("one") as upstream:
        behind: dict[str, Any] = {"up": upstream, "passes": (upstream, {"forward_headers": ["X-Token"]})}
        routes = [f"/{name}" for name in behind]
        clients = {who: {"keys": [digest(key)], "routes": routes} for who, key in (("ci", CI), ("ops", OPS))}
        async with running(behind, clients=clients) as gateway:
            front = gateway.front("/up")
            task = await created(front, headers=bearer(CI) | accept)
            assert task != OWN
            assert await minted_by(front, task, headers=bearer(CI) | accept) == "one"
            for key, known in ((OPS, task), (CI, OWN), (OPS, OWN)):
                for method in ("tasks/get", "tasks/update", "tasks/cancel"):
                    assert refused(await ask(front, method, {"taskId": known}, headers=bearer(key) | accept))
            assert len(upstream.calls("tasks/cancel")) == 1
            own = bearer(CI) | {"X-Token": "of the caller"} | accept
            assert await created(gateway.front("/passes"), headers=own) == OWN


async def test_a_task_whose_id_cannot_come_back_is_an_error_and_no_success() -> None:
    async with two() as (upstreams, front):
        for own in ("ab" * 2000, "\ud800"):
            upstreams["one"].on["tools/call"] = {"resultType": "task", "taskId": own, "status": "working", **STAMPS}
            for accept in ({}, JSON_ONLY):
                answer = await ask(front, "tools/call", {"name": "t", "arguments": {}}, headers=accept)
                assert (answer.status, answer.code) == (502, -32603)
                assert "id of a task" in answer.error["message"]


LISTEN = "subscriptions/listen"


@pytest.mark.parametrize("name", TOOLS)
async def test_a_listener_is_told_of_its_tasks_by_the_server_that_has_them(name: str) -> None:
    async with two() as (upstreams, front):
        task, more = await created(front, TOOLS[name]), {"x": 1, "result": {"content": []}, **STAMPS}
        wanted = {"notifications": {"taskIds": [task, "unknown"]}}
        async with front.modern_open(LISTEN, wanted, ident="größe", capabilities=KNOWS) as stream:
            agreed = await stream.message() or {}
            assert agreed["params"]["notifications"] == {"taskIds": [task]}
            upstream = upstreams[name]
            for own in ("somebody else's", OWN):
                await upstream.push("notifications/tasks", {"taskId": own, "status": "completed", **more})
            [asked] = upstream.calls(LISTEN)
            assert asked.params["notifications"] == {"taskIds": [OWN]}
            told = await stream.message() or {}
            tag = {"io.modelcontextprotocol/subscriptionId": "größe"}
            assert told["method"] == "notifications/tasks"
            assert told["params"] == {"taskId": task, "status": "completed", **more, "_meta": tag}


CHILD = """
import json, os, sys

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, params, result = message["method"], message["params"], {"resultType": "complete"}
    task = {"taskId": "t", "status": "completed", "createdAt": "", "lastUpdatedAt": "", "ttlMs": None}
    task["pid"] = os.getpid()
    if method == "server/discover":
        result |= {"supportedVersions": ["2026-07-28"], "capabilities": {}, "ttlMs": 0, "cacheScope": "private"}
    elif method == "tools/call":
        result = task | {"resultType": "task"}
    elif method == "tasks/get":
        result |= task
    said = [{"id": message["id"], "result": result}]
    if method == "subscriptions/listen":
        tag = {"_meta": {"io.modelcontextprotocol/subscriptionId": message["id"]}}
        agreed = {"notifications": params["notifications"]}
        said = [
            {"method": "notifications/subscriptions/acknowledged", "params": agreed | tag},
            {"method": "notifications/tasks", "params": task | tag},
        ]
    for one in said:
        print(json.dumps({"jsonrpc": "2.0"} | one), flush=True)
"""


async def test_a_task_of_a_command_is_asked_for_at_the_replica_whose_process_has_it() -> None:
    entry = {"command": sys.executable, "args": ["-c", CHILD], "era": "modern"}
    async with fleet({"up": entry}) as replicas:
        front = replicas.front("/up")
        made = [(await ask(front, "tools/call", {"name": "t", "arguments": {}})).result for _ in range(2)]
        assert len({one["pid"] for one in made}) == len({one["taskId"] for one in made}) == 2
        for one in made:
            for _ in range(2):
                result = (await ask(front, "tasks/get", {"taskId": one["taskId"]})).result
                assert (result["taskId"], result["pid"]) == (one["taskId"], one["pid"])
                wanted = {"notifications": {"taskIds": [one["taskId"]]}}
                async with front.modern_open(LISTEN, wanted, ident="l", capabilities=KNOWS) as stream:
                    assert (await stream.message() or {})["params"]["notifications"] == wanted["notifications"]
                    told = (await stream.message() or {})["params"]
                    assert (told["taskId"], told["pid"]) == (one["taskId"], one["pid"])


# clients with sessions, and servers with the tasks of 2025-11-25

DECLARED: Json = {"tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}}
AS_TASK: Json = {"arguments": {}, "task": {"ttl": 1000}}


def legacy_tasking() -> LegacyUpstream:
    upstream = LegacyUpstream(capabilities=CAPABILITIES | DECLARED)
    task = {"taskId": OWN, "status": "working"}

    async def about(call: Call) -> Json | Err:
        return task | {"port": upstream.url} if call.seen.params["taskId"] == OWN else UNKNOWN

    async def result(call: Call) -> Json:
        related = {RELATED: {"taskId": OWN}}
        answer = await call.ask(ELICIT, FORM | {"_meta": related})
        return {"content": [], "structuredContent": answer["result"], "_meta": related | {"v/x": 1}}

    upstream.on |= {"tools/call": {"task": task}, "tasks/get": about, "tasks/cancel": about, "tasks/result": result}
    upstream.on["tasks/list"] = {"tasks": [task]}
    return upstream


async def as_task(session: Session, tool: str) -> str:
    task: str = (await session.request("tools/call", {"name": tool, **AS_TASK})).result["task"]["taskId"]
    return task


async def test_a_session_asks_for_a_task_of_2025_11_25_where_it_was_made() -> None:
    async with (
        legacy_tasking() as one,
        legacy_tasking() as other,
        fleet({"one": one, "two": other}, routes=[ROUTE]) as replicas,
    ):
        session = await replicas.front().initialize(capabilities={"elicitation": {}})
        for upstream, tool in ((one, "t"), (other, "eu_t")):
            task = await as_task(session, tool)
            assert task != OWN
            for method in ("tasks/get", "tasks/cancel"):
                for _ in replicas.replicas:
                    result = (await session.request(method, {"taskId": task})).result
                    assert (result["taskId"], result["port"]) == (task, upstream.url)
            async with session.open("tasks/result", {"taskId": task}, ident="r") as stream:
                asked = await next_ask(stream)
                assert asked["params"]["_meta"] == {RELATED: {"taskId": task}}
                heard = {"action": "accept", "content": {}, "_meta": asked["params"]["_meta"]}
                await session.reply(asked["id"], {"result": heard})
                [final] = await stream.rest()
            assert final["result"]["_meta"] == {RELATED: {"taskId": task}, "v/x": 1}
            assert final["result"]["structuredContent"]["_meta"] == {RELATED: {"taskId": OWN}}
        listed = (await session.request("tasks/list")).result["tasks"]
        assert [one["taskId"] for one in listed] == [await as_task(session, "t")]
        unknown = await session.request("tasks/get", {"taskId": OWN})
        assert (unknown.status, unknown.code) == (200, -32602)


async def test_a_task_of_2025_11_25_is_one_callers_too() -> None:
    async with legacy_tasking() as upstream:
        clients = {who: {"keys": [digest(key)], "routes": ["/up"]} for who, key in (("ci", CI), ("ops", OPS))}
        async with running({"up": upstream}, clients=clients) as gateway:
            ci, ops = [await gateway.front("/up").initialize(headers=bearer(key)) for key in (CI, OPS)]
            task = await as_task(ci, "t")
            assert (await ci.request("tasks/get", {"taskId": task})).result["taskId"] == task
            for session, known in ((ops, task), (ops, OWN), (ci, OWN)):
                assert (await session.request("tasks/get", {"taskId": known})).code == -32602
            assert len(upstream.calls("tasks/get")) == 1


async def test_a_route_with_servers_of_both_eras_knows_a_task_of_the_modern_one_alone() -> None:
    async with (
        LegacyUpstream() as old,
        Tasking("two") as new,
        running({"one": old, "two": new}, routes=[ROUTE]) as gateway,
    ):
        front = gateway.front()
        assert await minted_by(front, await created(front, "eu_t")) == "two"
        assert refused(await ask(front, "tasks/get", {"taskId": OWN}))
    async with LegacyUpstream() as old, running({"up": old}) as gateway:
        answer = await ask(gateway.front("/up"), "tasks/get", {"taskId": OWN})
        assert (answer.status, answer.code) == (404, -32601)


async def test_a_task_that_a_client_with_a_session_could_not_ask_for_is_an_error_and_no_empty_success() -> None:
    async with Tasking("one") as upstream, running({"up": upstream}) as gateway:
        session = await gateway.front("/up").initialize(capabilities=KNOWS)
        assert KNOWS["extensions"].keys().isdisjoint(session.result["capabilities"].get("extensions", {}))
        answer = await session.request("tools/call", {"name": "t", "arguments": {}})
        assert answer.code == -32603
        assert "resultType 'task'" in answer.error["message"]
        [call] = upstream.calls("tools/call")
        declared = call.meta["io.modelcontextprotocol/clientCapabilities"]
        assert KNOWS["extensions"].keys().isdisjoint(declared.get("extensions", {}))
