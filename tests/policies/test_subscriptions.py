"""What a listener is promised, and which notifications are its own."""

from typing import Any

import pytest

from policies.mcp import Json
from policies.translation import subscriptions

TOOLS, PROMPTS, RESOURCES = (f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources"))
UPDATED = "notifications/resources/updated"
ALL: Json = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
}
WANTS_ALL: Json = {
    "toolsListChanged": True,
    "promptsListChanged": True,
    "resourcesListChanged": True,
    "resourceSubscriptions": ["file:///a"],
}


def test_a_legacy_stream_wants_every_list_change() -> None:
    lists = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}
    assert subscriptions.everything() == lists
    assert subscriptions.everything(("file:///a", "b:c")) == lists | {"resourceSubscriptions": ["file:///a", "b:c"]}


HONOURED: list[tuple[str, Any, Any, Json]] = [
    ("all that is there", WANTS_ALL, ALL, WANTS_ALL),
    ("nothing that was not asked for", {}, ALL, {}),
    ("one kind alone", {"toolsListChanged": True}, ALL, {"toolsListChanged": True}),
    ("nothing that is not there", WANTS_ALL, {}, {}),
    ("nothing that is not declared", WANTS_ALL, {"tools": {}, "prompts": {"listChanged": False}, "resources": {}}, {}),
    (
        "list changes without subscriptions",
        WANTS_ALL,
        {"resources": {"listChanged": True}},
        {"resourcesListChanged": True},
    ),
    (
        "subscriptions without list changes",
        WANTS_ALL,
        {"resources": {"subscribe": True}},
        {"resourceSubscriptions": ["file:///a"]},
    ),
    ("nothing that was declined", {"toolsListChanged": False, "promptsListChanged": None}, ALL, {}),
    ("a wish of a wrong type is none", {"toolsListChanged": 1, "promptsListChanged": "true"}, ALL, {}),
    ("a kind that nobody knows", {"x-unknown": True, "toolsListChanged": True}, ALL, {"toolsListChanged": True}),
    ("capabilities of a wrong type", WANTS_ALL, {"tools": True, "prompts": [], "resources": None}, {}),
    ("flags of a wrong type", WANTS_ALL, {"tools": {"listChanged": "yes"}, "resources": {"subscribe": 1}}, {}),
    (
        "each URI once, in their order",
        {"resourceSubscriptions": ["b", "a", "b"]},
        ALL,
        {"resourceSubscriptions": ["b", "a"]},
    ),
    (
        "URIs among odd JSON",
        {"resourceSubscriptions": [None, {}, ["a"], 7, "a"]},
        ALL,
        {"resourceSubscriptions": ["a"]},
    ),
    ("no URIs", {"resourceSubscriptions": []}, ALL, {}),
    ("no usable URIs", {"resourceSubscriptions": [7]}, ALL, {}),
    ("URIs of a wrong type", {"resourceSubscriptions": "file:///a"}, ALL, {}),
]


@pytest.mark.parametrize(
    ("wanted", "capabilities", "agreed"), [row[1:] for row in HONOURED], ids=[row[0] for row in HONOURED]
)
def test_a_filter_is_honoured_as_far_as_the_upstream_goes(wanted: Json, capabilities: Json, agreed: Json) -> None:
    assert subscriptions.honoured(wanted, capabilities, can_hear=True) == agreed


def test_nothing_is_promised_where_nobody_can_hear() -> None:
    assert subscriptions.honoured(WANTS_ALL, ALL, can_hear=False) == {}


def test_a_filter_is_left_as_it_was() -> None:
    wanted = {"resourceSubscriptions": ["a", "a"]}
    subscriptions.honoured(wanted, ALL, can_hear=True)
    assert wanted == {"resourceSubscriptions": ["a", "a"]}


CONCERNS: list[tuple[str, Json, str, Json, bool]] = [
    ("a list change that was asked for", {"toolsListChanged": True}, TOOLS, {}, True),
    ("a list change of prompts", {"promptsListChanged": True}, PROMPTS, {}, True),
    ("a list change of resources", {"resourcesListChanged": True}, RESOURCES, {"x": 1}, True),
    ("another list's change", {"toolsListChanged": True}, PROMPTS, {}, False),
    ("a list change nobody asked for", {}, TOOLS, {}, False),
    ("a list change beside subscriptions", {"resourceSubscriptions": ["a"]}, RESOURCES, {}, False),
    (
        "an update of a subscribed resource",
        {"resourceSubscriptions": ["file:///a"]},
        UPDATED,
        {"uri": "file:///a"},
        True,
    ),
    ("an update of the second of two", {"resourceSubscriptions": ["b:", "a:"]}, UPDATED, {"uri": "a:"}, True),
    ("an update of a part of one", {"resourceSubscriptions": ["file:///a"]}, UPDATED, {"uri": "file:///a/b/c"}, True),
    ("an update below a final slash", {"resourceSubscriptions": ["file:///a/"]}, UPDATED, {"uri": "file:///a/b"}, True),
    ("an update above a final slash", {"resourceSubscriptions": ["file:///a/"]}, UPDATED, {"uri": "file:///a"}, False),
    ("an update of a longer name", {"resourceSubscriptions": ["file:///a"]}, UPDATED, {"uri": "file:///ab"}, False),
    ("an update of the whole", {"resourceSubscriptions": ["file:///a/b"]}, UPDATED, {"uri": "file:///a"}, False),
    ("an update in other letters", {"resourceSubscriptions": ["file:///a"]}, UPDATED, {"uri": "file:///A"}, False),
    ("an update nobody asked for", {"resourcesListChanged": True}, UPDATED, {"uri": "file:///a"}, False),
    ("an update of nothing", {"resourceSubscriptions": ["file:///a"]}, UPDATED, {}, False),
    ("an update of a wrong type", {"resourceSubscriptions": ["file:///a"]}, UPDATED, {"uri": ["file:///a"]}, False),
    ("progress", WANTS_ALL, "notifications/progress", {"progress": 1}, False),
    ("a log message", WANTS_ALL, "notifications/message", {"level": "info"}, False),
    ("the end of an elicitation", WANTS_ALL, "notifications/elicitation/complete", {}, False),
    ("an acknowledgement", WANTS_ALL, "notifications/subscriptions/acknowledged", {}, False),
    ("a notification that nobody knows", WANTS_ALL, "notifications/x", {"uri": "file:///a"}, False),
]


@pytest.mark.parametrize(
    ("agreed", "method", "params", "expected"),
    [row[1:] for row in CONCERNS],
    ids=[f"{row[0]} is {'its own' if row[4] else 'not its own'}" for row in CONCERNS],
)
def test_a_notification_reaches_whom_it_concerns(agreed: Json, method: str, params: Json, expected: bool) -> None:
    assert subscriptions.concerns(agreed, method, params) is expected


TOGETHER: dict[str, tuple[list[Json], Json]] = {
    "one alone": (
        [{"notifications": {"toolsListChanged": True}, "x": 1}],
        {"notifications": {"toolsListChanged": True}, "x": 1},
    ),
    "tasks of several": (
        [{"notifications": {"taskIds": ["a"]}}, {"notifications": {"taskIds": ["b", "c"]}}],
        {"notifications": {"taskIds": ["a", "b", "c"]}},
    ),
    "tasks beside something else": (
        [{"notifications": {"toolsListChanged": True, "y": 1}}, {"notifications": {"taskIds": ["b"], "y": 2}}],
        {"notifications": {"toolsListChanged": True, "y": 1, "taskIds": ["b"]}},
    ),
    "nothing of some": ([{"notifications": {}}, {}, {"notifications": []}], {"notifications": {}}),
    "tasks of a wrong type": (
        [{"notifications": {"taskIds": "a"}}, {"notifications": {"taskIds": ["b"]}}],
        {"notifications": {"taskIds": ["b"]}},
    ),
    "what nobody knows, of the first that says it": (
        [{"notifications": {}, "_meta": {"x": 1}}, {"notifications": {}, "_meta": {"x": 2}, "z": 3}],
        {"notifications": {}, "_meta": {"x": 1}, "z": 3},
    ),
}


@pytest.mark.parametrize("name", TOGETHER)
def test_what_several_acknowledge_is_acknowledged_in_one_word(name: str) -> None:
    acknowledged, expected = TOGETHER[name]
    assert subscriptions.together(acknowledged) == expected
