"""The field-report tests run on one event loop, which their peers share."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.door import share_one_loop
from tests.field.replicas import Two
from tests.fleet import fleet
from tests.peers import TOOL, LegacyUpstream, ModernUpstream


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    share_one_loop(items, "field")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_two() -> AsyncIterator[Two]:
    upstreams = {f"{kind.__name__[:6].lower()}{n}": kind() for kind in (LegacyUpstream, ModernUpstream) for n in (1, 2)}
    for upstream in upstreams.values():
        await upstream.start()
    behind = {name: (upstream, {"forward_headers": ["Authorization"]}) for name, upstream in upstreams.items()}
    async with fleet(behind) as replicas:
        yield Two(replicas, upstreams)
    for upstream in upstreams.values():
        await upstream.stop()


@pytest_asyncio.fixture(loop_scope="session")
async def two(shared_two: Two) -> AsyncIterator[Two]:
    """Two replicas, each upstream without a script but for its own list of tools."""
    for name, upstream in shared_two.upstreams.items():
        upstream.reset()
        upstream.on["tools/list"] = {"tools": [{**TOOL, "name": f"of-{name}"}]}
    yield shared_two
    for upstream in shared_two.upstreams.values():
        upstream.check()
    shared_two.fleet.check()
