"""The settings of one upstream: where it is or what runs it, how it is spoken to, and how long it is waited for.

A part of `policies/settings.py`, whose rules hold here: the docstring under a field is its manual. What these settings
do is decided in `policies/era.py`, `policies/routing.py` and `policies/balance.py`.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, SecretStr, ValidationInfo, field_validator, model_validator

from policies import wellformed
from policies.affinity import endpoint_key
from policies.settings_base import Model, Problem, refuse
from policies.settings_cache import UpstreamCache
from policies.settings_edge import ToolTimeouts, UpstreamTls
from policies.settings_endpoints import MAX_ENDPOINTS, Balance, Ejection, HealthCheck

HeaderName = Annotated[str, AfterValidator(wellformed.header_name)]
Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]
"""A time-out: more than nothing, at most a day, beyond which a forgotten request is better ended than kept."""


class Timeouts(Model):
    """How long to wait for an upstream, in seconds: each more than 0, at most 86400 (a day)."""

    connect_s: Seconds = 5.0
    """For a connection, the TLS handshake included. A healthy upstream takes milliseconds."""
    first_byte_s: Seconds = 60.0
    """For the head of a response after the request has gone out. An upstream that answers long calls with plain JSON
    instead of a stream is silent until it is done and needs more. Of a command: for any answer but a call's, a prompt's
    or a resource's; for a call's where `tools` says so."""
    idle_s: Seconds = 300.0
    """Between two pieces of a response. Keep-alive comments of a stream count as pieces."""
    total_s: Seconds = 3600.0
    """For one call from its request to the end of its answer, whatever arrives in between. While its client is asked
    for something, no time passes."""
    probe_s: Seconds = 5.0
    """For one request of an era probe."""

    @model_validator(mode="after")
    def _fit(self) -> Self:
        if self.first_byte_s > self.total_s:
            raise ValueError("first_byte_s must not exceed total_s, which ends the call first; raise total_s")
        return self


def checked_headers(headers: Mapping[str, SecretStr]) -> Mapping[str, SecretStr]:
    """Headers that the gateway sends of its own, each once and as a line can hold it; refuses others."""
    problems: list[Problem] = []
    seen: set[str] = set()
    for name, value in headers.items():
        if name.lower() in seen:
            problems.append(((name,), "is set twice (header names ignore case); keep one"))
        seen.add(name.lower())
        try:
            wellformed.header_value(value.get_secret_value())
        except ValueError as error:
            problems.append(((name,), str(error)))
    refuse(problems)
    return headers


class Upstream(Model):
    """One MCP server behind the gateway: at an address (`url`) or several (`urls`), or a command that is run
    (`command`)."""

    url: Annotated[str, AfterValidator(wellformed.upstream_url)] = ""
    """The MCP endpoint, http or https, without user, password or fragment. Either this, `urls` or `command`.
    Where several processes answer behind it, sessions must stick by a cookie that is set at `initialize`, and that the
    gateway sends back with each request of that session; where they do not, list the processes under `urls`."""
    urls: tuple[Annotated[str, AfterValidator(wellformed.upstream_url)], ...] = ()
    """The MCP endpoints of a server that runs several times, the same software and era at each; at most 64. A session
    stays at the endpoint that opened it, and is lost where that is taken out of this list; a task is asked for at the
    endpoint that made it, as long as that is in this list. A request that could not
    even be sent goes to the next endpoint, and so does one that only reads and is in no client's own session,
    once, where its connection broke; whatever may have been carried out is not sent again."""
    balance: Balance = "least_requests"
    """Which of `urls` gets the next request that belongs to no session: the one with the fewest under way from here,
    streams that only listen apart, or each in turn. Calls may take a millisecond or an hour, to which turns are
    blind."""
    health: HealthCheck = HealthCheck()
    """How it is found out that an endpoint of `urls` is there."""
    ejection: Ejection = Ejection()
    """When an endpoint of `urls` that fails gets no more requests."""
    command: Annotated[str, AfterValidator(wellformed.argument)] = ""
    """The program to run, a name on the `PATH` or a path, which speaks MCP on its standard input and output (stdio). It
    is started at the first use, and again when it has ended: at once after one crash, then after pauses of 1 to 30
    seconds, in which its callers are refused with 503. What it writes to standard error goes into the log."""
    args: tuple[Annotated[str, AfterValidator(wellformed.argument)], ...] = ()
    """The program's arguments. No shell reads them. Other users of the machine can see them; secrets belong into
    `env`."""
    env: Mapping[Annotated[str, AfterValidator(wellformed.variable)], SecretStr] = {}
    """Variables added to the program's environment, which otherwise holds only what programs need to run at all:
    `HOME`, `LANG`, `LC_ALL`, `LOGNAME`, `PATH`, `SHELL`, `TERM`, `TMPDIR`, `TZ` and `USER`."""
    cwd: Annotated[str, AfterValidator(wellformed.argument)] = ""
    """The folder the program runs in; the gateway's own if absent."""
    scope: Literal["shared", "session"] = "shared"
    """Who shares a process of a program that speaks in sessions: `shared` is one for all clients, which is told that
    nobody can be asked anything (no elicitation, sampling or roots); `session` is one for each client session, which
    may ask its client, keeps its own state, and lives in this gateway process only. What speaks 2026-07-28 has no
    sessions, and one process serves all."""
    max_children: int = Field(default=32, ge=1, le=1000)
    """How many processes `scope: session` may run at a time; more sessions are refused with 503. Clients of 2026-07-28
    share sessions of the gateway's own, which count as well. From 1 to 1000; a Node.js server takes some 50 MB."""
    transport: Literal["auto", "streamable_http", "http_sse"] = "auto"
    """How its sessions are carried: by Streamable HTTP, or by HTTP+SSE, the transport of 2024-11-05, with one stream a
    session, which lives in this gateway process only. `auto` finds out: HTTP+SSE is what opens a stream where an
    `initialize` was refused. What speaks 2026-07-28 is not asked for it."""
    max_streams: int = Field(default=256, ge=1, le=100_000)
    """How many sessions, with a stream each, may be open at a time over HTTP+SSE; more are refused with 503. Those that
    clients of 2026-07-28 share count as well. From 1 to 100000; each needs a file descriptor."""
    era: Literal["auto", "modern", "legacy"] = "auto"
    """The era it is spoken to in: `auto` finds out by a probe, `modern` is 2026-07-28 and later (no sessions), `legacy`
    is 2025-11-25 and earlier (sessions). Forcing one saves the probe, and hides the other from the gateway."""
    headers: Mapping[HeaderName, SecretStr] = {}
    """Headers sent with every request, credentials for instance. Not the protocol's own (`Mcp-*`), nor those that
    belong to a connection."""
    forward_headers: tuple[HeaderName, ...] = ()
    """Names of request headers that are passed on from the caller as they came. A caller's `Authorization` goes
    upstream only if it is named here; cookies never do."""
    timeouts: Timeouts = Timeouts()
    """How long to wait for it."""
    cache: UpstreamCache = UpstreamCache()
    """What may be kept of its answers."""
    tools: Mapping[str, ToolTimeouts] = {}
    """Time-outs for calls of the tools whose names match a pattern (`*` for any run of characters, `?` for one); the
    first pattern that fits counts."""
    tls: UpstreamTls = UpstreamTls()
    """Whom to trust and what to show on an https `url`."""
    preserve_host: bool = False
    """Whether the upstream sees the `Host` that the caller used instead of its own. `X-Forwarded-Host` has it in any
    case."""
    verifies_headers: bool = False
    """Whether this upstream itself refuses requests whose `Mcp-*` headers disagree with their body, so that the gateway
    need not look into bodies that it passes on unchanged. Only for modern upstreams."""
    heal: bool = False
    """Whether a session that this upstream has lost may be replaced by a new one unseen by the client. Only where its
    sessions hold nothing that a client could miss. Only for legacy upstreams."""

    @field_validator("headers", mode="after")
    @classmethod
    def _headers(cls, headers: Mapping[str, SecretStr]) -> Mapping[str, SecretStr]:
        return checked_headers(headers)

    @field_validator("forward_headers", mode="after")
    @classmethod
    def _forward_headers(cls, names: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        problems: list[Problem] = []
        own = {name.lower() for name in info.data.get("headers", ())}
        for index, name in enumerate(names):
            folded = name.lower()
            if folded == "cookie":
                problems.append(((index,), "can't be forwarded: browsers send cookies unasked; leave it out"))
            elif folded in own:
                problems.append(((index,), "is set under headers as well; keep it in one of the two"))
            elif folded in {earlier.lower() for earlier in names[:index]}:
                problems.append(((index,), "is named twice; keep one"))
        refuse(problems)
        return names

    @model_validator(mode="after")
    def _fit(self) -> Self:
        problems: list[Problem] = [*self._misplaced(), *self.cache.misplaced(self.era)]
        if self.verifies_headers and self.era == "legacy":
            problems.append(
                (("verifies_headers",), "does nothing for era: legacy, which has no Mcp-* headers; remove it")
            )
        if self.heal and self.era == "modern":
            problems.append((("heal",), "does nothing for era: modern, without sessions; remove it"))
        if self.transport == "http_sse" and self.era == "modern":
            problems.append(
                (("transport",), "is one of sessions, which era: modern does not have; remove one of the two")
            )
        if self.transport == "http_sse" and self.verifies_headers:
            problems.append((("verifies_headers",), "does nothing for transport: http_sse; remove it"))
        if self.tls != UpstreamTls() and not any(url.startswith("https:") for url in self.addresses):
            problems.append((("tls",), "does nothing for an http url; write https, or remove it"))
        refuse(problems)
        return self

    def _misplaced(self) -> Iterator[Problem]:
        """Settings of the other kind of upstream."""
        given = [name for name in ("url", "urls", "command") if getattr(self, name)]
        if len(given) > 1:
            yield (given[1],), f"stands beside {given[0]}; keep one of the two"
        elif not given:
            yield ("url",), "is missing; add it, or command: the program to run"
        elif self.command:
            for name in ("headers", "forward_headers", "verifies_headers", "transport", "max_streams"):
                if name in self.model_fields_set and getattr(self, name):
                    yield (name,), "does nothing for a command, which gets no HTTP; remove it"
        else:
            for name in ("args", "env", "cwd", "scope", "max_children"):
                if name in self.model_fields_set:
                    yield (name,), "does nothing without command; remove it"
        if not self.urls:
            for name in ("balance", "health", "ejection"):
                if name in self.model_fields_set:
                    yield (name,), "does nothing without urls; list the endpoints there, or remove it"

    @field_validator("urls", mode="after")
    @classmethod
    def _urls(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        if len(urls) > MAX_ENDPOINTS:
            raise ValueError(f"holds {len(urls)} endpoints; keep {MAX_ENDPOINTS}, or put a load balancer before them")
        keys = [endpoint_key(url) for url in urls]
        twice = [index for index, key in enumerate(keys) if key in keys[:index]]
        refuse([((index,), "is the endpoint of an earlier one; keep one") for index in twice])
        return urls

    @property
    def addresses(self) -> tuple[str, ...]:
        """Every endpoint; none for a command."""
        return self.urls or ((self.url,) if self.url else ())

    @property
    def own_env(self) -> tuple[tuple[str, str], ...]:
        """`env` in the clear, for the process alone."""
        return tuple((name, value.get_secret_value()) for name, value in self.env.items())

    @property
    def own_headers(self) -> tuple[tuple[str, str], ...]:
        """`headers` in the clear, for the connector alone."""
        return tuple((name, value.get_secret_value()) for name, value in self.headers.items())
