"""`POST /admin/explain`: who may ask, what a description may be, and what only a running process knows."""

import hashlib
import json
from typing import Any

import pytest

from tests.gateway_process import GatewayProcess, running
from tests.peers import LegacyUpstream, ModernUpstream
from tests.raw_front import Answer, Front, modern_headers, modern_request, request

pytestmark = pytest.mark.asyncio(loop_scope="module")

TOKEN = "planted-admin-token-0123456789"
ADMIN = {"admin": "127.0.0.1:0", "admin_token": TOKEN}
APP = {"name": "chart", "inputSchema": {"type": "object"}, "_meta": {"ui": {"visibility": ["app"]}}}
TOOL = {"name": "echo", "inputSchema": {"type": "object"}}
BOTH = "application/json, text/event-stream"


async def explain(gateway: GatewayProcess, described: Any, **headers: str | None) -> Answer:
    front = Front(gateway.admin_url).at("/admin/explain")
    lines = {"Authorization": f"Bearer {TOKEN}", **{name.replace("_", "-"): value for name, value in headers.items()}}
    return await front.post(described, lines)


def described(message: Any, path: str = "/mcp", **more: Any) -> dict[str, Any]:
    headers = {"Content-Type": "application/json", "Accept": BOTH}
    if "_meta" in message.get("params", {}):
        headers |= modern_headers(message)
    return {"path": path, "headers": headers, "body": message, **more}


async def told(gateway: GatewayProcess, message: Any, path: str = "/mcp", **more: Any) -> dict[str, Any]:
    answer = await explain(gateway, described(message, path, **more))
    assert answer.status == 200, repr(answer)
    found: dict[str, Any] = json.loads(answer.body)
    return found


def rung(told: dict[str, Any], name: str) -> dict[str, Any]:
    return next(one for one in told["rungs"] if one["rung"] == name)


async def test_only_the_holder_of_the_admin_token_is_told_and_no_web_page_is() -> None:
    async with ModernUpstream() as upstream, running({"mcp": upstream}, **ADMIN) as gateway:
        asked = described(modern_request("tools/list"))
        assert (await explain(gateway, asked, Authorization=None)).status == 401
        assert (await explain(gateway, asked, Authorization="Bearer wrong")).status == 401
        assert (await explain(gateway, asked, Origin="http://localhost")).status == 403
        got = await Front(gateway.admin_url).at("/admin/explain").send("GET", {"Authorization": f"Bearer {TOKEN}"})
        assert (got.status, got.headers.get("Allow")) == (405, "POST")
        assert (await explain(gateway, asked)).status == 200


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (b"{", "the body is no JSON in UTF-8"),
        ({"methd": "planted"}, "methd: extra inputs are not permitted"),
        ({"method": 5}, "method: input should be a valid string"),
        ({"path": "mcp"}, "path: string should match pattern '^[/*][!-~]*$'"),
        ({"headers": ["planted"]}, "headers: input should be a valid dictionary"),
        ({"headers": {"X": "planted\r\nY: 1"}}, "headers: hold what is no header line"),
        ([], "the description: input should be a valid dictionary or instance of Described"),
        ({"body": "\ud800"}, "body: is no Unicode text"),
    ],
)
async def test_a_description_that_is_none_is_told_what_is_wrong(admin: GatewayProcess, given: Any, says: str) -> None:
    answer = await explain(admin, given)
    assert (answer.status, json.loads(answer.body)) == (400, {"error": says})
    assert b"planted" not in answer.body


async def test_a_description_that_is_too_large_is_not_read(admin: GatewayProcess) -> None:
    answer = await explain(admin, {"body": "x" * (1 << 20)})
    assert answer.status == 413, repr(answer)


async def test_text_is_for_people(admin: GatewayProcess) -> None:
    answer = await explain(admin, described(modern_request("tools/list")), Accept="text/plain")
    assert answer.content_type == "text/plain"
    assert "passes  route         /mcp" in answer.body.decode().splitlines()


async def test_what_is_cached_is_told_with_the_key_and_without_counting() -> None:
    async with (
        ModernUpstream() as upstream,
        running(
            {"mcp": (upstream, {"era": "modern", "cache": {"enabled": True}})}, cache={"max_bytes": 1_000_000}, **ADMIN
        ) as gateway,
    ):
        upstream.on["tools/list"] = {"tools": [TOOL], "ttlMs": 60_000, "cacheScope": "private"}
        message = modern_request("tools/list")
        before = await told(gateway, message)
        assert rung(before, "cache")["said"] == "miss"
        assert before["asks"] == "mcp"
        await gateway.front().modern("tools/list")
        asked = len(upstream.calls("tools/list"))
        after = await told(gateway, message)
        assert rung(after, "cache")["said"] == "hit"
        assert (after["asks"], rung(after, "way")["said"]) == (None, "answered from the cache")
        key = rung(after, "cache")["facts"]["key"]
        assert key == rung(before, "cache")["facts"]["key"]
        assert key["method"] == "tools/list"
        other = await told(gateway, modern_request("tools/list", {"cursor": "planted"}))
        assert rung(other, "cache")["facts"]["key"]["params"] != key["params"]
        assert len(upstream.calls("tools/list")) == asked


async def test_a_tool_for_interfaces_alone_is_refused_once_its_list_is_known() -> None:
    async with ModernUpstream() as upstream, running({"mcp": (upstream, {"era": "modern"})}, **ADMIN) as gateway:
        upstream.on["tools/list"] = {"tools": [APP, TOOL]}
        message = modern_request("tools/call", {"name": "chart", "arguments": {}})
        before = await told(gateway, message)
        assert "tools/list is asked first" in rung(before, "request")["said"]
        await gateway.front().modern("tools/list")
        after = await told(gateway, message)
        answer = await gateway.front().post(message, modern_headers(message))
        assert after["answer"]["error"] == json.loads(answer.body)["error"]
        assert after["answer"]["status"] == answer.status


async def test_an_era_is_told_once_it_has_been_found_out() -> None:
    async with LegacyUpstream() as upstream, running({"mcp": upstream}, **ADMIN) as gateway:
        session = await gateway.front().initialize()
        said = await told(gateway, request("tools/list"), session=session.id)
        assert rung(said, "upstream")["facts"]["era"] == "legacy, as found out before"
        assert rung(said, "session")["verdict"] == "passes"
        assert session.id is not None
        assert session.id not in json.dumps(said)
        await session.delete()
        ended = await told(gateway, request("tools/list"), session=session.id)
        assert (rung(ended, "session")["verdict"], ended["answer"]["status"]) == ("refused", 404)


async def test_each_endpoint_is_told_whether_it_is_in_service() -> None:
    async with ModernUpstream() as one, ModernUpstream() as two:
        several = {"urls": [one.url, two.url], "era": "modern"}
        async with running({"mcp": several}, **ADMIN) as gateway:
            said = await told(gateway, modern_request("tools/list"))
    assert list(rung(said, "upstream")["facts"]["endpoints"].values()) == ["in service", "in service"]
    assert "another endpoint" in said["holds"]["retry"]


async def test_a_client_may_be_named_in_place_of_its_key() -> None:
    digest = "sha256:" + hashlib.sha256(b"mfd_key").hexdigest()
    clients = {"desk": {"keys": [digest], "routes": ["/mcp"]}}
    async with (
        ModernUpstream() as upstream,
        running({"mcp": (upstream, {"era": "modern"})}, clients=clients, **ADMIN) as gateway,
    ):
        message = modern_request("tools/list")
        assert rung(await told(gateway, message), "identity")["verdict"] == "refused"
        assert rung(await told(gateway, message, client="desk"), "identity")["said"] == "client desk"
        assert (await told(gateway, message, client="nobody"))["verdict"] == "refused"
