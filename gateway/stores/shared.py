"""What replicas share, each part over the one store."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from gateway.stores.base import Store
from gateway.stores.changes import Changes
from gateway.stores.feeds import Feeds
from gateway.stores.held import Held
from gateway.stores.mail import Mail
from policies.sealing import KeyRing


@dataclass(frozen=True, slots=True)
class Shared:
    store: Store
    mail: Mail
    changes: Changes
    feeds: Feeds
    held: Held

    @classmethod
    def over(cls, store: Store, ring: Callable[[], KeyRing]) -> Self:
        mail = Mail(store, ring)
        return cls(store, mail, Changes(store, mail), Feeds(mail), Held(store, mail))

    async def close(self) -> None:
        """Ends what others read here, then tells them that this replica is gone."""
        await self.feeds.close()
        await self.held.leave()
        await self.mail.close()
        await self.store.close()
