"""The store that replicas share, among the settings: where it is, and as whom it is spoken to.

A part of `policies/settings.py`, whose rules hold here: the docstring under a field is its manual. What is kept in the
store is not known here.
"""

import re
from dataclasses import dataclass
from typing import Annotated, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, model_validator

from policies import wellformed
from policies.settings_base import Model, Problem, refuse
from policies.settings_edge import FilePath

Kind = Literal["single", "sentinel", "cluster"]

_SCHEMES: Final[dict[str, tuple[Kind, bool, int]]] = {
    "redis": ("single", False, 6379),
    "rediss": ("single", True, 6379),
    "redis+sentinel": ("sentinel", False, 26379),
    "rediss+sentinel": ("sentinel", True, 26379),
    "redis+cluster": ("cluster", False, 6379),
    "rediss+cluster": ("cluster", True, 6379),
}
"""What is there, whether it speaks TLS, and the usual port."""


@dataclass(frozen=True, slots=True)
class Address:
    """A store's URL, taken apart. `service` is what Sentinels call it, empty elsewhere."""

    kind: Kind
    tls: bool
    hosts: tuple[tuple[str, int], ...]
    service: str
    db: int


def address(url: str) -> Address:
    """Raises `ValueError` with a sentence that says what to write, and quotes nothing of `url`, where a password may
    stand."""
    scheme, separator, _ = url.partition("://")
    if not separator or scheme not in _SCHEMES:
        raise ValueError(f"must be {', '.join(f'{known}://' for known in _SCHEMES)} and a host, or several")
    kind, tls, port = _SCHEMES[scheme]
    parts = urlsplit(url)
    if "@" in parts.netloc:
        raise ValueError("holds a user or password, which a log could show; write them as username and password")
    if parts.query or parts.fragment:
        raise ValueError("must end after the path; there is a setting for everything else")
    hosts = tuple(_host(host, port) for host in parts.netloc.split(","))
    if kind == "single" and len(hosts) > 1:
        raise ValueError("names several hosts; write redis+cluster:// or redis+sentinel://, or one host")
    path = parts.path.removeprefix("/").split("/") if parts.path not in ("", "/") else []
    service = ""
    if kind == "sentinel":
        if not path or not path[0]:
            raise ValueError("must end in the name that the Sentinels know, for example /mymaster")
        service = path.pop(0)
    if kind == "cluster" and path:
        raise ValueError("must end after the hosts; a cluster has no numbered databases")
    if len(path) > 1 or (path and not (path[0].isascii() and path[0].isdigit() and len(path[0]) <= 6)):
        raise ValueError("must end in the number of a database, for example /0, or without")
    return Address(kind, tls, hosts, service, int(path[0]) if path else 0)


def _host(text: str, port: int) -> tuple[str, int]:
    bare = text.endswith("]") or ":" not in text
    try:
        host, number = wellformed.host_port(f"{text}:{port}" if bare else text)
    except ValueError:
        raise ValueError(f"must name each host as host or host:port, for example 127.0.0.1:{port}") from None
    if not host or not 0 < number <= 65535:
        raise ValueError(f"must name each host as host or host:port, for example 127.0.0.1:{port}")
    return host, number


def _url(text: str) -> str:
    address(text)
    return text


def _prefix(text: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9._-]{1,64}", text) is None:
        raise ValueError("must be 1 to 64 letters, digits, dots, hyphens and underscores")
    return text


class StoreTls(Model):
    """TLS towards the store, where its URL begins with `rediss`. Paths are relative to the configuration file."""

    ca: FilePath | None = None
    """The certificates (PEM) that are trusted to sign the store's, in place of the system's."""
    client_cert: FilePath | None = None
    """The certificate (PEM) that the gateway shows."""
    client_key: FilePath | None = None
    """Its private key (PEM), without a passphrase."""


class Store(Model):
    """Where several gateway processes keep what they must all know: Redis 6.2 or later, or Valkey."""

    url: Annotated[str, AfterValidator(_url)]
    """`redis://HOST:PORT/DB` for one server. `redis+sentinel://HOST:PORT,HOST:PORT/SERVICE` asks Sentinels which server
    leads; `redis+cluster://HOST:PORT,HOST:PORT` is a cluster, of which some nodes are named. With `rediss` in place of
    `redis` over TLS. No user and no password: they are settings of their own, which nothing prints."""
    username: str = ""
    """The ACL user."""
    password: SecretStr | None = None
    """Its password."""
    sentinel_username: str = ""
    """The ACL user at the Sentinels, which have their own."""
    sentinel_password: SecretStr | None = None
    """Its password."""
    tls: StoreTls = StoreTls()
    """Whom to trust and what to show."""
    prefix: Annotated[str, AfterValidator(_prefix)] = "mcpfd"
    """How every key and channel begins, so that gateways that have nothing to do with each other can share a store: up
    to 64 letters, digits, dots, hyphens and underscores."""
    timeout_ms: int = Field(default=200, ge=10, le=10_000)
    """How long, in milliseconds, one operation may take; then what needed it fails. From 10 to 10000."""

    @model_validator(mode="after")
    def _fit(self) -> Self:
        problems: list[Problem] = []
        at = address(self.url)
        if self.tls != StoreTls() and not at.tls:
            problems.append((("tls",), "does nothing for a url without TLS; begin it with rediss, or remove tls"))
        if self.tls.client_key is not None and self.tls.client_cert is None:
            problems.append((("tls", "client_key"), "belongs to a client_cert, which is missing; add it"))
        for name in ("username", "sentinel_username"):
            if getattr(self, name) and getattr(self, name.replace("username", "password")) is None:
                place = name.replace("username", "password")
                problems.append(((place,), f"is missing; a user has a password: add it, or remove {name}"))
        if at.kind != "sentinel" and (self.sentinel_username or self.sentinel_password is not None):
            place = "sentinel_username" if self.sentinel_username else "sentinel_password"
            problems.append(((place,), "does nothing without Sentinels; remove it"))
        refuse(problems)
        return self

    @property
    def address(self) -> Address:
        return address(self.url)
