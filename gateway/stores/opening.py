"""Makes the store that the settings ask for."""

from gateway.metrics import Histogram
from gateway.stores.base import Store
from gateway.stores.memory import MemoryStore
from gateway.stores.redis import RedisStore
from policies.settings_store import Store as Settings


def open_store(settings: Settings | None, operations: Histogram | None = None) -> Store:
    """Connects at the first use, so that a gateway starts while its store does not. `operations`: where the durations
    of what is asked of a shared store go, by operation and `error_type`."""
    if settings is None:
        return MemoryStore()
    return RedisStore(settings) if operations is None else RedisStore(settings, operations.observe)
