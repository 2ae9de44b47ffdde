"""A legacy client that reads on where its stream was cut (`Last-Event-ID`), at whichever replica it comes back.

Specification: 2025-11-25 basic/transports, Resumability and Redelivery. Where the replica has ended that wrote the
stream, its call has too: the client is told so as the call's answer, since official clients that are refused the rest
of a stream wait for the answer for ever. A standalone stream begins anew, as nothing is known to be missing on it.
"""

from aiohttp import web

from gateway.drain import REFUSED
from gateway.front import elsewhere, reply
from gateway.front.drive import drive_feed, resume
from gateway.front.service import Service
from gateway.stores.base import StoreUnavailable
from gateway.stores.changes import STREAM
from gateway.stores.mail import ReplicaGone
from policies.admission import Acceptance
from policies.delivery import error
from policies.errors import ClientFault, Fault
from policies.exchange import FrontSession
from policies.mcp import HEADER_LAST_EVENT
from policies.resumption import Place, place_of


def no_stream() -> ClientFault:
    return ClientFault(f"{HEADER_LAST_EVENT} names no stream that can be resumed", http=400)


async def resumed(
    service: Service, request: web.BaseRequest, owner: FrontSession, last: str
) -> web.StreamResponse | None:
    """The rest of the stream that `last` names; None where that is the session's standalone one, which has ended with
    its replica and begins anew. Raises where it is no stream of this session, or the store is down."""
    place = place_of(last)
    if place is None:
        raise no_stream()
    exchange = service.exchanges.find(owner.id, place.exchange)
    if exchange is not None:
        return await resume(service, request, exchange, service.addressee(exchange), place.cursor)
    mail = service.state.mail
    replica = mail.elsewhere(place.exchange)
    try:
        if mail.made(place.exchange):
            raise no_stream()
        if replica is None:
            raise ReplicaGone
        feed = await elsewhere.resume(service, replica, owner, place.exchange, place.cursor)
    except StoreUnavailable:
        raise
    except Fault as lost:
        return await _instead(service, request, owner, place, lost)
    return await drive_feed(service, request, feed)


async def _instead(
    service: Service, request: web.BaseRequest, owner: FrontSession, place: Place, lost: Fault
) -> web.StreamResponse | None:
    if place.standalone and await _is_current(service, owner, place.exchange):
        return reply.rejected(REFUSED) if service.drain.begun else None
    if place.request is None or not isinstance(lost, ReplicaGone):
        raise lost
    return await reply.single(request, error(lost.rejection(), place.request), Acceptance(json=False, sse=True))


async def _is_current(service: Service, owner: FrontSession, stream: str) -> bool:
    """Whether no other standalone stream has taken over from this one."""
    if service.exchanges.standalone(owner.id) is not None:
        return False
    return (await service.state.changes.fresh(owner.id)).get(STREAM, b"").decode() in ("", stream)
