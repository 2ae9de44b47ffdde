"""The cache of two replicas on one store: what one has fetched the other gives out, what ends it ends it at both, no
caller is ever given another's, and whatever the store does, nothing is wrong.
"""

import asyncio
import itertools
import json
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from redis import Redis

from tests import scrape
from tests.cache.conftest import MAX_BYTES, TELLS
from tests.cache.tagging import TENANT, Tagging
from tests.cache.test_what_is_kept import how
from tests.fleet import KEYS, Fleet, fleet
from tests.gateway.test_keys import bearer, digest
from tests.gateway_process import GatewayProcess, running
from tests.http_wire import DEADLINE_S
from tests.peers import ModernUpstream
from tests.raw_front import Answer, Front, Session, modern_headers, modern_request
from tests.scrape import settled
from tests.scripted import Err
from tests.valkey import Server, started

APPS = {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}}
HOSTS: dict[str, dict[str, Any]] = {"plain-mute": {}, "plain-asks": {"elicitation": {}}, "apps-mute": APPS}
MUTE = "plain-mute"


@dataclass(frozen=True, slots=True)
class Two:
    replicas: Fleet
    server: Server
    tagging: Tagging

    def front(self, index: int, route: str = "mcp") -> Front:
        return self.replicas.replicas[index].front(f"/{route}")

    async def list(self, index: int, **more: Any) -> Answer:
        return await self.front(index).modern("tools/list", **more)


def made(answer: Answer) -> int:
    """Which of the upstream's lists an answer is."""
    return int(answer.result["tools"][0]["description"])


def name(answer: Answer) -> str:
    """Whom the list was made for."""
    found: str = answer.result["tools"][0]["name"]
    return found


@asynccontextmanager
async def two(*, entry: dict[str, Any] | None = None, tells: bool = True, **more: Any) -> AsyncIterator[Two]:
    """Two replicas before one upstream, which tells of changes or does not."""
    async with AsyncExitStack() as stack:
        server = await asyncio.to_thread(stack.enter_context, started())
        upstream = await stack.enter_async_context(ModernUpstream(capabilities=TELLS if tells else None))
        tagging = Tagging(upstream)
        given = {"admin": "127.0.0.1:0", "cache": {"max_bytes": MAX_BYTES}, **more}
        behind: Any = {
            "mcp": (upstream, entry or {}),
            "uncached": (upstream, {**(entry or {}), "cache": {"enabled": False}}),
        }
        replicas = await stack.enter_async_context(fleet(behind, store=server.url, timeout_ms=1000, **given))
        yield Two(replicas, server, tagging)


def entries(server: Server) -> list[bytes]:
    return sorted(key for key in server.admin().scan_iter("*") if b":cache:" in key)


async def same_at_both(pair: Two) -> None:
    """Both replicas give out what was fetched once, and what they hold is listened for."""
    async with asyncio.timeout(DEADLINE_S):
        while not (how(await pair.list(0)) == how(await pair.list(1)) == "cache;desc=hit"):
            pass
        await pair.tagging.upstream.when(lambda: pair.tagging.upstream.listeners)
        while not (how(await pair.list(0)) == how(await pair.list(1)) == "cache;desc=hit"):
            pass


async def test_what_one_replica_has_fetched_the_other_gives_out() -> None:
    async with two() as pair:
        await same_at_both(pair)  # until then each may have to ask for itself: the store may be slow
        before = pair.tagging.count
        first, second = [await pair.list(index, ident=index) for index in (0, 1)]
        assert pair.tagging.count == before
        assert name(first) == name(second) == "nobody-plain-mute-first"
        assert (made(first), made(second)) == (0, 0)
        assert second.result["ttlMs"] <= first.result["ttlMs"]


CHANGES, PROMPT_S = 5, 1.0
"""The median of so many counts: one may find the machine busy."""


async def becomes(pair: Two, wanted: int, **more: Any) -> None:
    """Both replicas have heard of a change."""
    for index in (0, 1):
        async with asyncio.timeout(DEADLINE_S):
            while made(await pair.list(index, **more)) != wanted:
                pass


@pytest.mark.field("I5")
async def test_a_change_that_is_told_to_one_replica_ends_the_entry_at_the_other_within_a_second() -> None:
    async with two() as pair:
        await same_at_both(pair)
        [stream] = pair.tagging.upstream.listeners  # one replica reads it
        took_s = []
        for change in range(1, CHANGES + 1):
            pair.tagging.made = change
            began_s = asyncio.get_running_loop().time()
            await stream.notify("notifications/tools/list_changed", {})
            await becomes(pair, change)
            took_s.append(asyncio.get_running_loop().time() - began_s)
            await same_at_both(pair)
            assert made(await pair.list(0)) == made(await pair.list(1)) == change
        assert sorted(took_s)[CHANGES // 2] < PROMPT_S, took_s


async def test_an_answer_that_a_change_overtakes_is_given_to_its_own_caller_at_most_and_never_stored() -> None:
    """At the replica that asked, at the one that waited for it, and at one that has only the store to read."""
    asks = {"capabilities": HOSTS["plain-asks"]}
    async with two() as pair:
        await same_at_both(pair)
        [stream] = pair.tagging.upstream.listeners
        before, slow = pair.tagging.count, asyncio.Event()
        pair.tagging.hold = slow
        late = asyncio.create_task(pair.list(1, **asks))
        await pair.tagging.when(before + 1)
        waiting = asyncio.create_task(pair.list(0, **asks))
        await settled(pair.replicas.replicas[0], "mcp_front_door_requests_in_flight", 1)
        pair.tagging.made, pair.tagging.hold = 1, asyncio.Event()
        pair.tagging.hold.set()
        await stream.notify("notifications/tools/list_changed", {})
        await becomes(pair, 1)
        after = pair.tagging.count
        assert made(await pair.list(0, **asks)) == made(await pair.list(1, **asks)) == 1  # none waits for the old one
        slow.set()
        assert (made(await late), made(await waiting)) == (0, 1)
        for index in (0, 1):
            found = await pair.list(index, **asks)
            assert (how(found), made(found)) == ("cache;desc=hit", 1)
        third = await pair.replicas.start_another()
        assert made(await third.front().modern("tools/list", **asks)) == 1
        assert pair.tagging.count == after + 1


async def test_an_answer_that_was_under_way_at_the_other_replica_is_never_kept() -> None:
    async with two() as pair:
        await same_at_both(pair)
        await purge(pair.replicas.replicas[0])
        before = pair.tagging.count
        pair.tagging.hold.clear()
        late = asyncio.create_task(pair.list(1))
        await pair.tagging.when(before + 1)
        pair.tagging.made = 1
        await purge(pair.replicas.replicas[0])
        pair.tagging.hold.set()
        assert made(await late) == 0
        for index in (0, 1):
            assert made(await pair.list(index)) == 1


async def purge(replica: GatewayProcess) -> None:
    admin = Front(replica.admin_url).at("/admin/cache/purge")
    assert (await admin.send("POST", {})).status == 200


CLIENTS = 1000


async def ask(front: Front, idents: list[int]) -> list[Answer]:
    """The answers to as many requests at once."""
    return await asyncio.gather(*(front.modern("tools/list", ident=ident) for ident in idents))


@pytest.mark.parametrize("store", ["up", "down"])
async def test_a_thousand_cold_clients_are_one_request_upstream(store: str) -> None:
    """With the store down, one for each replica."""
    async with two() as pair:
        if store == "down":
            await asyncio.to_thread(pair.server.kill)
            for index in (0, 1):
                await settled(pair.replicas.replicas[index], "mcp_front_door_store_up", 0)
        wanted = 1 if store == "up" else 2
        pair.tagging.hold.clear()
        asking = [asyncio.create_task(ask(pair.front(n % 2), list(range(n, CLIENTS, 4)))) for n in range(4)]
        try:
            for index in (0, 1):
                await settled(pair.replicas.replicas[index], "mcp_front_door_requests_in_flight", CLIENTS / 2)
            await pair.tagging.when(wanted)
            assert pair.tagging.count == wanted
        finally:
            pair.tagging.hold.set()
        found = [answer for answers in await asyncio.gather(*asking) for answer in answers]
        assert sorted(answer.final["id"] for answer in found) == list(range(CLIENTS))
        assert {name(answer) for answer in found} == {"nobody-plain-mute-first"}
        assert pair.tagging.count == wanted


async def left(clients: "list[asyncio.Task[Answer]]") -> None:
    for client in clients:
        client.cancel()
    await asyncio.wait(clients)


@pytest.mark.parametrize("who", ["the first", "all of the replica that asks"])
async def test_of_a_thousand_cold_clients_some_leave_and_the_others_are_answered(who: str) -> None:
    async with two() as pair:
        pair.tagging.hold.clear()
        clients = [asyncio.create_task(pair.list(0))]
        await pair.tagging.when(1)
        clients += [asyncio.create_task(pair.list(n % 2, ident=n)) for n in range(1, CLIENTS)]
        leaving = [clients[n] for n in range(CLIENTS) if n == 0 or (who != "the first" and n % 2 == 0)]
        wanted = 1 if who == "the first" else 2
        try:
            for index in (0, 1):
                await settled(pair.replicas.replicas[index], "mcp_front_door_requests_in_flight", CLIENTS / 2)
            await left(leaving)
            still = CLIENTS / 2 - len(leaving)
            await settled(pair.replicas.replicas[0], "mcp_front_door_requests_in_flight", still)
            await pair.tagging.when(wanted)
        finally:
            pair.tagging.hold.set()
        found = await asyncio.gather(*(client for client in clients if client not in leaving))
        assert {name(answer) for answer in found} == {"nobody-plain-mute-first"}
        assert len(found) == CLIENTS - len(leaving)
        assert name(await pair.list(0)) == "nobody-plain-mute-first"
        assert pair.tagging.count == wanted  # what the second one has brought is in the store


async def test_a_replica_that_dies_while_it_fetches_is_not_waited_for() -> None:
    async with two() as pair:
        pair.tagging.hold.clear()
        first = asyncio.create_task(pair.list(0))
        await pair.tagging.when(1)
        second = asyncio.create_task(pair.list(1))
        await settled(pair.replicas.replicas[1], "mcp_front_door_requests_in_flight", 1)
        await pair.replicas.replicas[0].kill()
        with pytest.raises((EOFError, ConnectionError)):
            await first
        await pair.tagging.when(2)
        pair.tagging.hold.set()
        assert name(await second) == "nobody-plain-mute-first"


def spoil(admin: Redis, how_so: str) -> None:
    """Makes the store lie about every entry."""
    keys = [key for key in admin.scan_iter("*") if b":cache:" in key]
    assert keys
    raw = [admin.get(key) for key in keys]
    for index, (key, value) in enumerate(zip(keys, raw, strict=True)):
        assert isinstance(value, bytes)
        lie: Any = {
            "cut short": value[: len(value) // 2],
            "empty": b"",
            "foreign": b'{"tools": []}',
            "altered": value[:-1] + bytes([value[-1] ^ 1]),
            "of another version": b"2" + value[1:],
            "another's": raw[(index + 1) % len(raw)],
        }.get(how_so)
        if how_so == "of another kind":
            admin.delete(key)
            admin.hset(key, "a", "b")
        else:
            admin.set(key, lie)


@pytest.mark.parametrize(
    "how_so", ["cut short", "empty", "foreign", "altered", "of another version", "another's", "of another kind"]
)
async def test_an_entry_that_is_none_is_a_miss(how_so: str) -> None:
    async with two() as pair:
        asked = [{}, {"capabilities": APPS}]
        for more in asked:
            await pair.list(0, **more)
        async with asyncio.timeout(DEADLINE_S):
            while len(entries(pair.server)) < len(asked):
                await pair.list(0)
        before = pair.tagging.count
        await asyncio.to_thread(spoil, pair.server.admin(), how_so)
        found = [await pair.list(1, **more) for more in asked]
        assert [name(one) for one in found] == ["nobody-plain-mute-first", "nobody-apps-mute-first"]
        assert pair.tagging.count >= before + len(asked)
        pair.replicas.check()


@pytest.mark.field("AB6")
async def test_a_store_that_is_silent_keeps_nobody_waiting_and_a_dead_one_is_done_without() -> None:
    async with two() as pair:
        await same_at_both(pair)
        pair.server.pause()
        try:
            pair.tagging.made = 1
            found = await asyncio.gather(*(pair.list(index, capabilities={"roots": {}}) for index in (0, 1)))
            assert {made(one) for one in found} == {1}
        finally:
            pair.server.resume()
        await asyncio.to_thread(pair.server.kill)
        for index in (0, 1):
            assert (await pair.list(index, capabilities={"sampling": {}})).result["tools"]
            again = await pair.list(index, capabilities={"sampling": {}})
            assert how(again) == "cache;desc=hit"


async def test_a_change_while_the_store_is_away_is_not_forgotten_when_it_is_back() -> None:
    async with two() as pair:
        await same_at_both(pair)
        pair.server.pause()
        try:
            pair.tagging.made = 1
            admin = Front(pair.replicas.replicas[0].admin_url).at("/admin/cache/purge")
            told = await admin.send("POST", {})
            assert (told.status, json.loads(told.body)["error"]) == (
                503,
                "the store is down: done in this process, and in the others once it is back",
            )
            assert made(await pair.list(0)) == 1
        finally:
            pair.server.resume()
        async with asyncio.timeout(DEADLINE_S):
            while made(await pair.list(1)) != 1:
                pass


@pytest.mark.field("AB3")
async def test_replicas_of_two_configurations_never_meet_each_others_entries() -> None:
    """As while they are restarted one after the other."""
    async with AsyncExitStack() as stack:
        server = await asyncio.to_thread(stack.enter_context, started())
        shops = [Tagging(await stack.enter_async_context(ModernUpstream()), made=number) for number in (1, 2)]
        store = {"url": server.url, "timeout_ms": 1000}
        replicas = [
            await stack.enter_async_context(
                running({"mcp": shop.upstream}, keys=KEYS, store=store, cache={"max_bytes": MAX_BYTES})
            )
            for shop in shops
        ]
        for _ in range(3):
            for replica, shop in zip(replicas, shops, strict=True):
                assert made(await replica.front().modern("tools/list")) == shop.made
        assert [shop.count for shop in shops] == [1, 1]


TENANTS: dict[str, dict[str, str]] = {"a": {TENANT: "a"}, "b": {TENANT: "b"}, "nobody": {}}
REQUESTS, UNCACHED = 10_000, 1_000


@dataclass(slots=True)
class Crowd:
    """All tenants with all hosts of both eras at both replicas, at one route. The first requests of every crowd are the
    same."""

    pair: Two
    route: str
    sessions: dict[tuple[str, str], Session] = field(default_factory=dict)
    wrong: Counter[str] = field(default_factory=Counter)

    async def ask(self, requests: int) -> int:
        """So many lists; how many of them came to the upstream."""
        before, chance = self.pair.tagging.count, random.Random(8)
        kinds = list(itertools.product(TENANTS, HOSTS, ("modern", "legacy"), (0, 1)))
        for tenant, host in itertools.product(TENANTS, HOSTS):
            front, headers = self.pair.front(0, self.route), TENANTS[tenant]
            self.sessions[(tenant, host)] = await front.initialize(capabilities=HOSTS[host], headers=headers)
        numbers = iter([(number, *chance.choice(kinds)) for number in range(requests)])

        async def worker() -> None:
            for number, tenant, host, era, index in numbers:
                await self._one(number, tenant, host, era, index)

        await asyncio.gather(*(worker() for _ in range(16)))
        return self.pair.tagging.count - before

    async def _one(self, number: int, tenant: str, host: str, era: str, index: int) -> None:
        params = {"cursor": "2"} if number % 3 == 0 else {}
        wanted = f"{tenant}-{host}-{params.get('cursor', 'first')}"
        front = self.pair.front(index, self.route)
        if era == "modern":
            message = modern_request("tools/list", params, ident=number, capabilities=HOSTS[host])
            found = await front.post(message, {**modern_headers(message), **TENANTS[tenant]})
        else:
            message = {"jsonrpc": "2.0", "id": number, "method": "tools/list", "params": params}
            found = await front.post(message, self.sessions[(tenant, host)].headers)
        if name(found) != wanted or found.final["id"] != number:
            self.wrong[f"{wanted} was given {name(found)}"] += 1


@pytest.mark.field("I10", "Z9")
@pytest.mark.parametrize("scope", ["private", "public"])
async def test_ten_thousand_lists_of_tenants_hosts_and_eras_never_cross(scope: str) -> None:
    """The upstream says in each list for whom it made it, and counts: for a route with the cache, and for the first of
    the same requests at one without."""
    async with two(entry={"forward_headers": [TENANT], "cache": {"trust_public": True}}) as pair:
        pair.tagging.hints = {"ttlMs": 3_600_000, "cacheScope": scope}
        cached, uncached = Crowd(pair, "mcp"), Crowd(pair, "uncached")
        without = await uncached.ask(UNCACHED)
        count = await cached.ask(REQUESTS)
        samples = [await scrape.scrape(replica) for replica in pair.replicas.replicas]
        repeats = sum(scrape.value(one, "mcp_front_door_cache_repeats_total") for one in samples)
        assert not cached.wrong
        assert not uncached.wrong
        contexts = len(TENANTS) * len(HOSTS) * 2
        told = f"{REQUESTS} lists were {count} at the upstream, for {contexts} contexts; without the cache"
        print(f"\n{told}, {UNCACHED} were {without}. {repeats:.0f} were answered without being read again")
        assert contexts <= count <= 4 * contexts
        assert without == UNCACHED
        assert repeats > REQUESTS / 4  # half of them are modern, and each kind is read once for each length of its ids


async def test_a_dead_cursor_ends_a_list_whose_page_another_replica_has_fetched() -> None:
    async with two() as pair:
        await pair.list(0)
        before = pair.tagging.count
        pair.tagging.upstream.on["tools/list"] = Err(-32602, "gone")
        for cursor, ends in (("bogus", False), ("2", True)):
            assert (await pair.front(1).modern("tools/list", {"cursor": cursor})).code == -32602
            if not ends:
                assert how(await pair.list(0)) == "cache;desc=hit"
        async with asyncio.timeout(DEADLINE_S):
            while (await pair.list(0)).final.get("error") is None:
                pass
        assert pair.tagging.count > before + 2


async def test_clients_with_keys_share_what_is_public_and_nothing_else() -> None:
    """Nothing of theirs goes upstream, so that the upstream's word is all there is to tell them apart."""
    keys = {"ci": "mfd_" + "c" * 43, "ops": "mfd_" + "o" * 43}
    clients = {who: {"keys": [digest(key)], "routes": ["/mcp"]} for who, key in keys.items()}
    routes = [{"path": "/mcp", "upstream": "mcp", "anonymous": True}]
    for scope, requests in (("private", 3), ("public", 1)):
        trusting = {"cache": {"trust_public": True}}
        async with two(entry=trusting, tells=False, clients=clients, routes=routes) as pair:
            pair.tagging.hints = {"ttlMs": 3_600_000, "cacheScope": scope}
            for _ in range(2):
                for index in (0, 1):
                    for who in (bearer(keys["ci"]), bearer(keys["ops"]), {}):
                        await pair.list(index, headers=who)
            assert pair.tagging.count == requests
