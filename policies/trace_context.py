"""Trace context: what a message brings, whether it is traced, and what is sent on.

Specification: W3C Trace Context (`traceparent`, `tracestate`), 2026-07-28 basic/index (`_meta`), OpenTelemetry's
conventions for MCP. A message's own `_meta` counts before the headers that it came with, which may be a proxy's. What
spans are and where they go is `gateway/tracing.py`'s business.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeGuard

from policies.catalogue import OTHER
from policies.headers import Headers
from policies.mcp import Json
from policies.settings_observing import Tracing

PARENT: Final = "traceparent"
STATE: Final = "tracestate"
BAGGAGE: Final = "baggage"

MAX_STATE_CHARS: Final = 512
"""Of a `tracestate` that is passed on (W3C, Limits)."""

MAX_MEMBERS: Final = 32
"""Of a `tracestate` (W3C, List)."""

_TAIL: Final = r"[_0-9a-z\-*/]"
_MEMBER: Final = re.compile(
    rf"([a-z]{_TAIL}{{0,255}}|[a-z0-9]{_TAIL}{{0,240}}@[a-z]{_TAIL}{{0,13}})"
    r"=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]"
)
_PARENT: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_SAMPLED: Final = 1
_BAGGAGE: Final = f'"{BAGGAGE}"'.encode()


@dataclass(frozen=True, slots=True)
class Context:
    """A `traceparent` that can be read, with its `tracestate`, empty where there is none that fits."""

    trace_id: int
    span_id: int
    sampled: bool
    state: str = ""

    @property
    def parent(self) -> str:
        """As `traceparent` has it."""
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-{int(self.sampled):02x}"


def read(parent: Any, state: Any = None) -> Context | None:
    """None where it is malformed, or of a version that forbids itself (W3C, traceparent Header)."""
    found = _PARENT.fullmatch(parent) if isinstance(parent, str) else None
    if found is None or found[1] == "ff" or (found[1] == "00" and found[5]):
        return None
    trace_id, span_id = int(found[2], 16), int(found[3], 16)
    if not trace_id or not span_id:
        return None
    return Context(trace_id, span_id, bool(int(found[4], 16) & _SAMPLED), state if _is_state(state) else "")


def _is_state(state: Any) -> TypeGuard[str]:
    """Whether a `tracestate` is well-formed: a malformed one is dropped as a whole (W3C, tracestate Header)."""
    if not isinstance(state, str) or len(state) > MAX_STATE_CHARS:
        return False
    members = [member for part in state.split(",") if (member := part.strip(" \t"))]
    keys = {member.partition("=")[0] for member in members}
    return len(keys) == len(members) <= MAX_MEMBERS and all(_MEMBER.fullmatch(member) for member in members)


def brought(headers: Headers, meta: Mapping[str, Any]) -> Context | None:
    """What a message says of the trace that it belongs to."""
    in_meta = read(meta.get(PARENT), meta.get(STATE))
    return in_meta or read(headers.get(PARENT), headers.get(STATE))


def is_traced(context: Context | None, settings: Tracing, chance: float) -> bool:
    """Whether a request gets spans. `chance`: evenly from 0 to below 1."""
    if context is not None and settings.follow:
        return context.sampled
    return chance < settings.ratio


def sent_on(headers: Headers, meta: Json, *, baggage: bool) -> tuple[tuple[tuple[str, str], ...], Json]:
    """The headers and the `_meta` of a request whose trace context goes on as it came: each says what the other one
    does, where only one of them says anything; `baggage` only where that is wanted."""
    names = (PARENT, STATE, BAGGAGE) if baggage else (PARENT, STATE)
    said = {name: value for name in names if (value := headers.get(name)) is not None}
    if read(said.get(PARENT)) is None:
        said = {}
    if BAGGAGE in meta and not baggage:
        meta = {name: value for name, value in meta.items() if name != BAGGAGE}
    if PARENT not in meta:
        return tuple(said.items()), {**meta, **said} if said else meta
    in_meta = {name: meta[name] for name in names if isinstance(meta.get(name), str)}
    if not said and read(in_meta.get(PARENT)) is not None:
        said = {name: value for name, value in in_meta.items() if value.isascii() and value.isprintable()}
    return tuple(said.items()), meta


def is_to_be_read(raw: bytes, *, baggage: bool) -> bool:
    """Whether a message may hold baggage that is not to go on."""
    return not baggage and _BAGGAGE in raw


def span_name(method: str, target: str) -> str:
    """`tools/call forecast`; a target that is none of the upstream's is not named."""
    return f"{method or 'message'} {target}" if target and target != OTHER else method or "message"


def named(method: str, target: str) -> dict[str, str]:
    """The attributes that say what is called."""
    if not target:
        return {}
    if method == "tools/call":
        return {"gen_ai.tool.name": target, "gen_ai.operation.name": "execute_tool"}
    return {"gen_ai.prompt.name": target}


def went(error: str) -> dict[str, str]:
    """The attributes that say how it went; `error` is an `error.type` (`policies/metrics.py`)."""
    if not error:
        return {}
    return {"error.type": error, "rpc.response.status_code": error} if error.startswith("-") else {"error.type": error}
