"""A request to an LLM provider, less what its host was only to show: the two steps, and what is between them.

`candidates` reads a body once and says what a ledger of known interfaces is to be asked for; `strip` takes out what is
not for a model. What that is, and where it stands, is told in `policies/provider_results.py` and its neighbours. The
same part of a conversation becomes the same bytes in every request, wherever it stands, as long as as much is known:
providers' caches of prompts depend on it. What a provider answers is never looked at.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from policies import jsonrpc
from policies import provider_marks as marks
from policies.provider_look import NOTHING, Bounds, Kind, Known, Unreadable
from policies.provider_marks import body_digests, digest_body, digest_tool
from policies.provider_results import Results
from policies.provider_shapes import strip_body
from policies.provider_tools import ProviderDialect
from policies.splice import splice

__all__ = [
    "DIALECTS",
    "KINDS",
    "Bounds",
    "Inspected",
    "Kind",
    "Known",
    "ProviderDialect",
    "Stripped",
    "Unreadable",
    "body_digests",
    "candidates",
    "digest_body",
    "digest_tool",
    "strip",
]

KINDS: Final[tuple[Kind, ...]] = Kind.__args__  # type: ignore[attr-defined]
"""Every kind of what is taken out, for the labels of metrics."""

DIALECTS: Final[tuple[ProviderDialect, ...]] = ProviderDialect.__args__  # type: ignore[attr-defined]

_TOO_DEEP: Final = "body: is nested too deeply to be written; send JSON of less than 250 levels"
_NOT_JSON: Final = "body: is no JSON object in UTF-8 that can be looked at; send one"


@dataclass(frozen=True, slots=True)
class Inspected:
    """A body that was read, and what of it a ledger may know."""

    body: bytes
    dialect: ProviderDialect
    path: str
    digests: frozenset[str]
    """Of texts of 1 KiB and more in results of tools, and of definitions of tools."""
    tools: frozenset[str]
    """Names of tools whose results are in the body, or that it chooses or allows, each also without what a host may
    have put before it."""
    value: Any = None
    """The body as JSON; None where nothing had to be read."""
    look: Results | None = None
    """What the structure alone has told."""
    after: Any = None


@dataclass(frozen=True, slots=True)
class Stripped:
    """What is sent, and how much of each kind is not."""

    body: bytes
    removed: Mapping[Kind, int]


def candidates(
    dialect: ProviderDialect,
    body: bytes,
    path: str,
    *,
    bounds: Bounds | None = None,
    has_ledger: bool = True,
    keeps_structured: bool = True,
) -> Inspected:
    """Reads a request body that goes to this path of a provider's API. Without a ledger (`has_ledger` is False) no
    digest is made, and a body without anything to look at is not even parsed. `keeps_structured` is False where a
    result's `structuredContent` is to go wherever its content stands, too.

    Takes time in proportion to the size. Raises Unreadable for a body that cannot be looked at."""
    if not body.strip():
        return Inspected(body, dialect, path, frozenset(), frozenset())
    if b"\0" in body:
        raise Unreadable(_NOT_JSON)
    has_local = marks.has_local_members(body) or marks.has_escapes(body)
    if not (has_local or _has_candidates(body, has_ledger=has_ledger, keeps_structured=keeps_structured)):
        return Inspected(body, dialect, path, frozenset(), frozenset())
    try:
        value = jsonrpc.loads(body)
    except ValueError as error:
        raise Unreadable(_NOT_JSON) from error
    if not isinstance(value, dict):
        raise Unreadable(_NOT_JSON)
    look = Results(NOTHING, bounds or Bounds(), keeps_structured, has_ledger, has_local)
    after = _looked_at(look, dialect, path, value)
    return Inspected(body, dialect, path, frozenset(look.wanted), frozenset(look.tools), value, look, after)


def _has_candidates(body: bytes, *, has_ledger: bool, keeps_structured: bool) -> bool:
    if marks.has_results(body):
        return has_ledger or marks.has_marks(body) or not (keeps_structured or not marks.has_structured(body))
    return has_ledger and marks.has_tools(body)


def _looked_at(look: Results, dialect: ProviderDialect, path: str, value: Any) -> Any:
    try:
        return strip_body(look, dialect, path, value)
    except RecursionError as error:
        raise Unreadable(_TOO_DEEP) from error


def strip(inspected: Inspected, known: Known = NOTHING) -> Stripped:
    """The body as it is sent: the very same bytes where nothing is taken out, and else the same but for what is.

    Raises Unreadable where it could not be written."""
    look, value, after = inspected.look, inspected.value, inspected.after
    if look is None:
        return Stripped(inspected.body, {})
    names, digests = known.app_only | known.ui_tools, known.ui_bodies | known.app_only | known.heads.keys()
    if not (inspected.digests.isdisjoint(digests) and inspected.tools.isdisjoint(names)):
        look = Results(
            known, look.bounds, look.keeps_structured, look.has_ledger, look.has_local, Counter(), dict(look.digests)
        )
        after = _looked_at(look, inspected.dialect, inspected.path, value)
    removed = Counter(look.removed)
    try:
        body = inspected.body
        if marks.has_marks(body) and jsonrpc.repeats(body, value):
            removed["repeated"] += 1
            body = jsonrpc.dumps(value)
        return Stripped(splice(body, value, after), {kind: removed[kind] for kind in KINDS if removed[kind]})
    except (ValueError, RecursionError) as error:
        raise Unreadable(_TOO_DEEP) from error
