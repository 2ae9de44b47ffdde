"""One gateway before scripted upstreams, each configured in several ways; what it holds is purged before each test.

All tests run on one event loop, so that the peers can outlive a test.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import pytest_asyncio

from tests.door import share_one_loop
from tests.gateway_process import GatewayProcess, running
from tests.peers import LegacyUpstream, ModernUpstream
from tests.raw_front import Answer, Front

TELLS = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
}


MAX_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class House:
    """Routes: `/modern` and `/trusting` (`trust_public`) lead to `modern`, as do `/eager` (stale while revalidated),
    `/hasty` (the same, but not while the server fails), `/strict` (never stale), `/off` and `/own` (times of the
    operator's); `/telling` to `telling`, which tells of changes; `/legacy` (times of the operator's) and `/plain` to
    `legacy`."""

    gateway: GatewayProcess
    modern: ModernUpstream
    telling: ModernUpstream
    legacy: LegacyUpstream

    def front(self, route: str) -> Front:
        return self.gateway.front(f"/{route}")

    async def order(self, what: str, verb: str = "POST", **headers: str) -> Answer:
        admin = Front(self.gateway.admin_url)
        admin.path = f"/admin/cache/{what}"
        return await admin.send(verb, headers)

    @property
    def upstreams(self) -> tuple[ModernUpstream, ModernUpstream, LegacyUpstream]:
        return self.modern, self.telling, self.legacy


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    share_one_loop(items, "cache")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_house() -> AsyncIterator[House]:
    async with (
        ModernUpstream() as modern,
        ModernUpstream(capabilities=TELLS) as telling,
        LegacyUpstream(get_stream=True, capabilities=TELLS) as legacy,
    ):
        behind = {
            "modern": modern,
            "trusting": (modern, {"cache": {"trust_public": True}}),
            "eager": (modern, {"cache": {"stale_while_revalidate_s": 3600}}),
            "hasty": (modern, {"cache": {"stale_while_revalidate_s": 3600, "stale_if_error_s": 0}}),
            "strict": (modern, {"cache": {"stale_if_error_s": 0}}),
            "off": (modern, {"cache": {"enabled": False}}),
            "own": (modern, {"cache": {"lists_ttl_s": 600, "reads_ttl_s": 600}}),
            "tenants": (modern, {"forward_headers": ["X-Tenant"], "cache": {"trust_public": True}}),
            "telling": telling,
            "legacy": (legacy, {"cache": {"lists_ttl_s": 600, "reads_ttl_s": 600}}),
            "plain": legacy,
        }
        cache = {"max_bytes": MAX_BYTES, "max_entry_bytes": 65536}
        log = {"level": "debug"}
        async with running(behind, admin="127.0.0.1:0", cache=cache, log=log) as gateway:  # type: ignore[arg-type]
            yield House(gateway, modern, telling, legacy)


@pytest_asyncio.fixture(loop_scope="session")
async def house(shared_house: House) -> AsyncIterator[House]:
    """The gateway with nothing held, its upstreams without a script and with empty records."""
    assert (await shared_house.order("purge")).status == 200
    for upstream in shared_house.upstreams:
        upstream.reset()
    yield shared_house
    for upstream in shared_house.upstreams:
        upstream.check()
    shared_house.gateway.check()
