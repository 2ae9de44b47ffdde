"""What a browser is told about pages of another origin: the preflight's answer, and the lines on every response.

Specification: Fetch Standard (CORS protocol); the headers are those of basic/transports of every revision. Which
origins may is decided in `policies/edge.py`.
"""

from collections.abc import Iterable
from typing import Final

from policies.headers import Headers
from policies.mcp import HEADER_LAST_EVENT, HEADER_METHOD, HEADER_NAME, HEADER_PARAM, HEADER_SESSION, HEADER_VERSION
from policies.wellformed import is_token

MAX_AGE_S: Final = 7200
"""How long a browser keeps a preflight's answer: the most that Chromium does."""

METHODS: Final = "POST, GET, DELETE"
_ALLOWED: Final = (
    "Accept",
    "Authorization",
    "Content-Encoding",
    "Content-Type",
    HEADER_LAST_EVENT,
    HEADER_METHOD,
    HEADER_NAME,
    HEADER_VERSION,
    HEADER_SESSION,
    "traceparent",
    "tracestate",
)
_EXPOSED: Final = f"{HEADER_SESSION}, {HEADER_VERSION}, WWW-Authenticate, Retry-After"
_MAX_ASKED: Final = 64
"""Headers of one preflight that are looked at."""


def response_headers(origin: str) -> dict[str, str]:
    """For every answer to a page of an allowed origin, errors included."""
    return {"Access-Control-Allow-Origin": origin, "Access-Control-Expose-Headers": _EXPOSED, "Vary": "Origin"}


def api_headers(origin: str) -> dict[str, str]:
    """The same for answers of an LLM API, whose headers are its own."""
    return {**response_headers(origin), "Access-Control-Expose-Headers": "*"}


def asked_for(headers: Headers) -> list[str]:
    """The headers that a preflight asks for: what an LLM API understands is not known here."""
    asked = ",".join(headers.getall("Access-Control-Request-Headers", ())).split(",")[:_MAX_ASKED]
    return [name for part in asked if is_token(name := part.strip())]


def preflight_headers(headers: Headers, forwardable: Iterable[str]) -> dict[str, str]:
    """For the answer to a preflight of an allowed origin. `forwardable`: request headers that a route passes on."""
    allowed = {name.lower(): name for name in (*_ALLOWED, *forwardable)}
    asked = ",".join(headers.getall("Access-Control-Request-Headers", ())).split(",")[:_MAX_ASKED]
    for name in (part.strip() for part in asked):
        if name.lower().startswith(HEADER_PARAM.lower()) and is_token(name):
            allowed[name.lower()] = name
    found = {
        "Access-Control-Allow-Methods": METHODS,
        "Access-Control-Allow-Headers": ", ".join(allowed.values()),
        "Access-Control-Max-Age": str(MAX_AGE_S),
    }
    if headers.getall("Access-Control-Request-Private-Network", ()):
        found["Access-Control-Allow-Private-Network"] = "true"
    return found
