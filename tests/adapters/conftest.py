"""All conversations are had once, side by side, before the first test looks at what arrived at the provider."""

import inspect
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

import pytest
import pytest_asyncio

from tests.adapters.cases import (
    BOTH_FORMS,
    CASES,
    DATA_ALONE,
    DIRECT,
    HERE,
    LINKING,
    ONCE,
    PREFIXES,
    PYTHON,
    SCRIPTS,
    THROUGH,
    Case,
    Talk,
    had,
)
from tests.adapters.provider import Provider, Request, provider
from tests.apps.real.servers import SAMPLES
from tests.door import share_one_loop
from tests.gateway_process import GatewayProcess, running
from tests.sse.peers import served

ONE_COPY = {"keep_structured": False}
DIALECTS = ("anthropic", "openai", "gemini", "bedrock")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    share_one_loop([item for item in items if is_async(item)], "adapters")


def is_async(item: pytest.Item) -> bool:
    return isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj)


@dataclass(frozen=True, slots=True)
class Records:
    """What was said, and what arrived, by the conversation's key."""

    said: Mapping[str, Sequence[str]]
    provider: Provider
    gateway: GatewayProcess

    def arrived(self, case: Case, server: str, way: str = THROUGH) -> list[Request]:
        found = self.provider.arrived[case.key(server, way)]
        assert found
        return found

    def turns(self, case: Case, server: str, way: str = THROUGH) -> list[Request]:
        """Without what is no turn of the conversation."""
        found = [one for one in self.arrived(case, server, way) if not one.is_aside]
        assert len(found) == len(SCRIPTS[server])
        return found


def talks() -> list[Talk]:
    """Every case with a server of views and with one of none, directly and not; the rest of the servers once a case;
    and those that send both forms of a result, or one, to where one is wanted."""
    both = [
        Talk(case, server, way) for case in CASES.values() for server in ("ui", "plain") for way in (DIRECT, THROUGH)
    ]
    once = [Talk(case, server, THROUGH) for case in CASES.values() for server in ("library", "published")]
    one_copy = [Talk(case, "ui", ONCE) for case in BOTH_FORMS]
    one_copy += [Talk(case, "ui", way) for case in DATA_ALONE for way in (DIRECT, ONCE)]
    links = [Talk(case, "links", way) for case in LINKING for way in (DIRECT, THROUGH)]
    return both + links + one_copy + [talk for talk in once if talk.case.is_once]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def records() -> AsyncIterator[Records]:
    async with AsyncExitStack() as stack:
        peer = await stack.enter_async_context(provider(SCRIPTS))
        own = await stack.enter_async_context(served([PYTHON, str(HERE / "server.py")]))
        library, published = [
            await stack.enter_async_context(served(list(SAMPLES[name].command)))
            for name in ("mcp-ui", "system-monitor")
        ]
        behind = {
            **{name: f"{own}/{name}" for name in ("ui", "links", "plain")},
            "library": library,
            "published": published,
        }
        gateway = await stack.enter_async_context(
            running(
                {name: {"url": url} for name, url in behind.items()},
                providers={
                    **{name: {"dialect": name, "url": peer.url} for name in DIALECTS},
                    **{f"{name}-once": {**ONE_COPY, "dialect": name, "url": peer.url} for name in DIALECTS},
                },
                routes=[
                    *({"path": f"/{name}", "upstream": name} for name in behind),
                    *({"path": PREFIXES[THROUGH].format(name), "provider": name} for name in DIALECTS),
                    *({"path": PREFIXES[ONCE].format(name), "provider": f"{name}-once"} for name in DIALECTS),
                ],
            )
        )
        said = await had(talks(), gateway.url, {DIRECT: peer.url, THROUGH: gateway.url, ONCE: gateway.url})
        gateway.check()
        yield Records(said, peer, gateway)
