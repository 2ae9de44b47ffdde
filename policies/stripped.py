"""How much was taken out of a message for a host that shows no Apps, by what it was: counted, and never said.

Specification: MCP Apps 2026-01-26. What is taken out is decided in `policies/apps.py`, which knows nothing of counting:
both forms are compared here, and only where something was.
"""

from collections import Counter
from typing import Any, Final

from policies.catalogue import OTHER

META: Final = "_meta"

MAX_DEPTH: Final = 32
"""What lies deeper is not counted: real results nest to a dozen."""

ITEMS: Final = frozenset(
    {"tools", "resources", "resourceTemplates", "contents", "content", "messages", "prompts", "values", "extensions"}
    | {"resourceSubscriptions", META, "message"}
)
"""What an item may be called: by the list that it stood in, `_meta` for a member of one, `message` for all of one."""


Items = tuple[tuple[str, int], ...]
"""How many of each kind."""


def taken_out(before: Any, after: Any) -> Items:
    """Items by what they were. `after` is `before` less what was taken out; None where nothing is left of it."""
    if before is after:
        return ()
    found: Counter[str] = Counter()
    if after is None:
        found["message"] = 1
    else:
        _compare(before, after, (OTHER,), found)
    return tuple((item, count) for item, count in found.items() if count)


def _compare(before: Any, after: Any, path: tuple[str, ...], found: Counter[str]) -> None:
    """`path`: the names of what both stand in. What is left out at one place is not looked into."""
    if before is after or len(path) > MAX_DEPTH:
        return
    place = path[-1]
    if isinstance(before, dict) and isinstance(after, dict):
        for name, value in before.items():
            if name in after:
                _compare(value, after[name], (*path, name), found)
            elif name == META:
                found[META] += len(value) if isinstance(value, dict) else 1
            else:
                found[place if place in ITEMS else OTHER] += 1
    elif isinstance(before, list) and isinstance(after, list):
        found[place if place in ITEMS else OTHER] += _elements(before, after, path, found)


def _elements(before: list[Any], after: list[Any], path: tuple[str, ...], found: Counter[str]) -> int:
    """How many elements are gone; those that are left are compared, in their order."""
    left = iter(before)
    gone = 0
    for kept in after:
        for one in left:
            if one is kept or _is_from(one, kept):
                _compare(one, kept, path, found)
                break
            gone += 1
    return gone + sum(1 for _ in left)


def _is_from(before: Any, after: Any) -> bool:
    """Whether an element may be what another was before something in it was taken out."""
    if not (isinstance(before, dict) and isinstance(after, dict)):
        return bool(before == after)
    return all(
        name in before and (isinstance(value, dict | list) or before[name] == value) for name, value in after.items()
    )
