"""The servers are started once, side by side, and the tests run on the event loop that they are spoken to from."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio

from tests.apps.real.servers import SAMPLES, document, started
from tests.apps.real.stage import Stage, as_children, routes
from tests.door import share_one_loop
from tests.gateway_process import running


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    share_one_loop([item for item in items if item.path.parent.parent.name == "apps"], "real")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    path = str(document(tmp_path_factory.mktemp("document")))
    async with AsyncExitStack() as stack:
        urls = await asyncio.gather(*(stack.enter_async_context(started(name, path)) for name in SAMPLES))
        direct = dict(zip(SAMPLES, urls, strict=True))
        behind = {name: {"url": url, **SAMPLES[name].settings} for name, url in direct.items()} | as_children()
        gateway = await stack.enter_async_context(running(behind, routes=routes()))
        yield Stage(direct, path, gateway)
