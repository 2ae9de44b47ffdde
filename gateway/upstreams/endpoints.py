"""The endpoints of one upstream over HTTP: counts what is under way at each, takes out those that fail, checks them.

Which one is asked, and which one is out for how long, is decided in `policies/balance.py`. An upstream with one `url`
has one endpoint, which is asked whatever happens. How one is checked is the transport's business.
"""

import asyncio
import itertools
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Collection, Iterator
from types import TracebackType

from policies import balance
from policies.affinity import endpoint_key, endpoint_label
from policies.balance import Candidate, Health
from policies.errors import SessionGone
from policies.settings import Upstream as UpstreamSettings

log = logging.getLogger(__name__)


class Endpoint:
    """One address. `with` it each request that is under way there is counted; a stream that only listens is none."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.key = endpoint_key(url)
        self.label = endpoint_label(url)
        self.requests = 0
        self.chosen = 0
        self.health = Health()
        self.suspect = False
        """It has failed, and nobody has looked yet whether it is there; of an only one, which is never left out."""

    @property
    def in_service(self) -> bool:
        """Whether it gets requests that belong to no session; of an only one, whether it answers."""
        return self.health.in_service(time.monotonic())

    def __enter__(self) -> None:
        self.requests += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.requests -= 1


class Endpoints:
    """`check` says whether an endpoint is there; it raises nothing. `checks_one`: whether an only one is checked once
    it has failed, though it is asked in any case. `on_ejected` is told which one is left out."""

    def __init__(
        self,
        name: str,
        settings: UpstreamSettings,
        check: Callable[[Endpoint], Awaitable[bool]],
        *,
        checks_one: bool = True,
        on_ejected: Callable[[Endpoint], None] = lambda _: None,
    ) -> None:
        self._name = name
        self._checks_one = checks_one
        self._on_ejected = on_ejected
        self._settings = settings
        self._check = check
        self._all = tuple(Endpoint(url) for url in settings.addresses)
        for endpoint in self._all:
            endpoint.chosen = -secrets.randbits(16)  # gateways that start together need not walk in step
        self._by_key = {endpoint.key: endpoint for endpoint in self._all}
        self._turns = itertools.count(1)
        self._watching: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Endpoint]:
        return iter(self._all)

    def __contains__(self, key: str) -> bool:
        return key in self._by_key

    def choose(self, key: str = "", tried: Collection[str] = ()) -> Endpoint | None:
        """The endpoint called `key`, where a session lives, else the one that is best asked next; None where it, or
        each, has been `tried` (keys). Raises `SessionGone` where the configuration no longer has it."""
        if key:
            found = self._by_key.get(key)
            if found is None:
                raise SessionGone
            return found if key not in tried else None
        if len(self._all) == 1:
            return self._all[0] if not tried else None
        candidates = [Candidate(endpoint.requests, endpoint.health, endpoint.chosen) for endpoint in self._all]
        indexes = [index for index, endpoint in enumerate(self._all) if endpoint.key in tried]
        chosen = balance.choose(candidates, self._settings.balance, time.monotonic(), indexes)
        if chosen is None:
            return None
        self._all[chosen].chosen = next(self._turns)
        return self._all[chosen]

    def answered(self, endpoint: Endpoint, status: int) -> None:
        """It has sent the head of an answer."""
        if status in balance.GATEWAY_FAILURES and len(self._all) > 1:
            self.failed(endpoint)
        else:
            endpoint.health = endpoint.health.after_answer()
            if len(self._all) == 1 and not endpoint.health.found:
                endpoint.health = Health()
                log.warning("upstream %s: endpoint %s is in service again", self._name, endpoint.label)

    def failed(self, endpoint: Endpoint) -> None:
        """It could not be reached, or broke off or was silent before the head of an answer."""
        if len(self._all) == 1:
            endpoint.suspect = self._checks_one
            self.watch()
            return
        now_s, rules = time.monotonic(), self._settings.ejection
        may_eject = balance.may_eject([one.health for one in self._all], rules, now_s)
        before, endpoint.health = endpoint.health, endpoint.health.after_failure(rules, now_s, may_eject=may_eject)
        if before.in_service(now_s) and not endpoint.health.in_service(now_s):
            seconds = endpoint.health.out_until_s - now_s
            log.warning("upstream %s: endpoint %s fails and is left out for %g s", self._name, endpoint.label, seconds)
            self._on_ejected(endpoint)
            self.watch()

    def watch(self) -> None:
        """Checks what needs it from now on, for as long as anything does."""
        if self._has_work() and (self._watching is None or self._watching.done()):
            self._watching = asyncio.create_task(self._watch(), name=f"endpoints of {self._name}")

    async def close(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait({self._watching})

    async def _watch(self) -> None:
        while self._has_work():
            await asyncio.gather(*(self._look(endpoint) for endpoint in self._all if self._is_due(endpoint)))
            await asyncio.sleep(self._settings.health.interval_s)

    def _has_work(self) -> bool:
        always = bool(self._settings.health.path) and len(self._all) > 1
        return always or not all(endpoint.health.found and not endpoint.suspect for endpoint in self._all)

    def _is_due(self, endpoint: Endpoint) -> bool:
        wanted = bool(self._settings.health.path) or not endpoint.health.found or endpoint.suspect
        return wanted and time.monotonic() >= endpoint.health.out_until_s

    async def _look(self, endpoint: Endpoint) -> None:
        endpoint.suspect = False
        found = await self._check(endpoint)
        now_s = time.monotonic()
        before, endpoint.health = endpoint.health, endpoint.health.after_check(now_s, found=found)
        if endpoint.health.in_service(now_s) != before.in_service(now_s):
            is_only = len(self._all) == 1
            lost = "cannot be reached" if is_only else "does not pass its check and is left out"
            what = "is in service again" if found else lost
            log.warning("upstream %s: endpoint %s %s", self._name, endpoint.label, what)
