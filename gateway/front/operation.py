"""What is known of a request while it is served, for metrics and the log: labels and names, never content.

The front notes here what it finds out; `gateway/front/mcp.py` reads it once at the end. A request that nobody measures
has a record of its own that nobody reads, so that no caller need ask.
"""

from dataclasses import dataclass

from aiohttp import web

from gateway.metrics import Metrics
from policies.delivery import Message
from policies.metrics import outcome


@dataclass(slots=True)
class Operation:
    """`route`, `upstream` and `provider` by their names in the configuration, `session` by its inner id; empty until
    known."""

    route: str = ""
    era: str = ""
    method: str = ""
    upstream: str = ""
    session: str = ""
    client: str = ""
    error: str = ""
    stays: bool = False
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
