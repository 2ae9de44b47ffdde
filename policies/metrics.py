"""What becomes of a message's words in metrics and in the log of requests: labels out of closed sets.

Whatever clients and servers send, a label is a method of the specification, a code or HTTP status that this gateway
knows, or `_OTHER`: the number of series is bounded by the configuration. Names follow OpenTelemetry's conventions for
MCP (`mcp.method.name`, `error.type`). Where time is taken and kept: `gateway/metrics.py`.
"""

from typing import Final

from policies.delivery import Message
from policies.exchange import Answer, Event, Fail
from policies.mcp import (
    CANCELLED,
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    LEGACY_RESOURCE_NOT_FOUND,
    LEGACY_SESSION_NOT_FOUND,
    LEGACY_URL_ELICITATION,
    METHOD_NOT_FOUND,
    MISSING_CLIENT_CAPABILITY,
    MODERN_METHODS,
    PARSE_ERROR,
    PROGRESS,
    REMOVED_METHODS,
    UNSUPPORTED_VERSION,
)

OTHER: Final = "_OTHER"
TOOL_ERROR: Final = "tool_error"
"""The call was answered by a result that says `isError`."""
CANCELLED_CALL: Final = "cancelled"
"""The caller went away or called it off."""

_NOTIFICATIONS: Final = frozenset(
    {"notifications/initialized", "notifications/roots/list_changed", CANCELLED, PROGRESS}
)
_METHODS: Final = {name: name for name in MODERN_METHODS | REMOVED_METHODS | _NOTIFICATIONS | {""}}
_TELLING: Final = frozenset(
    {PARSE_ERROR, METHOD_NOT_FOUND, INVALID_PARAMS, HEADER_MISMATCH, MISSING_CLIENT_CAPABILITY, UNSUPPORTED_VERSION}
    | {LEGACY_SESSION_NOT_FOUND, LEGACY_RESOURCE_NOT_FOUND, LEGACY_URL_ELICITATION}
)
_VAGUE: Final = frozenset({INVALID_REQUEST, INTERNAL_ERROR})
"""Codes that say less than the HTTP status beside them."""
_STATUSES: Final = frozenset({400, 401, 403, 404, 405, 406, 413, 415, 421, 429, 431, 499, 500, 502, 503, 504})


def method_label(method: str) -> str:
    """The method, if it is one of the specification's; empty for what has none (GET, DELETE, a batch, a response)."""
    return _METHODS.get(method, OTHER)


def error_type(code: int, http: int | None) -> str:
    """The JSON-RPC code, or the HTTP status where that says more."""
    if code in _TELLING:
        return str(code)
    if code in _VAGUE:
        return str(http if http in _STATUSES else code)
    return OTHER


def provider_outcome(noted: str, error: str) -> str:
    """What became of a request to an LLM API: `answered` by it, whatever its status; `refused` here; `failed` on the
    way; `cancelled` by its client."""
    return "cancelled" if error == CANCELLED_CALL else noted


def outcome(message: Message) -> str:
    """The `error.type` of a last message, empty where it is a good result."""
    if message.rejection is not None:
        return error_type(message.rejection.code, message.rejection.http)
    return TOOL_ERROR if message.tool_error else ""


def ended_as(event: Event | None) -> str:
    """The `error.type` of an upstream's last event."""
    match event:
        case Answer():
            return TOOL_ERROR if event.result.get("isError") is True else ""
        case Fail():
            return error_type(event.code, event.http)
        case _:
            return CANCELLED_CALL
