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
