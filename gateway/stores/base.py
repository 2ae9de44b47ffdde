"""The one protocol through which state that another replica could need is kept.

Values are bytes, so that every implementation keeps them alike. All methods are cancel-safe: an operation either has
happened or has not. Errors: `policies.errors.GatewayFault` where the store cannot be reached.
"""

from typing import Protocol


class Store(Protocol):
    async def get(self, key: str) -> bytes | None:
        """The value, or None where there is none or it has expired."""

    async def set(self, key: str, value: bytes, ttl_s: float) -> None:
        """Sets or replaces; the value is gone after `ttl_s`, at once where that is 0 or less."""

    async def set_nx(self, key: str, value: bytes, ttl_s: float) -> bool:
        """Sets only where nothing is; whether it did."""

    async def delete(self, key: str) -> None:
        """Removes; nothing happens where nothing is."""

    async def close(self) -> None:
        """Lets go of what the store holds."""
