"""`POST /admin/explain` with several workers: one of them tells, and no server is asked."""

import json
from pathlib import Path

from tests.gateway.test_workers import fleet
from tests.peers import ModernUpstream
from tests.raw_front import Front, modern_headers, modern_request


async def test_one_of_several_workers_explains_a_request(tmp_path: Path) -> None:
    async with ModernUpstream() as upstream, fleet(tmp_path, upstream) as (running, _):
        message = modern_request("tools/call", {"name": "echo", "arguments": {}})
        headers = {"Content-Type": "application/json", "Accept": "*/*", **modern_headers(message)}
        described = {"path": running.front.path, "headers": headers, "body": message}
        answer = await Front(running.gateway.admin_url).at("/admin/explain").post(described)
        assert answer.status == 200, repr(answer)
        told = json.loads(answer.body)
        assert (told["asks"], told["answer"]) == ("mcp", None)
        assert not upstream.calls("tools/call")
