"""A legacy session used over both replicas: whatever one is told holds at the other.

Specification: 2025-11-25 basic/transports (Session Management, Resumability and Redelivery), and the revisions before.
"""

import asyncio
import json
from functools import partial

import pytest

from tests.asks.test_subscriptions import SUBSCRIBABLE, listening_to
from tests.door import Door
from tests.edge.process import until as settled
from tests.fleet import Fleet, at, fleet
from tests.gateway_process import GatewayProcess
from tests.peers import LISTEN, LegacyUpstream, ModernUpstream, text
from tests.raw_front import Open, Session, notification, request
from tests.scrape import settled as counted
from tests.scrape import value
from tests.scripted import Call, Json
from tests.stdio.puppets import Puppet, Puppets
from tests.valkey import started, until

ERAS = pytest.mark.parametrize("era", ["legacy", "modern"])
LIST_CHANGED = "notifications/tools/list_changed"
META_LEVEL = "io.modelcontextprotocol/logLevel"


def replicas(door: Door) -> list[GatewayProcess]:
    assert isinstance(door.gateway, Fleet)
    return list(door.gateway.replicas)


async def opened(door: Door, era: str) -> tuple[Session, Session]:
    """A new session, as each of the replicas has it."""
    one, other = replicas(door)
    session = await one.front(f"/{era}").initialize()
    return session, at(session, other)


@ERAS
async def test_a_session_that_one_replica_ends_is_404_at_the_other_at_once(door: Door, era: str) -> None:
    for _ in range(10):
        one, other = await opened(door, era)
        assert (await other.request("ping")).status == 200
        assert (await one.delete()).status == 200
        assert (await other.request("ping")).status == 404


async def test_a_level_that_one_replica_is_told_holds_at_the_other(door: Door) -> None:
    one, other = await opened(door, "modern")
    await other.request("tools/call", {"name": "t"})
    for level in ("warning", "debug", "error"):
        assert (await one.request("logging/setLevel", {"level": level})).result == {}
        await other.request("tools/call", {"name": "t"})
        assert door.modern.calls("tools/call")[-1].meta[META_LEVEL] == level


@ERAS
async def test_a_cancel_reaches_the_call_at_the_other_replica(door: Door, era: str) -> None:
    async def never(call: Call) -> None:
        await call.stream()
        await call.stay()
        call.close()

    upstream = door.upstream(era)
    upstream.on["tools/call"] = never
    one, other = await opened(door, era)
    pending = asyncio.create_task(one.request("tools/call", {"name": "t"}, ident="mine"))
    await upstream.seen("tools/call")
    assert (await other.notify("notifications/cancelled", {"requestId": "mine"})).status == 202
    assert (await pending).finals == []
    if era == "legacy":
        [cancel] = await upstream.seen("notifications/cancelled")
        assert cancel.params["requestId"] == upstream.calls("tools/call")[0].id


@ERAS
async def test_a_stream_is_resumed_at_the_other_replica_with_nothing_lost_or_twice(door: Door, era: str) -> None:
    go_on = asyncio.Event()

    async def tool(call: Call) -> Json:
        token = call.seen.meta["progressToken"]
        for progress in range(1, 7):
            if progress == 4:
                await go_on.wait()
            await call.notify("notifications/progress", {"progressToken": token, "progress": progress})
        return text("done")

    door.upstream(era).on["tools/call"] = tool
    one, other = await opened(door, era)
    params = {"name": "t", "_meta": {"progressToken": "p"}}
    async with one.open("tools/call", params) as stream:
        last = await numbered(stream, 2)
    go_on.set()
    async with other.get({"Last-Event-ID": last}) as rest:
        assert rest.status == 200
        again = await numbered(rest, 2)
    async with one.get({"Last-Event-ID": again}) as end:
        messages = await end.rest()
    assert [message["params"]["progress"] for message in messages[:-1]] == [5, 6]
    assert messages[-1]["result"]["content"][0]["text"] == "done"


async def numbered(stream: Open, count: int) -> str:
    """Reads so many messages; the id of the last."""
    last = ""
    while count:
        event = await stream.event()
        assert event is not None
        count -= bool(event.data)
        last = event.id or last
    return last


@ERAS
async def test_a_second_stream_at_the_other_replica_supersedes_the_first(door: Door, era: str) -> None:
    one, other = await opened(door, era)
    async with one.get() as first:
        await heard(door, era, one, first)
        async with other.get() as second:
            assert await first.rest() == []
            await heard(door, era, one, second)
            async with one.get() as third:
                assert await second.rest() == []
                await heard(door, era, one, third)


@ERAS
async def test_of_streams_that_are_opened_at_both_replicas_at_once_one_stays(door: Door, era: str) -> None:
    for _ in range(4):
        one, other = await opened(door, era)
        async with one.get() as first, asyncio.timeout(60):
            waiting = [asyncio.create_task(stream_of(session)) for session in (one, other)]
            assert await first.rest() == []
            done, pending = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            assert (len(done), len(pending)) == (1, 1), "one of them ends"
            await one.delete()
            await asyncio.gather(*waiting)


async def stream_of(session: Session) -> None:
    async with session.get() as stream:
        await stream.rest()


async def heard(door: Door, era: str, session: Session, stream: Open) -> None:
    """What the upstream tells the session comes on this stream, once."""
    if era == "modern":
        await door.modern.when(lambda: len(door.modern.listeners) == 1)
        await door.modern.push(LIST_CHANGED, {})
    else:
        assert (await session.request("tools/call", {"name": "t"})).status == 200
        upstream = door.legacy.calls("tools/call")[-1].session
        await door.legacy.push({"jsonrpc": "2.0", "method": LIST_CHANGED}, upstream)
    message = await stream.message()
    assert message is not None
    assert message["method"] == LIST_CHANGED


async def test_subscriptions_that_come_to_both_replicas_at_once_are_all_heard_on_the_one_stream() -> None:
    async with ModernUpstream(capabilities=SUBSCRIBABLE) as upstream, fleet({"u": upstream}) as two:
        one = await two.replicas[0].front("/u").initialize()
        other = at(one, two.replicas[1])
        async with one.get():
            await upstream.when(lambda: listening_to(upstream))
            uris = [f"note://{number}" for number in range(8)]
            asked = [
                (one, other)[number % 2].request("resources/subscribe", {"uri": uri}, ident=number)
                for number, uri in enumerate(uris)
            ]
            assert [answer.final.get("result") for answer in await asyncio.gather(*asked)] == [{}] * 8
            await upstream.when(lambda: [sorted(each) for each in listening_to(upstream)] == [uris])
            assert (await other.request("resources/unsubscribe", {"uri": uris[0]})).result == {}
            await upstream.when(lambda: [sorted(each) for each in listening_to(upstream)] == [uris[1:]])
        assert upstream.calls(LISTEN)


async def test_a_lost_session_is_healed_once_for_both_replicas() -> None:
    async with LegacyUpstream() as upstream, fleet({"u": (upstream, {"heal": True})}) as two:
        one = await two.replicas[0].front("/u").initialize()
        other = at(one, two.replicas[1])
        for _ in range(2):
            upstream.live.clear()
            upstream.reset()
            asked = [(one, other)[n % 2].request("tools/call", {"name": "t"}, ident=n) for n in range(6)]
            answers = await asyncio.gather(*asked)
            assert all("result" in answer.final for answer in answers), answers
            assert len({seen.session for seen in upstream.calls("tools/call") if seen.session in upstream.live}) == 1
            await only_one(upstream)


async def test_a_session_that_is_opened_late_by_both_replicas_at_once_is_one() -> None:
    rules = [{"method": "tools/call", "upstream": "late"}]
    routes = [{"path": "/u", "rules": rules, "default": "first"}]
    async with LegacyUpstream() as first, LegacyUpstream() as late:
        behind = {"first": (first, {"era": "legacy"}), "late": (late, {"era": "legacy"})}
        async with fleet(behind, routes=routes) as two:
            await late.seen("notifications/initialized", 2)  # each has learnt what it offers
            for _ in range(3):
                late.reset()
                late.live.clear()
                one = await two.replicas[0].front("/u").initialize()
                other = at(one, two.replicas[1])
                asked = [(one, other)[n % 2].request("tools/call", {"name": "t"}, ident=n) for n in range(4)]
                assert all("result" in answer.final for answer in await asyncio.gather(*asked))
                assert len({seen.session for seen in late.calls("tools/call")}) == 1
                await only_one(late)
                before = late.methods().index("tools/call")
                used = late.calls("tools/call")[0].session
                told = [s.session for s in late.requests[:before] if s.method == "notifications/initialized"]
                assert used in told, "the session was told initialized before anybody used it"


async def only_one(upstream: LegacyUpstream) -> None:
    """One session is left, and each was told `initialized` once."""
    await settled(lambda: len(upstream.live) == 1)
    told = [seen.session for seen in upstream.calls("notifications/initialized")]
    assert len(told) == len(set(told))


# commands: the process is one replica's, and both serve its sessions


async def slow(child: Puppet, message: Json) -> Json:
    token = (message["params"].get("_meta") or {}).get("progressToken")
    if token is not None:
        child.say({"method": "notifications/progress", "params": {"progressToken": token, "progress": 1}})
    return text(message["params"]["name"])


@pytest.mark.parametrize("scope", ["shared", "session"])
async def test_a_commands_session_is_used_through_both_replicas(scope: str) -> None:
    async with Puppets() as puppets, fleet({"p": puppets.entry(scope=scope)}) as two:
        puppets.on["tools/call"] = slow
        for owner in (0, 1):
            one = await two.replicas[owner].front("/p").initialize("2025-03-26")
            other = at(one, two.replicas[1 - owner])
            for session in (one, other):
                answer = await session.request("tools/call", {"name": "x", "_meta": {"progressToken": "p"}}, ident="a")
                assert (answer.said, answer.final["id"]) == ("x", "a")
                assert [note["params"]["progressToken"] for note in answer.notes] == ["p"]
                batch = [
                    request("tools/call", {"name": "b1"}, ident=1),
                    notification("notifications/roots/list_changed"),
                    request("tools/list", ident=2),
                    request("ping", ident=3),
                ]
                answers = {final["id"]: final for final in (await session.post(batch)).finals}
                assert answers.keys() == {1, 2, 3}
                assert answers[1]["result"]["content"][0]["text"] == "b1"
            [child] = {
                c.pid: c for c in puppets.children if any(m["params"]["name"] == "b1" for m in c.calls("tools/call"))
            }.values()
            async with other.get() as stream:
                assert stream.status == 200
                assert (await other.request("resources/subscribe", {"uri": f"note://{owner}"})).result == {}
                child.say({"method": "notifications/resources/updated", "params": {"uri": f"note://{owner}"}})
                assert (await stream.message() or {})["params"]["uri"] == f"note://{owner}"
                async with one.get() as second:
                    assert await stream.rest() == []
                    child.say({"method": LIST_CHANGED})
                    assert (await second.message() or {})["method"] == LIST_CHANGED
            assert (await other.delete()).status == 200
            assert ((await one.request("ping")).status, (await other.request("ping")).status) == (404, 404)
            if scope == "session":
                await puppets.when(partial(getattr, child, "gone"))
            for each in puppets.children:
                each.lines.clear()


async def test_a_commands_call_that_is_called_off_is_counted_so_at_the_replica_that_its_client_came_to() -> None:
    async def never(_child: Puppet, _message: Json) -> None:
        """Answers nothing."""

    async with Puppets() as puppets, fleet({"p": puppets.entry(scope="session")}, admin="127.0.0.1:0") as two:
        puppets.on["tools/call"] = never
        one = await two.replicas[0].front("/p").initialize()
        other = at(one, two.replicas[1])
        pending = asyncio.create_task(other.request("tools/call", {"name": "t"}, ident="mine"))
        await puppets.call("tools/call")
        assert (await one.notify("notifications/cancelled", {"requestId": "mine"})).status == 202
        assert (await pending).finals == []
        name, labels = "mcp_server_operation_duration_seconds_count", {"mcp_method_name": "tools/call"}
        samples = await counted(two.replicas[1], name, 1, **labels)
        assert value(samples, name, error_type="cancelled", **labels) == 1


async def test_a_commands_session_after_the_death_of_the_replica_that_ran_it() -> None:
    """A process of its own has ended with it; the common one has an equal at each replica."""
    with started() as server, server.admin() as store:
        async with Puppets() as puppets:
            behind = {scope: puppets.entry(scope=scope) for scope in ("shared", "session")}
            async with fleet(behind, store=server.url) as two:
                sessions = {scope: await two.replicas[0].front(f"/{scope}").initialize() for scope in behind}
                for session in sessions.values():
                    assert "x" in (await at(session, two.replicas[1]).request("tools/call", {"name": "x"})).said
                await two.replicas[0].kill()
                await asyncio.to_thread(until, lambda: len(list(store.scan_iter("*:replica:*"))) == 1)
                await two.start_again(0)
                for replica in two.replicas[::-1]:
                    answer = await at(sessions["shared"], replica).request("tools/call", {"name": "y"})
                    assert json.loads(answer.said)["name"] == "y"
                    answer = await at(sessions["session"], replica).request("tools/call", {"name": "y"})
                    assert (answer.status, answer.code) == (404, -32001)
                async with at(sessions["shared"], two.replicas[0]).get() as stream:
                    subscribing = at(sessions["shared"], two.replicas[1]).request(
                        "resources/subscribe", {"uri": "note://1"}
                    )
                    assert (await subscribing).result == {}
                    for child in puppets.children:
                        if child.calls("resources/subscribe"):
                            child.say({"method": "notifications/resources/updated", "params": {"uri": "note://1"}})
                    assert (await stream.message() or {})["params"]["uri"] == "note://1"
                anew = await two.front("/session").initialize()
                for _ in range(2):
                    assert "z" in (await anew.request("tools/call", {"name": "z"})).said
