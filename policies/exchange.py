"""What crosses the waist between a front and an upstream, whatever their eras.

A front makes a `Call`; a connector writes numbered `Event`s; a front may send `Input`s back. Values only: who carries
them, and where the logs live, is `gateway/exchange.py`. Wire JSON inside stays in the dialect of the side that wrote
it, and is translated once, at the front, by `policies/delivery.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from policies.mcp import Era, Json
from policies.profiles import CORE, Profile

RequestId = str | int


@dataclass(frozen=True, slots=True)
class Dialect:
    """The protocol revision that a piece of wire JSON is written in."""

    era: Era
    version: str


@dataclass(frozen=True, slots=True)
class UpstreamSession:
    """A legacy session at an upstream. `id` is None where the upstream issues none (session-less legacy servers).

    `endpoint` and `cookie` lead its requests back to where it was opened (`policies/affinity.py`): the endpoint's key,
    and the `Cookie` header that goes with them; empty where there is none."""

    id: str | None
    version: str
    endpoint: str = ""
    cookie: str = ""

    @property
    def members(self) -> list[str | None]:
        """All of it as JSON has it: `UpstreamSession(*members)`."""
        return [self.id, self.version, self.endpoint, self.cookie]


@dataclass(frozen=True, slots=True)
class FrontSession:
    """A legacy client's session, as it is sealed inside its `Mcp-Session-Id`.

    `id` is the inner id: what logs and stores see, never the token. `upstreams` are the 1:1 sessions that were opened
    for it at `initialize`, by upstream name. Times are seconds since the epoch.
    """

    id: str
    route: str
    version: str
    client_info: Json
    capabilities: Json
    principal: str
    issued_s: int
    expires_s: int
    upstreams: Mapping[str, UpstreamSession] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Call:
    """One client request on its way to an upstream, without anything of the client's own wire framing.

    `params` has no `_meta`; `meta` holds the `_meta` members that are not the protocol's own per-request fields.
    `capabilities` are the effective ones. `forwarded` are the caller's headers which this upstream is configured to
    get. `owner` is the legacy session of the caller, None for a modern one. `headless`: the caller's transport has no
    headers, so that it mirrors no parameters into any. `endpoint`: the key of the one
    at which the task is that it is about. `profile`: what its host can show; the plain surface where the gateway asks
    for itself.
    """

    method: str
    params: Json
    meta: Json
    capabilities: Json
    client_info: Json | None
    principal: str
    front: Dialect
    log_level: str | None = None
    wants_progress: bool = False
    owner: FrontSession | None = None
    param_headers: tuple[tuple[str, str], ...] = ()
    forwarded: tuple[tuple[str, str], ...] = ()
    headless: bool = False
    endpoint: str = ""
    profile: Profile = CORE

    @property
    def mirrors(self) -> bool:
        """Whether the caller itself mirrors parameters into headers, which are then in `param_headers`."""
        return self.front.era == "modern" and not self.headless

    @property
    def relays_input_required(self) -> bool:
        """Whether the caller itself can carry an `InputRequiredResult`."""
        return self.front.era == "modern"


@dataclass(frozen=True, slots=True)
class Opened:
    """The upstream serves this stream; nothing has been said on it yet."""


@dataclass(frozen=True, slots=True)
class Notify:
    """A notification that belongs to this call (or listen stream). A progress token is not part of `params`."""

    method: str
    params: Json
    dialect: Dialect


@dataclass(frozen=True, slots=True)
class Ask:
    """The upstream wants something of the client (elicitation, sampling, roots). `key` is unique in the exchange."""

    key: str
    method: str
    params: Json
    dialect: Dialect


@dataclass(frozen=True, slots=True)
class Withdraw:
    """The upstream no longer waits for the ask `key`."""

    key: str
    params: Json
    dialect: Dialect


@dataclass(frozen=True, slots=True)
class Answer:
    """The result: the last event. `server_info` is the upstream's, where its dialect has it in another place;
    `endpoint` the key of the one that answered, where there are several."""

    result: Json
    dialect: Dialect
    server_info: Json | None = None
    endpoint: str = ""


@dataclass(frozen=True, slots=True)
class Fail:
    """An error: the last event of an exchange. `dialect` is None where the gateway itself is the author.

    `http` is the status for a modern client where the code alone does not imply it.
    """

    code: int
    message: str
    data: Any = None
    http: int | None = None
    dialect: Dialect | None = None
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The client called it off: the last event; nothing more is written to the client."""


Event = Opened | Notify | Ask | Withdraw | Answer | Fail | Cancelled


def is_last(event: Event) -> bool:
    """Whether nothing may follow `event` in its exchange."""
    return isinstance(event, Answer | Fail | Cancelled)


@dataclass(frozen=True, slots=True)
class Reply:
    """The client's answer to the ask `key`: exactly one of `result` and `error` (a JSON-RPC error object)."""

    key: str
    result: Json | None = None
    error: Json | None = None
