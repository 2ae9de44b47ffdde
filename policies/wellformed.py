"""What a configured address, path, header or key must look like.

Each function takes one string, returns its normal form, and raises `ValueError` with a message that names the mistake
and the fix. No message quotes a URL, a header value or a key: those may hold a secret. Grammars: RFC 3986 (URLs,
paths), RFC 9110 section 5 (fields) and 7.6.1 (hop-by-hop fields), RFC 952/1123 (host names). Which settings exist is
not known here, and nothing is resolved or reached.
"""

import base64
import binascii
import ipaddress
import re
from difflib import get_close_matches
from typing import Final
from urllib.parse import urlsplit, urlunsplit

HOP_BY_HOP: Final = frozenset(
    {"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer"}
    | {"transfer-encoding", "upgrade"}
)
WRITTEN_BY_GATEWAY: Final = frozenset(
    {"accept", "accept-encoding", "content-encoding", "content-length", "content-type", "expect", "host"}
    | {"last-event-id", "origin"}
)
"""Request headers that say what this gateway itself sends or can read; another value would be a lie."""

MAX_KEYS: Final = 8
"""Rotation needs two or three."""

KEY_BYTES: Final = 32
"""AES-256 and HKDF-SHA256 both want 256 bits."""

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_MEDIA_TYPE: Final = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]{1,127}/[!#$%&'*+.^_`|~0-9a-z-]{1,127}")
_HEADER_VALUE: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?")
_LABEL: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_PATH: Final = re.compile(r"/|(?:/[A-Za-z0-9._~!$&'()*+,;=:@-]+)+/?")
_PRINTABLE: Final = re.compile(r"[\x21-\x7e]+")
NAME: Final = r"^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$"
"""What upstreams and clients are called; a plain part of log lines and metrics."""

_NAME: Final = re.compile(NAME)
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_BEARER: Final = re.compile(r"[A-Za-z0-9._~+/-]{16,}=*")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEY_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,16}")


def nearest(name: str, known: list[str]) -> str | None:
    """The known name that `name` was most likely meant to be, or None where none is close."""
    folded = {candidate.lower(): candidate for candidate in known}
    close = get_close_matches(name.lower(), folded, n=1, cutoff=0.6)
    return folded[close[0]] if close else None


def host_name(text: str) -> str:
    """A host name or IP address in lower case, without a final dot; IPv6 in brackets, compressed."""
    if text.startswith("[") and text.endswith("]"):
        try:
            return f"[{ipaddress.IPv6Address(text[1:-1]).compressed}]"
        except ValueError:
            raise ValueError("is no IPv6 address; write for example [::1]") from None
    host = text.lower().removesuffix(".")
    if ":" in host:
        raise ValueError("must be a host alone; leave scheme and port out, put an IPv6 address in brackets")
    if not host.isascii():
        raise ValueError("must be ASCII; write the name in its xn-- form")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in host.split(".")):
        raise ValueError("is no host name; write for example mcp.example.com")
    if host.rpartition(".")[2].isdigit():
        try:
            ipaddress.IPv4Address(host)
        except ValueError:
            raise ValueError("is no IPv4 address; write four numbers from 0 to 255, for example 127.0.0.1") from None
    return host


def host_pattern(text: str) -> str:
    """A host as `host_name` has it, or `*.` and a host name for every host below that one."""
    return "*." + host_name(text[2:]) if text.startswith("*.") else host_name(text)


def host_port(text: str) -> tuple[str, int]:
    """`127.0.0.1:8080`, `[::1]:8080` or `localhost:0` as host (IPv6 without its brackets) and port (0 to 65535)."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ValueError('must be host:port with a port from 0 to 65535, for example "127.0.0.1:8080"')
    if not host:
        raise ValueError('names no host; write "127.0.0.1" for this machine alone, "0.0.0.0" for every address')
    if host == "*":
        raise ValueError('must name an address; write "0.0.0.0" for every IPv4 address, "[::]" for IPv6 as well')
    return host_name(host).strip("[]"), int(port)


def is_name(text: str) -> bool:
    """Whether `text` may name an upstream or a client."""
    return _NAME.fullmatch(text) is not None


def is_loopback(host: str) -> bool:
    """Whether an address to listen on, as `host_port` gives it, is reached from this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def path(text: str) -> str:
    """The path of a public endpoint: absolute, no empty or dot segment, nothing escaped."""
    if not text.startswith("/"):
        raise ValueError('must start with "/", for example /mcp')
    if "?" in text or "#" in text:
        raise ValueError('must be a path alone; leave out "?" and "#" and what follows')
    if not _PATH.fullmatch(text) or any(segment in {".", ".."} for segment in text.split("/")):
        raise ValueError('must be plain segments such as /fleet/mcp; leave out "//", dot segments, "%" and spaces')
    return text


def upstream_url(text: str) -> str:
    """An http or https URL with scheme and host in lower case and at least "/" as path."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise ValueError("is no URL; write for example http://127.0.0.1:9000/mcp") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("must be an http or https URL with a host, for example http://127.0.0.1:9000/mcp")
    if parts.username is not None or parts.password is not None:
        raise ValueError("must not hold a user or password; put the credential into headers")
    if parts.fragment or text.endswith("#"):
        raise ValueError('must not hold a fragment; leave out "#" and what follows')
    if not _PRINTABLE.fullmatch(text):
        raise ValueError('must be printable ASCII without spaces; write other characters as "%" and two hex digits')
    if port == 0:
        raise ValueError("names port 0, which no server listens on")
    host = host_name(f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname)
    authority = host if port is None else f"{host}:{port}"
    return urlunsplit((parts.scheme, authority, parts.path or "/", parts.query, ""))


def is_token(text: str) -> bool:
    """Whether `text` may be a header name or a part of one."""
    return _TOKEN.fullmatch(text) is not None


def header_name(name: str) -> str:
    """The name of a request header that an operator may set or forward towards an upstream."""
    folded = name.lower()
    if not is_token(name):
        raise ValueError("is no header name; use letters, digits and hyphens")
    if folded in HOP_BY_HOP:
        raise ValueError("belongs to a single connection (hop-by-hop) and can't be set here; leave it out")
    if folded.startswith("mcp-"):
        raise ValueError("is the protocol's own and written by the gateway; leave it out")
    if folded in WRITTEN_BY_GATEWAY:
        raise ValueError("is written by the gateway for each request; leave it out")
    return name


def header_value(value: str) -> str:
    """A header value: visible ASCII, blanks only inside, nothing that could start another header."""
    if "\r" in value or "\n" in value:
        raise ValueError("holds a line break, which would start another header; write it on one line")
    if not value:
        raise ValueError("is empty; give it a value or leave the header out")
    if not _HEADER_VALUE.fullmatch(value):
        raise ValueError("must be printable ASCII without blanks at its ends")
    return value


def media_type(text: str) -> str:
    """A MIME type in one spelling (RFC 9110, section 8.3.1): lower case, no blanks, parameters in order and without
    needless quotes, and without `charset`, which says nothing of what it is."""
    kind, *rest = (part.strip() for part in text.lower().split(";"))
    if _MEDIA_TYPE.fullmatch(kind) is None:
        raise ValueError("is no MIME type; write for example text/html;profile=mcp-app")
    parameters = set()
    for part in filter(None, rest):
        name, equals, value = part.partition("=")
        value = value[1:-1] if len(value) > 2 and value[0] == value[-1] == '"' else value
        if not equals or not is_token(name) or not is_token(value):
            raise ValueError("has a parameter that is not name=value; write for example text/html;profile=mcp-app")
        parameters.add((name, value))
    return ";".join((kind, *(f"{name}={value}" for name, value in sorted(parameters) if name != "charset")))


def argument(text: str) -> str:
    """A program, one of its arguments or a folder, as an operating system takes it."""
    if "\0" in text:
        raise ValueError("holds a null byte, which no program can be given")
    return text


def is_variable(name: str) -> bool:
    return _VARIABLE.fullmatch(name) is not None


def variable(name: str) -> str:
    """The name of an environment variable."""
    if not is_variable(name):
        raise ValueError("is no name of a variable; use letters, digits and _, not a digit first")
    return name


def sealing_key(text: str) -> tuple[str, bytes]:
    """`ID:BASE64URL` as the key's id (1 to 16 of `A-Za-z0-9_-`) and its 32 bytes."""
    key_id, colon, encoded = text.partition(":")
    hint = "make one with: mcp-front-door keygen"
    if not colon or not _KEY_ID.fullmatch(key_id):
        raise ValueError(f"must be ID:BASE64URL with an id of 1 to 16 letters, digits, _ or -; {hint}")
    try:
        key = base64.b64decode(encoded + "=" * (-len(encoded) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(f"is not base64url after its id; {hint}") from None
    if len(key) != KEY_BYTES:
        raise ValueError(f"holds {len(key)} bytes where {KEY_BYTES} are needed; {hint}")
    return key_id, key


def key_digest(text: str) -> str:
    """`sha256:` and 64 hex digits, in lower case: what a client's key is recognised by."""
    folded = text.lower()
    if not _DIGEST.fullmatch(folded):
        raise ValueError(
            "must be sha256: and 64 hex digits; make a key and its digest with: mcp-front-door keygen --client NAME"
        )
    return folded


def bearer_token(text: str) -> str:
    """A token that may be sent as `Authorization: Bearer` (RFC 6750, section 2.1), too long to be guessed."""
    if not _BEARER.fullmatch(text):
        raise ValueError("must be 16 or more of letters, digits and -._~+/ with = at its end alone")
    return text
