"""One gateway before one recording API of each dialect, shared by the tests of this folder that need no other."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass

import pytest
import pytest_asyncio

from tests.door import share_one_loop
from tests.gateway_process import GatewayProcess
from tests.provider.api import PATHS, Api, ask, before
from tests.raw_front import Answer, Overrides


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    share_one_loop(items, "provider")


@dataclass(frozen=True, slots=True)
class Plane:
    """The provider plane of a gateway; `apis` by their dialect."""

    gateway: GatewayProcess
    apis: dict[str, Api]

    async def ask(
        self, dialect: str, body: dict[str, object] | bytes | None, headers: Overrides | None = None, **more: str
    ) -> Answer:
        """One request to the API of this dialect; `path` and `verb` where they are not the usual ones."""
        path = more.pop("path", PATHS[dialect])
        return await ask(self.gateway, f"/llm/{dialect}{path}", body, headers, **more)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_plane() -> AsyncIterator[Plane]:
    apis = {dialect: Api(dialect) for dialect in PATHS}
    async with AsyncExitStack() as stack:
        for api in apis.values():
            await stack.enter_async_context(api)
        limits = {"max_provider_body_bytes": 4 << 20}
        given = {
            "admin": "127.0.0.1:0",
            "log": {"level": "debug"},
            "limits": limits,
            "origins": ["https://app.example"],
        }
        yield Plane(await stack.enter_async_context(before(apis, **given)), apis)


@pytest_asyncio.fixture(loop_scope="session")
async def plane(shared_plane: Plane) -> AsyncIterator[Plane]:
    """The shared gateway, its APIs without a script and with empty records."""
    for api in shared_plane.apis.values():
        api.reset()
    yield shared_plane
    for api in shared_plane.apis.values():
        api.check()
    shared_plane.gateway.check()
