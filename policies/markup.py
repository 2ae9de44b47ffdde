"""Elements of HTML and SVG as text. Every text and every attribute is escaped here, so that whoever builds a page
cannot forget it: only what an element has become passes as it is.
"""

from html import escape
from typing import Final

_VOID: Final = frozenset({"meta", "link", "br"})


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


Child = str | int | None
"""A string is text unless it is `Markup`; None is nothing."""


def element(name: str, /, *children: Child, **attributes: str | int | bool | None) -> Markup:
    """`element("td", text, data_label="Name")`. An underscore in an attribute's name is a hyphen, one at its end is
    left out (`class_`); True writes the name alone, None and False nothing."""
    written = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{escape(str(value))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in _VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{joined(*children)}</{name}>")


def joined(*children: Child) -> Markup:
    """Several, one after the other."""
    texts = (child if isinstance(child, Markup) else escape(str(child)) for child in children if child is not None)
    return Markup("".join(texts))
