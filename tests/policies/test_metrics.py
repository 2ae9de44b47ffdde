"""Labels come from closed sets, whatever is sent."""

import pytest

from policies.delivery import Message
from policies.errors import Rejection
from policies.exchange import Answer, Cancelled, Dialect, Event, Fail, Reply
from policies.mcp import Json
from policies.metrics import ask_outcome, ended_as, error_type, method_label, outcome, relayed_asks
from policies.peek import Splice

LEGACY = Dialect("legacy", "2025-11-25")


@pytest.mark.parametrize(
    ("method", "label"),
    [
        ("tools/call", "tools/call"),
        ("initialize", "initialize"),
        ("subscriptions/listen", "subscriptions/listen"),
        ("notifications/cancelled", "notifications/cancelled"),
        ("", ""),
        ("tools/Call", "_OTHER"),
        ("tools/call ", "_OTHER"),
        ('x"} 1\nup 1', "_OTHER"),
    ],
)
def test_a_method_is_one_of_the_specifications_or_other(method: str, label: str) -> None:
    assert method_label(method) == label


@pytest.mark.parametrize(
    ("code", "http", "label"),
    [
        (-32601, None, "-32601"),
        (-32601, 404, "-32601"),
        (-32020, 400, "-32020"),
        (-32600, 401, "401"),
        (-32600, 413, "413"),
        (-32600, None, "-32600"),
        (-32600, 299, "-32600"),
        (-32603, 504, "504"),
        (-32603, None, "-32603"),
        (-32001, 404, "-32001"),
        (17, None, "_OTHER"),
        (-32099, 502, "_OTHER"),
    ],
)
def test_an_error_is_a_code_a_status_or_other(code: int, http: int | None, label: str) -> None:
    assert error_type(code, http) == label
    assert outcome(Message(b"", last=True, rejection=Rejection(code, "m", http=http))) == label
    assert ended_as(Fail(code, "m", None, http)) == label


@pytest.mark.parametrize(
    ("event", "label"),
    [
        (Answer({}, LEGACY), ""),
        (Answer({"isError": False}, LEGACY), ""),
        (Answer({"isError": True}, LEGACY), "tool_error"),
        (Answer({"isError": "true"}, LEGACY), ""),
        (Cancelled(), "cancelled"),
        (None, "cancelled"),
    ],
)
def test_an_exchange_ended_as_its_last_event_says(event: Event | None, label: str) -> None:
    assert ended_as(event) == label


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ('"result":{"content":[],"isError":false}', ""),
        ('"result":{"content":[],"isError": true}', "tool_error"),
        ('"result":{"content":[{"type":"text","text":"\\"isError\\":true"}]}', ""),
        ('"result":{"structuredContent":{"isError":true}}', ""),
        ('"result":{"structuredContent":{"isError":true},"isError":true}', "tool_error"),
        ('"result":{"isError":"odd"}', ""),
        ('"error":{"code":-32602,"message":"m"}', -32602),
    ],
)
def test_a_spliced_answer_is_a_failure_where_it_says_so_itself(answer: str, error: int | str) -> None:
    splice = Splice(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}')
    assert splice.judge(f'{{"jsonrpc":"2.0","id":1,{answer}}}'.encode()) == "last"
    assert splice.error == error


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        (Reply("k", {"action": "accept", "content": {"x": 1}}), "answered"),
        (Reply("k", {"action": "decline"}), "declined"),
        (Reply("k", {"action": "cancel"}), "cancelled"),
        (Reply("k", {"action": ["cancel"]}), "answered"),
        (Reply("k", {"roots": []}), "answered"),
        (Reply("k", error={"code": -1, "message": "m"}), "error"),
        (None, "abandoned"),
    ],
)
def test_what_came_of_a_question(reply: Reply | None, label: str) -> None:
    assert ask_outcome(reply) == label


@pytest.mark.parametrize(
    ("result", "kinds"),
    [
        ({"content": []}, None),
        ({"resultType": "complete", "inputRequests": {"k": {"method": "roots/list"}}}, None),
        ({"resultType": "input_required"}, ()),
        ({"resultType": "input_required", "inputRequests": [1]}, ()),
        (
            {
                "resultType": "input_required",
                "inputRequests": {"a": {"method": "elicitation/create"}, "b": {"method": ["x"]}, "c": 1},
            },
            ("elicitation", "_OTHER"),
        ),
    ],
)
def test_what_an_answer_asks_of_its_client(result: Json, kinds: tuple[str, ...] | None) -> None:
    assert relayed_asks(result) == kinds
