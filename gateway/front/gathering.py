"""One listen stream over several places: a client may want to hear of tasks that are at several servers, endpoints of
one, or processes of several replicas, and of what changes at yet another.

Specification: 2026-07-28 basic/patterns/subscriptions; io.modelcontextprotocol/tasks (Task Status Notifications). Each
place is asked for its own part of the filter, and the client gets one acknowledgement, of all that is honoured. A place
that refuses its tasks honours none of them, which is no error; but where it refuses what was asked for besides, and
where nothing is left, the client gets the refusal. Once a part ends, so does the whole: who listens anew is told what
there is to hear now.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from gateway.front.elsewhere import Followed, Source
from gateway.front.rounds import Rounds
from gateway.front.service import Caller, Service
from policies import jsonrpc, task_ids
from policies.admission import Head
from policies.delivery import Addressee, Message, error, farewell
from policies.errors import Fault
from policies.mcp import ACKNOWLEDGED, LISTEN
from policies.translation import subscriptions

Start = Callable[[], Awaitable[Message | Rounds | Followed]]


def parted(service: Service, request: Caller, head: Head, message: jsonrpc.Request) -> list[jsonrpc.Request]:
    """A request as each of the places gets it that it concerns: what a listener wants besides tasks first, with the
    tasks that are in the same place. Tasks that are not known here are left out where any is."""
    wanted = task_ids.listened(message.params) if message.method == LISTEN else None
    if not wanted:
        return [message]
    home = service.upstream_for(head.route, LISTEN, None, request.headers).name
    places: dict[tuple[str, str], list[str]] = {}
    for token in wanted:
        upstream = service.upstream_for(head.route, LISTEN, token, request.headers)
        tasks = service.task_ids(head, upstream, request, "modern")
        if tasks is None:
            return [message]
        place = tasks.place(token)
        if place is not None:
            here = "" if place == service.state.mail.replica else place
            places.setdefault((upstream.name, here), []).append(token)
    if not places:
        return [message]
    params, first = message.params, list[jsonrpc.Request]()
    if task_ids.asks_for_more(params):
        shared = places.pop((home, ""), [])
        first = [replace(message, params=task_ids.listening_to(params, shared, alone=False))]
    return first + [
        replace(message, params=task_ids.listening_to(params, tokens, alone=True)) for tokens in places.values()
    ]


@dataclass(eq=False, slots=True)
class _Part:
    start: Start
    running: Rounds | Followed | None = None

    async def read(self) -> list[Message]:
        """What it says next; [] at its end."""
        if self.running is None:
            started = await self.start()
            if isinstance(started, Message):
                return [started]
            self.running = started
        while (messages := await self.running.step(lambda source: source())) == []:
            pass
        return messages or []


class Gathered:
    """Several listen streams as their one client sees them, read as `gateway/front/rounds.py` shows a call. `led`: the
    first of them has what was asked for besides tasks."""

    parked = False

    def __init__(self, service: Service, to: Addressee, starts: Sequence[Start], *, led: bool) -> None:
        self.service = service
        self.to = to
        self._led = led
        self._parts = [_Part(start) for start in starts]
        self._reading: dict[asyncio.Task[list[Message]], _Part] = {}
        self._begun = self._over = False
        for part in self._parts:
            self._read_on(part)

    async def step(self, read: Callable[[Source[Message]], Awaitable[list[Message]]]) -> list[Message] | None:
        """What is to be written next, None at the end."""
        if self._over:
            return None
        messages = await read(self._next if self._begun else self._begin)
        last = next((at for at, message in enumerate(messages) if message.last), None)
        self._over = last is not None
        return messages if last is None else messages[: last + 1]

    def leave(self) -> None:
        """Its client is gone, or the stream has ended: nothing of it is read any more."""
        for task in self._reading:
            task.cancel()
        for part in self._parts:
            if part.running is not None:
                part.running.leave()

    async def _begin(self) -> list[Message]:
        """The acknowledgement, once each of them is there, and what was said meanwhile."""
        await asyncio.wait(self._reading)
        self._begun = True
        said = [self._taken(task) for task in tuple(self._reading)]
        honoured = [messages for messages in said if not messages[0].last]
        if not honoured or (self._led and said[0][0].last):
            return said[0]
        agreed = subscriptions.together([jsonrpc.loads(messages[0].raw)["params"] for messages in honoured])
        more = [message for messages in honoured for message in messages[1:]]
        return [Message(jsonrpc.notification(ACKNOWLEDGED, agreed)), *more]

    async def _next(self) -> list[Message]:
        done, _ = await asyncio.wait(self._reading, return_when=asyncio.FIRST_COMPLETED)
        return [message for task in done for message in self._taken(task)]

    def _taken(self, task: asyncio.Task[list[Message]]) -> list[Message]:
        """What one of them has said, which is read on unless that was its end."""
        part = self._reading.pop(task)
        assert self.to.id is not None
        try:
            messages = task.result() or [Message(farewell(self.to.id)[0], last=True)]
        except Fault as fault:
            messages = [error(fault.rejection(), self.to.id)]
        if not messages[-1].last:
            self._read_on(part)
        return messages

    def _read_on(self, part: _Part) -> None:
        task = asyncio.create_task(part.read())
        task.add_done_callback(_looked_at)
        self._reading[task] = part


def _looked_at(task: asyncio.Task[list[Message]]) -> None:
    """How a part ended that nobody reads any more concerns nobody."""
    if not task.cancelled():
        task.exception()
