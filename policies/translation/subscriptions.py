"""What a listener is promised, and which notifications are its own.

Specification: 2026-07-28 basic/patterns/subscriptions; 2025-11-25 server/resources (Subscriptions).
"""

from collections.abc import Sequence

from policies.mcp import LIST_CHANGED, RESOURCE_UPDATED, Json

_CAPABILITY = {"toolsListChanged": "tools", "promptsListChanged": "prompts", "resourcesListChanged": "resources"}


def everything(uris: tuple[str, ...] = ()) -> Json:
    """The filter that stands for a legacy client's GET stream: all list changes, and what it subscribed to."""
    wanted: Json = dict.fromkeys(_CAPABILITY, True)
    return {**wanted, "resourceSubscriptions": list(uris)} if uris else wanted


def honoured(wanted: Json, capabilities: Json, can_hear: bool) -> Json:
    """The part of a filter that an upstream with these capabilities can serve; nothing where nobody can hear it.

    `resourceSubscriptions` are those that may be tried: the upstream may still refuse one.
    """
    if not can_hear:
        return {}
    agreed: Json = {
        name: True
        for name, capability in _CAPABILITY.items()
        if wanted.get(name) is True and _flag(capabilities, capability, "listChanged")
    }
    uris = wanted.get("resourceSubscriptions")
    if isinstance(uris, list) and _flag(capabilities, "resources", "subscribe"):
        unique = list(dict.fromkeys(uri for uri in uris if isinstance(uri, str)))
        if unique:
            agreed["resourceSubscriptions"] = unique
    return agreed


def together(acknowledged: Sequence[Json]) -> Json:
    """The parameters of the one acknowledgement for a client whose filter several upstreams honour, each a part of it.
    Where they say different things, the first one counts."""
    filters = [agreed for one in acknowledged if isinstance(agreed := one.get("notifications"), dict)]
    merged = {name: value for agreed in reversed(filters) for name, value in agreed.items()}
    tasks = [agreed["taskIds"] for agreed in filters if isinstance(agreed.get("taskIds"), list)]
    if tasks:
        merged["taskIds"] = [one for ids in tasks for one in ids]
    return {**{name: value for one in reversed(acknowledged) for name, value in one.items()}, "notifications": merged}


def missed(agreed: Json) -> list[tuple[str, Json]]:
    """What a listener with this agreed filter is told after a gap: all of it may have changed."""
    lists: list[tuple[str, Json]] = [(method, {}) for method, name in LIST_CHANGED.items() if agreed.get(name) is True]
    uris = agreed.get("resourceSubscriptions")
    return lists + [(RESOURCE_UPDATED, {"uri": uri}) for uri in (uris if isinstance(uris, list) else [])]


def concerns(agreed: Json, method: str, params: Json) -> bool:
    """Whether a notification belongs to a listener with the agreed filter.

    An update of a part of a subscribed resource counts (server/resources, Subscriptions: a sub-resource).
    """
    if method in LIST_CHANGED:
        return agreed.get(LIST_CHANGED[method]) is True
    if method == RESOURCE_UPDATED:
        uri = params.get("uri")
        return isinstance(uri, str) and any(_covers(one, uri) for one in agreed.get("resourceSubscriptions", ()))
    return False


def _covers(subscribed: str, uri: str) -> bool:
    return uri == subscribed or uri.startswith(subscribed if subscribed.endswith("/") else subscribed + "/")


def _flag(capabilities: Json, capability: str, name: str) -> bool:
    value = capabilities.get(capability)
    return isinstance(value, dict) and value.get(name) is True
