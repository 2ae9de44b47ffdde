"""The ids of tasks, sealed: where they stand, whose they are, and what of a message they leave untouched.

Specification: io.modelcontextprotocol/tasks (ext-tasks, draft); 2025-11-25 basic/utilities/tasks.
"""

import json
from dataclasses import replace
from typing import Any

import pytest

from policies import task_ids
from policies.errors import Rejection
from policies.jsonrpc import Request, dumps, loads
from policies.sealing import KeyRing, new_key, seal_stably
from policies.task_ids import MAX_ID, TaskIds

Json = dict[str, Any]

KEY, NEWER = new_key("one", b"1" * 32), new_key("two", b"2" * 32)
RING = KeyRing.of(KEY)
IDS = TaskIds(RING, "*/mcp", "one", "client:ci")
OWN = "786512e2-9e0d-44bd-8f29-789f320fe840"
RELATED = "io.modelcontextprotocol/related-task"
LISTEN = "subscriptions/listen"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


def sealed(own: str = OWN, ids: TaskIds = IDS) -> str:
    token: str = ids.result("tools/call", {}, {"resultType": "task", "taskId": own})["taskId"]
    return token


def asked(ids: TaskIds, method: str, params: Json) -> tuple[Json, TaskIds]:
    found = ids.of(Request(1, method, params))
    assert not isinstance(found, Rejection)
    return found[0].params, found[1]


TOKEN = sealed()


def test_an_id_is_opaque_and_fits_into_a_header_as_it_is() -> None:
    assert TOKEN.isascii()
    assert TOKEN.isprintable()
    assert OWN not in TOKEN
    assert len(TOKEN) < 256


def test_a_task_has_one_id_and_each_task_its_own() -> None:
    assert sealed() == TOKEN
    others = [replace(IDS, upstream="two"), replace(IDS, principal=""), replace(IDS, route="*/other")]
    assert len({TOKEN, sealed("another"), *(sealed(ids=ids) for ids in others)}) == 5


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel", "tasks/result"])
@pytest.mark.parametrize("own", [OWN, "", "größe €", 'a"b\\', "x" * 2048], ids=ascii)
def test_a_request_names_the_task_as_its_upstream_does(method: str, own: str) -> None:
    rest = {"inputResponses": {"k": {"taskId": "theirs"}}, "x": 1}
    params, _ = asked(IDS, method, {"taskId": sealed(own), **rest})
    assert params == {"taskId": own, **rest}


STRANGE: list[tuple[str, Any]] = [
    ("its own id", OWN),
    ("none", None),
    ("a number", 5),
    ("an object", {"a": 1}),
    ("nothing", ""),
    ("an altered one", TOKEN[:-1] + ("A" if TOKEN[-1] != "A" else "Q")),
    ("one with more behind it", TOKEN + "A"),
    ("a very long one", TOKEN + "A" * MAX_ID),
    ("another caller's", sealed(ids=replace(IDS, principal="client:ops"))),
    ("one of nobody in particular", sealed(ids=replace(IDS, principal=""))),
    ("another upstream's", sealed(ids=replace(IDS, upstream="two"))),
    ("another route's", sealed(ids=replace(IDS, route="*/other"))),
    ("one under a key that is gone", sealed(ids=replace(IDS, ring=KeyRing.of(NEWER)))),
    ("a token for something else", seal_stably(RING, "cursor", IDS.route, dumps(["one", "client:ci", OWN]))),
]


@pytest.mark.parametrize("token", [row[1] for row in STRANGE], ids=[row[0] for row in STRANGE])
def test_an_id_that_this_caller_was_not_given_is_an_unknown_task(token: Any) -> None:
    assert IDS.of(Request(1, "tasks/get", {"taskId": token})) == task_ids.UNKNOWN
    assert task_ids.UNKNOWN.code == -32602
    params, heard = asked(IDS, LISTEN, {"notifications": {"taskIds": [token, TOKEN], "toolsListChanged": True}})
    assert params == {"notifications": {"taskIds": [OWN], "toolsListChanged": True}}
    assert heard.given == {OWN: TOKEN}


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "t", "arguments": {"taskId": TOKEN}}),
        (LISTEN, {"notifications": {"toolsListChanged": True}}),
        (LISTEN, {"notifications": {"taskIds": "all"}}),
        (LISTEN, {"notifications": 5}),
        (LISTEN, {}),
        ("tasks/list", {"taskId": TOKEN}),
        ("tools/call", {"_meta": {RELATED: {"taskId": OWN}}}),
        ("tools/call", {"_meta": {RELATED: [TOKEN]}}),
        ("tools/call", {"_meta": 5}),
    ],
)
def test_a_request_about_no_task_is_the_very_same(method: str, params: Json) -> None:
    request = Request(1, method, params)
    found = IDS.of(request)
    assert not isinstance(found, Rejection)
    assert found[0] is request


# what an upstream says, and what the caller gets, where T stands for the upstream's own id
TOLD: list[tuple[str, str, Json, Json]] = [
    # sentence, method, parameters of the request, the result with its ids as the upstream gave them
    ("a task instead of a result", "tools/call", {}, {"resultType": "task", "taskId": "T", "status": "working"}),
    ("a task instead of a result that is not a tool's", "x/new", {}, {"resultType": "task", "taskId": "T"}),
    ("how a task stands", "tasks/get", {}, {"resultType": "complete", "taskId": "T", "result": {"taskId": "other"}}),
    ("a cancel that says more than it must", "tasks/cancel", {}, {"taskId": "T"}),
    ("a task of 2025-11-25", "tools/call", {"task": {"ttl": 1}}, {"task": {"taskId": "T", "status": "working"}}),
    ("a list of tasks", "tasks/list", {}, {"tasks": [{"taskId": "T"}, {"taskId": "T", "x": [1]}], "nextCursor": "c"}),
    ("an outcome", "tasks/result", {}, {"content": [], "_meta": {RELATED: {"taskId": "T", "y": 1}, "v/x": 1}}),
]


def named(value: Any, own: str) -> Any:
    return loads(dumps(value).replace(b'"T"', dumps(own)))


@pytest.mark.parametrize(("method", "params", "result"), [row[1:] for row in TOLD], ids=[row[0] for row in TOLD])
def test_a_result_names_its_task_as_the_caller_knows_it(method: str, params: Json, result: Json) -> None:
    assert IDS.result(method, params, named(result, OWN)) == named(result, TOKEN)
    if not params:
        raw = dumps({"jsonrpc": "2.0", "id": 1, "result": named(result, OWN), "x": 1})
        told = IDS.message(raw, method)
        assert told is not None
        assert loads(told) == {"jsonrpc": "2.0", "id": 1, "result": named(result, TOKEN), "x": 1}


UNTOUCHED: list[tuple[str, bytes]] = [
    ("tools/call", b'{"id":1, "result":{"resultType":"complete","content":[{"text":"1.10 \\u00e9"}]}}'),
    ("tools/call", b'{"id":1, "result":{"resultType":"complete","structuredContent":{"taskId":"a"},"taskId":"b"}}'),
    ("tools/call", b'{"id":1, "result":{"resultType":"complete","task":{"taskId":"a"},"tasks":[{"taskId":"a"}]}}'),
    ("tools/call", b'{"id":1, "result":{"resultType":"task","taskId":5}}'),
    ("tasks/get", b'{"id":1, "error":{"code":-32602,"message":"taskId is unknown"}}'),
    ("tasks/get", b'{"id":1, "result":["taskId"]}'),
    ("tools/call", b'{"method":"notifications/message", "params":{"data":{"taskId":"a"}}}'),
    (LISTEN, b'{"method":"notifications/subscriptions/acknowledged", "params":{"notifications":{"taskIds":5}}}'),
    ("tools/call", b'{"method":"notifications/progress", "params":{"_meta":{"taskId":"a"}}}'),
]


@pytest.mark.parametrize(("method", "raw"), UNTOUCHED)
def test_what_names_no_task_goes_on_byte_for_byte(method: str, raw: bytes) -> None:
    assert IDS.message(raw, method) is raw


def test_a_member_is_known_in_every_spelling() -> None:
    told = IDS.message(rb'{"id":1,"result":{"resultType":"task","t\u0061skId":"%s","n":1.10}}' % OWN.encode(), "t")
    assert told is not None
    assert loads(told)["result"]["taskId"] == TOKEN


def test_a_caller_is_told_of_a_task_by_the_id_that_it_asked_with_after_a_key_was_replaced_too() -> None:
    ids = replace(IDS, ring=KeyRing.of(NEWER, KEY))
    assert sealed(ids=ids) != TOKEN
    params, known = asked(ids, "tasks/get", {"taskId": TOKEN})
    assert params == {"taskId": OWN}
    assert known.result("tasks/get", params, {"taskId": OWN})["taskId"] == TOKEN
    assert known.result("tasks/get", params, {"taskId": "another"})["taskId"] == sealed("another", ids)


def test_an_id_names_the_endpoint_that_has_the_task() -> None:
    there = sealed(ids=replace(IDS, endpoint="a1b2c3d4"))
    params, known = asked(IDS, "tasks/get", {"taskId": there})
    assert (params, known.endpoint) == ({"taskId": OWN}, "a1b2c3d4")
    assert asked(IDS, LISTEN, {"notifications": {"taskIds": [there, TOKEN]}})[1].endpoint == "a1b2c3d4"
    assert asked(IDS, "tasks/get", {"taskId": TOKEN})[1].endpoint == ""


def test_an_id_from_before_there_were_several_endpoints_is_still_good() -> None:
    ids = replace(IDS, principal="", lenient=True)
    params, known = asked(ids, "tasks/get", {"taskId": OWN})
    assert params == {"taskId": OWN}
    assert known.result("tasks/get", params, {"taskId": OWN}) == {"taskId": OWN}
    assert asked(ids, "tasks/get", {"taskId": sealed(ids=ids)})[0] == {"taskId": OWN}


LISTENING = asked(IDS, LISTEN, {"notifications": {"taskIds": [TOKEN]}})[1]
HEARD: list[tuple[str, str, Json, Json | None]] = [
    ("an agreement", ACKNOWLEDGED, {"notifications": {"taskIds": ["T"], "x": 1}}, {}),
    ("to more than was asked for", ACKNOWLEDGED, {"notifications": {"taskIds": ["T", "b"]}}, {"taskIds": ["T"]}),
    ("to nothing", ACKNOWLEDGED, {"notifications": {}}, {}),
    ("a task's change", "notifications/tasks", {"taskId": "T", "status": "completed", "result": {"taskId": "b"}}, {}),
    ("another kind of it", "notifications/tasks/x", {"taskId": "T"}, {}),
    ("somebody else's task", "notifications/tasks", {"taskId": "b"}, None),
    ("a task of no name", "notifications/tasks", {"taskId": ["T"]}, None),
    ("another notification", "notifications/tools/list_changed", {"taskId": "T2"}, {}),
]


@pytest.mark.parametrize(("method", "params", "change"), [row[1:] for row in HEARD], ids=[row[0] for row in HEARD])
def test_a_listener_hears_of_the_tasks_that_it_asked_for(method: str, params: Json, change: Json | None) -> None:
    told = LISTENING.notification(method, named(params, OWN), listens=True)
    if change is None:
        assert told is None
    else:
        assert told == named(params | ({"notifications": change} if change else {}), TOKEN)


def test_beside_a_call_a_task_may_be_told_of_unasked() -> None:
    assert IDS.notification("notifications/tasks/status", {"taskId": OWN}, listens=False) == {"taskId": TOKEN}
    told = IDS.message(dumps({"method": "notifications/tasks", "params": {"taskId": OWN}}), "tools/call")
    assert told == dumps({"method": "notifications/tasks", "params": {"taskId": TOKEN}})


def test_a_question_of_a_task_and_the_answer_to_it_name_it_on_each_side_as_it_is_known_there() -> None:
    ask = {"message": "m", "_meta": {RELATED: {"taskId": OWN}, "v/x": 1}}
    told = IDS.related(ask)
    assert told == {"message": "m", "_meta": {RELATED: {"taskId": TOKEN}, "v/x": 1}}
    assert IDS.related_to_upstream({"action": "accept", "_meta": told["_meta"]})["_meta"] == ask["_meta"]


@pytest.mark.parametrize("own", ["x" * 2049, '"' * 2048 + OWN, "\ud800"], ids=["too long", "long", "no text"])
def test_an_id_that_no_header_can_carry_is_not_given_out(own: str) -> None:
    with pytest.raises(ValueError, match=r"too long|surrogates"):
        sealed(own)
    assert IDS.notification("notifications/tasks", {"taskId": own}, listens=False) is None
    raw = json.dumps({"method": "notifications/tasks", "params": {"taskId": own}}).encode()
    assert IDS.message(raw, "tools/call") is None
    assert IDS.related({"_meta": {RELATED: {"taskId": own}, "v/x": 1}}) == {"_meta": {"v/x": 1}}


WAYS: list[tuple[str, Json, str | None]] = [
    ("tasks/get", {"taskId": TOKEN}, TOKEN),
    ("tasks/result", {"taskId": TOKEN}, TOKEN),
    ("tasks/get", {"taskId": 5}, None),
    ("tasks/list", {"taskId": TOKEN}, None),
    ("tools/call", {"name": "t", "taskId": TOKEN}, None),
    (LISTEN, {"notifications": {"taskIds": [TOKEN, "b"]}}, TOKEN),
    (LISTEN, {"notifications": {"taskIds": [TOKEN], "toolsListChanged": True}}, None),
    (LISTEN, {"notifications": {"taskIds": []}}, None),
    (LISTEN, {"notifications": {"taskIds": [5, TOKEN]}}, TOKEN),
    (LISTEN, {}, None),
]


@pytest.mark.parametrize(("method", "params", "name"), WAYS)
def test_what_a_request_finds_its_upstream_by(method: str, params: Json, name: str | None) -> None:
    assert task_ids.name_of(method, params) == name


def test_an_id_leads_to_its_upstream_whosever_it_is() -> None:
    assert task_ids.upstream_of(RING, IDS.route, TOKEN) == "one"
    assert task_ids.upstream_of(RING, IDS.route, OWN) is None
    assert task_ids.upstream_of(RING, "*/other", TOKEN) is None


DECLARED: Json = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
UNDECLARED: list[tuple[str, Json, Json, bool]] = [
    ("tasks/get", {}, DECLARED, False),
    ("tasks/get", {}, {}, True),
    ("tasks/update", {}, {"extensions": {"io.modelcontextprotocol/ui": {}}}, True),
    ("tasks/cancel", {}, {"extensions": 5}, True),
    ("tasks/cancel", {}, {"tasks": {}}, True),
    (LISTEN, {"notifications": {"taskIds": []}}, {}, True),
    (LISTEN, {"notifications": {"taskIds": []}}, DECLARED, False),
    (LISTEN, {"notifications": {"toolsListChanged": True}}, {}, False),
    ("tools/call", {}, {}, False),
]


@pytest.mark.parametrize(("method", "params", "capabilities", "refused"), UNDECLARED)
def test_who_does_not_know_tasks_is_told_what_is_missing(
    method: str, params: Json, capabilities: Json, refused: bool
) -> None:
    found = task_ids.undeclared(method, params, capabilities)
    if not refused:
        assert found is None
    else:
        assert found is not None
        assert (found.code, found.status, found.data) == (-32021, 400, {"requiredCapabilities": DECLARED})


def test_a_task_is_in_its_place_for_its_caller_alone() -> None:
    assert IDS.place(TOKEN) == ""
    there = replace(IDS, endpoint="e1")
    assert IDS.place(sealed(ids=there)) == "e1"
    for stranger in (replace(IDS, principal="client:ops"), replace(IDS, upstream="two"), replace(IDS, route="*/other")):
        assert stranger.place(TOKEN) is None
    assert IDS.place(OWN) is None
    assert replace(IDS, lenient=True).place(OWN) == ""


PARTS: dict[str, tuple[Json, list[str], bool, Json]] = {
    "these alone": ({"taskIds": ["a", "b"], "x": 1}, ["b"], True, {"taskIds": ["b"]}),
    "these and the rest": ({"taskIds": ["a", "b"], "x": 1}, ["b"], False, {"taskIds": ["b"], "x": 1}),
    "the rest": ({"taskIds": ["a", "b"], "x": 1}, [], False, {"x": 1}),
    "none": ({"taskIds": ["a"]}, [], False, {}),
}


@pytest.mark.parametrize("name", PARTS)
def test_a_part_of_a_filter_leaves_everything_else_as_it_is(name: str) -> None:
    wanted, tasks, alone, expected = PARTS[name]
    params = {"notifications": wanted, "_meta": {"v/x": 1}, "y": 2}
    found = task_ids.listening_to(params, tasks, alone=alone)
    assert found == {"notifications": expected, "_meta": {"v/x": 1}, "y": 2}
    assert task_ids.asks_for_more(params) == ("x" in wanted)
