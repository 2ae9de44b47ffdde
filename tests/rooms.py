"""Which tests run one after the other in one process, where several processes share the tests: a room.

A room is a file, so that what a module shares is started once, or the folder, where the folder shares it. Tests that
keep the machine busy for long are in one room, so that no two of them do at once. Long rooms begin first, lest the last
process goes on alone.
"""

import pytest
from xdist.scheduler import LoadScopeScheduling

FOLDERS = ("tests/asks", "tests/matrix", "tests/apps/real", "tests/adapters")
"""Real servers of both SDKs, or of MCP Apps, or the adapters of LLM providers, stand for the whole folder."""
BUSY = tuple(f"tests/replicas/test_{name}.py" for name in ("crossing", "many_streams", "rolling_restart"))
LONG = (
    "tests/matrix",
    "tests/asks",
    "tests/apps/real",
    "tests/adapters",
    "tests/gateway/test_workers.py",
    "tests/gateway/test_endpoints.py",
    "tests/field/test_children.py",
    "tests/sse/test_upstream.py",
    "busy",
    "tests/test_wheel.py",
    "tests/field/test_l_replicas.py",
    "tests/gateway/test_demo.py",
    "tests/gateway/test_reload.py",
    "tests/gateway/test_total_time.py",
)
"""Rooms that take longest, in the order in which they begin."""


def room(nodeid: str) -> str:
    """The room of a test."""
    file = nodeid.partition("::")[0]
    folder = file.rpartition("/")[0]
    return "busy" if file in BUSY else folder if folder in FOLDERS else file


def long_rooms_first(items: list[pytest.Item]) -> None:
    place = {name: number for number, name in enumerate(LONG)}
    items.sort(key=lambda item: place.get(room(item.nodeid), len(LONG)))


class Rooms(LoadScopeScheduling):
    """Gives each process one room after the other, in the order of the collection."""

    def _split_scope(self, nodeid: str) -> str:
        return room(nodeid)
