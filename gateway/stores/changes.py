"""What has changed in a legacy session since its token was sealed: that it has ended, its level, what it subscribes to,
which upstream sessions are not the token's, where its standalone stream is read.

One small hash a session in the store. What was read once is held in process, and forgotten when a replica says that it
has changed something, so that the common case needs no look-up. A store that is down, or was flushed, has forgotten
these changes and nothing else: sessions go on as their tokens say.
"""

from collections.abc import Mapping
from typing import Final

from gateway.stores.base import Store, StoreUnavailable
from gateway.stores.mail import Mail

ENDED: Final = "ended"
LEVEL: Final = "level"
STREAM: Final = "stream"
URI: Final = "uri:"
"""Before a URI that is subscribed to."""
UPSTREAM: Final = "upstream:"
"""Before the name of an upstream where the session is not the token's."""

MAX_HELD: Final = 4096
"""Sessions whose changes are held in process."""

_TOPIC = "changed"


class Changes:
    def __init__(self, store: Store, mail: Mail) -> None:
        self._store = store
        self._mail = mail
        self._held: dict[str, Mapping[str, bytes]] = {}
        self._generation = 0
        mail.hear(_TOPIC, lambda body: self._forget(body.decode()))
        mail.on_missed(self._forget_all)

    async def of(self, session: str) -> Mapping[str, bytes]:
        """The changes of a session, as far as this replica knows by now. Empty where the store is down."""
        found = self._held.get(session)
        return found if found is not None else await self.fresh(session)

    async def fresh(self, session: str) -> Mapping[str, bytes]:
        """The changes as they stand in the store now. Empty where it is down."""
        generation = self._generation
        try:
            found = await self._store.fields(self._key(session))
        except StoreUnavailable:
            return {}
        if self._store.shared and generation == self._generation:
            if len(self._held) >= MAX_HELD:
                del self._held[next(iter(self._held))]
            self._held[session] = found
        return found

    async def put(self, session: str, field: str, value: bytes | None, ttl_s: float) -> None:
        """Changes a field, or takes it back, here and for all others. Raises `StoreUnavailable`."""
        await self._store.put_field(self._key(session), field, value, ttl_s)
        self._forget(session)
        await self._mail.tell_all(_TOPIC, session.encode())

    def _forget(self, session: str) -> None:
        self._generation += 1  # what is being read now may be older than this
        self._held.pop(session, None)

    def _forget_all(self) -> None:
        self._generation += 1
        self._held.clear()

    def _key(self, session: str) -> str:
        return f"session:{session}"
