"""How long a request that fills the cache goes on, how many there are, and who may still wait for one."""

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from gateway.cache.cache import REFRESHES
from gateway.cache.flights import MAX_FLIGHTS, MAX_OF_ONE, Flights
from tests.cache.conftest import MAX_BYTES, House
from tests.cache.test_what_is_kept import HOUR, LISTS, READ, how
from tests.gateway.test_keys import bearer, digest
from tests.gateway.test_reload import serving
from tests.gateway_process import running, settings
from tests.http_wire import DEADLINE_S
from tests.peers import TOOL, ModernUpstream
from tests.raw_front import Front
from tests.scrape import settled
from tests.scripted import Call, Json


class Held:
    """Answers that wait: each request is answered when `open` is set, or has hung up before."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.now = self.most = 0
        self.left: list[Call] = []

    async def list(self, call: Call) -> Json:
        return await self._when_open(call, LISTS["tools/list"])

    async def read(self, call: Call) -> Json:
        return await self._when_open(call, READ)

    async def _when_open(self, call: Call, result: Json) -> Json:
        self.now += 1
        self.most = max(self.most, self.now)
        opened = asyncio.create_task(self.open.wait())
        gone = asyncio.create_task(call.gone())
        try:
            await asyncio.wait({opened, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            opened.cancel()
            gone.cancel()
            self.now -= 1
        if not self.open.is_set():
            self.left.append(call)
        return result | HOUR


async def until(holds: Any) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not holds():
            await asyncio.sleep(0.01)


async def left(task: "asyncio.Task[Any]") -> None:
    """A client hangs up."""
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_request_that_nobody_waits_for_any_more_is_called_off(house: House) -> None:
    held, front = Held(), house.front("modern")
    house.modern.on["tools/list"] = held.list
    clients = [asyncio.create_task(front.modern("tools/list", ident=n)) for n in range(3)]
    await settled(house.gateway, "mcp_front_door_requests_in_flight", 3)
    await house.modern.seen("tools/list")
    for client in clients[:2]:
        await left(client)
    await settled(house.gateway, "mcp_front_door_requests_in_flight", 1)
    assert not held.left
    await left(clients[2])
    await until(lambda: held.left)
    held.open.set()
    assert how(await front.modern("tools/list")) == "cache;desc=miss"
    assert len(house.modern.calls("tools/list")) == 2


async def test_a_refresh_goes_on_though_nobody_waits_for_it(house: House) -> None:
    held, front = Held(), house.front("eager")
    house.modern.on["tools/list"] = LISTS["tools/list"] | {"ttlMs": 1}
    await front.modern("tools/list")
    house.modern.on["tools/list"] = held.list
    async with asyncio.timeout(DEADLINE_S):
        while how(await front.modern("tools/list")) != "cache;desc=stale":
            pass
    await house.modern.seen("tools/list", 2)
    held.open.set()
    async with asyncio.timeout(DEADLINE_S):
        while how(await front.modern("tools/list")) == "cache;desc=stale":
            pass
    assert how(await front.modern("tools/list")) == "cache;desc=hit"
    assert (len(house.modern.calls("tools/list")), held.left) == (2, [])


@pytest.mark.parametrize("ended_by", ["an order", "the server"])
async def test_whoever_comes_after_a_list_has_ended_waits_for_none_that_was_asked_for_before(
    house: House, ended_by: str
) -> None:
    upstream, held, front = house.telling, Held(), house.front("telling")
    upstream.on["prompts/list"] = LISTS["prompts/list"] | HOUR
    async with asyncio.timeout(DEADLINE_S):  # which is listened for
        while how(await front.modern("prompts/list")) != "cache;desc=hit":
            pass
    upstream.on["tools/list"] = held.list
    stuck = asyncio.create_task(front.modern("tools/list"))
    await upstream.seen("tools/list")
    upstream.on["tools/list"] = {"tools": [], **HOUR}
    if ended_by == "an order":
        assert (await house.order("purge")).status == 200
        assert (await front.modern("tools/list")).result["tools"] == []
    else:
        await upstream.push("notifications/tools/list_changed", {})
        async with asyncio.timeout(DEADLINE_S):
            while (await front.modern("tools/list", meta={"progressToken": "p"})).result["tools"]:
                pass
        assert (await front.modern("tools/list")).result["tools"] == []
    held.open.set()
    assert (await stuck).result["tools"] == [TOOL]
    found = await front.modern("tools/list")
    assert (how(found), found.result["tools"]) == ("cache;desc=hit", [])


async def test_no_more_than_so_many_fill_the_cache_at_once_and_the_others_go_past_it(house: House) -> None:
    held, front, beyond = Held(), house.front("modern"), 20
    house.modern.on["resources/read"] = held.read
    uris = [f"note://{number}" for number in range(MAX_OF_ONE + beyond)]
    reads = [asyncio.create_task(front.modern("resources/read", {"uri": uri})) for uri in uris]
    await house.modern.seen("resources/read", len(uris))
    other = await house.front("legacy").modern("tools/list")
    assert how(other) == "cache;desc=miss"  # there is room for others
    held.open.set()
    found = Counter(how(answer) for answer in await asyncio.gather(*reads))
    assert found == {"cache;desc=miss": MAX_OF_ONE, "cache;desc=bypass": beyond}


async def test_a_refresh_by_hand_asks_for_a_few_at_once(house: House) -> None:
    held, front = Held(), house.front("modern")
    house.modern.on["resources/read"] = READ | HOUR
    uris = [f"note://{number}" for number in range(2 * REFRESHES)]
    for uri in uris:
        await front.modern("resources/read", {"uri": uri})
    house.modern.on["resources/read"] = held.read
    refreshing = asyncio.create_task(house.order("refresh"))
    await until(lambda: held.now == REFRESHES)
    held.open.set()
    done = await refreshing
    assert (json.loads(done.body)["fetched"], json.loads(done.body)["failed"]) == (len(uris), 0)
    assert held.most == REFRESHES
    assert how(await front.modern("resources/read", {"uri": uris[-1]})) == "cache;desc=hit"


async def test_a_refresh_leaves_out_what_was_asked_under_another_configuration(tmp_path: Path) -> None:
    held, more = Held(), {"admin": "127.0.0.1:0", "cache": {"max_bytes": MAX_BYTES}}
    async with ModernUpstream() as upstream, ModernUpstream() as other:
        upstream.on["tools/list"] = held.list
        async with serving(tmp_path, settings({"mcp": upstream}, **more)) as live:
            before = asyncio.create_task(live.gateway.front().modern("tools/list"))
            await upstream.seen("tools/list")
            now = {"mcp": (upstream, {"cache": {"max_ttl_s": 60}}), "other": other}
            live.write(settings(now, **more))
            await live.until_answered("/other", 200)
            held.open.set()
            assert (await before).result["tools"] == [TOOL]
            await settled(live.gateway, "mcp_front_door_cache_entries", 1)
            admin = Front(live.gateway.admin_url).at("/admin/cache/refresh?upstream=mcp")
            done = json.loads((await admin.send("POST", {})).body)
            assert (done["fetched"], done["failed"]) == (0, 0)
            assert len(upstream.calls("tools/list")) == 1


async def test_a_list_that_was_public_is_given_to_nobody_once_the_server_calls_it_private() -> None:
    keys = {who: "mfd_" + who * 43 for who in "ab"}
    clients = {who: {"keys": [digest(key)], "routes": ["/mcp"]} for who, key in keys.items()}
    own = {"cache": {"trust_public": True, "stale_while_revalidate_s": 3600}}
    async with ModernUpstream() as upstream:
        upstream.on["tools/list"] = {"tools": [TOOL], "ttlMs": 1, "cacheScope": "public"}
        cache = {"max_bytes": MAX_BYTES}
        async with running({"mcp": (upstream, own)}, clients=clients, cache=cache) as gateway:

            async def ask(who: str) -> Any:
                return await gateway.front().modern("tools/list", headers=bearer(keys[who]))

            await ask("a")
            upstream.on["tools/list"] = {"tools": [], "ttlMs": 3_600_000, "cacheScope": "private"}
            async with asyncio.timeout(DEADLINE_S):
                while (await ask("a")).result["tools"]:
                    pass
            assert (await ask("b")).result["tools"] == []
            assert [how(await ask(who)) for who in "ab"] == ["cache;desc=hit"] * 2


# by themselves


async def forever() -> None:
    await asyncio.Event().wait()


def names(number: int) -> list[tuple[str, str]]:
    return [(f"upstream-{number}", "tools")]


async def test_what_was_waited_for_as_long_as_anybody_waits_goes_on_until_it_can_be_of_no_use() -> None:
    flights: Flights[None] = Flights()
    flight = flights.begin("key", names(0), forever)
    assert flight is not None
    assert not await flights.wait(flight, 0.0)
    assert flights.get("key") is flight
    flights.detach(names(1))
    assert flights.get("key") is flight
    flights.detach(names(0))
    assert flights.get("key") is None
    with pytest.raises(asyncio.CancelledError):
        await flight.task


async def test_one_that_hangs_and_may_not_be_joined_any_more_is_called_off_with_the_last_who_waits() -> None:
    flights: Flights[None] = Flights()
    flight = flights.begin("key", names(0), forever)
    assert flight is not None
    waiting = asyncio.create_task(flights.wait(flight, DEADLINE_S))
    await asyncio.sleep(0)
    flights.detach(None)
    assert not flight.task.cancelling()
    await left(waiting)
    with pytest.raises(asyncio.CancelledError):
        await flight.task


async def test_there_are_so_many_at_once_and_room_again_when_one_is_over() -> None:
    flights: Flights[None] = Flights()
    begun = [flights.begin(str(n), names(n // MAX_OF_ONE), forever) for n in range(MAX_FLIGHTS)]
    assert None not in begun
    assert flights.begin("one more", names(MAX_FLIGHTS), forever) is None
    flights.detach(None)  # those that nobody may join count until they have ended
    assert flights.begin("one more", names(MAX_FLIGHTS), forever) is None
    await asyncio.wait([one.task for one in begun if one is not None])
    assert flights.begin("one more", names(MAX_FLIGHTS), forever) is not None
    await flights.close()
