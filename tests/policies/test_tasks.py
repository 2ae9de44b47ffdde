"""Tasks of 2025-11-25: what a server and a tool say of them, and what they are to a caller who knows of none."""

from typing import Any

import pytest

from policies.translation import tasks
from policies.translation.tasks import MAX_PAUSE_S, MIN_PAUSE_S, RELATED_TASK, USUAL_PAUSE_S, Task

CAPABILITIES: list[tuple[Any, bool]] = [
    ({"tasks": {"requests": {"tools": {"call": {}}}}}, True),
    ({"tasks": {"list": {}, "requests": {"tools": {"call": {"x": 1}}}}}, True),
    ({"tasks": {"requests": {"tools": {}}}}, False),
    ({"tasks": {"requests": {"tools": {"call": None}}}}, False),
    ({"tasks": {"requests": ["tools"]}}, False),
    ({"tasks": True}, False),
    ({}, False),
]


@pytest.mark.parametrize(("capabilities", "takes"), CAPABILITIES)
def test_a_server_that_makes_tasks_of_calls_says_so(capabilities: Any, takes: bool) -> None:
    assert tasks.takes_tasks(capabilities) is takes


TASKS: list[tuple[Any, Task | None]] = [
    ({"taskId": "a", "status": "working", "pollInterval": 250}, Task("a", "working", 0.25)),
    ({"taskId": "", "status": "failed", "statusMessage": "größe"}, Task("", "failed", USUAL_PAUSE_S, "größe")),
    ({"taskId": "a", "pollInterval": 0}, Task("a", "", MIN_PAUSE_S)),
    ({"taskId": "a", "pollInterval": -1e300}, Task("a", "", MIN_PAUSE_S)),
    ({"taskId": "a", "pollInterval": 1e300}, Task("a", "", MAX_PAUSE_S)),
    ({"taskId": "a", "pollInterval": True}, Task("a", "", USUAL_PAUSE_S)),
    ({"taskId": "a", "status": 5, "statusMessage": ["x"], "pollInterval": "5"}, Task("a", "", USUAL_PAUSE_S)),
    ({"taskId": 5, "status": "working"}, None),
    ({"status": "working"}, None),
    ("a", None),
    (None, None),
]


@pytest.mark.parametrize(("value", "task"), TASKS)
def test_a_task_as_its_server_describes_it(value: Any, task: Task | None) -> None:
    assert tasks.task_of(value) == task


def test_a_task_that_failed_has_an_outcome_that_says_so() -> None:
    result = {"content": [], "_meta": {RELATED_TASK: {"taskId": "a"}, "v/x": 1}}
    assert tasks.outcome(result, "failed") == {"content": [], "_meta": {"v/x": 1}, "isError": True}
    assert tasks.outcome(result, "completed") == {"content": [], "_meta": {"v/x": 1}}


@pytest.mark.parametrize("task", [Task("a", "failed", 1.0, "größe"), Task("a", "cancelled", 1.0), Task("a", "", 1.0)])
def test_why_a_task_has_no_outcome_is_always_said(task: Task) -> None:
    said = tasks.no_outcome(task)
    assert (task.message or task.status or "no status") in said
