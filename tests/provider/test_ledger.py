"""What hosts with Apps were given by the MCP plane is known again in what they send to an LLM API, whatever an adapter
has made of it: plain text under no name of its own.

The interface here is no page of HTML, so that nothing but its digest can tell it.
"""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from tests.apps.test_paths import APPS, PATHS, Peer
from tests.cache.conftest import MAX_BYTES
from tests.fleet import KEYS
from tests.gateway.test_keys import CI, OPS, bearer, digest
from tests.gateway_process import GatewayProcess
from tests.http_wire import DEADLINE_S
from tests.peers import LegacyUpstream, ModernUpstream
from tests.provider.api import PATHS as API_PATHS
from tests.provider.api import Api, ask, before, plain_body, raw, result_body
from tests.raw_front import Overrides
from tests.scrape import settled
from tests.scripted import Json, Seen
from tests.valkey import started

HTML = "text/html;profile=mcp-app"
PAGE = "PLANTED interface, line {}\n"
BODY = "".join(PAGE.format(n) for n in range(60))
SHORT = PAGE.format(0)
TEXT = {"type": "text", "text": "21 degrees"}
HIDDEN = {
    "name": "poll",
    "description": "For the interface alone.",
    "inputSchema": {"type": "object", "properties": {"since": {"type": "string"}}},
    "_meta": {"ui": {"visibility": ["app"]}},
}
SHOW = {"name": "show", "inputSchema": {"type": "object"}, "_meta": {"ui": {"resourceUri": "ui://a/view"}}}
PLAIN = {"name": "plain", "inputSchema": {"type": "object"}}
on_every_path = pytest.mark.parametrize("path", PATHS)


def view(text: str = BODY, **more: Any) -> Json:
    return {"uri": "ui://a/view", "mimeType": HTML, "text": text, **more}


def answers(text: str = BODY) -> dict[str, Json]:
    return {
        "tools/list": {"tools": [SHOW, HIDDEN, PLAIN]},
        "tools/call": {"content": [TEXT, {"type": "resource", "resource": view(text)}]},
        "resources/read": {"contents": [view(text)]},
        "prompts/get": {"messages": [{"role": "user", "content": {"type": "resource", "resource": view(text)}}]},
    }


GIVEN: dict[str, Json] = {
    "tools/call": {"name": "show", "arguments": {}},
    "resources/read": {"uri": "ui://a/view"},
    "prompts/get": {"name": "hello"},
}


class Stage:
    """A gateway before an MCP server at `/up` and one API of each dialect."""

    def __init__(self, gateway: GatewayProcess, upstream: Peer, front: str, apis: dict[str, Api]) -> None:
        self.gateway = gateway
        self.upstream = upstream
        self.front = front
        self.apis = apis

    async def mcp(
        self, method: str, params: Json | None = None, *, capabilities: Json = APPS, headers: Overrides | None = None
    ) -> Json:
        """What a host gets that shows Apps, unless other `capabilities` are said."""
        front = self.gateway.front("/up")
        params = GIVEN.get(method, {}) if params is None else params
        if self.front == "modern":
            return (await front.modern(method, params, capabilities=capabilities, headers=headers)).final
        session = await front.initialize(capabilities=capabilities, headers=headers)
        return (await session.request(method, params)).final

    async def llm(self, body: Json, dialect: str = "anthropic", headers: Overrides | None = None) -> Seen:
        """What the API gets for a body."""
        answer = await ask(self.gateway, f"/llm/{dialect}{API_PATHS[dialect]}", body, headers)
        assert answer.status == 200, repr(answer)
        return self.apis[dialect].last


@asynccontextmanager
async def staged(path: str = "spliced", *dialects: str, **settings: Any) -> AsyncIterator[Stage]:
    front, era, more = PATHS[path]
    upstream: Peer = ModernUpstream() if era == "modern" else LegacyUpstream()
    upstream.on |= answers()
    apis = {dialect: Api(dialect) for dialect in dialects or ("anthropic",)}
    async with AsyncExitStack() as stack:
        for peer in (upstream, *apis.values()):
            await stack.enter_async_context(peer)
        entry = {"url": upstream.url, **more, **settings.pop("upstream", {})}
        gateway = await stack.enter_async_context(before(apis, {"up": entry}, **settings))
        yield Stage(gateway, upstream, front, apis)


@on_every_path
async def test_an_interface_that_was_given_is_known_again_as_plain_text(path: str) -> None:
    async with staged(path) as stage:
        unknown = raw(result_body("anthropic", BODY))
        assert (await stage.llm(result_body("anthropic", BODY))).body == unknown
        for number, method in enumerate(GIVEN):
            text = BODY.replace("interface", f"interface {number}")
            stage.upstream.on |= answers(text)
            given = await stage.mcp(method)
            assert "PLANTED" in json.dumps(given)
            seen = await stage.llm(result_body("anthropic", text))
            assert b"PLANTED" not in seen.body
        assert (await stage.llm(plain_body("anthropic", BODY))).body == raw(plain_body("anthropic", BODY))


@on_every_path
async def test_a_tool_for_interfaces_alone_is_known_by_its_definition(path: str) -> None:
    async with staged(path) as stage:
        tools = [
            {"name": t["name"], "description": t.get("description", ""), "input_schema": t["inputSchema"]}
            for t in (SHOW, HIDDEN, PLAIN)
        ]
        body = {**plain_body("anthropic"), "tools": tools}
        assert (await stage.llm(body)).body == raw(body)
        await stage.mcp("tools/list")
        told = json.loads((await stage.llm(body)).body)
        assert [tool["name"] for tool in told["tools"]] == ["show", "plain"]
        # what its calls have answered goes as well, and the call keeps its answer
        seen = await stage.llm(result_body("anthropic", "PLANTED figures", tool="poll"))
        assert b"PLANTED" not in seen.body
        assert b"tool_result" in seen.body


async def test_an_interface_counts_in_every_dialect() -> None:
    async with staged("spliced", *API_PATHS) as stage:
        await stage.mcp("resources/read")
        for dialect in API_PATHS:
            seen = await stage.llm(result_body(dialect, BODY), dialect)
            assert b"PLANTED" not in seen.body, dialect


async def test_an_interface_in_base64_is_known_as_what_it_stands_for_and_as_it_came() -> None:
    async with staged() as stage:
        blob = base64.b64encode(BODY.encode()).decode()
        stage.upstream.on["resources/read"] = {"contents": [{"uri": "ui://a/v", "mimeType": HTML, "blob": blob}]}
        await stage.mcp("resources/read")
        for text in (BODY, blob):
            assert len((await stage.llm(result_body("anthropic", text))).body) < len(text)


async def test_a_short_interface_is_not_known_by_its_text() -> None:
    async with staged() as stage:
        stage.upstream.on |= answers(SHORT)
        await stage.mcp("resources/read")
        body = result_body("anthropic", SHORT)
        assert (await stage.llm(body)).body == raw(body)


async def test_the_same_text_counts_in_results_of_that_servers_tools_alone() -> None:
    async with staged() as stage:
        await stage.mcp("tools/list")
        await stage.mcp("resources/read")
        for tool in ("show", "plain", "mcp__up__show"):
            assert b"PLANTED" not in (await stage.llm(result_body("anthropic", BODY, tool=tool))).body
        body = result_body("anthropic", BODY, tool="read_file")
        assert (await stage.llm(body)).body == raw(body)


async def test_hosts_that_show_no_apps_leave_nothing_behind() -> None:
    async with staged(admin="127.0.0.1:0") as stage:
        for method in ("tools/list", "tools/call", "prompts/get"):
            assert "PLANTED" not in json.dumps(await stage.mcp(method, capabilities={}))
        body = result_body("anthropic", BODY)
        assert (await stage.llm(body)).body == raw(body)
        await settled(stage.gateway, "mcp_front_door_ledger_marks", 0)


CLIENTS = {
    name: {"keys": [digest(key)], "routes": ["/up", "/llm/anthropic"]} for name, key in (("ci", CI), ("ops", OPS))
}


async def test_callers_know_of_no_interface_that_another_was_given() -> None:
    async with staged(clients=CLIENTS) as stage:
        await stage.mcp("resources/read", headers=bearer(CI))
        body = result_body("anthropic", BODY)
        assert b"PLANTED" not in (await stage.llm(body, headers={"X-Front-Door-Key": CI})).body
        assert (await stage.llm(body, headers={"X-Front-Door-Key": OPS})).body == raw(body)


async def test_a_route_without_keys_can_name_the_client_whose_apps_count() -> None:
    async with Api("anthropic") as other:
        providers = {name: {"dialect": "anthropic", "url": other.url} for name in ("anthropic", "named")}
        named = {"path": "/llm/named", "provider": "named", "anonymous": True, "principal": "ci"}
        async with staged(clients=CLIENTS, providers=providers, more_routes=[named]) as stage:
            await stage.mcp("resources/read", headers=bearer(CI))
            answer = await ask(stage.gateway, "/llm/named/v1/messages", result_body("anthropic", BODY))
            assert answer.status == 200
        assert b"PLANTED" not in other.last.body


@pytest.mark.parametrize("path", ["spliced", "sessions over modern"])
async def test_an_answer_out_of_the_cache_is_remembered_for_whom_it_was_given_to(path: str) -> None:
    cached = {"ttlMs": 600_000, "cacheScope": "public"}
    upstream = {"cache": {"trust_public": True}}
    async with staged(path, clients=CLIENTS, cache={"max_bytes": MAX_BYTES}, upstream=upstream) as stage:
        stage.upstream.on["resources/read"] = {**answers()["resources/read"], **cached}
        body = result_body("anthropic", BODY)
        for key in (CI, OPS, OPS):
            await stage.mcp("resources/read", headers=bearer(key))
        assert len(stage.upstream.calls("resources/read")) == 1
        assert b"PLANTED" not in (await stage.llm(body, headers={"X-Front-Door-Key": OPS})).body


# several replicas


@asynccontextmanager
async def two(server: Any) -> AsyncIterator[list[Stage]]:
    async with AsyncExitStack() as stack:
        upstream, api = ModernUpstream(), Api("anthropic")
        upstream.on |= answers()
        for peer in (upstream, api):
            await stack.enter_async_context(peer)
        given = {"keys": KEYS, "store": {"url": server.url, "timeout_ms": 1000}, "admin": "127.0.0.1:0"}
        starts = (
            stack.enter_async_context(before({"anthropic": api}, {"up": {"url": upstream.url}}, **given))
            for _ in range(2)
        )
        gateways = [await start for start in starts]
        yield [Stage(gateway, upstream, "modern", {"anthropic": api}) for gateway in gateways]


async def told(stage: Stage) -> None:
    """Until a replica knows of the interface, which another was told to remember."""
    body = result_body("anthropic", BODY)
    async with asyncio.timeout(DEADLINE_S):
        while b"PLANTED" in (await stage.llm(body)).body:
            pass


async def test_replicas_know_of_what_each_other_have_given_while_the_store_is_there() -> None:
    with started() as server:
        async with two(server) as (one, other):
            await one.mcp("resources/read")
            await told(other)
            server.kill()
            for stage in (one, other):
                assert b"PLANTED" not in (await stage.llm(result_body("anthropic", BODY))).body
            more = BODY.replace("interface", "second")
            one.upstream.on |= answers(more)
            await one.mcp("resources/read")
            assert b"PLANTED" not in (await one.llm(result_body("anthropic", more))).body
            server.start()
            async with asyncio.timeout(DEADLINE_S):
                while b"PLANTED" in (await other.llm(result_body("anthropic", more))).body:
                    await asyncio.sleep(0.02)  # the store is looked for once a second


async def test_a_store_that_is_silent_holds_no_request_up() -> None:
    with started() as server:
        async with two(server) as (one, _):
            await one.mcp("resources/read")
            server.pause()
            async with asyncio.timeout(DEADLINE_S):
                assert b"PLANTED" not in (await one.llm(result_body("anthropic", BODY))).body
            server.resume()
