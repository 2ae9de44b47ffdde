"""The settings of the network's edge: public names, origins, trusted proxies, TLS, and what a connection may cost.

A part of `policies/settings.py`, whose rules hold here: the docstring under a field is its manual. What these settings
do is decided in `policies/edge.py`, `policies/cors.py` and `policies/forwarded.py`.
"""

import ipaddress
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from policies import wellformed
from policies.settings_base import Model


def _public_url(text: str) -> str:
    """`https://host[:port]`, in lower case."""
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.path not in ("", "/"):
        raise ValueError("must be http or https and a host without a path, for example https://mcp.example.com")
    if parts.query or parts.fragment or parts.username is not None:
        raise ValueError("must be scheme and host alone, for example https://mcp.example.com")
    return wellformed.upstream_url(text).removesuffix("/")


def _origin(text: str) -> str:
    """`https://app.example.com`, `https://*.example.com` or `http://localhost:*`, in lower case."""
    scheme, separator, rest = text.partition("://")
    if not separator or not scheme.isascii() or not scheme.replace("-", "").isalnum() or "/" in rest or not rest:
        raise ValueError("must be a scheme and a host, for example https://app.example.com or http://localhost:*")
    host, colon, port = rest.rpartition(":")
    if not colon or rest.endswith("]"):
        host, port = rest, ""
    if colon and port != "*" and not (port.isascii() and port.isdigit() and int(port) <= 65535) and host != rest:
        raise ValueError('must end in a port, ":*" for any port, or no port')
    wellformed.host_pattern(host)
    return text.lower()


def _network(text: str) -> str:
    try:
        return str(ipaddress.ip_network(text))
    except ValueError:
        raise ValueError("is no network; write for example 10.0.0.0/8, 192.0.2.7 or fd00::/8") from None


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _path(text: str) -> str:
    if not text or "\x00" in text:
        raise ValueError("must be the path of a file")
    return text


PublicUrls = Annotated[tuple[Annotated[str, AfterValidator(_public_url)], ...], BeforeValidator(_listed)]
Origins = Annotated[tuple[Annotated[str, AfterValidator(_origin)], ...], BeforeValidator(_listed)]
Networks = Annotated[tuple[Annotated[str, AfterValidator(_network)], ...], BeforeValidator(_listed)]
FilePath = Annotated[str, AfterValidator(_path)]


class ListenTls(Model):
    """TLS on the listener, read at start. Paths are relative to the configuration file."""

    cert: FilePath
    """The certificate and those between it and its root, PEM."""
    key: FilePath
    """Its private key, PEM, without a passphrase."""
    client_ca: FilePath | None = None
    """Certificates (PEM) that sign client certificates; a client without one that they signed is refused."""


class UpstreamTls(Model):
    """TLS towards one upstream, read at start. Paths are relative to the configuration file."""

    ca: FilePath | None = None
    """The certificates (PEM) that are trusted to sign the upstream's, in place of the system's."""
    client_cert: FilePath | None = None
    """The certificate (PEM) that the gateway shows."""
    client_key: FilePath | None = None
    """Its private key (PEM); not needed where `client_cert` holds it."""
    server_name: Annotated[str, AfterValidator(wellformed.host_name)] | None = None
    """The name that the upstream's certificate must have and that is asked for (SNI), where it is not the URL's
    host."""


class ToolTimeouts(Model):
    """Time-outs for some tools of an upstream, in place of those of `timeouts`."""

    first_byte_s: float | None = Field(default=None, gt=0, le=86_400, allow_inf_nan=False)
    """For the head of a response, in seconds. More than 0, at most 86400."""
    idle_s: float | None = Field(default=None, gt=0, le=86_400, allow_inf_nan=False)
    """Between two pieces of a response, in seconds. More than 0, at most 86400."""
    total_s: float | None = Field(default=None, gt=0, le=86_400, allow_inf_nan=False)
    """For a whole call, in seconds. More than 0, at most 86400."""


class Connections(Model):
    """Bounds on clients' connections."""

    max: int = Field(default=4096, ge=1, le=1_000_000)
    """How many connections a listener holds at once; one more is answered 503 with `Retry-After`. Each needs a file
    descriptor, and one more for each call under way. From 1 to 1000000."""
    max_per_peer: int = Field(default=2048, ge=1, le=1_000_000)
    """How many of them one address may have; trusted proxies are not counted. From 1 to 1000000."""
    head_s: float = Field(default=15.0, ge=0.1, le=3600, allow_inf_nan=False)
    """How long, in seconds, a request's head may take from its first byte to its last; then 408. From 0.1 to 3600."""
    body_s: float = Field(default=30.0, ge=0.1, le=3600, allow_inf_nan=False)
    """How long, in seconds, a request's body may take; each KiB that arrives adds one second. Then 408. From 0.1 to
    3600."""
    idle_s: float = Field(default=75.0, ge=1, le=86_400, allow_inf_nan=False)
    """How long, in seconds, a connection without a request is kept. From 1 to 86400; longer than the proxy in front
    keeps its own (60 s in most)."""
    write_stall_s: float = Field(default=60.0, ge=0.1, le=3600, allow_inf_nan=False)
    """How long, in seconds, a client may leave what was sent to it unread before its connection is closed. From 0.1 to
    3600."""
