"""The address that a client of HTTP+SSE is told to POST to: which stream it belongs to, sealed.

Specification: 2024-11-05 basic/transports (HTTP with SSE). Whoever has the address could speak for the client, so that
it is bound to the route and the principal, and is a secret like a session id: never logged.
"""

from dataclasses import dataclass
from typing import Final

from policies.jsonrpc import dumps, loads
from policies.sealing import KeyRing
from policies.sealing import seal as seal_bytes
from policies.sealing import unseal as unseal_bytes

PARAMETER: Final = "sessionId"
"""The member of the query that holds the ticket, by the name that the official TypeScript SDK gave it."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """`stream`: its id, which says at which replica it is. `expires_s`: seconds since the epoch."""

    stream: str
    principal: str
    expires_s: int


def address(ring: KeyRing, route: str, path: str, ticket: Ticket, nonce: bytes) -> str:
    """The relative URL for this ticket on the route with this key, whose HTTP+SSE path is `path`."""
    raw = dumps([ticket.stream, ticket.principal, ticket.expires_s])
    return f"{path}?{PARAMETER}={seal_bytes(ring, 'http-sse', route, raw, nonce)}"


def unseal(ring: KeyRing, route: str, token: str) -> Ticket | None:
    """The ticket, or None for anything that is not one of this gateway for this route."""
    raw = unseal_bytes(ring, "http-sse", route, token)
    return Ticket(*loads(raw)) if raw is not None else None
