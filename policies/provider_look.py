"""One look at a request to a provider: how much of it is looked at, what is known before, and what is found.

Names of tools are told apart here as a body and a ledger know them. What is looked for, and where, is told in
`policies/provider_results.py` and `policies/provider_tools.py`.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from policies import provider_marks as marks
from policies.apps import PLACEHOLDER
from policies.provider_heads import Heads

Kind = Literal[
    "app_result",  # the result of a tool for interfaces alone
    "body",  # text that is a known interface's
    "data",  # a block with a long string of data
    "depth",  # what is nested too deeply to be looked at
    "html",  # a page, in the result of a tool with an interface
    "media",  # audio and video
    "meta",  # `_meta`
    "presentation",  # `mcp_app`
    "repeated",  # a member that stands twice in one object
    "resource",  # an embedded or linked interface
    "structured",  # `structuredContent`, where a setting drops it
    "tool",  # the definition of a tool for interfaces alone
    "tool_choice",  # its name in a choice or a list of what is allowed
]


class Unreadable(ValueError):
    """A body that cannot be looked at, and is not to be sent: what is wrong with which field, and the fix."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much of a body is looked at."""

    max_depth: int = 128
    """Levels of arrays and objects in one result, also those in strings; what lies deeper gives way to a sentence."""
    max_strings: int = 65_536
    """Different texts, definitions and names that a ledger is asked for; a body with more of one is not passed on."""


@dataclass(frozen=True, slots=True)
class Known:
    """What the ledger knows of what was asked for."""

    ui_bodies: frozenset[str] = frozenset()
    """Digests of interfaces' texts."""
    app_only: frozenset[str] = frozenset()
    """Digests of definitions of tools for interfaces alone, and names of such tools."""
    ui_tools: frozenset[str] = frozenset()
    """Names of tools with an interface."""
    only_in: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By digest of a text, the tools in whose results alone it counts; in any result where it is not named."""
    heads: Heads = field(default_factory=dict)
    """Interfaces' texts by their first lines, for where one stands among others; each is in `ui_bodies` too."""


NOTHING: Final = Known()


@dataclass(slots=True)
class Look:
    """One look at one body: what is known before, and what was found."""

    known: Known
    bounds: Bounds
    keeps_structured: bool
    has_ledger: bool
    has_local: bool = True
    """Whether a message could have members that only hosts know."""
    removed: Counter[Kind] = field(default_factory=Counter)
    digests: dict[str, str] = field(default_factory=dict)
    """By text, for the time of a request."""
    wanted: set[str] = field(default_factory=set)
    """Digests that a ledger may know."""
    tools: set[str] = field(default_factory=set)
    """Names of called, chosen or allowed tools, and what they may be at their servers."""
    gone: set[str] = field(default_factory=set)
    """Names of tools whose definitions were left out."""
    defined: set[str] = field(default_factory=set)
    """Names of tools whose definitions stay: a name that another server's tool has, too, is theirs."""
    with_ui: set[str] = field(default_factory=set)
    """Names of tools whose definitions link an interface."""
    ui_by_name: dict[str, bool] = field(default_factory=dict)
    """What `has_ui` has said."""

    # names

    def name(self, called: Any) -> str:
        """The name of a called tool, remembered; empty where it is not known."""
        if not isinstance(called, str):
            return ""
        if called not in self.tools:
            self.tools.update(marks.aliases(called))
            self._check_bound(len(self.tools), "names of tools")
        return called

    def is_gone(self, name: Any) -> bool:
        """Whether a name is that of a tool for interfaces alone."""
        if not isinstance(name, str) or not name:
            return False
        if name in self.gone:
            return True
        if not self.known.app_only or name in self.defined:
            return False
        return any(one in self.known.app_only for one in marks.aliases(name))

    def alone(self) -> None:
        """The same look at a request of its own, in which the same names may be of other tools."""
        self.gone, self.defined, self.with_ui = set(), set(), set()
        self.ui_by_name.clear()

    def has_ui(self, tool: str) -> bool:
        """Whether a tool is known to have an interface."""
        known = self.ui_by_name.get(tool)
        if known is None:
            ui_tools = self.known.ui_tools
            known = tool in self.with_ui or (bool(ui_tools) and not ui_tools.isdisjoint(marks.aliases(tool)))
            self.ui_by_name[tool] = known
        return known

    def definition(self, name: str, description: str | None, schema: Any) -> bool:
        """Whether a definition is known to be of a tool for interfaces alone; remembered as one to ask for."""
        digests = marks.tool_digests(marks.loose_aliases(name), description, schema)
        self.wanted.update(digests)
        self._check_bound(len(self.wanted), "definitions of tools")
        return not self.known.app_only.isdisjoint(digests)

    def _check_bound(self, number: int, what: str) -> None:
        if number > self.bounds.max_strings:
            why = f"has more than {self.bounds.max_strings} different {what}"
            raise Unreadable(f"body: {why}; send a shorter conversation, or fewer tools")

    # texts

    def digest(self, text: str, source: bytes | None = None) -> str:
        """The digest of a text, or of what it stands for, remembered as one to ask for."""
        key = text if source is None else "\0" + text
        digest = self.digests.get(key)
        if digest is None:
            self._check_bound(len(self.digests) + 1, "long texts in results of tools")
            digest = self.digests[key] = marks.digest_body(text if source is None else source)
        self.wanted.add(digest)
        return digest

    def is_body(self, digest: str, tool: str) -> bool:
        """Whether a text is an interface's that counts in the result of this tool."""
        if digest not in self.known.ui_bodies:
            return False
        tools = self.known.only_in.get(digest)
        return tools is None or not tool or any(one in tools for one in marks.aliases(tool))

    def instead(self, kind: Kind, text: str = PLACEHOLDER) -> str:
        """What stands in place of something, which is counted."""
        self.removed[kind] += 1
        return text

    def is_long(self, text: str) -> bool:
        if not self.has_ledger or len(text) * 4 < marks.MIN_BODY_BYTES:
            return False
        return len(text) >= marks.MIN_BODY_BYTES or len(marks.utf8(text)) >= marks.MIN_BODY_BYTES
