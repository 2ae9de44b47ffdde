"""Every path that an answer takes through the gateway: hosts without Apps get nothing of an interface, hosts with them
get it all. Fronts and upstreams of both eras, JSON and event streams, spliced (the body read or not) and bridged.

The servers here are scripted, to say things at places where official ones do not; real ones are in `tests/apps/real`.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from policies.mcp import APPS_EXTENSION
from tests.gateway_process import GatewayProcess, running
from tests.peers import LegacyUpstream, ModernUpstream
from tests.raw_front import Answer, Session
from tests.scripted import Call, Err, Json

HTML = "text/html;profile=mcp-app"
APPS: Json = {"extensions": {APPS_EXTENSION: {"mimeTypes": [HTML]}}}
UI: Json = {"ui": {"resourceUri": "ui://a/SECRET"}, "ui/resourceUri": "ui://a/SECRET"}
VIEW: Json = {
    "uri": "ui://a/SECRET",
    "mimeType": HTML,
    "text": "<html>SECRET \u00e9</html>",
    "_meta": {"ui": {"csp": {}}},
}
BLOCK: Json = {"type": "resource", "resource": VIEW}
TEXT: Json = {"type": "text", "text": "shown ui://a"}


def tool(name: str, **meta: Any) -> Json:
    return {"name": name, "inputSchema": {"type": "object"}, **({"_meta": meta} if meta else {})}


HIDDEN = tool("poll-SECRET", ui={"visibility": ["app"]})
ANSWERS: dict[str, Json] = {
    "tools/list": {"tools": [tool("show", **UI, vendor=2**53 + 1), HIDDEN, tool("plain")], "nextCursor": ""},
    "tools/call": {"content": [TEXT, BLOCK], "structuredContent": {"n": 2**53 + 1}, "_meta": {**UI, "viewUUID": "u"}},
    "resources/list": {
        "resources": [{"uri": "ui://a/SECRET", "name": "v"}, {"uri": "note://one", "name": "n", "_meta": UI}]
    },
    "resources/templates/list": {"resourceTemplates": [{"uriTemplate": "ui://SECRET/{x}", "name": "v"}]},
    "resources/read": {"contents": [VIEW, {"uri": "note://one", "text": "t", "_meta": UI}]},
    "prompts/get": {
        "messages": [{"role": "user", "content": BLOCK}, {"role": "user", "content": {**TEXT, "_meta": UI}}]
    },
    "completion/complete": {"completion": {"values": ["ui://a/SECRET", "note://one"]}},
}
ASKED: dict[str, Json] = {
    "tools/list": {},
    "tools/call": {"name": "show", "arguments": {}},
    "resources/list": {},
    "resources/templates/list": {},
    "resources/read": {"uri": "note://one"},
    "prompts/get": {"name": "hello"},
    "completion/complete": {"ref": {"type": "ref/prompt", "name": "hello"}, "argument": {"name": "a", "value": ""}},
}
PATHS = {
    # name: front, upstream, settings of the upstream
    "spliced": ("modern", "modern", {}),
    "spliced unread": ("modern", "modern", {"verifies_headers": True}),
    "modern over sessions": ("modern", "legacy", {}),
    "sessions over modern": ("legacy", "modern", {}),
    "sessions": ("legacy", "legacy", {}),
}
on_every_path = pytest.mark.parametrize("path", PATHS)
Peer = LegacyUpstream | ModernUpstream


class Stage:
    """A gateway before one scripted server, and hosts of one era."""

    def __init__(self, gateway: GatewayProcess, upstream: Peer, front: str) -> None:
        self.gateway = gateway
        self.upstream = upstream
        self.front = front
        self._sessions: dict[bool, Session] = {}

    async def ask(self, method: str, params: Json | None = None, *, apps: bool = False) -> Answer:
        params = ASKED.get(method, {}) if params is None else params
        if self.front == "modern":
            front = self.gateway.front("/up")
            return await front.modern(method, params, capabilities=APPS if apps else {}, meta={"progressToken": 1})
        session = await self.session(apps)
        return await session.request(method, {**params, "_meta": {"progressToken": 1}})

    async def session(self, apps: bool = False) -> Session:
        if apps not in self._sessions:
            opened = await self.gateway.front("/up").initialize(capabilities=APPS if apps else {})
            self._sessions[apps] = opened
        return self._sessions[apps]


@asynccontextmanager
async def staged(path: str, **settings: Any) -> AsyncIterator[Stage]:
    front, era, more = PATHS[path]
    upstream: Peer = ModernUpstream() if era == "modern" else LegacyUpstream()
    upstream.on |= ANSWERS
    upstreams = {"up": {"url": upstream.url, **more}}
    async with upstream:
        upstreams["up"]["url"] = upstream.url
        async with running({}, upstreams=upstreams, routes=[{"path": "/up", "upstream": "up"}], **settings) as gateway:
            yield Stage(gateway, upstream, front)


def streamed(result: Json) -> Any:
    """The result on an event stream, after progress and a log message that speak of an interface."""

    async def answer(call: Call) -> Json:
        token = call.seen.meta.get("progressToken")
        await call.notify("notifications/progress", {"progressToken": token, "progress": 1, "_meta": {**UI, "k": 1}})
        await call.notify("notifications/resources/updated", {"uri": "ui://a/SECRET"})
        return {"resultType": "complete", **result}

    return answer


@on_every_path
@pytest.mark.parametrize("framing", ["json", "sse"])
async def test_nothing_of_an_interface_reaches_a_host_without_apps(path: str, framing: str) -> None:
    async with staged(path) as stage:
        if framing == "sse":
            stage.upstream.on |= {
                method: streamed(result) for method, result in ANSWERS.items() if method != "tools/list"
            }
        got = {method: await stage.ask(method) for method in ASKED}
        for method, answer in got.items():
            assert "result" in answer.final, (method, answer)
            assert b"SECRET" not in answer.body, method
            assert b"resourceUri" not in answer.body, method
        assert [one["name"] for one in got["tools/list"].result["tools"]] == ["show", "plain"]
        assert got["tools/list"].result["tools"][0]["_meta"] == {"vendor": 2**53 + 1}
        assert got["tools/call"].result["content"] == [TEXT]
        assert got["tools/call"].result["structuredContent"] == {"n": 2**53 + 1}
        assert got["tools/call"].result["_meta"]["viewUUID"] == "u"
        assert got["resources/list"].result["resources"] == [{"uri": "note://one", "name": "n"}]
        assert got["resources/read"].result["contents"] == [{"uri": "note://one", "text": "t"}]
        assert got["completion/complete"].result["completion"]["values"] == ["note://one"]
        if framing == "sse":
            notes = [note["params"].get("_meta") for note in got["tools/call"].notes]
            assert {"k": 1} in notes


@on_every_path
@pytest.mark.parametrize("framing", ["json", "sse"])
async def test_all_of_it_reaches_a_host_with_apps(path: str, framing: str) -> None:
    async with staged(path) as stage:
        if framing == "sse":
            stage.upstream.on |= {
                method: streamed(result) for method, result in ANSWERS.items() if method != "tools/list"
            }
        for method, result in ANSWERS.items():
            got = (await stage.ask(method, apps=True)).result
            for member, value in result.items():
                if member not in ("_meta", "nextCursor"):
                    assert got[member] == value, (method, member)
            assert result.get("_meta", {}).items() <= got.get("_meta", {}).items()


@on_every_path
async def test_a_hidden_tool_is_answered_like_one_that_is_not_there_and_not_called(path: str) -> None:
    async with staged(path) as stage:
        hidden, absent = [await stage.ask("tools/call", {"name": name}) for name in ("poll-SECRET", "absentXXXX")]
        assert hidden.error == {"code": -32602, "message": "Unknown tool: poll-SECRET"}
        assert absent.error == {"code": -32602, "message": "Unknown tool: absentXXXX"}
        assert hidden.status == absent.status
        assert len(hidden.body) == len(absent.body) + 1
        assert stage.upstream.calls("tools/call") == []
        assert (await stage.ask("tools/call", {"name": "plain"})).result["content"] == [TEXT]
        assert (await stage.ask("tools/call", {"name": "poll-SECRET"}, apps=True)).result["content"] == [TEXT, BLOCK]
        assert [seen.params["name"] for seen in stage.upstream.calls("tools/call")] == ["plain", "poll-SECRET"]


@on_every_path
async def test_where_nothing_is_hidden_the_server_says_what_it_does_not_have_and_is_asked_once(path: str) -> None:
    async with staged(path) as stage:
        stage.upstream.on["tools/list"] = {"tools": [tool("show", **UI)]}
        for name in ("show", "unlisted", "show", "unlisted"):
            assert (await stage.ask("tools/call", {"name": name})).result["content"] == [TEXT]
        assert len(stage.upstream.calls("tools/list")) == 1


@on_every_path
async def test_calls_that_come_at_once_share_one_look_at_the_list(path: str) -> None:
    async with staged(path) as stage:
        if stage.front == "legacy":
            await stage.session()
        waiting = asyncio.Event()

        async def slowly(call: Call) -> Json:
            await waiting.wait()
            return ANSWERS["tools/list"]

        stage.upstream.on["tools/list"] = slowly
        names = ["plain", "show", "poll-SECRET", "plain"]
        calls = [asyncio.create_task(stage.ask("tools/call", {"name": name})) for name in names]
        await stage.upstream.seen("tools/list")
        waiting.set()
        assert ["result" in (await call).final for call in calls] == [True, True, False, True]
        assert len(stage.upstream.calls("tools/list")) == 1


@on_every_path
async def test_a_server_that_does_not_list_its_tools_is_called_all_the_same(path: str) -> None:
    async with staged(path) as stage:
        del stage.upstream.on["tools/list"]
        stage.upstream.on["tools/list"] = stage.upstream.unknown
        assert (await stage.ask("tools/call")).result["content"] == [TEXT]


@on_every_path
@pytest.mark.parametrize("first", ["shown", "hidden"])
async def test_a_name_that_is_listed_twice_can_be_called_if_it_is_shown_once(path: str, first: str) -> None:
    twice = [tool("twice"), {**HIDDEN, "name": "twice"}]
    async with staged(path) as stage:
        stage.upstream.on["tools/list"] = {"tools": [*(twice if first == "shown" else reversed(twice)), HIDDEN]}
        assert [one["name"] for one in (await stage.ask("tools/list")).result["tools"]] == ["twice"]
        assert (await stage.ask("tools/call", {"name": "twice"})).result["content"] == [TEXT]


@on_every_path
async def test_a_tool_that_is_new_is_found_among_hidden_ones(path: str) -> None:
    async with staged(path) as stage:
        assert (await stage.ask("tools/call", {"name": "new"})).code == -32602
        stage.upstream.on["tools/list"] = {"tools": [HIDDEN, tool("new")]}
        assert (await stage.ask("tools/call", {"name": "new"})).result["content"] == [TEXT]
        listed = len(stage.upstream.calls("tools/list"))
        assert (await stage.ask("tools/call", {"name": "new"})).result["content"] == [TEXT]
        assert len(stage.upstream.calls("tools/list")) == listed


@on_every_path
async def test_what_a_host_is_told_of_its_tools_holds_from_then_on(path: str) -> None:
    async with staged(path) as stage:
        for tools, allowed in (
            ([tool("plain"), HIDDEN], True),
            ([{**HIDDEN, "name": "plain"}], False),
            ([tool("plain")], True),
            ([{**HIDDEN, "name": "plain"}, tool("new")], False),
        ):
            stage.upstream.on["tools/list"] = {"tools": tools}
            await stage.ask("tools/list")
            answer = await stage.ask("tools/call", {"name": "plain"})
            assert ("result" in answer.final) is allowed, tools


@on_every_path
async def test_so_does_a_page_of_them(path: str) -> None:
    last = [tool("other"), HIDDEN]

    async def pages(call: Call) -> Json:
        return {"tools": last} if call.seen.params.get("cursor") else {"tools": [tool("plain")], "nextCursor": "2"}

    async with staged(path) as stage:
        stage.upstream.on["tools/list"] = pages
        for name in ("plain", "other"):
            assert (await stage.ask("tools/call", {"name": name})).result["content"] == [TEXT]
        last[:] = [{**HIDDEN, "name": "other"}]
        assert (await stage.ask("tools/list", {"cursor": "2"})).result["tools"] == []
        assert (await stage.ask("tools/call", {"name": "other"})).code == -32602
        assert (await stage.ask("tools/call", {"name": "plain"})).result["content"] == [TEXT]


@on_every_path
async def test_a_list_that_could_not_be_had_tells_nothing(path: str) -> None:
    async with staged(path) as stage:
        stage.upstream.on["tools/list"] = Err(-32603, "not now")
        assert (await stage.ask("tools/list")).code == -32603
        stage.upstream.on["tools/list"] = ANSWERS["tools/list"]
        assert (await stage.ask("tools/call", {"name": "poll-SECRET"})).code == -32602


async def test_a_session_that_has_been_given_its_list_is_not_asked_for_it_again() -> None:
    async with staged("sessions") as stage:
        await stage.ask("tools/list")
        assert (await stage.ask("tools/call", {"name": "poll-SECRET"})).code == -32602
        assert (await stage.ask("tools/call", {"name": "plain"})).result["content"] == [TEXT]
        assert len(stage.upstream.calls("tools/list")) == 1


@on_every_path
async def test_an_interface_is_not_found_by_a_host_without_apps_and_read_whole_by_one_with_them(path: str) -> None:
    async with staged(path) as stage:
        stage.upstream.on["resources/read"] = {"contents": [VIEW], "_meta": {"ui": {"k": 1}, "viewUUID": "u"}}
        refused = await stage.ask("resources/read", {"uri": "Ui://a/SECRET"})
        code = -32602 if stage.front == "modern" else -32002
        assert refused.error == {"code": code, "message": "Resource not found", "data": {"uri": "Ui://a/SECRET"}}
        assert stage.upstream.calls("resources/read") == []
        completed = await stage.ask(
            "completion/complete",
            {"ref": {"type": "ref/resource", "uri": "ui://{x}"}, "argument": {"name": "x", "value": ""}},
        )
        assert completed.code == -32602
        assert stage.upstream.calls("completion/complete") == []
        whole = (await stage.ask("resources/read", {"uri": "ui://a/SECRET"}, apps=True)).result
        assert whole["contents"] == [VIEW]
        assert whole["_meta"].items() >= {"ui": {"k": 1}, "viewUUID": "u"}.items()


@on_every_path
async def test_what_turns_out_to_be_an_interface_is_not_found_either(path: str) -> None:
    async with staged(path) as stage:
        stage.upstream.on["resources/read"] = {"contents": [{**VIEW, "uri": "note://one"}]}
        answer = await stage.ask("resources/read")
        assert answer.code == (-32602 if stage.front == "modern" else -32002)
        assert b"SECRET" not in answer.body


@on_every_path
async def test_an_interface_over_its_bound_is_an_error_and_never_cut_off(path: str) -> None:
    async with staged(path, limits={"max_app_bytes": 4096}) as stage:
        stage.upstream.on["resources/read"] = {"contents": [{**VIEW, "text": "x" * 5000}]}
        answer = await stage.ask("resources/read", {"uri": "ui://a"}, apps=True)
        assert answer.code == -32603
        assert "limits.max_app_bytes" in answer.error["message"]
        stage.upstream.on["resources/read"] = {"contents": [{**VIEW, "uri": "note://one", "text": "x" * 5000}]}
        assert len((await stage.ask("resources/read", apps=True)).result["contents"][0]["text"]) == 5000


@pytest.mark.parametrize("path", ["sessions", "sessions over modern"])
async def test_a_session_cannot_subscribe_to_an_interface(path: str) -> None:
    async with staged(path) as stage:
        refused = await stage.ask("resources/subscribe", {"uri": "ui://a"})
        assert refused.error == {"code": -32002, "message": "Resource not found", "data": {"uri": "ui://a"}}
        assert stage.upstream.calls("resources/subscribe") == []


@pytest.mark.parametrize("path", ["spliced", "modern over sessions"])
async def test_a_listener_hears_nothing_of_interfaces(path: str) -> None:
    async with staged(path) as stage:
        if isinstance(stage.upstream, ModernUpstream):
            stage.upstream.capabilities = {"resources": {"subscribe": True}}
        wanted = {"notifications": {"resourceSubscriptions": ["ui://a/SECRET", "note://one"]}}
        async with stage.gateway.front("/up").modern_open("subscriptions/listen", wanted) as stream:
            acknowledged = await stream.message()
            assert acknowledged is not None
            assert "SECRET" not in json.dumps(acknowledged)
        for seen in stage.upstream.calls("subscriptions/listen") + stage.upstream.calls("resources/subscribe"):
            assert "SECRET" not in json.dumps(seen.params)


@pytest.mark.parametrize("path", PATHS)
async def test_a_question_shows_no_interface(path: str) -> None:
    params = {"messages": [{"role": "user", "content": [BLOCK, TEXT]}], "maxTokens": 1, "_meta": UI}

    async def asking(call: Call) -> Json | None:
        if isinstance(call.upstream, LegacyUpstream):
            await call.event({"jsonrpc": "2.0", "id": "q", "method": "sampling/createMessage", "params": params})
            await call.gone()
            return None
        return {
            "resultType": "input_required",
            "inputRequests": {"q": {"method": "sampling/createMessage", "params": params}},
            "requestState": "s",
        }

    async with staged(path) as stage:
        stage.upstream.on["tools/call"] = asking
        shown: Json | None
        if stage.front == "modern":
            front = stage.gateway.front("/up")
            asked = await front.modern("tools/call", ASKED["tools/call"], capabilities={"sampling": {}})
            assert b"SECRET" not in asked.body
            [entry] = asked.result["inputRequests"].values()
            shown = entry["params"]
        else:
            session = await stage.gateway.front("/up").initialize(capabilities={"sampling": {}})
            message = {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": ASKED["tools/call"]}
            every = session.front.posting(session.headers)
            async with session.front.open("POST", every, json.dumps(message).encode()) as stream:
                question = await stream.message()
                assert question is not None
                shown = question["params"]
        assert shown is not None
        assert shown["messages"] == [{"role": "user", "content": [TEXT]}]
        assert "_meta" not in shown


async def test_a_list_that_changes_is_looked_at_again() -> None:
    upstream = LegacyUpstream(get_stream=True, capabilities={"tools": {"listChanged": True}})
    upstream.on |= ANSWERS
    async with upstream, running({"up": upstream}) as gateway:
        stage = Stage(gateway, upstream, "legacy")
        session = await stage.session()
        headers = {"Accept": "text/event-stream", **session.headers}
        async with session.front.open("GET", headers) as stream:
            assert (await stage.ask("tools/call", {"name": "plain"})).result["content"] == [TEXT]
            upstream.on["tools/list"] = {"tools": [HIDDEN, {**HIDDEN, "name": "plain"}]}
            await upstream.push({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
            assert (await stream.message() or {})["method"] == "notifications/tools/list_changed"
            assert (await stage.ask("tools/call", {"name": "plain"})).code == -32602
