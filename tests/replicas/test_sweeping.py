"""What a replica leaves at upstreams when it is killed is ended by another."""

from contextlib import AsyncExitStack

from tests.fleet import fleet
from tests.gateway_process import running
from tests.peers import LegacyUpstream
from tests.valkey import valkey


def deleted(upstream: LegacyUpstream) -> list[str | None]:
    return [seen.session for seen in upstream.requests if seen.verb == "DELETE"]


async def test_a_killed_replicas_sessions_are_ended_once_and_those_of_the_living_stay() -> None:
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(valkey())
        upstream = await stack.enter_async_context(LegacyUpstream())
        behind = {"u": (upstream, {"era": "legacy"})}
        replicas = await stack.enter_async_context(fleet(behind, store=store))
        killed, living = replicas.replicas
        for replica in (killed, living):
            assert (await replica.front("/u").modern("tools/call", {"name": "t"})).status == 200
        theirs = [seen.session for seen in upstream.calls("tools/call")]
        assert len(set(theirs)) == 2
        await killed.kill()
        more = {"keys": replicas.keys, "store": {"url": store}}
        for _ in range(2):  # each sweeps as it starts
            await stack.enter_async_context(running(behind, **more))
        await upstream.when(lambda: deleted(upstream))
        assert (await living.front("/u").modern("tools/call", {"name": "t"})).status == 200
        assert upstream.calls("tools/call")[-1].session == theirs[1]
    assert sorted(map(str, deleted(upstream))).count(str(theirs[0])) == 1


async def test_a_killed_replicas_sessions_are_ended_where_they_were_opened() -> None:
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(valkey())
        upstreams = [await stack.enter_async_context(LegacyUpstream()) for _ in range(3)]
        urls = [upstream.url for upstream in upstreams]
        behind = {"u": {"urls": urls, "era": "legacy", "balance": "round_robin"}}
        replicas = await stack.enter_async_context(fleet(behind, store=store))
        killed = replicas.replicas[0]
        for _ in range(6):
            assert (await killed.front("/u").modern("tools/call", {"name": "t"})).status == 200
        theirs = [{seen.session for seen in upstream.calls("tools/call")} for upstream in upstreams]
        assert all(theirs)
        await killed.kill()
        await stack.enter_async_context(running(behind, keys=replicas.keys, store={"url": store}))
        for upstream, sessions in zip(upstreams, theirs, strict=True):
            await upstream.when(lambda: sessions <= set(deleted(upstream)))  # noqa: B023 - awaited at once
        for upstream in upstreams:
            assert set(deleted(upstream)) <= upstream.opened.keys()
