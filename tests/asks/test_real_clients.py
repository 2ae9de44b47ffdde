"""Real servers ask legacy clients through the gateway: a modern one, by address and as a child, and children that speak
sessions. The official clients of the session era give every answer, a raw one those that they never would.

Specification: 2026-07-28 basic/patterns/mrtr; 2025-11-25 client/{elicitation,sampling,roots}. A client's error fails
the call that it was asked for: towards a modern server here, towards one with sessions there.
"""

import asyncio
import json
import os
import signal
import sys
from typing import Any

import pytest
import pytest_asyncio

from tests.asks.real_peers import (
    CHILDREN,
    COMMANDS,
    GOOD,
    HERE,
    METHOD,
    MODERN,
    OUTCOMES,
    REFUSED,
    SAY,
    House,
    Sessions,
    asks,
    heard,
    is_in,
    kind_of,
)
from tests.asks.talk import next_ask
from tests.matrix.machinery import DRIVER_DEADLINE_S, NODE, SDK1
from tests.raw_front import Open, Session
from tests.scripted import Json

CLIENTS = {"py1": [SDK1, str(HERE / "client_py1.py")], "ts1": [NODE, str(HERE / "client_ts1.mjs")]}
PEERS = [*MODERN, "the gateway's own stdio"]
ANSWERS: dict[str, dict[str, Json]] = {
    **OUTCOMES,
    **{f"an error to {kind}": {**GOOD, kind: {"error": REFUSED}} for kind in METHOD},
}
"""The answers of one call by kind. An error comes as the last one."""


def params_of(label: str, name: str) -> Json:
    refused = name.removeprefix("an error to ")
    kinds = [*(kind for kind in ANSWERS[name] if kind != refused), *([refused] if refused in METHOD else [])]
    return asks(label, *kinds)


async def run(at: House, client: str, peer: str) -> dict[str, Json]:
    """What came of each row of the table, from one run of an official client."""
    where: Any = at.url(peer)
    if peer not in MODERN:
        command = [*(f"{name}={value}" for name, value in at.witness.env().items()), *COMMANDS["py2"], "stdio"]
        where = [sys.executable, "-m", "gateway", "stdio", "--era", "modern", "--", "env", *command]
    calls = [{"params": params_of(f"{client} {peer} {name}", name), "answers": ANSWERS[name]} for name in ANSWERS]
    started = await asyncio.create_subprocess_exec(
        *CLIENTS[client], stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, start_new_session=True
    )
    try:
        async with asyncio.timeout(DRIVER_DEADLINE_S):
            said, _ = await started.communicate(json.dumps({"peer": where, "calls": calls}).encode())
    finally:
        if started.returncode is None:
            os.killpg(started.pid, signal.SIGKILL)
            await started.wait()
    assert started.returncode == 0
    return dict(zip(ANSWERS, json.loads(said), strict=True))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def runs(shared_house: House) -> dict[tuple[str, str], dict[str, Json]]:
    """Every official client at every peer."""
    found = {}
    for peer in PEERS:
        both = await asyncio.gather(*(run(shared_house, client, peer) for client in CLIENTS))
        found |= dict(zip([(client, peer) for client in CLIENTS], both, strict=True))
    return found


@pytest.mark.field("F1")
@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("name", ANSWERS)
async def test_a_modern_server_hears_what_an_official_legacy_client_answers(
    at: House, runs: dict[tuple[str, str], dict[str, Json]], client: str, peer: str, name: str
) -> None:
    label = f"{client} {peer} {name}"
    outcome, params = runs[client, peer][name], params_of(label, name)["arguments"]
    assert outcome["asked"] == params["asks"], "each once, in the server's order"
    if name in OUTCOMES:
        told = [{"result": ANSWERS[name][kind]} for kind in params["asks"]]
        assert is_in(told, heard(outcome))
        await at.witness.told(ended=label, how="answered")
    else:
        error = outcome["error"]
        assert (error["code"], error["message"].removeprefix("MCP error -32055: ")) == (-32055, REFUSED["message"])
        assert at.witness.lines(began=label) == []
    assert len(at.witness.lines(asks=label)) == len(params["asks"]), "one round an ask, and none again"


# what no official client would do

every_route = pytest.mark.parametrize("route", [*MODERN, *CHILDREN])
every_kind = pytest.mark.parametrize("kind", METHOD)


async def asked(opened: Open, count: int) -> dict[str, Json]:
    """The next asks by their kinds."""
    found = [await next_ask(opened) for _ in range(count)]
    return {kind_of(ask): ask for ask in found}


async def reply(session: Session, ask: Json, outcome: Json) -> None:
    taken = await session.reply(ask["id"], outcome)
    assert (taken.status, taken.body) == (202, b"")


@every_route
@every_kind
async def test_a_clients_error_fails_the_call_or_is_heard_by_who_can_hear_it(
    at: House, sessions: Sessions, label: str, route: str, kind: str
) -> None:
    session = await sessions.at(route)
    async with session.open("tools/call", asks(label, kind), ident="c") as opened:
        [ask] = (await asked(opened, 1)).values()
        await reply(session, ask, {"error": REFUSED | {"data": {"x": [None]}}})
        [final] = await opened.rest()
    assert final["id"] == "c"
    if route in MODERN:
        assert final["error"] == REFUSED | {"data": {"x": [None]}}
        assert len(at.witness.lines(asks=label)) == 1
    else:
        [told] = heard(final)
        assert (told["error"]["code"], told["error"]["message"][-5:]) == (REFUSED["code"], REFUSED["message"])


@every_route
async def test_one_of_several_answers_is_heard_at_once_or_kept_until_the_round_is_whole(
    at: House, sessions: Sessions, label: str, route: str
) -> None:
    session = await sessions.at(route)
    async with session.open("tools/call", asks(label, *METHOD, together=True)) as opened:
        open_asks = await asked(opened, len(METHOD))
        for kind in reversed(METHOD):
            await reply(session, open_asks.pop(kind), {"result": GOOD[kind]})
            if route in CHILDREN:
                await at.witness.told(heard=kind, by=label)
                assert len(at.witness.lines(by=label)) == len(METHOD) - len(open_asks)
            elif open_asks:
                assert (await session.request("tools/call", SAY)).said == "say"
                assert len(at.witness.lines(asks=label)) == 1, "a round goes back whole"
        *_, final = await opened.rest()
    assert is_in([{"result": GOOD[kind]} for kind in METHOD], heard(final))


@every_route
@every_kind
async def test_the_first_of_two_answers_counts(
    at: House, sessions: Sessions, label: str, route: str, kind: str
) -> None:
    session = await sessions.at(route)
    async with session.open("tools/call", asks(label, kind, "form" if kind != "form" else "roots")) as opened:
        [first] = (await asked(opened, 1)).values()
        await reply(session, first, {"result": GOOD[kind]})
        await reply(session, first, {"error": REFUSED})
        [(other, second)] = (await asked(opened, 1)).items()
        await reply(session, first, {"error": REFUSED})
        await reply(session, second, {"result": GOOD[other]})
        *_, final = await opened.rest()
    await reply(session, second, {"error": REFUSED})
    assert is_in([{"result": GOOD[kind]}, {"result": GOOD[other]}], heard(final))
    await at.witness.told(ended=label, how="answered")
    assert len(at.witness.lines(heard=kind, by=label)) == 1


@every_route
@every_kind
async def test_an_answer_to_a_call_that_was_cancelled_is_dropped(
    at: House, sessions: Sessions, label: str, route: str, kind: str
) -> None:
    session = await sessions.at(route)
    async with session.open("tools/call", asks(label, kind), ident=label) as opened:
        [ask] = (await asked(opened, 1)).values()
        await session.notify("notifications/cancelled", {"requestId": label})
        assert [message for message in await opened.rest() if "method" not in message] == []
    if route in CHILDREN:
        await at.witness.told(ended=label, how="cancelled")
    await reply(session, ask, {"result": GOOD[kind]})
    assert (await session.request("tools/call", SAY)).said == "say"
    assert at.witness.lines(by=label) == []
    assert len(at.witness.lines(asks=label)) == (0 if route in CHILDREN else 1)


@pytest.mark.parametrize("route", CHILDREN)
async def test_an_answer_that_comes_when_the_server_has_given_up_is_dropped(
    at: House, sessions: Sessions, label: str, route: str
) -> None:
    session = await sessions.at(route)
    async with session.open("tools/call", asks(label, "form", "roots")) as opened:
        late = (await asked(opened, 1))["form"]
        at.witness.order(label, "give up")
        roots = (await asked(opened, 1))["roots"]
        await reply(session, late, {"result": GOOD["form"]})
        await reply(session, roots, {"result": GOOD["roots"]})
        final = (await opened.rest())[-1]
    assert is_in([{"gave": "up"}, {"result": GOOD["roots"]}], heard(final))
    assert (await session.request("tools/call", SAY)).said == "say"
