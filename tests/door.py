"""One gateway before one scripted upstream of each era, shared by the folders whose tests need no other.

All of their tests run on one event loop, so that the peers can outlive a test; whatever a test scripts is forgotten
after it. A test that needs bounds, expiry or an upstream of its own starts a gateway of its own.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import pytest_asyncio

from tests.fleet import Fleet
from tests.gateway_process import GatewayProcess, running
from tests.peers import LegacyUpstream, ModernUpstream
from tests.raw_front import Front


@dataclass(frozen=True, slots=True)
class Door:
    """A gateway before a legacy upstream at `/legacy` and a modern one at `/modern`."""

    gateway: GatewayProcess | Fleet
    legacy: LegacyUpstream
    modern: ModernUpstream

    def front(self, era: str) -> Front:
        """The clients of the route to the upstream of this era."""
        return self.gateway.front(f"/{era}")

    def upstream(self, era: str) -> LegacyUpstream | ModernUpstream:
        return self.legacy if era == "legacy" else self.modern


def share_one_loop(items: list[pytest.Item], folder: str) -> None:
    """Marks the tests of a folder so that they run on the loop of what they share."""
    for item in items:
        if item.path.parent.name == folder:
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
    shared_door.gateway.check()
