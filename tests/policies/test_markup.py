"""Whatever is put into an element is text, unless it is an element."""

import pytest

from policies.markup import Markup, element, joined

EVIL = "<script>alert('1')</script>&\""
HARMLESS = "&lt;script&gt;alert(&#x27;1&#x27;)&lt;/script&gt;&amp;&quot;"


@pytest.mark.parametrize(
    ("made", "written"),
    [
        (element("p", "a", 1, None, " b"), "<p>a1 b</p>"),
        (element("p", EVIL), f"<p>{HARMLESS}</p>"),
        (element("p", title=EVIL), f'<p title="{HARMLESS}"></p>'),
        (element("p", element("b", EVIL)), f"<p><b>{HARMLESS}</b></p>"),
        (element("td", data_label="x", class_="y"), '<td data-label="x" class="y"></td>'),
        (element("button", hidden=True, disabled=False, id=None), "<button hidden></button>"),
        (element("meta", charset="utf-8"), '<meta charset="utf-8">'),
        (joined("<", Markup("<br>")), "&lt;<br>"),
    ],
)
def test_text_and_attributes_are_escaped(made: Markup, written: str) -> None:
    assert made == written


def test_text_that_was_joined_to_markup_is_text_again() -> None:
    """What Python's own operations make of markup is a plain string, which is escaped."""
    assert element("p", element("b", "x") + EVIL) == f"<p>&lt;b&gt;x&lt;/b&gt;{HARMLESS}</p>"
