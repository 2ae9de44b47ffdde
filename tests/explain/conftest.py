from collections.abc import AsyncIterator

import pytest_asyncio

from tests.gateway_process import GatewayProcess, running
from tests.peers import ModernUpstream

TOKEN = "planted-admin-token-0123456789"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def admin() -> AsyncIterator[GatewayProcess]:
    """A gateway with an admin listener."""
    async with (
        ModernUpstream() as upstream,
        running({"mcp": (upstream, {"era": "modern"})}, admin="127.0.0.1:0", admin_token=TOKEN) as gateway,
    ):
        yield gateway
