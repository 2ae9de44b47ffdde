"""What is known of a request while it is served, for metrics and the log: labels and names, never content.

The front notes here what it finds out; `gateway/front/mcp.py` reads it once at the end. A request that nobody measures
has a record of its own that nobody reads, so that no caller need ask.
"""

import logging
import time
from dataclasses import dataclass, field, replace

from aiohttp import web

from gateway.logs import fields
from gateway.metrics import Metrics
from gateway.tracing import Traced, Tracing, serve
from gateway.upstreams.pool import Upstream
from policies.delivery import Message
from policies.exchange import RequestId
from policies.headers import Headers
from policies.mcp import HEADER_VERSION, era_of
from policies.metrics import method_label, outcome, provider_outcome
from policies.peek import trace_members
from policies.trace_context import named, span_name

MAX_ID_CHARS = 64
"""Of a request's id in its span: real ones are numbers and UUIDs."""

log = logging.getLogger("gateway.front.mcp")
"""The front door's own: the lines of requests are found under one name, whatever answers them."""


@dataclass(slots=True)
class Operation:
    """`route`, `upstream` and `provider` by their names in the configuration, `session` by its inner id; `name`: of the
    tool or prompt, where the upstream lists it (`policies/catalogue.py`), and `tool` the same as a label of metrics.
    `rung`: of the request's ladder, the one that it has come to; `refused`: that it was not let through there. Empty
    until known."""

    route: str = ""
    era: str = ""
    method: str = ""
    upstream: str = ""
    upstream_era: str = ""
    name: str = ""
    tool: str = ""
    session: str = ""
    client: str = ""
    error: str = ""
    rung: str = ""
    refused: bool = False
    stays: bool = False
    upstream_s: float = 0.0
    began_s: float = field(default_factory=time.perf_counter)
    traced: Traced | None = None
    version: str = ""
    request_id: RequestId = ""
    provider: str = ""
    dialect: str = ""
    outcome: str = ""
    """What became of a request to an LLM API (`policies/metrics.py`)."""
    stripped: int = 0
    request_bytes: int = 0
    response_bytes: int = 0

    def stay(self, metrics: Metrics) -> None:
        """It is a stream that lasts as long as its client likes, and no longer among the requests in flight."""
        if not self.stays:
            self.stays = True
            metrics.in_flight -= 1
            metrics.streams += 1

    def leave(self, metrics: Metrics) -> None:
        """It is over."""
        if self.stays:
            metrics.streams -= 1
        else:
            metrics.in_flight -= 1

    def goes_to(self, upstream: Upstream, method: str, name: str | None) -> None:
        """It is for this upstream. `name`: what it is routed by, as its client wrote it."""
        self.upstream = upstream.name
        self.name = upstream.counting.names.label(method, name)
        self.tool = upstream.counting.tool(method, name)

    def refuse(self, rung: str) -> None:
        """It is not let through, at this rung."""
        self.rung, self.refused = rung, True

    def trace(self, tracing: Tracing, headers: Headers, raw: bytes) -> None:
        """Begins the span of the request with this body, if it gets one."""
        self.traced = tracing.begin(headers, trace_members(raw), time.perf_counter() - self.began_s)
        serve(self.traced)
        self.version = headers.get(HEADER_VERSION) or ""

    def end_trace(self, traced: Traced, method: str, error: str) -> None:
        """It is over. `method`, `error`: as labels of metrics have them."""
        serve(None)  # the next request of this connection has a span of its own
        about = {
            "mcp.method.name": method,
            "mcp.protocol.version": self.version if era_of(self.version) is not None else "",
            "mcp.session.id": self.session,
            "jsonrpc.request.id": str(self.request_id)[:MAX_ID_CHARS].encode(errors="replace").decode(),
            "network.transport": "tcp",
            "network.protocol.name": "http",
            "mcp_front_door.route": self.route,
            "mcp_front_door.upstream": self.upstream,
            "mcp_front_door.era": self.era,
            "mcp_front_door.upstream_era": self.upstream_era,
            "mcp_front_door.rung": self.rung if self.refused else "",
            **named(method, self.name),
        }
        traced.end(span_name(method, self.name), about, error)

    def record(self, metrics: Metrics, error: str, status: int, seconds: float, *, whole: bool) -> None:
        """Counts it, which is over, and has it in the log. `whole`: its answer was no stream."""
        if self.refused:
            metrics.refuse(self.route, self.rung, error)
        if self.provider:
            self._record_api(metrics, error, status, seconds)
            return
        method = method_label(self.method)
        if whole or not self.stays:  # how long a stream was open says nothing
            labels = (self.route, self.upstream, self.era, self.upstream_era, method, self.tool, error)
            metrics.served.observe(labels, seconds)
        if self.traced is not None:
            self.end_trace(self.traced, method, error)
        if log.isEnabledFor(logging.INFO):
            log.info("request", extra=fields(**self._line(method, status, error, seconds)))

    def again(self) -> "Operation":
        """The record of a request like this one that is answered from memory."""
        return replace(self, traced=None, upstream_s=0.0)

    def _line(self, method: str, status: int, error: str, seconds: float) -> dict[str, str | float]:
        """The members of its line in the log: who, what, whether it was let through, how it went, how long it took."""
        timings = {"duration_ms": round(seconds * 1000, 3)}
        if self.upstream_s:
            timings["upstream_ms"] = round(self.upstream_s * 1000, 3)
        return {
            "status": status,
            **timings,
            "route": self.route,
            "era": self.era,
            "method": method,
            "name": self.name,
            "upstream": self.upstream,
            "upstream_era": self.upstream_era,
            "client": self.client,
            "session": self.session,
            **self._verdict(error or "ok"),
            "trace": f"{self.traced.context.trace_id:032x}" if self.traced is not None else "",
        }

    def _record_api(self, metrics: Metrics, error: str, status: int, seconds: float) -> None:
        """The same of a request to an LLM API."""
        names = (self.provider, self.dialect)
        metrics.provider_requests.add(*names, provider_outcome(self.outcome, error))
        metrics.provider_bytes.add(*names, "request", by=self.request_bytes)
        metrics.provider_bytes.add(*names, "response", by=self.response_bytes)
        if log.isEnabledFor(logging.INFO):
            line: dict[str, str | float] = {
                "status": status,
                "duration_ms": round(seconds * 1000, 3),
                "route": self.route,
                "provider": self.provider,
                "client": self.client,
                **self._verdict(error or self.outcome),
                "stripped": self.stripped,
                "request_bytes": self.request_bytes,
                "response_bytes": self.response_bytes,
            }
            log.info("request", extra=fields(**line))

    def _verdict(self, outcome: str) -> dict[str, str]:
        """Of its line in the log whether it was let through, and how it went."""
        rung = self.rung if self.refused else ""
        return {"decision": "deny" if self.refused else "allow", "rung": rung, "outcome": outcome}

    def end(self, message: Message) -> None:
        """Takes down how it went, from the last message that its client is sent."""
        self.error = outcome(message)


KEY = web.RequestKey("operation", Operation)


def of(request: object) -> Operation:
    """The record of this request; of a message that came by a pipe, one that nobody reads."""
    if not isinstance(request, web.BaseRequest):
        return Operation()
    found = request.get(KEY)
    if found is None:
        found = request[KEY] = Operation()
    return found
