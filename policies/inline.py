"""A modern request where there is no header layer: everything that describes it stands in its body.

Source: https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio (Request Metadata) and
basic/index (`_meta`). What headers would have to say is `policies/headers.py`'s business.
"""

from policies.errors import Rejection
from policies.headers import check_envelope, unknown_method
from policies.jsonrpc import Request
from policies.mcp import (
    INVALID_PARAMS,
    LOG_LEVELS,
    META_LOG_LEVEL,
    META_VERSION,
    MODERN_VERSIONS,
    REMOVED_METHODS,
    UNSUPPORTED_VERSION,
    Json,
)


def judge(request: Request) -> Rejection | None:
    """Whether the envelope is whole and of a version that we serve, and the method one that this revision may have."""
    meta = request.params.get("_meta")
    meta = meta if isinstance(meta, dict) else {}
    version = meta.get(META_VERSION)
    if not isinstance(version, str):
        return Rejection(INVALID_PARAMS, f"Invalid params: params._meta[{META_VERSION!r}] must be a string", http=400)
    if version not in MODERN_VERSIONS:
        data = {"supported": list(MODERN_VERSIONS), "requested": version}
        return Rejection(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
    rejection = check_envelope(request)
    if rejection is None and request.method in REMOVED_METHODS:
        rejection = unknown_method(request.method)
    return rejection or check_level(meta)


def check_level(meta: Json) -> Rejection | None:
    """The log level that a request asks for, if any."""
    level = meta.get(META_LOG_LEVEL)
    if level is None or level in LOG_LEVELS:
        return None
    return Rejection(INVALID_PARAMS, f"_meta {META_LOG_LEVEL} is none of {', '.join(LOG_LEVELS)}", http=400)
