"""The status page where there are several workers: their supervisor tells what they see together."""

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

from tests.gateway.test_workers import MANY, fleet
from tests.http_wire import DEADLINE_S
from tests.peers import ModernUpstream
from tests.raw_front import Front

CALL = ("tools/call", {"name": "t", "arguments": {}})


async def test_what_the_workers_see_is_added_up_and_a_dead_one_counts_no_more(tmp_path: Path) -> None:
    async with ModernUpstream() as upstream, fleet(tmp_path, upstream) as (running, _):
        admin = Front(running.gateway.admin_url + "/status.json")

        async def told() -> Any:
            return json.loads((await admin.send("GET", {})).body)

        for _ in range(MANY):
            assert (await running.front.modern(*CALL)).status == 200
            assert (await running.gateway.front("/nowhere").modern(*CALL)).status == 404
        async with asyncio.timeout(DEADLINE_S):
            while (said := await told())["process"]["answered"] < 2:
                pass
        assert (said["status"], said["process"]["kind"], said["process"]["workers"]) == ("ready", "supervisor", 2)
        assert said["store"] == {"shared": True, "up": True}
        assert sum(point["calls"] for point in said["upstreams"][0]["latency"]["points"]) == MANY
        assert said["upstreams"][0]["state"] == "up"
        assert [(error["code"], error["count"]) for error in said["errors"]] == [("admission 404", MANY)]
        page = (await Front(running.gateway.admin_url + "/status").send("GET", {})).body.decode()
        assert "the supervisor of 2 workers; 2 have said what follows, which is their sum" in page

        for pid in running.workers():
            os.kill(pid, signal.SIGKILL)
        async with asyncio.timeout(DEADLINE_S):
            while (said := await told())["errors"] or said["process"]["answered"] < 2:
                pass
        assert sum(point["calls"] for point in said["upstreams"][0]["latency"]["points"]) == 0


async def test_a_page_stays_kept_up_while_a_worker_is_replaced(tmp_path: Path) -> None:
    async with ModernUpstream() as upstream, fleet(tmp_path, upstream) as (running, _):
        async with Front(running.gateway.admin_url + "/status/events").open("GET", {}) as stream:
            assert await stream.event() is not None
            before = running.workers()
            os.kill(min(before), signal.SIGKILL)
            await running.until(lambda: len(running.workers() - {min(before)}) == 2)
            for _ in range(MANY):
                await running.gateway.front("/nowhere").modern(*CALL)
            async with asyncio.timeout(DEADLINE_S):
                while True:
                    event = await stream.event()
                    assert event is not None
                    if "admission 404" in json.loads(event.data or b"{}").get("errors", ""):
                        break
