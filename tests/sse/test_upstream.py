"""Scripted servers of HTTP+SSE behind the gateway: what they may do that no SDK does, and what becomes of sessions.

Specification: 2024-11-05 basic/transports (HTTP with SSE); 2025-03-26 basic/transports (Backwards Compatibility).
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.asks.talk import ELICIT
from tests.fleet import fleet
from tests.gateway.test_reload import serving
from tests.gateway_process import GatewayProcess, running, settings
from tests.http_wire import DEADLINE_S
from tests.peers import ModernUpstream, text
from tests.raw_front import Front, Json
from tests.scripted import Call
from tests.sse.peers import SseUpstream

ECHO: Json = {"name": "echo", "arguments": {}}


@asynccontextmanager
async def before(upstream: SseUpstream, **more: Any) -> AsyncIterator[tuple[GatewayProcess, Front]]:
    async with upstream, running({"old": (upstream, more)}) as gateway:
        yield gateway, gateway.front("/old")


REFUSALS = [400, 404, 405, 406, 415]


@pytest.mark.parametrize("status", REFUSALS)
async def test_the_transport_is_found_where_initialize_is_refused(status: int) -> None:
    upstream = SseUpstream()

    async def refuses(call: Call) -> bool:
        if call.seen.verb != "POST" or call.seen.path != upstream.path:
            return False
        await call.reply(status)
        return True

    upstream.on_http = refuses
    async with before(upstream) as (_, front):
        assert (await front.modern("tools/call", ECHO)).status == 200
        session = await front.initialize()
        assert (await session.request("tools/call", ECHO)).result
        tried = [seen for seen in upstream.calls("initialize") if seen.path == upstream.path]
        assert len(tried) == 1  # what was found is remembered


async def test_a_configured_transport_is_not_tried_for_another() -> None:
    async with before(SseUpstream(), transport="http_sse") as (_, front):
        assert (await front.modern("tools/call", ECHO)).status == 200
        assert (await (await front.initialize()).request("tools/call", ECHO)).result


async def test_no_post_goes_to_the_stream_of_a_configured_transport() -> None:
    upstream = SseUpstream()
    async with before(upstream, transport="http_sse") as (_, front):
        assert (await front.modern("tools/list")).status == 200
        assert all(seen.path != upstream.path for seen in upstream.requests if seen.verb == "POST")


ENDPOINTS = {
    "an absolute path": ("/messages?session={}", True),
    "a query alone": ("?session={}", True),
    "a relative path": ("messages?session={}", True),
    "its own origin in full": ("http://127.0.0.1:PORT/messages?session={}", True),
    "another port": ("http://127.0.0.1:1/messages?session={}", False),
    "another host": ("//evil.example/messages?session={}", False),
    "another scheme": ("https://127.0.0.1:PORT/messages?session={}", False),
    "its own origin with a user": ("http://user:word@127.0.0.1:PORT/messages?session={}", False),
    "more than goes into a head": ("/messages?session={}&x=" + 8192 * "x", False),
    "no URL": ("http://[", False),
    "nothing": ("", False),
}


@pytest.mark.parametrize("name", ENDPOINTS)
async def test_messages_are_sent_to_an_endpoint_of_the_streams_own_origin_alone(name: str) -> None:
    endpoint, is_served = ENDPOINTS[name]
    upstream = SseUpstream()

    async def posted_to_the_stream(call: Call) -> bool:
        if "?session=" not in call.seen.path or call.seen.verb != "POST":
            return False
        call.seen.path = "/messages?" + call.seen.path.partition("?")[2]
        return False

    upstream.on_http = posted_to_the_stream
    async with before(upstream, transport="http_sse") as (gateway, front):
        upstream.endpoint = endpoint.replace("PORT", upstream.authority.partition(":")[2])
        answer = await front.modern("tools/call", ECHO)
        if is_served:
            assert answer.result
        else:
            assert answer.status == 502
            assert "names an endpoint of" in answer.error["message"]
            assert [seen for seen in upstream.requests if seen.verb == "POST"] == []
            assert "evil" not in gateway.stderr() + str(answer)


NAMINGS: dict[str, Callable[[str], str]] = {
    "CRLF": lambda endpoint: f"event: endpoint\r\ndata: {endpoint}\r\n\r\n",
    "CR": lambda endpoint: f"event: endpoint\rdata: {endpoint}\r\r:\r\r",
    "a byte order mark": lambda endpoint: f"\ufeffevent: endpoint\ndata: {endpoint}\n\n",
    "no blanks, the data first": lambda endpoint: f"data:{endpoint}\nevent:endpoint\n\n",
    "blanks around it": lambda endpoint: f"event: endpoint\ndata:  {endpoint} \n\n",
    "comments and other events before it": lambda endpoint: (
        f": hi\n\nevent: ping\ndata: 1\n\nid: 1\nretry: 9\nevent: endpoint\ndata: {endpoint}\n\n"
    ),
    "another one after it": lambda endpoint: (
        f"event: endpoint\ndata: {endpoint}\n\nevent: endpoint\ndata: http://127.0.0.1:1/\n\n"
    ),
}


def _named(naming: Callable[[str], str], endpoint: str) -> bytes:
    return naming(endpoint).encode()


async def test_an_endpoint_is_understood_however_its_event_is_written() -> None:
    upstream = SseUpstream()
    async with before(upstream, transport="http_sse") as (_, front):
        for name, naming in NAMINGS.items():
            upstream.naming = partial(_named, naming)
            session = await front.initialize()
            assert (await session.request("tools/call", ECHO)).result, name
            assert (await session.delete()).status == 200


async def test_a_stream_that_names_no_endpoint_is_not_waited_for_without_end() -> None:
    upstream = SseUpstream()
    upstream.naming = lambda endpoint: f"data: {endpoint}\n\n".encode()
    short = {"first_byte_s": 0.3, "connect_s": 0.3, "probe_s": 0.3}
    async with before(upstream, transport="http_sse", timeouts=short) as (_, front):
        assert (await front.modern("tools/call", ECHO)).status == 504
        await upstream.when(lambda: upstream.opened)
    assert [seen for seen in upstream.requests if seen.verb == "POST"] == []


async def test_an_endpoint_that_is_not_there_is_told() -> None:
    upstream = SseUpstream("/prefix/messages")
    async with before(upstream, transport="http_sse") as (_, front):
        answer = await front.modern("tools/call", ECHO)
        assert answer.status == 502
        assert "HTTP 404" in answer.error["message"]


async def test_an_event_that_is_too_large_ends_its_session_with_that_reason() -> None:
    async with SseUpstream() as upstream, running({"old": upstream}, limits={"max_event_bytes": 2048}) as gateway:
        upstream.on["tools/call"] = text("x" * 4096)
        session = await gateway.front("/old").initialize()
        answer = await session.request("tools/call", ECHO)
        assert "more than 2048 bytes" in answer.error["message"]
        assert (await session.request("tools/list")).status == 404


async def test_what_answers_no_request_of_the_session_is_no_answer() -> None:
    upstream = SseUpstream()

    async def odd(call: Call) -> Json:
        stream = upstream.streams[call.seen.path.rpartition("=")[2]]
        for ident in (None, True, str(call.seen.id), call.seen.id + 0.5, call.seen.id + 1, [call.seen.id]):
            await stream.event({"jsonrpc": "2.0", "id": ident, "result": text(f"for {ident}")})
        await stream.write(b"event: message\ndata: no JSON\n\nevent: message\ndata\n\ndata: 1\n\n")
        return text("the answer")

    upstream.on["tools/call"] = odd
    async with before(upstream, transport="http_sse") as (_, front):
        assert (await (await front.initialize()).request("tools/call", ECHO)).said == "the answer"
        assert (await front.modern("tools/call", ECHO)).said == "the answer"


@pytest.mark.field("Z4")
@pytest.mark.parametrize("end", ["reset", "close"])
async def test_a_lost_stream_fails_its_calls_at_once_and_none_is_sent_again(end: str) -> None:
    upstream = SseUpstream()

    async def loses(call: Call) -> None:
        await call.notify("notifications/message", {"level": "info", "data": "begun"})
        getattr(call, end)()

    async with before(upstream) as (_, front):
        upstream.on["tools/call"] = loses
        session = await front.initialize()
        answer = await session.request("tools/call", ECHO)
        assert "stream has ended" in answer.error["message"]
        assert (await session.request("tools/list")).status == 404
        assert (await front.modern("tools/call", ECHO)).status == 502
        assert len(upstream.calls("tools/call")) == 2
        upstream.on.clear()
        assert (await (await front.initialize()).request("tools/call", ECHO)).result
        assert (await front.modern("tools/call", ECHO)).result


async def test_a_session_whose_endpoint_is_gone_is_gone() -> None:
    upstream = SseUpstream()
    async with before(upstream) as (_, front):
        session = await front.initialize()
        assert (await front.modern("tools/call", ECHO)).result
        upstream.streams.clear()
        assert (await session.request("tools/call", ECHO)).status == 404
        assert (await front.modern("tools/call", ECHO)).result  # in a new session: a 404 proves that nothing ran


@pytest.mark.parametrize(("status", "seen_as"), [(400, 502), (401, 502), (429, 429), (500, 502), (503, 503)])
async def test_a_refused_message_is_an_error_and_is_not_sent_again(status: int, seen_as: int) -> None:
    upstream = SseUpstream()

    async def refuses(call: Call) -> bool:
        if call.seen.method != "tools/call":
            return False
        await call.reply(status)
        return True

    async with before(upstream) as (_, front):
        upstream.on_http = refuses
        session = await front.initialize()
        assert (await session.request("tools/call", ECHO)).error
        assert (await front.modern("tools/call", ECHO)).status == seen_as
        assert len(upstream.calls("tools/call")) == 2
        assert (await session.request("tools/list")).result  # the session goes on


async def test_an_answer_may_come_before_its_request_is_accepted() -> None:
    upstream = SseUpstream()
    upstream.after_accepting = False
    async with before(upstream) as (_, front):
        session = await front.initialize()
        for ident in range(3):
            assert (await session.request("tools/call", ECHO, ident=ident)).final["id"] == ident
        assert (await front.modern("tools/call", ECHO)).result


async def test_credentials_go_with_the_stream_and_with_each_message() -> None:
    upstream = SseUpstream()
    more = {"forward_headers": ["Authorization"], "headers": {"X-Own": "own"}, "transport": "http_sse"}
    async with before(upstream, **more) as (_, front):
        upstream.reset()
        session = await front.initialize(headers={"Authorization": "Bearer ann"})
        assert (await session.request("tools/call", ECHO)).result
        assert (await front.modern("tools/call", ECHO, headers={"Authorization": "Bearer eve"})).result
        mine = [seen for seen in upstream.requests if seen.headers.get("Authorization") == "Bearer ann"]
        assert {(seen.verb, seen.method) for seen in mine} >= {("GET", None), ("POST", "tools/call")}
        for seen in upstream.requests:
            assert seen.headers.get("X-Own") == "own"
            assert "Mcp-Session-Id" not in seen.headers
            assert "MCP-Protocol-Version" not in seen.headers
        assert len({seen.path for seen in upstream.calls("tools/call")}) == 2


async def test_a_deleted_session_ends_its_stream_and_there_may_be_so_many_of_them() -> None:
    upstream = SseUpstream()
    async with before(upstream, max_streams=1, transport="http_sse", era="legacy") as (_, front):
        await upstream.when(lambda: upstream.streams)  # the gateway's own, to describe it
        refused = await front.post(
            {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": _HELLO}, {"Accept": "application/json"}
        )
        assert "max_streams" in refused.error["message"]
    async with before(upstream, transport="http_sse") as (_, front):
        session = await front.initialize()
        [mine] = upstream.calls("initialize")[-1:]
        assert (await session.delete()).status == 200
        number = mine.path.rpartition("=")[2]
        await upstream.when(lambda: number not in upstream.streams)


_HELLO: Json = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}


@pytest.mark.field("H1")
async def test_a_cancel_goes_to_the_endpoint_with_the_servers_own_id() -> None:
    upstream = SseUpstream()

    async def never(_: Call) -> None:
        return

    async with before(upstream) as (_, front):
        upstream.on["tools/call"] = never
        session = await front.initialize()
        async with session.open("tools/call", ECHO, ident="mine"):
            [called] = await upstream.seen("tools/call")
            await session.notify("notifications/cancelled", {"requestId": "mine"})
            [told] = await upstream.seen("notifications/cancelled")
            assert told.params["requestId"] == called.id
            assert told.path == called.path


async def test_a_call_ends_on_its_stream_where_a_reload_takes_its_server_away(tmp_path: Path) -> None:
    async with SseUpstream() as upstream, ModernUpstream() as other:
        async with serving(tmp_path, settings({"old": upstream})) as live:
            go_on = asyncio.Event()

            async def waits(_: Call) -> Json:
                await go_on.wait()
                return text("done")

            upstream.on["tools/call"] = waits
            calling = asyncio.create_task(live.gateway.front("/old").modern("tools/call", ECHO))
            await upstream.seen("tools/call")
            live.write(settings({"other": other}))
            await live.until_answered("/other", 200)
            go_on.set()
            assert (await calling).said == "done"
            await upstream.when(lambda: not upstream.streams)


async def test_a_session_stays_at_its_endpoint_and_another_is_asked_where_one_is_down() -> None:
    async with SseUpstream() as one, SseUpstream() as two:
        async with running({"old": {"urls": [one.url, two.url]}}) as gateway:
            sessions = [await gateway.front("/old").initialize() for _ in range(4)]
            for session in sessions:
                assert (await session.request("tools/call", ECHO)).result
            for upstream in (one, two):
                posted = {seen.path for seen in upstream.calls("tools/call")}
                assert posted
                assert posted <= {seen.path for seen in upstream.calls("initialize")}
            await one.stop()
            statuses = [(await session.request("tools/list")).status for session in sessions]
            assert sorted(statuses) == [200, 200, 404, 404]
            assert (await (await gateway.front("/old").initialize()).request("tools/call", ECHO)).result


async def test_probe_shows_the_transport() -> None:
    async with SseUpstream() as upstream:
        command = [sys.executable, "-m", "gateway", "probe", upstream.url]
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        async with asyncio.timeout(DEADLINE_S):
            said, _ = await process.communicate()
        assert process.returncode == 0
        assert b"answers initialize over HTTP+SSE" in said


async def test_a_session_is_served_through_any_replica_and_its_questions_too() -> None:
    form = {"message": "who?", "requestedSchema": {"type": "object", "properties": {}}}

    async def asks(call: Call) -> Json:
        return text(str((await call.ask(ELICIT, form))["result"]))

    more = {"forward_headers": ["X-User"]}
    async with SseUpstream() as upstream, fleet({"old": (upstream, more)}) as replicas:
        upstream.on["tools/call"] = asks
        front = replicas.front("/old")
        session = await front.initialize(capabilities={"elicitation": {}}, headers={"X-User": "ann"})
        for ident in range(3):
            async with session.open("tools/call", ECHO, ident=ident) as opened:
                ask = await opened.message()
                assert ask is not None
                assert (await session.reply(ask["id"], {"result": {"action": "decline"}})).status == 202
                answer = await opened.message()
                assert answer is not None
                assert "decline" in answer["result"]["content"][0]["text"]
        assert len({seen.path for seen in upstream.calls("tools/call")}) == 1
        assert {seen.headers.get("X-User") for seen in upstream.calls("tools/call")} == {"ann"}


async def test_a_session_whose_replica_was_killed_is_404_at_the_others() -> None:
    async with SseUpstream() as upstream, fleet({"old": upstream}) as replicas:
        replicas.hop.turn_to(0)
        session = await replicas.front("/old").initialize(initialized=False)
        await replicas.replicas[0].kill()
        replicas.hop.turn_to(1)
        assert (await session.request("tools/list")).status == 404
        assert (await (await replicas.front("/old").initialize()).request("tools/list")).result
