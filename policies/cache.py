"""What may be kept of an upstream's answers, for how long and for whom, and what ends it.

Specification: 2026-07-28 server/utilities/caching. Errors, interim results, results of retries, and results whose type
is not known are never kept. An upstream's own word counts where it gives one, bounded by the operator's; where it gives
none, the operator's does. Where entries are, and who fetches them, is not known here: `gateway/cache/`.

An entry stands under marks: `tools`, `prompts`, `resources`, `discover`, and for a resource that was read also one that
its URI has with few others. A notification renews marks, and with them everything that stands under one is gone.
"""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Literal

from policies.mcp import (
    CACHEABLE,
    LIST_CHANGED,
    LISTS,
    META_CLIENT_CAPABILITIES,
    META_CLIENT_INFO,
    META_LOG_LEVEL,
    META_PROGRESS_TOKEN,
    META_VERSION,
    RESOURCE_UPDATED,
    TRACE_CONTEXT,
    Era,
    Json,
)
from policies.settings_cache import UpstreamCache

Outcome = Literal["hit", "stale", "miss", "bypass", "private"]
"""How a request that the cache was asked about was answered: from it, from it though no longer fresh, by the upstream
for it, by the upstream past it, or in a session of the caller's own, which nobody shares."""

Scope = Literal["private", "public"]

MARKS: Final[Mapping[str, str]] = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resources",
    "resources/read": "resources",
    "server/discover": "discover",
}
"""The mark that an answer to each method stands under."""

EVERY_MARK: Final = tuple(dict.fromkeys(MARKS.values()))

_CHANGED: Final = {
    "notifications/tools/list_changed": "tools",
    "notifications/prompts/list_changed": "prompts",
    "notifications/resources/list_changed": "resources",
}
_KNOWN_META: Final = TRACE_CONTEXT | {
    *(META_VERSION, META_CLIENT_INFO, META_CLIENT_CAPABILITIES, META_LOG_LEVEL, META_PROGRESS_TOKEN)
}

_CURSOR: Final = frozenset({"cursor"})
_PARAMS: Final[Mapping[str, frozenset[str]]] = {
    "server/discover": frozenset(),
    "resources/read": frozenset({"uri"}),
}
"""The parameters by which answers differ; of a list, its cursor."""

_MAX_PARENTS: Final = 32
"""Parts of a URI that are looked at one by one; an update of what lies deeper counts for all resources."""

_URI: Final = "uri-"
_URI_DIGITS: Final = 3
"""Resources have 4096 marks of their own between them, so that a client that reads ever others makes no more of them;
an update ends now and then what was read of another one as well."""

_MAX_SKEW_S: Final = 60.0
"""How far ahead another replica's clock may be; what comes from further in the future is no entry of ours."""


def is_cacheable(method: str) -> bool:
    return method in CACHEABLE


def is_shareable(method: str, params: Json, meta: Json) -> bool:
    """Whether a request's answer depends on nothing that its key leaves out, and is one of a bounded number: it is no
    retry, and has no members that nobody here knows."""
    return all(name in _PARAMS.get(method, _CURSOR) for name in params) and all(name in _KNOWN_META for name in meta)


@dataclass(frozen=True, slots=True)
class Kept:
    """How long an answer is fresh, in milliseconds, what its client is told of its scope, and whether all share it."""

    ttl_ms: int
    scope: Scope
    shared: bool


def keep(method: str, result: Json, era: Era, settings: UpstreamCache, *, may_share: bool) -> Kept | None:
    """What is to be done with the result of a request that `is_shareable`; None where it is not kept.

    `may_share`: the upstream cannot tell this caller from another."""
    if era == "modern" and result.get("resultType", "complete") != "complete":
        return None
    own_ttl_s = settings.reads_ttl_s if method == "resources/read" else settings.lists_ttl_s
    own_ttl_ms = int(own_ttl_s * 1000) if method in LISTS or method == "resources/read" else 0
    most_ms = int(settings.max_ttl_s * 1000)
    if era == "modern" and result.get("ttlMs") is not None:
        ttl_ms, scope = ttl_of(result["ttlMs"], most_ms), scope_of(result.get("cacheScope"))
        shared = scope == "public" and settings.trust_public
    else:
        ttl_ms, scope = min(own_ttl_ms, most_ms), settings.scope
        if era == "modern" and "cacheScope" in result:  # its own word on who may share goes before the operator's
            scope = scope_of(result["cacheScope"])
            shared = scope == "public" and (settings.trust_public or settings.scope == "public")
        else:
            shared = scope == "public"
    return Kept(ttl_ms, scope, shared and may_share) if ttl_ms > 0 else None


def ttl_of(said: Any, most_ms: int) -> int:
    """An upstream's `ttlMs` as whole milliseconds of 0 to `most_ms`; what is no number is 0, as is what is negative."""
    if isinstance(said, bool) or not isinstance(said, int | float | Decimal) or not said > 0:
        return 0
    return most_ms if said >= most_ms else math.floor(said)


def scope_of(said: Any) -> Scope:
    return "public" if said == "public" else "private"


def may_hint(described: Json | None, settings: UpstreamCache) -> bool:
    """Whether an upstream that describes itself so is likely to let its answers be kept."""
    own = settings.lists_ttl_s > 0 or settings.reads_ttl_s > 0
    return own or (described is not None and ttl_of(described.get("ttlMs"), 1) > 0)


State = Literal["fresh", "revalidate", "on_error", "over"]
"""Given out; given out while another is fetched; given out where no other can be had; not given out."""


def state(received_s: float, ttl_ms: int, now_s: float, settings: UpstreamCache) -> State:
    """What an entry is good for now. Times are seconds since the epoch."""
    if received_s > now_s + _MAX_SKEW_S:
        return "over"
    late_s = _late_s(received_s, ttl_ms, now_s)
    if late_s < 0:
        return "fresh"
    if late_s < settings.stale_while_revalidate_s:
        return "revalidate"
    return "on_error" if late_s < settings.stale_if_error_s else "over"


def may_stand_in(received_s: float, ttl_ms: int, now_s: float, settings: UpstreamCache) -> bool:
    """Whether an entry may be given out now that the upstream has failed to give another."""
    is_ours = received_s <= now_s + _MAX_SKEW_S
    return is_ours and _late_s(received_s, ttl_ms, now_s) < settings.stale_if_error_s


def _late_s(received_s: float, ttl_ms: int, now_s: float) -> float:
    return now_s - received_s - ttl_ms / 1000


def remaining_ms(received_s: float, ttl_ms: int, now_s: float) -> int:
    """What is left of an entry's time; never more than there is."""
    return max(0, ttl_ms - math.ceil(max(0.0, now_s - received_s) * 1000))


def lasts_s(received_s: float, ttl_ms: int, now_s: float, settings: UpstreamCache) -> float:
    """How long an entry is good for anything."""
    grace_s = max(settings.stale_while_revalidate_s, settings.stale_if_error_s)
    return ttl_ms / 1000 + grace_s - max(0.0, now_s - received_s)


# marks


def marks_of(method: str, params: Json) -> tuple[str, ...]:
    """What the answer to a request stands under."""
    if method == "resources/read":
        return MARKS[method], _of_uri(str(params.get("uri")))
    return (MARKS[method],)


def renewed_by(method: str, params: Json) -> tuple[str, ...]:
    """The marks that a notification of the upstream's renews; none for what says nothing of this kind.

    An update counts for every resource that the updated one may be a part of (server/resources, Subscriptions)."""
    if method in _CHANGED:
        return (_CHANGED[method],)
    uri = params.get("uri")
    if method != RESOURCE_UPDATED:
        return ()
    if not isinstance(uri, str) or uri.count("/") > _MAX_PARENTS:
        return (MARKS["resources/read"],)
    ends = [index for index, char in enumerate(uri) if char == "/"]
    parents = [uri[:end] for index in ends for end in (index, index + 1)]
    return tuple(dict.fromkeys(_of_uri(one) for one in (*parents, uri)))


def whole_of(mark: str) -> str:
    """The mark under which everything stands that stands under this one."""
    return MARKS["resources/read"] if mark.startswith(_URI) else mark


def _of_uri(uri: str) -> str:
    return f"{_URI}{hashlib.sha256(uri.encode(errors='surrogatepass')).hexdigest()[:_URI_DIGITS]}"


# being told of changes


def filter_for(method: str, params: Json, capabilities: Json) -> Json:
    """The listen filter by which changes of an answer can be heard of a server with these capabilities; empty where
    they can't."""
    if method == "resources/read":
        resources = capabilities.get("resources")
        can = isinstance(resources, dict) and resources.get("subscribe") is True
        return {"resourceSubscriptions": [params.get("uri")]} if can and isinstance(params.get("uri"), str) else {}
    tells = {_CHANGED[told]: name for told, name in LIST_CHANGED.items() if _tells(capabilities, _CHANGED[told])}
    return dict.fromkeys(tells.values(), True) if MARKS[method] in tells else {}


def _tells(capabilities: Json, mark: str) -> bool:
    value = capabilities.get(mark)
    return isinstance(value, dict) and value.get("listChanged") is True


def marks_heard(agreed: Json) -> tuple[str, ...]:
    """The marks that the notifications of a stream with this agreed filter can renew."""
    lists = [_CHANGED[told] for told, name in LIST_CHANGED.items() if agreed.get(name) is True]
    uris = agreed.get("resourceSubscriptions")
    return (*lists, *(_of_uri(uri) for uri in (uris if isinstance(uris, list) else ()) if isinstance(uri, str)))
