"""What is known of a request while it is served, for metrics and the log: labels and names, never content.

The front notes here what it finds out; `gateway/front/mcp.py` reads it once at the end. A request that nobody measures
has a record of its own that nobody reads, so that no caller need ask.
"""

import logging
from dataclasses import dataclass

from aiohttp import web

from gateway.logs import fields
from gateway.metrics import Metrics
from policies.delivery import Message
from policies.metrics import method_label, outcome

log = logging.getLogger("gateway.front.mcp")
"""The front door's own: the lines of requests are found under one name, whatever answers them."""


@dataclass(slots=True)
class Operation:
    """`route` and `upstream` by their names in the configuration, `session` by its inner id; empty until known."""

    route: str = ""
    era: str = ""
    method: str = ""
    upstream: str = ""
    session: str = ""
    client: str = ""
    error: str = ""
    stays: bool = False

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

    def record(self, metrics: Metrics, error: str, status: int, seconds: float, *, whole: bool) -> None:
        """Counts it, which is over, and has it in the log. `whole`: its answer was no stream."""
        method = method_label(self.method)
        if whole or not self.stays:  # how long a stream was open says nothing
            metrics.served.observe((self.route, self.era, method, error), seconds)
        if log.isEnabledFor(logging.INFO):
            where = {"route": self.route, "era": self.era, "method": method, "upstream": self.upstream}
            who = {"client": self.client, "session": self.session, "error": error}
            log.info("request", extra=fields(status=status, duration_ms=round(seconds * 1000, 3), **where, **who))

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
