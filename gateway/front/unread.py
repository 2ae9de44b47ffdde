"""Requests of modern clients that are spliced unread, on what their headers say.

Specification: 2026-07-28 basic/transports/streamable-http (Standard Headers). Only where the upstream verifies those
itself, and where nothing in the body can matter here.
"""

from dataclasses import replace
from functools import partial

from aiohttp import web

from gateway.front import operation, reply
from gateway.front.caching import may_keep
from gateway.front.calls import OF_TOOLS, call_of, learner
from gateway.front.service import Caller, Service
from gateway.front.splice import Relay, splice
from gateway.upstreams.pool import Upstream
from policies import apps, apps_marks, headers, jsonrpc, task_ids
from policies.admission import Head
from policies.errors import Fault, UpstreamFault
from policies.exchange import Call
from policies.mcp import (
    HEADER_METHOD,
    HEADER_NAME,
    HEADER_VERSION,
    LATEST_MODERN,
    LISTEN,
    MAY_ASK,
    META_CLIENT_CAPABILITIES,
    Json,
)
from policies.peek import declared
from policies.profiles import Effective, Profile
from policies.request_state import Bond, mentions
from policies.task_ids import TaskIds
from policies.trace_context import is_to_be_read

_NAMES_RESOURCE = frozenset({"resources/read", "completion/complete"})


async def serve_unread(service: Service, request: web.BaseRequest, head: Head, raw: bytes) -> web.StreamResponse | None:
    """Splices on the headers alone, where the upstream that they name verifies them itself (`verifies_headers`): not a
    byte of the body is parsed. None where this request is not of that kind."""
    found = named(service, request, head)
    if found is None:
        return None
    said, upstream = found
    method, name = said
    noted = operation.of(request)
    noted.method, noted.era, noted.rung = method, "modern", "profile"
    noted.goes_to(upstream, method, name)
    try:
        forwarded = service.forwarded(upstream, request)
        connector = await upstream.connector("modern", forwarded)
        noted.upstream_era = connector.dialect.era
        if connector.dialect.era != "modern":
            return None
        tasks, bond = bound(service, request, head, upstream, method)
        if must_be_read(said, tasks, bond, raw):
            return None
        learn = None
        if method in OF_TOOLS:
            call = _unread(service, request, head, upstream, said, raw)
            if await connector.hides(call):
                return reply.rejected(apps.unknown_tool(name), jsonrpc.readable_id(raw))
            learn = learner(connector, call)
        profile = partial(_profile_of, service, head, raw)
        relay = Relay(
            service, request, method, upstream, forwarded, profile, bond, tasks, uri=name or None, learn=learn
        )
        relay = replace(relay, client=head.client, tool=name or None)
        return await splice(relay, raw)
    except Fault as fault:
        if isinstance(fault, UpstreamFault) and fault.contradiction:
            await upstream.forget_era()
        return await reply.failed(request, fault.rejection(), jsonrpc.readable_id(raw))


def is_read(service: Service, raw: bytes, *, late: bool) -> bool:
    """Whether a request with this body is read, whatever its headers say."""
    return late or not service.may_pass_unread or is_to_be_read(raw, baggage=service.settings.tracing.baggage)


def named(service: Service, request: Caller, head: Head) -> tuple[tuple[str, str], Upstream] | None:
    """Method, name and upstream of a request that may go on unread, by its headers; None for any other."""
    said = _told_by_headers(request, head)
    if said is None:
        return None
    method, name = said
    upstream = service.upstream_for(head.route, method, name or None, request.headers)
    # below some ceilings, the upstream must not be told all that stands in the body
    withholds = service.profiles.withholds(service.ceiling(head.route, head.client))
    is_kept = may_keep(service, head.route, upstream, method)
    if withholds or is_kept or not upstream.settings.verifies_headers or method in ("server/discover", LISTEN):
        return None
    return said, upstream


def bound(
    service: Service, request: Caller, head: Head, upstream: Upstream, method: str
) -> tuple[TaskIds | None, Bond | None]:
    """How tasks are named to this caller, and to whom the upstream's state is sealed."""
    bond = service.bond(head, upstream, request) if method in MAY_ASK else None
    return service.task_ids(head, upstream, request, "modern"), bond


def must_be_read(said: tuple[str, str], tasks: TaskIds | None, bond: Bond | None, raw: bytes) -> bool:
    """Whether something in this body matters here."""
    method, name = said
    if task_ids.names_task(method) and (tasks is not None or not name):
        return True
    if bond is not None and mentions(raw):
        return True
    return method in _NAMES_RESOURCE and apps_marks.might_show(raw)


def _told_by_headers(request: Caller, head: Head) -> tuple[str, str] | None:
    """Method and name (empty where there is none) of a request that may be spliced; None where they tell less."""
    method = request.headers.get(HEADER_METHOD)
    if head.version != LATEST_MODERN or method is None or not (head.accept.json and head.accept.sse):
        return None
    if any(len(request.headers.getall(line, ())) > 1 for line in (HEADER_VERSION, HEADER_METHOD, HEADER_NAME)):
        return None
    try:
        return method, headers.decode(request.headers.get(HEADER_NAME, ""))
    except ValueError:
        return None


def _unread(
    service: Service, request: Caller, head: Head, upstream: Upstream, said: tuple[str, str], raw: bytes
) -> Call:
    """A request for tools of which no more is known than its headers say, and what its client can show. A list counts
    as one page of several where the body might name a cursor."""
    (method, name), effective = said, _effective(service, head, raw)
    params: Json = {"name": name, "_meta": {META_CLIENT_CAPABILITIES: effective.capabilities}}
    if method == "tools/list" and (b'"cursor"' in raw or apps_marks.might_show(raw)):  # which sees escaped letters
        params["cursor"] = "?"
    call = call_of(service, request, head, jsonrpc.Request("", method, params), upstream, headless=False)
    return replace(call, profile=effective.profile)


def _effective(service: Service, head: Head, raw: bytes) -> Effective:
    """What holds for a body that nobody has read yet; the plain surface where it declares nothing."""
    return service.effective(head.route, head.client, declared(raw) or {})


def _profile_of(service: Service, head: Head, raw: bytes) -> Profile:
    return _effective(service, head, raw).profile
