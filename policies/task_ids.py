"""The ids of an upstream's tasks as a caller gets them: sealed where they must lead back to one upstream of several, or
to one endpoint of an upstream's, or be good for one caller alone. Elsewhere they pass as they are, and nothing here is
asked.

Specification: the extension io.modelcontextprotocol/tasks (ext-tasks, draft; SEP-2663), for the tasks of legacy clients
2025-11-25 basic/utilities/tasks. An id that was sealed names where it is from, so that every replica finds the way
without looking anything up; and one id is always sealed alike, since clients know their tasks by it. What a task is,
and how it goes, is not known here.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from policies.errors import Rejection
from policies.jsonrpc import Request, dumps, loads
from policies.mcp import (
    ACKNOWLEDGED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    LISTEN,
    MISSING_CLIENT_CAPABILITY,
    RELATED_TASK,
    TASKS_EXTENSION,
    Json,
)
from policies.sealing import KeyRing, seal_stably, unseal

MAX_ID: Final = 4096
"""Characters of a sealed id. It comes back in `Mcp-Name`, and servers and proxies commonly take 8 KiB for a whole
request head."""

MAX_OWN_BYTES: Final = 2048
"""Of an upstream's own id, which is seldom longer than a UUID: what can be packed tightly must not grow into a huge
header on its way back."""

UNKNOWN: Final = Rejection(
    INVALID_PARAMS, "Failed to retrieve task: Task not found; params.taskId is none of this caller's tasks here"
)
"""An id that is wrong, altered, another caller's, or of an upstream or process that is no longer here: told apart by
nobody. The specification's own words first (Protocol Errors)."""

NO_NAME: Final = Rejection(
    INTERNAL_ERROR, "the upstream's id of a task is too long, or no Unicode text: no header can carry it", http=502
)

_MISSING: Final = Rejection(
    MISSING_CLIENT_CAPABILITY,
    "Missing required client capability",
    {"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}},
)
_NOTIFICATIONS: Final = "notifications/tasks"
_NAMING: Final = frozenset({"tasks/get", "tasks/update", "tasks/cancel"})
"""Methods whose results may name the task that they are about."""

_MENTIONED: Final = re.compile(rb"taskId|related-task|\\u")
"""What a message has that names a task: the member, or an escape, which may hide it."""


@dataclass(frozen=True, slots=True)
class TaskIds:
    """How the ids of one upstream's tasks look to one caller.

    `principal` is whom they are bound to, empty for nobody. `endpoint` is the key of the one that has the tasks, empty
    where there are none to tell apart. `lenient`: an id that was not sealed here may be one from before there were
    several endpoints, and passes. `given` are the upstream's own ids that this request named, each with what the caller
    called it: it is told of a task under the very id that it asked with.
    """

    ring: KeyRing
    route: str
    upstream: str
    principal: str = ""
    endpoint: str = ""
    lenient: bool = False
    given: Mapping[str, str] = field(default_factory=dict)

    # from the caller

    def of(self, request: Request) -> "tuple[Request, TaskIds] | Rejection":
        """A request as the upstream gets it: the very same where it names no task. And what its answer is told by."""
        params, endpoint = request.params, ""
        given: dict[str, str] = {}
        if names_task(request.method):
            token = params.get("taskId")
            found = self._found(token)
            if found is None or not isinstance(token, str):
                return UNKNOWN
            own, endpoint = found
            params, given = {**params, "taskId": own}, {own: token}
        elif request.method == LISTEN and (wanted := listened(params)) is not None:
            # what is not agreed to is left out of the acknowledgement, so an id that is not known here is no error
            known = [(token, found) for token in wanted if (found := self._found(token)) is not None]
            endpoint = known[0][1][1] if known else ""
            given = {own: token for token, (own, _) in known}
            params = {**params, "notifications": {**params["notifications"], "taskIds": list(given)}}
        params = self.related_to_upstream(params)
        return (request if params is request.params else replace(request, params=params)), replace(
            self, given=given, endpoint=endpoint
        )

    def place(self, token: str) -> str | None:
        """The key of the endpoint that has a task, empty where there are none to tell apart. None where this is no task
        of this caller's at this upstream."""
        found = self._found(token)
        return found[1] if found is not None else None

    def related_to_upstream(self, value: Json) -> Json:
        """Parameters or a result of a caller's, with the task that they belong to as the upstream calls it."""
        related = _related(value)
        found = self._found(related["taskId"]) if related is not None else None
        return value if related is None or found is None else _with_related(value, {**related, "taskId": found[0]})

    # to the caller

    def result(self, method: str, params: Json, result: Json) -> Json:
        """The result of a request with these parameters; the very same where it names no task. Raises ValueError where
        the id of a task cannot be sealed."""
        if result.get("resultType") == "task" or method in _NAMING:
            result = self._told(result)
        if "task" in params and isinstance(result.get("task"), dict):  # CreateTaskResult of 2025-11-25
            result = {**result, "task": self._told(result["task"])}
        if method == "tasks/list" and isinstance(result.get("tasks"), list):
            result = {**result, "tasks": [self._told(one) for one in result["tasks"]]}
        return self.related(result)

    def notification(self, method: str, params: Json, *, listens: bool) -> Json | None:
        """The parameters of a notification; the very same where they name no task. None where it is about a task that
        a listener has not asked for: with one credential for all, an upstream may tell of somebody else's."""
        if method == _NOTIFICATIONS or method.startswith(_NOTIFICATIONS + "/"):
            if listens and not any(params.get("taskId") == own for own in self.given):
                return None
            try:
                params = self._told(params)
            except ValueError:
                return None
        elif method == ACKNOWLEDGED and (agreed := listened(params)) is not None:
            kept = [self.given[own] for own in agreed if own in self.given]
            params = {**params, "notifications": {**params["notifications"], "taskIds": kept}}
        return self.related(params)

    def related(self, value: Json) -> Json:
        """A result, or the parameters of an upstream's request or notification, which may belong to a task."""
        related = _related(value)
        if related is None:
            return value
        try:
            return _with_related(value, self._told(related))
        except ValueError:  # its task has no name here either
            return {**value, "_meta": {k: v for k, v in value["_meta"].items() if k != RELATED_TASK}}

    # whole messages

    def message(self, raw: bytes, method: str) -> bytes | None:
        """One message of a modern upstream's that answers a call of this method, or comes before the answer: the very
        bytes where it names no task. None where the caller gets none. Raises ValueError as `result` does."""
        if _MENTIONED.search(raw) is None:
            return raw
        message = loads(raw)
        part = "params" if "method" in message else "result"
        before = message.get(part)
        if not isinstance(before, dict):
            return raw
        if part == "result":
            after: Json | None = self.result(method, {}, before)
        else:
            after = self.notification(str(message["method"]), before, listens=False)
        if after is None or after == before:
            return raw if after is not None else None
        return dumps({**message, part: after})

    def _told(self, task: Any) -> Any:
        """Something with a `taskId`, with that as the caller knows it."""
        own = task.get("taskId") if isinstance(task, dict) else None
        if not isinstance(own, str):
            return task
        return {**task, "taskId": self.given[own] if own in self.given else self._sealed(own)}

    def _sealed(self, own: str) -> str:
        raw = own.encode()  # a lone surrogate has no form in a header; its error is a ValueError, too
        where = [self.upstream, self.principal, own, *([self.endpoint] if self.endpoint else [])]
        token = seal_stably(self.ring, "task", self.route, dumps(where))
        if len(raw) > MAX_OWN_BYTES or len(token) > MAX_ID:
            raise ValueError("the id of a task is too long to be sealed")
        return token

    def _found(self, token: Any) -> tuple[str, str] | None:
        """What the upstream calls a task, and at which endpoint; None where this is not an id that this caller may have
        been given."""
        opened = _opened(self.ring, self.route, token)
        if opened is not None and opened[:2] == [self.upstream, self.principal]:
            return opened[2], "".join(opened[3:])
        return (token, "") if self.lenient and isinstance(token, str) else None


def names_task(method: str) -> bool:
    """Whether this is a request about one task, of either era."""
    return method in _NAMING or method == "tasks/result"


def name_of(method: str, params: Json) -> str | None:
    """The id by which a request finds its upstream: that of its task, or the first of those that a listener asks for
    where it asks for nothing else. None for every other request."""
    if names_task(method):
        token = params.get("taskId")
    elif method == LISTEN and (wanted := listened(params)) and len(params["notifications"]) == 1:
        token = wanted[0]
    else:
        return None
    return token if isinstance(token, str) else None


def upstream_of(ring: KeyRing, route: str, token: str) -> str | None:
    """The name of the upstream that has minted a task, whosever it is. None for an id that was not sealed here."""
    found = _opened(ring, route, token)
    return found[0] if found is not None else None


def asks_for_more(params: Json) -> bool:
    """Whether a listener that asks for tasks asks for anything else."""
    return len(params["notifications"]) > 1


def listening_to(params: Json, wanted: list[str], *, alone: bool) -> Json:
    """The parameters of a listener that asks for tasks, with these in their place; `alone`: and for nothing else."""
    others = {} if alone else {k: v for k, v in params["notifications"].items() if k != "taskIds"}
    return {**params, "notifications": {**others, "taskIds": wanted} if wanted else others}


def undeclared(method: str, params: Json, capabilities: Json) -> Rejection | None:
    """Whether a modern client asks for tasks without saying that it knows them (ext-tasks, Protocol Errors): told
    before an id is looked at, as a server does."""
    if not names_task(method) and not (method == LISTEN and listened(params) is not None):
        return None
    extensions = capabilities.get("extensions")
    return None if isinstance(extensions, dict) and TASKS_EXTENSION in extensions else _MISSING


def listened(params: Json) -> list[str] | None:
    """The tasks in a listener's filter, None where it has none of the kind."""
    wanted = params.get("notifications")
    ids = wanted.get("taskIds") if isinstance(wanted, dict) else None
    return [one for one in ids if isinstance(one, str)] if isinstance(ids, list) else None


def _related(value: Json) -> Json | None:
    meta = value.get("_meta")
    related = meta.get(RELATED_TASK) if isinstance(meta, dict) else None
    return related if isinstance(related, dict) and isinstance(related.get("taskId"), str) else None


def _with_related(value: Json, related: Json) -> Json:
    return {**value, "_meta": {**value["_meta"], RELATED_TASK: related}}


def _opened(ring: KeyRing, route: str, token: Any) -> list[str] | None:
    """Upstream, principal and own id, and the endpoint if there is one to tell."""
    if not isinstance(token, str) or len(token) > MAX_ID:
        return None
    raw = unseal(ring, "task", route, token)
    return loads(raw) if raw is not None else None
