"""What is counted of one upstream: calls and how they went, what it asks of clients, the sessions that it had.

Which words become labels is decided in `policies/metrics.py` and `policies/catalogue.py`; how they are kept is
`gateway/metrics.py`'s business.
"""

import time

from gateway import tracing
from gateway.metrics import Metrics
from gateway.tracing import Traced
from policies.catalogue import Catalogue
from policies.exchange import Ask, Reply
from policies.mcp import LISTEN, Json
from policies.metrics import CANCELLED_CALL, RELAYED, TOOL_ERROR, ask_kind, ask_outcome, method_label, relayed_asks
from policies.recent import Pace
from policies.trace_context import named, span_name

_NO_FAILURES = frozenset({"", TOOL_ERROR, CANCELLED_CALL})
"""How calls end that are no matter of the operator's: well, in a tool's own error, or called off."""


class Counting:
    """`tells_tools`: whether the names of tools are labels."""

    def __init__(self, upstream: str, metrics: Metrics) -> None:
        self.tells_tools = True
        self.names = Catalogue()
        """The tools and prompts that it has been heard to list."""
        self.pace = Pace()
        self._upstream = upstream
        self._metrics = metrics

    def tool(self, method: str, name: object) -> str:
        """The label for the tool that a request calls; empty where it calls none."""
        return self.names.label(method, name) if self.tells_tools and method == "tools/call" else ""

    def span(self, method: str) -> Traced | None:
        """The span of a call that begins, if the request that this task serves is traced."""
        request = tracing.serving()
        return request.call(method, self._upstream) if request is not None and tracing.is_spanned(method) else None

    def called(
        self, what: tuple[str, object], era: str, error: str, seconds: float, span: Traced | None = None
    ) -> None:
        """One call is over. `what`: its method, and the name in it as the client wrote it."""
        method, name = what
        if span is not None:
            label, target = method_label(method), self.names.label(method, name)
            about = {**named(method, target), "mcp_front_door.upstream_era": era}
            span.end(span_name(label, target), about, error)
        if method != LISTEN:  # a stream lasts as long as its client likes
            labels = (self._upstream, era, method_label(method), self.tool(method, name), error)
            self._metrics.asked.observe(labels, seconds)
            now_s, failed = time.time(), error not in _NO_FAILURES
            self.pace.note(now_s, seconds, failed=failed)
            if failed:
                self._metrics.troubles.note(now_s, "call", error, self._upstream)

    def heard(self, method: str, result: Json) -> None:
        """Takes down what is to be known of an answer: the names that a list has, what a client is asked in it."""
        self.names.learn(method, result)
        kinds = relayed_asks(result)
        if kinds is not None:
            self._metrics.rounds.add(self._upstream, RELAYED)
            for kind in kinds:
                self._metrics.asks.add(self._upstream, kind, RELAYED)

    def asked(self, ask: Ask, reply: Reply | None) -> None:
        """A question was put to a client; `reply` is None where nobody waits for its answer any more."""
        self._metrics.asks.add(self._upstream, ask_kind(ask.method), ask_outcome(reply))

    def session_ended(self, version: str, seconds: float) -> None:
        """A session that callers without one of their own shared."""
        self._metrics.upstream_sessions.observe((self._upstream, version), seconds)
