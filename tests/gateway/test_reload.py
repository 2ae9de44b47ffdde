"""The configuration lives: on file change and on SIGHUP, all or nothing, and no request notices."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.metrics import Reloads
from gateway.reload import Reloader
from policies.settings import Settings
from tests.gateway_process import GatewayProcess, settings
from tests.http_wire import DEADLINE_S
from tests.peers import LegacyUpstream, ModernUpstream, text
from tests.raw_front import Answer
from tests.scripted import Call

RELOADS = 50


class Live:
    """A gateway and the file that it was started with."""

    def __init__(self, gateway: GatewayProcess, file: Path) -> None:
        self.gateway = gateway
        self._file = file

    def write(self, content: dict[str, Any] | str) -> None:
        """Replaces the file in one step, as editors and mounted volumes do."""
        fresh = self._file.with_suffix(".new")
        fresh.write_text(content if isinstance(content, str) else json.dumps(content))
        fresh.replace(self._file)

    def hang_up(self) -> None:
        self.gateway.process.send_signal(signal.SIGHUP)

    async def until(self, holds: Callable[[], Any]) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while not holds():
                await asyncio.sleep(0.02)

    async def until_answered(self, path: str, status: int) -> Answer:
        """Asks until the answer has this status: the reload has arrived."""
        async with asyncio.timeout(DEADLINE_S):
            while True:
                answer = await self.gateway.front(path).modern("tools/list")
                if answer.status == status:
                    return answer


@asynccontextmanager
async def serving(folder: Path, content: dict[str, Any]) -> AsyncIterator[Live]:
    file = folder / "gateway.yaml"
    file.write_text(json.dumps(content))
    gateway = await GatewayProcess.start(["serve", "-c", str(file)], folder)
    try:
        yield Live(gateway, file)
    finally:
        await gateway.stop()


@pytest.mark.parametrize("by", ["file change", "SIGHUP"])
async def test_a_route_comes_and_another_goes(tmp_path: Path, by: str) -> None:
    async with ModernUpstream() as one, ModernUpstream() as other, serving(tmp_path, settings({"one": one})) as live:
        assert (await live.gateway.front("/one").modern("tools/list")).status == 200
        assert (await live.gateway.front("/other").modern("tools/list")).status == 404
        live.write(settings({"other": other}))
        if by == "SIGHUP":
            live.hang_up()
        await live.until_answered("/other", 200)
        assert (await live.gateway.front("/one").modern("tools/list")).status == 404


WRONG = {
    "no YAML": ("upstreams: [", "gateway.yaml:"),
    "an unknown key": ({"rotes": []}, "rotes: unknown key"),
    "an upstream that does not exist": ({"routes": [{"path": "/x", "upstream": "nobody"}]}, "nobody"),
    "another address": ({"listen": "127.0.0.1:1"}, "listen: can't change while the gateway runs; restart it"),
}


@pytest.mark.parametrize("name", WRONG)
async def test_a_wrong_file_changes_nothing_and_is_told(tmp_path: Path, name: str) -> None:
    change, told = WRONG[name]
    async with ModernUpstream() as one, serving(tmp_path, settings({"one": one})) as live:
        live.write(change if isinstance(change, str) else settings({"one": one}) | change)
        live.hang_up()
        await live.until(lambda: "the configuration is not changed" in live.gateway.stderr())
        assert told in live.gateway.stderr()
        assert (await live.gateway.front("/one").modern("tools/list")).status == 200


async def test_whatever_goes_wrong_in_one_reload_the_next_is_tried(tmp_path: Path) -> None:
    path = tmp_path / "gateway.yaml"
    path.write_text("{}")
    tries = 0
    again = asyncio.Event()

    async def apply(_: Settings) -> None:
        nonlocal tries
        tries += 1
        if tries > 1:
            again.set()
        raise OSError("vanished")

    reloader = Reloader(path, Settings.model_construct, apply, Reloads())
    async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as group:
        watching = group.create_task(reloader.run())
        while not again.is_set():
            reloader.ask()
            await asyncio.sleep(0)
        watching.cancel()


async def test_the_bound_on_heads_changes_by_reload(tmp_path: Path) -> None:
    async with (
        ModernUpstream() as one,
        serving(tmp_path, settings({"one": one}, limits={"max_head_bytes": 1024})) as live,
    ):
        port = int(live.gateway.url.rpartition(":")[2])

        async def status() -> bytes:
            """Of a head that comes in pieces, and to no end."""
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            first = asyncio.create_task(reader.readline())
            try:
                writer.write(b"GET /one HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: ")
                for _ in range(20):
                    writer.write(b"a" * 100)
                    await asyncio.wait({first}, timeout=0.02)
                return first.result().split()[1] if first.done() else b"waits for the rest"
            finally:
                first.cancel()
                writer.close()

        assert await status() == b"431"
        live.write(settings({"one": one}, limits={"max_head_bytes": 4096}))
        live.hang_up()
        async with asyncio.timeout(DEADLINE_S):
            while await status() == b"431":
                await asyncio.sleep(0)


async def test_a_session_outlives_reloads_that_leave_its_upstream_alone(tmp_path: Path) -> None:
    async with (
        LegacyUpstream() as legacy,
        ModernUpstream() as other,
        serving(tmp_path, settings({"legacy": legacy})) as live,
    ):
        session = await live.gateway.front("/legacy").initialize()
        live.write(settings({"legacy": legacy, "other": other}))
        await live.until_answered("/other", 200)
        answer = await session.request("tools/call", {"name": "echo", "arguments": {}})
        assert answer.status == 200
        assert "result" in answer.final
        assert len({seen.session for seen in legacy.calls("tools/call")}) == 1


async def test_a_call_that_began_with_an_upstream_ends_with_it(tmp_path: Path) -> None:
    began, release = asyncio.Event(), asyncio.Event()

    async def slow(_: Call) -> dict[str, Any]:
        began.set()
        await release.wait()
        return text("the old one")

    async with ModernUpstream() as old, ModernUpstream() as new, serving(tmp_path, settings({"up": old})) as live:
        old.on["tools/call"] = slow
        call = asyncio.create_task(live.gateway.front("/up").modern("tools/call", {"name": "t", "arguments": {}}))
        async with asyncio.timeout(DEADLINE_S):
            await began.wait()
        live.write(settings({"up": new}))
        await live.until(lambda: new.calls("server/discover"))
        release.set()
        assert (await call).result["content"] == text("the old one")["content"]


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_a_listener_on_an_upstream_that_is_gone_is_told_to_listen_anew(tmp_path: Path, era: str) -> None:
    async with LegacyUpstream(get_stream=True) as legacy, ModernUpstream() as modern, ModernUpstream() as new:
        upstream = legacy if era == "legacy" else modern
        async with serving(tmp_path, settings({"up": upstream})) as live:
            wanted = {"notifications": {"toolsListChanged": True}}
            async with live.gateway.front("/up").modern_open("subscriptions/listen", wanted) as stream:
                await stream.message()
                live.write(settings({"up": new}))
                assert "error" not in json.dumps(await stream.rest())


async def test_no_request_fails_over_fifty_reloads_under_load(tmp_path: Path) -> None:
    """Callers of both eras over upstreams of both; each reload swaps a second route in or out."""
    async with LegacyUpstream() as legacy, ModernUpstream() as modern, ModernUpstream() as other:
        some = settings({"legacy": legacy, "modern": modern})
        more = settings({"legacy": legacy, "modern": modern, "other": other})
        async with serving(tmp_path, some) as live:
            answers: list[Answer] = []
            over = asyncio.Event()

            async def load(path: str, front_era: str) -> None:
                front = live.gateway.front(path)
                session = await front.initialize() if front_era == "legacy" else None
                call = ("tools/call", {"name": "echo", "arguments": {"x": 1}})
                while not over.is_set():
                    answers.append(await (session.request(*call) if session else front.modern(*call)))

            callers = [
                asyncio.create_task(load(path, era)) for path in ("/legacy", "/modern") for era in ("legacy", "modern")
            ]
            for number in range(RELOADS):
                live.write(more if number % 2 == 0 else some)
                live.hang_up()
                await live.until_answered("/other", 200 if number % 2 == 0 else 404)
            over.set()
            await asyncio.gather(*callers)
            assert len(answers) > RELOADS
            assert [repr(answer) for answer in answers if answer.status != 200 or "result" not in answer.final] == []
