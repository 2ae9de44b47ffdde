"""Two gateways that the tests of this folder share: an open one, and one with a token. The tests of the page in a real
browser are collected with `--system` alone: the browser is the operating system's."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.door import share_one_loop
from tests.gateway_process import GatewayProcess, running
from tests.peers import ModernUpstream

TOKEN = "admin-token-of-16+"
BROWSER_TESTS = "test_browser.py"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return True if collection_path.name == BROWSER_TESTS and not config.getoption("--system") else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    share_one_loop(items, "status")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def gateway() -> AsyncIterator[GatewayProcess]:
    async with ModernUpstream() as upstream, running({"mcp": upstream}, admin="127.0.0.1:0") as started:
        yield started


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def guarded() -> AsyncIterator[GatewayProcess]:
    async with ModernUpstream() as upstream:
        async with running({"mcp": upstream}, admin="127.0.0.1:0", admin_token=TOKEN) as started:
            yield started
