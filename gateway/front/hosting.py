"""What this replica does for clients that came to another one (`gateway/front/elsewhere.py`).

Who may do what was found out there, where the client is; here, everything is looked up by session and principal again.
"""

from collections.abc import AsyncGenerator, Callable

from gateway.background import Background
from gateway.exchange import Exchange
from gateway.front import legacy, modern
from gateway.front.drive import prime, said
from gateway.front.elsewhere import Followed, Written, pack
from gateway.front.gathering import Gathered
from gateway.front.resuming import no_stream
from gateway.front.rounds import Rounds
from gateway.front.service import NOBODY, TOPIC_ENDED, Caller, Relayed, Service
from gateway.front.subscribing import refilter
from gateway.stores.changes import STREAM
from gateway.upstreams import listening
from policies import identity, jsonrpc, session
from policies.admission import Acceptance, Head
from policies.delivery import Addressee, Message
from policies.errors import Fault, GatewayFault
from policies.exchange import FrontSession, Reply, UpstreamSession
from policies.mcp import LATEST_MODERN
from policies.settings_routes import Route

_BOTH = Acceptance(json=True, sse=True)


class Hosting:
    """Answers the other replicas. `current` gives the configuration in service."""

    def __init__(self, current: Callable[[], Service]) -> None:
        self._current = current
        self._background = Background()
        mail = current().state.mail
        mail.answer("retry", self._retry)
        mail.answer("task", self._task)
        mail.answer("resume", self._resume)
        mail.answer("serve", self._serve)
        mail.answer("refilter", self._refilter)
        mail.answer("listen", self._listen)
        mail.hear("take", self._take)
        mail.hear("reply", self._reply)
        mail.hear("cancel", self._cancel)
        mail.hear("superseded", lambda body: self._background.start(self._superseded(body.decode())))
        mail.hear("delete", self._delete)
        mail.hear(TOPIC_ENDED, lambda body: self._current().exchanges.end_session(body.decode()))

    async def _retry(self, body: bytes) -> bytes:
        key, principal, ident, method, params = jsonrpc.loads(body)
        service, request = self._current(), jsonrpc.Request(ident, method, params)
        found = modern.retried(service, route_of(service, key), principal, request)
        return self._offer(_told(found) if isinstance(found, Rounds) else _at_hand(found))

    async def _task(self, body: bytes) -> bytes:
        key, client, ident, method, params = jsonrpc.loads(body)
        service, request = self._current(), jsonrpc.Request(ident, method, params)
        head = Head(route_of(service, key), _BOTH, LATEST_MODERN, client)
        found = await modern.start(service, NOBODY, head, request, headless=True)
        if isinstance(found, Followed):
            raise GatewayFault("the process that has this task is at neither of two replicas", http=502)
        return self._offer(_at_hand(found) if isinstance(found, Message) else _told(found))

    async def _resume(self, body: bytes) -> bytes:
        session_id, exchange_id, after = jsonrpc.loads(body)
        service = self._current()
        exchange = service.exchanges.find(session_id, exchange_id)
        if exchange is None:
            raise no_stream()
        return self._write(service, exchange, service.addressee(exchange), after)

    async def _serve(self, body: bytes) -> bytes:
        key, packed, sender, message = jsonrpc.loads(body)
        service, head, owner, caller = self._session(key, packed, sender)
        if message is None:
            return self._write(service, *await legacy.standalone(service, caller, head, owner), 0)
        started = await legacy.start(service, caller, head, owner, jsonrpc.Request(*message))
        if isinstance(started, Written):
            raise GatewayFault("what this session runs on is at neither of two replicas", http=502)
        if isinstance(started, Message):
            return jsonrpc.dumps([self._offer(_at_hand(started)).decode(), ""])
        return self._write(service, *started, 0)

    async def _refilter(self, body: bytes) -> bytes:
        session_id, uri, wanted = jsonrpc.loads(body)
        service = self._current()
        async with service.locks.of(session_id):  # one filter after the other, wherever they come from
            return b"1" if await refilter(service, session_id, uri, wanted=wanted) else b"0"

    async def _superseded(self, session_id: str) -> None:
        """Ends the session's stream here, unless it is the one that the store names: of several that were opened at
        once, that one stays."""
        service = self._current()
        async with service.locks.of(session_id):  # one that is just being announced here is named first
            stream = service.exchanges.standalone(session_id)
            named = (await service.state.changes.fresh(session_id)).get(STREAM) if stream is not None else None
            if stream is not None and named not in (None, stream.id.encode()):
                service.exchanges.end_stream(session_id)

    async def _listen(self, body: bytes) -> bytes:
        name, call = listening.unpacked(body)
        service = self._current()
        upstream = service.upstreams.get(name)
        if upstream is None or service.drain.begun:
            raise GatewayFault(f"upstream {name} is not listened to here", http=503)
        items = upstream.modern.listening.feed(call, service.drain.beginning())
        return service.state.feeds.offer(items, is_elsewhere=True)

    def _take(self, body: bytes) -> None:
        key, packed, sender, (method, params) = jsonrpc.loads(body)
        service, head, owner, caller = self._session(key, packed, sender)
        self._background.start(self._taken(service, caller, head, owner, jsonrpc.Notification(method, params)))

    async def _taken(
        self, service: Service, caller: Caller, head: Head, owner: FrontSession, told: jsonrpc.Notification
    ) -> None:
        try:
            await legacy.take(service, caller, head, owner, told)
        except Fault:
            return  # a notification has no answer

    def _reply(self, body: bytes) -> None:
        session_id, exchange_id, key, result, error = jsonrpc.loads(body)
        self._current().exchanges.reply(session_id, exchange_id, Reply(key, result, error))

    def _cancel(self, body: bytes) -> None:
        session_id, request_id = jsonrpc.loads(body)
        self._current().exchanges.cancel(session_id, request_id)

    def _delete(self, body: bytes) -> None:
        name, session_id, version = jsonrpc.loads(body)
        upstream = self._current().upstreams.get(name)
        if upstream is not None:
            self._background.start(upstream.legacy.sessions.delete(UpstreamSession(session_id, version), ()))

    def _session(self, key: str, packed: str, sender: str) -> tuple[Service, Head, FrontSession, Caller]:
        service = self._current()
        route, owner = route_of(service, key), session.unpack(packed, key)
        head = Head(route, _BOTH, owner.version, identity.client_of(owner.principal))
        return service, head, owner, Relayed.unpack(bytes.fromhex(sender))

    def _offer(self, items: AsyncGenerator[bytes, None]) -> bytes:
        return self._current().state.feeds.offer(items)

    def _write(self, service: Service, exchange: Exchange, to: Addressee, after: int) -> bytes:
        """A legacy stream after a cursor, as `gateway/front/elsewhere.py` reads it."""
        name = self._offer(_written(service, exchange, to, after)).decode()
        return jsonrpc.dumps([name, prime(exchange, to, after)])


async def _at_hand(message: Message) -> AsyncGenerator[bytes, None]:
    yield pack(message)


async def _told(rounds: Rounds | Gathered) -> AsyncGenerator[bytes, None]:
    """A modern call to its end, or until its client is asked again. Closed early, it is cancelled."""
    try:
        while not rounds.parked and (messages := await rounds.step(lambda source: source())) is not None:
            for message in messages:
                yield pack(message)
    finally:
        rounds.leave()


async def _written(service: Service, exchange: Exchange, to: Addressee, after: int) -> AsyncGenerator[bytes, None]:
    """A legacy stream after a cursor. Closed early, the call goes on, and its stream can be resumed."""
    service.exchanges.watch(exchange)
    try:
        while items := await exchange.read(after):
            after = items[-1][0]
            for message, event_id in said(service, exchange, to, items):
                yield pack(message, event_id)
    finally:
        service.exchanges.unwatch(exchange, abandon=to.id is None)


def route_of(service: Service, key: str) -> Route:
    """The route with this key (`policies/session.py`). Raises `GatewayFault`."""
    found = [route for route in service.settings.routes if session.route_key(route) == key]
    if not found:
        raise GatewayFault("the replicas of the gateway have different routes", http=502)
    return found[0]
