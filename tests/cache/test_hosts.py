"""What is kept of MCP Apps: a host with them has all of it from the cache, one without has nothing of it.

Specification: MCP Apps 2026-01-26 (Visibility, Client<>Server Capability Negotiation); 2026-07-28
server/utilities/caching (Cache Scope).
"""

import asyncio

import pytest

from tests.cache.conftest import House
from tests.cache.test_what_ends_it import push
from tests.cache.test_what_is_kept import how, without_hints
from tests.field.test_j import CONTENT, DESKTOP, HIDDEN, INTERACTIVE, LINKED, LISTED, VIEW
from tests.http_wire import DEADLINE_S
from tests.peers import TOOL
from tests.raw_front import Answer
from tests.scripted import Json

PUBLIC: Json = {"ttlMs": 3_600_000, "cacheScope": "public"}
HOSTS: dict[str, Json] = {"core": {}, "interactive": INTERACTIVE, "desktop": DESKTOP}
NOTE: Json = {"uri": "note://one", "name": "one"}

# a list, what the server says, and what a host without Apps is shown of it
LISTS: list[tuple[str, Json, Json]] = [
    (
        "tools/list",
        {"tools": [TOOL, LINKED, HIDDEN]},
        {"tools": [TOOL, {k: v for k, v in LINKED.items() if k != "_meta"}]},
    ),
    ("resources/list", {"resources": [NOTE, LISTED]}, {"resources": [NOTE]}),
    ("tools/list", {"tools": [TOOL]}, {"tools": [TOOL]}),
]


async def twice(house: House, route: str, method: str, params: Json, host: str) -> Answer:
    """The second answer to the same, which is that of the cache."""
    for _ in range(2):
        answer = await house.front(route).modern(method, params, capabilities=HOSTS[host])
    assert how(answer) == "cache;desc=hit"
    return answer


@pytest.mark.field("I12", "J3")
@pytest.mark.parametrize(("method", "all_of_it", "plain"), LISTS)
@pytest.mark.parametrize("route", ["trusting", "modern", "off"])
async def test_what_a_host_is_not_shown_all_of_is_never_called_public(
    house: House, route: str, method: str, all_of_it: Json, plain: Json
) -> None:
    house.modern.on[method] = all_of_it | PUBLIC
    for _ in range(2):
        for host, capabilities in HOSTS.items():
            answer = await house.front(route).modern(method, capabilities=capabilities)
            shown = all_of_it if host == "desktop" else plain
            assert without_hints(answer.result) == shown, host
            assert answer.result["cacheScope"] == ("public" if shown == all_of_it else "private"), host


@pytest.mark.field("J3")
async def test_a_host_with_apps_reads_of_each_server_its_own_interface_from_the_cache(house: House) -> None:
    other = CONTENT | {"text": "<!doctype html><title>another's</title>"}
    house.modern.on["resources/read"] = {"contents": [CONTENT], **PUBLIC}
    house.telling.on["resources/read"] = {"contents": [other], **PUBLIC}
    for route, content in (("modern", CONTENT), ("telling", other)):
        answer = await twice(house, route, "resources/read", {"uri": VIEW}, "desktop")
        assert answer.result["contents"] == [content]
        for host in ("core", "interactive"):
            refused = await house.front(route).modern("resources/read", {"uri": VIEW}, capabilities=HOSTS[host])
            assert refused.code == -32602, host
    assert [len(upstream.calls("resources/read")) for upstream in (house.modern, house.telling)] == [1, 1]


async def test_a_changed_list_is_fetched_anew_for_hosts_of_every_profile(house: House) -> None:
    house.telling.on["tools/list"] = {"tools": [TOOL, LINKED], **PUBLIC}
    for host in HOSTS:
        assert len((await twice(house, "telling", "tools/list", {}, host)).result["tools"]) == 2
    house.telling.on["tools/list"] = {"tools": [LINKED], **PUBLIC}
    await push(house, "telling", "notifications/tools/list_changed", {})
    for host, capabilities in HOSTS.items():
        async with asyncio.timeout(DEADLINE_S):
            while (
                len((await house.front("telling").modern("tools/list", capabilities=capabilities)).result["tools"]) > 1
            ):
                pass
        [tool] = (await twice(house, "telling", "tools/list", {}, host)).result["tools"]
        assert ("_meta" in tool) == (host == "desktop")


@pytest.mark.field("I11")
async def test_what_a_host_with_apps_has_found_tells_another_nothing(house: House) -> None:
    house.modern.on["tools/list"] = {"tools": [TOOL, HIDDEN], **PUBLIC}
    front, call = house.front("trusting"), {"name": HIDDEN["name"], "arguments": {}}
    assert [tool["name"] for tool in (await front.modern("tools/list")).result["tools"]] == [TOOL["name"]]
    before = await front.modern("tools/call", call)
    await twice(house, "trusting", "tools/list", {}, "desktop")
    after = await front.modern("tools/call", call)
    assert (after.status, after.error) == (before.status, before.error)
    assert house.modern.calls("tools/call") == []
    assert "result" in (await front.modern("tools/call", call, capabilities=DESKTOP)).final
