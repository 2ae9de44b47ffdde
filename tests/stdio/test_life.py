"""The life of children beyond one call: reload, drain, a machine that allows no more processes."""

import asyncio
import json
import resource
import signal
from pathlib import Path

import pytest

from tests.gateway_process import GatewayProcess, running, settings
from tests.http_wire import DEADLINE_S
from tests.peers import text
from tests.scripted import Json
from tests.stdio.puppets import Puppet, Puppets


async def never(_child: Puppet, _message: Json) -> None:
    """Answers nothing."""


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_a_changed_command_takes_new_calls_and_the_old_one_ends_after_its_last(tmp_path: Path, era: str) -> None:
    file = tmp_path / "gateway.yaml"
    async with Puppets(era) as puppets:
        file.write_text(json.dumps(settings({"p": puppets.entry()})))
        gateway = await GatewayProcess.start(["serve", "-c", str(file)], tmp_path)
        try:
            front = gateway.front("/p")
            puppets.on["tools/call"] = never
            pending = asyncio.create_task(front.modern("tools/call", {"name": "old"}))
            called = await puppets.call("tools/call")
            old = await puppets.child(1)
            async with (await front.initialize()).get() as listener:
                file.write_text(json.dumps(settings({"p": puppets.entry("other")})))
                gateway.process.send_signal(signal.SIGHUP)
                new = await puppets.child(2)
                await listener.rest()  # ends in order; its client comes again, and hears the new one
            del puppets.on["tools/call"]
            assert "new" in (await front.modern("tools/call", {"name": "new"})).said
            assert new.calls("tools/call")
            assert not old.gone
            old.answer(called, {**text("old"), "resultType": "complete"})
            assert (await pending).said == "old"
            await puppets.when(lambda: old.at_end and old.gone)
        finally:
            await gateway.stop()


CHANGED = "notifications/tools/list_changed"


async def test_a_listener_of_sessions_hears_the_child_that_comes_after() -> None:
    async with Puppets() as puppets, running({"p": puppets.entry()}) as gateway:
        hello = {"protocolVersion": "2025-11-25", "serverInfo": {"name": "p", "version": "1"}}
        puppets.on["initialize"] = {**hello, "capabilities": {"tools": {"listChanged": True}, "logging": {}}}
        front = gateway.front("/p")
        session = await front.initialize()
        assert (await session.request("logging/setLevel", {"level": "warning"})).result == {}
        async with front.modern_open("subscriptions/listen", {"notifications": {"toolsListChanged": True}}) as stream:
            assert (await stream.message() or {})["params"]["notifications"] == {"toolsListChanged": True}
            (await puppets.child(1)).order(exit=1)
            child = await puppets.child(2)
            await puppets.when(lambda: child.calls("logging/setLevel"))
            child.say({"method": CHANGED})
            assert (await stream.message() or {})["method"] == CHANGED
        assert child.calls("logging/setLevel")[0]["params"] == {"level": "warning"}, (
            "told again what it was told before"
        )


async def test_a_listener_of_2026_07_28_hears_the_child_that_comes_after_and_that_all_may_have_changed() -> None:
    wanted = {"notifications": {"toolsListChanged": True}}

    async def acknowledge(child: Puppet, message: Json) -> None:
        tag = {"_meta": {"io.modelcontextprotocol/subscriptionId": message["id"]}}
        child.say({"method": "notifications/subscriptions/acknowledged", "params": wanted | tag})

    async with Puppets("modern") as puppets, running({"p": puppets.entry()}) as gateway:
        puppets.on["subscriptions/listen"] = acknowledge
        front = gateway.front("/p")
        async with front.modern_open("subscriptions/listen", wanted, ident="mine") as stream:
            assert (await stream.message() or {})["method"] == "notifications/subscriptions/acknowledged"
            (await puppets.child(1)).order(exit=1)
            assert (await stream.message() or {})["method"] == CHANGED
            assert (await puppets.child(2)).calls("subscriptions/listen")


async def test_a_call_that_is_under_way_at_sigterm_is_answered_before_its_child_ends() -> None:
    async with Puppets() as puppets, running({"p": puppets.entry()}) as gateway:
        puppets.on["tools/call"] = never
        pending = asyncio.create_task(gateway.front("/p").modern("tools/call", {"name": "t"}))
        called = await puppets.call("tools/call")
        gateway.process.send_signal(signal.SIGTERM)
        [child] = puppets.children
        child.answer(called, text("in time"))
        assert (await pending).said == "in time"
        async with asyncio.timeout(DEADLINE_S):
            await gateway.process.wait()
        await puppets.when(lambda: child.at_end and child.gone)


@pytest.mark.parametrize("retired", [False, True], ids=["that serves", "that a reload has retired"])
async def test_no_child_outlives_the_gateway_not_even_one_that_heeds_neither_eof_nor_sigterm(
    tmp_path: Path, retired: bool
) -> None:
    file = tmp_path / "gateway.yaml"
    async with Puppets() as puppets, Puppets() as others:
        arguments = ["stubborn"] if retired else ["stubborn", "deaf"]
        puppets.obeys_eof = False
        file.write_text(json.dumps(settings({"p": puppets.entry(*arguments)}, grace_s=0)))
        gateway = await GatewayProcess.start(["serve", "-c", str(file)], tmp_path)
        try:
            child = await puppets.child(1)
            if retired:
                puppets.on["tools/call"] = never
                pending = asyncio.create_task(gateway.front("/p").modern("tools/call", {"name": "t"}))
                await puppets.call("tools/call")
                file.write_text(json.dumps(settings({"p": others.entry()}, grace_s=0)))
                gateway.process.send_signal(signal.SIGHUP)
                await others.child(1)
                pending.cancel()
            assert not child.gone
        finally:
            await gateway.stop()
        await puppets.when(lambda: child.gone)


@pytest.mark.field("AA5")
async def test_a_machine_without_room_for_a_process_is_an_error_of_that_upstream_alone() -> None:
    """Descriptors run out: the one limit that also an administrator's processes have."""
    async with Puppets() as puppets, running({"p": puppets.entry()}) as gateway:
        front = gateway.front("/p")
        assert "name" in (await front.modern("tools/call", {"name": "t"})).said
        child = await puppets.child(1)
        puppets.on["tools/call"] = never
        pending = asyncio.create_task(front.modern("tools/call", {"name": "t"}))
        await puppets.call("tools/call", 2)
        child.order(exit=1)
        assert "has ended" in (await pending).error["message"]
        pid = gateway.process.pid
        before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (limit_with_spare(pid, 2), before[1]))
        refused = await front.modern("tools/call", {"name": "t"})
        assert (refused.status, refused.code) == (503, -32603)
        assert "its command cannot be started: the system has no room for it" in gateway.stderr()
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
        del puppets.on["tools/call"]
        async with asyncio.timeout(DEADLINE_S):
            while (answer := await front.modern("tools/call", {"name": "t"})).status == 503:
                assert "may be started again in" in answer.error["message"]
        assert "name" in answer.said


def limit_with_spare(pid: int, spare: int) -> int:
    """The limit under which the process can open `spare` more descriptors."""
    used = {int(name.name) for name in Path(f"/proc/{pid}/fd").iterdir()}
    free = (number for number in range(4096) if number not in used)
    return next(number for count, number in enumerate(free) if count == spare)
