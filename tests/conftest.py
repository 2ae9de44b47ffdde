"""What every test folder shares: the gateway of `tests/door.py`, the rooms of `tests/rooms.py`, and the list of
field-report marks, for the test that compares it with the register."""

import json
import signal
from pathlib import Path

import hypothesis
import pytest
from xdist.remote import Producer

from tests.door import door, shared_door
from tests.rooms import Rooms, long_rooms_first

__all__ = ["door", "shared_door"]


# How long an example takes says nothing on a machine that others use.
hypothesis.settings.register_profile("untimed", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("untimed")


def pytest_configure() -> None:
    """A shell that runs the tests in the background has Ctrl-C ignored, and what they start would inherit that."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--system",
        action="store_true",
        help="with the operating system's own programs: redis-server, which has TLS, and Chromium",
    )
    parser.addoption("--field-marks", metavar="FILE", help="write each collected test's field reports to FILE as JSON")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    long_rooms_first(items)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Rooms:
    return Rooms(config, log)


def pytest_collection_finish(session: pytest.Session) -> None:
    file = session.config.getoption("--field-marks")
    if file is None:
        return
    marks: dict[str, list[str]] = {}
    for item in session.items:
        ids = [ident for mark in item.iter_markers("field") for ident in mark.args]
        if ids:
            known = marks.setdefault(item.nodeid.split("[")[0], [])
            known += [ident for ident in ids if ident not in known]
    Path(file).write_text(json.dumps(marks))
