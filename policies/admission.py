"""The request ladder: what is this, may it, where to. Each rung gives a value or a `Rejection`.

Order and statuses: 2026-07-28 basic/transports/streamable-http, 2025-11-25 basic/transports. The
rungs are called in the order in which they stand here: the head is judged before a byte of the body is read, and
nothing about sessions or routes of others leaks to a caller who fails an earlier rung.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from policies import era, jsonrpc, routing
from policies.edge import Doorman
from policies.errors import Rejection
from policies.forwarded import Caller
from policies.headers import Headers
from policies.mcp import (
    HEADER_METHOD,
    HEADER_SESSION,
    HEADER_VERSION,
    INVALID_REQUEST,
    LEGACY_VERSIONS,
    META_PROGRESS_TOKEN,
    MODERN_VERSIONS,
    Era,
    Json,
)
from policies.settings_routes import Route

_ALLOW = (("Allow", "POST, GET, DELETE"),)
_ALLOW_HTTP_SSE = (("Allow", "GET, POST"),)
_ALLOW_MODERN = (("Allow", "POST"),)

NO_ENDPOINT = Rejection(INVALID_REQUEST, "no MCP endpoint at this path", http=404)


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Which of the two answer forms the caller reads."""

    json: bool
    sse: bool


@dataclass(frozen=True, slots=True)
class Head:
    """An admitted request head: its route, what the caller can read, and the client whose key came with it, if any.
    `http_sse`: it came at the route's path for that transport."""

    route: Route
    accept: Acceptance
    version: str | None
    client: str | None = None
    http_sse: bool = False


def admit_head(
    method: str, path: str, headers: Headers, caller: Caller, routes: Sequence[Route], doorman: Doorman
) -> Head | Rejection:
    """Rungs 1 to 3: Host and Origin, route, HTTP method and content type."""
    origins = headers.getall("Origin", ())
    refused = doorman.host_refused(caller.host) or doorman.origin_refused(origins, caller.proto, caller.host)
    if refused is not None:
        return refused
    route = routing.find_route(routes, caller.host, path)
    if route is None:
        return NO_ENDPOINT
    return admit_verb(method, path, headers, route)


def admit_verb(method: str, path: str, headers: Headers, route: Route) -> Head | Rejection:
    """Rung 3: HTTP method, content type, and what the caller can read, of a request at one of this route's paths."""
    if route.provider is not None:  # what may be asked of an API is for the API to say
        return Head(route, acceptance(headers.getall("Accept", ())), None)
    if routing.is_http_sse(route, path):
        return _admit_http_sse(method, headers, route)
    return _admit_mcp(method, headers, route)


def _admit_mcp(method: str, headers: Headers, route: Route) -> Head | Rejection:
    version = headers.get(HEADER_VERSION)
    if method not in ("POST", "GET", "DELETE"):
        return Rejection(INVALID_REQUEST, f"{method} is not served here", http=405, headers=_ALLOW)
    if method != "POST":
        if version in MODERN_VERSIONS:
            return Rejection(INVALID_REQUEST, f"{version} has only POST", http=405, headers=_ALLOW_MODERN)
        if headers.get(HEADER_SESSION) is None:
            return Rejection(INVALID_REQUEST, f"{method} needs a session", http=405, headers=_ALLOW)
    elif not _is_json(headers.get("Content-Type")):
        return Rejection(INVALID_REQUEST, "Content-Type must be application/json in UTF-8", http=415)
    accept = acceptance(headers.getall("Accept", ()))
    if method == "GET" and not accept.sse:  # transports, Listening for Messages: an event stream, or else 405
        return Rejection(INVALID_REQUEST, "GET is an event stream: Accept must list it", http=405, headers=_ALLOW)
    if method == "POST" and not accept.json and not accept.sse:
        return Rejection(INVALID_REQUEST, "Accept must list application/json and text/event-stream", http=406)
    return Head(route, accept, version)


def _admit_http_sse(method: str, headers: Headers, route: Route) -> Head | Rejection:
    """The same rung at the path of HTTP+SSE (2024-11-05 transports): GET opens a stream, on which POSTs are
    answered, so that it matters not what they accept."""
    if method not in ("POST", "GET"):
        return Rejection(INVALID_REQUEST, f"{method} is not served here", http=405, headers=_ALLOW_HTTP_SSE)
    accept = acceptance(headers.getall("Accept", ()))
    if method == "GET" and not accept.sse:
        return Rejection(INVALID_REQUEST, "Accept must list text/event-stream", http=406)
    if method == "POST" and not _is_json(headers.get("Content-Type")):
        return Rejection(INVALID_REQUEST, "Content-Type must be application/json in UTF-8", http=415)
    return Head(route, accept, None, http_sse=True)


def acceptance(values: Sequence[str]) -> Acceptance:
    """What `Accept` allows, the closest match of each type (RFC 9110, section 12.5.1). Lenient: wildcards count, no
    header means both; intermediaries rewrite it."""
    if not values:
        return Acceptance(True, True)
    allowed: dict[str, bool] = {}
    for item in ",".join(values).lower().split(","):
        media, *parameters = (part.strip() for part in item.split(";"))
        allowed[media] = not any(p.replace(" ", "") in ("q=0", "q=0.0", "q=0.00", "q=0.000") for p in parameters)

    def reads(*closest_first: str) -> bool:
        return next((allowed[media] for media in closest_first if media in allowed), False)

    return Acceptance(reads("application/json", "application/*", "*/*"), reads("text/event-stream", "text/*", "*/*"))


def era_of(headers: Headers, message: jsonrpc.Message | list[jsonrpc.Message | Rejection]) -> Era:
    """Rung 4: the era of this request (`policies/era.py`). A response or a batch has no method: both belong to legacy
    sessions."""
    if isinstance(message, list):
        return "legacy"
    if isinstance(message, jsonrpc.Response):
        message = jsonrpc.Notification("", {})
    return era.of_request(
        headers.get(HEADER_VERSION),
        headers.get(HEADER_SESSION) is not None,
        headers.get(HEADER_METHOD) is not None,
        message.method,
        meta_of(message.params),
    )


def legacy_version(version: str | None) -> Rejection | None:
    """Inside a session the session's version governs; an absent header is fine, an unknown one is not
    (2025-11-25 transports, Protocol Version Header)."""
    if version is None or version in LEGACY_VERSIONS:
        return None
    known = ", ".join(LEGACY_VERSIONS)
    return Rejection(INVALID_REQUEST, f"MCP-Protocol-Version is none of {known}", http=400)


def meta_of(params: Json) -> Json:
    """`params._meta`, or an empty object where there is none."""
    meta = params.get("_meta")
    return meta if isinstance(meta, dict) else {}


def progress_token(meta: Json) -> str | int | None:
    """The caller's progress token, in its own type; anything but a string or an integer is no token."""
    token = meta.get(META_PROGRESS_TOKEN)
    return token if isinstance(token, str | int) and not isinstance(token, bool) else None


def _is_json(content_type: str | None) -> bool:
    media, *parameters = (part.strip().lower() for part in (content_type or "").split(";"))
    charsets = [p.partition("=")[2].strip('" ') for p in parameters if p.startswith("charset")]
    return media == "application/json" and all(charset in ("utf-8", "utf8") for charset in charsets)
