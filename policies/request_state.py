"""The `requestState` of a call that waits here for its client's answers: sealed, and good for that call alone. And the
one that an upstream made, where all of its callers look alike to it: sealed to the caller.

Specification: 2026-07-28 basic/patterns/mrtr, Server Requirements (integrity, principal, expiry, originating request).
"""

import hashlib
import re
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, ValidationError

from policies.errors import Rejection
from policies.jsonrpc import dumps, loads
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

FOREIGN: Final = Rejection(
    INVALID_PARAMS,
    "params.requestState is not one that this caller was given here: it is altered or another's",
    http=400,
)

_MENTIONED: Final = re.compile(rb"requestState|\\u")
"""What a body holds that has the member: its name, or an escape, which may hide it."""


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


@dataclass(frozen=True, slots=True)
class Bond:
    """Whom an upstream's own `requestState` is sealed to. It is where the upstream knows its callers by a credential of
    the gateway's alone: it cannot bind its state to a user, who could then go on with another's call."""

    ring: KeyRing
    route: str
    upstream: str
    principal: str

    def to_upstream(self, params: Json) -> Json | Rejection:
        """The parameters of a retry as the upstream gave its state out; others as they are."""
        token = params.get("requestState")
        if token is None:
            return params
        raw = unseal_bytes(self.ring, "upstream-state", self._context, token) if isinstance(token, str) else None
        return FOREIGN if raw is None else {**params, "requestState": loads(raw)}

    def to_client(self, result: Json, nonce: bytes) -> Json:
        """A result with its `requestState` sealed; another result as it is. Raises ValueError where it is too large."""
        if result.get("resultType") != "input_required" or "requestState" not in result:
            return result
        sealed = seal_bytes(self.ring, "upstream-state", self._context, dumps(result["requestState"]), nonce)
        return {**result, "requestState": sealed}

    def request(self, raw: bytes) -> bytes | Rejection:
        """`to_upstream` of a whole request: the very bytes where there is nothing to do."""
        if not mentions(raw):
            return raw
        message = loads(raw)
        params = self.to_upstream(message["params"])
        if isinstance(params, Rejection) or params is message["params"]:
            return params if isinstance(params, Rejection) else raw
        return dumps({**message, "params": params})

    def response(self, raw: bytes, nonce: bytes) -> bytes:
        """`to_client` of a whole response: the very bytes where there is nothing to do. Raises the same ValueError."""
        if not mentions(raw):
            return raw
        message = loads(raw)
        result = message.get("result")
        sealed = self.to_client(result, nonce) if isinstance(result, dict) else result
        return raw if sealed is result else dumps({**message, "result": sealed})

    @property
    def _context(self) -> str:
        return dumps([self.route, self.upstream, self.principal]).decode()


def mentions(raw: bytes) -> bool:
    """Whether a message may have a `requestState`, told without parsing it."""
    return _MENTIONED.search(raw) is not None
