"""How the text of a user interface is found within a longer one: by its first line, which tells how much more it has.

Adapters write all texts of a result into one string, a line after the other, or leave a small one alone with nothing
beside it that tells what it is. What is looked for begins like markup; how its digest is made is told in
`policies/provider_marks.py`.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from policies.provider_marks import digest_body, utf8

Heads = Mapping[str, tuple[tuple[int, frozenset[str]], ...]]
"""By the digest of a first line, the texts that begin with it: how many characters they have, the shortest first, and
the digests of those that have so many."""

MIN_CHARS: Final = 16
"""Markup as short as that says nothing, and could be anybody's."""

MAX_STARTS: Final = 64
"""Lines of one string that are looked up; a page that is quoted as a whole has its first at the beginning."""

_START: Final = re.compile(r"^[^\S\n]*(?=<)", re.MULTILINE)
_DIGEST_CHARS: Final = 64


def head_of(text: str) -> str | None:
    """The mark that the text of an interface is found by: `<digest of its first line>:<characters>:<digest>`. None for
    what is no markup."""
    text = text.strip()
    if not text.startswith("<") or len(text) < MIN_CHARS:
        return None
    return f"{_line(text, 0)}:{len(text)}:{digest_body(text)}"


def line_of(head: str) -> str:
    """The digest of the first line, of a mark."""
    return head[:_DIGEST_CHARS]


def gathered(heads: Iterable[str]) -> Heads:
    """Marks by their first lines; what is none is left out."""
    found: dict[str, dict[int, set[str]]] = {}
    for head in heads:
        line, _, rest = head.partition(":")
        length, _, digest = rest.partition(":")
        if length.isdecimal():
            found.setdefault(line, {}).setdefault(int(length), set()).add(digest)
    return {
        line: tuple((length, frozenset(digests)) for length, digests in sorted(texts.items()))
        for line, texts in found.items()
    }


def starts_in(text: str) -> Iterator[tuple[int, str]]:
    """Where in a string markup begins on a line of its own, and the digest of that line."""
    if "<" not in text:
        return
    for found, _ in zip(_START.finditer(text), range(MAX_STARTS), strict=False):
        yield found.end(), _line(text, found.end())


def _line(text: str, begins: int) -> str:
    ends = text.find("\n", begins)
    return digest_body(text[begins : ends if ends >= 0 else len(text)])


def spans(text: str, begins: int, line: str, heads: Heads) -> Iterator[tuple[int, str]]:
    """Where known texts that begin here would end, the longest first, each with its digest, which is what it has. The
    text is read once, and no known one is looked at that is longer, however many begin with this line."""
    found: list[tuple[int, str]] = []
    digester, at = hashlib.sha256(), begins
    for length, digests in heads.get(line, ()):
        ends = begins + length
        if ends > len(text):
            break
        if text[ends - 1].isspace() or not (ends == len(text) or text[ends].isspace()):
            continue
        digester.update(utf8(text[at:ends]))
        at = ends
        if (digest := digester.hexdigest()) in digests:
            found.append((ends, digest))
    yield from reversed(found)
