"""Whose fault it is, and which HTTP status a JSON-RPC error has.

Pure code returns a `Rejection`; I/O raises one of three faults, named by whose fault it was. Foreign exceptions are
mapped to these at the edge where they arise (an upstream connector, a store). Statuses: 2026-07-28
basic/transports/streamable-http, for legacy sessions 2025-11-25 basic/transports.
"""

from dataclasses import dataclass
from typing import Any

from policies.mcp import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_CLIENT_CAPABILITY,
    PARSE_ERROR,
    UNSUPPORTED_VERSION,
)

STATUS_OF = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    METHOD_NOT_FOUND: 404,
    HEADER_MISMATCH: 400,
    MISSING_CLIENT_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
}
"""The HTTP status that an error code alone implies towards a modern client; every other code is 200 unless the error
says more (a malformed envelope: 400, a failed upstream: 502, 503, 504)."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a message is not served: a JSON-RPC error, and the HTTP status where the code alone does not imply it."""

    code: int
    message: str
    data: Any = None
    http: int | None = None
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def status(self) -> int:
        return self.http if self.http is not None else STATUS_OF.get(self.code, 200)


class Fault(Exception):
    """A failure on the way, as the JSON-RPC error and HTTP status (for a modern client) that it becomes.

    `args[0]` is a message fit for a client: it holds no token, argument, result or inner address.
    """

    code = INTERNAL_ERROR
    http = 500

    def __init__(self, message: str, *, code: int | None = None, http: int | None = None, data: Any = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = self.code if code is None else code
        self.http = self.http if http is None else http
        self.data = data
        self.headers: tuple[tuple[str, str], ...] = ()

    def rejection(self) -> Rejection:
        return Rejection(self.code, self.message, self.data, self.http, self.headers)


class ClientFault(Fault):
    """The caller's doing: nothing reached an upstream."""

    code = INVALID_REQUEST
    http = 400


class UpstreamFault(Fault):
    """An upstream refused, failed, was silent or spoke nonsense. `executed` is False only where that is certain.

    `contradiction`: it did not answer as a server of its remembered era does. `unanswered`: the connection broke before
    the head of an answer."""

    http = 502
    unanswered = False

    def __init__(
        self,
        message: str,
        *,
        code: int | None = None,
        http: int | None = None,
        data: Any = None,
        executed: bool = True,
        contradiction: bool = False,
    ) -> None:
        super().__init__(message, code=code, http=http, data=data)
        self.executed = executed
        self.contradiction = contradiction


class UpstreamRetired(UpstreamFault):
    """The configuration no longer has this upstream: its streams end, and a new one leads elsewhere."""


class SessionGone(UpstreamFault):
    """The upstream answered 404 for a session it had issued (2025-11-25 transports, Session Management)."""

    http = 404

    def __init__(self, message: str = "Session not found") -> None:
        super().__init__(message, executed=False)


class GatewayFault(Fault):
    """Our own limits or parts: a store, a bound, a missing key."""

    http = 503
