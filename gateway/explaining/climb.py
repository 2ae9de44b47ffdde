"""What would happen to a request: it climbs the same rungs as one that came, and goes nowhere.

Each rung is the policy or the function of the front that decides of real requests (`gateway/front/mcp.py` has their
order). Nothing is asked of an upstream, no session is opened, nothing is counted, and what is read is read from this
process and the store.
"""

import contextlib
from dataclasses import dataclass, replace
from typing import Final

from multidict import CIMultiDict, CIMultiDictProxy

from gateway.drain import REFUSED
from gateway.explaining import legacy, llm, modern
from gateway.explaining.ahead import Asking
from gateway.front.body import Bound
from gateway.front.llm import identify
from gateway.front.mcp import begins
from gateway.front.service import Relayed, Service
from gateway.front.unread import is_read
from policies import coding, cors, jsonrpc, routing
from policies.admission import NO_ENDPOINT, Head, admit_verb, era_of
from policies.errors import Fault, Rejection
from policies.explanation import Described, Ended, Explanation, Ladder
from policies.forwarded import Caller
from policies.mcp import HEADER_LAST_EVENT, HEADER_SESSION, INVALID_REQUEST
from policies.settings import Settings

ASSUMED: Final = "assumed"
"""What stands for a session that is only thought of."""

_UNNAMED: Final = Rejection(INVALID_REQUEST, "client: there is none of that name under clients", http=401)


@dataclass(frozen=True, slots=True)
class _Sent:
    """A described request as it would come in."""

    method: str
    target: str
    headers: CIMultiDictProxy[str]
    raw: bytes
    scheme: str

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def query(self) -> str:
        return self.target.partition("?")[2]


async def explain(service: Service, described: Described, *, live: bool) -> Explanation:
    """What this process would do with a request. `live`: it serves, so that sessions and what is remembered count.

    A fault on the way is the answer that the client would get."""
    ladder = Ladder()
    with contextlib.suppress(Ended):
        await _climb(ladder, service, described, live=live)
    return ladder.finish()


async def _climb(ladder: Ladder, service: Service, described: Described, *, live: bool) -> None:
    sent = _sent(service.settings, described)
    lines = [(name.encode("latin-1", "replace"), value.encode()) for name, value in sent.headers.items()]
    came = service.came(sent.target, sent.headers, lines, described.peer, sent.scheme)
    if isinstance(came, Rejection):
        ladder.refuse("head", came)
    ladder.passes("head", f"{sent.method} over {came.proto}, from a chain of {len(came.chain)}")
    head = _head(ladder, service, sent, came)
    head = _identity(ladder, service, sent, head, described.client)
    if head.route.provider is not None:
        llm.explain(ladder, service, head.route, sent.headers, sent.path, sent.query)
        return
    asking = Asking(ladder, service, Relayed(sent.headers, came), head, sent.raw, live, described.session == ASSUMED)
    if sent.method != "POST":
        await _without_body(asking, sent)
        return
    _size(ladder, service, sent)
    may_pass = not head.http_sse and not is_read(service, sent.raw, late=service.drain.refuses)
    if may_pass and await modern.unread(asking):
        return
    message = jsonrpc.parse(sent.raw, max_depth=service.settings.limits.max_depth)
    if head.http_sse and isinstance(message, list):
        message = Rejection(INVALID_REQUEST, "HTTP+SSE has no batches: one message a POST")
    if isinstance(message, Rejection):
        ladder.ident = jsonrpc.readable_id(sent.raw)
        ladder.refuse("message", message)
    ladder.passes("message", _kind(message))
    ladder.ident = message.id if isinstance(message, jsonrpc.Request) else None
    era = "legacy" if head.http_sse else era_of(sent.headers, message)
    ladder.passes("era", era)
    if head.http_sse:
        ladder.passes("drain", "not looked at here")
        ladder.open("session", "streams of HTTP+SSE live where they were opened; what is posted is answered on them")
        return
    _drain(asking, message)
    try:
        if era == "modern" and not isinstance(message, list):
            await modern.explain(asking, message)
        else:
            await legacy.explain(asking, message)
    except Fault as fault:
        ladder.refuse(asking.at, fault.rejection())


def _sent(settings: Settings, described: Described) -> _Sent:
    headers = CIMultiDict(described.lines)
    if "Host" not in headers and (host := described.host or _own_host(settings)):
        headers["Host"] = host
    if described.session not in (None, ASSUMED) and HEADER_SESSION not in headers:
        headers[HEADER_SESSION] = described.session
    if described.method.upper() == "POST" and "Content-Length" not in headers:
        headers["Content-Length"] = str(len(described.raw))
    scheme = "https" if settings.tls is not None else "http"
    return _Sent(described.method, described.path, CIMultiDictProxy(headers), described.raw, scheme)


def _own_host(settings: Settings) -> str:
    """What a client that knows the public address sends."""
    if settings.public_url:
        return settings.public_url[0].partition("://")[2].partition("/")[0]
    host = next((r.host for r in settings.routes if r.host is not None and not r.host.startswith("*.")), None)
    any_address = settings.listen.host in ("0.0.0.0", "::")  # noqa: S104 - compared, not bound
    return host or ("localhost" if any_address else str(settings.listen))


def _head(ladder: Ladder, service: Service, sent: _Sent, came: Caller) -> Head:
    """Rungs 1 to 3, as `policies/admission.py` has them."""
    doorman, origins = service.doorman, sent.headers.getall("Origin", ())
    preflight = sent.method == "OPTIONS" and any(doorman.allows_origin(o, came.proto, came.host) for o in origins[:1])
    refused = doorman.host_refused(came.host)
    if refused is not None:
        ladder.refuse("host", refused)
    ladder.passes("host", "any is served" if doorman.hosts is None else "it is served")
    refused = None if preflight else doorman.origin_refused(origins, came.proto, came.host)
    if refused is not None:
        ladder.refuse("origin", refused)
    ladder.passes("origin", "allowed" if origins else "none: no browser")
    route = routing.find_route(service.settings.routes, came.host, sent.path)
    if route is None:
        ladder.refuse("route", NO_ENDPOINT)
    ladder.passes("route", route.address, profile=route.profile)
    if preflight:
        if route.provider is not None:
            forwardable = cors.asked_for(sent.headers)
        else:
            names = [name for _, name in route.references()]
            forwardable = [n for name in names for n in service.settings.upstreams[name].forward_headers]
        allowed = cors.preflight_headers(sent.headers, forwardable)
        ladder.end(204, f"a preflight: {', '.join(sorted(allowed))}")
    head = admit_verb(sent.method, sent.path, sent.headers, route)
    if isinstance(head, Rejection):
        ladder.refuse("verb", head)
    reads = [kind for kind, can in (("JSON", head.accept.json), ("event streams", head.accept.sse)) if can]
    ladder.passes("verb", f"{sent.method}; the caller reads {' and '.join(reads) or 'nothing'}")
    return head


def _identity(ladder: Ladder, service: Service, sent: _Sent, head: Head, client: str | None) -> Head:
    if client is not None and client not in service.settings.clients:
        ladder.refuse("identity", _UNNAMED)
    if client is None and head.route.provider is None:
        known = service.identify(head, sent.headers)
    else:
        if client is None:
            named = identify(service.clients, head.route, sent.headers, sent.query)
        else:
            named = service.clients.admit(head.route, client, _UNNAMED)
        known = named if isinstance(named, Rejection) else replace(head, client=named)
    if isinstance(known, Rejection):
        ladder.refuse("identity", known)
    ladder.passes("identity", f"client {known.client}" if known.client else "anonymous")
    return known


def _size(ladder: Ladder, service: Service, sent: _Sent) -> None:
    """A described body is as it is once decoded, whatever coding its headers name."""
    limit = service.settings.limits.max_body_bytes
    if coding.coding_of(sent.headers.getall("Content-Encoding", ())) is None:
        why = f"Content-Encoding must be one of {coding.READABLE}"
        accept = (("Accept-Encoding", coding.READABLE),)
        ladder.refuse("size", Rejection(INVALID_REQUEST, why, http=415, headers=accept))
    if len(sent.raw) > limit:
        ladder.refuse("size", Bound(limit, "limits.max_body_bytes").too_large())
    ladder.passes("size", f"{len(sent.raw)} of at most {limit} bytes")


def _kind(message: jsonrpc.Message | list[jsonrpc.Message | Rejection]) -> str:
    match message:
        case jsonrpc.Request():
            return f"the request {message.method[:64]}"
        case jsonrpc.Notification():
            return f"the notification {message.method[:64]}"
        case jsonrpc.Response():
            return "a response"
        case _:
            return f"a batch of {len(message)}"


def _drain(asking: Asking, message: jsonrpc.Message | list[jsonrpc.Message | Rejection]) -> None:
    ladder, service = asking.ladder, asking.service
    drain = service.drain
    if drain.begun and begins(message, late=drain.refuses, lasting=service.state.store.shared):
        ladder.refuse("drain", REFUSED)
    ladder.passes("drain", "the gateway shuts down; this is still taken" if drain.begun else "the gateway serves")


async def _without_body(asking: Asking, sent: _Sent) -> None:
    """GET and DELETE."""
    ladder, head = asking.ladder, asking.head
    if head.http_sse:
        ladder.passes("drain", "not looked at here")
        ladder.passes("session", "one begins with the stream")
        ladder.end(200, "the stream of HTTP+SSE, which says where to POST")
    if sent.method == "GET" and asking.service.drain.refuses and HEADER_LAST_EVENT not in sent.headers:
        ladder.refuse("drain", REFUSED)
    ladder.passes("drain", "the gateway serves")
    await legacy.without_body(asking, sent.method, resumes=HEADER_LAST_EVENT in sent.headers)
