"""Which names of tools and prompts an upstream has, for labels and for the log: those that its lists have named.

A client may call anything by any name, so that a name is told only where the upstream itself has listed it, and of
those no more than fit. Specification: server/tools and server/prompts (`tools/list`, `prompts/list`).
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from policies.mcp import Json

OTHER: Final = "_OTHER"
"""What is none of a closed set (OpenTelemetry's word)."""

MAX_NAMES: Final = 256
"""Of tools, and of prompts, of one upstream: servers of which hosts can make use have a few dozen."""

MAX_CHARS: Final = 128
"""Of one name (server/tools, Tool Names)."""

_LISTED_BY: Final = {"tools/list": ("tools/call", "tools"), "prompts/list": ("prompts/get", "prompts")}
"""By list: the method that its names are for, and where they stand."""


class Catalogue:
    """Grows to its bounds and forgets nothing: a label that has been used stays one."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, str]] = {method: {} for method, _ in _LISTED_BY.values()}

    def learn(self, method: str, result: Json) -> None:
        """Takes down the names in the answer to a list; nothing of any other answer."""
        listed = _LISTED_BY.get(method)
        if listed is not None:
            self.learn_names(method, _names(result.get(listed[1])))

    def learn_names(self, method: str, names: Iterable[str]) -> None:
        """The same where the names of that list's answer are at hand."""
        known = self._known[_LISTED_BY[method][0]]
        for name in names:
            if len(known) >= MAX_NAMES:
                return
            if len(name) <= MAX_CHARS and name.isprintable():
                known[name] = name

    def label(self, method: str, name: object) -> str:
        """A name as it may be told; `_OTHER` where it is none of the upstream's, empty where the method takes none."""
        known = self._known.get(method)
        if known is None:
            return ""
        return known.get(name, OTHER) if isinstance(name, str) else OTHER


def _names(listed: Any) -> Iterator[str]:
    for one in listed if isinstance(listed, list) else ():
        name = one.get("name") if isinstance(one, dict) else None
        if isinstance(name, str):
            yield name
