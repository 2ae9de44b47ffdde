"""By whom, under which name and over which scheme a request came in, and what an upstream is told of it.

Specification: RFC 7239, and the X-Forwarded-* headers that came before it. What a trusted proxy says is believed, what
anybody else says is not. Whether a host is served is decided elsewhere.
"""

import ipaddress
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from policies.errors import Rejection
from policies.headers import Headers
from policies.mcp import INVALID_REQUEST, TRACE_CONTEXT

FOR: Final = "X-Forwarded-For"
HOST: Final = "X-Forwarded-Host"
PROTO: Final = "X-Forwarded-Proto"
PREFIX: Final = "X-Forwarded-Prefix"
FORWARDED: Final = "Forwarded"
WRITTEN: Final = frozenset({"x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "forwarded"} | TRACE_CONTEXT)
"""What belongs to one request: how it came, and which trace it is of."""

MAX_HOPS: Final = 32
"""Addresses of a chain that are read and passed on; real ones have two or three."""

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_PATH: Final = re.compile(r"(/[\w.~!$&'()*+;=:@%-]+)*", re.ASCII)
_PAIR: Final = re.compile(r'\s*([A-Za-z]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;,"]*))\s*')


@dataclass(frozen=True, slots=True)
class Caller:
    """How a request reached this deployment. `chain`: addresses from the client on, the peer's own last. `prefix`: how
    the path began that the client asked for, before proxies took that off; as they say, see `prefix_of`."""

    chain: tuple[str, ...]
    host: str
    proto: str
    prefix: str = ""

    def headers(self) -> tuple[tuple[str, str], ...]:
        """What an upstream is told: the chain with the gateway's own peer as its last address."""
        chain = [_node(address) for address in self.chain]
        hops = [f"for={node}" for node in chain]
        hops[-1] += f';host="{self.host}";proto={self.proto}'
        return (
            (FOR, ", ".join(self.chain)),
            (HOST, self.host),
            (PROTO, self.proto),
            (FORWARDED, ", ".join(hops)),
        )


def networks(texts: Iterable[str]) -> tuple[Network, ...]:
    return tuple(ipaddress.ip_network(text) for text in texts)


def is_trusted(peer: str, trusted: Sequence[Network]) -> bool:
    if not trusted:
        return False
    try:
        address = ipaddress.ip_address(peer.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None) or address
    return any(mapped in network for network in trusted)


def caller_of(peer: str, scheme: str, headers: Headers, trusted: Sequence[Network]) -> Caller | Rejection:
    """`peer`, `scheme`: of the connection itself. 400 where a trusted proxy's headers contradict each other."""
    own = Caller((peer or "unknown",), headers.getall("Host", ("",))[0].strip(), scheme)
    if not is_trusted(peer, trusted):
        return own
    theirs = _parsed(headers)
    chain = [*_listed(headers, FOR)]
    host, proto = _last(headers, HOST), _last(headers, PROTO)
    if theirs is None:
        return Rejection(INVALID_REQUEST, f"{FORWARDED} is malformed", http=400)
    if theirs:
        # a proxy that writes only one of the two kinds lets a client's other kind through
        for name, said, also in ((HOST, host, theirs[-1].get("host")), (PROTO, proto, theirs[-1].get("proto"))):
            if said is not None and also is not None and said.lower() != also.lower():
                return Rejection(INVALID_REQUEST, f"{FORWARDED} and {name} contradict each other", http=400)
        host, proto = host or theirs[-1].get("host"), proto or theirs[-1].get("proto")
        chain = chain or [_bare(hop["for"]) for hop in theirs if "for" in hop]
    if proto is not None and proto.lower() not in ("http", "https"):
        return Rejection(INVALID_REQUEST, f"{PROTO} is neither http nor https", http=400)
    prefix = "".join(part.rstrip("/") for part in _parts(headers, PREFIX))  # the outermost proxy's first
    return Caller((*_believed(chain, trusted), peer), host or own.host, (proto or scheme).lower(), prefix)


def prefix_of(caller: Caller) -> str | Rejection:
    """The prefix, which goes before an absolute path; 400 where it is no path of its own."""
    if _PATH.fullmatch(caller.prefix) is None:
        return Rejection(INVALID_REQUEST, f"{PREFIX} is no absolute path; the proxy is to send one", http=400)
    return caller.prefix


def _believed(chain: Sequence[str], trusted: Sequence[Network]) -> tuple[str, ...]:
    """The addresses from the first that no trusted proxy wrote on: what stands before it anybody may have made up."""
    kept: list[str] = []
    for address in reversed(chain[-MAX_HOPS:]):
        try:
            ipaddress.ip_address(address.partition("%")[0])
        except ValueError:
            break
        kept.insert(0, address)
        if not is_trusted(address, trusted):
            break
    return tuple(kept)


def _listed(headers: Headers, name: str) -> list[str]:
    return [part for piece in _parts(headers, name) if (part := _bare(piece))]


def _parts(headers: Headers, name: str) -> list[str]:
    return [piece.strip() for piece in ",".join(headers.getall(name, ())).split(",")]


def _last(headers: Headers, name: str) -> str | None:
    """The value that the nearest proxy wrote."""
    values = ",".join(headers.getall(name, ())).split(",")
    return values[-1].strip() or None


def _parsed(headers: Headers) -> list[dict[str, str]] | None:
    """The elements of `Forwarded`, names in lower case; None where it is malformed."""
    text = ", ".join(headers.getall(FORWARDED, ()))
    found: list[dict[str, str]] = [{}]
    at = 0
    while at < len(text):
        pair = _PAIR.match(text, at)
        if pair is None:
            return None
        name, quoted, plain = pair.groups()
        found[-1][name.lower()] = re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else plain
        at = pair.end()
        if at < len(text):
            if text[at] not in ";,":
                return None
            if text[at] == ",":
                found.append({})
            at += 1
    return [element for element in found if element]


def _bare(node: str) -> str:
    """An address without brackets and port."""
    if node.startswith("["):
        return node[1:].partition("]")[0]
    return node.partition(":")[0] if node.count(":") == 1 else node


def _node(address: str) -> str:
    return f'"[{address}]"' if ":" in address else address


def lasting(forwarded: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Forwarded headers without those of one request: what callers who share a session have in common."""
    return tuple(pair for pair in forwarded if pair[0].lower() not in WRITTEN)
