"""Reads the built-in profiles, which the package carries (`policies/profiles.toml`); what they mean is decided in
`policies/profiles.py`."""

from importlib import resources

from policies.profiles import Profile, parse


def built_in() -> tuple[Profile, ...]:
    """From the narrowest to the widest."""
    return parse(resources.files("policies").joinpath("profiles.toml").read_text(encoding="utf-8"))
