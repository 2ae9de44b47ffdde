"""The upstream sessions that each replica holds, so that another can end those of one that has died.

Only sessions opened without a header of any caller's: to end the others takes credentials, which are kept nowhere;
their upstreams end them as they end all that are idle. A store that is down forgets some, which end the same way.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from gateway.stores.base import Store, StoreUnavailable
from gateway.stores.mail import LEASE_S, Mail
from policies.exchange import UpstreamSession
from policies.jsonrpc import dumps, loads

log = logging.getLogger(__name__)

SWEEP_S: Final = 20.0
"""How often it is looked for replicas that have died."""

TTL_S: Final = 7 * 86_400.0
"""How long is remembered what a replica holds, after it last opened a session."""

_ALL = "holders"

End = Callable[[str, UpstreamSession], Awaitable[None]]


class Held:
    def __init__(self, store: Store, mail: Mail) -> None:
        self._store = store
        self._mail = mail
        self._is_listed = False

    async def add(self, upstream: str, session: UpstreamSession) -> None:
        """From now on this replica holds a session there."""
        if not self._store.shared or session.id is None:
            return
        with suppress(StoreUnavailable):
            if not self._is_listed:
                await self._store.put_field(_ALL, self._mail.replica, b"1", TTL_S)
                self._is_listed = True
            await self._store.put_field(self._key(self._mail.replica), _name(upstream, session), b"1", TTL_S)

    async def remove(self, upstream: str, session: UpstreamSession) -> None:
        """It holds it no more."""
        if self._store.shared and session.id is not None:
            with suppress(StoreUnavailable):
                await self._store.put_field(self._key(self._mail.replica), _name(upstream, session), None, TTL_S)

    async def sweep_on(self, end: End) -> None:
        """Ends, by `end`, what replicas held that have died, again and again until cancelled."""
        while self._store.shared:
            with suppress(StoreUnavailable):
                await self.sweep(end)
            await asyncio.sleep(SWEEP_S)

    async def sweep(self, end: End) -> None:
        """Once. Of replicas that sweep at the same time, one ends each session."""
        others = [name for name in await self._store.fields(_ALL) if name != self._mail.replica]
        missing = [name for name in others if not await self._mail.lives(name)]
        if missing:
            await asyncio.sleep(LEASE_S)  # a store that was flushed has its leases again by then
        for name in missing:
            if not await self._mail.lives(name) and await self._store.set_nx(f"swept:{name}", b"1", SWEEP_S):
                await self._end_all(name, end)

    async def leave(self) -> None:
        """This replica has ended all it held."""
        if self._is_listed:
            with suppress(StoreUnavailable):
                await self._store.put_field(_ALL, self._mail.replica, None, TTL_S)
                await self._store.delete(self._key(self._mail.replica))

    async def _end_all(self, replica: str, end: End) -> None:
        found = await self._store.fields(self._key(replica))
        for name in found:
            upstream, *members = loads(name.encode())
            await end(upstream, UpstreamSession(*members))
        if found:
            log.info("%d sessions at upstreams of a replica that has died are ended", len(found))
        await self._store.put_field(_ALL, replica, None, TTL_S)
        await self._store.delete(self._key(replica))

    def _key(self, replica: str) -> str:
        return f"held:{replica}"


def _name(upstream: str, session: UpstreamSession) -> str:
    return dumps([upstream, *session.members]).decode()
