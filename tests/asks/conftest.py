"""Fixtures of the tests of asks: one gateway before one scripted upstream of each era, shared by all of them.

All run on one event loop, so that the peers can outlive a test; whatever a test scripts is forgotten after it. A test
that needs bounds, expiry or an upstream of its own starts a gateway of its own.
"""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.asks.talk import Door
from tests.gateway_process import running
from tests.peers import LegacyUpstream, ModernUpstream


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent.name == "asks":
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_door() -> AsyncIterator[Door]:
    async with (
        LegacyUpstream(get_stream=True) as legacy,
        ModernUpstream() as modern,
        running({"legacy": legacy, "modern": modern}) as gateway,
    ):
        yield Door(gateway, legacy, modern)


@pytest_asyncio.fixture(loop_scope="session")
async def door(shared_door: Door) -> AsyncIterator[Door]:
    """The shared gateway, its upstreams without a script and with empty records."""
    for upstream in (shared_door.legacy, shared_door.modern):
        upstream.reset()
    yield shared_door
    for upstream in (shared_door.legacy, shared_door.modern):
        upstream.check()
    assert shared_door.gateway.process.returncode is None, shared_door.gateway.stderr()[-4000:]
