"""What a request must be before anything of MCP is looked at: one Host that is served, no header that contradicts
itself or another, a head within its bounds, an Origin that may.

Specification: RFC 9110 (sections 5.3, 7.2, 7.6.1), RFC 9112 (3.2), 2026-07-28 basic/transports/streamable-http
(Security & Endpoint). Which routes exist is not known here. No message repeats a value.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from policies import wellformed
from policies.errors import Rejection
from policies.headers import Headers
from policies.mcp import HEADER_LAST_EVENT, HEADER_SESSION, INVALID_REQUEST
from policies.routing import host_name
from policies.settings import Settings

CLOSE: Final = (("Connection", "close"),)
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
_ONCE: Final = (
    "Host",
    "Content-Length",
    "Content-Type",
    "Content-Encoding",
    "Authorization",
    HEADER_SESSION,
    HEADER_LAST_EVENT,
)
_AUTHORITY: Final = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?")
_CONNECTION_ONLY: Final = frozenset({"close", "keep-alive", "te", "trailer", "upgrade", "http2-settings"})
_PROTOCOL: Final = frozenset({"host", "authorization", "content-type", "content-length", "accept", "origin"})


@dataclass(frozen=True, slots=True)
class Doorman:
    """Which Hosts and Origins are served. `hosts` None: any. Patterns: `*.example.com`."""

    hosts: tuple[str, ...] | None
    origins: tuple[str, ...]
    loopback: bool

    def host_refused(self, host: str) -> Rejection | None:
        """Whether a `Host` header (or what a trusted proxy says it was) is served."""
        if not _AUTHORITY.fullmatch(host):
            return _broken("Host is missing or malformed")
        name = host_name(host)
        if self.hosts is None or (self.loopback and name in LOOPBACK) or any(_fits(name, p) for p in self.hosts):
            return None
        return Rejection(INVALID_REQUEST, "Host is not one this gateway serves", http=403)

    def origin_refused(self, origins: Sequence[str], scheme: str, host: str) -> Rejection | None:
        """DNS rebinding: an Origin must be the Host's own, a loopback one on a loopback listener, or allowed. An absent
        Origin is no browser; "null" never matches."""
        if all(self.allows_origin(origin, scheme, host) for origin in origins):
            return None
        return Rejection(INVALID_REQUEST, "Origin is not allowed", http=403)

    def allows_origin(self, origin: str, scheme: str, host: str) -> bool:
        origin = origin.lower()
        theirs, separator, rest = origin.partition("://")
        if not separator or not _AUTHORITY.fullmatch(rest):
            return False
        if self.loopback and host_name(rest) in LOOPBACK:  # of any scheme: editors have their own
            return True
        same = theirs in ("http", "https") and rest == host.lower() and scheme in (theirs, "http")
        return (same and self.hosts is not None) or any(_matches(origin, pattern) for pattern in self.origins)


def doorman(settings: Settings) -> Doorman:
    """The one for these settings: the Hosts of `public_url` and of the routes, and the listener's own address."""
    loopback = wellformed.is_loopback(settings.listen.host)
    if settings.hosts == "any":
        return Doorman(None, settings.origins, loopback)
    named = {urlsplit(url).netloc for url in settings.public_url}
    named |= {route.host for route in settings.routes if route.host is not None}
    if settings.listen.host not in ("0.0.0.0", "::"):  # noqa: S104 - compared, not bound
        listen = settings.listen.host
        named.add(f"[{listen}]" if ":" in listen else listen)
    return Doorman(tuple(sorted(host_name(name) for name in named)), settings.origins, loopback)


def check_lines(
    target: str, headers: Headers, lines: Iterable[tuple[bytes, bytes]], max_bytes: int
) -> Rejection | None:
    """Whether a head says one thing, within its bounds. `target`: as on the request line. After a head that does not,
    nobody knows what else comes: its connection ends."""
    size = len(target) + sum(len(name) + len(value) + 4 for name, value in lines)
    if size > max_bytes:
        return head_too_large(max_bytes)
    for name in _ONCE:
        values = headers.getall(name, ())
        if len(values) > 1 and len(set(values)) > 1:
            return _broken(f"{name} is given more than once, with different values")
    if any(coding.strip().lower() != "chunked" for coding in headers.getall("Transfer-Encoding", ())):
        return _broken("Transfer-Encoding must be chunked", http=501)
    if not target.startswith(("/", "*")):
        authority = urlsplit(target).netloc
        if authority.lower() != headers.getall("Host", ("",))[0].lower():
            return _broken("the request target and Host name different hosts")
    for option in connection_options(headers):
        if option in _PROTOCOL or option.startswith("mcp-"):
            return _broken("Connection names a header that is meant for the end")
    return None


def _broken(why: str, http: int = 400) -> Rejection:
    return Rejection(INVALID_REQUEST, why, http=http, headers=CLOSE)


def head_too_large(max_bytes: int) -> Rejection:
    why = f"the request head is larger than {max_bytes} bytes (limits.max_head_bytes)"
    return Rejection(INVALID_REQUEST, why, http=431, headers=CLOSE)


def connection_options(headers: Headers) -> frozenset[str]:
    """The headers that belong to this connection alone because `Connection` names them (RFC 9110, section 7.6.1)."""
    values = headers.getall("Connection", ())
    if not values:
        return frozenset()
    return frozenset(o for part in ",".join(values).split(",") if (o := part.strip().lower())) - _CONNECTION_ONLY


def _fits(name: str, pattern: str) -> bool:
    return name.endswith(pattern[1:]) and name != pattern[1:] if pattern.startswith("*.") else name == pattern


def _matches(origin: str, pattern: str) -> bool:
    """Whether a lower-case origin is `scheme://host[:port]` or fits it where host is `*.name` or port is `*`."""
    scheme, _, rest = pattern.partition("://")
    host, port = _split(rest)
    theirs, _, authority = origin.partition("://")
    their_host, their_port = _split(authority)
    default = {"http": "80", "https": "443"}.get(scheme, "")
    return (
        scheme == theirs and _fits(their_host, host) and (port == "*" or (port or default) == (their_port or default))
    )


def _split(authority: str) -> tuple[str, str]:
    host, colon, port = authority.rpartition(":")
    return (host, port) if colon and not authority.endswith("]") else (authority, "")
