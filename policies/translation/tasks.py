"""Tools that a server of 2025-11-25 runs only as tasks, for callers to whom that revision's tasks are unknown.

Specification: 2025-11-25 basic/utilities/tasks. The extension of 2026-07-28 with the same name is another protocol.
"""

from dataclasses import dataclass
from typing import Any, Final

from policies.mcp import RELATED_TASK, Json
from policies.translation.messages import without_meta

USUAL_PAUSE_S: Final = 1.0
"""Between two looks where the server names no `pollInterval`: as the official SDKs do."""

MIN_PAUSE_S: Final = 0.1
"""The shortest pause: a server that asks for none is not to be asked without end."""

MAX_PAUSE_S: Final = 60.0
"""The longest pause that is kept: what a server asks for beyond that would keep a client waiting for nothing."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a server says of a task. `status` is its own word for it, empty where it gives none."""

    id: str
    status: str
    pause_s: float
    message: str = ""

    @property
    def is_working(self) -> bool:
        """Whether there is neither an outcome nor a question yet."""
        return self.status == "working"


def takes_tasks(capabilities: Json) -> bool:
    """Whether a server with these capabilities runs tool calls as tasks; otherwise nothing that a tool says counts."""
    value: Any = capabilities
    for key in ("tasks", "requests", "tools", "call"):
        value = value.get(key) if isinstance(value, dict) else None
    return isinstance(value, dict)


def only_as_task(tool: Json) -> bool:
    execution = tool.get("execution")
    return isinstance(execution, dict) and execution.get("taskSupport") == "required"


def task_params(params: Json, ttl_s: float) -> Json:
    """The parameters of the call as a task that is kept for `ttl_s`."""
    return {**params, "task": {"ttl": int(ttl_s * 1000)}}


def task_of(value: Any) -> Task | None:
    """A `Task` object, None where it is none."""
    if not isinstance(value, dict) or not isinstance(value.get("taskId"), str):
        return None
    interval: Any = value.get("pollInterval")
    is_number = isinstance(interval, int | float) and not isinstance(interval, bool)
    pause_s = interval / 1000 if is_number else USUAL_PAUSE_S
    status, message = value.get("status"), value.get("statusMessage")
    return Task(
        value["taskId"],
        status if isinstance(status, str) else "",
        max(MIN_PAUSE_S, min(pause_s, MAX_PAUSE_S)),
        message if isinstance(message, str) else "",
    )


def is_outcome(result: Json) -> bool:
    """Whether it is a tool's result at all: the Python SDK 1.x gives an empty one for a task that has failed."""
    return "content" in result or "structuredContent" in result


def outcome(result: Json, status: str) -> Json:
    """A task's result for a caller that does not know that there was one, and must see in it that it failed."""
    result = without_meta(result, RELATED_TASK)
    return {**result, "isError": True} if status == "failed" else result


def no_outcome(task: Task) -> str:
    """Why a task that is over has no result, in the server's own words where it has any."""
    return task.message or f"the server's task has ended without a result ({task.status or 'no status'})"


def related(ask: Json, result: Json) -> Json:
    """The answer to a question that a task has put: it names the task as the question did."""
    meta = ask.get("_meta")
    if not isinstance(meta, dict) or RELATED_TASK not in meta:
        return result
    own = result.get("_meta")
    return {**result, "_meta": {**(own if isinstance(own, dict) else {}), RELATED_TASK: meta[RELATED_TASK]}}
