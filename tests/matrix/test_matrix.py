"""Every official client with every kind of upstream, through the gateway.

Each cell's answers are compared, raw JSON as it stood on the wire, with those of a direct run against the same
upstream by a client of the upstream's era; edits.py names every difference that there may be. The upstream's tap tells
what it saw.
"""

import copy
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from tests.matrix.clients import CLIENTS
from tests.matrix.compare import differences
from tests.matrix.edits import SERVER_INFO, Call, edited, told_of_time
from tests.matrix.eras import offences
from tests.matrix.plans import ASKS, ERRORS, PLANS, TOOL_ERRORS
from tests.matrix.stages import VERSION, Cell, Run, Stage, key_of
from tests.matrix.tap import Exchange

Json = dict[str, Any]

every_cell = pytest.mark.parametrize(
    ("upstream", "client"),
    [pytest.param(upstream, client, id=f"{client}-x-{upstream}") for upstream in PLANS for client in CLIENTS],
)
every_upstream = pytest.mark.parametrize("upstream", PLANS)
# a pinned client asks for no description, so it has none to compare
every_cell_that_asks_for_a_description = pytest.mark.parametrize(
    ("upstream", "client"),
    [
        pytest.param(upstream, client, id=f"{client}-x-{upstream}")
        for upstream in PLANS
        for client in CLIENTS
        if client != "py2-pinned"
    ],
)


def outcome(exchange: Exchange) -> Json:
    """A JSON-RPC answer without its envelope."""
    assert exchange.answer is not None
    return {key: exchange.answer[key] for key in ("result", "error") if key in exchange.answer}


def described(run: Run) -> Json:
    """What the server said of itself in the run: the result of `initialize` or `server/discover`."""
    said = [e.answer for e in run.exchanges if e.rpc_method in ("initialize", "server/discover") and e.answer]
    results: list[Json] = [answer["result"] for answer in said if "result" in answer]
    assert len(results) == 1, said
    return results[0]


def server_info(run: Run) -> Json:
    """The upstream's own name for itself, in a run of either era."""
    for exchange in run.exchanges:
        result = (exchange.answer or {}).get("result", {})
        found: Json | None = result.get("serverInfo") or result.get("_meta", {}).get(SERVER_INFO)
        if found:
            return found
    raise AssertionError("the server never named itself")


def notified(exchange: Exchange) -> list[Json]:
    """The notifications on a call's own stream; the token of progress is checked and taken out."""
    token = exchange.meta.get("progressToken")
    found = [copy.deepcopy(message) for message in exchange.messages if "method" in message]
    for message in found:
        if message["method"] == "notifications/progress":
            assert token is not None
            assert differences(token, message["params"].pop("progressToken", None)) == []
    return found


@every_cell
def test_the_client_is_the_official_one_and_speaks_its_era(cell: Cell) -> None:
    assert cell.run.document["sdk"][cell.client.sdk].startswith(cell.client.version)
    assert cell.run.document["negotiated"] == VERSION[cell.client.era]


@every_cell
def test_every_answer_equals_the_upstreams_own(cell: Cell, on_stage: Stage) -> None:
    wanted, got = cell.reference.answers(), cell.run.answers()
    assert got.keys() == wanted.keys()
    eras = (on_stage.era, cell.client.era)
    info = server_info(cell.reference)
    for key, direct in wanted.items():
        call = Call(direct[0].rpc_method or "", direct[0].params, info)
        expected = edited(outcome(direct[0]), call, eras)
        for exchange in got[key]:
            got_here = outcome(exchange)
            assert differences(told_of_time(expected, got_here), got_here) == [], key


@every_cell
def test_progress_and_log_messages_come_on_the_calls_own_stream(cell: Cell, on_stage: Stage) -> None:
    wanted, got = cell.reference.answers(), cell.run.answers()
    methods = set()
    for key, direct in wanted.items():
        for exchange in got[key]:
            assert differences(notified(direct[0]), notified(exchange)) == [], key
            methods |= {message["method"] for message in notified(exchange)}
    assert methods >= {"notifications/progress"} | (
        {"notifications/message"} if on_stage.name != "everything" else set()
    )


@every_cell
def test_the_clients_caller_gets_results_where_the_upstream_gave_results(cell: Cell, on_stage: Stage) -> None:
    steps, direct = cell.run.document["steps"], cell.reference.document["steps"]
    assert {step for step, told in steps.items() if "error" in told} == ERRORS[on_stage.name]
    for step, told in steps.items():
        if "error" in told:
            assert direct[step]["error"]["message"] in told["error"]["message"]
        elif step.startswith("list "):
            names = set(direct[step]["ok"]["names"])
            hidden = {"unroutable"} if cell.client.era == "modern" else set()
            assert set(told["ok"]["names"]) - hidden == names - hidden
        elif step.startswith("call "):
            assert told["ok"].get("isError", False) is direct[step]["ok"].get("isError", False), step
            assert (step not in TOOL_ERRORS) or told["ok"]["isError"], step


@every_cell_that_asks_for_a_description
def test_the_upstream_describes_itself_through_the_gateway(cell: Cell, on_stage: Stage) -> None:
    wanted, got = described(cell.reference), described(cell.run)
    capabilities = dict(wanted["capabilities"])
    if on_stage.era != cell.client.era:
        capabilities.pop("tasks", None)  # tasks of 2025-11-25 and of the modern extension are two protocols
    assert differences(capabilities, got["capabilities"]) == []
    assert got.get("instructions") == wanted.get("instructions")
    assert server_info(cell.run) == server_info(cell.reference)


@every_cell
def test_the_client_never_sees_an_upstreams_session_id(cell: Cell, on_stage: Stage) -> None:
    issued = {
        e.response_headers["mcp-session-id"] for e in on_stage.back.exchanges if "mcp-session-id" in e.response_headers
    }
    shown = {e.response_headers["mcp-session-id"] for e in cell.run.exchanges if "mcp-session-id" in e.response_headers}
    assert not issued & shown
    assert bool(shown) == (cell.client.era == "legacy")


@every_upstream
def test_an_upstream_sees_only_its_own_era(cells: list[Cell], on_stage: Stage) -> None:
    assert {cell.client.era for cell in cells} == {"modern", "legacy"}
    assert offences(on_stage.name, on_stage.back.exchanges) == []


@every_upstream
def test_each_call_is_executed_once(cells: list[Cell], on_stage: Stage) -> None:
    """But for the calls that ask: between the eras they are sent as often as there are rounds on either side."""
    assert len(on_stage.runs) >= len(cells)
    asking = {step["name"] for step in ASKS.get(on_stage.name, [])}

    def calls(exchanges: Iterable[Exchange]) -> Counter[str]:
        kinds = {"tools/call", "prompts/get", "completion/complete"}
        return Counter(key_of(e) for e in exchanges if e.rpc_method in kinds and e.params.get("name") not in asking)

    assert calls(on_stage.back.exchanges) == calls(e for run in on_stage.runs for e in run.exchanges)


@every_upstream
def test_the_gateway_meets_no_error_of_its_own(cells: list[Cell], on_stage: Stage) -> None:
    assert cells
    log = on_stage.gateway.log()
    assert "Traceback" not in log, log
    assert "internal error" not in log, log


@every_upstream
def test_a_direct_run_meets_every_kind_of_outcome(cells: list[Cell], on_stage: Stage) -> None:
    steps = cells[0].reference.document["steps"]
    assert {step for step, told in steps.items() if "error" in told} == ERRORS[on_stage.name]
    assert {step for step, told in steps.items() if (told.get("ok") or {}).get("isError")} & TOOL_ERRORS
