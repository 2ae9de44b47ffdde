"""The specification's own words: versions by era, methods, headers, `_meta` keys, error codes.

Source: https://modelcontextprotocol.io/specification/2026-07-28 and the revisions before it. Only names and small
tables live here; what is done with them is decided elsewhere.
"""

from typing import Any, Final, Literal

Json = dict[str, Any]
"""One JSON object as it came off the wire; unknown members are kept."""

Era = Literal["modern", "legacy"]

MODERN_VERSIONS: Final = ("2026-07-28",)
LEGACY_VERSIONS: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
LATEST_MODERN: Final = MODERN_VERSIONS[0]
LATEST_LEGACY: Final = LEGACY_VERSIONS[0]
ASSUMED_LEGACY: Final = "2025-03-26"
"""What a request without a version header speaks (2025-06-18, transports, Protocol Version Header)."""

_ORDER: Final = {version: rank for rank, version in enumerate(reversed(MODERN_VERSIONS + LEGACY_VERSIONS))}


def at_least(version: str, minimum: str) -> bool:
    """Whether `version` is `minimum` or a later revision; both must be revisions named in this module."""
    return _ORDER[version] >= _ORDER[minimum]


def era_of(version: str) -> Era | None:
    """The era of a revision, or None where this gateway does not know it."""
    if version in MODERN_VERSIONS:
        return "modern"
    return "legacy" if version in LEGACY_VERSIONS else None


PREFIX: Final = "io.modelcontextprotocol/"
META_VERSION: Final = PREFIX + "protocolVersion"
META_CLIENT_INFO: Final = PREFIX + "clientInfo"
META_CLIENT_CAPABILITIES: Final = PREFIX + "clientCapabilities"
META_LOG_LEVEL: Final = PREFIX + "logLevel"
META_SUBSCRIPTION_ID: Final = PREFIX + "subscriptionId"
META_SERVER_INFO: Final = PREFIX + "serverInfo"
META_PROGRESS_TOKEN: Final = "progressToken"
RELATED_TASK: Final = PREFIX + "related-task"
"""The task of 2025-11-25 that a message belongs to."""

TASKS_EXTENSION: Final = PREFIX + "tasks"
APPS_EXTENSION: Final = PREFIX + "ui"
"""MCP Apps 2026-01-26, Extension Identifier."""

TRACE_CONTEXT: Final = frozenset({"traceparent", "tracestate", "baggage"})
"""`_meta` members, and headers, that are one request's own (basic/index, `_meta`)."""

HEADER_VERSION: Final = "MCP-Protocol-Version"
HEADER_METHOD: Final = "Mcp-Method"
HEADER_NAME: Final = "Mcp-Name"
HEADER_PARAM: Final = "Mcp-Param-"
HEADER_SESSION: Final = "Mcp-Session-Id"
HEADER_LAST_EVENT: Final = "Last-Event-ID"

NAMED_BY: Final = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
"""The member of `params` which `Mcp-Name` mirrors, by method (tasks/*: ext-tasks)."""

LISTS: Final = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
CACHEABLE: Final = frozenset({"server/discover", "resources/read", *LISTS})
MAY_ASK: Final = frozenset({"tools/call", "prompts/get", "resources/read"})
READS: Final = frozenset(
    {"server/discover", "resources/read", "prompts/get", "completion/complete", "tasks/get", *LISTS}
)
"""Requests that may be sent again after an ambiguous failure: they change nothing."""

MODERN_METHODS: Final = frozenset(
    {*CACHEABLE, "tools/call", "prompts/get", "completion/complete", "subscriptions/listen"}
    | {"tasks/get", "tasks/update", "tasks/cancel"}
)
CAPABILITY_OF: Final = {
    "tools/list": "tools",
    "tools/call": "tools",
    "prompts/list": "prompts",
    "prompts/get": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resources",
    "resources/read": "resources",
    "completion/complete": "completions",
}
"""The server capability that a request needs. `completions` is declared since 2025-03-26."""

REMOVED_METHODS: Final = frozenset(
    {"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}
    | {"sampling/createMessage", "elicitation/create", "roots/list", "tasks/list", "tasks/result"}
)
"""Methods of legacy revisions, or of the other direction, that 2026-07-28 does not have as client requests."""

ASK_CAPABILITY: Final = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}
LIST_CHANGED: Final = {
    "notifications/tools/list_changed": "toolsListChanged",
    "notifications/prompts/list_changed": "promptsListChanged",
    "notifications/resources/list_changed": "resourcesListChanged",
}
RESOURCE_UPDATED: Final = "notifications/resources/updated"
ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
PROGRESS: Final = "notifications/progress"
LOG_MESSAGE: Final = "notifications/message"
CANCELLED: Final = "notifications/cancelled"
LISTEN: Final = "subscriptions/listen"

LOG_LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
HEADER_MISMATCH: Final = -32020
MISSING_CLIENT_CAPABILITY: Final = -32021
UNSUPPORTED_VERSION: Final = -32022
LEGACY_RESOURCE_NOT_FOUND: Final = -32002
LEGACY_URL_ELICITATION: Final = -32042
LEGACY_SESSION_NOT_FOUND: Final = -32001
"""What the official SDK servers put into the body of the 404 for a session they do not know."""
