"""Which era a request speaks, and which eras an upstream speaks, judged by its answer to `server/discover`.

Specification: 2026-07-28 basic/versioning (Backward Compatibility), basic/transports/streamable-http and stdio
(Backward Compatibility). An era is a property of *this request* and of an upstream, never of a connection.
"""

from dataclasses import dataclass
from typing import Literal

from policies.mcp import (
    HEADER_MISMATCH,
    LEGACY_VERSIONS,
    META_VERSION,
    MISSING_CLIENT_CAPABILITY,
    MODERN_VERSIONS,
    UNSUPPORTED_VERSION,
    Era,
    Json,
)

MODERN_ONLY_METHODS = frozenset({"server/discover", "subscriptions/listen"})


def of_request(version_header: str | None, has_session: bool, has_method_header: bool, method: str, meta: Json) -> Era:
    """The era that a request claims.

    An envelope in `_meta` or a modern version header makes it modern, and then a session id is ignored (2026-07-28
    streamable-http, Earlier Streamable HTTP Revisions). `initialize` without an envelope selects legacy semantics
    whatever its headers say (basic/versioning). A version header that nobody knows is taken for a later revision, so
    that the answer is -32022 with the versions served; inside a session it stays a legacy request, whose header is
    then refused.
    """
    claimed = meta.get(META_VERSION)
    if method == "initialize" and claimed is None:
        return "legacy"
    if version_header in MODERN_VERSIONS:
        return "modern"
    if version_header in LEGACY_VERSIONS:
        return "modern" if claimed in MODERN_VERSIONS else "legacy"
    if has_session:
        is_legacy = version_header is not None or claimed is None or claimed in LEGACY_VERSIONS
        return "legacy" if is_legacy else "modern"
    if claimed is not None or version_header is not None or has_method_header:
        return "modern"
    return "modern" if method in MODERN_ONLY_METHODS else "legacy"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an answer to `server/discover` says.

    modern        speaks `versions`, described by `discover` (None where it kept that to itself)
    retry         modern, but wants another `versions[0]`
    incompatible  modern, and no version in common: `versions` are its own
    legacy        no recognised modern answer: try `initialize`
    unauthorized  our credentials are refused with `status` and `challenge`: not an era signal
    unavailable   out of order: no verdict, and none is remembered
    """

    kind: Literal["modern", "retry", "incompatible", "legacy", "unauthorized", "unavailable"]
    versions: tuple[str, ...] = ()
    discover: Json | None = None
    status: int = 200
    challenge: str | None = None


def judge(status: int, body: Json | None) -> Verdict:
    """The verdict on an answer to `server/discover`: its HTTP status, and its JSON-RPC body if it had one."""
    if status in (401, 403):
        return Verdict("unauthorized")
    if status >= 500:
        return Verdict("unavailable")
    result, error = (body or {}).get("result"), (body or {}).get("error")
    if isinstance(result, dict) and isinstance(result.get("supportedVersions"), list):
        offered = _texts(result["supportedVersions"])
        served = tuple(v for v in MODERN_VERSIONS if v in offered)
        if served:
            return Verdict("modern", served, result)
        return _by_versions(offered)
    code = error.get("code") if isinstance(error, dict) else None
    if code in (HEADER_MISMATCH, MISSING_CLIENT_CAPABILITY):
        return Verdict("modern", MODERN_VERSIONS)  # it validates as modern servers do, and keeps its description
    if isinstance(error, dict) and code == UNSUPPORTED_VERSION:
        data = error.get("data")
        return _by_versions(_texts(data.get("supported")) if isinstance(data, dict) else ())
    return Verdict("legacy")


def _by_versions(offered: tuple[str, ...]) -> Verdict:
    """Without a modern version in common. Who names none at all, as modern servers must, is tried with `initialize`."""
    served = tuple(v for v in MODERN_VERSIONS if v in offered)
    if served:
        return Verdict("retry", served)
    if not offered or any(v in LEGACY_VERSIONS for v in offered):
        return Verdict("legacy", offered)
    return Verdict("incompatible", offered)


def _texts(value: object) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()
