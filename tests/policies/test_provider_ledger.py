"""Interfaces that adapters have flattened into text: known by a digest, or as a page of a tool with an interface."""

import base64
import json
from typing import Any

import pytest

from policies import provider
from policies.mcp import Json
from policies.provider import Known, Unreadable, body_digests, digest_body
from tests.policies.conversations import APIS, PLACEHOLDER, mcp_text, stripped

PAGE = "<!DOCTYPE html>\n<html><body>" + '<p>It\'s "quoted" & <b>bold</b> \u00e9\u4e2d</p>\n' * 40 + "</body></html>"
FRAMED = "<!-- made by hand -->\n" + PAGE + "\n<script>1</script>\n"
SCRIPT = "export default function view() { return 1 }\n" * 40
BASE64 = base64.b64encode(PAGE.encode()).decode()

KNOWN = Known(ui_bodies=body_digests(PAGE) | body_digests(SCRIPT) | body_digests(FRAMED))

FLAT: dict[str, tuple[str, str]] = {
    # a text of a result, and what is left of it
    "a page": (PAGE, PLACEHOLDER),
    "a page between blanks": (f"\n {PAGE}\n", PLACEHOLDER),
    "a page after what is said": (f"Sunny.\n{PAGE}", f"Sunny.\n{PLACEHOLDER}"),
    "a page within what is said": (f"Sunny: {PAGE} That's it.", f"Sunny: {PLACEHOLDER} That's it."),
    "a page twice": (f"{PAGE}\n{PAGE}", f"{PLACEHOLDER}\n{PLACEHOLDER}"),
    "a page with something around it": (FRAMED, PLACEHOLDER),
    "what is no page": (SCRIPT, PLACEHOLDER),
    "in JSON": (json.dumps({"t": 21.50, "view": PAGE}), json.dumps({"t": 21.50, "view": PLACEHOLDER})),
    "in JSON in JSON": (
        json.dumps({"r": json.dumps([{"view": PAGE}, 2**53 + 1])}),
        json.dumps({"r": json.dumps([{"view": PLACEHOLDER}, 2**53 + 1])}),
    ),
    "as base64 in JSON": (json.dumps({"blob": BASE64}), json.dumps({"blob": PLACEHOLDER})),
    "as base64 of an address": (
        json.dumps({"data": f"data:text/html;base64,{BASE64}"}),
        json.dumps({"data": PLACEHOLDER}),
    ),
}


@pytest.mark.parametrize("name", FLAT)
@pytest.mark.parametrize("api", APIS)
def test_a_known_interface_in_a_text_gives_way_to_a_sentence(api: str, name: str) -> None:
    before, after = FLAT[name]
    one = APIS[api]
    body = one.body([], [("f", one.text(before))])
    sent, removed, _ = stripped(one, body, KNOWN)
    assert sent == one.body([], [("f", one.text(after))])
    assert removed.keys() == {"body"}
    assert stripped(one, body)[2], "what nobody knows is the user's"
    assert stripped(one, body, KNOWN, has_ledger=False)[2], "without a ledger there are no digests"


@pytest.mark.parametrize("name", FLAT)
def test_what_is_asked_for_is_what_the_ledger_was_fed(name: str) -> None:
    one = APIS["chat"]
    raw = json.dumps(one.body([], [("mcp__weather__f", FLAT[name][0])])).encode()
    inspected = provider.candidates(one.dialect, raw, one.path)
    assert inspected.digests & KNOWN.ui_bodies
    assert inspected.tools == {"mcp__weather__f", "weather__f", "f"}


ELSEWHERE: dict[str, Json] = {
    "the user's text": {"messages": [{"role": "user", "content": PAGE}]},
    "the system's text": {"messages": [{"role": "system", "content": PAGE}]},
    "the model's text": {"messages": [{"role": "assistant", "content": [mcp_text(PAGE)]}]},
    "the model's arguments": {
        "messages": [
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {"a": PAGE}}]}
        ]
    },
    "a document that the user has sent": {
        "messages": [{"role": "user", "content": [{"type": "document", "source": {"type": "text", "data": PAGE}}]}]
    },
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_known_interface_is_looked_for_in_results_alone(name: str) -> None:
    assert stripped(APIS["anthropic"], ELSEWHERE[name], KNOWN)[2]


def test_a_known_interface_is_looked_for_in_results_of_its_own_server_alone() -> None:
    one = APIS["anthropic"]
    known = Known(ui_bodies=KNOWN.ui_bodies, only_in=dict.fromkeys(KNOWN.ui_bodies, frozenset({"show"})))
    body = one.body([], [("mcp__weather__show", PAGE), ("read_file", PAGE)])
    sent, removed, _ = stripped(one, body, known)
    assert sent == one.body([], [("mcp__weather__show", PLACEHOLDER), ("read_file", PAGE)])
    assert removed == {"body": 1}


def test_a_result_whose_call_is_not_in_the_body_may_be_any_tools() -> None:
    body = {"input": [{"type": "function_call_output", "call_id": "c", "output": PAGE}], "previous_response_id": "r"}
    known = Known(ui_bodies=KNOWN.ui_bodies, only_in=dict.fromkeys(KNOWN.ui_bodies, frozenset({"show"})))
    assert stripped(APIS["responses"], body, known)[0]["input"][0]["output"] == PLACEHOLDER


def test_a_document_that_is_a_known_interface_is_left_out() -> None:
    one = APIS["anthropic"]
    text = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": PAGE}}
    encoded = {"type": "document", "source": {"type": "base64", "media_type": "text/html", "data": BASE64}}
    sent, removed, _ = stripped(one, one.body([], [("f", [mcp_text("t"), text, encoded])]), KNOWN)
    assert (sent, removed) == (one.body([], [("f", [mcp_text("t")])]), {"body": 2})
    bedrock = APIS["bedrock"]
    document = {"document": {"format": "html", "name": "a", "source": {"bytes": BASE64}}}
    sent, removed, _ = stripped(bedrock, bedrock.body([], [("f", [document, {"text": "t"}])]), KNOWN)
    assert (sent, removed) == (bedrock.body([], [("f", [{"text": "t"}])]), {"body": 1})


def test_a_text_among_others_that_is_a_known_interface_is_left_out() -> None:
    for one in (APIS["anthropic"], APIS["chat"], APIS["responses"], APIS["bedrock"]):
        body = one.body([], [("f", [one.form("t"), one.form(PAGE)])])
        assert stripped(one, body, KNOWN)[0] == one.body([], [("f", [one.form("t")])])


@pytest.mark.parametrize(("length", "is_known"), [(1023, False), (1024, True)])
def test_shorter_texts_are_not_known_by_their_digest(length: int, is_known: bool) -> None:
    one = APIS["chat"]
    text = "x" * length
    assert (len(body_digests(text)) == 1) == is_known
    inspected = provider.candidates(one.dialect, json.dumps(one.body([], [("f", text)])).encode(), one.path)
    assert (digest_body(text) in inspected.digests) == is_known


def test_a_length_is_one_of_bytes() -> None:
    one = APIS["chat"]
    text = "\u4e2d" * 342
    inspected = provider.candidates(one.dialect, json.dumps(one.body([], [("f", text)])).encode(), one.path)
    assert body_digests(text) == body_digests(text.encode()) == inspected.digests


def test_more_long_texts_than_the_bound_are_an_error() -> None:
    one = APIS["chat"]
    body = json.dumps(one.body([], [("f", str(number) * 1024) for number in range(4)])).encode()
    assert len(provider.candidates(one.dialect, body, one.path, bounds=provider.Bounds(max_strings=4)).digests) == 4
    with pytest.raises(Unreadable, match=r"^body: has more than 3 different long texts .*; send a shorter"):
        provider.candidates(one.dialect, body, one.path, bounds=provider.Bounds(max_strings=3))


def test_the_same_text_is_asked_for_once() -> None:
    one = APIS["chat"]
    body = json.dumps(one.body([], [("f", "x" * 2000)] * 9)).encode()
    assert len(provider.candidates(one.dialect, body, one.path, bounds=provider.Bounds(max_strings=1)).digests) == 1


# pages of tools that have an interface

SHORT = "<!doctype html><html><body>APP</body></html>"
PAGES: dict[str, tuple[Any, Any]] = {
    "a page": (SHORT, PLACEHOLDER),
    "a page that ends too early": ("<html><body>APP", PLACEHOLDER),
    "a page after what is said": (f"Sunny.\n{SHORT}\nThat's it.", f"Sunny.\n{PLACEHOLDER}\nThat's it."),
    "in JSON": (json.dumps({"t": 1, "view": SHORT}), json.dumps({"t": 1, "view": PLACEHOLDER})),
    "as base64": (base64.b64encode(SHORT.encode()).decode(), PLACEHOLDER),
    "HTML that is no page": ("<p>Sunny</p>", None),
    "text about pages": ("Write <!doctype> first.", None),
}


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("api", APIS)
def test_a_page_of_a_tool_with_an_interface_gives_way_to_a_sentence(api: str, name: str) -> None:
    before, after = PAGES[name]
    one = APIS[api]
    known = Known(ui_tools=frozenset({"show"}))
    for called in ("show", "mcp__weather__show"):
        body = one.body([], [(called, one.text(before)), ("fetch", one.text(before))])
        sent, removed, _ = stripped(one, body, known)
        kept = before if after is None else after
        assert sent == one.body([], [(called, one.text(kept)), ("fetch", one.text(before))])
        assert removed == ({} if after is None else {"html": 1})


def test_a_tool_whose_definition_links_an_interface_has_one() -> None:
    one = APIS["anthropic"]
    tools = [{**one.tool("show"), "_meta": {"ui": {"resourceUri": "ui://x"}}}, one.tool("fetch")]
    sent, removed, _ = stripped(one, one.body(tools, [("show", SHORT), ("fetch", SHORT)]))
    assert sent == one.body([one.tool("show"), one.tool("fetch")], [("show", PLACEHOLDER), ("fetch", SHORT)])
    assert removed == {"html": 1, "meta": 1}
