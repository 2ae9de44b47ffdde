"""The gateway as a stdio server: one channel, many conversations, of the era that each message claims."""

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.http_wire import DEADLINE_S
from tests.peers import LegacyUpstream, ModernUpstream, text
from tests.raw_front import PREFIX, modern_request, notification, request
from tests.scripted import Call, Json
from tests.stdio.host import Host, launched
from tests.stdio.puppets import Puppet, Puppets

Upstream = LegacyUpstream | ModernUpstream
ERAS = ["modern", "legacy"]
every_pair = pytest.mark.parametrize(("front_era", "era"), [(front, era) for front in ERAS for era in ERAS])


def upstream_of(era: str) -> Upstream:
    return ModernUpstream() if era == "modern" else LegacyUpstream(get_stream=True)


async def call(host: Host, front_era: str, params: Json, ident: Any = 1) -> Json:
    if front_era == "modern":
        return await host.modern("tools/call", params, ident)
    return await host.answer(request("tools/call", params, ident=ident))


def sent(front_era: str, params: Json, ident: Any) -> Json:
    return (modern_request if front_era == "modern" else request)("tools/call", params, ident=ident)


async def opens(host: Host, front_era: str) -> None:
    """As a host of this era begins."""
    if front_era == "modern":
        discovered = await host.modern("server/discover", ident="probe")
        assert discovered["result"]["supportedVersions"] == ["2026-07-28"]
    else:
        assert (await host.initialize())["result"]["protocolVersion"] == "2025-11-25"


@every_pair
async def test_a_host_of_either_era_is_served_whatever_the_server_speaks(
    tmp_path: Path, front_era: str, era: str
) -> None:
    async with upstream_of(era) as upstream, launched(tmp_path, "--upstream", upstream.url) as host:
        await opens(host, front_era)
        params: Json = {"name": "echo", "arguments": {"größe": 2**60, "☃": "\u2028"}}
        answer = await call(host, front_era, params, "a")
        assert json.loads(answer["result"]["content"][0]["text"]) == params
        assert ("resultType" in answer["result"]) == (front_era == "modern")
        listed = await host.answer(sent(front_era, {}, 7) | {"method": "tools/list"})
        assert [tool["name"] for tool in listed["result"]["tools"]] == ["echo"]
        if front_era == "legacy":
            assert (await host.answer(request("ping", ident="p")))["result"] == {}
        assert await host.end() == []
        if isinstance(upstream, LegacyUpstream):
            assert upstream.live == set(), "every session at the server has ended with the host"


@every_pair
async def test_answers_come_as_they_are_ready_each_with_its_own_id_and_progress(
    tmp_path: Path, front_era: str, era: str
) -> None:
    fast_done = asyncio.Event()

    async def tool(call: Call) -> Json:
        token = call.seen.meta.get("progressToken")
        if call.seen.params["name"] == "slow":
            await call.notify("notifications/progress", {"progressToken": token, "progress": 1})
            async with asyncio.timeout(DEADLINE_S):
                await fast_done.wait()
        return text(call.seen.params["name"])

    async with upstream_of(era) as upstream, launched(tmp_path, "--upstream", upstream.url) as host:
        upstream.on["tools/call"] = tool
        await opens(host, front_era)
        slow = sent(front_era, {"name": "slow", "_meta": {}}, "slow")
        slow["params"]["_meta"]["progressToken"] = "mine"
        if front_era == "modern":
            slow = modern_request("tools/call", {"name": "slow"}, ident="slow", meta={"progressToken": "mine"})
        host.write(slow)
        report = await host.until(method="notifications/progress")
        assert report["params"] == {"progressToken": "mine", "progress": 1}
        fast = await call(host, front_era, {"name": "fast"}, 2)
        assert fast["result"]["content"][0]["text"] == "fast"
        fast_done.set()
        assert (await host.until(id="slow"))["result"]["content"][0]["text"] == "slow"
        await host.end()


@every_pair
async def test_a_cancel_reaches_the_server_and_has_no_answer(tmp_path: Path, front_era: str, era: str) -> None:
    gone = asyncio.Event()

    async def hangs(call: Call) -> None:
        await call.notify("notifications/message", {"level": "info", "data": "begun"})
        await call.stay()
        gone.set()

    async with upstream_of(era) as upstream, launched(tmp_path, "--upstream", upstream.url) as host:
        upstream.on["tools/call"] = hangs
        await opens(host, front_era)
        host.write(sent(front_era, {"name": "t"}, "mine"))
        await upstream.seen("tools/call")
        host.write(notification("notifications/cancelled", {"requestId": "another"}))
        host.write(notification("notifications/cancelled", {"requestId": "mine", "reason": "enough"}))
        if era == "modern":
            async with asyncio.timeout(DEADLINE_S):
                await gone.wait()
        else:
            [told] = await upstream.seen("notifications/cancelled")
            assert told.params["requestId"] == upstream.calls("tools/call")[0].id
        assert [message for message in await host.end() if message.get("id") == "mine"] == []


async def test_a_server_asks_the_legacy_host_that_launched_the_gateway(tmp_path: Path) -> None:
    async def asks(call: Call) -> Json:
        params = {"message": "name?", "requestedSchema": {"type": "object", "properties": {}}}
        reply = await call.ask("elicitation/create", params)
        return text(json.dumps(reply["result"]))

    async with LegacyUpstream() as upstream, launched(tmp_path, "--upstream", upstream.url) as host:
        upstream.on["tools/call"] = asks
        await host.initialize(capabilities={"elicitation": {}})
        host.write(request("tools/call", {"name": "t"}, ident=5))
        ask = await host.until(method="elicitation/create")
        host.write({"jsonrpc": "2.0", "id": ask["id"], "result": {"action": "accept", "content": {"name": "Änn"}}})
        answer = await host.until(id=5)
        said = json.loads(answer["result"]["content"][0]["text"])
        assert said == {"action": "accept", "content": {"name": "Änn"}}
        await host.end()


async def test_a_server_asks_the_modern_host_that_launched_the_gateway(tmp_path: Path) -> None:
    """The answer of 2026-07-28 is a result with questions; keys and state come back as they went."""

    async def asks(call: Call) -> Json:
        if "inputResponses" in call.seen.params:
            return text(json.dumps([call.seen.params["inputResponses"], call.seen.params["requestState"]]))
        form = {"message": "name?", "requestedSchema": {"type": "object", "properties": {}}}
        return {
            "resultType": "input_required",
            "inputRequests": {"k": {"method": "elicitation/create", "params": form}},
            "requestState": "state/+= ☃",
        }

    async with ModernUpstream() as upstream, launched(tmp_path, "--upstream", upstream.url) as host:
        upstream.on["tools/call"] = asks
        able = {"capabilities": {"elicitation": {}}}
        first = (await host.modern("tools/call", {"name": "t"}, 1, **able))["result"]
        assert first["resultType"] == "input_required"
        answers = {"k": {"action": "accept", "content": {"name": "Änn"}}}
        retry = {"name": "t", "inputResponses": answers, "requestState": first["requestState"]}
        second = (await host.modern("tools/call", retry, 2, **able))["result"]
        assert json.loads(second["content"][0]["text"]) == [answers, "state/+= ☃"]
        await host.end()


@pytest.mark.parametrize("era", ERAS)
async def test_listen_streams_share_the_channel_and_are_told_apart_by_their_ids(tmp_path: Path, era: str) -> None:
    changed = "notifications/tools/list_changed"

    async def listens(child: Puppet, message: Json) -> None:
        wanted = {"notifications": message["params"]["notifications"]}
        tag = {"_meta": {PREFIX + "subscriptionId": message["id"]}}
        child.say({"method": "notifications/subscriptions/acknowledged", "params": wanted | tag})

    async with Puppets(era) as puppets:
        if era == "modern":
            puppets.on["subscriptions/listen"] = listens
        else:
            capabilities = {"tools": {"listChanged": True}}
            hello = {"protocolVersion": "2025-11-25", "serverInfo": {"name": "p", "version": "1"}}
            puppets.on["initialize"] = {**hello, "capabilities": capabilities}
        entry = puppets.entry()
        environment = [f"{name}={value}" for name, value in entry["env"].items()]
        command = ["env", *environment, entry["command"], *entry["args"]]
        async with launched(tmp_path, "--", *command) as host:
            for ident in ("one", 2):
                wanted = {"toolsListChanged": True} | ({"x": 1} if era == "modern" and ident == 2 else {})
                host.write(modern_request("subscriptions/listen", {"notifications": wanted}, ident=ident))
                ack = await host.until(method="notifications/subscriptions/acknowledged")
                assert ack["params"]["_meta"][PREFIX + "subscriptionId"] == ident
                assert ack["params"]["notifications"] == wanted
            [child] = [child for child in puppets.children if child.calls("subscriptions/listen") or era == "legacy"][
                -1:
            ]
            if era == "modern":
                for listen in child.calls("subscriptions/listen"):
                    child.say({"method": changed, "params": {"_meta": {PREFIX + "subscriptionId": listen["id"]}}})
            else:
                child.say({"method": changed})
            told = [await host.until(method=changed) for _ in range(2)]
            ids = {message["params"]["_meta"][PREFIX + "subscriptionId"] for message in told}
            assert ids == {"one", 2}
            host.write(notification("notifications/cancelled", {"requestId": "one"}))
            if era == "modern":
                cancelled = await puppets.call("notifications/cancelled")
                assert cancelled["params"]["requestId"] == child.calls("subscriptions/listen")[0]["id"]
                second = child.calls("subscriptions/listen")[1]
                child.answer(second, {"resultType": "complete", "_meta": {PREFIX + "subscriptionId": second["id"]}})
                again = await host.until(method=changed)  # listened to anew, and what was missed made up for
                assert again["params"]["_meta"][PREFIX + "subscriptionId"] == 2
            await host.end()


async def test_what_happens_in_a_legacy_session_comes_unasked(tmp_path: Path) -> None:
    async with LegacyUpstream(get_stream=True) as upstream, launched(tmp_path, "--upstream", upstream.url) as host:
        await host.initialize()
        await host.answer(request("tools/list", ident=1))
        session = upstream.calls("tools/list")[0].session
        await upstream.push({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}, session)
        assert "id" not in await host.until(method="notifications/tools/list_changed")
        await host.end()


META = {PREFIX + "protocolVersion": "2026-07-28", PREFIX + "clientCapabilities": {}}


OTHER_VERSION = META | {PREFIX + "protocolVersion": "2030-01-01"}
TWICE = b'{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/list","params":{"_meta":%b}}' % json.dumps(META).encode()
WRONG: list[tuple[bytes, int, Any]] = [
    (b"{not json", -32700, None),
    (b"\xff\xfe", -32700, None),
    (b"[]", -32600, None),
    (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600, None),
    (b'{"id":1,"method":"ping"}', -32600, 1),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}', -32600, 1),
    (b'{"jsonrpc":"2.0","id":1,"method":"server/discover"}', -32602, 1),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}', -32600, 1),
    (json.dumps(request("tools/list", {"_meta": {PREFIX + "protocolVersion": "2026-07-28"}})).encode(), -32602, 1),
    (json.dumps(request("tools/list", {"_meta": OTHER_VERSION})).encode(), -32022, 1),
    (json.dumps(request("tools/list", {"_meta": META | {PREFIX + "logLevel": "loud"}})).encode(), -32602, 1),
    (json.dumps(request("ping", {"_meta": META})).encode(), -32601, 1),
    (TWICE, -32600, 2),
    (b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}', -32602, 1),
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"' + b"x" * 5_000_000 + b'"}}', -32600, None),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b'{"a":' * 200 + b"1" + b"}" * 200 + b"}", -32600, 1),
]


async def test_what_is_wrong_is_answered_and_the_next_line_is_served(tmp_path: Path) -> None:
    async with ModernUpstream() as upstream, launched(tmp_path, "--upstream", upstream.url) as host:
        for line, code, ident in WRONG:
            host.write(line)
            answer = await host.read()
            assert answer is not None, line[:200]
            assert (answer["error"]["code"], answer.get("id")) == (code, ident), line[:200]
            assert "result" in await host.modern("tools/list", ident="next"), line[:200]
        assert await host.end() == []


async def test_nothing_is_answered_where_nothing_was_asked(tmp_path: Path) -> None:
    async with ModernUpstream() as upstream, launched(tmp_path, "--upstream", upstream.url) as host:
        host.write(b"", b"   ", notification("notifications/initialized"), notification("notifications/unknown"))
        host.write(
            {"jsonrpc": "2.0", "id": 9, "result": {}}, {"jsonrpc": "2.0", "id": 8, "error": {"code": 1, "message": ""}}
        )
        assert "result" in await host.modern("tools/list")
        assert len(host.heard) == 1
        assert await host.end() == []


async def test_a_script_that_closes_the_input_at_once_still_gets_its_answers(tmp_path: Path) -> None:
    async with ModernUpstream() as upstream, launched(tmp_path, "--upstream", upstream.url) as host:
        host.write(*(modern_request("tools/list", ident=number) for number in range(20)))
        host.write(modern_request("subscriptions/listen", {"notifications": {}}, ident="listen"))
        assert await host.read() is not None  # it is up and at work; the other answers are on their way
        await host.end()
        assert {message["id"] for message in host.heard if "result" in message} >= set(range(20))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_and_its_child(tmp_path: Path, number: signal.Signals) -> None:
    async with Puppets() as puppets:
        entry = puppets.entry("stubborn")
        command = ["env", f"PUPPET_PORT={entry['env']['PUPPET_PORT']}", entry["command"], *entry["args"]]
        async with launched(tmp_path, "--", *command) as host:
            await host.initialize()
            host.process.send_signal(number)
            await puppets.when(lambda: all(child.gone for child in puppets.children))
            async with asyncio.timeout(DEADLINE_S):
                assert await host.process.wait() == 0


async def test_a_lost_session_is_replaced_since_the_host_cannot_start_another(tmp_path: Path) -> None:
    async with LegacyUpstream() as upstream, launched(tmp_path, "--upstream", upstream.url) as host:
        await host.initialize()
        assert "result" in await host.answer(request("tools/list", ident=1))
        upstream.live.clear()
        assert "result" in await host.answer(request("tools/list", ident=2))
        await host.end()


async def test_a_server_that_cannot_be_reached_is_an_error_and_no_end(tmp_path: Path) -> None:
    async with launched(tmp_path, "--upstream", "http://127.0.0.1:9/mcp") as host:
        assert "result" in await host.modern("server/discover", ident=1)
        assert (await host.modern("tools/list", ident=2))["error"]["code"] == -32603
        assert (await host.initialize())["error"]["code"] == -32603
        await host.end()


async def test_headers_given_on_the_command_line_go_with_every_request(tmp_path: Path) -> None:
    async with (
        ModernUpstream() as upstream,
        launched(tmp_path, "--upstream", upstream.url, "-H", "Authorization: Bearer planted") as host,
    ):
        assert "result" in await host.modern("tools/list")
        assert {seen.headers.get("Authorization") for seen in upstream.calls("tools/list")} == {"Bearer planted"}
        await host.end()


async def test_parameters_that_a_tool_mirrors_are_mirrored_for_a_host_without_headers(tmp_path: Path) -> None:
    async with ModernUpstream() as upstream, launched(tmp_path, "--upstream", upstream.url) as host:
        region = {"type": "string", "x-mcp-header": "Region"}
        tool = {"name": "where", "inputSchema": {"type": "object", "properties": {"region": region}}}
        upstream.on["tools/list"] = {"tools": [tool]}
        answer = await host.modern("tools/call", {"name": "where", "arguments": {"region": "eu-1"}})
        assert "result" in answer
        assert upstream.calls("tools/call")[0].headers.get("Mcp-Param-Region") == "eu-1"
        await host.end()
