"""The `requestState` of a call that waits here for its client's answers: sealed, and good for that call alone.

Specification: 2026-07-28 basic/patterns/mrtr, Server Requirements (integrity, principal, expiry, originating request).
"""

import hashlib
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, ValidationError

from policies.errors import Rejection
from policies.jsonrpc import dumps
from policies.mcp import INVALID_PARAMS, Json
from policies.sealing import KeyRing
from policies.sealing import seal as seal_bytes
from policies.sealing import unseal as unseal_bytes

RETRY_MEMBERS: Final = ("inputResponses", "requestState")

INVALID: Final = Rejection(
    INVALID_PARAMS,
    "requestState is not one that this call can go on with: it is altered, expired, used, or another call's",
    http=400,
)


class State(BaseModel):
    """The token's content: the exchange that waits, which of its rounds this is, and what the retry must be."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    exchange: str
    round: int
    principal: str
    request: str
    expires_s: int


def fingerprint(method: str, params: Json) -> str:
    """What makes a retry the same request: its method and everything in `params` but the retry's own members."""
    kept = {k: v for k, v in params.items() if k not in (*RETRY_MEMBERS, "_meta")}
    return hashlib.sha256(dumps([method, canonical(kept)])).hexdigest()


def seal(ring: KeyRing, route: str, state: State, nonce: bytes) -> str:
    return seal_bytes(ring, "state", route, state.model_dump_json().encode(), nonce)


def unseal(ring: KeyRing, route: str, token: Any, now_s: float) -> State | None:
    """The state, or None for anything that is not a live token of this gateway for this route."""
    raw = unseal_bytes(ring, "state", route, token) if isinstance(token, str) else None
    if raw is None:
        return None
    try:
        state = State.model_validate_json(raw)
    except ValidationError:
        return None
    return state if state.expires_s > now_s else None


def canonical(value: Any) -> Any:
    """The same JSON with its members in one order, for digests."""
    if isinstance(value, dict):
        return dict(zip(keys := sorted(value), map(canonical, map(value.__getitem__, keys)), strict=True))
    return list(map(canonical, value)) if isinstance(value, list) else value
