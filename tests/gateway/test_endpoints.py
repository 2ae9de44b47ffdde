"""An upstream that is several endpoints: who gets what, where sessions live, what is tried elsewhere, what never is."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.cli import main
from tests.gateway.test_reload import serving
from tests.gateway_process import GatewayProcess, running, settings
from tests.http_wire import DEADLINE_S
from tests.peers import CAPABILITIES, LEGACY, LegacyUpstream, ModernUpstream, text
from tests.policies.test_settings import KEY
from tests.raw_front import CLIENT_INFO, Answer, Front, Session, request
from tests.scrape import scrape, settled, value
from tests.scripted import Call, Json, Upstream

UP, RETRIES = "mcp_front_door_endpoint_up", "mcp_front_door_upstream_retries_total"
OPENING = json.dumps(
    request("initialize", {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": CLIENT_INFO})
).encode()
TOOL = {"name": "echo", "arguments": {}}
SOON = {"health": {"interval_s": 0.1}, "ejection": {"failures": 2, "for_s": 0.1}}
NEVER = {"ejection": {"max_share": 0}}
ERAS = pytest.mark.parametrize("era", ["modern", "legacy"])
PAIRS = pytest.mark.parametrize(
    ("front_era", "upstream_era"), [(f, u) for f in ("modern", "legacy") for u in ("modern", "legacy")]
)


def kind(era: str) -> Upstream:
    return ModernUpstream() if era == "modern" else LegacyUpstream(get_stream=True)


def entry(upstreams: Sequence[Upstream], **more: Any) -> dict[str, Any]:
    return {"urls": [upstream.url for upstream in upstreams], **more}


@asynccontextmanager
async def several(era: str, count: int = 2, **more: Any) -> AsyncIterator[tuple[GatewayProcess, list[Any]]]:
    """A gateway with the route /up before so many scripted endpoints of one upstream, whose era is known."""
    async with AsyncExitStack() as stack:
        upstreams = [await stack.enter_async_context(kind(era)) for _ in range(count)]
        behind = {"up": entry(upstreams, era=era, **more)}
        yield await stack.enter_async_context(running(behind, admin="127.0.0.1:0")), upstreams


async def call(front: Front, era: str, session: Session | None = None) -> Answer:
    if era == "modern":
        return await front.modern("tools/call", TOOL)
    return await (session or await front.initialize()).request("tools/call", TOOL)


def calls(upstreams: Sequence[Upstream], method: str = "tools/call") -> list[int]:
    return [len(upstream.calls(method)) for upstream in upstreams]


async def opened(front: Front, upstreams: Sequence[LegacyUpstream]) -> tuple[Session, int]:
    """A session of a client's own, and at which of the endpoints it is."""

    def count(upstream: LegacyUpstream) -> int:
        return len([seen for seen in upstream.opened.values() if seen.params["clientInfo"] == CLIENT_INFO])

    before = [count(upstream) for upstream in upstreams]
    session = await front.initialize()
    (grown,) = (index for index, upstream in enumerate(upstreams) if count(upstream) > before[index])
    return session, grown


# who gets what


async def test_each_endpoint_gets_its_turn() -> None:
    async with several("modern", 3, balance="round_robin") as (gateway, upstreams):
        for _ in range(9):
            assert (await gateway.front("/up").modern("tools/call", TOOL)).status == 200
        assert calls(upstreams) == [3, 3, 3]


@ERAS
async def test_an_endpoint_that_has_long_calls_gets_fewer(era: str) -> None:
    async with several(era) as (gateway, upstreams):
        release = asyncio.Event()

        async def long(call: Call) -> Json:
            await release.wait()
            return text("long")

        for upstream in upstreams:
            upstream.on["tools/call"] = long
        front = gateway.front("/up")
        running = asyncio.create_task(front.modern("tools/call", TOOL))
        async with asyncio.timeout(DEADLINE_S):
            while not sum(calls(upstreams)):
                await asyncio.sleep(0)
        busy = calls(upstreams).index(1)
        for upstream in upstreams:
            upstream.on.clear()
        for _ in range(5):
            assert (await front.modern("tools/call", TOOL)).status == 200
        release.set()
        assert (await running).said == "long"
        assert calls(upstreams)[busy] == 1
        assert calls(upstreams)[1 - busy] == 5


async def test_callers_without_sessions_use_every_endpoint_that_wants_sessions() -> None:
    async with several("legacy", 2, balance="round_robin") as (gateway, upstreams):
        for _ in range(8):
            assert (await gateway.front("/up").modern("tools/call", TOOL)).status == 200
        assert all(calls(upstreams))
        assert sum(calls(upstreams)) == 8
        assert max(calls(upstreams, "initialize")) <= 2, "one is shared at each, and one tells what the upstream offers"


# what is tried elsewhere, and what never is


@PAIRS
async def test_an_endpoint_that_is_not_there_is_noticed_by_nobody(front_era: str, upstream_era: str) -> None:
    async with several(upstream_era, 3, **NEVER) as (gateway, upstreams):
        assert (await call(gateway.front("/up"), front_era)).result["content"]
        for upstream in upstreams:
            upstream.reset()
        await upstreams[1].stop()
        for _ in range(7):
            assert (await call(gateway.front("/up"), front_era)).result["content"]
        assert sum(calls(upstreams)) == 7
        assert value(await scrape(gateway), RETRIES, upstream="up") > 0
        await upstreams[0].stop()
        await upstreams[2].stop()
        answer = await gateway.front("/up").modern("tools/call", TOOL)
        assert (answer.status, answer.code) == (503, -32603)
        for upstream in upstreams:
            await upstream.start()
        assert (await gateway.front("/up").modern("tools/call", TOOL)).result["content"]


async def reset(call: Call) -> None:
    call.reset()


@PAIRS
async def test_a_call_that_broke_is_not_sent_again_anywhere(front_era: str, upstream_era: str) -> None:
    async with several(upstream_era) as (gateway, upstreams):
        for upstream in upstreams:
            upstream.on["tools/call"] = reset
        answer = await call(gateway.front("/up"), front_era)
        assert answer.code == -32603
        assert sum(calls(upstreams)) == 1


async def test_a_task_whose_endpoint_goes_away_is_not_begun_at_another() -> None:
    tool = {"name": "echo", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}}
    async with several("legacy") as (gateway, upstreams):

        def begins(upstream: LegacyUpstream) -> Callable[[Call], Any]:
            async def begin(call: Call) -> None:
                created = {"task": {"taskId": "t", "status": "working", "pollInterval": 0}}
                await call.json({"jsonrpc": "2.0", "id": call.seen.id, "result": created})
                leaving.append(asyncio.create_task(upstream.stop()))

            return begin

        leaving: list[asyncio.Task[None]] = []
        for upstream in upstreams:
            upstream.capabilities = CAPABILITIES | {"tasks": {"requests": {"tools": {"call": {}}}}}
            upstream.on |= {"tools/list": {"tools": [tool]}, "tools/call": begins(upstream)}
            upstream.on["tasks/get"] = {"taskId": "t", "status": "working", "pollInterval": 0}
        front = gateway.front("/up")
        assert (await front.modern("tools/call", TOOL)).code == -32603
        assert sum(calls(upstreams)) == 1
        await asyncio.gather(*leaving)


@pytest.mark.parametrize(
    ("front_era", "upstream_era"), [("modern", "modern"), ("modern", "legacy"), ("legacy", "modern")]
)
@pytest.mark.parametrize("method", ["tools/list", "resources/list", "prompts/get", "resources/read"])
async def test_a_read_that_broke_is_sent_to_one_other_endpoint(front_era: str, upstream_era: str, method: str) -> None:
    params: Json = {"prompts/get": {"name": "hello"}, "resources/read": {"uri": "note://one"}}.get(method, {})
    async with several(upstream_era, 3, **NEVER) as (gateway, upstreams):
        front = gateway.front("/up")
        session = await front.initialize() if front_era == "legacy" else None

        async def read() -> Answer:
            return await (session.request(method, params) if session else front.modern(method, params))

        fine = upstreams[0].on
        upstreams[0].on = {method: reset}
        for _ in range(4):
            assert "result" in (await read()).final
        assert calls(upstreams, method)[0] > 0
        upstreams[0].on = fine
        for upstream in upstreams:
            upstream.requests.clear()
            upstream.on[method] = reset
        assert (await read()).code == -32603
        assert sum(calls(upstreams, method)) == 2


# endpoints that fail


async def sick(call: Call) -> bool:
    if call.seen.verb != "POST":
        return False
    await call.reply(503)
    return True


async def silent(call: Call) -> bool:
    call.begun = True
    await call.stay()
    return True


async def breaks(call: Call) -> bool:
    call.reset()
    return True


@pytest.mark.parametrize(("script", "status"), [(sick, 503), (silent, 504), (breaks, 502)])
async def test_an_endpoint_that_fails_is_left_out_until_it_is_well_again(
    script: Callable[[Call], Any], status: int
) -> None:
    rules = {"health": {"interval_s": 0.1}, "ejection": {"failures": 2, "for_s": 1}}
    limits = {"timeouts": {"first_byte_s": 1}}  # the others are busy meanwhile, and slow
    async with several("modern", **rules, **limits, balance="round_robin") as (gateway, upstreams):
        front, ill = gateway.front("/up"), upstreams[0]
        label = ill.authority + ill.path
        assert (await front.modern("tools/call", TOOL)).status == 200  # what the gateway asks first is over
        ill.on_http = script
        statuses = [(await front.modern("tools/call", TOOL)).status for _ in range(4)]
        assert sorted(statuses) == [200, 200, status, status]
        ill.on_http = None
        async with asyncio.timeout(DEADLINE_S):
            while "is in service again" not in gateway.stderr():
                await asyncio.sleep(0)
        await settled(gateway, UP, 1, upstream="up", endpoint=label)
        ill.requests.clear()
        assert [(await front.modern("tools/call", TOOL)).status for _ in range(4)] == [200] * 4
        assert len(ill.calls("tools/call")) == 2
        log = gateway.stderr()
        assert log.count(f"endpoint {label} fails and is left out for 1 s") == 1
        assert log.count(f"endpoint {label} is in service again") == 1


async def test_an_endpoint_that_opens_no_sessions_is_left_out() -> None:
    rules = {"ejection": {"failures": 2, "for_s": 60}, "timeouts": {"first_byte_s": 0.3}}
    async with several("legacy", **rules, balance="round_robin") as (gateway, upstreams):
        front, ill = gateway.front("/up"), upstreams[0]
        ill.on_http = silent
        tries = 0
        async with asyncio.timeout(DEADLINE_S):
            while "fails and is left out for 60 s" not in gateway.stderr():
                tries += 1
                await front.send("POST", front.posting({}), OPENING)
        assert tries <= 6
        for _ in range(4):
            assert (await call(front, "legacy")).result["content"]


async def test_an_endpoint_that_is_gone_is_left_out_until_it_can_be_reached() -> None:
    async with several("modern", **SOON) as (gateway, upstreams):
        front, gone = gateway.front("/up"), upstreams[0]
        label = gone.authority + gone.path
        await gone.stop()
        for _ in range(4):
            assert (await front.modern("tools/call", TOOL)).status == 200
        await settled(gateway, UP, 0, upstream="up", endpoint=label)
        retries = value(await scrape(gateway), RETRIES)
        for _ in range(20):
            assert (await front.modern("tools/call", TOOL)).status == 200
        assert value(await scrape(gateway), RETRIES) == retries, "nobody is sent there any more"
        await gone.start()
        await settled(gateway, UP, 1, upstream="up", endpoint=label)
        gone.requests.clear()
        for _ in range(4):
            assert (await front.modern("tools/call", TOOL)).status == 200
        assert gone.calls("tools/call")


@ERAS
async def test_an_endpoint_says_by_its_health_path_whether_it_wants_requests(era: str) -> None:
    ready = {0: True, 1: True}
    headers = {"X-Key": "planted"}
    async with several(era, health={"path": "/ready", "interval_s": 0.1}, headers=headers) as (gateway, upstreams):

        def answering(index: int) -> Callable[[Call], Any]:
            async def answer(call: Call) -> bool:
                if call.seen.path != "/ready":
                    return False
                assert call.seen.headers.get("X-Key") == "planted"
                await call.reply(200 if ready[index] else 404)
                return True

            return answer

        for index, upstream in enumerate(upstreams):
            upstream.on_http = answering(index)
        labels = [upstream.authority + upstream.path for upstream in upstreams]
        await settled(gateway, UP, 2, upstream="up")
        ready[0] = False
        await settled(gateway, UP, 0, upstream="up", endpoint=labels[0])
        for upstream in upstreams:
            upstream.requests.clear()
        for _ in range(4):
            assert (await gateway.front("/up").modern("tools/call", TOOL)).status == 200
        assert calls(upstreams) == [0, 4]
        ready[1] = False
        await settled(gateway, UP, 0, upstream="up")
        assert (await gateway.front("/up").modern("tools/call", TOOL)).status == 200, "better than none"
        ready[0] = ready[1] = True
        await settled(gateway, UP, 2, upstream="up")


async def test_an_upstream_with_one_endpoint_is_asked_whatever_it_has_done() -> None:
    async with several("modern", 1, **SOON) as (gateway, upstreams):
        upstreams[0].on_http = sick
        for _ in range(9):
            assert (await gateway.front("/up").modern("tools/call", TOOL)).status == 503
        upstreams[0].on_http = None
        assert (await gateway.front("/up").modern("tools/call", TOOL)).status == 200


# sessions


@pytest.mark.field("AC1")
async def test_a_session_stays_where_it_was_opened_through_every_gateway() -> None:
    async with AsyncExitStack() as stack:
        upstreams = [await stack.enter_async_context(LegacyUpstream(get_stream=True)) for _ in range(3)]
        behind = {"up": entry(upstreams, era="legacy")}
        doors = [await stack.enter_async_context(running(behind, keys=[KEY])) for _ in range(2)]
        one, other = (door.front("/up") for door in doors)
        where: list[int] = []
        async with asyncio.timeout(DEADLINE_S):
            while sum(calls(upstreams, "initialize")) < len(doors):  # each gateway's own, at its start
                await asyncio.sleep(0)
        for number in range(6):
            session, at = await opened(one if number % 2 else other, upstreams)
            where.append(at)
            for door in (one, other):
                session.front = door
                for _ in range(3):
                    assert (await session.request("tools/call", TOOL)).result["content"]
                async with session.get() as stream:
                    assert stream.status == 200
                    await upstreams[at].push({"jsonrpc": "2.0", "method": "notifications/message", "params": {}})
                    assert await stream.message() is not None
            session.front = other if number % 2 else one
            assert (await session.delete()).status == 200
        assert set(where) == {0, 1, 2}, "sessions are spread"
        assert sum(seen.verb == "DELETE" for upstream in upstreams for seen in upstream.requests) == len(where)
        for upstream in upstreams:
            used = {seen.session for seen in upstream.requests if seen.session is not None}
            assert used <= upstream.opened.keys(), "no session is shown to another endpoint"


async def test_a_session_waits_for_its_endpoint_and_is_lost_only_with_its_configuration(tmp_path: Path) -> None:
    async with LegacyUpstream() as one, LegacyUpstream() as other:
        upstreams = [one, other]
        behind = settings({"up": entry(upstreams, era="legacy", balance="round_robin", **NEVER)})
        async with serving(tmp_path, behind) as live:
            front = live.gateway.front("/up")
            sessions = dict([(await opened(front, upstreams))[::-1] for _ in range(2)])
            await one.stop()
            answer = await sessions[0].request("tools/call", TOOL)
            assert (answer.status, answer.code) == (200, -32603)
            assert "cannot be reached" in answer.error["message"]
            assert (await sessions[1].request("tools/call", TOOL)).result["content"]
            await one.start()
            assert (await sessions[0].request("tools/call", TOOL)).result["content"]
            assert calls(upstreams) == [1, 1]
            live.write(settings({"up": entry([other], era="legacy")}))
            live.hang_up()
            async with asyncio.timeout(DEADLINE_S):
                while (lost := await sessions[0].request("tools/call", TOOL)).status == 200:
                    pass
            assert (lost.status, lost.code) == (404, -32001)
            assert (await sessions[1].request("tools/call", TOOL)).result["content"]


async def test_where_no_session_lives_anywhere_each_endpoint_serves_each_client() -> None:
    async with LegacyUpstream(sessions=False) as one, LegacyUpstream(sessions=False) as other:
        upstreams = [one, other]
        async with running({"up": entry(upstreams, era="legacy", balance="round_robin")}) as gateway:
            session = await gateway.front("/up").initialize()
            for _ in range(4):
                assert (await session.request("tools/call", TOOL)).result["content"]
            assert all(calls(upstreams))
            await one.stop()
            for _ in range(4):
                assert (await session.request("tools/call", TOOL)).result["content"]
            assert sum(calls(upstreams)) == 8


LISTENING = {"notifications": {"toolsListChanged": True}}
CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}


async def test_who_listens_at_an_endpoint_that_goes_away_is_told_to_listen_anew() -> None:
    async with several("legacy") as (gateway, upstreams):
        for upstream in upstreams:
            upstream.capabilities = {"tools": {"listChanged": True}}
        front = gateway.front("/up")
        async with front.modern_open("subscriptions/listen", LISTENING) as stream:
            assert (await stream.message() or {})["method"] == "notifications/subscriptions/acknowledged"
            for upstream in upstreams:
                await upstream.stop()
            last = await stream.rest()
            assert not last or "result" in last[0] or last[0]["method"] == "notifications/cancelled"
        for upstream in upstreams:
            upstream.streams.clear()
        await upstreams[1].start()
        async with front.modern_open("subscriptions/listen", LISTENING) as stream:
            assert (await stream.message() or {})["method"] == "notifications/subscriptions/acknowledged"
            await upstreams[1].push(CHANGED)
            assert (await stream.message() or {})["method"] == CHANGED["method"]


async def test_a_listen_stream_goes_on_at_another_endpoint_and_all_may_have_changed() -> None:
    async with several("modern") as (gateway, upstreams):
        async with gateway.front("/up").modern_open("subscriptions/listen", LISTENING) as stream:
            assert (await stream.message() or {})["method"] == "notifications/subscriptions/acknowledged"
            for upstream in upstreams:
                await upstream.stop()
                upstream.listeners.clear()
            await upstreams[1].start()
            assert (await stream.message() or {})["method"] == CHANGED["method"]
            await upstreams[1].push(CHANGED["method"], {})
            assert (await stream.message() or {})["method"] == CHANGED["method"]


class Sticky(LegacyUpstream):
    """Behind a load balancer that sticks by cookie, and sets another one whenever it can."""

    async def serve(self, call: Call) -> None:
        if call.seen.method != "initialize":
            assert call.seen.headers.all("Cookie") == [self._cookie(call.seen.session)], call.seen.headers
        await super().serve(call)

    def _cookie(self, session: str | None) -> str:
        number = list(self.opened).index(session or "")
        return f"own=fixed; LB=node-{number}; also={number}"

    async def _initialize(self, call: Call) -> None:
        assert call.seen.headers.all("Cookie") == ["own=fixed"]
        number = len(self.opened)
        session = f"session-{number}"
        self.live.add(session)
        self.opened[session] = call.seen
        cookies = [f"LB=node-{number}; Path=/; HttpOnly", f"also={number}; Secure", "gone=1; Max-Age=0"]
        headers = [("Mcp-Session-Id", session), *(("Set-Cookie", cookie) for cookie in cookies)]
        result = {"protocolVersion": LEGACY, "capabilities": self.capabilities, "serverInfo": {}}
        await call.json({"jsonrpc": "2.0", "id": call.seen.id, "result": result}, headers=headers)

    async def dispatch(self, call: Call, defaults: Any) -> None:
        if call.seen.method == "tools/call":
            await call.answer(text("said"), [("Set-Cookie", "later=1")])
        else:
            await super().dispatch(call, defaults)


@pytest.mark.field("AC1")
async def test_what_a_load_balancer_set_at_initialize_goes_with_that_session_and_no_other() -> None:
    behind = {"era": "legacy", "headers": {"cookie": "own=fixed"}}
    async with Sticky(get_stream=True) as upstream, AsyncExitStack() as stack:
        doors = [await stack.enter_async_context(running({"up": (upstream, behind)}, keys=[KEY])) for _ in range(2)]
        one, other = (door.front("/up") for door in doors)
        sessions = [await one.initialize() for _ in range(3)]
        for _ in range(2):
            for session in sessions:
                session.front = other
                answer = await session.request("tools/call", TOOL)
                assert answer.said == "said"
                assert "Set-Cookie" not in answer.headers
                assert not session.opened.headers.all("Set-Cookie")
                async with session.get() as stream:
                    assert stream.status == 200
            assert (await one.modern("tools/call", TOOL)).said == "said"
        for session in sessions:
            assert (await session.delete()).status == 200
        upstream.check()
        assert len(upstream.calls("tools/call")) == 8
        assert not any("node-" in door.stderr() for door in doors)


# the real thing


@asynccontextmanager
async def real(folder: Path, count: int) -> AsyncIterator[list[GatewayProcess]]:
    """So many servers on the official SDK, which mark in `folder/marks` what they execute."""
    started: list[GatewayProcess] = []
    command = (sys.executable, "-m", "tests.gateway.marking_server")
    try:
        for number in range(count):
            own = folder / str(number)
            own.mkdir()
            started.append(await GatewayProcess.start([str(folder / "marks")], own, command=command))
        yield started
    finally:
        for server in started:
            await killed(server)


async def killed(server: GatewayProcess) -> None:
    if server.process.returncode is None:
        os.killpg(server.process.pid, signal.SIGKILL)
        await server.process.wait()


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_a_server_that_is_killed_under_load_takes_only_what_it_was_doing_with_it(
    tmp_path: Path, era: str
) -> None:
    clients, wanted = 8, 240
    async with real(tmp_path, 3) as servers:
        behind = {"up": {"urls": [server.url + "/mcp" for server in servers], "era": era}}
        async with running(behind) as gateway:
            front, answers, keys = gateway.front("/up"), dict[str, Answer](), iter(range(wanted))
            third = asyncio.Event()

            async def work() -> None:
                for number in keys:
                    key = f"k{number}"
                    answers[key] = await front.modern("tools/call", {"name": "mark", "arguments": {"key": key}})
                    if len(answers) == wanted // 3:
                        third.set()

            async def kill() -> None:
                await third.wait()
                await killed(servers[1])

            async with asyncio.timeout(DEADLINE_S):
                await asyncio.gather(kill(), *(work() for _ in range(clients)))
    failed = {key for key, answer in answers.items() if "error" in answer.final}
    marks = (tmp_path / "marks").read_text().split()
    assert len(answers) == wanted
    assert len(failed) <= clients, "only what was under way there"
    assert all(answers[key].status == 502 and answers[key].code == -32603 for key in failed)
    assert all(answers[key].said == key for key in answers.keys() - failed)
    assert len(marks) == len(set(marks)), "nothing is executed twice"
    assert answers.keys() - failed <= set(marks)


async def test_sessions_of_real_servers_go_on_through_another_gateway(tmp_path: Path) -> None:
    async with real(tmp_path, 2) as servers, AsyncExitStack() as stack:
        behind = {"up": {"urls": [server.url + "/mcp" for server in servers]}}
        doors = [await stack.enter_async_context(running(behind, keys=[KEY])) for _ in range(2)]
        fronts = [door.front("/up") for door in doors]
        sessions = [await fronts[number % 2].initialize() for number in range(4)]
        for number, session in enumerate([*sessions, *sessions]):
            session.front = fronts[(number + 1) % 2]
            answer = await session.request("tools/call", {"name": "mark", "arguments": {"key": f"s{number}"}})
            assert answer.said == f"s{number}"
        for session in sessions:
            assert (await session.delete()).status == 200
    assert sorted((tmp_path / "marks").read_text().split()) == sorted(f"s{number}" for number in range(8))


def test_check_shows_the_endpoints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "gateway.yaml"
    urls = ["http://a:1/mcp?key=planted", "http://b:1/mcp"]
    file.write_text(json.dumps(settings({"up": {"urls": urls, "balance": "round_robin"}})))
    assert main(["check", "-c", str(file)]) == 0
    shown = capsys.readouterr().out
    assert "/up -> up: http://a:1/mcp?... http://b:1/mcp, round_robin, era auto" in shown
