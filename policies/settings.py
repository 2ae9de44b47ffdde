"""The operator's settings, as frozen values: what may be configured, within which bounds, and what fits together.

The docstring under each field is the reference manual: `docs/configuration.md` and the JSON Schema are made from it.
Validation is strict about names (an unknown key is an error) and cross references. Nothing is read here, neither a file
nor the environment: `gateway/config.py` does that and words the errors; what the settings do is decided elsewhere.
"""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, GetJsonSchemaHandler, SecretStr, ValidationInfo, field_validator, model_validator
from pydantic_core import CoreSchema

from policies import wellformed
from policies.settings_base import Model as _Model
from policies.settings_base import Problem, UpstreamName, hint
from policies.settings_base import refuse as _raise
from policies.settings_cache import Cache
from policies.settings_clients import Client, judge_clients, judge_forwarding, judge_routes
from policies.settings_edge import Connections, ListenTls, Networks, Origins, PublicUrls
from policies.settings_observing import Metrics, Tracing
from policies.settings_profiles import ProfileName, ProfileSettings, judge_advertising, judge_profiles
from policies.settings_providers import Provider, judge_provider_routes
from policies.settings_routes import Route
from policies.settings_store import Store
from policies.settings_upstream import Timeouts, Upstream

__all__ = ["Limits", "Listen", "Log", "Sessions", "Settings", "Streams", "Timeouts", "Upstream"]

ClientName = UpstreamName


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


class Limits(_Model):
    """Bounds on what one peer can make the gateway hold."""

    max_body_bytes: int = Field(default=4 * 1024 * 1024, ge=1024, le=1024**3)
    """The largest request body; a larger one is refused with 413. From 1024 (smaller than an `initialize` with
    capabilities) to 1 GiB."""
    max_head_bytes: int = Field(default=32 * 1024, ge=1024, le=1024**2)
    """The largest request head, request line included; a larger one is refused with 431. From 1024 to 1 MiB. One line
    may have 8190 bytes whatever stands here."""
    max_provider_body_bytes: int = Field(default=32 * 1024 * 1024, ge=1024, le=1024**3)
    """The same of a request to an LLM API (`providers`), which is read as a whole before it is sent on. From 1024 to
    1 GiB; no provider takes more than 32 MiB but for batches and files, and files are not read."""
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
    is refused with 429. Callers without a key of whom no header goes upstream are counted by their address, behind
    `trusted_proxies` that of the client. From 1 to 100000; each takes a connection."""
    ask_ttl_s: float = Field(default=900.0, ge=1, le=86_400, allow_inf_nan=False)
    """How long, in seconds, a call waits for a client that was asked for something (a form, say) and must come back
    with the answer; then it is cancelled. From 1 to 86400."""


class Log(_Model):
    """The log, on standard error. No line holds a token, an argument or a result, and of what was asked for only the
    names of tools and prompts that the server lists."""

    level: Literal["debug", "info", "warning", "error"] = "warning"
    """The least that is written. `info` has a line for each request: who, what, whether it was let through, how it went
    and how long it took."""
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
    `X-Forwarded-Proto`, `X-Forwarded-For`, `X-Forwarded-Prefix` and `Forwarded` are believed. From everybody else they
    are dropped."""
    tls: ListenTls | None = None
    """Serve https on `listen`. Without it, http."""
    connections: Connections = Connections()
    """Bounds on clients' connections."""
    admin: Listen | None = None
    """Where health (`/healthz`, `/readyz`), metrics (`/metrics`) and the status page (`/status`) are served,
    `host:port`; nowhere if absent. Not for the public."""
    admin_token: SecretStr | None = None
    """What `admin` asks for as `Authorization: Bearer TOKEN` on everything it serves but `/healthz` and `/readyz`, 16
    characters or more. A browser that opens `/status` asks for it as a password. Required where `admin` is not a
    loopback address."""
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
    providers: Mapping[UpstreamName, Provider] = {}
    """LLM APIs behind the gateway, by name: lower-case letters, digits and hyphens. Where there is one, it is
    remembered which MCP Apps each caller's hosts were given, so that they are recognised in what is sent to it."""
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
    cache: Cache = Cache()
    """What is kept of upstreams' answers."""
    log: Log = Log()
    """The log, on standard error."""
    metrics: Metrics = Metrics()
    """What `/metrics` of `admin` tells."""
    tracing: Tracing = Tracing()
    """Spans of requests."""

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
        problems += judge_provider_routes(self.routes, self.providers, list(self.clients))
        problems += judge_advertising(self.profiles, [(route.profile, route.apps) for route in self.routes])
        _raise(problems)
        return self

    @property
    def sealing_keys(self) -> tuple[tuple[str, bytes], ...]:
        """`keys` in the clear, as ids and 32 bytes each; empty where an ephemeral one is wanted."""
        return tuple(wellformed.sealing_key(key.get_secret_value()) for key in self.keys)
