"""Legacy sessions at one upstream: the caller's own, and shared ones for callers that have none.

Specification: 2025-11-25 basic/lifecycle and basic/transports (Session Management). A legacy client owns one session
1:1, since servers keep state in it. Modern calls share a session per principal and effective capabilities; it has one
GET stream, opened before the first call, on which everybody who shares it hears the upstream.
"""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from gateway.stores.base import Store
from gateway.upstreams.base import OWN_INFO, Ids
from gateway.upstreams.wire import BOTH, Wire
from policies import jsonrpc
from policies.errors import GatewayFault, SessionGone, UpstreamFault
from policies.exchange import Call, FrontSession, UpstreamSession
from policies.mcp import HEADER_SESSION, HEADER_VERSION, LATEST_LEGACY, LEGACY_VERSIONS, Json
from policies.request_state import canonical
from policies.translation.discover import Description, of_initialize

log = logging.getLogger(__name__)

IDLE_S = 300.0
"""How long a shared session nobody uses is kept. Servers drop idle sessions after minutes to an hour."""

MAX_SHARED = 1024
"""Shared sessions at one upstream: as many callers as a replica may serve at a time, not one per request ever made."""

MAX_EXCLUSIVE = 128
"""Sessions that one principal may hold for calls that may ask, each of which may wait for a human."""

Listener = Callable[[str, Json], None]


@dataclass(eq=False, slots=True)
class Shared:
    """A session that calls of one principal and set of capabilities borrow."""

    session: UpstreamSession
    description: Description
    forwarded: tuple[tuple[str, str], ...]
    listeners: set[Listener] = field(default_factory=set)
    subscribed: dict[str, int] = field(default_factory=dict)
    level: str | None = None
    users: int = 0
    can_hear: asyncio.Future[bool] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    pump: asyncio.Task[None] | None = None
    expiry: asyncio.TimerHandle | None = None

    def publish(self, method: str, params: Json) -> None:
        for listener in tuple(self.listeners):
            listener(method, params)


class Sessions:
    def __init__(self, wire: Wire, store: Store, ids: Ids, session_ttl_s: float) -> None:
        self._wire = wire
        self._store = store
        self._ids = ids
        self._ttl_s = session_ttl_s
        self._shared: dict[str, Shared] = {}
        self._opening: dict[str, asyncio.Lock] = {}
        self._background: set[asyncio.Task[None]] = set()
        self.start_pump: Callable[[Shared], asyncio.Task[None]]

    # any session

    def headers(self, session: UpstreamSession, forwarded: Sequence[tuple[str, str]]) -> dict[str, str]:
        """The head of a request inside `session`: its id, if there is one, and the version negotiated with it."""
        head = dict(forwarded) | BOTH | {HEADER_VERSION: session.version}
        if session.id is not None:
            head[HEADER_SESSION] = session.id
        return head

    async def open(
        self, capabilities: Json, info: Json | None, version: str, forwarded: Sequence[tuple[str, str]]
    ) -> tuple[UpstreamSession, Description]:
        """`initialize`: no version header on it, since some servers refuse those they do not know."""
        params: Json = {"protocolVersion": version, "capabilities": capabilities, "clientInfo": info or OWN_INFO}
        body = jsonrpc.request(self._ids.next(), "initialize", params)
        async with self._wire.request("POST", dict(forwarded) | BOTH, body) as reception:
            message = await reception.response()
            session_id = reception.headers.get(HEADER_SESSION)
        result = message.get("result")
        if not isinstance(result, dict):
            raise UpstreamFault(
                f"upstream {self._wire.name} refused to initialize: {_why(message)}", executed=False, contradiction=True
            )
        negotiated = result.get("protocolVersion")
        if negotiated not in LEGACY_VERSIONS:
            raise UpstreamFault(f"upstream {self._wire.name} wants a protocol version this gateway does not know")
        return UpstreamSession(session_id, negotiated), of_initialize(result, negotiated)

    async def tell(self, session: UpstreamSession, body: bytes, forwarded: Sequence[tuple[str, str]]) -> None:
        """Sends a notification or a response. Whatever a server answers to it is accepted, but for 404."""
        async with self._wire.request("POST", self.headers(session, forwarded), body) as reception:
            if reception.status == 404 and session.id is not None:
                raise SessionGone

    async def request(
        self, session: UpstreamSession, method: str, params: Json, forwarded: Sequence[tuple[str, str]]
    ) -> Json:
        """One request of the gateway's own inside a session; the whole JSON-RPC response."""
        body = jsonrpc.request(self._ids.next(), method, params)
        async with self._wire.request("POST", self.headers(session, forwarded), body) as reception:
            if reception.status == 404 and session.id is not None:
                raise SessionGone
            return await reception.response()

    async def delete(self, session: UpstreamSession, forwarded: Sequence[tuple[str, str]]) -> None:
        """Ends a session; servers that do not let clients do that answer 405."""
        if session.id is None:
            return
        try:
            async with self._wire.request("DELETE", self.headers(session, forwarded)):
                pass
        except UpstreamFault:
            log.debug("a session of upstream %s could not be deleted", self._wire.name)

    # a caller's own

    async def owned(
        self, owner: FrontSession, forwarded: Sequence[tuple[str, str]], capabilities: Json
    ) -> UpstreamSession:
        """The session of a legacy client at this upstream, with `initialized` sent: from the store if it was replaced
        or opened late, else from the client's token, else opened now (a route may lead to several upstreams)."""
        session = await self._find(owner)
        if session is None:
            async with self._opening.setdefault(owner.id, asyncio.Lock()):
                session = await self._find(owner)
                if session is None:
                    session, _ = await self.open(capabilities, owner.client_info, owner.version, forwarded)
                    await self.replace(owner, session)
            self._opening.pop(owner.id, None)
        await self.initialized(owner, session, forwarded)
        return session

    async def initialized(
        self, owner: FrontSession, session: UpstreamSession, forwarded: Sequence[tuple[str, str]]
    ) -> None:
        """Sends `notifications/initialized` once a session: when the client does, or before its first request if it
        skips that or races it."""
        key = f"initialized:{self._wire.name}:{owner.id}:{session.id}"
        if await self._store.set_nx(key, b"1", self._ttl_s):
            await self.tell(session, jsonrpc.notification("notifications/initialized"), forwarded)

    async def replace(self, owner: FrontSession, session: UpstreamSession) -> None:
        value = jsonrpc.dumps([session.id, session.version])
        await self._store.set(self._key(owner), value, self._ttl_s)

    async def end(self, owner: FrontSession, forwarded: Sequence[tuple[str, str]]) -> None:
        session = await self._find(owner)
        if session is not None:
            await self._store.delete(self._key(owner))
            await self.delete(session, forwarded)

    async def _find(self, owner: FrontSession) -> UpstreamSession | None:
        value = await self._store.get(self._key(owner))
        if value is not None:
            session_id, version = jsonrpc.loads(value)
            return UpstreamSession(session_id, version)
        return owner.upstreams.get(self._wire.name)

    def _key(self, owner: FrontSession) -> str:
        return f"session:{self._wire.name}:{owner.id}"

    # shared ones

    async def shared(self, call: Call, *, exclusive: bool = False) -> Shared:
        """The session for this call's principal and capabilities, opened at the first use and kept while used.

        `exclusive`: one that no other call uses meanwhile, since an ask on its GET stream does not say which call it
        belongs to. Raises `GatewayFault` where the principal has `MAX_EXCLUSIVE` of them in use."""
        key = _digest(call)
        if exclusive:
            key = self._free_slot(key)
        async with self._opening.setdefault(key, asyncio.Lock()):
            found = self._shared.get(key)
            if found is None:
                if len(self._shared) >= MAX_SHARED:
                    raise UpstreamFault(
                        f"upstream {self._wire.name} has {MAX_SHARED} sessions of this gateway", http=503
                    )
                found = await self._open_shared(key, call)
        found.users += 1
        if found.expiry is not None:
            found.expiry.cancel()
        return found

    def _free_slot(self, key: str) -> str:
        """An exclusive session that is free, else one that is yet to be opened."""
        for number in range(MAX_EXCLUSIVE):
            slot = f"{key}:{number}"
            lock, known = self._opening.get(slot), self._shared.get(slot)
            if not (lock is not None and lock.locked()) and (known is None or not known.users):
                return slot
        raise GatewayFault(f"{MAX_EXCLUSIVE} calls of this client that may ask are under way; wait for one", http=429)

    def release(self, shared: Shared) -> None:
        """The call is over; an unused session is deleted after `IDLE_S`."""
        shared.users -= 1
        if shared.users == 0 and not shared.gone.is_set():
            shared.expiry = asyncio.get_running_loop().call_later(IDLE_S, self._retire, shared)

    def lost(self, shared: Shared) -> None:
        """The upstream no longer knows it: the next call opens another, and listeners are told."""
        shared.gone.set()
        for key, known in list(self._shared.items()):
            if known is shared:
                del self._shared[key]
                self._opening.pop(key, None)
        if shared.pump is not None and shared.pump is not asyncio.current_task():
            shared.pump.cancel()

    def retire(self) -> None:
        """Listeners are told to listen anew, and the streams they heard end; calls under way go on."""
        for shared in self._shared.values():
            shared.gone.set()
            if shared.pump is not None:
                shared.pump.cancel()

    async def close(self) -> None:
        """Deletes the shared sessions; those of legacy clients stay theirs."""
        for shared in list(self._shared.values()):
            self._retire(shared)
        while self._background:
            await asyncio.wait(self._background)

    async def _open_shared(self, key: str, call: Call) -> Shared:
        session, description = await self.open(call.capabilities, None, LATEST_LEGACY, call.forwarded)
        await self.tell(session, jsonrpc.notification("notifications/initialized"), call.forwarded)
        shared = self._shared[key] = Shared(session, description, call.forwarded)
        shared.pump = self.start_pump(shared)
        await asyncio.wait({shared.can_hear}, timeout=self._wire.settings.timeouts.probe_s)
        return shared

    def _retire(self, shared: Shared) -> None:
        if shared.users and not shared.gone.is_set():
            log.debug("a shared session of upstream %s ends while it is used", self._wire.name)
        self.lost(shared)
        task = asyncio.create_task(self.delete(shared.session, shared.forwarded))
        self._background.add(task)
        task.add_done_callback(self._background.discard)


def _digest(call: Call) -> str:
    """One shared session per principal, credentials that go upstream, and set of capabilities."""
    known = jsonrpc.dumps([call.principal, sorted(call.forwarded), canonical(call.capabilities)])
    return hashlib.sha256(known).hexdigest()


def _why(message: Json) -> str:
    error = message.get("error")
    return f"JSON-RPC error {error.get('code')}" if isinstance(error, dict) else "no result"
