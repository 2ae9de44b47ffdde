"""Modern to modern: the request goes out as the bytes that came in, and so does the answer.

Specification: 2026-07-28 basic/transports/streamable-http. No exchange is built. What is still seen to: hop-by-hop and
private headers stay behind, an answer is this request's, events are passed on whole, and exactly one last message
reaches the client, even where the upstream breaks off or goes on after its answer. A client that goes away closes the
upstream's response, which is the cancel.
"""

from collections.abc import Awaitable

from aiohttp import web
from multidict import CIMultiDict

from gateway.drain import Draining
from gateway.front import reply
from gateway.front.service import Service
from gateway.upstreams.pool import Upstream
from gateway.upstreams.wire import BOTH, Reception, Waiting, within
from policies import jsonrpc
from policies.delivery import error, farewell
from policies.errors import UpstreamFault, UpstreamRetired
from policies.headers import name_in
from policies.mcp import HEADER_SESSION, INVALID_REQUEST, LEGACY_SESSION_NOT_FOUND, LISTEN
from policies.peek import Splice
from policies.routing import timeouts_for

_PASSED = frozenset({"traceparent", "tracestate"})
_LEGACY_CODES = frozenset({-32000, LEGACY_SESSION_NOT_FOUND, INVALID_REQUEST})


async def splice(
    service: Service,
    request: web.BaseRequest,
    raw: bytes,
    method: str,
    upstream: Upstream,
    forwarded: tuple[tuple[str, str], ...],
) -> web.StreamResponse:
    """Raises `UpstreamFault` as long as nothing has been written to the client. Of the body, no more is looked at than
    what its answers are held against."""
    head = CIMultiDict((k, v) for k, v in request.headers.items() if _passes(k.lower()))  # every line, as it came
    head.update([*forwarded, *BOTH.items()])
    listens = method == LISTEN
    limits = timeouts_for(upstream.settings, method, name_in(request.headers))
    total_s = None if listens else limits.total_s
    stream = reply.Stream(request, service.settings.streams.keep_alive_s)

    async def until_drained(work: Awaitable[bytes]) -> bytes:
        return await service.drain.unless_begun(stream.waiting(work))

    try:
        async with upstream.wire.request("POST", head, raw, long_lived=listens, limits=limits) as reception:
            if reception.kind == "sse":
                waiting = until_drained if listens else stream.waiting
                return await _stream(reception, stream, Splice(raw), waiting, total_s)
            async with within(total_s, upstream.name):
                return await _json(reception, Splice(raw))
    except UpstreamRetired:
        if stream.response is None:
            raise
        return await stream.end()  # a listener listens anew, and the route then leads elsewhere


async def _json(reception: Reception, splice: Splice) -> web.Response:
    body = await reception.raw() if reception.kind == "json" else b""
    if splice.id is None and reception.status == 202:
        return reply.accepted()  # a notification, on its headers alone
    if splice.judge(body) != "last" or reception.status in (401, 403):
        raise reception.refusal()
    if reception.status in (400, 404) and _is_legacy(body):
        raise UpstreamFault("the upstream no longer answers modern requests", contradiction=True)
    headers = {k: v for k, v in reception.headers.items() if k == "Retry-After"}
    return reply.json(body, reception.status, headers)


async def _stream(
    reception: Reception, stream: reply.Stream, splice: Splice, waiting: Waiting, total_s: float | None
) -> web.StreamResponse:
    """Whole events as they come, until the last message. Without one, the client gets an error in its place."""
    await stream.open()
    try:
        async with within(total_s, reception.name):
            async for block, event in reception.blocks(waiting):
                verdict = "pass"
                if event is not None and event.data:
                    verdict = splice.judge(event.data) if event.event == "message" else "drop"
                if verdict != "drop":
                    await stream.raw(block)
                if verdict == "last":
                    return await stream.end()
        fault = UpstreamFault(f"upstream {reception.name} closed its stream without an answer")
    except UpstreamFault as failed:
        fault = failed
    except Draining:
        for last in farewell(splice.id) if splice.id is not None else ():
            await stream.event(last)
        return await stream.end()
    if total_s is not None:  # a listener takes a stream that just ends for a lost one, and listens anew
        await stream.event(error(fault.rejection(), splice.id).raw)
    return await stream.end()


def _is_legacy(body: bytes) -> bool:
    """Whether an error is what servers that know only sessions say to a request without one."""
    failure = jsonrpc.loads(body).get("error")
    return isinstance(failure, dict) and failure.get("code") in _LEGACY_CODES


def _passes(name: str) -> bool:
    """The protocol's own headers, and trace context; a session id is nothing here (Earlier Revisions)."""
    return (name.startswith("mcp-") and name != HEADER_SESSION.lower()) or name in _PASSED
