"""Whether an upstream lists tools with an interface, for hosts that are told of it though the upstream does not.

Specification: MCP Apps 2026-01-26 (Resource Discovery). Asked in the name of a host that shows Apps, since servers may
list such tools to no other; what was found is kept for a minute, and the old is told while it is looked at anew.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from gateway.exchange import Exchange
from gateway.upstreams.patience import within
from gateway.upstreams.schemas import MAX_PAGES
from policies.apps_matrix import has_interface
from policies.errors import Fault, UpstreamFault
from policies.exchange import Answer, Call, Dialect
from policies.forwarded import lasting
from policies.identity import principal
from policies.mcp import LATEST_MODERN, Json
from policies.profiles import Profile

log = logging.getLogger(__name__)

TTL_S = 60.0
"""How old what was found may be: as a description."""

Credentials = tuple[tuple[str, str], ...]


class Look:
    """`leg` runs a call at the upstream, which is called `name`."""

    def __init__(self, name: str, leg: Callable[[Call, Exchange], Awaitable[None]]) -> None:
        self._name = name
        self._leg = leg
        self._found: tuple[bool, float] | None = None
        self._looking: asyncio.Task[None] | None = None

    async def lists_apps(self, profile: Profile, deadline_s: float, credentials: Credentials = ()) -> bool:
        """As last known where the upstream does not answer within `deadline_s`; False where it has never answered.

        With a caller's credentials it is asked anew, and remembered for nobody. Never raises for a sick upstream."""
        if lasting(credentials):
            try:
                async with within(deadline_s, self._name):
                    return await self._walk(profile, credentials)
            except Fault as fault:
                log.info("upstream %s does not list its tools to a caller: %s", self._name, fault.message)
                return False
        if self._found is None or time.monotonic() - self._found[1] > TTL_S:
            if self._looking is None:
                self._looking = asyncio.create_task(self._look(profile), name=f"apps {self._name}")
            await asyncio.wait({self._looking}, timeout=deadline_s)
        return self._found is not None and self._found[0]

    @property
    def found(self) -> bool | None:
        """What was found last, None where nobody has looked."""
        return self._found[0] if self._found is not None else None

    def close(self) -> None:
        if self._looking is not None:
            self._looking.cancel()

    async def _look(self, profile: Profile) -> None:
        try:
            self._found = await self._walk(profile, ()), time.monotonic()
        except Fault as fault:
            log.info("upstream %s does not list its tools: %s", self._name, fault.message)
        finally:
            self._looking = None

    async def _walk(self, profile: Profile, credentials: Credentials) -> bool:
        told = Profile("", apps=profile.apps)  # nobody is there who could be asked anything
        who, front = principal(credentials), Dialect("modern", LATEST_MODERN)

        async def page(params: Json) -> Json:
            call = Call(
                "tools/list", params, {}, told.capabilities, None, who, front, forwarded=credentials, profile=told
            )
            exchange = Exchange(call)
            await self._leg(call, exchange)
            if not isinstance(exchange.last, Answer):
                raise UpstreamFault(f"upstream {self._name} refuses to list its tools", executed=False)
            return exchange.last.result

        return await any_app(page)


async def any_app(page: Callable[[Json], Awaitable[Json]]) -> bool:
    """Whether `tools/list` has a tool of Apps, walked up to the first. `page`: the result for these parameters."""
    params: Json = {}
    for _ in range(MAX_PAGES):
        result = await page(params)
        tools, cursor = result.get("tools"), result.get("nextCursor")
        if isinstance(tools, list) and any(map(has_interface, tools)):
            return True
        if not cursor:
            return False
        params = {"cursor": cursor}
    return False
