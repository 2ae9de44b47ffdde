"""What runs at another replica, for a client that came to this one: retries of calls that wait there, streams that are
resumed, sessions of an upstream whose process or stream is there.

The other replica (`gateway/front/hosting.py`) does what it would do for a client of its own, and its messages are
written here as they come.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from gateway.front.service import Caller, Service
from gateway.stores.feeds import Feed
from gateway.stores.mail import ReplicaGone
from policies import jsonrpc, session, task_ids
from policies.admission import Head
from policies.delivery import Addressee, Message
from policies.errors import ClientFault, Rejection, SessionGone
from policies.exchange import FrontSession, Reply
from policies.mcp import Json
from policies.settings_routes import Route

OPEN_S = 10.0
"""How long another replica may take until it says where to read; what it does before that is in its own hands."""

T = TypeVar("T")
Source = Callable[[], Awaitable[list[T]]]


class _Said(msgspec.Struct, array_like=True):
    """A message with the event id at which its stream can be resumed, if there is one."""

    raw: bytes
    last: bool
    tool_error: bool
    refused: tuple[int, int | None, list[tuple[str, str]]] | None
    event_id: str | None


_said = msgspec.msgpack.Decoder(_Said)


def pack(message: Message, event_id: str | None = None) -> bytes:
    """A message on its way to another replica. What an error says is in its text; here is what a front must know."""
    why = message.rejection
    refused = None if why is None else (why.code, why.http, list(why.headers))
    return msgspec.msgpack.encode(_Said(message.raw, message.last, message.tool_error, refused, event_id))


def unpack(raw: bytes) -> tuple[Message, str | None]:
    said = _said.decode(raw)
    rejection = None
    if said.refused is not None:
        code, http, headers = said.refused
        rejection = Rejection(code, "", None, http, tuple((name, value) for name, value in headers))
    return Message(said.raw, said.last, rejection, said.tool_error), said.event_id


class TaskGone(ClientFault):
    """The process that had a task has ended, and the task with it: one that is not known any more."""

    code = task_ids.UNKNOWN.code
    http = task_ids.UNKNOWN.status

    def __init__(self) -> None:
        super().__init__(task_ids.UNKNOWN.message)


@dataclass(slots=True)
class Followed:
    """A modern call that goes on at another replica, as `gateway/front/rounds.py` shows one of this. `about_task`: it
    is about a task of a process there, and none of it is known once that has ended."""

    service: Service
    to: Addressee
    feed: Feed
    about_task: bool = False
    parked: bool = False

    async def step(self, read: Callable[[Source[bytes]], Awaitable[list[bytes]]]) -> list[Message] | None:
        try:
            items = await read(self.feed.read)
        except ReplicaGone as gone:
            raise (TaskGone() if self.about_task else gone) from gone
        return [unpack(item)[0] for item in items] or None

    def leave(self) -> None:
        self.feed.leave()


async def retry(
    service: Service, replica: str, route: Route, principal: str, request: jsonrpc.Request, to: Addressee
) -> Followed:
    """The retry of a call that waits at `replica`. Raises what `Mail.ask` does."""
    body = jsonrpc.dumps([session.route_key(route), principal, request.id, request.method, request.params])
    return Followed(service, to, await _opened(service, replica, "retry", body))


async def task(service: Service, replica: str, head: Head, request: jsonrpc.Request, to: Addressee) -> Followed:
    """A modern client's request about tasks of a process of `replica`'s. Raises `TaskGone` where that has ended."""
    body = jsonrpc.dumps([session.route_key(head.route), head.client, request.id, request.method, request.params])
    try:
        feed = await _opened(service, replica, "task", body)
    except ReplicaGone as gone:
        raise TaskGone from gone
    return Followed(service, to, feed, about_task=task_ids.names_task(request.method))


@dataclass(frozen=True, slots=True)
class Written:
    """What another replica writes for a legacy client; `prime`: the id of the event that its stream begins with, where
    it has one (`gateway/front/drive.py`)."""

    feed: Feed
    prime: str


async def resume(service: Service, replica: str, owner: FrontSession, exchange_id: str, after: int) -> Written:
    """The rest of a stream that `replica` writes. Raises also where it has none of that name."""
    return await _written(service, replica, "resume", jsonrpc.dumps([owner.id, exchange_id, after]))


@dataclass(frozen=True, slots=True)
class Pinned:
    """A session whose upstream only `replica` can reach. `is_common`: what it runs on there, another can offer too."""

    service: Service
    replica: str
    route: Route
    owner: FrontSession
    caller: Caller
    is_common: bool

    async def serve(self, request: jsonrpc.Request | None) -> Written:
        """A request, or the standalone stream (None). Raises `SessionGone` where the replica has ended."""
        message = None if request is None else [request.id, request.method, request.params]
        try:
            return await _written(self.service, self.replica, "serve", self._body(message))
        except ReplicaGone as gone:
            if self.is_common:
                raise
            raise SessionGone from gone

    async def take(self, method: str, params: Json) -> None:
        """A notification."""
        await self.service.state.mail.tell(self.replica, "take", self._body([method, params]))

    def _body(self, message: list[Any] | None) -> bytes:
        sender = self.service.relayed(self.route, self.caller).pack().hex()
        return jsonrpc.dumps([session.route_key(self.route), session.pack(self.owner), sender, message])


async def reply(service: Service, replica: str, owner: FrontSession, exchange_id: str, answer: Reply) -> None:
    """A client's answer to an ask of an exchange at `replica`."""
    body = jsonrpc.dumps([owner.id, exchange_id, answer.key, answer.result, answer.error])
    await service.state.mail.tell(replica, "reply", body)


async def _opened(service: Service, replica: str, topic: str, body: bytes) -> Feed:
    mail = service.state.mail
    return Feed(mail, replica, await mail.ask(replica, topic, body, OPEN_S))


async def _written(service: Service, replica: str, topic: str, body: bytes) -> Written:
    mail = service.state.mail
    name, prime = jsonrpc.loads(await mail.ask(replica, topic, body, OPEN_S))
    return Written(Feed(mail, replica, name.encode()), prime)
