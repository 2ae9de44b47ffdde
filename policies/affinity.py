"""What leads the requests of a legacy session back to the process that holds it, on every replica of the gateway.

Two things do: the key of the endpoint that opened it, where an upstream has several, and the cookies that came with its
`initialize`, where a load balancer before the upstream sticks by cookie. Both stand in the session itself, and go
nowhere else.
"""

import hashlib
import re
from collections.abc import Iterable
from http.cookies import Morsel
from typing import Final
from urllib.parse import urlsplit

MAX_COOKIES: Final = 8
"""A load balancer sets one or two, and there may be two of them in a row."""

MAX_COOKIE_BYTES: Final = 1024
"""Of all together, since they travel in the client's session id. Those of the large clouds have 20 to 300."""

_PAIR: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+=[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]+")
"""RFC 6265, section 4.1.1, without quotes and empty values."""


def endpoint_key(url: str) -> str:
    """What tells an endpoint from others for as long as its address stays the same: 8 characters. A query, where keys
    may stand that change, is no part of it."""
    return hashlib.sha256(endpoint_label(url).encode()).hexdigest()[:8]


def endpoint_label(url: str) -> str:
    """The same for people: `10.0.0.1:9000/mcp`."""
    parts = urlsplit(url)
    return parts.netloc + parts.path


def cookie_header(cookies: Iterable[Morsel[str]]) -> str:
    """The `Cookie` header that goes with a session's requests, empty where there is none: what `initialize` set, but
    for what is too large or deletes a cookie. It only ever goes to where it came from, for as long as the session
    lives, so that domain, path and age say nothing more."""
    kept: list[str] = []
    for cookie in cookies:
        pair = f"{cookie.key}={cookie.coded_value}"
        if not _PAIR.fullmatch(pair) or str(cookie["max-age"]).startswith(("0", "-")):
            continue
        if len(kept) < MAX_COOKIES and len("; ".join([*kept, pair])) <= MAX_COOKIE_BYTES:
            kept.append(pair)
    return "; ".join(kept)
