"""What of a request to an LLM API and of its response passes: which headers, whose key, which bodies are read.

Specification: RFC 9110 (7.6.1, connection-specific fields), RFC 3986 (5.2.4, dot segments). Responses pass untouched
but for what speaks of the connection, or of the API's own host. What is taken out of a body is decided in
`policies/provider.py`.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final
from urllib.parse import unquote

from policies.edge import connection_options
from policies.errors import Rejection
from policies.headers import Headers
from policies.mcp import INVALID_REQUEST
from policies.settings_providers import CREDENTIAL_HEADERS, Provider
from policies.wellformed import HOP_BY_HOP

GATEWAY_KEY: Final = "X-Front-Door-Key"
"""Where a caller's key for the gateway stands beside one for the API. It is never sent on."""

_CREDENTIAL_QUERY: Final = frozenset({"key", "api_key", "api-key", "access_token"})
_SIGNED: Final = "aws4-"
_SIGNED_HEADERS: Final = ("x-amz-security-token", "x-amz-date", "x-amz-content-sha256")
_OWN: Final = frozenset(
    {"host", "content-length", "expect", "cookie", "origin", "referer", "forwarded", "via", "x-real-ip", "baggage"}
    | {GATEWAY_KEY.lower()}
)
"""Request headers that are about this hop, about the network before it, or come from browsers unasked."""
_OF_NETWORK: Final = ("x-forwarded-", "access-control-", "sec-")
_OF_HOST: Final = frozenset({"alt-svc", "strict-transport-security"})
"""What a response says of the API's own host: a client would take it for the gateway's."""

_UNREAD: Final = frozenset(
    {"application/octet-stream", "application/jsonl", "application/x-ndjson", "application/x-jsonlines"}
    | {"application/pdf", "application/zip"}
)
_UNREAD_KINDS: Final = ("multipart/", "image/", "audio/", "video/")

NO_KEY: Final = Rejection(INVALID_REQUEST, f"a key of the gateway is needed here: {GATEWAY_KEY}: KEY", http=401)
UNKNOWN_KEY: Final = Rejection(
    INVALID_REQUEST, f"no key that came is known to the gateway; its own goes into {GATEWAY_KEY}", http=401
)
NO_SOCKETS: Final = Rejection(
    INVALID_REQUEST,
    "WebSockets (realtime APIs) are not served: what is sent by them could not be read; use the API's HTTP form",
    http=501,
)
_DOTS: Final = Rejection(INVALID_REQUEST, 'the path holds a segment "." or ".."; leave it out', http=400)
_SIGNATURE: Final = Rejection(
    INVALID_REQUEST,
    "the request is signed (AWS4-HMAC-SHA256), for another host than it goes to and a body that may be changed: use an "
    "Amazon Bedrock API key (Authorization: Bearer), or give the provider a key of its own in the gateway's settings",
    http=400,
)


def presented(headers: Headers, query: str) -> Iterator[str]:
    """The keys that came with a request, the one that is meant for the gateway first. At most 16: more hide none."""
    found = [value.strip() for value in headers.getall(GATEWAY_KEY, ())]
    for value in headers.getall("Authorization", ()):
        scheme, _, token = value.partition(" ")
        if scheme.lower() == "bearer":
            found.append(token.strip())
    found += [value.strip() for name in CREDENTIAL_HEADERS[1:] for value in headers.getall(name, ())]
    found += [unquote(value) for name, value in _pairs(query) if name in _CREDENTIAL_QUERY]
    return iter(found[:16])


def refusal(provider: Provider, headers: Headers, rest: str, query: str) -> Rejection | None:
    """Why a request is not sent on, whatever its body is."""
    if any("websocket" in value.lower() for value in headers.getall("Upgrade", ())):
        return NO_SOCKETS
    path = unquote(rest).replace("\\", "/")
    if any(segment.partition(";")[0] in (".", "..") for segment in path.split("/")):
        return _DOTS
    if provider.dialect == "bedrock" and not provider.has_credential and _is_signed(headers, query):
        return _SIGNATURE
    return None


def _is_signed(headers: Headers, query: str) -> bool:
    in_query = any(name == "x-amz-signature" for name, _ in _pairs(query))
    return in_query or any(value.strip().lower().startswith(_SIGNED) for value in headers.getall("Authorization", ()))


def sent(
    lines: Iterable[tuple[str, str]], headers: Headers, provider: Provider, is_ours: Callable[[str], bool]
) -> list[tuple[str, str]]:
    """The request headers that go to the API, of all `lines` that came. `is_ours`: whether a key is one of the
    gateway's own clients', which never leaves it."""
    private = HOP_BY_HOP | _OWN | connection_options(headers)
    own = provider.own_headers
    replaced = {name.lower() for name, _ in own}
    if provider.has_credential:
        replaced |= {*CREDENTIAL_HEADERS, *_SIGNED_HEADERS}
    found = []
    for name, value in lines:
        folded = name.lower()
        if folded in private or folded in replaced or folded.startswith(_OF_NETWORK):
            continue
        if folded in CREDENTIAL_HEADERS and is_ours(_token(folded, value)):
            continue
        found.append((name, value))
    return [*found, *own]


def _token(name: str, value: str) -> str:
    if name != "authorization":
        return value.strip()
    scheme, _, token = value.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def sent_query(query: str, provider: Provider, is_ours: Callable[[str], bool]) -> str:
    """The query as it goes to the API: as it came, less keys that don't belong there."""
    parts = []
    for part in query.split("&") if query else ():
        name, value = _pair(part)
        is_key = name in _CREDENTIAL_QUERY or name.startswith("x-amz-")
        if is_key and (provider.has_credential or is_ours(unquote(value))):
            continue
        parts.append(part)
    return "&".join(parts)


def _pairs(query: str) -> Iterator[tuple[str, str]]:
    return map(_pair, query.split("&") if query else ())


def _pair(part: str) -> tuple[str, str]:
    name, _, value = part.partition("=")
    return unquote(name).lower(), value


def reads(dialect: str, content_type: str | None, rest: str) -> bool:
    """Whether a body is read, and not passed on as it comes: JSON is, whatever it is called; uploads of files are
    not."""
    media = (content_type or "").partition(";")[0].strip().lower()
    if media in _UNREAD or media.startswith(_UNREAD_KINDS):
        return False
    return not (dialect == "gemini" and rest.startswith("/upload/"))


def returned(lines: Iterable[tuple[str, str]], headers: Headers) -> list[tuple[str, str]]:
    """The headers of a response that go to the caller."""
    private = HOP_BY_HOP | _OF_HOST | connection_options(headers)
    return [(name, value) for name, value in lines if name.lower() not in private]
