"""What a client gets to see of an exchange: an event in, one JSON-RPC message out or none."""

import copy
from dataclasses import replace
from typing import Any

import pytest

from policies import delivery, jsonrpc
from policies.delivery import Addressee, deliver
from policies.errors import Rejection
from policies.exchange import Answer, Ask, Cancelled, Dialect, Event, Fail, Notify, Opened, Withdraw, is_last
from policies.mcp import Json

MODERN = Dialect("modern", "2026-07-28")
L11, L06, L2024 = (Dialect("legacy", version) for version in ("2025-11-25", "2025-06-18", "2024-11-05"))
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
INFO = {"name": "s", "version": "1"}
PROGRESS, LOG = "notifications/progress", "notifications/message"
TOOLS_CHANGED = "notifications/tools/list_changed"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


def to(dialect: Dialect, method: str = "tools/call", **changed: Any) -> Addressee:
    return replace(Addressee(dialect, 7, method, {"name": "t"}, None, "ex"), **changed)


def note(method: str, params: Json | None = None) -> Json:
    return {"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})}


def result(value: Json, ident: Any = 7) -> Json:
    return {"jsonrpc": "2.0", "id": ident, "result": value}


def error(code: int, message: str, **data: Any) -> Json:
    return {"jsonrpc": "2.0", "id": 7, "error": {"code": code, "message": message, **data}}


LISTENER = to(MODERN, "subscriptions/listen", id="sub-1")
STREAM = to(L11, "subscriptions/listen", id=None)
STEP = {"progress": 1, "total": 2, "message": "größe", "x": 1}

DELIVERED: list[tuple[str, Event, Addressee, Json | None]] = [
    # notifications
    (
        "progress gets the client's token",
        Notify(PROGRESS, STEP, MODERN),
        to(MODERN, token="t"),
        note(PROGRESS, {**STEP, "progressToken": "t"}),
    ),
    (
        "a token of 0 is one",
        Notify(PROGRESS, STEP, L11),
        to(L11, token=0),
        note(PROGRESS, {**STEP, "progressToken": 0}),
    ),
    (
        "an empty token is one",
        Notify(PROGRESS, STEP, L11),
        to(MODERN, token=""),
        note(PROGRESS, {**STEP, "progressToken": ""}),
    ),
    ("progress nobody asked for is none", Notify(PROGRESS, STEP, L11), to(L11), None),
    (
        "the upstream's token never shows",
        Notify(PROGRESS, {"progress": 1, "progressToken": 99}, L11),
        to(L11, token="t"),
        note(PROGRESS, {"progress": 1, "progressToken": "t"}),
    ),
    (
        "a log message passes",
        Notify(LOG, {"level": "info", "data": [1]}, MODERN),
        to(L11),
        note(LOG, {"level": "info", "data": [1]}),
    ),
    ("a list change passes", Notify(TOOLS_CHANGED, {}, L11), to(L11), note(TOOLS_CHANGED)),
    (
        "what nobody knows passes",
        Notify("notifications/x", {"_meta": {"k": 1}, "y": None}, MODERN),
        to(L2024),
        note("notifications/x", {"_meta": {"k": 1}, "y": None}),
    ),
    (
        "a listener gets its own id",
        Notify(TOOLS_CHANGED, {}, MODERN),
        LISTENER,
        note(TOOLS_CHANGED, {"_meta": {SUBSCRIPTION: "sub-1"}}),
    ),
    (
        "a listener's id has its own type",
        Notify(TOOLS_CHANGED, {}, L11),
        replace(LISTENER, id=0),
        note(TOOLS_CHANGED, {"_meta": {SUBSCRIPTION: 0}}),
    ),
    (
        "it takes the place of the upstream's",
        Notify(TOOLS_CHANGED, {"_meta": {SUBSCRIPTION: 12, "k": 1}, "x": 1}, MODERN),
        LISTENER,
        note(TOOLS_CHANGED, {"_meta": {SUBSCRIPTION: "sub-1", "k": 1}, "x": 1}),
    ),
    (
        "it takes the place of odd _meta",
        Notify(TOOLS_CHANGED, {"_meta": [1]}, L11),
        LISTENER,
        note(TOOLS_CHANGED, {"_meta": {SUBSCRIPTION: "sub-1"}}),
    ),
    (
        "a modern listener is acknowledged",
        Notify(ACKNOWLEDGED, {"notifications": {"toolsListChanged": True}}, L11),
        LISTENER,
        note(ACKNOWLEDGED, {"notifications": {"toolsListChanged": True}, "_meta": {SUBSCRIPTION: "sub-1"}}),
    ),
    ("a legacy stream knows no acknowledgement", Notify(ACKNOWLEDGED, {"notifications": {}}, MODERN), STREAM, None),
    (
        "a legacy stream gets no subscription id",
        Notify(TOOLS_CHANGED, {"_meta": {SUBSCRIPTION: 12}}, MODERN),
        STREAM,
        note(TOOLS_CHANGED),
    ),
    (
        "a legacy stream keeps the rest of _meta",
        Notify(TOOLS_CHANGED, {"_meta": {SUBSCRIPTION: 12, "k": 1}}, MODERN),
        STREAM,
        note(TOOLS_CHANGED, {"_meta": {"k": 1}}),
    ),
    (
        "between legacy sides nothing is touched",
        Notify("notifications/x", {"_meta": {SUBSCRIPTION: 12}}, L11),
        STREAM,
        note("notifications/x", {"_meta": {SUBSCRIPTION: 12}}),
    ),
    # asks
    (
        "an ask has an id that tells the exchange",
        Ask("k1", "roots/list", {}, L11),
        to(L11),
        {"jsonrpc": "2.0", "id": "ex.k1", "method": "roots/list"},
    ),
    (
        "an ask keeps its params",
        Ask("k1", "elicitation/create", {"message": "m", "_meta": {"k": 1}}, L11),
        to(L06),
        {
            "jsonrpc": "2.0",
            "id": "ex.k1",
            "method": "elicitation/create",
            "params": {"message": "m", "_meta": {"k": 1}},
        },
    ),
    (
        "an ask on a stream of no request",
        Ask("k1", "roots/list", {}, L11),
        STREAM,
        {"jsonrpc": "2.0", "id": "ex.k1", "method": "roots/list"},
    ),
    (
        "an ask that is withdrawn",
        Withdraw("k1", {"requestId": 5, "reason": "late"}, L11),
        to(L11),
        note("notifications/cancelled", {"requestId": "ex.k1", "reason": "late"}),
    ),
    # answers
    (
        "a modern answer to a modern client is untouched",
        Answer({"resultType": "x", "_meta": {"k": [1]}, "content": None}, MODERN),
        to(MODERN),
        result({"resultType": "x", "_meta": {"k": [1]}, "content": None}),
    ),
    (
        "a modern client may be asked for input",
        Answer({"resultType": "input_required", "inputRequests": {"a": {}}, "requestState": "s"}, MODERN),
        to(MODERN),
        result({"resultType": "input_required", "inputRequests": {"a": {}}, "requestState": "s"}),
    ),
    (
        "a legacy answer in the client's version is untouched",
        Answer({"ttlMs": 1, "resultType": "x", "content": [{"type": "audio"}]}, L2024),
        to(L2024),
        result({"ttlMs": 1, "resultType": "x", "content": [{"type": "audio"}]}),
    ),
    (
        "a legacy answer for an older client",
        Answer({"content": [{"type": "audio", "mimeType": "m"}]}, L11),
        to(L2024),
        result({"content": [{"type": "text", "text": "[audio, m]"}]}),
    ),
    (
        "a legacy answer for a modern client",
        Answer({"content": []}, L2024, INFO),
        to(MODERN),
        result({"resultType": "complete", "content": [], "_meta": {SERVER_INFO: INFO}}),
    ),
    (
        "a legacy answer of a server without a name",
        Answer({"tools": []}, L11),
        to(MODERN, "tools/list"),
        result({"resultType": "complete", "tools": [], "ttlMs": 0, "cacheScope": "private"}),
    ),
    (
        "a modern answer for a legacy client",
        Answer(
            {
                "resultType": "complete",
                "content": [{"type": "resource_link", "name": "n", "uri": "u:v"}],
                "_meta": {SERVER_INFO: INFO},
            },
            MODERN,
        ),
        to(L2024),
        result({"content": [{"type": "text", "text": "n u:v"}]}),
    ),
    (
        "the end of a subscription is tagged",
        Answer({}, L11),
        LISTENER,
        result({"resultType": "complete", "_meta": {SUBSCRIPTION: "sub-1"}}, "sub-1"),
    ),
    (
        "the end of a modern subscription is retagged",
        Answer({"resultType": "complete", "_meta": {SUBSCRIPTION: 3, "k": 1}}, MODERN),
        LISTENER,
        result({"resultType": "complete", "_meta": {SUBSCRIPTION: "sub-1", "k": 1}}, "sub-1"),
    ),
    ("an answer has the client's id in its type", Answer({}, L11), to(L11, id="7"), result({}, "7")),
    ("an id of 0 is one", Answer({}, L11), to(L11, id=0), result({}, 0)),
    ("an empty id is one", Answer({}, L11), to(L11, id=""), result({}, "")),
    # what has no message
    ("a stream that opened says nothing", Opened(), STREAM, None),
    ("a cancelled call gets no answer", Cancelled(), to(L11), None),
    ("nor does a modern one", Cancelled(), to(MODERN), None),
]


@pytest.mark.parametrize(("event", "addressee", "wire"), [r[1:] for r in DELIVERED], ids=[r[0] for r in DELIVERED])
def test_an_event_becomes_a_message(event: Event, addressee: Addressee, wire: Json | None) -> None:
    before = copy.deepcopy(event)
    message = deliver(event, addressee)
    if wire is None:
        assert message is None
    else:
        assert message is not None
        assert jsonrpc.loads(message.raw) == wire
        assert message.last is is_last(event)
        assert message.rejection is None
    assert event == before


URI: Json = {"uri": "file:///a"}
READ = {"method": "resources/read", "params": URI}
FAILED: list[tuple[str, Fail, Addressee, Json, int]] = [
    # sentence, event, addressee, what goes over the wire, HTTP status for a modern client
    (
        "a legacy error for a modern client",
        Fail(-32002, "m", None, dialect=L11),
        to(MODERN, **READ),
        error(-32602, "m", data=URI),
        200,
    ),
    (
        "code 0 of a missing resource",
        Fail(0, "m", None, dialect=L06),
        to(MODERN, **READ),
        error(-32602, "m", data=URI),
        200,
    ),
    (
        "a modern error for a legacy client",
        Fail(-32602, "m", URI, dialect=MODERN),
        to(L11, **READ),
        error(-32002, "m", data=URI),
        200,
    ),
    (
        "a URL to open, for a modern client",
        Fail(-32042, "m", {"elicitations": []}, dialect=L11),
        to(MODERN),
        error(-32021, "m", data={"requiredCapabilities": {"elicitation": {"url": {}}}}),
        400,
    ),
    (
        "a URL to open, for a legacy client",
        Fail(-32042, "m", {"elicitations": []}, dialect=L11),
        to(L11),
        error(-32042, "m", data={"elicitations": []}),
        200,
    ),
    (
        "a legacy error between legacy sides",
        Fail(-32002, "m", URI, dialect=L2024),
        to(L11, **READ),
        error(-32002, "m", data=URI),
        200,
    ),
    (
        "a modern error between modern sides",
        Fail(-32602, "m", URI, dialect=MODERN),
        to(MODERN, **READ),
        error(-32602, "m", data=URI),
        200,
    ),
    ("a modern status between modern sides", Fail(-32000, "m", None, 429, MODERN), to(MODERN), error(-32000, "m"), 429),
    ("an error of our own", Fail(-32603, "m", None, 502), to(MODERN), error(-32603, "m"), 502),
    (
        "an error of our own for a legacy client",
        Fail(-32002, "m", {"k": 0}, 503),
        to(L11, **READ),
        error(-32002, "m", data={"k": 0}),
        503,
    ),
    ("data that is false", Fail(1, "m", False, dialect=L11), to(L11), error(1, "m", data=False), 200),
    ("a message of any letters", Fail(1, "größe \ud800", None, dialect=L11), to(MODERN), error(1, "größe \ud800"), 200),
]


@pytest.mark.parametrize(("event", "addressee", "wire", "status"), [r[1:] for r in FAILED], ids=[r[0] for r in FAILED])
def test_a_failure_becomes_an_error(event: Fail, addressee: Addressee, wire: Json, status: int) -> None:
    message = deliver(event, addressee)
    assert message is not None
    assert jsonrpc.loads(message.raw) == wire
    assert message.last
    assert message.rejection is not None
    assert (message.rejection.code, message.rejection.status) == (wire["error"]["code"], status)


def test_an_upstreams_status_for_one_era_is_none_for_the_other() -> None:
    message = deliver(Fail(-32601, "m", None, 404, MODERN), to(L11))
    assert message is not None
    assert message.rejection is not None
    assert message.rejection.http is None, "404 would tell a legacy client that its session is gone"


def test_headers_of_our_own_failure_go_along() -> None:
    message = deliver(Fail(-32603, "m", None, 503, headers=(("Retry-After", "1"),)), to(MODERN))
    assert message is not None
    assert message.rejection is not None
    assert message.rejection.headers == (("Retry-After", "1"),)


@pytest.mark.parametrize("kind", ["input_required", "task", None, 5])
def test_a_result_without_a_legacy_form_is_an_error(kind: Any) -> None:
    message = deliver(Answer({"resultType": kind, "content": []}, MODERN), to(L11))
    assert message is not None
    assert message.last
    assert message.rejection is not None
    wire = jsonrpc.loads(message.raw)
    assert (wire["id"], wire["error"]["code"]) == (7, -32603)
    assert "result" not in wire


def test_an_error_about_an_unreadable_request_has_no_id() -> None:
    message = delivery.error(Rejection(-32700, "m", http=400), None)
    assert jsonrpc.loads(message.raw) == {"jsonrpc": "2.0", "error": {"code": -32700, "message": "m"}}


@pytest.mark.parametrize(
    ("event", "last"),
    [
        (Opened(), False),
        (Notify(PROGRESS, {}, L11), False),
        (Ask("k", "roots/list", {}, L11), False),
        (Withdraw("k", {}, L11), False),
        (Answer({}, L11), True),
        (Fail(1, "m"), True),
        (Cancelled(), True),
    ],
)
def test_nothing_follows_an_answer_a_failure_or_a_cancel(event: Event, last: bool) -> None:
    assert is_last(event) is last
