"""Capabilities, server description and versions: `initialize` result ↔ `server/discover` result.

Specification: 2026-07-28 server/discover and basic/versioning; 2025-11-25 basic/lifecycle. Nothing is promised to a
host that this gateway cannot deliver to it, nothing to an upstream that this host cannot answer.
"""

from dataclasses import dataclass, field

from policies.exchange import Dialect
from policies.mcp import (
    APPS_EXTENSION,
    ASK_CAPABILITY,
    CAPABILITY_OF,
    LATEST_LEGACY,
    META_SERVER_INFO,
    MODERN_VERSIONS,
    TASKS_EXTENSION,
    Era,
    Json,
    at_least,
)
from policies.profiles import Profile
from policies.translation.messages import without_meta

_CLIENT_SINCE = {
    "roots": "2024-11-05",
    "sampling": "2024-11-05",
    "elicitation": "2025-06-18",
    "tasks": "2025-11-25",
    "experimental": "2024-11-05",
    "extensions": "2024-11-05",
}
"""The first legacy revision with a client capability; extensions pass in every version with their settings, since
a receiver that does not know them ignores them."""

_ONLY_MODERN = ("resultType", "supportedVersions", "ttlMs", "cacheScope")
_ONLY_LEGACY = ("protocolVersion", "serverInfo")
"""The members of `server/discover` results that `initialize` results don't have, and the other way round."""

_SERVER_SINCE = {
    "tools": "2024-11-05",
    "prompts": "2024-11-05",
    "resources": "2024-11-05",
    "logging": "2024-11-05",
    "completions": "2025-03-26",
    "tasks": "2025-11-25",
    "experimental": "2024-11-05",
    "extensions": "2024-11-05",
}


@dataclass(frozen=True, slots=True)
class Description:
    """What an upstream says of itself, in its own dialect. `raw` is the whole result, unknown members included."""

    dialect: Dialect
    capabilities: Json = field(default_factory=dict)
    server_info: Json | None = None
    instructions: str | None = None
    raw: Json = field(default_factory=dict)


def of_discover(result: Json, version: str) -> Description:
    meta = result.get("_meta")
    info = meta.get(META_SERVER_INFO) if isinstance(meta, dict) else None
    info = info if isinstance(info, dict) else result.get("serverInfo")
    return Description(
        Dialect("modern", version),
        _object(result.get("capabilities")),
        info if isinstance(info, dict) else None,
        _text(result.get("instructions")),
        result,
    )


def of_initialize(result: Json, version: str) -> Description:
    info = result.get("serverInfo")
    return Description(
        Dialect("legacy", version),
        _object(result.get("capabilities")),
        info if isinstance(info, dict) else None,
        _text(result.get("instructions")),
        result,
    )


def client_capabilities(declared: Json, front: Era, upstream: Dialect) -> Json:
    """The effective capabilities: what the host declared, less what cannot be carried to this upstream."""
    if front == upstream.era == "modern":
        return declared
    if front == upstream.era:
        return {k: v for k, v in declared.items() if at_least(upstream.version, _CLIENT_SINCE.get(k, "2025-11-25"))}
    # tasks: 2025-11-25's and the modern extension's are different protocols, neither of which is bridged
    kept = {k: v for k, v in declared.items() if k in ("experimental", "extensions", *ASK_CAPABILITY.values())}
    roots = kept.get("roots")
    if isinstance(roots, dict) and "listChanged" in roots:
        kept["roots"] = {k: v for k, v in roots.items() if k != "listChanged"}  # no way to tell of it
    return _without_extension(kept, TASKS_EXTENSION)


def can_ask(method: str, params: Json, capabilities: Json) -> Json | None:
    """None where the client declared what the ask needs, else the `requiredCapabilities` it lacks (-32021).

    An `elicitation: {}` means form (2025-11-25 client/elicitation, Capabilities).
    """
    need = ASK_CAPABILITY[method]
    have = capabilities.get(need)
    if not isinstance(have, dict):
        return {need: {}}
    if need == "elicitation":
        mode = params.get("mode", "form")
        if not isinstance(mode, str):
            return {need: {}}
        if mode not in have and not (mode == "form" and "url" not in have):
            return {need: {mode: {}}}
    if need == "sampling" and ("tools" in params or "toolChoice" in params) and "tools" not in have:
        return {need: {"tools": {}}}
    return None


def offers(description: Description, method: str) -> bool:
    """Whether a legacy server has `method`: read from its capabilities, since error codes do not tell (the Python SDK
    1.x answers unknown methods with -32602). Completion could not be declared before 2025-03-26."""
    needed = CAPABILITY_OF.get(method)
    if needed == "completions" and not at_least(description.dialect.version, "2025-03-26"):
        return True
    return needed is not None and isinstance(description.capabilities.get(needed), dict)


def server_capabilities(description: Description, front: Dialect) -> Json:
    """The upstream's capabilities as the front may promise them."""
    if description.dialect.era == front.era == "modern":
        return description.capabilities
    if front.era == "legacy":
        kept = {
            k: v
            for k, v in description.capabilities.items()
            if at_least(front.version, _SERVER_SINCE.get(k, LATEST_LEGACY))
        }
        if description.dialect.era == "modern":
            kept.pop("tasks", None)
            return _without_extension(kept, TASKS_EXTENSION)
        return kept
    kept = {k: v for k, v in description.capabilities.items() if k != "tasks"}
    return _without_extension(kept, TASKS_EXTENSION)


def discover_result(description: Description, fallback_info: Json, age_s: float, *, is_deaf: bool = False) -> Json:
    """The `server/discover` result for a modern client, from a description fetched `age_s` ago: `ttlMs` is what
    remains of the upstream's own, and 0 where it named none. `is_deaf`: a legacy upstream serves no stream on which it
    could tell of anything, so that no such thing is promised."""
    unlike = _ONLY_MODERN if description.dialect.era == "modern" else (*_ONLY_MODERN, *_ONLY_LEGACY)
    result: Json = {"resultType": "complete", "supportedVersions": list(MODERN_VERSIONS)}
    result |= _less(description.raw, *unlike, "instructions", "_meta")
    capabilities = server_capabilities(description, Dialect("modern", MODERN_VERSIONS[0]))
    result["capabilities"] = _unheard(capabilities) if is_deaf else capabilities
    if description.instructions is not None:
        result["instructions"] = description.instructions
    meta = _object(description.raw.get("_meta"))
    result["_meta"] = {**meta, META_SERVER_INFO: description.server_info or fallback_info}
    ttl_ms, scope = None, None
    if description.dialect.era == "modern":
        ttl_ms, scope = description.raw.get("ttlMs"), description.raw.get("cacheScope")
    result["ttlMs"] = max(0, int(ttl_ms - age_s * 1000)) if isinstance(ttl_ms, int | float) else 0
    result["cacheScope"] = "public" if scope == "public" else "private"
    return result


def _unheard(capabilities: Json) -> Json:
    """`capabilities` less what is told on a stream."""
    return {
        name: _less(value, "listChanged", "subscribe") if isinstance(value, dict) else value
        for name, value in capabilities.items()
    }


def initialize_result(description: Description, version: str, fallback_info: Json) -> Json:
    """The `initialize` result for a legacy client that speaks `version`."""
    result: Json = {"protocolVersion": version}
    kept = _less(description.raw, "protocolVersion", "instructions")
    if description.dialect.era == "modern":
        kept = without_meta(_less(kept, *_ONLY_MODERN), META_SERVER_INFO)
    result |= kept
    result["capabilities"] = server_capabilities(description, Dialect("legacy", version))
    result["serverInfo"] = description.server_info or fallback_info
    if description.instructions is not None:
        result["instructions"] = description.instructions
    return result


def for_host(result: Json, profile: Profile, *, lists_apps: bool | None = None) -> Json:
    """The result of either method as a host with this profile is told it: of Apps only where it shows them (MCP Apps
    2026-01-26, Client<>Server Capability Negotiation).

    `lists_apps`: None where hosts are told what the server says; else whether it lists tools with an interface, of
    which they are told also where it keeps silent. What one host is told and another is not, nobody may share."""
    capabilities = _object(result.get("capabilities"))
    offers = APPS_EXTENSION in _object(capabilities.get("extensions"))
    if offers and not profile.shows_apps:
        capabilities = _without_extension(capabilities, APPS_EXTENSION)
        if not capabilities["extensions"]:
            capabilities = _less(capabilities, "extensions")
    elif lists_apps and profile.shows_apps and not offers:
        apps = {APPS_EXTENSION: {"mimeTypes": list(profile.apps)}}
        capabilities = {**capabilities, "extensions": {**_object(capabilities.get("extensions")), **apps}}
    elif not offers and lists_apps is None:
        return result
    scope = {"cacheScope": "private"} if "cacheScope" in result else {}
    return {**result, "capabilities": capabilities, **scope}


def _less(value: Json, *keys: str) -> Json:
    return {k: v for k, v in value.items() if k not in keys}


def _without_extension(capabilities: Json, extension: str) -> Json:
    extensions = capabilities.get("extensions")
    if not isinstance(extensions, dict) or extension not in extensions:
        return capabilities
    return {**capabilities, "extensions": {k: v for k, v in extensions.items() if k != extension}}


def _object(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
