"""What a host can show, among the settings: profiles of the operator's own, and what names one.

A part of `policies/settings.py`, whose rules hold here: the docstring under a field is its manual. The built-in
profiles have the same members (`policies/profiles.toml`); what a profile does to a request is decided in
`policies/profiles.py`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Final, Literal, get_args

from pydantic import AfterValidator, StringConstraints, field_validator

from policies import wellformed
from policies.settings_base import Model, Problem, hint, refuse

BuiltIn = Literal["core-v1", "interactive-v1", "desktop-apps-2026-01-26-v1"]
BUILT_IN: Final[tuple[BuiltIn, ...]] = get_args(BuiltIn)
"""From the narrowest to the widest."""

MAX_TYPES: Final = 16
"""MIME types of one profile: the specification has one, and they go with every request."""

ProfileName = Annotated[str, StringConstraints(pattern=wellformed.NAME)]


class ProfileSettings(Model):
    """What hosts of one kind can show. What is not listed is neither asked of them nor shown to them."""

    elicitation: tuple[Literal["form", "url"], ...] = ()
    """How a user can be asked: `form`, by a form that the server describes; `url`, by being sent to a page."""
    apps: tuple[Annotated[str, AfterValidator(wellformed.media_type)], ...] = ()
    """The MIME types that are shown as MCP Apps, for example `text/html;profile=mcp-app`; at most 16. None: servers are
    not told of Apps."""

    @field_validator("elicitation", "apps", mode="after")
    @classmethod
    def _once_each(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        if len(values) > MAX_TYPES:
            raise ValueError(f"holds {len(values)} MIME types; keep the {MAX_TYPES} that matter")
        twice = [index for index, value in enumerate(values) if value in values[:index]]
        refuse([((index,), "is there already; keep one") for index in twice])
        return values


def judge_profiles(
    profiles: Mapping[str, ProfileSettings], ceilings: Iterable[tuple[tuple[str | int, ...], str | None]]
) -> Iterator[Problem]:
    """What is wrong with profiles' names: a built-in one defined anew, and one that is named (`ceilings`: by which
    setting) and not there."""
    known = [*BUILT_IN, *profiles]
    for name in profiles:
        if name in BUILT_IN:
            why = "is built in, and means the same wherever it is named; give yours another name"
            yield ("profiles", name), why
    for place, wanted in ceilings:
        if wanted is not None and wanted not in known:
            yield place, f'unknown profile "{wanted}"; {hint(wanted, known)}'


def judge_advertising(
    profiles: Mapping[str, ProfileSettings], routes: Iterable[tuple[str | None, str | None]]
) -> Iterator[Problem]:
    """Routes, as `profile` and `apps`, that would tell hosts of what those are not shown."""
    for index, (profile, apps) in enumerate(routes):
        own = profiles.get(profile) if profile is not None else None
        shows_none = profile in BUILT_IN[:-1] or (own is not None and not own.apps)
        if apps is not None and shows_none:
            yield ("routes", index, "apps"), f"does nothing under profile {profile}, which shows no Apps; remove it"
