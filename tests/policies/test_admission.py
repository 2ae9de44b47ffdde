"""The rungs of the request ladder that need no body, and the small readings of `_meta`."""

from typing import Any

import pytest
from multidict import CIMultiDict

from policies import admission, jsonrpc
from policies.admission import Acceptance, Head
from policies.edge import Doorman
from policies.errors import Rejection
from policies.forwarded import Caller
from policies.mcp import LEGACY_VERSIONS
from policies.settings_routes import Route

MODERN, LEGACY = "2026-07-28", "2025-11-25"
PREFIX = "io.modelcontextprotocol/"
HERE = Route.model_validate({"path": "/mcp", "upstream": "u"})
NAMED = Route.model_validate({"path": "/mcp", "upstream": "v", "host": "mcp.example.com"})
BOTH_TYPES = "application/json, text/event-stream"
POST = {"Content-Type": "application/json", "Accept": BOTH_TYPES}
GET = {"Mcp-Session-Id": "s", "Accept": "text/event-stream"}
BOTH = Acceptance(True, True)

Lines = dict[str, str] | list[tuple[str, str]]
Case = tuple[str, str, str, str, Lines]

ADMITTED: list[tuple[Case, Head]] = [
    (("a modern POST", "POST", "h", "/mcp", {**POST, "MCP-Protocol-Version": MODERN}), Head(HERE, BOTH, MODERN)),
    (("a legacy POST", "POST", "h", "/mcp", {**POST, "MCP-Protocol-Version": LEGACY}), Head(HERE, BOTH, LEGACY)),
    (("a POST without a version", "POST", "h", "/mcp", POST), Head(HERE, BOTH, None)),
    (
        ("a POST of a version that nobody knows", "POST", "h", "/mcp", {**POST, "MCP-Protocol-Version": "x"}),
        Head(HERE, BOTH, "x"),
    ),
    (
        (
            "header names in any case",
            "POST",
            "h",
            "/mcp",
            {"content-type": "application/json", "ACCEPT": "*/*", "mcp-protocol-version": MODERN},
        ),
        Head(HERE, BOTH, MODERN),
    ),
    (
        ("a POST that takes no streams", "POST", "h", "/mcp", {**POST, "Accept": "application/json"}),
        Head(HERE, Acceptance(True, False), None),
    ),
    (
        ("a POST that takes streams only", "POST", "h", "/mcp", {**POST, "Accept": "text/event-stream"}),
        Head(HERE, Acceptance(False, True), None),
    ),
    (("a POST without Accept", "POST", "h", "/mcp", {"Content-Type": "application/json"}), Head(HERE, BOTH, None)),
    (("a path with a final slash", "POST", "h", "/mcp/", POST), Head(HERE, BOTH, None)),
    (("the route of the host", "POST", "mcp.example.com", "/mcp", POST), Head(NAMED, BOTH, None)),
    (
        ("an Origin that is the Host", "POST", "h:8080", "/mcp", {**POST, "Origin": "https://h:8080"}),
        Head(HERE, BOTH, None),
    ),
    (
        ("a charset of UTF-8", "POST", "h", "/mcp", {**POST, "Content-Type": 'Application/JSON; Charset="UTF-8"'}),
        Head(HERE, BOTH, None),
    ),
    (
        (
            "parameters that are not the charset",
            "POST",
            "h",
            "/mcp",
            {**POST, "Content-Type": "application/json;v=1; charset=utf8"},
        ),
        Head(HERE, BOTH, None),
    ),
    (("a GET of a session", "GET", "h", "/mcp", GET), Head(HERE, Acceptance(False, True), None)),
    (
        ("a GET of a session with its version", "GET", "h", "/mcp", {**GET, "MCP-Protocol-Version": LEGACY}),
        Head(HERE, Acceptance(False, True), LEGACY),
    ),
    (("a GET that takes anything", "GET", "h", "/mcp", {"Mcp-Session-Id": "s"}), Head(HERE, BOTH, None)),
    (("a DELETE of a session", "DELETE", "h", "/mcp", {"Mcp-Session-Id": "s"}), Head(HERE, BOTH, None)),
    (
        ("a DELETE that accepts nothing", "DELETE", "h", "/mcp", {"Mcp-Session-Id": "s", "Accept": "image/png"}),
        Head(HERE, Acceptance(False, False), None),
    ),
]

ALLOW_ALL, ALLOW_POST = (("Allow", "POST, GET, DELETE"),), (("Allow", "POST"),)
REFUSED: list[tuple[Case, int, tuple[tuple[str, str], ...]]] = [
    (("another Origin", "POST", "h", "/mcp", {**POST, "Origin": "https://evil.example"}), 403, ()),
    (("another Origin, for a path that is not there", "POST", "h", "/no", {"Origin": "https://evil.example"}), 403, ()),
    (
        (
            "another Origin beside a right one",
            "POST",
            "h",
            "/mcp",
            [*POST.items(), ("Origin", "http://h"), ("Origin", "http://i")],
        ),
        403,
        (),
    ),
    (("another Origin on a GET", "GET", "h", "/mcp", {**GET, "Origin": "null"}), 403, ()),
    (
        ("another Origin before a browser's preflight", "OPTIONS", "h", "/mcp", {"Origin": "https://evil.example"}),
        403,
        (),
    ),
    (("a path that is not there", "POST", "h", "/other", POST), 404, ()),
    (("a path that is not there, by any method", "PATCH", "h", "/other", {}), 404, ()),
    (("a path below one that is there", "POST", "h", "/mcp/x", POST), 404, ()),
    (("PUT", "PUT", "h", "/mcp", POST), 405, ALLOW_ALL),
    (("OPTIONS", "OPTIONS", "h", "/mcp", {}), 405, ALLOW_ALL),
    (("HEAD", "HEAD", "h", "/mcp", {}), 405, ALLOW_ALL),
    (("a method in small letters", "post", "h", "/mcp", POST), 405, ALLOW_ALL),
    (("a modern GET", "GET", "h", "/mcp", {**GET, "MCP-Protocol-Version": MODERN}), 405, ALLOW_POST),
    (("a modern DELETE", "DELETE", "h", "/mcp", {**GET, "MCP-Protocol-Version": MODERN}), 405, ALLOW_POST),
    (("a GET without a session", "GET", "h", "/mcp", {"Accept": "text/event-stream"}), 405, ALLOW_ALL),
    (("a DELETE without a session", "DELETE", "h", "/mcp", {}), 405, ALLOW_ALL),
    (("a POST without a content type", "POST", "h", "/mcp", {"Accept": "*/*"}), 415, ()),
    (("a POST of text", "POST", "h", "/mcp", {**POST, "Content-Type": "text/plain"}), 415, ()),
    (("a POST of a form", "POST", "h", "/mcp", {**POST, "Content-Type": "application/x-www-form-urlencoded"}), 415, ()),
    (
        (
            "a POST of text that names JSON",
            "POST",
            "h",
            "/mcp",
            {**POST, "Content-Type": "text/plain; application/json"},
        ),
        415,
        (),
    ),
    (("a POST in UTF-16", "POST", "h", "/mcp", {**POST, "Content-Type": "application/json; charset=utf-16"}), 415, ()),
    (
        (
            "a POST in two charsets",
            "POST",
            "h",
            "/mcp",
            {**POST, "Content-Type": "application/json; charset=utf-8; charset=latin1"},
        ),
        415,
        (),
    ),
    (
        (
            "a POST of no JSON that accepts nothing",
            "POST",
            "h",
            "/mcp",
            {"Content-Type": "text/plain", "Accept": "image/png"},
        ),
        415,
        (),
    ),
    (("a POST that takes neither form", "POST", "h", "/mcp", {**POST, "Accept": "text/html"}), 406, ()),
    (
        (
            "a POST that refuses both forms",
            "POST",
            "h",
            "/mcp",
            {**POST, "Accept": "application/json;q=0, text/event-stream; q=0.0"},
        ),
        406,
        (),
    ),
    (
        ("a GET that takes no streams", "GET", "h", "/mcp", {**GET, "Accept": "application/json"}),
        405,
        (("Allow", "POST, GET, DELETE"),),
    ),
]


def admit(case: Case, *, loopback_only: bool = False) -> Head | Rejection:
    _, method, host, path, lines = case
    caller = Caller(("192.0.2.1",), host, "http")
    doorman = Doorman(() if loopback_only else ("h", "named.example", "mcp.example.com"), (), loopback_only)
    return admission.admit_head(method, path, CIMultiDict(lines), caller, (HERE, NAMED), doorman)


@pytest.mark.parametrize(("case", "head"), ADMITTED, ids=[case[0] for case, _ in ADMITTED])
def test_a_head_is_admitted(case: Case, head: Head) -> None:
    assert admit(case) == head


@pytest.mark.parametrize(("case", "status", "headers"), REFUSED, ids=[f"{case[0]} is {n}" for case, n, _ in REFUSED])
def test_a_head_is_refused(case: Case, status: int, headers: tuple[tuple[str, str], ...]) -> None:
    rejection = admit(case)
    assert isinstance(rejection, Rejection)
    assert (rejection.status, rejection.code, rejection.headers) == (status, -32600, headers)
    assert rejection.message


def test_a_local_listener_is_for_local_hosts() -> None:
    assert isinstance(admit(("", "POST", "127.0.0.1:1", "/mcp", POST), loopback_only=True), Head)
    refused = admit(("", "POST", "mcp.example.com", "/mcp", POST), loopback_only=True)
    assert isinstance(refused, Rejection)
    assert refused.status == 403


LOCAL, PUBLIC = True, False
ORIGINS: list[tuple[str, str, list[str], bool, bool]] = [
    # sentence, Host, Origin lines, where the listener is, allowed
    ("no Origin is no browser", "localhost:8080", [], LOCAL, True),
    ("a Host of any port", "127.0.0.1:1", [], LOCAL, True),
    ("a Host without a port", "localhost", [], LOCAL, True),
    ("a Host in capitals with its final dot", "LocalHost.:80", [], LOCAL, True),
    ("an IPv6 Host", "[::1]:8080", [], LOCAL, True),
    ("another Host is a rebound name", "evil.example:8080", [], LOCAL, False),
    ("a Host that starts like one", "localhost.evil.example", [], LOCAL, False),
    ("a Host that ends like one", "evil-localhost", [], LOCAL, False),
    ("an address of the network", "192.168.0.1:8080", [], LOCAL, False),
    ("an empty Host", "", [], LOCAL, False),
    ("a local Origin", "localhost:8080", ["http://localhost:3000"], LOCAL, True),
    ("a local Origin under the other name", "127.0.0.1:8080", ["https://[::1]:3000"], LOCAL, True),
    ("a local Origin of any scheme", "localhost", ["vscode-webview://localhost"], LOCAL, True),
    ("another Origin", "localhost:8080", ["https://evil.example"], LOCAL, False),
    ("another Origin whose path is local", "localhost", ["https://evil.example/localhost"], LOCAL, False),
    ("an Origin that starts like a local one", "localhost", ["http://localhost.evil.example"], LOCAL, False),
    ("an Origin whose user is local", "localhost", ["http://localhost:x@evil.example"], LOCAL, False),
    ("the Origin of a sandbox", "localhost:8080", ["null"], LOCAL, False),
    ("an empty Origin", "localhost:8080", [""], LOCAL, False),
    ("an Origin of no host", "localhost:8080", ["http://"], LOCAL, False),
    ("an Origin without a scheme", "localhost:8080", ["localhost"], LOCAL, False),
    ("two Origins of which one is local", "localhost", ["http://localhost", "https://evil.example"], LOCAL, False),
    ("any Host on a public listener", "mcp.example.com", [], PUBLIC, True),
    ("an Origin that is the Host", "mcp.example.com", ["https://mcp.example.com"], PUBLIC, True),
    (
        "an Origin that is the Host in other letters",
        "MCP.example.com:444",
        ["https://mcp.Example.com:444"],
        PUBLIC,
        True,
    ),
    ("an Origin that is the Host but for the port", "mcp.example.com:444", ["https://mcp.example.com"], PUBLIC, False),
    ("an Origin that is another Host", "mcp.example.com", ["https://example.com"], PUBLIC, False),
    ("a local Origin on a public listener", "mcp.example.com", ["http://localhost:3000"], PUBLIC, False),
    ("the Origin of a sandbox on a public listener", "null", ["null"], PUBLIC, False),
    ("an Origin of no host where there is no Host", "", ["http://"], PUBLIC, False),
]


@pytest.mark.parametrize(
    ("host", "origins", "loopback_only", "allowed"), [row[1:] for row in ORIGINS], ids=[row[0] for row in ORIGINS]
)
def test_an_origin_is_checked(host: str, origins: list[str], loopback_only: bool, allowed: bool) -> None:
    doorman = Doorman(() if loopback_only else ("mcp.example.com",), (), loopback_only)
    rejection = doorman.host_refused(host) or doorman.origin_refused(origins, "http", host)
    assert (rejection is None) == allowed
    if rejection is not None:
        assert (rejection.status, rejection.code) == (403 if host else 400, -32600)
        assert all(len(origin) < 5 or origin not in rejection.message for origin in origins)


@pytest.mark.parametrize(
    ("values", "json", "sse"),
    [
        ([], True, True),
        (["application/json, text/event-stream"], True, True),
        (["application/json", "text/event-stream"], True, True),
        (["text/event-stream,application/json"], True, True),
        (["APPLICATION/JSON;charset=utf-8"], True, False),
        (["text/event-stream"], False, True),
        (["*/*"], True, True),
        (["application/*"], True, False),
        (["text/*"], False, True),
        (["text/html, */*;q=0.1"], True, True),
        (["application/json;q=0.5, text/event-stream; q = 0.001"], True, True),
        (["application/json;q=0, text/event-stream"], False, True),
        (["application/json; q=0.000, */*"], False, True),
        (["*/*, text/event-stream;q=0"], True, False),
        (["text/event-stream;q=0, text/*"], False, False),
        (["application/*;q=0, */*"], False, True),
        (["*/*;q=0"], False, False),
        (["text/html"], False, False),
        (["application/json-seq"], False, False),
        ([""], False, False),
        ([",;,"], False, False),
    ],
)
def test_what_a_caller_reads(values: list[str], json: bool, sse: bool) -> None:
    assert admission.acceptance(values) == Acceptance(json, sse)


@pytest.mark.parametrize(
    ("lines", "message", "expected"),
    [
        ({"Mcp-Protocol-Version": MODERN}, jsonrpc.Request(1, "tools/list", {}), "modern"),
        ({"mcp-session-id": "s"}, jsonrpc.Request(1, "tools/list", {}), "legacy"),
        ({"mcp-method": "tools/list"}, jsonrpc.Request(1, "tools/list", {}), "modern"),
        ({}, jsonrpc.Request(1, "tools/list", {"_meta": {PREFIX + "protocolVersion": MODERN}}), "modern"),
        ({}, jsonrpc.Request(1, "tools/list", {"_meta": MODERN}), "legacy"),
        ({}, jsonrpc.Request(1, "server/discover", {"_meta": [1]}), "modern"),
        ({"MCP-Session-Id": ""}, jsonrpc.Notification("notifications/initialized", {}), "legacy"),
        ({}, jsonrpc.Notification("notifications/initialized", {}), "legacy"),
    ],
)
def test_the_era_is_read_from_headers_and_envelope(lines: dict[str, str], message: Any, expected: str) -> None:
    assert admission.era_of(CIMultiDict(lines), message) == expected


@pytest.mark.parametrize("version", [None, *LEGACY_VERSIONS])
def test_a_session_may_name_any_version_that_has_sessions(version: str | None) -> None:
    assert admission.legacy_version(version) is None


@pytest.mark.parametrize("version", ["2099-01-01", "", "garbage", MODERN, "2025-11-25 "])
def test_a_session_is_refused_an_unknown_version(version: str) -> None:
    rejection = admission.legacy_version(version)
    assert rejection is not None
    assert (rejection.status, rejection.code) == (400, -32600)
    assert "2025-11-25, 2025-06-18, 2025-03-26, 2024-11-05" in rejection.message


@pytest.mark.parametrize(
    ("params", "meta"),
    [
        ({}, {}),
        ({"_meta": {"a": 1}, "b": 2}, {"a": 1}),
        ({"_meta": {}}, {}),
        ({"_meta": None}, {}),
        ({"_meta": []}, {}),
        ({"_meta": "text"}, {}),
        ({"_meta": 0}, {}),
    ],
)
def test_meta_is_an_object_or_nothing(params: dict[str, Any], meta: dict[str, Any]) -> None:
    assert admission.meta_of(params) == meta


@pytest.mark.parametrize(
    ("value", "token"),
    [
        ("t", "t"),
        ("", ""),
        (0, 0),
        (2**80, 2**80),
        (-1, -1),
        (True, None),
        (False, None),
        (1.5, None),
        (None, None),
        ([1], None),
        ({"a": 1}, None),
    ],
)
def test_a_progress_token_is_a_string_or_an_integer(value: Any, token: str | int | None) -> None:
    found = admission.progress_token({"progressToken": value})
    assert found == token
    assert type(found) is type(token)


def test_no_progress_token_is_none() -> None:
    assert admission.progress_token({"progress": 1}) is None
