"""Who calls: the client whose key came with the request, and the principal that sessions and memory are bound to.

Specification: 2026-07-28 basic/authorization (bearer tokens in the header alone), RFC 6750, RFC 9110 section 11. Keys
are 256 random bits, so one round of SHA-256 is all that recognising them takes: nothing is there to be guessed, and a
slow hash would cost every request more than the rest of its way. The principal keys sessions, shared upstream sessions
and what is remembered per caller; it is a digest or a configured name, so that no credential is kept or shown.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from policies.errors import Rejection
from policies.jsonrpc import dumps
from policies.mcp import INVALID_REQUEST
from policies.settings import Settings
from policies.settings_routes import Route

ANONYMOUS = "anonymous"

_MISSING = Rejection(
    INVALID_REQUEST,
    "a key is needed here: Authorization: Bearer KEY",
    http=401,
    headers=(("WWW-Authenticate", 'Bearer realm="mcp"'),),
)
_UNKNOWN = Rejection(
    INVALID_REQUEST,
    "this key is not known here",
    http=401,
    headers=(("WWW-Authenticate", 'Bearer realm="mcp", error="invalid_token"'),),
)
_FOREIGN = Rejection(INVALID_REQUEST, "this key is not for this endpoint", http=403)
"""No challenge: `insufficient_scope` makes clients log in again for more, which nobody here grants."""


@dataclass(frozen=True, slots=True)
class Clients:
    """The configured clients, ready to recognise their keys."""

    _by_digest: dict[str, str]
    _routes: dict[str, frozenset[str]]

    @classmethod
    def of(cls, settings: Settings) -> "Clients":
        return cls(
            {digest.removeprefix("sha256:"): name for name, known in settings.clients.items() for digest in known.keys},
            {name: frozenset(known.routes) for name, known in settings.clients.items()},
        )

    def identify(self, route: Route, lines: Sequence[str]) -> str | Rejection | None:
        """The client whose key stands in these `Authorization` lines, None for an anonymous caller who may be one.

        A route that serves anonymous callers takes any credential that is no key of its clients for none."""
        name = self.owner(lines[0]) if len(lines) == 1 else None
        return self.admit(route, name, _UNKNOWN if lines else _MISSING)

    def admit(self, route: Route, name: str | None, without: Rejection) -> str | Rejection | None:
        """As whom the owner of a key may use a route, None for an anonymous caller who may. `name` is None for a caller
        of whom no key is known, who may not because of `without`."""
        if not self._routes:
            return None
        if name is not None and route.address in self._routes[name]:
            return name
        if route.anonymous:
            return None
        return _FOREIGN if name is not None else without

    def owner(self, authorization: str) -> str | None:
        """Whose key this `Authorization` value holds."""
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer":
            return None
        digest = hashlib.sha256(token.strip().encode(errors="surrogateescape")).hexdigest()
        return self._by_digest.get(digest)  # how long it takes tells of digests at most, which lead to no key


def principal(credentials: Sequence[tuple[str, str]], client: str | None = None) -> str:
    """The name of a caller: one for each client and each set of header values that are passed on, `anonymous` where
    there is neither."""
    if not credentials:
        return ANONYMOUS if client is None else f"client:{client}"
    known = sorted({(name.lower(), value) for name, value in credentials})
    digest = hashlib.sha256(dumps([list(pair) for pair in known])).hexdigest()
    return digest if client is None else f"client:{client}:{digest}"


def client_of(principal: str) -> str | None:
    """The client whose principal this is, None for a caller without a key."""
    kind, _, rest = principal.partition(":")
    return rest.partition(":")[0] if kind == "client" else None
