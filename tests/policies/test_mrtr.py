"""Asks between the eras: what a legacy client of each revision is shown, and what a modern one is.

Specification: 2026-07-28 basic/patterns/mrtr and client/{elicitation,sampling,roots}; the same pages of 2025-11-25,
2025-06-18 and before.
"""

from typing import Any

import pytest

from policies.errors import Rejection
from policies.translation import mrtr
from policies.translation.mrtr import Needs

Json = dict[str, Any]

ELICIT, SAMPLE, ROOTS = "elicitation/create", "sampling/createMessage", "roots/list"
V11, V06, V03, V24 = "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"
EVERYTHING: Json = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}, "context": {}},
    "roots": {},
}


# what a server needs

NEEDS: list[tuple[str, Json, Needs | None]] = [
    ("one ask", {"inputRequests": {"a": {"method": ROOTS}}}, Needs({"a": (ROOTS, {})}, None)),
    (
        "asks of every kind in their order, and a state",
        {
            "inputRequests": {
                "z": {"method": ELICIT, "params": {"message": "x"}},
                "": {"method": SAMPLE, "params": {"messages": []}},
                "ä": {"method": ROOTS, "params": {"_meta": {}}},
            },
            "requestState": "s",
        },
        Needs(
            {"z": (ELICIT, {"message": "x"}), "": (SAMPLE, {"messages": []}), "ä": (ROOTS, {"_meta": {}})},
            "s",
        ),
    ),
    ("a state alone", {"requestState": ""}, Needs({}, "")),
    ("a state and no asks", {"inputRequests": {}, "requestState": "s"}, Needs({}, "s")),
    (
        "odd parameters are none",
        {"inputRequests": {"a": {"method": ROOTS, "params": [1]}}},
        Needs({"a": (ROOTS, {})}, None),
    ),
    (
        "an odd state is none",
        {"inputRequests": {"a": {"method": ROOTS}}, "requestState": 5},
        Needs({"a": (ROOTS, {})}, None),
    ),
    ("odd asks with a state are none", {"inputRequests": [1], "requestState": "s"}, Needs({}, "s")),
    ("nothing", {}, None),
    ("no asks and no state", {"inputRequests": {}}, None),
    ("nothing but oddities", {"inputRequests": "x", "requestState": None}, None),
    ("an entry that is no object", {"inputRequests": {"a": "roots/list"}, "requestState": "s"}, None),
    ("an entry without a method", {"inputRequests": {"a": {}}, "requestState": "s"}, None),
    ("an entry whose method is no string", {"inputRequests": {"a": {"method": [ROOTS]}}}, None),
    ("a method that asks nothing", {"inputRequests": {"a": {"method": "tools/call"}}, "requestState": "s"}, None),
    ("one good entry beside a bad one", {"inputRequests": {"a": {"method": ROOTS}, "b": {"method": "ping"}}}, None),
]


@pytest.mark.parametrize(("result", "wanted"), [row[1:] for row in NEEDS], ids=[row[0] for row in NEEDS])
def test_what_an_input_required_result_needs(result: Json, wanted: Needs | None) -> None:
    found = mrtr.needs(result)
    if wanted is None:
        assert isinstance(found, Rejection)
        assert (found.code, found.http) == (-32603, 502)
    else:
        assert found == wanted
        assert isinstance(found, Needs)
        assert list(found.asks) == list(wanted.asks)


# towards a legacy client


def form(properties: Any, **more: Any) -> Json:
    return {"message": "m", "requestedSchema": {"type": "object", "properties": properties, **more}}


TITLED = {"type": "string", "title": "T", "oneOf": [{"const": "r", "title": "Rot"}, {"const": "b"}], "default": "r"}
OLDER_TITLED = {"type": "string", "title": "T", "enum": ["r", "b"], "enumNames": ["Rot", "b"], "default": "r"}
PLAIN = {
    "n": {"type": "integer", "minimum": 0, "maximum": 9, "default": 0},
    "mail": {"type": "string", "format": "email", "minLength": 3, "x-vendor": [None, 1.5]},
    "yes": {"type": "boolean", "default": False},
    "old": {"type": "string", "enum": ["a"], "enumNames": ["A"]},
}
MANY = {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}
MANY_TITLED = {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}, "minItems": 1}
URL: Json = {"mode": "url", "message": "m", "url": "https://example.com/a?b=c"}


def said(*content: Any) -> Json:
    return {"messages": [{"role": "user", "content": one} for one in content], "maxTokens": 5, "x-vendor": None}


TEXT, IMAGE = {"type": "text", "text": "x"}, {"type": "image", "data": "aGk=", "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}
TOOL_USE = {"type": "tool_use", "id": "1", "name": "t", "input": {}}

TO_LEGACY: list[tuple[str, str, Json, str, Json]] = [
    ("2025-11-25 has everything", ELICIT, form({**PLAIN, "c": TITLED, "m": MANY}, required=["n"]), V11, {}),
    ("and addresses", ELICIT, URL, V11, {}),
    ("a form that says so still says so", ELICIT, {"mode": "form", **form(PLAIN)}, V11, {}),
    ("plain fields pass whole to 2025-06-18", ELICIT, form(PLAIN, required=["n"], **{"x-v": 1}), V06, {}),
    ("mode is new after 2025-06-18", ELICIT, {"mode": "form", **form(PLAIN)}, V06, form(PLAIN)),
    (
        "titled choices had another keyword",
        ELICIT,
        form({"a": PLAIN["n"], "c": TITLED}),
        V06,
        form({"a": PLAIN["n"], "c": OLDER_TITLED}),
    ),
    ("oneOf that is no list of choices stays", ELICIT, form({"c": {"oneOf": [{"type": "string"}]}}), V06, {}),
    ("oneOf that is no list stays", ELICIT, form({"c": {"oneOf": {"const": 1}}}), V06, {}),
    ("an odd property stays", ELICIT, form({"c": True, "d": [1]}), V06, {}),
    ("odd properties stay", ELICIT, form([1]), V06, {}),
    ("an odd schema stays", ELICIT, {"message": "m", "requestedSchema": True}, V06, {}),
    ("no schema stays none", ELICIT, {"message": "m"}, V06, {}),
    (
        "sampling passes whole to 2025-11-25",
        SAMPLE,
        said([TEXT, IMAGE], [TEXT]) | {"tools": [], "includeContext": "none"},
        V11,
        {},
    ),
    ("content was no array before", SAMPLE, said([TEXT], IMAGE), V06, said(TEXT, IMAGE)),
    ("tasks are new after 2025-06-18", ELICIT, {"task": {"ttl": 1}, **form(PLAIN)}, V06, form(PLAIN)),
    ("for sampling too", SAMPLE, {"task": {"ttl": 1}, **said(TEXT)}, V06, said(TEXT)),
    ("2025-03-26 has audio", SAMPLE, said(AUDIO, [AUDIO]), V03, said(AUDIO, AUDIO)),
    (
        "2024-11-05 has none",
        SAMPLE,
        said(TEXT, [AUDIO]),
        V24,
        said(TEXT, {"type": "text", "text": "[audio, audio/wav]"}),
    ),
    ("in 2025-03-26 neither", SAMPLE, said([TEXT]), V03, said(TEXT)),
    ("several blocks stay what they are", SAMPLE, said([TEXT, IMAGE]), V06, {}),
    ("no block stays what it is", SAMPLE, said([]), V06, {}),
    (
        "a tool's use by a client that declares tools",
        SAMPLE,
        said([TOOL_USE]) | {"tools": [1]},
        V06,
        said(TOOL_USE) | {"tools": [1]},
    ),
    ("odd messages stay", SAMPLE, {"messages": 5, "maxTokens": 1}, V06, {}),
    ("an odd message stays", SAMPLE, {"messages": [5, {"content": "x"}]}, V06, {}),
    ("roots pass whole", ROOTS, {"_meta": {"com.example/x": 1}}, V03, {}),
]


@pytest.mark.field("AB10")
@pytest.mark.parametrize(
    ("method", "params", "version", "shown"), [row[1:] for row in TO_LEGACY], ids=[row[0] for row in TO_LEGACY]
)
def test_an_ask_in_the_words_of_a_legacy_client(method: str, params: Json, version: str, shown: Json) -> None:
    before = repr(params)
    assert mrtr.ask_to_legacy(method, params, version, EVERYTHING) == (shown or params)
    assert repr(params) == before


@pytest.mark.parametrize(
    ("capabilities", "kept"),
    [
        ({"sampling": {"context": {}}}, True),
        ({"sampling": {}}, False),
        ({"sampling": {"tools": {}}}, False),
    ],
    ids=["declared", "not declared", "something else declared"],
)
@pytest.mark.parametrize("version", [V11, V06])
def test_context_is_included_for_clients_that_declare_it(version: str, capabilities: Json, kept: bool) -> None:
    shown = mrtr.ask_to_legacy(SAMPLE, said(TEXT) | {"includeContext": "thisServer"}, version, capabilities)
    assert shown == said(TEXT) | ({"includeContext": "thisServer"} if kept else {})


CANNOT: list[tuple[str, str, Json, str, Json, Json | None]] = [
    ("an address before 2025-11-25", ELICIT, URL, V06, EVERYTHING, None),
    ("many choices before 2025-11-25", ELICIT, form({"m": MANY}), V06, EVERYTHING, None),
    ("many titled choices before 2025-11-25", ELICIT, form({"a": PLAIN["n"], "m": MANY_TITLED}), V06, EVERYTHING, None),
    ("a form before 2025-06-18", ELICIT, form(PLAIN), V03, EVERYTHING, None),
    ("a form of one who declares nothing", ELICIT, form({}), V11, {}, {"elicitation": {}}),
    ("an address of one who shows forms", ELICIT, URL, V11, {"elicitation": {}}, {"elicitation": {"url": {}}}),
    ("sampling of one who declares none", SAMPLE, said(TEXT), V11, {"roots": {}}, {"sampling": {}}),
    (
        "sampling with tools of one without",
        SAMPLE,
        said(TEXT) | {"tools": []},
        V11,
        {"sampling": {}},
        {"sampling": {"tools": {}}},
    ),
    ("roots of one who declares none", ROOTS, {}, V03, {"roots": None}, {"roots": {}}),
]


@pytest.mark.parametrize(
    ("method", "params", "version", "capabilities", "lack"), [row[1:] for row in CANNOT], ids=[row[0] for row in CANNOT]
)
def test_an_ask_that_cannot_be_put_to_a_legacy_client(
    method: str, params: Json, version: str, capabilities: Json, lack: Json | None
) -> None:
    refused = mrtr.ask_to_legacy(method, params, version, capabilities)
    assert isinstance(refused, Rejection)
    if lack is not None:
        assert (refused.code, refused.http, refused.data) == (-32021, 400, {"requiredCapabilities": lack})
    assert refused.message != "m"


# towards a modern client

TO_MODERN: list[tuple[str, str, Json, Json]] = [
    ("roots without parameters have none", ROOTS, {}, {"method": ROOTS}),
    (
        "roots whose parameters were the request's own have none",
        ROOTS,
        {"_meta": {"progressToken": 1}},
        {"method": ROOTS},
    ),
    ("roots keep what a vendor says", ROOTS, {"_meta": {"v/x": 1}}, {"method": ROOTS, "params": {"_meta": {"v/x": 1}}}),
    (
        "forms pass whole",
        ELICIT,
        form({**PLAIN, "c": TITLED, "m": MANY}),
        {"method": ELICIT, "params": form({**PLAIN, "c": TITLED, "m": MANY})},
    ),
    (
        "older titles are still known",
        ELICIT,
        form({"c": OLDER_TITLED}),
        {"method": ELICIT, "params": form({"c": OLDER_TITLED})},
    ),
    (
        "an address loses the id that only a session can use",
        ELICIT,
        URL | {"elicitationId": "e"},
        {"method": ELICIT, "params": URL},
    ),
    ("no task", SAMPLE, said(TEXT) | {"task": {"ttl": 5}}, {"method": SAMPLE, "params": said(TEXT)}),
    (
        "nothing of the session's own _meta",
        SAMPLE,
        said(TEXT) | {"_meta": {"progressToken": 0, "io.modelcontextprotocol/related-task": {}, "v/x": [None]}},
        {"method": SAMPLE, "params": said(TEXT) | {"_meta": {"v/x": [None]}}},
    ),
    ("an odd _meta is left alone", SAMPLE, {"_meta": 5}, {"method": SAMPLE, "params": {"_meta": 5}}),
    ("sampling without parameters has an empty object", SAMPLE, {}, {"method": SAMPLE, "params": {}}),
]


@pytest.mark.field("AB10")
@pytest.mark.parametrize(
    ("method", "params", "entry"), [row[1:] for row in TO_MODERN], ids=[row[0] for row in TO_MODERN]
)
def test_an_ask_as_an_entry_of_input_requests(method: str, params: Json, entry: Json) -> None:
    before = repr(params)
    assert mrtr.ask_to_modern(method, params) == entry
    assert repr(params) == before


def test_the_result_says_what_it_is() -> None:
    assert mrtr.input_required({"k": {"method": ROOTS}}, "s") == {
        "resultType": "input_required",
        "inputRequests": {"k": {"method": ROOTS}},
        "requestState": "s",
    }


ELICITATIONS: list[tuple[str, Any, dict[str, Json]]] = [
    ("one", {"elicitations": [URL | {"elicitationId": "e"}]}, {"e": URL}),
    (
        "several, and what else is said",
        {"elicitations": [URL | {"elicitationId": "e"}, URL | {"elicitationId": "f", "x": 1}], "y": 2},
        {"e": URL, "f": URL},
    ),
    ("the same one twice", {"elicitations": [URL | {"elicitationId": "e"}] * 2}, {"e": URL}),
    ("the same address twice", {"elicitations": [URL, URL | {"elicitationId": 5}]}, {URL["url"]: URL}),
    (
        "one without a mode",
        {"elicitations": [{"url": "u", "message": "m"}]},
        {"u": {"mode": "url", "url": "u", "message": "m"}},
    ),
    ("one without a message", {"elicitations": [{"url": "u"}]}, {"u": {"mode": "url", "url": "u"}}),
    ("one without an address", {"elicitations": [{"message": "m"}]}, {}),
    ("an address that is none", {"elicitations": [{"url": 5}]}, {}),
    ("an entry that is none", {"elicitations": ["u", None]}, {}),
    ("no list", {"elicitations": {"url": "u"}}, {}),
    ("no object", "elicitations", {}),
    ("nothing", None, {}),
]


@pytest.mark.parametrize(("data", "asks"), [row[1:] for row in ELICITATIONS], ids=[row[0] for row in ELICITATIONS])
def test_the_addresses_that_an_error_of_2025_11_25_names(data: Any, asks: dict[str, Json]) -> None:
    assert mrtr.url_asks(data) == asks
