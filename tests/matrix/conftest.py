"""Fixtures of the matrix: one stage an upstream, shared by all its cells; each cell runs its client once."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.matrix.clients import CLIENTS
from tests.matrix.plans import PLANS
from tests.matrix.stages import Cell, Stage, stage


def params_of(item: pytest.Item) -> dict[str, Any]:
    return item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Brings the tests of one upstream together, so that each stage is set up once."""
    here = Path(__file__).parent
    places = [n for n, item in enumerate(items) if item.path.is_relative_to(here) and "upstream" in params_of(item)]
    ours = sorted((items[place] for place in places), key=lambda item: params_of(item)["upstream"])
    for place, item in zip(places, ours, strict=True):
        items[place] = item


def clients_to_run(session: pytest.Session, upstream: str) -> set[str]:
    """The clients of the cells that this run of pytest selected: all eight where a test wants the whole row."""
    found: set[str] = set()
    for item in session.items:
        if params_of(item).get("upstream") != upstream or not isinstance(item, pytest.Function):
            continue
        if "cells" in item.fixturenames:
            return set(CLIENTS)
        if "cell" in item.fixturenames:
            found.add(params_of(item)["client"])
    return found


@pytest.fixture(scope="session")
def set_up(request: pytest.FixtureRequest) -> Iterator[Callable[[str], Stage]]:
    """Gives the stage of an upstream, with the selected cells under way; the stage before it ends."""
    with contextlib.ExitStack() as open_stage:
        current: dict[str, Stage] = {}
        failed: dict[str, Exception] = {}

        def on(upstream: str) -> Stage:
            if upstream in failed:
                raise failed[upstream]
            if upstream not in current:
                current.clear()
                open_stage.close()
                try:
                    current[upstream] = open_stage.enter_context(stage(upstream))
                except Exception as error:
                    failed[upstream] = error
                    raise
                if wanted := clients_to_run(request.session, upstream):
                    clients = {name: client for name, client in CLIENTS.items() if name in wanted}
                    current[upstream].start_cells(clients, PLANS[upstream])
            return current[upstream]

        yield on


@pytest.fixture
def on_stage(set_up: Callable[[str], Stage], upstream: str) -> Stage:
    """The stage of the upstream named by the test's parameter."""
    return set_up(upstream)


@pytest.fixture
def cell(on_stage: Stage, client: str) -> Cell:
    """The client named by the test's parameter, run through the gateway with the upstream's plan."""
    return on_stage.cells[client].result()


@pytest.fixture
def cells(on_stage: Stage) -> list[Cell]:
    """Every client's run on this stage."""
    return [future.result() for future in on_stage.cells.values()]
