"""What a host can show: its profile, and the capabilities that an upstream is told of, for each request.

Specification: MCP Apps 2026-01-26 (Client<>Server Capability Negotiation); 2026-07-28 and 2025-11-25 client/elicitation
(Capabilities). The effective profile is the smaller of what route and credential allow and of what the client declares:
a claim can ask for more to look at, never for more than the ceilings. Sampling, roots, tasks and whatever else is
declared are no matter of display and pass as they are. What an upstream of another era cannot be told is decided in
`policies/translation/discover.py`, what is left out of answers elsewhere.

How an effective profile is called: by the first known profile with the same abilities, the built-in ones before the
operator's, else `core-v1` and what there is beyond it: `core-v1+form`, `core-v1+form+apps`. What a cache entry belongs
to (`identity`) is made of the same words, without the operator's names, which can come to mean something else.
"""

import hashlib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from policies import wellformed
from policies.jsonrpc import dumps
from policies.mcp import APPS_EXTENSION, TASKS_EXTENSION, Json
from policies.request_state import canonical
from policies.settings_profiles import ProfileSettings

_FORM, _URL = "form", "url"
_FLAGS: Final[Mapping[str, tuple[tuple[str, ...], Any]]] = {
    "sampling": (("context", "tools"), {}),
    "roots": (("listChanged",), True),
}
"""Capabilities that ride along, those of their members that have a word, and what such a member must be."""

_MAX_TYPE: Final = 255
"""Characters of a MIME type: those that are registered may have 127 on each side of the slash (RFC 6838, 4.2)."""

_STANDARD_APPS: Final = ("text/html;profile=mcp-app",)

Abilities = tuple[bool, bool, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Profile:
    """What a host can show. `apps`: the MIME types that it shows as MCP Apps, in one spelling and order; empty where
    none."""

    name: str
    elicitation_form: bool = False
    elicitation_url: bool = False
    apps: tuple[str, ...] = ()

    @property
    def shows_apps(self) -> bool:
        return bool(self.apps)

    @property
    def abilities(self) -> Abilities:
        """All of it but its name."""
        return self.elicitation_form, self.elicitation_url, self.apps

    @property
    def capabilities(self) -> Json:
        """The canonical capabilities of a host that can do this and nothing else."""
        modes: Json = {mode: {} for mode, can in ((_FORM, self.elicitation_form), (_URL, self.elicitation_url)) if can}
        told: Json = {"elicitation": modes} if modes else {}
        return {**told, "extensions": {APPS_EXTENSION: {"mimeTypes": list(self.apps)}}} if self.apps else told


CORE: Final = Profile("core-v1")
"""What every host can show."""


@dataclass(frozen=True, slots=True)
class Effective:
    """What holds for one request. `capabilities`: what its upstream is told that the host can do; the very object that
    was declared where nothing of it is changed. `shown_as`: the profile in words that never change their meaning."""

    profile: Profile
    capabilities: Json
    shown_as: str

    @property
    def identity(self) -> str:
        """What an answer to this host may be shared by, a part of cache keys: two hosts have it in common only where
        they are told of, and show, the same. For example `interactive-v1 roots sampling`; what has no word is there as
        a digest."""
        flags, rest = _ride_along(self.capabilities)
        digest = [hashlib.sha256(dumps(canonical(rest))).hexdigest()[:32]] if rest else []
        return " ".join([self.shown_as, *flags, *digest])


@dataclass(frozen=True, slots=True)
class Profiles:
    """Every profile that can be named. `widest`: the ceiling where none is set."""

    by_name: Mapping[str, Profile]
    widest: Profile
    _known: Mapping[Abilities, Profile]
    _built_in: Mapping[Abilities, str]

    @classmethod
    def of(cls, built_in: Sequence[Profile], own: Mapping[str, ProfileSettings]) -> "Profiles":
        """`built_in`: from the narrowest to the widest."""
        every = [*built_in, *(made(name, settings) for name, settings in own.items())]
        known = {profile.abilities: profile for profile in reversed(every)}  # the first of equals has the word
        lasting = {profile.abilities: profile.name for profile in reversed(built_in)}
        return cls({profile.name: profile for profile in every}, built_in[-1], known, lasting)

    def ceiling(self, route: str | None, credential: str | None) -> Profile | None:
        """The smaller of two profiles by their names, None where neither is set. Raises KeyError where one is not
        known."""
        named = [self.by_name[name] for name in (route, credential) if name is not None]
        if len(named) < 2:
            return named[0] if named else None
        one, other = named
        form = one.elicitation_form and other.elicitation_form
        url = one.elicitation_url and other.elicitation_url
        return self._profile((form, url, tuple(kind for kind in one.apps if kind in other.apps)))

    def withholds(self, ceiling: Profile | None) -> bool:
        """Whether it may keep anything from a host that would be told, or shown, without it."""
        return ceiling is not None and self.effective(ceiling, self.widest.capabilities).profile != self.widest

    def effective(self, ceiling: Profile | None, declared: Json | None) -> Effective:
        """What holds for a client that declares these capabilities.

        With None nobody knows what it can do (a legacy call outside any session): then the ceiling is its profile, and
        where there is none, the plain surface is."""
        if declared is None:
            profile = ceiling or CORE
            return self._effective(profile.abilities, profile.capabilities)
        allowed = ceiling or self.widest
        elicitation = _elicitation(declared.get("elicitation"), allowed)
        types = _types(declared)
        apps = tuple(kind for kind in allowed.apps if kind in types) if types else ()
        return self._effective((*_modes(elicitation), apps), _told(declared, elicitation, apps))

    def _effective(self, abilities: Abilities, capabilities: Json) -> Effective:
        shown_as = self._built_in.get(abilities) or _spelled(abilities)
        return Effective(self._profile(abilities), capabilities, shown_as)

    def _profile(self, abilities: Abilities) -> Profile:
        return self._known.get(abilities) or Profile(_spelled(abilities), *abilities)


def parse(text: str) -> tuple[Profile, ...]:
    """The profiles in a TOML text, a table each. Raises ValueError."""
    return tuple(made(name, ProfileSettings.model_validate(table)) for name, table in tomllib.loads(text).items())


def made(name: str, settings: ProfileSettings) -> Profile:
    """The profile that settings describe; the order in which they have its MIME types says nothing."""
    can = settings.elicitation
    return Profile(name, _FORM in can, _URL in can, tuple(sorted(settings.apps)))


def _spelled(abilities: Abilities) -> str:
    """In words what a host can do; no two that differ have the same."""
    form, url, types = abilities
    apps = "apps" if types == _STANDARD_APPS else f"apps({','.join(types)})"
    return "+".join([CORE.name, *(word for word, can in ((_FORM, form), (_URL, url), (apps, types)) if can)])


def _modes(elicitation: object) -> tuple[bool, bool]:
    """Whether forms and URLs can be asked by: `{}` means forms (2025-11-25 client/elicitation, Capabilities)."""
    if not isinstance(elicitation, dict):
        return False, False
    return _FORM in elicitation or _URL not in elicitation, _URL in elicitation


def _elicitation(declared: object, allowed: Profile) -> Json | None:
    """The part of the capability that is allowed; as it was declared where that is all of it. Modes that are not known
    here are no less than the known ones together."""
    if not isinstance(declared, dict):
        return None
    if allowed.elicitation_form and allowed.elicitation_url:
        return declared
    form, url = _modes(declared)
    kept = {_FORM: form and allowed.elicitation_form, _URL: url and allowed.elicitation_url}
    told = {mode: declared.get(mode, {}) for mode, has in kept.items() if has}
    return declared if told and declared in (told, {}) else told or None


def _types(declared: Json) -> frozenset[str]:
    """The MIME types that a client shows as Apps, in one spelling. Settings without `mimeTypes`, which the extension
    requires, say that it shows Apps and not which: those that the specification knows."""
    extensions = declared.get("extensions")
    settings = extensions.get(APPS_EXTENSION) if isinstance(extensions, dict) else None
    if not isinstance(settings, dict):
        return frozenset()
    listed = settings.get("mimeTypes", list(_STANDARD_APPS))
    if not isinstance(listed, list):
        return frozenset()
    return frozenset(filter(None, (_type(one) for one in listed if isinstance(one, str) and len(one) <= _MAX_TYPE)))


@lru_cache(maxsize=256)  # every request of a host has the same
def _type(text: str) -> str:
    try:
        return wellformed.media_type(text)
    except ValueError:
        return ""


def _told(declared: Json, elicitation: Json | None, apps: tuple[str, ...]) -> Json:
    """The capabilities as declared, but for elicitation, and Apps in their canonical settings."""
    told = declared
    if declared.get("elicitation") is not elicitation:
        told = _with(told, "elicitation", elicitation)
    extensions = declared.get("extensions")
    if isinstance(extensions, dict) and APPS_EXTENSION in extensions:
        settings = {"mimeTypes": list(apps)} if apps else None
        if extensions[APPS_EXTENSION] != settings:
            told = _with(told, "extensions", _with(extensions, APPS_EXTENSION, settings) or None)
    return told


def _with(value: Json, key: str, member: Json | None) -> Json:
    """`value` with another member in its place, or without it."""
    return {k: v if k != key else member for k, v in value.items() if k != key or member is not None}


def _ride_along(capabilities: Json) -> tuple[list[str], Json]:
    """The words for what the profile does not say, and what has none."""
    rest, flags = dict(capabilities), []
    modes, extensions = rest.get("elicitation"), rest.get("extensions")
    if isinstance(modes, dict) and all(mode in (_FORM, _URL) and said == {} for mode, said in modes.items()):
        del rest["elicitation"]
    if isinstance(extensions, dict):
        others = {name: settings for name, settings in extensions.items() if name != APPS_EXTENSION}
        if others.get(TASKS_EXTENSION) == {}:
            flags.append("tasks")
            del others[TASKS_EXTENSION]
        rest = {**rest, "extensions": others} if others else {k: v for k, v in rest.items() if k != "extensions"}
    for name, (members, on) in _FLAGS.items():
        value = rest.get(name)
        if isinstance(value, dict) and set(value) <= set(members) and all(_same(said, on) for said in value.values()):
            flags += [name, *(f"{name}.{member}" for member in members if member in value)]
            del rest[name]
    return sorted(flags), rest


def _same(said: Any, on: Any) -> bool:
    return isinstance(said, type(on)) and bool(said == on)  # the first: 1 is no True
