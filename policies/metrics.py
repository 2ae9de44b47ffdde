"""What becomes of a message's words in metrics and in the log of requests: labels out of closed sets.

Whatever clients and servers send, a label is a method of the specification, a code or HTTP status that this gateway
knows, or `_OTHER`: the number of series is bounded by the configuration. Names follow OpenTelemetry's conventions for
MCP (`mcp.method.name`, `error.type`). Where time is taken and kept: `gateway/metrics.py`.
"""

from typing import Final

from policies.catalogue import OTHER
from policies.delivery import Message
from policies.exchange import Answer, Event, Fail, Reply
from policies.mcp import (
    ASK_CAPABILITY,
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
    Json,
)

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


# what an upstream asks of a client

RELAYED: Final = "relayed"
"""The client gets the question as the upstream wrote it, and answers it to the upstream."""


BRIDGED: Final = "bridged"
"""The client gets the questions of a server with sessions in the form of its own revision."""


def ask_kind(method: object) -> str:
    """`elicitation`, `sampling` or `roots`."""
    return ASK_CAPABILITY.get(method, OTHER) if isinstance(method, str) else OTHER


def ask_outcome(reply: Reply | None) -> str:
    """What came of a question that was put to a client: `answered`; `declined` or `cancelled`, as users can say of an
    elicitation; `error`; `abandoned` where nobody waits for an answer any more."""
    if reply is None:
        return "abandoned"
    if reply.result is None:
        return "error"
    match reply.result.get("action"):
        case "decline":
            return "declined"
        case "cancel":
            return "cancelled"
        case _:
            return "answered"


def relayed_asks(result: Json) -> tuple[str, ...] | None:
    """The kinds of what an `InputRequiredResult` asks; None where it is another result."""
    if result.get("resultType") != "input_required":
        return None
    requests = result.get("inputRequests")
    found = requests.values() if isinstance(requests, dict) else ()
    return tuple(ask_kind(one.get("method")) for one in found if isinstance(one, dict))
