"""The cache of several workers: what an operator orders on the one admin listener ends it in all of them."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.cache.conftest import MAX_BYTES
from tests.cache.tagging import Tagging
from tests.cache.test_replicas import made
from tests.gateway.test_workers import MANY, fleet
from tests.http_wire import DEADLINE_S
from tests.peers import ModernUpstream
from tests.raw_front import Front

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.parametrize("order", ["purge", "refresh"])
async def test_an_order_is_done_by_one_worker_and_heard_by_all(tmp_path: Path, order: str) -> None:
    async with ModernUpstream() as upstream, fleet(tmp_path, upstream, cache={"max_bytes": MAX_BYTES}) as (running, _):
        tagging = Tagging(upstream)
        before = {made(await running.front.modern("tools/list")) for _ in range(MANY)}
        assert (before, tagging.count) == ({0}, 1)
        tagging.made = 1
        admin = Front(running.gateway.admin_url).at(f"/admin/cache/{order}")
        done = await admin.send("POST", {})
        assert (done.status, json.loads(done.body)["upstreams"]) == (200, ["mcp"])
        async with asyncio.timeout(DEADLINE_S):
            while {made(await running.front.modern("tools/list")) for _ in range(MANY)} != {1}:
                pass
        assert tagging.count <= 3
