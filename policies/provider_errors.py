"""Errors of the gateway's own on a route to an LLM API, in the shape that clients of that API read.

Sources: the error pages of the Anthropic API, the OpenAI API, google.rpc.Status (Gemini) and Amazon Bedrock Runtime.
No message holds a key, an address or a word of a body.
"""

from typing import Final

from policies.errors import Rejection
from policies.jsonrpc import dumps

_ANTHROPIC: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
}
_GEMINI: Final = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_BEDROCK: Final = {
    401: "UnrecognizedClientException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    429: "ThrottlingException",
    503: "ServiceUnavailableException",
}


def error_body(dialect: str, why: Rejection) -> tuple[bytes, tuple[tuple[str, str], ...]]:
    """The body of an error response (JSON), and the headers that belong to it."""
    status, message = why.status, f"mcp-front-door: {why.message}"
    is_ours = status >= 500
    match dialect:
        case "anthropic":
            kind = _ANTHROPIC.get(status, "api_error" if is_ours else "invalid_request_error")
            return dumps({"type": "error", "error": {"type": kind, "message": message}}), why.headers
        case "gemini":
            word = _GEMINI.get(status, "INTERNAL" if is_ours else "INVALID_ARGUMENT")
            return dumps({"error": {"code": status, "message": message, "status": word}}), why.headers
        case "bedrock":
            name = _BEDROCK.get(status, "InternalServerException" if is_ours else "ValidationException")
            return dumps({"message": message}), (*why.headers, ("x-amzn-ErrorType", name))
        case _:
            kind = "server_error" if is_ours else "invalid_request_error"
            error = {"message": message, "type": kind, "param": None, "code": None}
            return dumps({"error": error}), why.headers
