"""Tools that ask their client for something, through the gateway.

The legacy ways: on the call's own stream, and on the session's GET stream, where the TypeScript SDK 1.x and the
`roots/list` of the Python SDK 1.x put them. The modern way: an `input_required` result, answered by a retry. Each
client's run is compared with its own direct run: what it was asked, what came of it. Where the eras differ, with that
of a client of the upstream's era.
"""

import json
from typing import Any

import pytest

from tests.matrix.clients import CLIENTS, Client
from tests.matrix.compare import differences
from tests.matrix.eras import offences
from tests.matrix.plans import ASKS
from tests.matrix.stages import ERA, REFERENCE, Run, Stage
from tests.matrix.tap import Exchange
from tests.matrix.test_matrix import outcome

Json = dict[str, Any]


def pairs(*, same_era: bool) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        ("upstream", "client"),
        [
            pytest.param(upstream, client, id=f"{client}-x-{upstream}")
            for upstream in ASKS
            for client in CLIENTS
            if (CLIENTS[client].era == ERA[upstream]) is same_era
        ],
    )


def as_shown(document: Json) -> list[Json]:
    """What the SDK showed its caller of the asks: kinds and parameters, without what one era alone has in them."""
    found: list[Json] = []
    for ask in document["asked"]:
        params = {key: value for key, value in (ask.get("params") or {}).items() if key not in ("_meta", "mode")}
        if (shown := {"kind": ask["kind"], "params": params}) not in found:
            found.append(shown)
    return sorted(found, key=repr)


def answers_told(document: Json) -> Json:
    """What the tools made of the answers; a modern server's also says its state, which is its own affair."""
    told: Json = {}
    for step, outcome_of in document["steps"].items():
        content = outcome_of["ok"]["content"]
        told[step] = [_answers(block["text"]) for block in content]
    return told


def _answers(text: str) -> Any:
    try:
        said = json.loads(text)
    except ValueError:
        return text
    return said.get("answers", said) if isinstance(said, dict) else said


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


@pairs(same_era=True)
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


@pytest.mark.field("F1", "AB10")
@pairs(same_era=False)
def test_a_tool_that_asks_a_client_of_the_other_era_gets_its_answers(on_stage: Stage, client: str) -> None:
    plan = ASKS[on_stage.name]
    reference, through = (
        run.result()
        for run in (
            on_stage.direct(REFERENCE[on_stage.era], plan, asks=True),
            on_stage.through(CLIENTS[client], plan, asks=True),
        )
    )
    assert all("ok" in told for told in through.document["steps"].values()), through.document["steps"]
    assert differences(answers_told(reference.document), answers_told(through.document)) == []
    wanted, shown = as_shown(reference.document), as_shown(through.document)
    if on_stage.name == "everything":  # it remembers the roots of its session, which modern calls borrow one by one
        wanted, shown = ([ask for ask in asks if ask["kind"] != "roots"] for asks in (wanted, shown))
    assert differences(wanted, shown) == []
    assert {ask["kind"] for ask in wanted} >= {"elicitation", "sampling"}
    assert offences(on_stage.name, on_stage.back.exchanges) == []
    if on_stage.era == "legacy":
        assert calls_before_listening(on_stage.back.exchanges) == []


OTHERWISE: list[Json] = [{"action": "decline"}, {"action": "cancel"}]
CROSSED = [("asks-on-get", "py2-auto"), ("asks-on-get", "ts2-auto"), ("sessions-only", "py2-auto")]
CROSSED += [("modern-only", "py1"), ("modern-only", "ts1"), ("modern-only", "py2-legacy")]


@pytest.mark.parametrize("answer", OTHERWISE, ids=[one["action"] for one in OTHERWISE])
@pytest.mark.parametrize(
    ("upstream", "client"), CROSSED, ids=[f"{client}-x-{upstream}" for upstream, client in CROSSED]
)
def test_a_user_who_does_not_accept_is_told_of_across_the_eras(on_stage: Stage, client: str, answer: Json) -> None:
    plan, asks = ASKS[on_stage.name][:1], {"elicitation": answer}
    reference = on_stage.direct(REFERENCE[on_stage.era], plan, asks=asks)
    through = on_stage.through(CLIENTS[client], plan, asks=asks).result()
    told = answers_told(through.document)
    assert differences(answers_told(reference.result().document), told) == []
    assert told["call ask"][0]["elicitation"] == answer
