"""Fixtures of the matrix: one stage an upstream, shared by all its cells; each cell runs its client once."""

from collections.abc import Iterator

import pytest

from tests.matrix.clients import CLIENTS
from tests.matrix.plans import PLANS
from tests.matrix.stages import Cell, Stage, stage


def clients_to_run(session: pytest.Session, upstream: str) -> set[str]:
    """The clients of the cells that this run of pytest selected: all eight where a test wants the whole row."""
    found: set[str] = set()
    for item in session.items:
        params = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
        if params.get("on_stage") == upstream and "cell" in item.fixturenames:
            found.add(params["client"])
        if params.get("on_stage") == upstream and "cells" in item.fixturenames:
            return set(CLIENTS)
    return found


@pytest.fixture(scope="session")
def on_stage(request: pytest.FixtureRequest) -> Iterator[Stage]:
    """The stage of the upstream named by the test's parameter, with the selected cells under way."""
    with stage(request.param) as ready:
        if wanted := clients_to_run(request.session, request.param):
            ready.start_cells({name: CLIENTS[name] for name in CLIENTS if name in wanted}, PLANS[request.param])
        yield ready


@pytest.fixture
def cell(on_stage: Stage, client: str) -> Cell:
    """The client named by the test's parameter, run through the gateway with the upstream's plan."""
    return on_stage.cells[client].result()


@pytest.fixture
def cells(on_stage: Stage) -> list[Cell]:
    """Every client's run on this stage."""
    return [future.result() for future in on_stage.cells.values()]
