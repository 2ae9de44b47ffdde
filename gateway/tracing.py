"""Spans of requests and of the calls that they become, sent to a collector by OTLP.

Names and attributes: OpenTelemetry's conventions for MCP; no arguments, results or URIs are in them, and what is traced
is decided before there is a span (`policies/trace_context.py`). The request that a task serves is known to whatever the
task does, and to the tasks that it starts. Needs the extra `otel`.
"""

import asyncio
import contextlib
import logging
import secrets
import threading
import time
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gateway.metrics import own_version
from policies import trace_context
from policies.headers import Headers
from policies.mcp import LISTEN, Json
from policies.metrics import method_label
from policies.settings_observing import Tracing as Settings
from policies.trace_context import PARENT, STATE, Context

try:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.sampling import ALWAYS_ON
    from opentelemetry.trace import (
        NonRecordingSpan,
        SpanContext,
        SpanKind,
        Status,
        StatusCode,
        TraceFlags,
        TraceState,
        set_span_in_context,
    )
except ImportError:
    HAS_OTEL = False
else:
    HAS_OTEL = True

if TYPE_CHECKING:
    from opentelemetry.trace import Span

log = logging.getLogger(__name__)

EXPORT_S: Final = 5.0
"""How long a collector may take, and how long the gateway waits for it at its end."""

_CHANCES: Final = 1 << 30


@dataclass(slots=True)
class Traced:
    """One span. Ended once, whatever becomes of what it stands for."""

    span: "Span"
    tracing: "Tracing"

    @property
    def context(self) -> Context:
        said = self.span.get_span_context()
        return Context(said.trace_id, said.span_id, sampled=True, state=said.trace_state.to_header())

    def call(self, method: str, upstream: str) -> "Traced":
        """The span of a call that the request becomes, which begins now."""
        attributes = {
            "mcp.method.name": method_label(method),
            "network.transport": "tcp",
            "mcp_front_door.upstream": upstream,
        }
        context = set_span_in_context(self.span)
        name = method_label(method) or "message"
        return Traced(
            self.tracing.tracer.start_span(name, context, kind=SpanKind.CLIENT, attributes=attributes), self.tracing
        )

    def end(self, name: str, attributes: dict[str, str], error: str) -> None:
        """It is over. `error`: an `error.type`, empty for success."""
        self.span.update_name(name)
        self.span.set_attributes({key: value for key, value in attributes.items() if value})
        self.span.set_attributes(trace_context.went(error))
        if error:
            self.span.set_status(Status(StatusCode.ERROR))
        self.span.end()


_serving: ContextVar[Traced | None] = ContextVar("serving", default=None)


def serving() -> Traced | None:
    """The span of the request that this task serves, if it is traced."""
    return _serving.get()


def serve(traced: Traced | None) -> None:
    """From now on this task serves a request with this span, or with none."""
    _serving.set(traced)


Sent = tuple[tuple[tuple[str, str], ...], Json]
"""Headers, and `_meta`."""


def carrying(traced: Traced, headers: tuple[tuple[str, str], ...], meta: Json) -> Sent:
    """The headers and `_meta` of a call that say which span it belongs to."""
    context = traced.context
    said = {PARENT: context.parent, **({STATE: context.state} if context.state else {})}
    rest = tuple(pair for pair in headers if pair[0].lower() not in (PARENT, STATE))
    kept = {name: value for name, value in meta.items() if name not in (PARENT, STATE)}
    return (*rest, *said.items()), {**kept, **said}


class Tracing:
    """`is_on`: whether anything is traced; only where the extra is installed, which is checked with the settings."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.is_on = settings.endpoint is not None
        if settings.endpoint is None:
            return
        exporter = OTLPSpanExporter(settings.endpoint, headers=settings.own_headers, timeout=EXPORT_S)
        about = {"service.name": settings.service_name, "service.version": own_version()}
        self._provider = TracerProvider(ALWAYS_ON, Resource.create(about), shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self.tracer = self._provider.get_tracer("mcp-front-door", own_version())

    def begin(self, headers: Headers, meta: Json, seconds: float) -> Traced | None:
        """The span of a request that began so many seconds ago; None where it gets none."""
        if not self.is_on:
            return None
        context = trace_context.brought(headers, meta)
        if not trace_context.is_traced(context, self.settings, secrets.randbelow(_CHANCES) / _CHANCES):
            return None
        start_ns = time.time_ns() - int(seconds * 1e9)
        parent = None
        if context is not None:
            state = TraceState.from_header([context.state]) if context.state else None
            remote = SpanContext(context.trace_id, context.span_id, True, TraceFlags(context.sampled), state)
            parent = set_span_in_context(NonRecordingSpan(remote))
        return Traced(self.tracer.start_span("request", parent, kind=SpanKind.SERVER, start_time=start_ns), self)

    async def close(self) -> None:
        """Sends what has not been sent yet, for no longer than `EXPORT_S`."""
        if not self.is_on:
            return
        loop, done = asyncio.get_running_loop(), asyncio.Event()

        def shut_down() -> None:
            self._provider.shutdown()
            with contextlib.suppress(RuntimeError):  # nobody waits any more
                loop.call_soon_threadsafe(done.set)

        threading.Thread(target=shut_down, name="spans", daemon=True).start()
        try:
            async with asyncio.timeout(EXPORT_S):
                await done.wait()
        except TimeoutError:
            log.warning("the collector of spans does not answer: the last ones are lost")


def is_spanned(method: str) -> bool:
    """Whether a call gets a span: a stream that is shared by many listeners belongs to no request."""
    return method != LISTEN
