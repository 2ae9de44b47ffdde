"""Clients of HTTP+SSE before servers of either era, each request at another of two replicas.

Specification: 2024-11-05 basic/transports (HTTP with SSE).
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.asks.talk import ELICIT
from tests.fleet import KEYS, Fleet, fleet
from tests.gateway.test_reload import serving
from tests.gateway_process import GatewayProcess, running, settings
from tests.http_wire import DEADLINE_S
from tests.peers import LegacyUpstream, ModernUpstream, text
from tests.raw_front import Front, Json, notification, request
from tests.scripted import Call
from tests.sse.old import Old, opened

ERAS = ("legacy", "modern")
ROUTES = [{"path": f"/{era}", "http_sse": f"/{era}/sse", "upstream": era} for era in ERAS]


@dataclass(frozen=True, slots=True)
class Door:
    gateway: Fleet
    legacy: LegacyUpstream
    modern: ModernUpstream

    def front(self, era: str) -> Front:
        return self.gateway.front(f"/{era}/sse")

    def upstream(self, era: str) -> LegacyUpstream | ModernUpstream:
        return self.legacy if era == "legacy" else self.modern


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared() -> AsyncIterator[Door]:
    async with (
        LegacyUpstream(get_stream=True) as legacy,
        ModernUpstream() as modern,
        fleet(
            {"legacy": (legacy, {"forward_headers": ["X-User"]}), "modern": (modern, {"forward_headers": ["X-User"]})},
            routes=ROUTES,
            log={"level": "debug"},
        ) as replicas,
    ):
        yield Door(replicas, legacy, modern)


@pytest_asyncio.fixture(loop_scope="session")
async def door(shared: Door) -> AsyncIterator[Door]:
    for upstream in (shared.legacy, shared.modern):
        upstream.reset()
    yield shared
    for upstream in (shared.legacy, shared.modern):
        upstream.check()
    shared.gateway.check()


@pytest.mark.parametrize("era", ERAS)
async def test_messages_come_to_any_replica_and_are_answered_on_the_stream(door: Door, era: str) -> None:
    async with opened(door.front(era), {"X-User": "ann"}) as old:
        assert old.endpoint.startswith(f"/{era}/sse?sessionId=")
        assert (await old.initialize())["protocolVersion"] == "2024-11-05"
        for ident in ("a", 0, 7, "b"):
            called = await old.request("tools/call", {"name": "echo", "arguments": {"n": ident}}, ident=ident)
            assert called["id"] == ident
            assert "echo" in called["result"]["content"][0]["text"]
        assert (await old.request("ping"))["result"] == {}
        assert "error" in await old.request("no/such", ident=9)
    users = {seen.headers.get("X-User") for seen in door.upstream(era).calls("tools/call")}
    assert users == {"ann"}
    assert len(set(door.gateway.hop.taken)) == 2
    assert old.endpoint.partition("=")[2] not in door.gateway.stderr()


@pytest.mark.field("G4")
async def test_two_streams_of_one_client_are_two_sessions(door: Door) -> None:
    async with opened(door.front("legacy")) as one, opened(door.front("legacy")) as two:
        await one.initialize()
        await two.initialize()
        await one.start("tools/call", {"name": "echo"}, ident="of one")
        assert (await two.request("ping", ident="of two"))["id"] == "of two"
        assert (await one.until(id="of one"))["result"]
        assert two.passed == []


async def refused(old: Old, **how: Any) -> int:
    answer = await old.post(how.pop("message", request("ping")), **how)
    assert answer.status == 202 or answer.content_type == "application/json"
    return answer.status


REFUSED: dict[str, tuple[int, dict[str, Any]]] = {
    "no address, as clients of Streamable HTTP try first": (405, {"endpoint": "/legacy/sse"}),
    "an address that nobody was told": (404, {"endpoint": "/legacy/sse?sessionId=never-issued"}),
    "an empty one": (404, {"endpoint": "/legacy/sse?sessionId="}),
    "another client's": (404, {"headers": {"X-User": "eve"}}),
    "no JSON": (400, {"message": b"{"}),
    "a batch": (400, {"message": [request("ping")]}),
    "another content type": (415, {"headers": {"Content-Type": "text/plain"}}),
    "another web page's": (403, {"headers": {"Origin": "https://evil.example"}}),
    "a foreign host": (403, {"headers": {"Host": "evil.example"}}),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_a_message_that_cannot_be_taken_is_refused_at_once(door: Door, name: str) -> None:
    status, how = REFUSED[name]
    async with opened(door.front("legacy"), {"X-User": "ann"}) as old:
        assert await refused(old, **how) == status
        assert await refused(old) == 202


@pytest.mark.parametrize(
    ("verb", "accept", "status"),
    [("GET", "application/json", 406), ("DELETE", "*/*", 405), ("PUT", "*/*", 405), ("GET", "text/*", 200)],
)
async def test_other_requests_open_no_stream(door: Door, verb: str, accept: str, status: int) -> None:
    async with door.front("legacy").open(verb, {"Accept": accept}) as answer:
        assert answer.status == status


async def test_an_address_is_good_on_its_own_route_alone_and_dead_with_its_stream(door: Door) -> None:
    async with opened(door.front("legacy")) as old:
        await old.initialize()
        elsewhere = old.endpoint.replace("/legacy/", "/modern/")
        assert await refused(old, endpoint=elsewhere) == 404
        assert await refused(old, endpoint=old.endpoint.replace("/legacy/sse", "/legacy")) == 400
    await door.legacy.when(lambda: any(seen.verb == "DELETE" for seen in door.legacy.requests))
    assert [await refused(old) for _ in range(2)] == [404, 404]


async def test_a_request_before_initialize_is_told_to_start_with_it(door: Door) -> None:
    async with opened(door.front("modern")) as old:
        assert "initialize" in (await old.request("tools/list"))["error"]["message"]
        assert (await old.request("ping", ident=2))["result"] == {}


@pytest.mark.parametrize("era", ERAS)
async def test_a_question_goes_out_on_the_stream_and_its_answer_may_come_to_any_replica(door: Door, era: str) -> None:
    form = {"message": "who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}
    said: Json = {"action": "accept", "content": {"name": "Änn"}}

    async def asks(call: Call) -> Json:
        if era == "legacy":
            return text(str((await call.ask(ELICIT, form))["result"]["content"]))
        answers = call.seen.params.get("inputResponses")
        if answers is not None:
            return text(str(answers["k"]["content"]))
        ask = {"method": ELICIT, "params": {"mode": "form", **form}}
        return {"resultType": "input_required", "inputRequests": {"k": ask}, "requestState": "s"}

    door.upstream(era).on["tools/call"] = asks
    async with opened(door.front(era)) as old:
        await old.initialize("2025-06-18", {"elicitation": {}})
        for ident in (1, 2):
            await old.start("tools/call", {"name": "ask"}, ident=ident)
            ask = await old.until(method=ELICIT)
            assert ask["params"]["message"] == "who?"
            assert (await old.post({"jsonrpc": "2.0", "id": ask["id"], "result": said})).status == 202
            assert (await old.until(id=ident))["result"]["content"][0]["text"] == "{'name': 'Änn'}"


async def waits(call: Call) -> None:
    await call.stream()
    await call.gone()


@pytest.mark.field("H1", "H3")
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("how", ["cancel", "hang up"])
async def test_a_cancel_or_the_end_of_the_stream_ends_the_call_upstream(door: Door, era: str, how: str) -> None:
    upstream = door.upstream(era)
    upstream.on["tools/call"] = waits
    async with opened(door.front(era)) as old:
        await old.initialize()
        await old.start("tools/call", {"name": "slow"}, ident="s")
        [called] = await upstream.seen("tools/call")
        if how == "cancel":
            await old.notify("notifications/cancelled", {"requestId": "s"})
            assert (await old.request("ping", ident=2))["id"] == 2
            assert all(message.get("id") != "s" for message in old.passed)
    if era == "legacy":
        [told] = await upstream.seen("notifications/cancelled")
        assert told.params["requestId"] == called.id


async def test_what_no_request_opened_comes_on_the_stream(door: Door) -> None:
    async with opened(door.front("legacy")) as old:
        await old.initialize()
        mine = list(door.legacy.opened)[-1]
        await door.legacy.push({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}, mine)
        assert await old.until(method="notifications/tools/list_changed")


async def test_a_session_that_the_server_lost_ends_the_stream(door: Door) -> None:
    async with opened(door.front("legacy")) as old:
        await old.initialize()
        mine = list(door.legacy.opened)[-1]
        await door.legacy.when(lambda: mine in door.legacy.streams)  # else that one's 404 ends it before the request
        door.legacy.live.clear()
        assert "Session not found" in (await old.request("tools/list"))["error"]["message"]
        assert await old.stream.message() is None


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def proxied() -> AsyncIterator[GatewayProcess]:
    """Takes this machine for a proxy, and one stream of each caller."""
    more = {"streams": {"max_http_sse": 1, "keep_alive_s": 1}, "trusted_proxies": ["127.0.0.1"]}
    async with (
        ModernUpstream() as modern,
        running({"modern": (modern, {"forward_headers": ["X-User"]})}, routes=ROUTES[1:], **more) as gateway,
    ):
        yield gateway


async def test_a_client_has_so_many_streams_and_no_more(proxied: GatewayProcess) -> None:
    front = proxied.front("/modern/sse")
    async with opened(front) as old:
        answer = await front.send("GET", {"Accept": "text/event-stream"})
        assert answer.status == 429
        assert "streams.max_http_sse" in answer.error["message"]
        while b"\n:" not in old.stream.received:  # silent, it is kept open
            assert await old.stream.read()
    async with asyncio.timeout(DEADLINE_S):
        while (status := await _probe(front)) == 429:
            continue
    assert status == 200


COUNTED: dict[str, tuple[str, list[dict[str, str]]]] = {
    "by the headers that go upstream": ("client", [{"X-User": "ann"}, {"X-User": "bob"}]),
    "by address where nothing else tells them apart": (
        "address",
        [{"X-Forwarded-For": "192.0.2.1"}, {"X-Forwarded-For": "2001:db8::7"}],
    ),
}


@pytest.mark.parametrize("name", COUNTED)
async def test_the_streams_of_each_caller_are_counted(proxied: GatewayProcess, name: str) -> None:
    what, callers = COUNTED[name]
    front = proxied.front("/modern/sse")
    async with AsyncExitStack() as stack:
        for caller in callers:
            await stack.enter_async_context(opened(front, caller))
        for caller in callers:
            answer = await front.send("GET", {"Accept": "text/event-stream", **caller})
            assert answer.status == 429, repr(answer)
            assert f"of this {what}" in answer.error["message"]


async def test_a_prefix_of_the_path_that_a_proxy_took_off_is_told(door: Door, proxied: GatewayProcess) -> None:
    front, caller = proxied.front("/modern/sse"), {"X-User": "eve"}
    answer = await front.send("GET", {"Accept": "text/event-stream", "X-Forwarded-Prefix": "//evil.example", **caller})
    assert answer.status == 400
    assert "X-Forwarded-Prefix" in answer.error["message"]
    async with opened(front, {"X-Forwarded-Prefix": "/tools", **caller}) as old:
        assert old.endpoint.startswith("/tools/modern/sse?sessionId=")
    async with opened(door.front("legacy"), {"X-Forwarded-Prefix": "/tools"}) as old:
        assert old.endpoint.startswith("/legacy/sse?sessionId=")  # nobody has said that this peer is a proxy


async def test_a_proxy_that_speaks_http_1_0_gets_the_stream(door: Door) -> None:
    front = door.front("legacy")
    front.version = "HTTP/1.0"
    async with opened(front) as old:
        assert "Transfer-Encoding" not in old.stream.headers
        await old.initialize()
        assert (await old.request("ping"))["result"] == {}


async def test_of_several_sessions_that_are_opened_at_once_only_the_last_stays(door: Door) -> None:
    async with opened(door.front("legacy")) as old:
        await old.initialize()
        before = door.legacy.live.copy()
        hello = door.legacy.calls("initialize")[-1].params
        for ident in ("one", "two", "three"):
            await old.start("initialize", hello, ident=ident)
        await old.until(id="three")
        assert len(door.legacy.live) == len(before)
        assert (await old.request("tools/list"))["result"]["tools"]


async def test_more_messages_than_can_be_dealt_with_are_refused_but_for_a_cancel(door: Door) -> None:
    done = asyncio.Event()

    async def slow(call: Call) -> None:
        await done.wait()
        await call.reply(202)

    door.legacy.on["notifications/x"] = slow
    async with opened(door.front("legacy")) as old:
        await old.initialize()
        note = notification("notifications/x")
        statuses: list[int] = []
        while 429 not in statuses:
            statuses += [answer.status for answer in await asyncio.gather(*(old.post(note) for _ in range(32)))]
            assert len(statuses) < 1024
        assert set(statuses) == {202, 429}
        refusal = await old.post(request("ping"))
        assert "wait for one" in refusal.error["message"]
        await old.notify("notifications/cancelled", {"requestId": "none"})
        done.set()


AFTER_RELOAD: dict[str, tuple[bool, dict[str, Any]]] = {
    "kept": (True, {"path": "/kept", "http_sse": "/kept/sse"}),
    "gone": (False, {"path": "/gone"}),
    "moved": (False, {"path": "/moved", "http_sse": "/moved/to"}),
    "taken": (False, {"path": "/taken/by/another", "http_sse": "/taken/sse"}),
    "kept-from-strangers": (False, {"path": "/kept-from-strangers", "anonymous": False}),
}


async def test_a_stream_ends_that_a_reloaded_configuration_would_not_open(tmp_path: Path) -> None:
    before = [{"path": f"/{name}", "http_sse": f"/{name}/sse", "upstream": "legacy"} for name in AFTER_RELOAD]
    after = [{"anonymous": True, **route, "upstream": "legacy"} for _, route in AFTER_RELOAD.values()]
    ann = {"keys": ["sha256:" + "0" * 64], "routes": ["/kept-from-strangers"]}
    async with LegacyUpstream() as legacy, AsyncExitStack() as stack:
        live = await stack.enter_async_context(serving(tmp_path, settings({"legacy": legacy}, routes=before)))
        streams = {
            name: await stack.enter_async_context(opened(live.gateway.front(f"/{name}/sse"))) for name in AFTER_RELOAD
        }
        for old in streams.values():
            await old.initialize()
        live.write(settings({"legacy": legacy}, routes=after, clients={"ann": ann}))
        for name, (stays, _) in AFTER_RELOAD.items():
            if not stays:
                assert await streams[name].stream.message() is None, name
        assert (await streams["kept"].request("tools/list"))["result"]["tools"]
        live.write(settings({"legacy": legacy}, routes=after, clients={"ann": ann}, keys=KEYS))
        assert await streams["kept"].stream.message() is None  # its address was sealed with another key


async def test_a_stream_outlives_a_reload_and_hears_of_its_server_again(tmp_path: Path) -> None:
    async with LegacyUpstream(get_stream=True) as legacy:
        before = settings({"legacy": legacy}, routes=ROUTES[:1])
        async with serving(tmp_path, before) as live, opened(live.gateway.front("/legacy/sse")) as old:
            await old.initialize()
            mine = list(legacy.opened)[-1]
            first = await legacy.when(lambda: legacy.streams.get(mine))
            live.write(settings({"legacy": (legacy, {"timeouts": {"total_s": 77}})}, routes=ROUTES[:1]))
            await legacy.when(lambda: legacy.streams.get(mine, first) is not first)
            await legacy.push({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}, mine)
            assert await old.until(method="notifications/tools/list_changed")
            assert (await old.request("tools/list"))["result"]["tools"]


async def test_a_client_that_reads_nothing_keeps_no_gateway_from_ending() -> None:
    async with LegacyUpstream(get_stream=True) as legacy, running({"legacy": legacy}, routes=ROUTES[:1]) as gateway:
        async with opened(gateway.front("/legacy/sse")) as old:
            await old.initialize()
            mine = list(legacy.opened)[-1]
            await legacy.when(lambda: mine in legacy.streams)
            legacy.on["tools/call"] = text("x" * 2_000_000)
            for ident in range(40):
                await old.start("tools/call", {"name": "large"}, ident=ident)
            await legacy.seen("tools/call", 40)
            legacy.live.clear()
            legacy.streams[mine].close()  # it is opened again, and the server says that the session is gone
            await legacy.when(lambda: sum(seen.verb == "GET" and seen.session == mine for seen in legacy.requests) > 1)
            old.stream.reset()
    assert gateway.process.returncode == 0


async def _probe(front: Front) -> int:
    async with front.open("GET", {"Accept": "text/event-stream"}) as stream:
        return stream.status


async def test_only_the_client_whose_key_opened_a_stream_can_speak_on_it() -> None:
    keys = {name: f"mfd-{name}-" + "k" * 43 for name in ("ann", "eve")}
    digests = {name: "sha256:" + hashlib.sha256(key.encode()).hexdigest() for name, key in keys.items()}
    clients = {name: {"keys": [digest], "routes": ["/modern"]} for name, digest in digests.items()}
    ann, eve = ({"Authorization": f"Bearer {keys[name]}"} for name in ("ann", "eve"))
    async with ModernUpstream() as modern, running({"modern": modern}, routes=ROUTES[1:], clients=clients) as gateway:
        front = gateway.front("/modern/sse")
        assert (await front.send("GET", {"Accept": "text/event-stream"})).status == 401
        async with opened(front, ann) as old:
            await old.initialize()
            assert await refused(old, headers={"Authorization": None}) == 401
            assert await refused(old, headers=eve) == 404
            assert (await old.request("tools/list"))["result"]["tools"]


@pytest.mark.field("L10", "L11")
async def test_a_stop_ends_the_stream_once_what_was_asked_is_answered() -> None:
    async with LegacyUpstream() as legacy, running({"legacy": legacy}, routes=ROUTES[:1]) as gateway:
        front = gateway.front("/legacy/sse")

        async with opened(front) as busy, opened(front) as idle:

            async def stops(_: Call) -> Json:
                gateway.process.terminate()
                assert await idle.stream.message() is None
                return text("done")

            await busy.initialize()
            await idle.initialize()
            legacy.on["tools/call"] = stops
            await busy.start("tools/call", {"name": "slow"}, ident=5)
            assert (await busy.until(id=5))["result"]["content"][0]["text"] == "done"
            assert await busy.stream.message() is None
    assert gateway.process.returncode == 0


async def test_a_stream_whose_replica_was_killed_is_404_elsewhere() -> None:
    async with ModernUpstream() as modern, fleet({"modern": modern}, routes=ROUTES[1:]) as replicas:
        replicas.hop.turn_to(0)
        async with opened(replicas.front("/modern/sse")) as old:
            await old.initialize()
            await replicas.replicas[0].kill()
            replicas.hop.turn_to(1)
            assert await refused(old) == 404
            assert await refused(old) == 404
