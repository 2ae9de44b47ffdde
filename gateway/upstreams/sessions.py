"""Legacy sessions at one upstream: the caller's own, and shared ones for callers that have none.

Specification: 2025-11-25 basic/lifecycle and basic/transports (Session Management). A legacy client owns one session
1:1, since servers keep state in it. Modern calls share a session per principal and effective capabilities; it has one
GET stream, opened before the first call, on which everybody who shares it hears the upstream.
"""

import asyncio
import hashlib
import logging
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from gateway.background import Background
from gateway.stores.base import StoreUnavailable
from gateway.stores.changes import UPSTREAM
from gateway.stores.shared import Shared as State
from gateway.upstreams.base import OWN_INFO, Ids
from gateway.upstreams.once import Once
from gateway.upstreams.patience import Patience, within
from gateway.upstreams.shared_session import Shared
from gateway.upstreams.transport import Transport
from gateway.upstreams.wire import BOTH
from policies import jsonrpc
from policies.errors import GatewayFault, SessionGone, UpstreamFault
from policies.exchange import Call, FrontSession, UpstreamSession
from policies.forwarded import lasting
from policies.identity import ANONYMOUS
from policies.mcp import HEADER_SESSION, HEADER_VERSION, LATEST_LEGACY, LEGACY_VERSIONS, Json
from policies.request_state import canonical
from policies.translation.discover import Description, of_initialize

log = logging.getLogger(__name__)

IDLE_S = 300.0
"""How long a shared session nobody uses is kept. Servers drop idle sessions after minutes to an hour."""

MAX_SHARED = 1024
"""Shared sessions at one upstream: as many callers as a replica may serve at a time, not one per request ever made."""

MAX_EXCLUSIVE = 128
"""Sessions that one principal may hold for calls that may ask, each of which may wait for a human. Callers that nothing
tells apart may be many users, and have half of `MAX_SHARED`."""

MAX_TOLD = 4096
"""Sessions of which it is remembered that they have been told `initialized`; of others, the store knows."""

_SESSION_ID = re.compile(r"[\x21-\x7e]{1,1024}")
"""Visible ASCII (basic/transports, Session Management); longer ones do not fit into a client's token."""

T = TypeVar("T")


class Sessions:
    def __init__(self, wire: Transport, state: State, ids: Ids, session_ttl_s: float) -> None:
        self._wire = wire
        self._store = state.store
        self._changes = state.changes
        self._held = state.held
        self._told: dict[str, None] = {}
        self._ids = ids
        self._ttl_s = session_ttl_s
        timeouts = wire.settings.timeouts
        self._patience_s = timeouts.first_byte_s + timeouts.connect_s  # the transport waits for the head, and counts it
        self._shared: dict[str, Shared] = {}
        self._leased: set[str] = set()
        self._retired = False
        self._opening = Once()
        self._background = Background()
        self.start_pump: Callable[[Shared], asyncio.Task[None]]
        self.on_change: Callable[[str, Json], None] = lambda *_: None
        """Told whatever is said in any session that no one call has asked for."""
        self.on_end: Callable[[str, float], None] = lambda *_: None
        """Told of each shared session that has ended its revision, and how many seconds it lasted."""

    def __len__(self) -> int:
        """How many are shared now."""
        return len(self._shared)

    @property
    def leases(self) -> int:
        """How many of them one call has for itself."""
        return len(self._leased)

    @property
    def streams(self) -> int:
        """How many of their streams are heard."""
        return sum(shared.pump is not None and not shared.pump.done() for shared in self._shared.values())

    # any session

    def headers(self, session: UpstreamSession, forwarded: Sequence[tuple[str, str]]) -> dict[str, str]:
        """The head of a request inside `session`: its id, if there is one, the version negotiated with it, and what a
        load balancer knows it by."""
        head = dict(forwarded) | BOTH | {HEADER_VERSION: session.version}
        if session.cookie:
            head["Cookie"] = session.cookie
        if session.id is not None:
            head[HEADER_SESSION] = session.id
        return head

    async def open(
        self,
        capabilities: Json,
        info: Json | None,
        version: str,
        forwarded: Sequence[tuple[str, str]],
        endpoint: str = "",
    ) -> tuple[UpstreamSession, Description]:
        """`initialize`, at the endpoint called `endpoint` if any: no version header on it, since some servers refuse
        those they do not know."""
        params: Json = {"protocolVersion": version, "capabilities": capabilities, "clientInfo": info or OWN_INFO}
        body = jsonrpc.request(self._ids.next(), "initialize", params)
        async with (
            within(self._patience_s, self._wire.name),  # an answer that drips is none
            self._wire.request("POST", dict(forwarded) | BOTH, body, Patience(endpoint=endpoint)) as reception,
        ):
            message = await reception.response()
            session_id = reception.headers.get(HEADER_SESSION)
            opened_at, cookie = reception.endpoint, reception.cookie
        if session_id is not None and not _SESSION_ID.fullmatch(session_id):
            raise UpstreamFault(f"upstream {self._wire.name} names its session by what is no session id")
        result = message.get("result")
        if not isinstance(result, dict):
            raise UpstreamFault(
                f"upstream {self._wire.name} refused to initialize: {_why(message)}", executed=False, contradiction=True
            )
        negotiated = result.get("protocolVersion")
        if negotiated not in LEGACY_VERSIONS:
            raise UpstreamFault(f"upstream {self._wire.name} wants a protocol version this gateway does not know")
        where = opened_at if session_id is not None else ""  # without one, nothing lives anywhere
        return UpstreamSession(session_id, negotiated, where, cookie), of_initialize(result, negotiated)

    async def tell(self, session: UpstreamSession, body: bytes, forwarded: Sequence[tuple[str, str]]) -> None:
        """Sends a notification or a response. Whatever a server answers to it is accepted, but for 404."""
        head, where = self.headers(session, forwarded), Patience(endpoint=session.endpoint)
        async with self._wire.request("POST", head, body, where) as reception:
            if reception.status == 404 and session.id is not None:
                raise SessionGone

    async def request(
        self, session: UpstreamSession, method: str, params: Json, forwarded: Sequence[tuple[str, str]]
    ) -> Json:
        """One request of the gateway's own inside a session; the whole JSON-RPC response."""
        body = jsonrpc.request(self._ids.next(), method, params)
        head, where = self.headers(session, forwarded), Patience(endpoint=session.endpoint)
        async with (
            within(self._patience_s, self._wire.name),
            self._wire.request("POST", head, body, where) as reception,
        ):
            if reception.status == 404 and session.id is not None:
                raise SessionGone
            return await reception.response()

    async def delete(self, session: UpstreamSession, forwarded: Sequence[tuple[str, str]]) -> None:
        """Ends a session; servers that do not let clients do that answer 405."""
        if session.id is None:
            return
        try:
            where = Patience(endpoint=session.endpoint)
            async with self._wire.request("DELETE", self.headers(session, forwarded), None, where):
                pass
        except UpstreamFault:
            log.debug("a session of upstream %s could not be deleted", self._wire.name)

    # a caller's own

    async def owned(
        self, owner: FrontSession, forwarded: Sequence[tuple[str, str]], capabilities: Json
    ) -> UpstreamSession:
        """The session of a legacy client at this upstream: from the store if it was replaced or opened late, else from
        the client's token, else opened now (a route may lead to several upstreams)."""
        session = await self.find(owner)
        return session or await self.renewed(owner, None, forwarded, capabilities)

    async def renewed(
        self,
        owner: FrontSession,
        lost: UpstreamSession | None,
        forwarded: Sequence[tuple[str, str]],
        capabilities: Json,
    ) -> UpstreamSession:
        """The owner's session in place of one that the upstream has lost, or of none: one for all replicas, whichever
        of them find that out at once. Raises `StoreUnavailable` where they cannot agree on it."""
        return await self._opening.outcome(owner.id, lambda: self._open_owned(owner, lost, forwarded, capabilities))

    async def _open_owned(
        self,
        owner: FrontSession,
        lost: UpstreamSession | None,
        forwarded: Sequence[tuple[str, str]],
        capabilities: Json,
    ) -> UpstreamSession:
        known = self._of(owner, await self._changes.fresh(owner.id))
        if known is not None and known != lost:
            return known
        opened, _ = await self.open(capabilities, owner.client_info, owner.version, forwarded)
        session = None
        try:
            await self.initialized(owner, opened, forwarded)  # whoever learns of it can use it
            session = await self._agreed(owner, opened, lost)
        except SessionGone as gone:
            raise self.refused() from gone
        finally:
            if session != opened:  # another replica's, or none
                await self.delete(opened, forwarded)
        return session

    async def _agreed(
        self, owner: FrontSession, opened: UpstreamSession, lost: UpstreamSession | None
    ) -> UpstreamSession:
        """The session that all replicas use from now on in place of `lost`."""
        key = f"opened:{self._wire.name}:{owner.id}:{lost.id if lost is not None else ''}"
        value = _packed(opened)
        first = await self._store.set_nx(key, value, self._ttl_s)
        value = value if first else await self._store.get(key) or value
        await self._changes.put(owner.id, UPSTREAM + self._wire.name, value, self._ttl_s)
        return _unpacked(value)

    def refused(self) -> UpstreamFault:
        """Several servers behind one address, each with sessions of its own, are like that."""
        return UpstreamFault(f"upstream {self._wire.name} refuses the session it has just opened", executed=False)

    async def initialized(
        self, owner: FrontSession, session: UpstreamSession, forwarded: Sequence[tuple[str, str]]
    ) -> None:
        """Sends `notifications/initialized` once a session: when the client does, or before its first request if it
        skips that or races it."""
        key = f"initialized:{self._wire.name}:{owner.id}:{session.id}"
        if key in self._told:
            return
        if len(self._told) >= MAX_TOLD:
            del self._told[next(iter(self._told))]
        self._told[key] = None
        try:
            first = await self._store.set_nx(key, b"1", self._ttl_s)
        except StoreUnavailable:
            first = True  # twice does no harm, and not at all keeps servers from serving
        if first:
            await self.tell(session, jsonrpc.notification("notifications/initialized"), forwarded)

    async def end(self, owner: FrontSession, forwarded: Sequence[tuple[str, str]]) -> None:
        session = await self.find(owner)
        if session is not None:
            await self.delete(session, forwarded)

    async def find(self, owner: FrontSession) -> UpstreamSession | None:
        """The session of a legacy client at this upstream, where one has been opened."""
        return self._of(owner, await self._changes.of(owner.id))

    def _of(self, owner: FrontSession, changes: Mapping[str, bytes]) -> UpstreamSession | None:
        value = changes.get(UPSTREAM + self._wire.name)
        return _unpacked(value) if value is not None else owner.upstreams.get(self._wire.name)

    # shared ones

    async def shared(self, call: Call, endpoint: str, *, exclusive: bool = False) -> Shared:
        """The session for this call's principal and capabilities at that endpoint, opened at the first use and kept
        while used.

        `exclusive`: one that no other call uses meanwhile, since an ask on its GET stream does not say which call it
        belongs to; it may be at another endpoint. Its GET stream is open, unless it is only wanted for what the server
        said of itself. Raises `GatewayFault` where the principal has `MAX_EXCLUSIVE` of them in use."""
        key = _digest(call)
        if not exclusive:
            return await self._borrow(f"{key}@{endpoint}", call, endpoint, leased=False)
        key = self._free_slot(key, MAX_SHARED // 2 if call.principal == ANONYMOUS else MAX_EXCLUSIVE)
        self._leased.add(key)
        found = None
        try:
            found = await self._borrow(key, call, endpoint, leased=True)
        finally:
            if found is None:
                self._leased.discard(key)
        return found

    async def _borrow(self, key: str, call: Call, endpoint: str, *, leased: bool) -> Shared:
        """A session that has stood idle may be lost without anybody's knowing: its stream tells, and another is
        opened. Raises `UpstreamFault` where that is lost at once too."""
        for _ in range(2):
            found = self._shared.get(key)
            if found is None or key in self._opening:
                found = await self._opening.outcome(key, lambda: self._open_shared(key, call, endpoint, leased=leased))
            found.users += 1
            if found.expiry is not None:
                found.expiry.cancel()
            kept = False
            try:
                if call.method != "initialize":
                    await self._heard(found)
                kept = not found.gone.is_set() or self._retired
            finally:
                if not kept:
                    self._leave(found)
            if kept:
                return found
        raise self.refused()

    async def _heard(self, shared: Shared) -> None:
        """Opens the stream of a session whose first call this is, or waits while another one does."""
        key = f"stream {id(shared)}"
        if shared.pump is None or key in self._opening:
            await self._opening.outcome(key, lambda: self._hear(shared))

    async def _hear(self, shared: Shared) -> None:
        shared.pump = self.start_pump(shared)
        await asyncio.wait({shared.can_hear}, timeout=self._wire.settings.timeouts.probe_s)

    def _free_slot(self, key: str, bound: int) -> str:
        """The place of an exclusive session that is free, or that is yet to be opened."""
        for number in range(bound):
            if f"{key}:{number}" not in self._leased:
                return f"{key}:{number}"
        raise GatewayFault(f"{bound} calls of this client that may ask are under way; wait for one", http=429)

    def release(self, shared: Shared) -> None:
        """The call is over; an unused session is deleted after `IDLE_S`."""
        self._leased.discard(shared.leased_as)
        if shared.leased_as and self._retired and shared.pump is not None:
            shared.pump.cancel()
        self._leave(shared)

    def _leave(self, shared: Shared) -> None:
        shared.users -= 1
        if shared.users == 0 and not shared.gone.is_set():
            self._expire_later(shared)

    def lost(self, shared: Shared) -> None:
        """The upstream no longer knows it: the next call opens another, and listeners are told."""
        shared.gone.set()
        if shared.expiry is not None:
            shared.expiry.cancel()
        for key, known in list(self._shared.items()):
            if known is shared:
                del self._shared[key]
                self.on_end(shared.session.version, time.monotonic() - shared.began_s)
        if shared.pump is not None and shared.pump is not asyncio.current_task():
            shared.pump.cancel()
        if not shared.forwarded:
            self._background.start(self._held.remove(self._wire.name, shared.session))

    def retire(self) -> None:
        """Listeners are told to listen anew, and the streams they heard end; calls under way go on, and are asked on
        theirs."""
        self._retired = True
        for shared in self._shared.values():
            shared.gone.set()
            if shared.pump is not None and shared.leased_as not in self._leased:
                shared.pump.cancel()

    async def close(self) -> None:
        """Deletes the shared sessions; those of legacy clients stay theirs."""
        await self._opening.close()
        for shared in list(self._shared.values()):
            self._retire(shared)
        await self._background.over()

    async def _open_shared(self, key: str, call: Call, endpoint: str, *, leased: bool) -> Shared:
        self._make_room()
        session, description = await self.open(call.capabilities, None, LATEST_LEGACY, call.forwarded, endpoint)
        await self.tell(session, jsonrpc.notification("notifications/initialized"), call.forwarded)
        if not lasting(call.forwarded):
            await self._held.add(self._wire.name, session)
        shared = Shared(session, description, lasting(call.forwarded), leased_as=key if leased else "")
        self._shared[key] = shared
        self._expire_later(shared)  # whoever wanted it may have left
        return shared

    def _make_room(self) -> None:
        """At the bound, a session that nobody uses makes room for one that is wanted."""
        if len(self._shared) < MAX_SHARED:
            return
        idle = next((shared for shared in self._shared.values() if shared.users == 0), None)
        if idle is None:
            raise UpstreamFault(f"upstream {self._wire.name} has {MAX_SHARED} sessions of this gateway", http=503)
        self._retire(idle)

    def _expire_later(self, shared: Shared) -> None:
        shared.expiry = asyncio.get_running_loop().call_later(IDLE_S, self._retire, shared)

    def _retire(self, shared: Shared) -> None:
        if shared.users and not shared.gone.is_set():
            log.debug("a shared session of upstream %s ends while it is used", self._wire.name)
        self.lost(shared)
        self._background.start(self.delete(shared.session, shared.forwarded))


def _packed(session: UpstreamSession) -> bytes:
    return jsonrpc.dumps(session.members)


def _unpacked(value: bytes) -> UpstreamSession:
    return UpstreamSession(*jsonrpc.loads(value))


def _digest(call: Call) -> str:
    """One shared session per principal, credentials that go upstream, and set of capabilities."""
    known = jsonrpc.dumps([call.principal, sorted(lasting(call.forwarded)), canonical(call.capabilities)])
    return hashlib.sha256(known).hexdigest()


def _why(message: Json) -> str:
    error = message.get("error")
    return f"JSON-RPC error {error.get('code')}" if isinstance(error, dict) else "no result"
