"""Who may call, as configured: clients with keys, which routes are theirs, and what does not fit together with that.

A part of `policies/settings.py`. How a key is recognised in a request: `policies/identity.py`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from policies import wellformed
from policies.settings_base import Model, Problem, hint, refuse
from policies.settings_profiles import ProfileName


class Client(Model):
    """A caller with keys of its own, sent as `Authorization: Bearer KEY`. `mcp-front-door keygen --client NAME` makes a
    key and the entry for it. Sessions, tasks and every `requestState` belong to the client that got them; a server's
    `requestState` and ids of tasks pass as they are where one of its `forward_headers` comes with the request."""

    keys: tuple[Annotated[str, AfterValidator(wellformed.key_digest)], ...] = Field(json_schema_extra={"minItems": 1})
    """What its keys are recognised by: `sha256:` and the SHA-256 of a key in hex. A key is not in the file, nor can it
    be found out from its digest. Several, so that a key can be changed without a gap; at most 8."""
    routes: tuple[str, ...] = Field(json_schema_extra={"minItems": 1})
    """The routes that it may use, each by its path, or by host and path (`mcp.example.com/mcp`) where the route has a
    host."""
    profile: ProfileName | None = None
    """The most that its hosts are shown and asked, wherever they come in; of this and of the route's own `profile`, the
    smaller part. No limit if absent."""

    @model_validator(mode="after")
    def _fit(self) -> Self:
        problems: list[Problem] = []
        if not 1 <= len(self.keys) <= wellformed.MAX_KEYS:
            problems.append((("keys",), f"must hold 1 to {wellformed.MAX_KEYS} digests; see mcp-front-door keygen"))
        if not self.routes:
            problems.append((("routes",), "must hold at least one route; remove a client that may use none"))
        refuse(problems)
        return self


def judge_clients(clients: Mapping[str, Client], known: list[str] | None) -> Iterator[Problem]:
    """What is wrong below `clients`; `known` are the routes' addresses, None where those are faulty themselves."""
    owners: dict[str, str] = {}
    for name, client in clients.items():
        for index, digest in enumerate(client.keys):
            if digest in client.keys[:index] or owners.setdefault(digest, name) != name:
                yield (name, "keys", index), f"is a key of clients.{owners[digest]} already; give each client its own"
        for index, route in enumerate(client.routes):
            if known is not None and route not in known:
                yield (name, "routes", index), f'unknown route "{route}"; {hint(route, known)}'


def judge_routes(clients: Mapping[str, Client], routes: Sequence[tuple[str, bool]]) -> Iterator[Problem]:
    """Routes, as address and `anonymous`, that no client may use: forgotten, or meant to be open."""
    listed = {route for client in clients.values() for route in client.routes}
    for index, (address, anonymous) in enumerate(routes if clients else ()):
        if address not in listed and not anonymous:
            yield ("routes", index), "no client may use it; list it under a client's routes, or set anonymous: true"


def judge_forwarding(
    clients: Mapping[str, Client], behind: Sequence[tuple[str, str]], forwarded: Mapping[str, Sequence[str]]
) -> Iterator[Problem]:
    """Upstreams that would be sent a client's key for this gateway: `behind` are routes' addresses with an upstream
    behind each, `forwarded` the `forward_headers` of every upstream."""
    listed = {route for client in clients.values() for route in client.routes}
    asking = {name: address for address, name in behind if address in listed}
    for name, headers in forwarded.items():
        for index, header in enumerate(headers):
            if name in asking and header.lower() == "authorization":
                why = f"would pass on the keys that {asking[name]} asks its clients for; leave it out"
                yield ("upstreams", name, "forward_headers", index), why
