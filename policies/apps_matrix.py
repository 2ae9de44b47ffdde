"""How far the four layers between a host of one profile and an upstream carry, told from what the two have exchanged.

Specification: MCP Apps 2026-01-26 (Client<>Server Capability Negotiation), basic/lifecycle and basic/versioning,
client/elicitation. A layer is

    supported     the host has it, and nothing has been exchanged yet, or not with such a host
    negotiated    the host has it, and the upstream has answered in kind, or speaks a revision in which it can use it
    degraded      it was asked for and answered with less
    unavailable   the host does not have it, or the upstream does not answer at all

What was configured does not count. Who exchanges anything: `gateway/upstreams/probe.py`; what hosts
that were served have exchanged: `gateway/front/seeing.py`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from policies.mcp import APPS_EXTENSION, CAPABILITY_OF, Json, at_least
from policies.profiles import Profile

State = Literal["supported", "negotiated", "degraded", "unavailable"]

_MODE_SINCE: Final = {"form": "2025-06-18", "url": "2025-11-25"}
_OFFERS: Final = tuple(sorted(set(CAPABILITY_OF.values())))


@dataclass(frozen=True, slots=True)
class Heard:
    """What came of asking an upstream in the name of a host: the revision that was asked for and the one in which it
    answered (empty where it did not, and `why` says so), what it was told of the host (None where no such host has come
    yet), what it says of itself, and whether it lists tools with an interface (None where nobody looked)."""

    asked: str
    version: str = ""
    told: Json | None = field(default_factory=dict)
    capabilities: Json = field(default_factory=dict)
    lists_apps: bool | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Layer:
    name: str
    state: State
    detail: str


def layers(profile: Profile, heard: Heard | None) -> tuple[Layer, ...]:
    """The four, in order, for a host of this profile; None where nothing has been exchanged yet."""
    return tuple(Layer(name, *judge(profile, heard)) for name, judge in _JUDGES.items())


def has_interface(tool: Any) -> bool:
    """Whether a listed tool is one of Apps (Resource Discovery): it names its interface, in either form, or for whom it
    is."""
    meta = tool.get("_meta") if isinstance(tool, dict) else None
    if not isinstance(meta, dict):
        return False
    nested = _object(meta.get("ui"))
    return "resourceUri" in nested or "visibility" in nested or "ui/resourceUri" in meta


Verdict = tuple[State, str]

_NOBODY: Final[Verdict] = ("supported", "no such host has come yet")


def _protocol(_: Profile, heard: Heard | None) -> Verdict:
    if heard is None:
        return "supported", "nothing has been exchanged yet"
    if not heard.version:
        return "unavailable", heard.why
    if heard.version != heard.asked:
        return "degraded", f"asked for {heard.asked}, answered in {heard.version}"
    return "negotiated", heard.version


def _core(_: Profile, heard: Heard | None) -> Verdict:
    if heard is None or not heard.version:
        return _unspoken(heard)
    offered = [name for name in _OFFERS if isinstance(heard.capabilities.get(name), dict)]
    return ("negotiated", ", ".join(offered)) if offered else ("degraded", f"offers none of {', '.join(_OFFERS)}")


def _interactive(profile: Profile, heard: Heard | None) -> Verdict:
    modes = [mode for mode, can in (("form", profile.elicitation_form), ("url", profile.elicitation_url)) if can]
    if not modes:
        return "unavailable", f"{profile.name} has no elicitation"
    if heard is None or not heard.version:
        return _unspoken(heard)
    if heard.told is None:
        return _NOBODY
    if not isinstance(heard.told.get("elicitation"), dict):
        return "degraded", "the server is not told of it"
    lacking = [mode for mode in modes if not at_least(heard.version, _MODE_SINCE[mode])]
    if lacking:
        return "degraded", f"{heard.version} has no elicitation by {' or '.join(lacking)}"
    return "negotiated", ", ".join(modes)


def _apps(profile: Profile, heard: Heard | None) -> Verdict:
    if not profile.shows_apps:
        return "unavailable", f"{profile.name} shows no Apps"
    if heard is None or not heard.version:
        return _unspoken(heard)
    if heard.told is None:
        return _NOBODY
    if APPS_EXTENSION not in _object(heard.told.get("extensions")):
        return "degraded", "the server is not told of it"
    if APPS_EXTENSION in _object(heard.capabilities.get("extensions")):
        return "negotiated", APPS_EXTENSION
    if heard.lists_apps:
        return "degraded", f"lists tools with an interface, and does not name {APPS_EXTENSION} (see apps: advertise)"
    return "degraded", f"the server does not name {APPS_EXTENSION}"


def _unspoken(heard: Heard | None) -> Verdict:
    return ("supported", "nothing has been exchanged yet") if heard is None else ("unavailable", heard.why)


def _object(value: object) -> Json:
    return value if isinstance(value, dict) else {}


_JUDGES: Final[dict[str, Callable[[Profile, Heard | None], Verdict]]] = {
    "Protocol Connection": _protocol,
    "Core Host": _core,
    "Interactive Host": _interactive,
    "Apps Host": _apps,
}
