"""The operator's settings, as frozen values: what may be configured, within which bounds, and what fits together.

The docstring under each field is the reference manual: `docs/configuration.md` and the JSON Schema are made from it.
Validation is strict about names (an unknown key is an error) and cross references. Nothing is read here, neither a file
nor the environment: `gateway/config.py` does that and words the errors; what the settings do is decided elsewhere.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    Field,
    GetJsonSchemaHandler,
    SecretStr,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import CoreSchema

from policies import wellformed
from policies.affinity import endpoint_key
from policies.settings_base import Model as _Model
from policies.settings_base import Problem, UpstreamName, hint
from policies.settings_base import refuse as _raise
from policies.settings_clients import Client, judge_clients, judge_forwarding, judge_routes
from policies.settings_edge import Connections, ListenTls, Networks, Origins, PublicUrls, ToolTimeouts, UpstreamTls
from policies.settings_endpoints import MAX_ENDPOINTS, Balance, Ejection, HealthCheck
from policies.settings_profiles import ProfileName, ProfileSettings, judge_advertising, judge_profiles
from policies.settings_routes import Route
from policies.settings_store import Store

ClientName = UpstreamName
HeaderName = Annotated[str, AfterValidator(wellformed.header_name)]
Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]
"""A time-out: more than nothing, at most a day, beyond which a forgotten request is better ended than kept."""


class Listen(_Model):
    """An address to listen on, written `host:port`, for example `127.0.0.1:8080` or `"[::1]:8080"`."""

    host: str
    """A host name or IP address, IPv6 without brackets."""
    port: int = Field(ge=0, le=65535)
    """0 lets the system choose a free port."""

    @model_validator(mode="before")
    @classmethod
    def _parse(cls, value: Any) -> Any:
        if isinstance(value, str):
            host, port = wellformed.host_port(value)
            return {"host": host, "port": port}
        if isinstance(value, int | float):
            raise ValueError('must be host:port, for example "127.0.0.1:8080"')
        return value

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "string", "description": cls.__doc__, "examples": ["127.0.0.1:8080"], "pattern": ":[0-9]{1,5}$"}

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can connect."""
        return wellformed.is_loopback(self.host)


class Timeouts(_Model):
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


class Upstream(_Model):
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
        _raise(problems)
        return headers

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
        _raise(problems)
        return names

    @model_validator(mode="after")
    def _fit(self) -> Self:
        problems: list[Problem] = list(self._misplaced())
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
        _raise(problems)
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
        _raise([((index,), "is the endpoint of an earlier one; keep one") for index in twice])
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


class Limits(_Model):
    """Bounds on what one peer can make the gateway hold."""

    max_body_bytes: int = Field(default=4 * 1024 * 1024, ge=1024, le=1024**3)
    """The largest request body; a larger one is refused with 413. From 1024 (smaller than an `initialize` with
    capabilities) to 1 GiB."""
    max_head_bytes: int = Field(default=32 * 1024, ge=1024, le=1024**2)
    """The largest request head, request line included; a larger one is refused with 431. From 1024 to 1 MiB. One line
    may have 8190 bytes whatever stands here."""
    compress_from_bytes: int = Field(default=16 * 1024, ge=256, le=1024**3)
    """JSON answers of this size and more are compressed for clients that ask for it (gzip, deflate). From 256 to 1 GiB;
    what is smaller goes out in one round trip as it is."""
    max_response_bytes: int = Field(default=64 * 1024 * 1024, ge=1024, le=4 * 1024**3)
    """The largest JSON response of an upstream that is read into memory. From 1024 to 4 GiB."""
    max_event_bytes: int = Field(default=16 * 1024 * 1024, ge=1024, le=1024**3)
    """The largest single event on an upstream's stream. From 1024 to 1 GiB."""
    max_app_bytes: int = Field(default=8 * 1024 * 1024, ge=1024, le=1024**3)
    """The largest answer to a read of a `ui://` resource (MCP Apps) that a host gets; a larger one is an error, and is
    never cut off. From 1024 to 1 GiB; what one response or one event may have counts before it."""
    max_depth: int = Field(default=128, ge=8, le=512)
    """How deep JSON may nest in a request. From 8 (what a plain call with capabilities needs) to 512 (well below where
    a parser's own stack ends)."""
    max_batch: int = Field(default=50, ge=1, le=1000)
    """How many messages a batch may hold; only clients of 2025-03-26 send batches. From 1 to 1000."""


class Sessions(_Model):
    """Sessions of legacy clients."""

    ttl_s: int = Field(default=86_400, ge=60, le=30 * 86_400)
    """How long a session lives from its `initialize`, in seconds; its client then starts a new one. From 60 to 2592000
    (30 days): an id that is never looked up must not live forever."""


class Streams(_Model):
    """Long-lived response streams."""

    keep_alive_s: float = Field(default=15.0, ge=1, le=300, allow_inf_nan=False)
    """After how many seconds of silence a comment is sent, so that nothing between closes the stream. From 1 to 300;
    common load balancers close idle connections after 60."""
    resume_ttl_s: float = Field(default=300.0, ge=0, le=86_400, allow_inf_nan=False)
    """How long, in seconds, a legacy client can resume a dropped stream (`Last-Event-ID`) and fetch the answer it
    missed. From 0 (not at all) to 86400."""
    max_http_sse: int = Field(default=256, ge=1, le=100_000)
    """How many streams of HTTP+SSE (`http_sse` of a route) one caller may have open at a time in this process; one more
    is refused with 429. Callers that nothing tells apart count as one. From 1 to 100000; each takes a connection."""
    ask_ttl_s: float = Field(default=900.0, ge=1, le=86_400, allow_inf_nan=False)
    """How long, in seconds, a call waits for a client that was asked for something (a form, say) and must come back
    with the answer; then it is cancelled. From 1 to 86400."""


class Log(_Model):
    """The log, on standard error. No line holds a token, an argument, a result, or what was asked for by name."""

    level: Literal["debug", "info", "warning", "error"] = "warning"
    """The least that is written. `info` has a line for each request: method, route, upstream, status, duration."""
    format: Literal["text", "json"] = "text"
    """Lines to read, or one JSON object a line for programs."""


class Settings(_Model):
    """The whole configuration file."""

    listen: Listen = Listen(host="127.0.0.1", port=8080)
    """Where MCP clients connect, `host:port`; port 0 lets the system choose. An IPv6 address stands in brackets, and in
    YAML then in quotes."""
    public_url: PublicUrls = ()
    """The scheme and host by which clients reach the gateway, for example `https://mcp.example.com`, or a list of them.
    Requests for other hosts are refused with 403; a loopback listener serves its loopback names as well, and the hosts
    of routes are served in any case."""
    hosts: Literal["any"] | None = None
    """`any` serves requests for every host. Browsers can then be made to reach the gateway under foreign names (DNS
    rebinding), so that it is only for networks without browsers or behind a proxy that checks the host."""
    origins: Origins = ()
    """Origins of web pages that may call the gateway: `https://app.example.com`, `https://*.example.com`,
    `http://localhost:*`. The gateway's own origin always may; any other is refused with 403. Requests without an
    `Origin` don't come from a web page."""
    trusted_proxies: Networks = ()
    """Addresses or networks (`10.0.0.0/8`) of proxies in front of the gateway, whose `X-Forwarded-Host`,
    `X-Forwarded-Proto`, `X-Forwarded-For` and `Forwarded` are believed. From everybody else they are dropped."""
    tls: ListenTls | None = None
    """Serve https on `listen`. Without it, http."""
    connections: Connections = Connections()
    """Bounds on clients' connections."""
    admin: Listen | None = None
    """Where health (`/healthz`, `/readyz`) and metrics (`/metrics`) are served, `host:port`; nowhere if absent. Not for
    the public."""
    admin_token: SecretStr | None = None
    """What `admin` asks for as `Authorization: Bearer TOKEN` on everything it serves but `/healthz` and `/readyz`, 16
    characters or more. Required where `admin` is not a loopback address."""
    keys: tuple[SecretStr, ...] = ()
    """Keys that seal session ids and other tokens, `ID:BASE64URL` with 32 bytes each, made by `mcp-front-door keygen`.
    The first seals; the others only open what they sealed before, so that keys can be changed. At most 8. Without any,
    a new key is made at each start, and legacy clients' sessions end with it. Required where there is a `store`."""
    store: Store | None = None
    """What several gateway processes share. Without it, everything is kept in this process, of which there is one."""
    upstreams: Mapping[UpstreamName, Upstream] = Field(json_schema_extra={"minProperties": 1})
    """The MCP servers behind the gateway, by name: lower-case letters, digits and hyphens."""
    routes: tuple[Route, ...] = Field(json_schema_extra={"minItems": 1})
    """The public endpoints."""
    grace_s: float = Field(default=25.0, ge=0, le=3600, allow_inf_nan=False)
    """How long, in seconds, calls under way may go on after SIGTERM; then they are cut off. From 0 to 3600; Kubernetes
    kills after 30 unless told otherwise."""
    clients: Mapping[ClientName, Client] = {}
    """Who may call, by name. With none, every route is open to whoever reaches `listen`; with one, each route wants a
    key, unless it says `anonymous`."""
    profiles: Mapping[ProfileName, ProfileSettings] = {}
    """What hosts can show, beside the built-in `core-v1`, `interactive-v1` and `desktop-apps-2026-01-26-v1`, by name:
    lower-case letters, digits and hyphens. A profile is a ceiling where a route or a client names it."""
    limits: Limits = Limits()
    """Bounds on what one peer can make the gateway hold."""
    sessions: Sessions = Sessions()
    """Sessions of legacy clients."""
    streams: Streams = Streams()
    """Long-lived response streams."""
    log: Log = Log()
    """The log, on standard error."""

    @field_validator("admin_token", mode="after")
    @classmethod
    def _admin_token(cls, token: SecretStr | None) -> SecretStr | None:
        if token is not None:
            wellformed.bearer_token(token.get_secret_value())
        return token

    @field_validator("keys", mode="after")
    @classmethod
    def _keys(cls, keys: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
        if len(keys) > wellformed.MAX_KEYS:
            raise ValueError(f"holds {len(keys)} keys; keep the newest {wellformed.MAX_KEYS}, the newest first")
        problems: list[Problem] = []
        seen: set[str] = set()
        for index, key in enumerate(keys):
            try:
                key_id, _ = wellformed.sealing_key(key.get_secret_value())
            except ValueError as error:
                problems.append(((index,), str(error)))
                continue
            if key_id in seen:
                problems.append(((index,), "has the id of an earlier key; give each key its own"))
            seen.add(key_id)
        _raise(problems)
        return keys

    @field_validator("upstreams", mode="after")
    @classmethod
    def _upstreams(cls, upstreams: Mapping[str, Upstream]) -> Mapping[str, Upstream]:
        if not upstreams:
            raise ValueError("must hold at least one upstream; give it a name and a url")
        return upstreams

    @field_validator("routes", mode="after")
    @classmethod
    def _routes(cls, routes: tuple[Route, ...], info: ValidationInfo) -> tuple[Route, ...]:
        if not routes:
            raise ValueError("must hold at least one route; give it a path and an upstream")
        problems: list[Problem] = []
        upstreams = info.data.get("upstreams")  # absent where they are faulty themselves
        taken: dict[tuple[str | None, str], int] = {}
        for index, route in enumerate(routes):
            for place, name in route.references():
                if upstreams is not None and name not in upstreams:
                    problems.append(((index, *place), f'unknown upstream "{name}"; {hint(name, list(upstreams))}'))
            for member, path in (("path", route.path), ("http_sse", route.http_sse)):
                first = index if path is None else taken.setdefault((route.host, path), index)
                if first != index:
                    problems.append(((index, member), f"is served by routes[{first}] already; change {member} or host"))
        _raise(problems)
        return routes

    @field_validator("clients", mode="after")
    @classmethod
    def _clients(cls, clients: Mapping[str, Client], info: ValidationInfo) -> Mapping[str, Client]:
        routes = info.data.get("routes")  # absent where they are faulty themselves
        _raise(list(judge_clients(clients, None if routes is None else [route.address for route in routes])))
        return clients

    @model_validator(mode="after")
    def _fit(self) -> Self:
        problems: list[Problem] = []
        if not (self.listen.is_loopback or self.public_url or self.hosts == "any"):
            ask = "in the configuration file (-c), write public_url: https://NAME, or hosts: any"
            why = f"is reached from elsewhere, and nothing says under which names; {ask}"
            problems.append((("listen",), why))
        if self.admin is not None and self.admin == self.listen and self.admin.port != 0:
            problems.append((("admin",), "is the address that clients connect to; choose another port"))
        if self.admin is not None and not self.admin.is_loopback and self.admin_token is None:
            why = "is missing; admin is open to other machines: set a token, or listen on 127.0.0.1"
            problems.append((("admin_token",), why))
        if self.store is not None and not self.keys:
            why = "is missing; processes that share a store open what others sealed: set keys (mcp-front-door keygen)"
            problems.append((("keys",), why))
        problems += judge_routes(self.clients, [(route.address, route.anonymous) for route in self.routes])
        behind = [(route.address, name) for route in self.routes for _, name in route.references()]
        forwarded = {name: upstream.forward_headers for name, upstream in self.upstreams.items()}
        problems += judge_forwarding(self.clients, behind, forwarded)
        ceilings: list[tuple[tuple[str | int, ...], str | None]] = [
            *((("routes", index, "profile"), route.profile) for index, route in enumerate(self.routes)),
            *((("clients", name, "profile"), client.profile) for name, client in self.clients.items()),
        ]
        problems += judge_profiles(self.profiles, ceilings)
        problems += judge_advertising(self.profiles, [(route.profile, route.apps) for route in self.routes])
        _raise(problems)
        return self

    @property
    def sealing_keys(self) -> tuple[tuple[str, bytes], ...]:
        """`keys` in the clear, as ids and 32 bytes each; empty where an ephemeral one is wanted."""
        return tuple(wellformed.sealing_key(key.get_secret_value()) for key in self.keys)
