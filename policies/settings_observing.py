"""The settings of what operators are told: metrics and traces.

A part of `policies/settings.py`, whose rules hold here: the docstring under a field is its manual.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Final, Self

from pydantic import AfterValidator, Field, SecretStr, model_validator

from policies import wellformed
from policies.mcp import TRACE_CONTEXT
from policies.settings_base import Model, Problem, refuse
from policies.settings_upstream import HeaderName

_WITHOUT_BAGGAGE: Final = TRACE_CONTEXT - {"baggage"}


class Metrics(Model):
    """What `/metrics` of `admin` tells."""

    tools: bool = True
    """Whether calls are counted by the tool that they call (`gen_ai_tool_name`): by the names that servers list, 256
    of each; whatever else clients call is `_OTHER`. With `false` there is one series for all tools."""


class Tracing(Model):
    """Spans of requests, sent to an OpenTelemetry collector. They hold no arguments, results or URIs. Needs the extra
    `otel`."""

    endpoint: Annotated[str, AfterValidator(wellformed.upstream_url)] | None = None
    """Where spans go, by OTLP over HTTP: `http://127.0.0.1:4318/v1/traces`. Nowhere if absent; trace context passes in
    any case."""
    headers: Mapping[HeaderName, SecretStr] = {}
    """Headers sent with them, credentials for instance."""
    ratio: float = Field(default=0.1, ge=0, le=1, allow_inf_nan=False)
    """The share of requests that get spans, of those whose client has not decided. From 0 to 1."""
    follow: bool = True
    """Whether a client decides for its own requests, by the flag in its `traceparent`. With `false`, `ratio` holds for
    all."""
    service_name: str = Field(default="mcp-front-door", min_length=1, max_length=255)
    """What the gateway is called there (`service.name`)."""
    baggage: bool = False
    """Whether `baggage` of clients goes to servers, as a header and in `_meta`. It may hold whatever somebody on the
    way has put there."""

    @model_validator(mode="after")
    def _fit(self) -> Self:
        refuse(list(self._problems()))
        return self

    def _problems(self) -> Iterator[Problem]:
        for name in ("headers", "ratio", "follow", "service_name"):
            if self.endpoint is None and name in self.model_fields_set:
                yield (name,), "does nothing without endpoint; add it, or remove this"
        for name, value in self.headers.items():
            try:
                wellformed.header_value(value.get_secret_value())
            except ValueError as error:
                yield ("headers", name), str(error)

    @property
    def passed(self) -> frozenset[str]:
        """The trace context that goes on to servers, by the names of its members."""
        return TRACE_CONTEXT if self.baggage else _WITHOUT_BAGGAGE

    @property
    def own_headers(self) -> dict[str, str]:
        """`headers` in the clear, for the exporter alone."""
        return {name: value.get_secret_value() for name, value in self.headers.items()}
