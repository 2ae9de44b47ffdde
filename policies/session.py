"""What a legacy client's `Mcp-Session-Id` says, sealed, so that any replica can read it and no look-up is needed.

Specification: 2025-11-25 basic/transports, Session Management. The token is bound to its route; to whom it belongs and
how long it lives stands inside.
"""

from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Strict

from policies.errors import ClientFault, Rejection
from policies.exchange import FrontSession, UpstreamSession
from policies.jsonrpc import dumps, loads
from policies.mcp import INVALID_PARAMS, LEGACY_SESSION_NOT_FOUND, Json
from policies.sealing import MAX_PAYLOAD_BYTES, KeyRing
from policies.sealing import seal as seal_bytes
from policies.sealing import unseal as unseal_bytes
from policies.settings_routes import Route

MAX_TOKEN: Final = 4096
"""Characters. Servers and proxies commonly take 8 KiB for a whole request head."""

MAX_INFO: Final = 128
"""Characters of a client's name or version that are kept: they are for display."""

NOT_FOUND: Final = Rejection(LEGACY_SESSION_NOT_FOUND, "Session not found", http=404)


# JSON has no tuples. The second: sealed before there were endpoints.
_Members = Annotated[tuple[str | None, str, str, str], Strict(False)] | Annotated[tuple[str | None, str], Strict(False)]


class _Sealed(BaseModel):
    """The token's content; pydantic stands here because tokens come from outside."""

    model_config = ConfigDict(extra="forbid", strict=True)

    i: str
    v: str
    n: dict[str, Any]
    c: dict[str, Any]
    p: str
    t: int
    e: int
    u: dict[str, _Members]


def route_key(route: Route) -> str:
    """What tells one route from another, for as long as its address stays the same."""
    return f"{route.host or '*'}{route.path}"


def pack(session: FrontSession) -> str:
    """The content of a token as JSON text, for a reader who can trust it unsealed."""
    content = {
        "i": session.id,
        "v": session.version,
        "n": session.client_info,
        "c": session.capabilities,
        "p": session.principal,
        "t": session.issued_s,
        "e": session.expires_s,
        "u": {name: upstream.members for name, upstream in session.upstreams.items()},
    }
    return dumps(content).decode()  # keeps what pydantic's own writer does not: long numbers, lone surrogates


def seal(ring: KeyRing, session: FrontSession, nonce: bytes) -> str:
    """The token, visible ASCII. Raises `ClientFault` where what the client declares does not fit into one."""
    raw = pack(session).encode()
    token = seal_bytes(ring, "session", session.route, raw, nonce) if len(raw) <= MAX_PAYLOAD_BYTES else None
    if token is None or len(token) > MAX_TOKEN:
        raise ClientFault(
            f"params.capabilities are too large for a session: its id may have {MAX_TOKEN} characters; declare less",
            code=INVALID_PARAMS,
            http=400,
        )
    return token


def unseal(ring: KeyRing, route: str, token: str) -> FrontSession | None:
    """The session, or None for anything that is not a token of this gateway for this route."""
    raw = unseal_bytes(ring, "session", route, token)
    try:
        return unpack(raw, route) if raw is not None else None
    except ValueError:  # as is pydantic's ValidationError
        return None


def unpack(raw: str | bytes, route: str) -> FrontSession:
    """The session that `pack` wrote down. Raises ValueError for anything else."""
    content = _Sealed.model_validate(loads(raw.encode() if isinstance(raw, str) else raw))
    upstreams = {name: UpstreamSession(*known) for name, known in content.u.items()}
    return FrontSession(content.i, route, content.v, content.n, content.c, content.p, content.t, content.e, upstreams)


def bounded_info(info: Json) -> Json:
    """A client's name, title and version, each bounded; what else it says of itself is not for servers to rely on."""
    return {key: info[key][:MAX_INFO] for key in ("name", "title", "version") if isinstance(info.get(key), str)}
