"""The era of a request, and of an upstream by its answer to `server/discover`."""

from typing import Any

import pytest

from policies import era
from policies.era import Verdict
from policies.mcp import LEGACY_VERSIONS, META_VERSION, Json

MODERN, LEGACY, AHEAD = "2026-07-28", "2025-11-25", "2099-01-01"
SESSION = METHOD_HEADER = True

REQUESTS: list[tuple[str, str | None, bool, bool, str, Any, str]] = [
    # sentence, MCP-Protocol-Version, Mcp-Session-Id, Mcp-Method, method, version in _meta, era
    ("a whole modern request is modern", MODERN, False, METHOD_HEADER, "tools/list", MODERN, "modern"),
    ("a modern header alone makes it modern", MODERN, False, False, "tools/list", None, "modern"),
    ("a modern header outdoes a session id", MODERN, SESSION, METHOD_HEADER, "tools/call", MODERN, "modern"),
    ("a modern header outdoes a session id without an envelope", MODERN, SESSION, False, "tools/call", None, "modern"),
    ("a modern header outdoes a legacy version in _meta", MODERN, False, False, "tools/list", LEGACY, "modern"),
    ("an envelope outdoes a legacy header", LEGACY, False, METHOD_HEADER, "tools/list", MODERN, "modern"),
    ("an envelope outdoes a legacy header in a session", LEGACY, SESSION, False, "tools/list", MODERN, "modern"),
    ("an envelope alone makes it modern", None, False, False, "tools/list", MODERN, "modern"),
    ("an envelope alone outdoes a session id", None, SESSION, False, "tools/list", MODERN, "modern"),
    ("an envelope of a later revision is modern", None, False, False, "tools/list", AHEAD, "modern"),
    ("an envelope of a later revision outdoes a session id", None, SESSION, False, "tools/list", AHEAD, "modern"),
    ("an envelope that is no string is a modern mistake", None, False, False, "tools/list", 7, "modern"),
    ("an envelope of odd JSON is a modern mistake", None, False, False, "tools/list", {"a": [1]}, "modern"),
    ("a header of a later revision is modern", AHEAD, False, False, "tools/list", None, "modern"),
    ("a header of a later revision with its envelope is modern", AHEAD, False, True, "tools/list", AHEAD, "modern"),
    ("a header of garbage is modern", "garbage", False, False, "tools/list", None, "modern"),
    ("an empty header is modern", "", False, False, "tools/list", None, "modern"),
    ("a method header alone makes it modern", None, False, METHOD_HEADER, "tools/list", None, "modern"),
    ("server/discover is modern however bare", None, False, False, "server/discover", None, "modern"),
    ("subscriptions/listen is modern however bare", None, False, False, "subscriptions/listen", None, "modern"),
    ("initialize with an envelope is a modern request", MODERN, False, True, "initialize", MODERN, "modern"),
    ("initialize with nothing but an envelope is one too", None, False, False, "initialize", MODERN, "modern"),
    ("a bare request is legacy", None, False, False, "tools/list", None, "legacy"),
    ("a bare ping is legacy", None, False, False, "ping", None, "legacy"),
    ("a bare initialize is legacy", None, False, False, "initialize", None, "legacy"),
    ("an initialize of a dual-era client is legacy", None, False, METHOD_HEADER, "initialize", None, "legacy"),
    ("an initialize under a legacy header is legacy", LEGACY, False, False, "initialize", None, "legacy"),
    ("an initialize under a later header is legacy", AHEAD, False, False, "initialize", None, "legacy"),
    ("an initialize under a modern header is legacy", MODERN, False, METHOD_HEADER, "initialize", None, "legacy"),
    ("an initialize in a session is legacy", None, SESSION, False, "initialize", None, "legacy"),
    ("a request of a session is legacy", LEGACY, SESSION, False, "tools/call", None, "legacy"),
    ("a request of a session needs no version header", None, SESSION, False, "tools/call", None, "legacy"),
    ("a method header in a session changes nothing", LEGACY, SESSION, METHOD_HEADER, "tools/call", None, "legacy"),
    ("nor does it without a version header", None, SESSION, METHOD_HEADER, "tools/call", None, "legacy"),
    ("a session may name its version in _meta", LEGACY, SESSION, False, "tools/call", LEGACY, "legacy"),
    ("a session may name its version in _meta alone", None, SESSION, False, "tools/call", LEGACY, "legacy"),
    ("a later header in a session is a legacy mistake", AHEAD, SESSION, False, "tools/call", None, "legacy"),
    ("it is so whatever _meta says", AHEAD, SESSION, False, "tools/call", AHEAD, "legacy"),
    ("a legacy header without a session is a legacy mistake", LEGACY, False, False, "tools/call", None, "legacy"),
    ("it is so with a method header", LEGACY, False, METHOD_HEADER, "tools/call", None, "legacy"),
    ("it is so for what only modern servers have", LEGACY, False, False, "server/discover", None, "legacy"),
    ("what only modern servers have is legacy in a session", None, SESSION, False, "server/discover", None, "legacy"),
    ("a response is a session's", LEGACY, SESSION, False, "", None, "legacy"),
    ("a response without anything is legacy", None, False, False, "", None, "legacy"),
    ("a response under a modern header is modern", MODERN, SESSION, False, "", None, "modern"),
]


@pytest.mark.parametrize(
    ("version", "session", "method_header", "method", "claimed", "expected"),
    [row[1:] for row in REQUESTS],
    ids=[row[0] for row in REQUESTS],
)
def test_the_era_of_a_request(
    version: str | None, session: bool, method_header: bool, method: str, claimed: Any, expected: str
) -> None:
    meta: Json = {"traceparent": "00-0-0-0"} | ({META_VERSION: claimed} if claimed is not None else {})
    assert era.of_request(version, session, method_header, method, meta) == expected


@pytest.mark.parametrize("version", LEGACY_VERSIONS)
@pytest.mark.parametrize("session", [True, False])
def test_every_legacy_version_makes_a_request_legacy(version: str, session: bool) -> None:
    assert era.of_request(version, session, True, "tools/list", {}) == "legacy"


def result(**members: Any) -> Json:
    return {"jsonrpc": "2.0", "id": 1, "result": members}


def error(code: Any, data: Any = None) -> Json:
    failure = {"code": code, "message": "m"} | ({"data": data} if data is not None else {})
    return {"jsonrpc": "2.0", "id": 1, "error": failure}


GOOD = {"supportedVersions": [MODERN], "capabilities": {"tools": {}}, "resultType": "complete", "ttlMs": 0}
LEGACY_VERDICT = Verdict("legacy")
BY_ITS_RULES = Verdict("modern", (MODERN,))

ANSWERS: list[tuple[str, int, Any, Verdict]] = [
    ("ok", 200, result(**GOOD), Verdict("modern", (MODERN,), GOOD)),
    (
        "ok for both eras",
        200,
        result(supportedVersions=[LEGACY, MODERN], x=1),
        Verdict("modern", (MODERN,), {"supportedVersions": [LEGACY, MODERN], "x": 1}),
    ),
    (
        "ok with a later version too",
        200,
        result(supportedVersions=[AHEAD, MODERN]),
        Verdict("modern", (MODERN,), {"supportedVersions": [AHEAD, MODERN]}),
    ),
    (
        "ok, and all that it should say besides is missing",
        200,
        result(supportedVersions=[MODERN]),
        Verdict("modern", (MODERN,), {"supportedVersions": [MODERN]}),
    ),
    (
        "ok among odd versions",
        200,
        result(supportedVersions=[None, 7, {}, [MODERN], MODERN]),
        Verdict("modern", (MODERN,), {"supportedVersions": [None, 7, {}, [MODERN], MODERN]}),
    ),
    (
        "ok, legacy versions only",
        200,
        result(supportedVersions=[LEGACY, "2025-06-18"]),
        Verdict("legacy", (LEGACY, "2025-06-18")),
    ),
    ("ok, no version that we know", 200, result(supportedVersions=[AHEAD]), Verdict("incompatible", (AHEAD,))),
    (
        "ok, a later and a legacy version",
        200,
        result(supportedVersions=[AHEAD, LEGACY]),
        Verdict("legacy", (AHEAD, LEGACY)),
    ),
    ("ok, no versions at all", 200, result(supportedVersions=[]), LEGACY_VERDICT),
    ("ok, versions of a wrong type", 200, result(supportedVersions=MODERN), LEGACY_VERDICT),
    ("ok, an empty result", 200, result(), LEGACY_VERDICT),
    ("a result that is no object", 200, {"jsonrpc": "2.0", "id": 1, "result": [MODERN]}, LEGACY_VERDICT),
    ("neither result nor error", 200, {"jsonrpc": "2.0", "id": 1}, LEGACY_VERDICT),
    ("200 -32601", 200, error(-32601), LEGACY_VERDICT),
    ("404 -32601", 404, error(-32601), LEGACY_VERDICT),
    ("400 -32601", 400, error(-32601), LEGACY_VERDICT),
    ("400 -32600", 400, error(-32600), LEGACY_VERDICT),
    ("400 -32602", 400, error(-32602), LEGACY_VERDICT),
    ("400 -32000", 400, error(-32000), LEGACY_VERDICT),
    ("400 -32001, the header mismatch of a draft", 400, error(-32001), LEGACY_VERDICT),
    ("400 -32022 that names our version", 400, error(-32022, {"supported": [MODERN]}), Verdict("retry", (MODERN,))),
    (
        "400 -32022 that names both eras",
        400,
        error(-32022, {"supported": [LEGACY, MODERN]}),
        Verdict("retry", (MODERN,)),
    ),
    (
        "400 -32022 that names legacy versions",
        400,
        error(-32022, {"supported": [LEGACY]}),
        Verdict("legacy", (LEGACY,)),
    ),
    (
        "400 -32022 that names later versions",
        400,
        error(-32022, {"supported": [AHEAD]}),
        Verdict("incompatible", (AHEAD,)),
    ),
    ("400 -32022 without data", 400, error(-32022), LEGACY_VERDICT),
    ("400 -32022 that names none", 400, error(-32022, {"supported": []}), LEGACY_VERDICT),
    ("400 -32022 with data of a wrong type", 400, error(-32022, [MODERN]), LEGACY_VERDICT),
    ("400 -32022 with versions of a wrong type", 400, error(-32022, {"supported": 5}), LEGACY_VERDICT),
    ("400 -32022 with a text of versions", 400, error(-32022, {"supported": MODERN}), LEGACY_VERDICT),
    ("400 -32022 with an object of versions", 400, error(-32022, {"supported": {MODERN: 1}}), LEGACY_VERDICT),
    ("200 -32022", 200, error(-32022, {"supported": [MODERN]}), Verdict("retry", (MODERN,))),
    ("400 -32020", 400, error(-32020), BY_ITS_RULES),
    ("400 -32021", 400, error(-32021, {"requiredCapabilities": {"sampling": {}}}), BY_ITS_RULES),
    ("400 with a code that is an array", 400, error([-32020]), LEGACY_VERDICT),
    ("400 with a code that is an object", 400, error({}), LEGACY_VERDICT),
    ("400 with a code that is a string", 400, error("-32020"), LEGACY_VERDICT),
    ("400 with an error that is a string", 400, {"error": "invalid_request"}, LEGACY_VERDICT),
    ("400 with text", 400, None, LEGACY_VERDICT),
    ("404 with text", 404, None, LEGACY_VERDICT),
    ("405", 405, None, LEGACY_VERDICT),
    ("406", 406, None, LEGACY_VERDICT),
    ("415", 415, None, LEGACY_VERDICT),
    ("429", 429, None, LEGACY_VERDICT),
    ("202", 202, None, LEGACY_VERDICT),
    ("200 and empty, or HTML", 200, None, LEGACY_VERDICT),
    ("401", 401, None, Verdict("unauthorized")),
    ("403", 403, None, Verdict("unauthorized")),
    ("401 with a modern error", 401, error(-32022, {"supported": [MODERN]}), Verdict("unauthorized")),
    ("500", 500, None, Verdict("unavailable")),
    ("502", 502, None, Verdict("unavailable")),
    ("503", 503, None, Verdict("unavailable")),
    ("503 with a modern error", 503, error(-32020), Verdict("unavailable")),
    ("500 with a result", 500, result(**GOOD), Verdict("unavailable")),
]


@pytest.mark.parametrize(
    ("status", "body", "verdict"), [row[1:] for row in ANSWERS], ids=[f"{row[0]} is {row[3].kind}" for row in ANSWERS]
)
def test_an_answer_to_the_probe(status: int, body: Json | None, verdict: Verdict) -> None:
    assert era.judge(status, body) == verdict
