"""What is known of a request while it is served, for metrics and the log: labels and names, never content.

The front notes here what it finds out; `gateway/front/mcp.py` reads it once at the end. A request that nobody measures
has a record of its own that nobody reads, so that no caller need ask.
"""

from dataclasses import dataclass

from aiohttp import web

from gateway.metrics import Metrics
from gateway.upstreams.pool import Upstream
from policies.delivery import Message
from policies.metrics import outcome


@dataclass(slots=True)
class Operation:
    """`route` and `upstream` by their names in the configuration, `session` by its inner id; `name`: of the tool or
    prompt, where the upstream lists it (`policies/catalogue.py`), and `tool` the same as a label of metrics. `rung`: of
    the request's ladder, the one that it has come to; `refused`: that it was not let through there. Empty until
    known."""

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
