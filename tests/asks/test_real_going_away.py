"""Client, gateway and real servers each go away in mid-ask: what the others see, and that nothing is left behind.

Specification: 2026-07-28 basic/patterns/{mrtr,cancellation}, basic/transports/stdio; 2025-11-25 basic/transports,
basic/utilities/cancellation. What misbehaves below HTTP is in `test_going_away.py`.
"""

import asyncio
import contextlib
import json
import os
import signal
import tempfile
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from tests.asks.real_peers import (
    ADMIN,
    CHILDREN,
    COMMANDS,
    GOOD,
    LEGACY,
    METHOD,
    MODERN,
    SAY,
    House,
    Sessions,
    answers_to,
    asks,
    behind,
    child,
    heard,
    is_in,
    process,
)
from tests.asks.talk import EVERYTHING, FOREIGN_STATE, Modern, entries, next_ask
from tests.edge.process import until
from tests.gateway_process import GatewayProcess, running, settings
from tests.http_wire import DEADLINE_S
from tests.raw_front import Answer, Open, request
from tests.scrape import gauges
from tests.scripted import Json
from tests.stdio.host import launched

HELD = (
    "mcp_front_door_tasks",
    "mcp_front_door_calls_parked",
    "mcp_front_door_exchanges_kept",
    "mcp_front_door_streams",
    "process_open_fds",
)


@asynccontextmanager
async def counted(at: House) -> AsyncIterator[None]:
    """In the end the gateway holds no more tasks, calls, streams and descriptors than in the beginning."""
    before = await gauges(at.gateway, *HELD)
    yield
    after: list[float] = []
    try:
        async with asyncio.timeout(DEADLINE_S):
            while not after or any(now > then for now, then in zip(after, before, strict=True)):
                after = await gauges(at.gateway, *HELD)
    except TimeoutError:
        raise AssertionError(f"{HELD} were {before} and are {after}") from None


async def all_given(client: Modern) -> Answer:
    """A whole call, every ask answered well."""
    answer = await client.call()
    while answer.final.get("result", {}).get("resultType") == "input_required":
        answer = await client.retry(answer, answers_to(entries(answer)))
    return answer


async def left(posting: Awaitable[Answer], once: Awaitable[Json]) -> None:
    """Posts, and closes the connection when that has happened."""
    task = asyncio.ensure_future(posting)
    await once
    task.cancel()
    await asyncio.wait({task})


# the client goes


@pytest.mark.parametrize("route", [*LEGACY, *MODERN])
@pytest.mark.parametrize("kinds", [[], ["form", "sampling"]], ids=["before it is asked", "in its second retry"])
async def test_a_modern_client_that_leaves_cancels_its_call_in_the_server(
    at: House, label: str, route: str, kinds: list[str]
) -> None:
    await all_given(Modern(at.front(route), asks(f"warm-up of {label}", *kinds)))
    async with counted(at):
        client = Modern(at.front(route), asks(label, *kinds, hold=True))
        if not kinds:
            await left(client.call(), at.witness.told(began=label))
        else:
            answer = await client.call()
            for _ in kinds[1:]:
                answer = await client.retry(answer, answers_to(entries(answer)))
            last = at.witness.told(heard=kinds[-1], by=label)
            await left(client.retry(answer, answers_to(entries(answer))), last)
        await at.witness.told(ended=label, how="cancelled")
    assert len(at.witness.lines(began=label)) == 1


@pytest.mark.parametrize("route", [*MODERN, *CHILDREN])
async def test_a_legacy_client_that_ends_its_session_in_mid_ask_ends_its_call_in_the_server(
    at: House, label: str, route: str
) -> None:
    """And where it has a process of its own, that process."""
    async with counted(at):
        session = await at.front(route).initialize(capabilities=EVERYTHING)
        async with session.open("tools/call", asks(label, "form")) as opened:
            ask = await next_ask(opened)
            assert (await session.delete()).status == 200
            assert [message for message in await opened.rest() if "method" not in message] == []
        assert (await session.reply(ask["id"], {"result": GOOD["form"]})).status == 404
        if route in CHILDREN:
            await at.witness.gone(at.witness.process_of(label))
    assert at.witness.lines(by=label) == []
    assert len(at.witness.lines(asks=label)) == (0 if route in CHILDREN else 1)


@pytest.mark.parametrize("route", [*MODERN, *CHILDREN])
async def test_a_legacy_client_that_loses_its_stream_answers_and_fetches_the_result(
    at: House, sessions: Sessions, label: str, route: str
) -> None:
    session = await sessions.at(route)
    async with session.open("tools/call", asks(label, "form"), ident="c") as opened:
        while (event := await opened.event()) is not None and not event.data:
            pass
        opened.reset()
    assert event is not None
    assert (await session.reply(event.json["id"], {"result": GOOD["form"]})).status == 202
    async with session.get({"Last-Event-ID": str(event.id)}) as resumed:
        [final] = await resumed.rest()
    assert final["id"] == "c"
    assert is_in([{"result": GOOD["form"]}], heard(final))


# the server goes


async def killed(at: House, pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    await at.witness.gone(pid)


@pytest.mark.parametrize("route", CHILDREN)
@pytest.mark.parametrize("answered", [False, True], ids=["while the client thinks", "when it has answered"])
async def test_a_child_that_dies_is_an_error_of_its_parked_call_and_the_next_has_another(
    at: House, label: str, route: str, answered: bool
) -> None:
    await all_given(Modern(at.front(route), asks(f"warm-up of {label}", "form")))
    async with counted(at):
        client = Modern(at.front(route), asks(label, "form", hold=True))
        asked = await client.call()
        if answered:
            retry = asyncio.ensure_future(client.retry(asked, answers_to(entries(asked))))
            await at.witness.told(heard="form", by=label)
            await killed(at, at.witness.process_of(label))
            answer = await retry
        else:
            await killed(at, at.witness.process_of(label))
            answer = await client.retry(asked, answers_to(entries(asked)))
        assert (answer.status, answer.code) == (502, -32603)
        assert "process has ended" in answer.error["message"]
        again = await client.retry(asked, answers_to(entries(asked)))
        assert (again.status, again.code) == (400, FOREIGN_STATE)
        assert (await Modern(at.front(route), SAY).call()).said == "say"
    assert len(at.witness.lines(began=label)) == 1, "it may have run"


@pytest.mark.parametrize("route", CHILDREN)
async def test_a_legacy_client_whose_child_dies_in_mid_ask_has_an_error_and_no_session_any_more(
    at: House, label: str, route: str
) -> None:
    async with counted(at):
        session = await at.front(route).initialize(capabilities=EVERYTHING)
        async with session.open("tools/call", asks(label, "form")) as opened:
            ask = await next_ask(opened)
            await killed(at, at.witness.process_of(label))
            final = (await opened.rest())[-1]
        assert final["error"]["code"] == -32603
        await session.reply(ask["id"], {"result": GOOD["form"]})
        gone = await session.request("tools/call", SAY)
        assert (gone.status, gone.code) == (404, -32001)
        assert (await session.delete()).status == 200  # forgets the answers that could have been fetched


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def mortal(shared_house: House) -> AsyncIterator[House]:
    """A child of 2026-07-28 for each test that has one killed: the second death in a row costs a pause."""
    some = {name: child("py2", shared_house.witness, era="modern") for name in ("m1", "m2", "l1", "l2")}
    async with running(some, **ADMIN) as gateway:
        yield House(gateway, shared_house.witness, {})


async def killed_and_noticed(at: House, route: str, pid: int) -> None:
    await killed(at, pid)
    await until(lambda: f"upstream {route}: its process has ended" in at.gateway.stderr())


@pytest.mark.parametrize("route", ["m1", "l1"], ids=["a modern client", "a legacy client"])
async def test_a_modern_child_that_dies_between_two_rounds_is_replaced_and_the_call_goes_on(
    mortal: House, label: str, route: str
) -> None:
    """What it knew of the call is in its `requestState`, as the specification wants it."""
    front, asked = mortal.front(route), mortal.witness.told(asks=label)
    if route == "m1":
        client = Modern(front, asks(label, "form"))
        answer = await client.call()
        await killed_and_noticed(mortal, route, (await asked)["by_pid"])
        final = (await client.retry(answer, answers_to(entries(answer)))).final
    else:
        session = await front.initialize(capabilities=EVERYTHING)
        async with session.open("tools/call", asks(label, "form")) as opened:
            ask = await next_ask(opened)
            await killed_and_noticed(mortal, route, (await asked)["by_pid"])
            await session.reply(ask["id"], {"result": GOOD["form"]})
            [final] = await opened.rest()
    assert is_in([{"result": GOOD["form"]}], heard(final))
    await mortal.nothing_left()


@pytest.mark.parametrize("route", ["m2", "l2"], ids=["a modern client", "a legacy client"])
async def test_a_modern_child_that_dies_while_it_runs_an_answered_call_is_an_error(
    mortal: House, label: str, route: str
) -> None:
    front, params = mortal.front(route), asks(label, "form", hold=True)
    if route == "m2":
        client = Modern(front, params)
        asked = await client.call()
        retry = asyncio.ensure_future(client.retry(asked, answers_to(entries(asked))))
        await mortal.witness.told(heard="form", by=label)
        await killed(mortal, mortal.witness.process_of(label))
        final = (await retry).final
    else:
        session = await front.initialize(capabilities=EVERYTHING)
        async with session.open("tools/call", params) as opened:
            ask = await next_ask(opened)
            await session.reply(ask["id"], {"result": GOOD["form"]})
            await mortal.witness.told(heard="form", by=label)
            await killed(mortal, mortal.witness.process_of(label))
            [final] = await opened.rest()
    assert final["error"]["code"] == -32603
    assert "process has ended" in final["error"]["message"]
    assert len(mortal.witness.lines(began=label)) == 1, "it may have run"
    await mortal.nothing_left()


@pytest.mark.parametrize("name", ["py1", "ts1"])
async def test_a_server_by_address_that_dies_is_an_error_of_the_call_that_it_has_parked(
    shared_house: House, label: str, name: str
) -> None:
    witness = shared_house.witness
    async with process(COMMANDS[name], witness) as url:
        async with running({"up": {"url": url, "era": "legacy"}}, **ADMIN) as gateway:
            at = House(gateway, witness, {})
            client = Modern(at.front("up"), asks(label, *METHOD, together=True))
            asked = await client.call()
            await killed(at, witness.process_of(label))
            answer = await client.retry(asked, {})
            while "result" in answer.final:  # not noticed yet
                answer = await client.retry(answer, {})
            assert answer.status in (502, 503)
            assert answer.code == -32603
            await at.nothing_left()


# the gateway goes

STOPPED = ["py1", "ts1", "py1-stdio", "ts1-stdio", "py2-modern-stdio"]


@asynccontextmanager
async def asked_everywhere(at: House, label: str, routes: Sequence[str]) -> AsyncIterator[dict[str, Open]]:
    """On each route a modern client has been asked, and told to come back; and a legacy one is, on its stream, where
    the server's era or process is not its client's own."""

    async def asked_later(route: str) -> None:
        entries(await Modern(at.front(route), asks(f"{label} {route} modern", "form")).call())

    async def asked(route: str) -> tuple[str, Open]:
        session = await at.front(route).initialize(capabilities=EVERYTHING)
        posting = session.open("tools/call", asks(f"{label} {route} legacy", "form"))
        opened = await stack.enter_async_context(posting)
        await next_ask(opened)
        return route, opened

    async with contextlib.AsyncExitStack() as stack:
        await asyncio.gather(*map(asked_later, routes))
        yield dict(await asyncio.gather(*(asked(route) for route in routes if route.endswith("stdio"))))


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=lambda how: how.name)
async def test_a_gateway_that_goes_takes_its_children_along_and_cancels_what_it_can(
    shared_house: House, label: str, how: signal.Signals
) -> None:
    witness = shared_house.witness
    upstreams = behind(shared_house.urls, witness, label)
    # servers by address on these SDKs do not notice that a killed gateway is gone: there is nobody to tell them
    routes = [route for route in STOPPED if how is signal.SIGTERM or route.endswith("stdio")]
    configuration = settings({name: upstreams[name] for name in routes}, grace_s=0)
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "gateway.yaml"
        file.write_text(json.dumps(configuration))
        gateway = await GatewayProcess.start(["serve", "-c", str(file)], Path(name))
        try:
            async with asked_everywhere(House(gateway, witness, {}), label, routes) as streams:
                gateway.process.send_signal(how)
                for opened in streams.values():
                    with contextlib.suppress(EOFError, ConnectionError):
                        assert [message for message in await opened.rest() if "result" in message] == []
                await witness.when(lambda: not witness.children(label))
        finally:
            if how is signal.SIGTERM:
                await gateway.stop()
            else:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(gateway.process.pid, signal.SIGKILL)
                await gateway.process.wait()
    if how is signal.SIGTERM:
        await witness.when(lambda: not witness.running(label))
        ended = [line for line in witness.said if str(line.get("ended", "")).startswith(label)]
        assert {line["how"] for line in ended} == {"cancelled"}
        assert {line["ended"] for line in ended} >= {f"{label} {route} modern" for route in ("py1", "ts1")}
    assert not any(str(line.get("by", "")).startswith(label) for line in witness.said)


@pytest.mark.parametrize(
    ("server", "front_era"),
    [("py1", "modern"), ("py1-stdio", "modern"), ("ts1-stdio", "legacy"), ("py2-modern-stdio", "legacy")],
)
async def test_a_host_that_closes_its_gateway_in_mid_ask_leaves_nothing(
    shared_house: House, label: str, tmp_path: Path, server: str, front_era: str
) -> None:
    """`mcp-front-door stdio` ends in order and with its child; a server by address is told that nobody waits."""
    witness = shared_house.witness
    arguments = ["--upstream", shared_house.urls["py1"]]
    if server.endswith("-stdio"):
        env = [f"{name}={value}" for name, value in witness.env(label).items()]
        arguments = ["--", "env", *env, *COMMANDS[server.partition("-")[0]], "stdio"]
    era = "modern" if "modern" in server else "legacy"
    async with launched(tmp_path, "--era", era, *arguments) as host:
        if front_era == "modern":
            answer = await host.modern("tools/call", asks(label, "form"), capabilities=EVERYTHING)
            assert answer["result"]["resultType"] == "input_required"
        else:
            await host.initialize(capabilities=EVERYTHING)
            host.write(request("tools/call", asks(label, "form"), ident="c"))
            await host.until(method="elicitation/create")
        assert [message for message in await host.end() if "result" in message] == []
    await witness.when(lambda: not witness.children(label) and not witness.running(label))
    assert witness.lines(by=label) == []
