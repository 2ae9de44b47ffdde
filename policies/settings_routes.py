"""The public endpoints among the settings: a path, and which upstream takes which of its requests, or which LLM API all
of them.

Whether the upstreams that are named exist is seen to in `policies/settings.py`; what a rule does is decided in
`policies/routing.py`.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, Field, GetJsonSchemaHandler, field_validator, model_validator
from pydantic_core import CoreSchema

from policies import wellformed
from policies.settings_base import Model as _Model
from policies.settings_base import Problem
from policies.settings_base import refuse as _raise
from policies.settings_profiles import ProfileName

_OF_MCP: Final = frozenset({"upstream", "rules", "default", "http_sse", "profile", "apps", "cache"})
"""Settings of routes that lead to MCP servers."""


class Match(_Model):
    """What a header must be: exactly one of the three. Written as a plain string, it is a `value`."""

    value: str | None = Field(default=None, min_length=1)
    """Equal to this, case-sensitively."""
    prefix: str | None = Field(default=None, min_length=1)
    """Starts with this."""
    glob: str | None = Field(default=None, min_length=1)
    """Matches this as a whole; `*` stands for any run of characters, `?` for one, everything else for itself."""

    @model_validator(mode="before")
    @classmethod
    def _parse(cls, value: Any) -> Any:
        return {"value": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _one(self) -> Self:
        if sum(part is not None for part in (self.value, self.prefix, self.glob)) != 1:
            raise ValueError("must be exactly one of value, prefix, glob; for either of two, write two rules")
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        table = {**handler.resolve_ref_schema(handler(core_schema)), "minProperties": 1, "maxProperties": 1}
        return {"anyOf": [{"type": "string", "minLength": 1}, table]}


class Rule(_Model):
    """Sends the requests that meet all of its conditions to one upstream. At least one condition is needed."""

    method: Match | None = None
    """The JSON-RPC method (`Mcp-Method`)."""
    name: Match | None = None
    """The tool or prompt name or the resource URI (`Mcp-Name`, decoded)."""
    params: Mapping[str, Match] = {}
    """Parameters that a tool publishes as headers: `Region` is the header `Mcp-Param-Region`, decoded. Names ignore
    case."""
    upstream: str
    """The upstream, by its name under `upstreams`."""

    @field_validator("params", mode="after")
    @classmethod
    def _params(cls, params: Mapping[str, Match]) -> Mapping[str, Match]:
        problems: list[Problem] = []
        seen: set[str] = set()
        for name in params:
            if name.lower().startswith("mcp-param-"):
                problems.append(((name,), "is written without its Mcp-Param- prefix"))
            elif not wellformed.is_token(name):
                problems.append(((name,), "is no part of a header name; use letters, digits and hyphens"))
            elif name.lower() in seen:
                problems.append(((name,), "is named twice (header names ignore case); keep one"))
            seen.add(name.lower())
        _raise(problems)
        return params

    @model_validator(mode="after")
    def _some(self) -> Self:
        if self.method is None and self.name is None and not self.params:
            raise ValueError("has no condition and would take every request; name its upstream as the route's default")
        return self


class Route(_Model):
    """One public endpoint: a path, on every host or one, and the MCP server or servers behind it, or the LLM API."""

    path: Annotated[str, AfterValidator(wellformed.path)]
    """The path, matched as it stands, with or without a final slash. With `provider`, everything below it as well; of
    several routes that a path lies below, the longest counts."""
    host: Annotated[str, AfterValidator(wellformed.host_pattern)] | None = None
    """Serve only requests for this host (the port is not compared), or for every host below one: `*.example.com`. A
    route with the host wins over a pattern, the longest pattern over others, any of them over a route without host."""
    upstream: str | None = None
    """The one upstream behind this route, by its name under `upstreams`. Either this, or `rules` and `default`."""
    provider: str | None = None
    """The LLM API behind this route, by its name under `providers`, in place of `upstream` and what belongs to MCP."""
    principal: str | None = None
    """Whose MCP Apps are recognised in what is sent to the `provider` without a key of the gateway's: a client's, by
    its name under `clients`. If absent, those of callers without a key. Callers with a key have their own."""
    rules: tuple[Rule, ...] = ()
    """Ordered rules; the first that matches takes the request. Whatever they say, requests about a task go to the
    upstream that made it: where they lead to several, its id is sealed, and names that upstream to every replica."""
    default: str | None = None
    """The upstream for requests that no rule takes; those that carry no name (lists, `initialize`) go here too."""
    http_sse: Annotated[str, AfterValidator(wellformed.path)] | None = None
    """A second path, for example `/sse`, at which clients are served that know only HTTP+SSE, the transport of
    2024-11-05. A GET opens their stream, which lives in the gateway process that it came to; what they POST may come to
    any. The stream tells them this path to POST to: a proxy that takes a prefix off the paths it passes on has to name
    that in `X-Forwarded-Prefix`, and be one of `trusted_proxies`. Not served if absent."""
    profile: ProfileName | None = None
    """The most that hosts are shown and asked here: a built-in profile or one under `profiles`. Each host gets the part
    of it that it declares to be capable of, and servers are told of no more. If absent, whatever it declares, up to
    `desktop-apps-2026-01-26-v1`."""
    apps: Literal["advertise"] | None = None
    """`advertise` tells hosts that show MCP Apps that the server has them, where it lists tools with an interface and
    forgets to say so (the extension `io.modelcontextprotocol/ui`). If absent, they are told what the server says."""
    cache: bool = True
    """Whether requests here may be answered by what the `cache` holds; with `false` each goes to the upstream."""
    anonymous: bool = False
    """Whether callers without a key are served too. Matters where there are `clients`: then every other route wants the
    key of a client that lists it."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        if self.provider is not None:
            given = sorted(_OF_MCP & self.model_fields_set)
            _raise([((name,), "does nothing beside provider; remove it") for name in given])
            return self
        if self.principal is not None:
            raise ValueError("has a principal and no provider; remove principal")
        if self.http_sse is not None and self.http_sse.removesuffix("/") == self.path.removesuffix("/"):
            raise ValueError("has path and http_sse alike; give http_sse another path, for example /sse")
        if self.upstream is not None and (self.rules or self.default is not None):
            raise ValueError("has both upstream and rules or default; keep upstream alone, or rules with a default")
        if self.upstream is None and self.default is None:
            more = "add upstream, or provider"
            fix = "add default: the upstream for requests that no rule takes" if self.rules else more
            raise ValueError(f"leads nowhere; {fix}")
        if self.upstream is None and not self.rules:
            raise ValueError("has a default and no rules; write it as upstream")
        return self

    @property
    def address(self) -> str:
        """What names this route: `/mcp`, or with its host `mcp.example.com/mcp`."""
        return f"{self.host or ''}{self.path}"

    @property
    def fallback(self) -> str:
        """The name of the upstream that takes what no rule takes."""
        return self.upstream or self.default or ""

    @property
    def has_several(self) -> bool:
        """Whether there is more than one upstream behind it."""
        return any(rule.upstream != self.default for rule in self.rules)

    def references(self) -> Iterator[tuple[tuple[str | int, ...], str]]:
        """Every upstream that this route names, with the place where it does; none where it leads to an LLM API."""
        if self.provider is not None:
            return
        for index, rule in enumerate(self.rules):
            yield ("rules", index, "upstream"), rule.upstream
        yield (("upstream" if self.upstream is not None else "default"),), self.fallback
