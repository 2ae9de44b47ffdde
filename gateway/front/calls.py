"""A request of a modern client as what goes on from here: a call.

Specification: 2026-07-28 basic (Request Metadata).
"""

from collections.abc import Callable
from functools import partial

from gateway.front.service import Caller, Service
from gateway.upstreams.base import Connector
from gateway.upstreams.pool import Upstream
from policies import jsonrpc
from policies.admission import Head, meta_of, progress_token
from policies.exchange import Call, Dialect
from policies.mcp import (
    HEADER_PARAM,
    LATEST_MODERN,
    META_CLIENT_CAPABILITIES,
    META_CLIENT_INFO,
    META_LOG_LEVEL,
    META_PROGRESS_TOKEN,
    META_SERVER_INFO,
    META_SUBSCRIPTION_ID,
    META_VERSION,
    Json,
)

_OWN_META = frozenset(
    {META_VERSION, META_CLIENT_INFO, META_CLIENT_CAPABILITIES, META_LOG_LEVEL, META_PROGRESS_TOKEN}
    | {META_SUBSCRIPTION_ID, META_SERVER_INFO}
)

OF_TOOLS = frozenset({"tools/list", "tools/call"})
"""The methods that say which tools there are, or name one."""

_DIALECT = Dialect("modern", LATEST_MODERN)


def call_of(
    service: Service, request: Caller, head: Head, message: jsonrpc.Request, upstream: Upstream, headless: bool
) -> Call:
    """The call for an upstream that a request, whose envelope has been judged, is."""
    meta = meta_of(message.params)
    info = meta.get(META_CLIENT_INFO)
    sent, rest = service.sent(upstream, request, {k: v for k, v in meta.items() if k not in _OWN_META})
    return Call(
        message.method,
        {k: v for k, v in message.params.items() if k != "_meta"},
        rest,
        meta[META_CLIENT_CAPABILITIES],
        info if isinstance(info, dict) else None,
        service.principal(head, request.headers),
        _DIALECT,
        meta.get(META_LOG_LEVEL),
        progress_token(meta) is not None,
        None,
        tuple((k, v) for k, v in request.headers.items() if k.lower().startswith(HEADER_PARAM.lower())),
        sent,
        headless,
    )


def learner(connector: Connector, call: Call) -> Callable[[Json], None] | None:
    """What is to hear of the answer to a list of tools, which tells a host without Apps from then on what there is."""
    return partial(connector.learn, call) if call.method == "tools/list" and not call.profile.shows_apps else None
