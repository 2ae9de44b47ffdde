"""What a server says of changes ends what is kept, on whichever stream, also where no client listens."""

import asyncio
from typing import Any

import pytest

from tests.cache.conftest import House
from tests.cache.test_what_is_kept import HOUR, LISTS, NOTE, READ, how
from tests.http_wire import DEADLINE_S
from tests.peers import LISTEN, TOOL, ModernUpstream
from tests.raw_front import Answer
from tests.scripted import Call, Json

CHANGED = "notifications/{}/list_changed"
UPDATED = "notifications/resources/updated"
NEW = {"tools": [TOOL | {"name": "new"}], **HOUR}


async def until(house: House, route: str, method: str, params: Json, outcome: str) -> Answer:
    """Asks until the cache takes it in this way; each new fetch may be followed by another that is."""
    async with asyncio.timeout(DEADLINE_S):
        while how(found := await house.front(route).modern(method, params)) != f"cache;desc={outcome}":
            pass
    return found


async def kept(house: House, route: str, method: str, params: Json) -> None:
    """Fetched, kept, and listened for: what was fetched before anybody listened is fetched once more."""
    upstream: Any = house.legacy if route == "legacy" else house.telling
    await until(house, route, method, params, "hit")
    if isinstance(upstream, ModernUpstream):
        wanted = "resourceSubscriptions" if method == "resources/read" else "toolsListChanged"
        await upstream.when(lambda: [c for c in upstream.listeners if wanted in c.seen.params["notifications"]])
    else:
        await upstream.when(lambda: list(upstream.streams))
    await until(house, route, method, params, "hit")


async def push(house: House, route: str, method: str, params: Json) -> None:
    if route == "legacy":
        await house.legacy.push({"jsonrpc": "2.0", "method": method, "params": params})
    else:
        await house.telling.push(method, params)


LIST_CASES = [(method, CHANGED.format(method.split("/")[0])) for method in LISTS]


@pytest.mark.field("I5", "I6")
@pytest.mark.parametrize("route", ["telling", "legacy"])
@pytest.mark.parametrize(("method", "told"), LIST_CASES)
async def test_a_changed_list_is_fetched_anew_though_no_client_listens(
    house: House, route: str, method: str, told: str
) -> None:
    upstream = house.legacy if route == "legacy" else house.telling
    upstream.on[method] = LISTS[method] | HOUR
    await kept(house, route, method, {})
    before = len(upstream.calls(method))
    [member] = LISTS[method]
    upstream.on[method] = {member: [], **HOUR}
    await push(house, route, told, {})
    async with asyncio.timeout(DEADLINE_S):
        while (await house.front(route).modern(method)).result[member]:
            pass
    assert len(upstream.calls(method)) == before + 1
    assert how(await house.front(route).modern(method)) == "cache;desc=hit"


@pytest.mark.field("Z8")
@pytest.mark.parametrize("route", ["telling", "legacy"])
async def test_an_updated_resource_is_read_anew_and_no_other(house: House, route: str) -> None:
    upstream = house.legacy if route == "legacy" else house.telling
    other = {"uri": "note://other"}
    upstream.on["resources/read"] = READ | HOUR
    for params in (NOTE, other):
        await kept(house, route, "resources/read", params)
    upstream.on["resources/read"] = {"contents": [], **HOUR}
    await push(house, route, UPDATED, NOTE)
    async with asyncio.timeout(DEADLINE_S):
        while (await house.front(route).modern("resources/read", NOTE)).result["contents"]:
            pass
    found = await house.front(route).modern("resources/read", other)
    assert (how(found), found.result["contents"]) == ("cache;desc=hit", READ["contents"])


@pytest.mark.field("Z8")
async def test_a_changed_list_of_resources_ends_what_was_read(house: House) -> None:
    house.telling.on["resources/read"] = READ | HOUR
    house.telling.on["resources/list"] = LISTS["resources/list"] | HOUR
    await kept(house, "telling", "resources/list", {})
    await kept(house, "telling", "resources/read", NOTE)
    house.telling.on["resources/read"] = {"contents": [], **HOUR}
    await push(house, "telling", CHANGED.format("resources"), {})
    async with asyncio.timeout(DEADLINE_S):
        while (await house.front("telling").modern("resources/read", NOTE)).result["contents"]:
            pass


async def test_a_change_in_a_clients_own_session_ends_what_others_share(house: House) -> None:
    front = house.front("legacy")
    session = await front.initialize()
    await until(house, "legacy", "tools/list", {}, "hit")

    async def tool(call: Call) -> Json:
        await call.notify(CHANGED.format("tools"), {})
        return {"content": []}

    house.legacy.on["tools/list"] = {"tools": []}
    house.legacy.on["tools/call"] = tool
    await session.request("tools/call", {"name": "grow"})
    async with asyncio.timeout(DEADLINE_S):
        while (await front.modern("tools/list")).result["tools"]:
            pass


@pytest.mark.parametrize("front_era", ["modern", "legacy"])
async def test_a_stream_that_a_client_holds_ends_entries_too_and_tells_the_client(house: House, front_era: str) -> None:
    house.telling.on["tools/list"] = LISTS["tools/list"] | HOUR
    front = house.front("telling")
    await kept(house, "telling", "tools/list", {})
    others = list(house.telling.listeners)
    if front_era == "modern":
        opening = front.modern_open(LISTEN, {"notifications": {"toolsListChanged": True}})
    else:
        opening = (await front.initialize()).get()
    async with opening as opened:
        if front_era == "modern":  # a session wants what the gateway itself wants, and hears the same stream
            await house.telling.when(lambda: set(house.telling.listeners) - set(others))
        house.telling.on["tools/list"] = NEW
        await push(house, "telling", CHANGED.format("tools"), {})
        async with asyncio.timeout(DEADLINE_S):
            while (message := await opened.message()) is not None and message["method"] != CHANGED.format("tools"):
                pass
        async with asyncio.timeout(DEADLINE_S):
            while (await front.modern("tools/list")).result["tools"] != NEW["tools"]:
                pass


async def test_an_answer_that_is_late_is_given_to_who_asked_and_not_kept(house: House) -> None:
    upstream, front = house.telling, house.front("telling")
    upstream.on["tools/list"] = LISTS["tools/list"] | HOUR
    await kept(house, "telling", "tools/list", {})
    assert (await house.order("purge?upstream=telling")).status == 200
    release, before = asyncio.Event(), len(upstream.calls("tools/list"))

    async def slow(call: Call) -> Json:
        await release.wait()
        return LISTS["tools/list"] | HOUR

    upstream.on["tools/list"] = slow
    late = asyncio.create_task(front.modern("tools/list"))
    await upstream.seen("tools/list", before + 1)
    upstream.on["tools/list"] = NEW
    upstream.on["prompts/list"] = LISTS["prompts/list"] | HOUR
    await until(house, "telling", "prompts/list", {}, "hit")
    await push(house, "telling", CHANGED.format("tools"), {})
    await push(house, "telling", CHANGED.format("prompts"), {})
    await until(house, "telling", "prompts/list", {}, "miss")  # both have been heard
    release.set()
    assert (await late).result["tools"] == [TOOL]
    assert (await until(house, "telling", "tools/list", {}, "hit")).result["tools"] == NEW["tools"]


async def test_nobody_is_listened_to_who_tells_of_nothing(house: House) -> None:
    house.modern.on["tools/list"] = LISTS["tools/list"] | HOUR
    await until(house, "modern", "tools/list", {}, "hit")
    assert not house.modern.calls(LISTEN)
