"""Field reports AA3, AA5, G4, H1, H4, H5: child processes that die, cannot start, and are shared."""

import asyncio
import json
import os
import signal
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.field.pairs import either_front
from tests.gateway_process import GatewayProcess, running
from tests.peers import text
from tests.raw_front import Answer, Front, Session
from tests.scripted import Err, Json
from tests.stdio.puppets import Puppet, Puppets, subscription

ERAS = ["modern", "legacy"]
every_pair = pytest.mark.parametrize(("front_era", "era"), [(front, era) for front in ERAS for era in ERAS])


async def never(_child: Puppet, _message: Json) -> None:
    """Answers nothing."""


def client(front: Front, session: Session | None) -> Any:
    return session.request if session is not None else front.modern


async def opened(front: Front, front_era: str) -> Session | None:
    return await front.initialize() if front_era == "legacy" else None


async def call(gateway: GatewayProcess, front_era: str, path: str = "/p", name: str = "t") -> Answer:
    front = gateway.front(path)
    session = await opened(front, front_era)
    return await client(front, session)("tools/call", {"name": name})


# AA3


@pytest.mark.field("AA3")
@pytest.mark.parametrize(
    ("front_era", "era", "order"),
    [(front, era, {"exit": 17}) for front in ERAS for era in ERAS]
    + [("modern", "legacy", order) for order in ({"exit": 0}, {"kill": signal.SIGTERM}, {"kill": signal.SIGKILL})],
)
async def test_every_call_of_a_child_that_dies_ends_at_once_and_the_next_is_served(
    front_era: str, era: str, order: Json
) -> None:
    async with Puppets(era) as puppets, running({"p": puppets.entry()}) as gateway:
        puppets.on["tools/call"] = never
        front = gateway.front("/p")
        session = await opened(front, front_era)
        ask = client(front, session)
        pending = [asyncio.create_task(ask("tools/call", {"name": "t"}, ident=number)) for number in (1, 2, 3)]
        await puppets.call("tools/call", 3)
        child = await puppets.child(1)
        child.order(err="why: planted\n")
        child.order(**order)
        answers = await asyncio.gather(*pending)
        assert [(answer.final["id"], answer.code) for answer in answers] == [(1, -32603), (2, -32603), (3, -32603)]
        assert {answer.status for answer in answers} == ({200} if front_era == "legacy" else {502})
        assert all("process has ended" in answer.error["message"] for answer in answers)
        assert all(b"planted" not in answer.body for answer in answers)
        del puppets.on["tools/call"]
        assert json.loads((await ask("tools/call", {"name": "again"})).said)["name"] == "again"
        assert len(puppets.children) == 2
        assert len(puppets.messages("tools/call")) == 4, "nothing that may have run is sent again"
        assert "why: planted" in gateway.stderr()


@pytest.mark.field("AA3")
@either_front
async def test_a_child_that_ends_at_its_start_is_one_clear_error_and_not_started_in_a_loop(front_era: str) -> None:
    async def dies(child: Puppet, _message: Json) -> None:
        child.order(exit=17)

    async with Puppets() as puppets, running({"p": puppets.entry()}) as gateway:
        puppets.on = {"server/discover": dies, "initialize": dies}
        front = gateway.front("/p")
        await puppets.child(1)
        answers = [await front.modern("tools/list") for _ in range(6)]
        for answer in answers:
            assert (answer.code, answer.status in (502, 503)) == (-32603, True), repr(answer)
        last = answers[-1]
        assert last.status == 503
        assert "its process has ended (exit code 17); it may be started again in" in last.error["message"]
        assert int(last.headers.get("Retry-After") or 0) in range(1, 32)
        if front_era == "legacy":
            refused = await front.post(initialize())
            assert (refused.status, refused.code) == (503, -32603)
        assert len(puppets.children) <= 4


def initialize() -> Json:
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    return {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}


@pytest.mark.field("AA3")
@every_pair
async def test_what_is_no_message_is_dropped_and_stays_out_of_the_log(front_era: str, era: str) -> None:
    async def noisy(child: Puppet, message: Json) -> Json:
        child.order(out="planted: starting up\n\n[1, 2]\n{}\n{not json\nnull\n\x00\xe4\n")
        child.say({"id": 424242, "result": text("planted")})
        child.say({"id": str(message["id"]), "result": text("planted")})
        return text("right")

    async with Puppets(era) as puppets, running({"p": puppets.entry()}) as gateway:
        puppets.on["tools/call"] = noisy
        assert (await call(gateway, front_era)).said == "right"
        assert "is no message and was dropped" in gateway.stderr()
        assert "planted" not in gateway.stderr()


@pytest.mark.field("AA3")
@every_pair
async def test_a_line_of_5_mb_arrives_and_one_beyond_the_limit_ends_the_child(front_era: str, era: str) -> None:
    large = "x" * 5_000_000

    async def tool(child: Puppet, message: Json) -> Json | None:
        if message["params"]["name"] == "large":
            return text(large)
        child.order(out="x" * 9_000_000)  # and no end
        return None

    async with (
        Puppets(era) as puppets,
        running({"p": puppets.entry()}, limits={"max_event_bytes": 8_000_000}) as gateway,
    ):
        puppets.on["tools/call"] = tool
        assert (await call(gateway, front_era, name="large")).said == large
        answer = await call(gateway, front_era, name="endless")
        assert "it wrote a line of more than 8000000 bytes" in answer.error["message"]
        assert (await call(gateway, front_era, name="large")).said == large
        assert len(puppets.children) == 2


@pytest.mark.field("AA3")
@either_front
async def test_a_child_that_never_reads_is_a_timeout_of_its_own_callers(front_era: str) -> None:
    async with Puppets() as puppets:
        deaf = puppets.entry("deaf", timeouts={"probe_s": 0.2, "first_byte_s": 0.5})
        async with running({"deaf": deaf, "p": puppets.entry()}) as gateway:
            refused = await gateway.front("/deaf").modern("tools/list")
            assert (refused.status, refused.code) == (504, -32603)
            assert "name" in (await call(gateway, front_era)).said


@pytest.mark.field("AA3")
async def test_what_a_child_has_started_ends_with_it_and_so_does_a_stubborn_one() -> None:
    async with Puppets() as puppets:
        entry = puppets.entry("stubborn")
        shell = {
            **entry,
            "command": "/bin/sh",
            "args": ["-c", 'exec 3<&0; "$@" <&3 & wait', "sh", entry["command"], *entry["args"]],
        }
        async with running({"p": shell}) as gateway:
            await call(gateway, "modern")
            child = await puppets.child(1)
            assert os.getpgid(child.pid) != os.getpgid(gateway.process.pid)
            puppets.on["tools/call"] = never
            pending = asyncio.create_task(call(gateway, "modern"))
            await puppets.call("tools/call", 2)
            os.kill(os.getpgid(child.pid), signal.SIGKILL)  # the shell alone: it leads the group
            assert "process has ended" in (await pending).error["message"]
            await puppets.when(lambda: child.gone)
            del puppets.on["tools/call"]
            assert "name" in (await call(gateway, "modern")).said
        assert [child.gone for child in puppets.children] == [True, True]


# AA5


CANNOT_START: dict[str, tuple[Json, str]] = {
    "not-found": ({"command": "no-such-command-anywhere"}, "No such file or directory"),
    "not-executable": ({"command": "/etc/passwd"}, "Permission denied"),
    "a-folder": ({"command": "/"}, "Permission denied"),
    "no-such-cwd": ({"command": "cat", "cwd": "/no/such/folder"}, "No such file or directory"),
    "too-long": ({"command": "cat", "args": ["x" * 200_000]}, "Argument list too long"),
}


@pytest.mark.field("AA5")
@either_front
async def test_a_command_that_cannot_start_is_an_error_of_its_own_route(front_era: str) -> None:
    async with Puppets() as puppets:
        behind = {name: entry for name, (entry, _) in CANNOT_START.items()}
        async with running({**behind, "p": puppets.entry()}) as gateway:
            for name, (_, reason) in CANNOT_START.items():
                front = gateway.front(f"/{name}")
                answer = await front.modern("tools/list") if front_era == "modern" else await front.post(initialize())
                assert (answer.status, answer.code) == (503, -32603), name
                assert "cannot be started" in answer.error["message"], name
                assert f"upstream {name}: its command cannot be started: {reason}" in gateway.stderr()
            assert "name" in (await call(gateway, front_era)).said


# G4


@pytest.mark.field("G4")
@pytest.mark.parametrize("era", ERAS)
async def test_one_clients_call_is_silent_on_anothers_stream(era: str) -> None:
    async def tool(child: Puppet, message: Json) -> Json:
        token = message["params"]["_meta"]["progressToken"]
        child.say({"method": "notifications/progress", "params": {"progressToken": token, "progress": 1}})
        child.say({"method": "notifications/message", "params": {"level": "error", "data": "of this call"}})
        child.say({"method": "notifications/com.example/own", "params": {"of": "this call"}})
        child.say({"method": "notifications/tools/list_changed", **of_listener(puppets)})
        return text("done")

    async with Puppets(era) as puppets, running({"p": puppets.entry()}) as gateway:
        puppets.on["tools/call"] = tool
        if era == "modern":
            puppets.on["subscriptions/listen"] = acknowledge
        one, two = [await gateway.front("/p").initialize() for _ in range(2)]
        async with two.get() as other:
            if era == "modern":
                await puppets.call("subscriptions/listen")
            answer = await one.request("tools/call", {"name": "t", "_meta": {"progressToken": "mine"}})
            assert next(note["params"].get("progressToken") for note in answer.notes) == "mine"
            assert answer.said == "done"
            everybodys = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
            assert await other.message() == everybodys, "and nothing came before it"


async def acknowledge(child: Puppet, message: Json) -> None:
    wanted = {"notifications": message["params"]["notifications"]}
    child.say({"method": "notifications/subscriptions/acknowledged", "params": wanted | subscription(message)})


def of_listener(puppets: Puppets) -> Json:
    """Makes a notification one of the only listener's, where there is one."""
    listens = puppets.messages("subscriptions/listen")
    return {"params": subscription(listens[0])} if listens else {}


@pytest.mark.field("G4")
async def test_what_one_session_subscribes_to_is_not_told_to_another() -> None:
    async with Puppets() as puppets, running({"p": puppets.entry()}) as gateway:
        one, two = [await gateway.front("/p").initialize() for _ in range(2)]
        async with one.get() as ones, two.get() as twos:
            for session, uri in ((one, "note://1"), (two, "note://2"), (two, "note://1"), (one, "note://2")):
                assert (await session.request("resources/subscribe", {"uri": uri})).result == {}
            assert (await two.request("resources/unsubscribe", {"uri": "note://1"})).result == {}
            assert (await one.request("resources/unsubscribe", {"uri": "note://2"})).result == {}
            assert puppets.messages("resources/unsubscribe") == [], "the other still listens"
            child = await puppets.child(1)
            for uri in ("note://2", "note://1"):
                child.say({"method": "notifications/resources/updated", "params": {"uri": uri}})
            assert (await ones.message() or {})["params"]["uri"] == "note://1"
            assert (await twos.message() or {})["params"]["uri"] == "note://2"
        assert len(puppets.children) == 1
        assert len(puppets.messages("initialize")) == 1


# H1, H4, H5


@pytest.mark.field("H1", "H5")
@every_pair
async def test_a_cancel_reaches_the_child_once_and_leaves_everybody_else_alone(front_era: str, era: str) -> None:
    async with Puppets(era) as puppets, running({"p": puppets.entry()}) as gateway:
        puppets.on["tools/call"] = never
        front = gateway.front("/p")
        session, other = await opened(front, front_era), await opened(front, front_era)
        ask = client(front, session)
        async with cancellable(front, session) as cancel:
            called = await puppets.call("tools/call")
            others = asyncio.create_task(client(front, other)("tools/call", {"name": "other"}, ident="mine"))
            second = await puppets.call("tools/call", 2)
            await cancel()
        told = await puppets.call("notifications/cancelled")
        assert told["params"]["requestId"] == called["id"]
        child = await puppets.child(1)
        child.answer(called, text("too late"))
        child.answer(second, {**text("for the other"), "resultType": "complete"})
        assert (await others).said == "for the other"
        del puppets.on["tools/call"]
        assert "again" in (await ask("tools/call", {"name": "again"})).said
        assert len(puppets.children) == 1
        assert len(puppets.messages("notifications/cancelled")) == 1


@pytest.mark.field("H4")
@every_pair
async def test_a_call_that_takes_too_long_is_cancelled_and_its_late_answer_dropped_in_silence(
    front_era: str, era: str
) -> None:
    async with Puppets(era) as puppets:
        async with running({"p": puppets.entry(tools={"slow": {"first_byte_s": 0.5}})}) as gateway:
            front = gateway.front("/p")
            session = await opened(front, front_era)
            ask = client(front, session)
            assert "result" in (await ask("tools/call", {"name": "t"})).final
            puppets.on["tools/call"] = never
            answer = await ask("tools/call", {"name": "slow"}, ident="late")
            assert (answer.final["id"], answer.code) == ("late", -32603)
            assert answer.status == (200 if front_era == "legacy" else 504)
            told = await puppets.call("notifications/cancelled")
            called = puppets.messages("tools/call")[-1]
            assert told["params"]["requestId"] == called["id"]
            said = gateway.stderr()
            child = await puppets.child(1)
            for _ in range(3):
                child.answer(called, text("too late"))
            del puppets.on["tools/call"]
            assert "again" in (await ask("tools/call", {"name": "again"})).said
            assert gateway.stderr() == said, "not a line about it"
            assert len(puppets.messages("notifications/cancelled")) == 1


@pytest.mark.field("H4")
@either_front
async def test_an_initialize_that_a_child_leaves_unanswered_is_never_cancelled(front_era: str) -> None:
    async with Puppets() as puppets:
        puppets.on["initialize"] = never
        entry = puppets.entry(era="legacy", timeouts={"first_byte_s": 0.5})
        async with running({"p": entry}) as gateway:
            front = gateway.front("/p")
            answer = await front.modern("tools/list") if front_era == "modern" else await front.post(initialize())
            assert (answer.status, answer.code) == (504, -32603), repr(answer)
            assert puppets.messages("initialize")
            assert puppets.messages("notifications/cancelled") == []


@asynccontextmanager
async def cancellable(front: Front, session: Session | None) -> Any:
    """A call under way, and what calls it off."""
    if session is None:
        message = front.modern_open("tools/call", {"name": "slow"}, ident="mine")
        hanging = asyncio.create_task(message.__aenter__())

        async def hang_up() -> None:
            hanging.cancel()
            await asyncio.wait({hanging})

        yield hang_up
        return
    pending = asyncio.create_task(session.request("tools/call", {"name": "slow"}, ident="mine"))

    async def cancel() -> None:
        assert (await session.notify("notifications/cancelled", {"requestId": "mine"})).status == 202
        answer = await pending
        assert answer.finals == [], "a cancelled call has no answer"

    yield cancel


# a child for each session


@pytest.mark.field("AA3")
async def test_a_session_of_its_own_asks_its_client_and_dies_alone() -> None:
    async def asks(child: Puppet, message: Json) -> None:
        params = {"message": "name?", "requestedSchema": {"type": "object", "properties": {}}}
        child.say({"id": "ask-1", "method": "elicitation/create", "params": params})

    async with Puppets() as puppets, running({"p": puppets.entry(scope="session")}) as gateway:
        puppets.on["tools/call"] = asks
        front = gateway.front("/p")
        one = await front.initialize(capabilities={"elicitation": {}})
        two = await front.initialize()
        async with one.open("tools/call", {"name": "t"}) as answer:
            ask = await answer.message() or {}
            assert ask["method"] == "elicitation/create"
            reply = {"result": {"action": "accept", "content": {"name": "Änn"}}}
            assert (await one.reply(ask["id"], reply)).status == 202
            [child] = [child for child in puppets.children if child.calls("tools/call")]
            said = await puppets.when(lambda: [line for line in child.lines if line.get("id") == "ask-1"])
            assert said == [{"jsonrpc": "2.0", "id": "ask-1", **reply}]
            child.answer(child.calls("tools/call")[0], text("thanks"))
            assert ((await answer.message() or {})["result"]["content"])[0]["text"] == "thanks"
        puppets.on["tools/call"] = never
        pending = asyncio.create_task(one.request("tools/call", {"name": "t"}))
        await puppets.when(lambda: child.calls("tools/call")[1:])
        child.order(exit=1)
        assert "process has ended" in (await pending).error["message"]
        del puppets.on["tools/call"]
        gone = await one.request("tools/call", {"name": "t"})
        assert (gone.status, gone.code) == (404, -32001)
        assert "name" in (await two.request("tools/call", {"name": "t"})).said
        assert (await two.delete()).status == 200
        [other] = [each for each in puppets.children if each.calls("tools/call") and each is not child]
        await puppets.when(lambda: other.gone)


async def test_a_session_of_its_own_hears_all_that_its_child_says() -> None:
    async with Puppets() as puppets, running({"p": puppets.entry(scope="session")}) as gateway:
        session = await gateway.front("/p").initialize()
        await session.request("tools/call", {"name": "t"})
        [child] = [child for child in puppets.children if child.calls("tools/call")]
        said = [
            {"method": "notifications/message", "params": {"level": "debug", "data": "of no call"}},
            {"method": "notifications/resources/updated", "params": {"uri": "note://never-subscribed"}},
            {"method": "notifications/com.example/own"},
        ]
        child.say(said[0])  # before anybody reads: kept until somebody does
        async with session.get() as stream:
            for message in said[1:]:
                child.say(message)
            for message in said:
                assert await stream.message() == {"jsonrpc": "2.0", **message}


async def test_no_more_children_run_than_are_allowed() -> None:
    async with Puppets() as puppets, running({"p": puppets.entry(scope="session", max_children=2)}) as gateway:
        await call(gateway, "modern")  # in a session of the gateway's own
        one = await gateway.front("/p").initialize()
        refused = await gateway.front("/p").post(initialize())
        assert (refused.status, "max_children" in refused.error["message"]) == (503, True)
        assert (await one.delete()).status == 200
        assert (await gateway.front("/p").initialize()).id != one.id


@pytest.mark.parametrize("outcome", [Err(-32601), Err(-32602), Err(-32000), None], ids=["601", "602", "000", "silent"])
async def test_a_child_that_does_not_know_the_probe_is_initialized(outcome: Err | None) -> None:
    async with Puppets() as puppets, running({"p": puppets.entry(timeouts={"probe_s": 0.2})}) as gateway:
        puppets.on["server/discover"] = outcome if outcome is not None else never
        assert "name" in (await call(gateway, "modern")).said
        assert len(puppets.messages("server/discover")) == 1
        assert len(puppets.messages("initialize")) == 1
        assert puppets.messages("initialize")[0]["params"]["capabilities"] == {}
