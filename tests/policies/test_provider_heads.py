"""Small interfaces and parts of pages that adapters have written among other text: told by the line that they begin
with, and left out alone."""

import json

import pytest

from policies import provider
from policies.provider import Known, digest_body
from policies.provider_heads import MAX_STARTS, gathered, head_of
from policies.sightings import Book, marks_of
from tests.policies.conversations import APIS, PLACEHOLDER, stripped

PART = '<h1>Größe ☃</h1>\n<script>"1" \\ 2</script>\n\n<p>3</p>'
LINE = "<b>one line</b><br>"
LONGER = f"{LINE}\n<p>and more</p>"
"""Begins with the same line."""


def knows(*texts: str, only_in: frozenset[str] | None = None) -> Known:
    digests = frozenset(map(digest_body, texts))
    heads = gathered(head for text in texts if (head := head_of(text)) is not None)
    return Known(digests, only_in={} if only_in is None else dict.fromkeys(digests, only_in), heads=heads)


KNOWN = knows(PART, LINE, LONGER)
AMONG = {
    # a text of a result, and what is left of it
    "alone": (PART, PLACEHOLDER),
    "between blanks": (f" \n\t{PART}\r\n ", f" \n\t{PLACEHOLDER}\r\n "),
    "after what is said": (f"Sunny.\n{PART}", f"Sunny.\n{PLACEHOLDER}"),
    "before what is said": (f"{PART}\nSunny.", f"{PLACEHOLDER}\nSunny."),
    "between what is said": (f"Sunny.\n{PART}\n\nThat's it.", f"Sunny.\n{PLACEHOLDER}\n\nThat's it."),
    "several": (f"{PART}\n{LINE}\nSunny.\n{PART}", f"{PLACEHOLDER}\n{PLACEHOLDER}\nSunny.\n{PLACEHOLDER}"),
    "the longest of those that begin alike": (f"Sunny.\n{LONGER}", f"Sunny.\n{PLACEHOLDER}"),
    "the one that is there of those that begin alike": (f"{LINE}\n<p>not more</p>", f"{PLACEHOLDER}\n<p>not more</p>"),
    "after other markup": (f"<i>Sunny.</i>\n{PART}", f"<i>Sunny.</i>\n{PLACEHOLDER}"),
    "within a page without an end": (f"<!doctype html>\n{PART}", f"<!doctype html>\n{PLACEHOLDER}"),
}
OTHERWISE = {
    "within a line": f"Sunny: {PART}",
    "without its end": PART[:-1],
    "with something at its end": f"{PART}!",
    "with another first line": PART.replace("h1", "h2"),
    "with another line": PART.replace("3", "4"),
    "said of it": f"`{LINE}` is what it begins with",
}


@pytest.mark.parametrize("name", AMONG)
@pytest.mark.parametrize("api", APIS)
def test_a_known_interface_among_other_text_gives_way_to_a_sentence(api: str, name: str) -> None:
    before, after = AMONG[name]
    one = APIS[api]
    body = one.body([], [("f", one.text(before))])
    sent, removed, _ = stripped(one, body, KNOWN)
    assert sent == one.body([], [("f", one.text(after))])
    assert removed.keys() == {"body"}
    assert stripped(one, body)[2], "what nobody knows is the user's"
    assert stripped(one, body, KNOWN, has_ledger=False)[2], "without a ledger there are no digests"


@pytest.mark.parametrize("name", OTHERWISE)
@pytest.mark.parametrize("api", APIS)
def test_what_is_not_the_very_same_is_the_users(api: str, name: str) -> None:
    one = APIS[api]
    assert stripped(one, one.body([], [("f", one.text(OTHERWISE[name]))]), KNOWN)[2]


def test_it_counts_in_results_of_its_own_server_alone() -> None:
    one = APIS["chat"]
    body = one.body([], [("weather.show", f"t\n{PART}"), ("read_file", f"t\n{PART}")])
    sent, _, _ = stripped(one, body, knows(PART, only_in=frozenset({"show"})))
    assert sent == one.body([], [("weather.show", f"t\n{PLACEHOLDER}"), ("read_file", f"t\n{PART}")])


@pytest.mark.parametrize("text", ["<b>too short</b", "no markup, however long it is", "", "  ", '{"a": "<h1>1</h1>"}'])
def test_what_is_no_markup_or_next_to_none_is_not_looked_for(text: str) -> None:
    assert head_of(text) is None


def test_lines_of_a_string_are_looked_up_within_a_bound() -> None:
    one = APIS["chat"]
    text = "\n".join(f"<{number}>" for number in range(MAX_STARTS + 9))
    inspected = provider.candidates(one.dialect, json.dumps(one.body([], [("f", text)])).encode(), one.path)
    assert len(inspected.digests - {digest_body(text)}) == MAX_STARTS


def test_what_a_host_was_given_is_found_by_its_first_line() -> None:
    resource = {"uri": "ui://a", "mimeType": "text/html;profile=mcp-app", "text": f"\n{PART}\n"}
    marks = marks_of("resources/read", {"uri": "ui://a"}, {"contents": [resource]})
    book = Book(max_marks=9, ttl_s=9.0)
    for mark in marks:
        book.add(mark, 1.0)
    one = APIS["chat"]
    inspected = provider.candidates(one.dialect, json.dumps(one.body([], [("f", f"t\n{PART}")])).encode(), one.path)
    assert book.beginning(inspected.digests, 9.0) == [head_of(PART)]
    assert book.beginning(inspected.digests, 11.0) == []
    assert book.beginning(frozenset({digest_body("<h1>")}), 9.0) == []


def test_of_many_known_texts_with_one_first_line_the_longest_that_stands_there_is_found() -> None:
    line = "<!doctype html>\n"
    grown = [line + "\u00e9 \U0001f600\n" * count + "</html>" for count in range(200)]
    longer = grown[150] + "\n" + grown[10]
    known = knows(*grown, longer)
    raw = json.dumps({"messages": [{"role": "tool", "content": f"KEEP\n{longer}\nKEEP"}]}).encode()
    sent = provider.strip(provider.candidates("openai", raw, "/v1/x"), known)
    assert json.loads(sent.body)["messages"][0]["content"] == f"KEEP\n{PLACEHOLDER}\nKEEP"
