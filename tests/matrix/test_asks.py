"""Tools that ask their client for something, with client and upstream of one era, through the gateway.

The legacy ways: on the call's own stream, and on the session's GET stream, where the TypeScript SDK 1.x and the
`roots/list` of the Python SDK 1.x put them. The modern way: an `input_required` result, answered by a retry. Each
client's run is compared with its own direct run: what it was asked, what came of it.
"""

from typing import Any

import pytest

from tests.matrix.clients import CLIENTS, Client
from tests.matrix.compare import differences
from tests.matrix.eras import offences
from tests.matrix.plans import ASKS
from tests.matrix.stages import ERA, Run, Stage
from tests.matrix.tap import Exchange
from tests.matrix.test_matrix import outcome

Json = dict[str, Any]

every_same_era_pair = pytest.mark.parametrize(
    ("upstream", "client"),
    [
        pytest.param(upstream, client, id=f"{client}-x-{upstream}")
        for upstream in ASKS
        for client in CLIENTS
        if CLIENTS[client].era == ERA[upstream]
    ],
)


def asked_on_the_wire(run: Run) -> list[Json]:
    """The requests that came to the client on its streams, whichever stream, without their ids.

    The same one asked again counts once: server-everything lists the roots by a timer and before it needs them.
    """
    asks: list[Json] = []
    for exchange in run.exchanges:
        for message in exchange.messages:
            ask = {"method": message.get("method"), "params": message.get("params")}
            if "method" in message and "id" in message and message["method"] != "ping" and ask not in asks:
                asks.append(ask)
    return sorted(asks, key=repr)


def calls_before_listening(exchanges: list[Exchange]) -> list[str]:
    """The sessions in which a call came before the session's GET stream."""
    first: dict[str, str] = {}
    for exchange in exchanges:
        if exchange.method == "GET" or exchange.rpc_method == "tools/call":
            first.setdefault(exchange.headers["mcp-session-id"], exchange.method)
    return [session for session, method in first.items() if method != "GET"]


@every_same_era_pair
def test_a_tool_that_asks_gets_its_answers(on_stage: Stage, client: str) -> None:
    who: Client = CLIENTS[client]
    plan = ASKS[on_stage.name]
    started = on_stage.direct(who, plan, asks=True), on_stage.through(who, plan, asks=True)
    direct, through = (run.result() for run in started)

    assert differences(direct.document["steps"], through.document["steps"]) == []
    assert all("ok" in told for told in through.document["steps"].values())
    kinds = {ask["kind"] for ask in through.document["asked"]}
    assert kinds == {"elicitation", "sampling", "roots"}
    assert differences(asked_on_the_wire(direct), asked_on_the_wire(through)) == []
    wanted, got = direct.answers(), through.answers()
    assert got.keys() == wanted.keys()
    for key, exchanges in wanted.items():
        assert differences([outcome(e) for e in exchanges], [outcome(e) for e in got[key]]) == [], key
    assert offences(on_stage.name, on_stage.back.exchanges) == []
    if on_stage.era == "legacy":
        # a server on the TypeScript SDK 1.x drops what it sends before somebody listens
        assert calls_before_listening(on_stage.back.exchanges) == []
