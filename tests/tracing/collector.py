"""A collector of spans: takes OTLP over HTTP, as the real ones do, and keeps what it was sent."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.http_wire import DEADLINE_S

KINDS = {Span.SPAN_KIND_SERVER: "server", Span.SPAN_KIND_CLIENT: "client", Span.SPAN_KIND_INTERNAL: "internal"}


@dataclass(frozen=True, slots=True)
class Got:
    """One span, by whom it was sent."""

    service: str
    name: str
    kind: str
    trace: str
    id: str
    parent: str
    attributes: dict[str, str]
    failed: bool
    state: str
    began_ns: int
    ended_ns: int


@dataclass
class Collector:
    url: str = ""
    spans: list[Got] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    grown: asyncio.Event = field(default_factory=asyncio.Event)

    async def take(self, request: web.BaseRequest) -> web.Response:
        raw = await request.read()
        if request.headers.get("Content-Encoding") == "gzip":
            raw = gzip.decompress(raw)
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        self.bodies.append(raw)
        for resource in ExportTraceServiceRequest.FromString(raw).resource_spans:
            service = _attributes(resource.resource.attributes)["service.name"]
            for scope in resource.scope_spans:
                self.spans += [_got(service, span) for span in scope.spans]
        self.grown.set()
        answer = ExportTraceServiceResponse().SerializeToString()
        return web.Response(body=answer, content_type="application/x-protobuf")

    async def until(self, holds: Callable[[], Any]) -> Any:
        """What `holds` gives once it gives something."""
        async with asyncio.timeout(DEADLINE_S):
            while not (found := holds()):
                self.grown.clear()
                await self.grown.wait()
        return found

    def of(self, service: str, kind: str = "server") -> list[Got]:
        return [span for span in self.spans if (span.service, span.kind) == (service, kind)]


def _attributes(pairs: Any) -> dict[str, str]:
    return {pair.key: pair.value.string_value or str(pair.value.int_value) for pair in pairs}


def _got(service: str, span: Any) -> Got:
    return Got(
        service,
        span.name,
        KINDS[span.kind],
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        _attributes(span.attributes),
        span.status.code == 2,
        span.trace_state,
        span.start_time_unix_nano,
        span.end_time_unix_nano,
    )


@asynccontextmanager
async def collecting() -> AsyncIterator[Collector]:
    collector = Collector()
    runner = web.ServerRunner(web.Server(collector.take))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    collector.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1/traces"
    try:
        yield collector
    finally:
        await runner.cleanup()
