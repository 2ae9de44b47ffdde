"""`serve --workers N` as its operator meets it: real processes, real signals, a real store."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gateway.cli import main
from tests.gateway.test_metrics import ASKED, SERVED
from tests.gateway_process import GatewayProcess, settings
from tests.http_wire import DEADLINE_S
from tests.peers import LegacyUpstream, ModernUpstream, text
from tests.ports import free_port
from tests.raw_front import BOTH_TYPES, Answer, Front, modern_headers, modern_request
from tests.scrape import scrape, settled, value
from tests.scripted import Call
from tests.valkey import valkey

KEY = "k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
MANY = 40
"""Connections by which one of two workers gets none once in 2 to the 39th."""
CALL = ("tools/call", {"name": "t", "arguments": {}})
STARTED, ENDED = "mcp_front_door_worker_restarts_total", "has ended: killed by SIGKILL"


class Fleet:
    """A running supervisor, its file, and the processes that it has started."""

    def __init__(self, gateway: GatewayProcess, file: Path) -> None:
        self.gateway = gateway
        self.front = gateway.front("/mcp")
        self._file = file
        self._seen: set[int] = set()

    def write(self, content: dict[str, Any] | str) -> None:
        fresh = self._file.with_suffix(".new")
        fresh.write_text(content if isinstance(content, str) else json.dumps(content))
        fresh.replace(self._file)

    def workers(self) -> set[int]:
        found = Path(f"/proc/{self.gateway.process.pid}/task/{self.gateway.process.pid}/children").read_text()
        self._seen |= (pids := {int(pid) for pid in found.split()})
        return pids

    def left(self) -> set[int]:
        """Processes of workers that still run."""
        return {pid for pid in self._seen if _runs(pid)}

    async def until(self, holds: Callable[[], Any]) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while not holds():
                await asyncio.sleep(0.02)

    async def until_all_answer(self, path: str, status: int) -> None:
        """Asks until every worker gives this status: as many connections in a row as meet them all."""
        async with asyncio.timeout(DEADLINE_S):
            while await statuses(self.gateway.front(path)) != {status}:
                pass


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def statuses(front: Front) -> set[int]:
    return {(await front.modern("tools/list")).status for _ in range(MANY)}


def content(upstream: ModernUpstream | LegacyUpstream, store: str, **more: Any) -> dict[str, Any]:
    return settings({"mcp": upstream}, store={"url": store}, keys=[KEY], admin="127.0.0.1:0", **more)


@asynccontextmanager
async def fleet(
    folder: Path, upstream: ModernUpstream | LegacyUpstream, env: dict[str, str] | None = None, **more: Any
) -> AsyncIterator[tuple[Fleet, dict[str, Any]]]:
    """Two workers before one upstream, and the content of their file; at the end no process is left."""
    async with valkey() as store:
        file = folder / "gateway.yaml"
        given = content(upstream, store, **more)
        file.write_text(json.dumps(given))
        gateway = await GatewayProcess.start(["serve", "-c", str(file), "--workers", "2"], folder, env)
        running = Fleet(gateway, file)
        try:
            assert len(running.workers()) == 2
            yield running, given
        finally:
            with contextlib.suppress(FileNotFoundError):
                running.workers()
            if gateway.process.returncode is None:
                await gateway.stop()
            await running.until(lambda: not running.left())


class Held:
    """Calls at an upstream that wait to be let go."""

    def __init__(self, upstream: ModernUpstream) -> None:
        self.began = asyncio.Semaphore(0)
        self.release = asyncio.Event()
        self.executed = 0
        upstream.on["tools/call"] = self._call

    async def _call(self, _: Call) -> dict[str, Any]:
        self.executed += 1
        self.began.release()
        await self.release.wait()
        return text("done")

    async def begin(self, front: Front) -> list[asyncio.Task[Answer]]:
        """Calls that are all under way."""
        calls = [asyncio.create_task(front.modern(*CALL, ident=n)) for n in range(MANY)]
        async with asyncio.timeout(DEADLINE_S):
            for _ in calls:
                await self.began.acquire()
        return calls


async def test_a_worker_that_dies_takes_its_own_calls_with_it_and_another_comes(tmp_path: Path) -> None:
    async with ModernUpstream() as upstream, fleet(tmp_path, upstream) as (running, _):
        held = Held(upstream)
        calls = await held.begin(running.front)
        one, other = running.workers()
        os.kill(one, signal.SIGKILL)
        await running.until(lambda: any(call.done() for call in calls))
        await running.until(lambda: len(running.workers() - {one}) == 2)
        held.release.set()
        answers = await asyncio.gather(*calls, return_exceptions=True)
        failed = [answer for answer in answers if not isinstance(answer, Answer)]
        assert 0 < len(failed) < MANY
        assert {type(error) for error in failed} <= {EOFError, ConnectionResetError, asyncio.IncompleteReadError}
        assert all(answer.said == "done" for answer in answers if isinstance(answer, Answer))
        assert held.executed == MANY
        await settled(running.gateway, "mcp_front_door_workers", 2)
        assert value(await scrape(running.gateway), STARTED) == 1
        assert other in running.workers()
        assert await statuses(running.front) == {200}
        assert ENDED in running.gateway.stderr()


async def test_connections_that_wait_for_a_dead_worker_are_served_by_the_next(tmp_path: Path) -> None:
    async with ModernUpstream() as upstream, fleet(tmp_path, upstream) as (running, _):
        for pid in running.workers():
            os.kill(pid, signal.SIGKILL)
        assert await statuses(running.front) == {200}


async def test_workers_that_are_restarted_one_by_one_fail_no_request(tmp_path: Path) -> None:
    """Callers that keep their connections, which a close at the wrong moment would meet; callers that don't; and one in
    a session, which every worker serves."""
    async with ModernUpstream() as upstream, fleet(tmp_path, upstream) as (running, _), aiohttp.ClientSession() as kept:
        over = asyncio.Event()
        done: list[int] = []
        message = modern_request(*CALL)
        headers = {**modern_headers(message), "Accept": BOTH_TYPES}

        async def keep() -> None:
            while not over.is_set():
                async with kept.post(f"{running.gateway.url}/mcp", json=message, headers=headers) as answer:
                    assert "result" in await answer.json()
                    done.append(answer.status)

        async def connect() -> None:
            while not over.is_set():
                done.append((await running.front.modern(*CALL)).status)

        async def in_session() -> None:
            session = await running.front.initialize()
            while not over.is_set():
                answer = await session.request(*CALL)
                assert "result" in answer.final, repr(answer)
                done.append(answer.status)

        async with asyncio.timeout(DEADLINE_S * 2), asyncio.TaskGroup() as group:
            group.create_task(in_session())
            for _ in range(8):
                group.create_task(keep())
            for _ in range(2):
                group.create_task(connect())
            restarts = 0
            for _ in range(2):
                for pid in running.workers():
                    os.kill(pid, signal.SIGTERM)
                    restarts += 1
                    await running.until(lambda gone=pid: not _runs(gone) and len(running.workers()) == 2)
                    await settled(running.gateway, "mcp_front_door_workers", 2)
            over.set()
        assert restarts == 4
        assert set(done) == {200}
        assert len(done) > MANY
        assert value(await scrape(running.gateway), STARTED) == restarts
        samples = await settled(running.gateway, SERVED, len(done), mcp_method_name="tools/call")
        assert value(samples, ASKED, mcp_method_name="tools/call") == len(done)


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_session_is_served_by_whichever_worker_gets_the_connection(tmp_path: Path, era: str) -> None:
    upstream = LegacyUpstream() if era == "legacy" else ModernUpstream()
    async with upstream, fleet(tmp_path, upstream) as (running, _):
        session = await running.front.initialize()
        answers = [await session.request(*CALL, ident=n) for n in range(MANY)]
        assert [(answer.final["id"], "result" in answer.final) for answer in answers] == [
            (n, True) for n in range(MANY)
        ]
        assert len(upstream.calls("tools/call")) == MANY
        assert (await session.delete()).status in (200, 204)
        assert {(await session.request(*CALL)).status for _ in range(MANY)} == {404}


@pytest.mark.parametrize("by", ["SIGHUP", "file change"])
async def test_a_good_file_is_in_service_everywhere(tmp_path: Path, by: str) -> None:
    async with ModernUpstream() as upstream, ModernUpstream() as more, fleet(tmp_path, upstream) as (running, given):
        routes = [*given["routes"], {"path": "/more", "upstream": "more"}]
        running.write(given | {"upstreams": {**given["upstreams"], "more": {"url": more.url}}, "routes": routes})
        if by == "SIGHUP":
            running.gateway.process.send_signal(signal.SIGHUP)
        await running.until_all_answer("/more", 200)
        assert await statuses(running.front) == {200}


async def test_a_wrong_file_changes_nothing_anywhere_nor_does_a_worker_that_starts_meanwhile(tmp_path: Path) -> None:
    async with ModernUpstream() as upstream, fleet(tmp_path, upstream) as (running, given):
        running.write(given | {"routes": [{"path": "/mcp", "upstream": "nobody"}]})
        running.gateway.process.send_signal(signal.SIGHUP)
        await running.until(lambda: "the configuration is not changed" in running.gateway.stderr())
        assert running.gateway.stderr().count("the configuration is not changed") == 1
        assert await statuses(running.front) == {200}
        before = running.workers()
        os.kill(min(before), signal.SIGKILL)
        await running.until(lambda: len(running.workers() - {min(before)}) == 2)
        assert await statuses(running.front) == {200}


async def test_workers_ignore_a_hangup_that_was_meant_for_the_supervisor(tmp_path: Path) -> None:
    async with ModernUpstream() as upstream, fleet(tmp_path, upstream) as (running, _):
        before = running.workers()
        for pid in before:
            os.kill(pid, signal.SIGHUP)
        assert await statuses(running.front) == {200}
        assert running.workers() == before


@pytest.mark.parametrize("everybody", [False, True], ids=["the supervisor", "every process"])
@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT])
async def test_calls_in_flight_on_every_worker_end_in_peace(
    tmp_path: Path, by: signal.Signals, everybody: bool
) -> None:
    """Some of what stops a service signals all of its processes: that is no second signal."""
    async with ModernUpstream() as upstream, fleet(tmp_path, upstream) as (running, _):
        held = Held(upstream)
        calls = await held.begin(running.front)
        ready = Front(running.gateway.admin_url).at("/readyz")
        assert (await ready.send("GET", {})).status == 200
        pids = running.workers()
        running.gateway.process.send_signal(by)
        async with asyncio.timeout(DEADLINE_S):
            while (await ready.send("GET", {})).status != 503:
                pass
        for pid in pids if everybody else ():
            os.kill(pid, by)
        held.release.set()
        assert [answer.said for answer in await asyncio.gather(*calls)] == ["done"] * MANY
        async with asyncio.timeout(DEADLINE_S):
            assert await running.gateway.process.wait() == 0
        assert not running.left()


async def test_a_second_signal_ends_all_at_once(tmp_path: Path) -> None:
    async with ModernUpstream() as upstream, fleet(tmp_path, upstream, grace_s=3600) as (running, _):
        calls = await Held(upstream).begin(running.front)
        running.gateway.process.send_signal(signal.SIGTERM)
        running.gateway.process.send_signal(signal.SIGINT)
        async with asyncio.timeout(DEADLINE_S):
            assert await running.gateway.process.wait() == 0
        assert not running.left()
        await asyncio.gather(*calls, return_exceptions=True)


async def test_workers_end_with_a_supervisor_that_was_killed(tmp_path: Path) -> None:
    async with ModernUpstream() as upstream, fleet(tmp_path, upstream) as (running, _):
        held = Held(upstream)
        calls = await held.begin(running.front)
        running.gateway.process.kill()
        await running.gateway.process.wait()
        held.release.set()
        assert [answer.said for answer in await asyncio.gather(*calls)] == ["done"] * MANY
        await running.until(lambda: not running.left())
        with pytest.raises(ConnectionError):
            await asyncio.open_connection(running.front.host, running.front.port)


async def test_metrics_are_those_of_all_and_no_count_goes_backwards(tmp_path: Path) -> None:
    async with ModernUpstream() as upstream, fleet(tmp_path, upstream) as (running, _):
        assert await statuses(running.front) == {200}
        samples = await settled(running.gateway, SERVED, MANY)
        assert value(samples, "mcp_front_door_workers") == 2
        assert value(samples, "mcp_front_door_build_info") == 1
        assert value(samples, "mcp_front_door_store_up") == 1
        assert value(samples, "mcp_front_door_upstream_up", upstream="mcp") == 1
        assert value(samples, "mcp_front_door_upstream_era_info", upstream="mcp", era="modern") == 1
        assert value(samples, "mcp_front_door_config_last_reload_successful") == 1
        assert value(samples, "mcp_front_door_store_operation_duration_seconds_count", error_type="") > 0
        ready = await Front(running.gateway.admin_url).at("/readyz").send("GET", {})
        assert json.loads(ready.body) == {"status": "ready", "store": "up"}
        for name in ("process_resident_memory_bytes", "process_cpu_seconds_total"):
            assert all(value(samples, name, worker=worker) > 0 for worker in "12")
        os.kill(min(running.workers()), signal.SIGKILL)
        await running.until(lambda: ENDED in running.gateway.stderr())
        assert value(await scrape(running.gateway), SERVED) == MANY
        assert await statuses(running.front) == {200}
        await settled(running.gateway, SERVED, 2 * MANY)


BREAKS = """
import os, sys
if "gateway.workers" in sys.orig_argv and os.path.exists({marker!r}):
    os._exit(7)
"""
"""A `sitecustomize` by which workers end as soon as they start, while a file is there."""

HANGS = """
import signal, sys
if "gateway.workers" in sys.orig_argv:
    signal.pause()
"""
"""One by which they never get to listen, nor to what they are told."""


@pytest.fixture
def breaking(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    marker, folder = tmp_path / "broken", tmp_path / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(BREAKS.format(marker=str(marker)))
    return marker, {"PYTHONPATH": str(folder)}


async def test_a_worker_that_keeps_dying_is_waited_for_and_nobody_is_sent_to_it(
    tmp_path: Path, breaking: tuple[Path, dict[str, str]]
) -> None:
    marker, env = breaking
    async with ModernUpstream() as upstream, fleet(tmp_path, upstream, env) as (running, _):
        marker.touch()
        os.kill(min(running.workers()), signal.SIGKILL)
        await running.until(lambda: "another starts in 1 s" in running.gateway.stderr())
        assert await statuses(running.front) == {200}
        assert (await Front(running.gateway.admin_url).at("/readyz").send("GET", {})).status == 200
        marker.unlink()
        await settled(running.gateway, "mcp_front_door_workers", 2)
        assert running.gateway.stderr().count("has ended: exit code 7") >= 1


async def ends(arguments: list[str], env: dict[str, str] | None = None) -> tuple[int | None, str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gateway", *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **(env or {})},
    )
    async with asyncio.timeout(DEADLINE_S):
        out, err = await process.communicate()
    assert b"listening on" not in out
    return process.returncode, err.decode()


async def test_workers_that_never_come_up_end_the_whole(tmp_path: Path, breaking: tuple[Path, dict[str, str]]) -> None:
    marker, env = breaking
    marker.touch()
    file = tmp_path / "gateway.yaml"
    async with ModernUpstream() as upstream:
        file.write_text(json.dumps(content(upstream, "redis://127.0.0.1:1/0")))
        code, said = await ends(["serve", "-c", str(file), "--workers", "2"], env)
    assert code == 1
    assert "has ended: exit code 7" in said
    assert "a worker ended before it was ready" in said
    assert "Traceback" not in said


async def test_a_signal_while_workers_start_ends_the_whole(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(HANGS)
    file = tmp_path / "gateway.yaml"
    async with ModernUpstream() as upstream:
        file.write_text(json.dumps(content(upstream, "redis://127.0.0.1:1/0")))
        with (tmp_path / "stderr.log").open("wb") as errors:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "gateway", "serve", "-c", str(file), "--workers", "2"),
                stderr=errors,
                env={**os.environ, "PYTHONPATH": str(tmp_path)},
            )
        running = Fleet(GatewayProcess(process, "http://127.0.0.1:1", tmp_path / "stderr.log"), file)
        await running.until(lambda: len(running.workers()) == 2)
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(DEADLINE_S):
            assert await process.wait() == 0
        assert not running.left()


@pytest.mark.parametrize("workers", ["1", "2"])
async def test_an_address_that_another_gateway_of_workers_has_is_refused(tmp_path: Path, workers: str) -> None:
    async with ModernUpstream() as upstream, fleet(tmp_path, upstream) as (running, given):
        taken = f"{running.front.host}:{running.front.port}"
        other = tmp_path / "other.yaml"
        other.write_text(json.dumps(given | {"listen": taken}))
        code, said = await ends(["serve", "-c", str(other), "--workers", workers])
        assert code == 3
        assert said.startswith(f"cannot listen on {taken}: ")
        assert said.count("\n") == 1
        other.write_text(json.dumps(given | {"admin": taken, "listen": f"127.0.0.1:{free_port()}"}))
        assert (await ends(["serve", "-c", str(other), "--workers", workers]))[0] == 3


BASE = {"upstreams": {"a": {"url": "http://127.0.0.1:9/mcp"}}, "routes": [{"path": "/mcp", "upstream": "a"}]}
STORE = {"store": {"url": "redis://127.0.0.1:6379/0"}}
REFUSED = {
    "no store": (BASE, "-c FILE --workers 2", "--workers: more than 1 share what they know", "store.url"),
    "a store without keys": (BASE | STORE, "-c FILE --workers 2", "FILE: keys: ", "mcp-front-door keygen"),
    "no file": (BASE, "--upstream http://a/ --workers 2", "--workers: more than 1 need a file (-c)", "store"),
    "a command": (BASE, "--workers 2 -- cat", "--workers: more than 1 need a file (-c)", "keys"),
    "none": (BASE, "-c FILE --workers 0", "argument --workers: must be a number from 1 to 64", "serve --help"),
    "no number": (BASE, "-c FILE --workers many", "argument --workers: must be a number from 1 to 64", "serve --help"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_workers_need_is_said_in_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    given, arguments, begins, holds = REFUSED[name]
    file = tmp_path / "gateway.yaml"
    file.write_text(json.dumps(given))
    own, _, command = arguments.partition(" -- ")
    after = ["--", command] if command else []
    assert main(["serve", *own.replace("FILE", str(file)).split(), *after]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(begins.replace("FILE", str(file)))
    assert holds in err
    assert err.count("\n") == 1
