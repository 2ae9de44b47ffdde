"""Fixtures of the tests with replicas: what the tests of asks run on, with every request at another replica."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.door import Door, door, share_one_loop
from tests.fleet import fleet
from tests.peers import LegacyUpstream, ModernUpstream

__all__ = ["door"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    share_one_loop(items, "replicas")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_door() -> AsyncIterator[Door]:
    async with (
        LegacyUpstream(get_stream=True) as legacy,
        ModernUpstream() as modern,
        fleet({"legacy": legacy, "modern": modern}) as replicas,
    ):
        yield Door(replicas, legacy, modern)
