"""Capabilities and server descriptions, across eras and versions."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.exchange import Dialect
from policies.mcp import LEGACY_VERSIONS, Json
from policies.profiles import Profile
from policies.translation import discover
from policies.translation.discover import Description, of_discover, of_initialize

MODERN = Dialect("modern", "2026-07-28")
L2024, L03, L06, L11 = (Dialect("legacy", version) for version in reversed(LEGACY_VERSIONS))
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
TASKS, UI = "io.modelcontextprotocol/tasks", "io.modelcontextprotocol/ui"
FALLBACK = {"name": "mcp", "version": "unknown"}
INFO = {"name": "s", "version": "1", "icons": [{"src": "x"}]}

DISCOVERED: Json = {
    "resultType": "complete",
    "supportedVersions": ["2026-07-28", "2025-11-25"],
    "capabilities": {"tools": {"listChanged": True}, "extensions": {UI: {"a": 1}}},
    "instructions": "be kind",
    "ttlMs": 60_000,
    "cacheScope": "public",
    "_meta": {SERVER_INFO: INFO, "com.example/x": [1]},
    "x-unknown": {"deep": [None]},
}
INITIALIZED: Json = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {"listChanged": True}, "logging": {}},
    "serverInfo": INFO,
    "instructions": "be kind",
    "_meta": {"com.example/x": [1]},
    "x-unknown": {"deep": [None]},
}

READ_MODERN: list[tuple[str, Json, Json, Json | None, str | None]] = [
    # sentence, result, capabilities, serverInfo, instructions
    ("a whole description", DISCOVERED, DISCOVERED["capabilities"], INFO, "be kind"),
    ("an empty one", {}, {}, None, None),
    ("serverInfo in the body, as drafts had it", {"serverInfo": INFO}, {}, INFO, None),
    (
        "serverInfo in _meta outdoes the body",
        {"serverInfo": {"name": "b"}, "_meta": {SERVER_INFO: INFO}},
        {},
        INFO,
        None,
    ),
    ("odd serverInfo in _meta is as none", {"serverInfo": INFO, "_meta": {SERVER_INFO: "s"}}, {}, INFO, None),
    ("odd serverInfo everywhere is none", {"serverInfo": ["s"], "_meta": {SERVER_INFO: 5}}, {}, None, None),
    ("odd _meta is none", {"_meta": "text", "capabilities": {"tools": {}}}, {"tools": {}}, None, None),
    ("odd capabilities are none", {"capabilities": ["tools"]}, {}, None, None),
    ("odd instructions are none", {"instructions": {"text": "x"}}, {}, None, None),
    ("nulls are nothing", dict.fromkeys(("_meta", "capabilities", "instructions", "serverInfo")), {}, None, None),
]


@pytest.mark.parametrize(
    ("result", "capabilities", "info", "instructions"), [r[1:] for r in READ_MODERN], ids=[r[0] for r in READ_MODERN]
)
def test_a_modern_upstream_describes_itself(
    result: Json, capabilities: Json, info: Json | None, instructions: str | None
) -> None:
    assert of_discover(result, MODERN.version) == Description(MODERN, capabilities, info, instructions, result)


READ_LEGACY: list[tuple[str, Json, Json, Json | None, str | None]] = [
    ("a whole description", INITIALIZED, INITIALIZED["capabilities"], INFO, "be kind"),
    ("an empty one", {}, {}, None, None),
    ("odd members are none", {"capabilities": 1, "serverInfo": "s", "instructions": []}, {}, None, None),
    ("_meta names no legacy server", {"_meta": {SERVER_INFO: INFO}}, {}, None, None),
]


@pytest.mark.parametrize(
    ("result", "capabilities", "info", "instructions"), [r[1:] for r in READ_LEGACY], ids=[r[0] for r in READ_LEGACY]
)
def test_a_legacy_upstream_describes_itself(
    result: Json, capabilities: Json, info: Json | None, instructions: str | None
) -> None:
    assert of_initialize(result, L06.version) == Description(L06, capabilities, info, instructions, result)


# what an upstream is told of the client

CLIENT: Json = {
    "roots": {"listChanged": True},
    "sampling": {"tools": {}},
    "elicitation": {"form": {}, "url": {}},
    "tasks": {"cancel": {}},
    "experimental": {"e": {"x": 1}},
    "extensions": {UI: {"mimeTypes": ["text/html;profile=mcp-app"]}, TASKS: {}},
    "x-unknown": {"a": 1},
}
CARRIED: Json = {
    "roots": {},
    "sampling": {"tools": {}},
    "elicitation": {"form": {}, "url": {}},
    "experimental": {"e": {"x": 1}},
    "extensions": {UI: {"mimeTypes": ["text/html;profile=mcp-app"]}},
}

DECLARED: list[tuple[str, Any, Dialect, Json, Json]] = [
    ("modern to modern passes whole", "modern", MODERN, CLIENT, CLIENT),
    ("legacy to the same version passes whole", "legacy", L11, CLIENT, CLIENT),
    (
        "2025-06-18 has neither tasks nor what came later",
        "legacy",
        L06,
        CLIENT,
        {k: v for k, v in CLIENT.items() if k not in ("tasks", "x-unknown")},
    ),
    (
        "2025-03-26 has no elicitation",
        "legacy",
        L03,
        CLIENT,
        {k: CLIENT[k] for k in ("roots", "sampling", "experimental", "extensions")},
    ),
    (
        "2024-11-05 has none either",
        "legacy",
        L2024,
        CLIENT,
        {k: CLIENT[k] for k in ("roots", "sampling", "experimental", "extensions")},
    ),
    ("a legacy upstream may ask a modern client, but not hear of its roots", "modern", L11, CLIENT, CARRIED),
    ("a modern upstream may ask a legacy client the same", "legacy", MODERN, CLIENT, CARRIED),
    ("the tasks extension alone leaves an empty set", "modern", L11, {"extensions": {TASKS: {}}}, {"extensions": {}}),
    ("odd roots pass as they are", "modern", L11, {"roots": [1], "tasks": {}}, {"roots": [1]}),
    ("odd extensions pass as they are", "legacy", MODERN, {"extensions": [TASKS]}, {"extensions": [TASKS]}),
    ("nothing stays nothing", "modern", L06, {}, {}),
]


@pytest.mark.parametrize(
    ("front", "upstream", "declared", "effective"), [row[1:] for row in DECLARED], ids=[row[0] for row in DECLARED]
)
def test_client_capabilities(front: Any, upstream: Dialect, declared: Json, effective: Json) -> None:
    before = repr(declared)
    assert discover.client_capabilities(declared, front, upstream) == effective
    assert repr(declared) == before


ELICIT, SAMPLE, ROOTS = "elicitation/create", "sampling/createMessage", "roots/list"
ASKS: list[tuple[str, str, Json, Json, Json | None]] = [
    # sentence, method, params, capabilities, what is lacking
    ("a form of one who declares elicitation", ELICIT, {}, {"elicitation": {}}, None),
    ("a form, said to be one", ELICIT, {"mode": "form"}, {"elicitation": {}}, None),
    ("a form of one who declares forms", ELICIT, {"mode": "form"}, {"elicitation": {"form": {}}}, None),
    ("a form of one who declares both", ELICIT, {}, {"elicitation": {"form": {}, "url": {}}}, None),
    ("a form of one who declares what nobody knows", ELICIT, {}, {"elicitation": {"x": {}}}, None),
    ("a form of one who opens URLs only", ELICIT, {}, {"elicitation": {"url": {}}}, {"elicitation": {"form": {}}}),
    ("a form of one who declares nothing", ELICIT, {}, {}, {"elicitation": {}}),
    ("a form of one who declares oddly", ELICIT, {}, {"elicitation": True}, {"elicitation": {}}),
    ("a URL of one who opens URLs", ELICIT, {"mode": "url"}, {"elicitation": {"url": {}}}, None),
    (
        "a URL of one who shows forms",
        ELICIT,
        {"mode": "url"},
        {"elicitation": {"form": {}}},
        {"elicitation": {"url": {}}},
    ),
    (
        "a URL of one who only says elicitation",
        ELICIT,
        {"mode": "url"},
        {"elicitation": {}},
        {"elicitation": {"url": {}}},
    ),
    ("a mode that nobody knows", ELICIT, {"mode": "voice"}, {"elicitation": {}}, {"elicitation": {"voice": {}}}),
    ("a mode that is declared", ELICIT, {"mode": "voice"}, {"elicitation": {"voice": {}}}, None),
    ("a mode that is an array", ELICIT, {"mode": ["form"]}, {"elicitation": {}}, {"elicitation": {}}),
    ("a mode that is an object", ELICIT, {"mode": {}}, {"elicitation": {"form": {}}}, {"elicitation": {}}),
    ("a mode that is null", ELICIT, {"mode": None}, {"elicitation": {}}, {"elicitation": {}}),
    ("sampling of one who declares it", SAMPLE, {"messages": []}, {"sampling": {}}, None),
    ("sampling of one who does not", SAMPLE, {}, {"elicitation": {}}, {"sampling": {}}),
    ("sampling with tools of one who has them", SAMPLE, {"tools": []}, {"sampling": {"tools": {}}}, None),
    ("sampling with tools of one who has none", SAMPLE, {"tools": []}, {"sampling": {}}, {"sampling": {"tools": {}}}),
    ("sampling with a tool choice alone", SAMPLE, {"toolChoice": {}}, {"sampling": {}}, {"sampling": {"tools": {}}}),
    ("roots of one who declares them", ROOTS, {}, {"roots": {}}, None),
    ("roots of one who does not", ROOTS, {}, {"roots": None}, {"roots": {}}),
]


@pytest.mark.parametrize(("method", "params", "capabilities", "lack"), [r[1:] for r in ASKS], ids=[r[0] for r in ASKS])
def test_whether_a_client_can_be_asked(method: str, params: Json, capabilities: Json, lack: Json | None) -> None:
    assert discover.can_ask(method, params, capabilities) == lack


# what a client is told of the upstream

SERVER: Json = {
    "tools": {"listChanged": True},
    "prompts": {},
    "resources": {"listChanged": True, "subscribe": True, "x": 1},
    "logging": {},
    "completions": {},
    "tasks": {"list": {}},
    "experimental": {"e": {}},
    "extensions": {UI: {}, TASKS: {"t": 1}},
    "x-unknown": {},
}


def less(value: Json, *keys: str) -> Json:
    return {k: v for k, v in value.items() if k not in keys}


BRIDGED = less(SERVER, "tasks") | {"extensions": {UI: {}}}
OFFERED: list[tuple[str, Dialect, Dialect, Json, Json]] = [
    # sentence, upstream, front, its capabilities, what the front may promise
    ("modern to modern passes whole", MODERN, MODERN, SERVER, SERVER),
    ("legacy to the same version passes whole", L11, L11, SERVER, SERVER),
    ("2025-06-18 has neither tasks nor what came later", L11, L06, SERVER, less(SERVER, "tasks", "x-unknown")),
    ("2025-03-26 has completions", L11, L03, SERVER, less(SERVER, "tasks", "x-unknown")),
    ("2024-11-05 has none", L11, L2024, SERVER, less(SERVER, "tasks", "x-unknown", "completions")),
    ("an older upstream promises what it has", L2024, L11, {"tools": {}}, {"tools": {}}),
    ("tasks of 2025-11-25 are no modern tasks, whatever the server says", L11, MODERN, SERVER, BRIDGED),
    ("modern tasks are none of 2025-11-25", MODERN, L11, SERVER, BRIDGED),
    ("over a bridge old versions have less still", MODERN, L2024, SERVER, less(BRIDGED, "completions", "x-unknown")),
    (
        "odd capabilities pass as they are",
        MODERN,
        L11,
        {"resources": True, "extensions": 5},
        {"resources": True, "extensions": 5},
    ),
    ("nothing stays nothing", L06, MODERN, {}, {}),
]


@pytest.mark.parametrize(
    ("upstream", "front", "capabilities", "promised"), [r[1:] for r in OFFERED], ids=[r[0] for r in OFFERED]
)
def test_server_capabilities(upstream: Dialect, front: Dialect, capabilities: Json, promised: Json) -> None:
    before = repr(capabilities)
    assert discover.server_capabilities(Description(upstream, capabilities), front) == promised
    assert repr(capabilities) == before


@pytest.mark.parametrize(
    ("method", "capabilities", "dialect", "offered"),
    [
        ("tools/call", {"tools": {}}, L11, True),
        ("tools/list", {"tools": {}}, L2024, True),
        ("tools/call", {"prompts": {}}, L11, False),
        ("tools/call", {"tools": None}, L11, False),
        ("tools/call", {"tools": True}, L11, False),
        ("prompts/get", {"prompts": {}}, L11, True),
        ("prompts/list", {}, L11, False),
        ("resources/read", {"resources": {}}, L11, True),
        ("resources/templates/list", {"resources": {}}, L11, True),
        ("resources/list", {}, L11, False),
        ("completion/complete", {"completions": {}}, L03, True),
        ("completion/complete", {}, L03, False),
        ("completion/complete", {}, L2024, True),
        ("com.example/x", {"tools": {}, "com.example/x": {}}, L11, False),
        ("tasks/get", {"tasks": {}}, L11, False),
    ],
)
def test_a_legacy_server_has_what_it_declares(method: str, capabilities: Json, dialect: Dialect, offered: bool) -> None:
    assert discover.offers(Description(dialect, capabilities), method) is offered


# server/discover

MINIMAL = {
    "resultType": "complete",
    "supportedVersions": ["2026-07-28"],
    "capabilities": {},
    "_meta": {SERVER_INFO: FALLBACK},
    "ttlMs": 0,
    "cacheScope": "private",
}


def described(**members: Any) -> Description:
    return of_discover({"supportedVersions": ["2026-07-28"], **members}, MODERN.version)


DISCOVER: list[tuple[str, Description, float, Json]] = [
    (
        "a modern upstream in its own words, with our versions and what remains of its time",
        of_discover(DISCOVERED, MODERN.version),
        1.5,
        DISCOVERED | {"supportedVersions": ["2026-07-28"], "ttlMs": 58_500},
    ),
    ("nobody has described it", Description(MODERN), 0.0, MINIMAL),
    (
        "a legacy upstream, its unknown members too",
        of_initialize(INITIALIZED, "2025-06-18"),
        0.0,
        MINIMAL
        | {
            "capabilities": INITIALIZED["capabilities"],
            "instructions": "be kind",
            "_meta": {SERVER_INFO: INFO, "com.example/x": [1]},
            "x-unknown": {"deep": [None]},
        },
    ),
    (
        "a legacy upstream's word on caching is not what it means here",
        of_initialize(INITIALIZED | {"ttlMs": 9, "cacheScope": "public", "resultType": "x"}, "2025-06-18"),
        0.0,
        MINIMAL
        | {
            "capabilities": INITIALIZED["capabilities"],
            "instructions": "be kind",
            "_meta": {SERVER_INFO: INFO, "com.example/x": [1]},
            "x-unknown": {"deep": [None]},
        },
    ),
    ("its time is over", described(ttlMs=500), 1.0, MINIMAL),
    ("its time is no whole number", described(ttlMs=500.5), 0.0, MINIMAL | {"ttlMs": 500}),
    ("its time is negative", described(ttlMs=-5), 0.0, MINIMAL),
    ("its time is a text", described(ttlMs="500"), 0.0, MINIMAL),
    ("its time is null", described(ttlMs=None), 0.0, MINIMAL),
    ("its scope is one that nobody knows", described(cacheScope="shared"), 0.0, MINIMAL),
    ("its scope is no word", described(cacheScope=["public"]), 0.0, MINIMAL),
    ("its result type is odd", described(resultType=7), 0.0, MINIMAL),
    ("its instructions are odd", described(instructions=["x"]), 0.0, MINIMAL),
    ("its instructions are empty", described(instructions=""), 0.0, MINIMAL | {"instructions": ""}),
    ("its capabilities are odd", described(capabilities=None), 0.0, MINIMAL),
    ("its _meta is odd", described(_meta=[1]), 0.0, MINIMAL),
    ("its name is empty", described(_meta={SERVER_INFO: {}}), 0.0, MINIMAL),
    (
        "its name is in the body",
        described(serverInfo=INFO),
        0.0,
        MINIMAL | {"serverInfo": INFO, "_meta": {SERVER_INFO: INFO}},
    ),
]


@pytest.mark.parametrize(("description", "age_s", "result"), [r[1:] for r in DISCOVER], ids=[r[0] for r in DISCOVER])
def test_the_discover_result(description: Description, age_s: float, result: Json) -> None:
    before = repr(description)
    assert discover.discover_result(description, FALLBACK, age_s) == result
    assert repr(description) == before


# initialize

INITIALIZE: list[tuple[str, Description, str, Json]] = [
    (
        "a legacy upstream in its own words, in the client's version",
        of_initialize(INITIALIZED, "2025-06-18"),
        "2025-11-25",
        INITIALIZED | {"protocolVersion": "2025-11-25"},
    ),
    (
        "a modern upstream, its unknown members too",
        of_discover(DISCOVERED, MODERN.version),
        "2025-06-18",
        {
            "protocolVersion": "2025-06-18",
            "capabilities": DISCOVERED["capabilities"],
            "serverInfo": INFO,
            "instructions": "be kind",
            "_meta": {"com.example/x": [1]},
            "x-unknown": {"deep": [None]},
        },
    ),
    (
        "nobody has described it",
        Description(MODERN),
        "2024-11-05",
        {"protocolVersion": "2024-11-05", "capabilities": {}, "serverInfo": FALLBACK},
    ),
    (
        "a modern upstream with nothing but its name in _meta",
        described(_meta={SERVER_INFO: INFO}),
        "2025-11-25",
        {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": INFO},
    ),
    (
        "odd members of a legacy upstream are as none",
        of_initialize({"capabilities": [], "serverInfo": "s", "instructions": 5, "protocolVersion": 7}, "2025-06-18"),
        "2025-03-26",
        {"protocolVersion": "2025-03-26", "capabilities": {}, "serverInfo": FALLBACK},
    ),
    (
        "odd members of a modern upstream are as none",
        described(capabilities=1, instructions=None, _meta={SERVER_INFO: 5}),
        "2025-03-26",
        {"protocolVersion": "2025-03-26", "capabilities": {}, "serverInfo": FALLBACK},
    ),
]


@pytest.mark.parametrize(
    ("description", "version", "result"), [r[1:] for r in INITIALIZE], ids=[r[0] for r in INITIALIZE]
)
def test_the_initialize_result(description: Description, version: str, result: Json) -> None:
    before = repr(description)
    assert discover.initialize_result(description, version, FALLBACK) == result
    assert repr(description) == before


KNOWN = {"resultType", "supportedVersions", "capabilities", "instructions", "ttlMs", "cacheScope", "_meta"}
KNOWN |= {"protocolVersion", "serverInfo"}
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
odd_results = st.dictionaries(st.sampled_from(sorted(KNOWN)) | st.text(), json_values, max_size=8)


@given(odd_results, st.sampled_from(LEGACY_VERSIONS))
def test_no_description_is_too_odd_and_no_unknown_member_is_lost(raw: Json, version: str) -> None:
    for description in (of_discover(raw, MODERN.version), of_initialize(raw, version)):
        modern = discover.discover_result(description, FALLBACK, 0.0)
        legacy = discover.initialize_result(description, version, FALLBACK)
        assert less(modern, *KNOWN) == less(legacy, *KNOWN) == less(raw, *KNOWN)
        assert modern["cacheScope"] in ("public", "private")
        assert modern["ttlMs"] >= 0
        assert isinstance(modern["capabilities"], dict)
        assert isinstance(modern["_meta"][SERVER_INFO], dict)
        assert legacy["protocolVersion"] == version
        assert isinstance(legacy["serverInfo"], dict)
        assert isinstance(legacy.get("instructions", ""), str)


# what a host is told of Apps

DESKTOP_APPS = Profile("desktop", True, True, ("text/html;profile=mcp-app",))
PLAIN = Profile("core-v1")
SYNTHESISED = {UI: {"mimeTypes": ["text/html;profile=mcp-app"]}}


def with_scope(extensions: Json | None, scope: str | None = "public") -> Json:
    capabilities = {"tools": {}} | ({} if extensions is None else {"extensions": extensions})
    return {"capabilities": capabilities, "x-unknown": 1} | ({} if scope is None else {"cacheScope": scope})


FOR_HOST: list[tuple[str, Profile, bool | None, Json | None, Json | None, str]] = [
    # sentence, profile, whether it lists Apps, extensions that the upstream names, that the host is told, cacheScope
    ("nothing of Apps is the same for everybody", PLAIN, None, None, None, "public"),
    ("also where there are other extensions", PLAIN, None, {TASKS: {}}, {TASKS: {}}, "public"),
    (
        "a host that shows Apps is told in the server's words",
        DESKTOP_APPS,
        None,
        {UI: {"a": 1}},
        {UI: {"a": 1}},
        "private",
    ),
    ("another is not", PLAIN, None, {UI: {"a": 1}}, None, "private"),
    ("but of what else there is", PLAIN, None, {UI: {}, TASKS: {}}, {TASKS: {}}, "private"),
    ("a silent server that lists Apps is helped out", DESKTOP_APPS, True, None, SYNTHESISED, "private"),
    ("beside what it does say", DESKTOP_APPS, True, {TASKS: {}}, {TASKS: {}} | SYNTHESISED, "private"),
    ("not where it says so itself", DESKTOP_APPS, True, {UI: {"a": 1}}, {UI: {"a": 1}}, "private"),
    ("nor where it lists none", DESKTOP_APPS, False, None, None, "private"),
    ("nor for a host that shows none", PLAIN, True, None, None, "private"),
]


@pytest.mark.parametrize(
    ("profile", "lists_apps", "named", "told", "scope"), [r[1:] for r in FOR_HOST], ids=[r[0] for r in FOR_HOST]
)
def test_a_host_is_told_of_apps_if_it_shows_them(
    profile: Profile, lists_apps: bool | None, named: Json | None, told: Json | None, scope: str
) -> None:
    before = repr(named)
    found = discover.for_host(with_scope(named), profile, lists_apps=lists_apps)
    assert found == with_scope(told, scope)
    assert discover.for_host(with_scope(named, None), profile, lists_apps=lists_apps) == with_scope(told, None)
    assert repr(named) == before


def test_odd_capabilities_and_extensions_are_left_alone() -> None:
    for odd in ({"capabilities": 5}, {"capabilities": {"extensions": [1]}}, {}):
        assert discover.for_host(dict(odd), PLAIN) == odd
