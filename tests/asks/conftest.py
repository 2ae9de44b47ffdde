"""The tests of asks run on one event loop, which their peers share; the real servers are started once."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.asks.real_peers import House, Sessions, house
from tests.door import share_one_loop


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    share_one_loop(items, "asks")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_house() -> AsyncIterator[House]:
    async with house() as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="session")
async def at(shared_house: House) -> AsyncIterator[House]:
    """The gateway before the real servers; after the test nothing of it may be left in any of them."""
    yield shared_house
    await shared_house.nothing_left()


@pytest.fixture
def label(request: pytest.FixtureRequest) -> str:
    """What the test's call is known by in the servers."""
    name: str = request.node.name
    return name


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def sessions(shared_house: House) -> AsyncIterator[Sessions]:
    """A raw legacy client's sessions, which end with their children in the end."""
    opened = Sessions(shared_house)
    yield opened
    for session in opened.by_route.values():
        assert (await session.delete()).status == 200
