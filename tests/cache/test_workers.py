"""The cache of several workers: what an operator orders on the one admin listener ends it in all of them."""

import asyncio
import json
import socket
from pathlib import Path

import pytest

from gateway.cache.cache import Done
from gateway.workers.messages import End
from gateway.workers.worker import Worker
from policies.settings import Settings
from tests.cache.conftest import MAX_BYTES
from tests.cache.tagging import Tagging
from tests.cache.test_replicas import made
from tests.gateway.test_workers import MANY, fleet
from tests.gateway_process import settings
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


async def test_an_order_that_nobody_waits_for_any_more_leaves_nothing_behind() -> None:
    given = Settings.model_validate(settings({"mcp": ModernUpstream()}, cache={"max_bytes": MAX_BYTES}))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        worker = Worker(0, listener, lambda: given, lambda _: None)
    try:
        assert await worker.up()
        assert await worker.obey("purge", None) == Done(everywhere=True)
        before = asyncio.all_tasks()
        orders = [asyncio.create_task(worker.obey("purge", None)) for _ in range(10)]
        await asyncio.sleep(0)  # they have been given
        for order in orders:
            order.cancel()
        await asyncio.wait(orders)
        assert all(order.cancelled() for order in orders)
        assert await worker.obey("purge", None) == Done(everywhere=True)
        await _only(before)
    finally:
        worker.say(End())
        await worker.ended.wait()


async def _only(tasks: set[asyncio.Task[object]]) -> None:
    """Until no task runs but these."""
    async with asyncio.timeout(DEADLINE_S):
        while asyncio.all_tasks() - tasks:
            await asyncio.sleep(0)
