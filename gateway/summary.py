"""Describes settings and probed upstreams to a person at a terminal.

Texts only: nothing is reached here. No line holds a header value, a key, or the query of a URL, which may be a secret.
"""

import json
from collections.abc import Iterator
from urllib.parse import urlsplit, urlunsplit

from gateway.upstreams.probe import ProbeReport
from policies.settings import Settings
from policies.settings_routes import Match, Route, Rule


def settings_lines(settings: Settings) -> Iterator[str]:
    """Where it listens, which requests go where, and what an operator may not have meant."""
    yield f"listen {settings.listen}" + (f", health and metrics on {settings.admin}" if settings.admin else "")
    if settings.store is not None:
        user = f" as {settings.store.username}" if settings.store.username else ""
        yield f"store {settings.store.url}{user}, keys {settings.store.prefix}:*"
    for route in settings.routes:
        yield from _route_lines(route, settings)
    used = {name for route in settings.routes for _, name in route.references()}
    for name, client in settings.clients.items():
        yield f"client {name}: {', '.join(client.routes)}{_ceiling(client.profile)}"
    if not settings.clients and not settings.listen.is_loopback:
        yield "note: clients: none, so that whoever reaches listen may call; see: mcp-front-door keygen --client"
    for name in settings.upstreams:
        if name not in used:
            yield f"note: upstreams.{name}: no route leads to it"
    yield from _provider_notes(settings)
    if not settings.keys:
        yield "note: keys: none, so that legacy clients' sessions end with the process; see: mcp-front-door keygen"


def probe_lines(report: ProbeReport) -> Iterator[str]:
    """What an upstream speaks and offers."""
    info = report.server_info or {}
    server = " ".join(str(info[key]) for key in ("name", "version") if info.get(key))
    yield f"server        {server or 'says no name'}"
    yield f"eras          {', '.join(sorted(report.eras, reverse=True))}"
    yield f"versions      {', '.join(report.versions)}"
    yield f"capabilities  {_named(report.capabilities, but='extensions')}"
    yield f"extensions    {_named(report.extensions)}"
    if report.instructions:
        yield f"instructions  {' '.join(report.instructions.split())}"
    if report.detail:
        yield f"detail        {report.detail}"
    for profile, layers in report.layers.items():
        yield f"host          {profile}"
        for layer in layers:
            yield f"  {layer.name:<19} {layer.state:<11} {layer.detail}"


def probe_json(report: ProbeReport) -> str:
    """The same for programs: one JSON object."""
    members = {
        "eras": sorted(report.eras),
        "versions": list(report.versions),
        "capabilities": report.capabilities,
        "extensions": report.extensions,
        "serverInfo": report.server_info,
        "instructions": report.instructions,
        "detail": report.detail,
        "hosts": {
            profile: [{"layer": layer.name, "state": layer.state, "detail": layer.detail} for layer in layers]
            for profile, layers in report.layers.items()
        },
    }
    return json.dumps(members, indent=2, ensure_ascii=False)


def _route_lines(route: Route, settings: Settings) -> Iterator[str]:
    if route.provider is not None:
        whose = f", Apps of client {route.principal}" if route.principal is not None else ""
        yield f"{route.address.rstrip('/')}/... -> {_provider(route.provider, settings)}{whose}"
        return
    shows = _ceiling(route.profile) + (f", apps {route.apps}" if route.apps is not None else "")
    if route.upstream is not None:
        yield f"{route.address} -> {_upstream(route.upstream, settings)}{shows}"
        return
    yield f"{route.address}{shows}"
    for rule in route.rules:
        yield f"  {_conditions(rule)} -> {_upstream(rule.upstream, settings)}"
    yield f"  everything else -> {_upstream(route.fallback, settings)}"


def _provider_notes(settings: Settings) -> Iterator[str]:
    used = {route.provider for route in settings.routes}
    for name in settings.providers:
        if name not in used:
            yield f"note: providers.{name}: no route leads to it"
    for index, route in enumerate(settings.routes):
        provider = settings.providers[route.provider] if route.provider is not None else None
        if provider is not None and provider.has_credential and (route.anonymous or not settings.clients):
            yield f"note: routes[{index}]: whoever reaches it spends the key of providers.{route.provider}"


def _provider(name: str, settings: Settings) -> str:
    provider = settings.providers[name]
    whose = "with the gateway's key" if provider.has_credential else "with the caller's key"
    return f"provider {name}: {_shown(provider.url)}, {provider.dialect}, {whose}"


def _ceiling(profile: str | None) -> str:
    return "" if profile is None else f", profile {profile}"


def _upstream(name: str, settings: Settings) -> str:
    upstream = settings.upstreams[name]
    if upstream.command:
        return f"{name}: runs {upstream.command}, {upstream.scope}, era {upstream.era}"
    several = f", {upstream.balance}" if upstream.urls else ""
    return f"{name}: {' '.join(map(_shown, upstream.addresses))}{several}, era {upstream.era}"


def _shown(address: str) -> str:
    url = urlsplit(address)
    return urlunsplit((url.scheme, url.netloc, url.path, "..." if url.query else "", ""))


def _conditions(rule: Rule) -> str:
    named = {
        "method": rule.method,
        "name": rule.name,
        **{f"param {name}": match for name, match in rule.params.items()},
    }
    return ", ".join(f"{what} {_match(match)}" for what, match in named.items() if match is not None)


def _match(match: Match) -> str:
    kind, text = next((kind, text) for kind, text in match.model_dump(exclude_none=True).items())
    return json.dumps(text, ensure_ascii=False) if kind == "value" else f"{kind} {json.dumps(text, ensure_ascii=False)}"


def _named(members: dict[str, object], but: str = "") -> str:
    """`tools (listChanged), prompts`: the members that are there, with those of their switches that are on."""
    texts = []
    for name, value in sorted(members.items()):
        if name == but:
            continue
        switches = sorted(key for key, on in value.items() if on is not False) if isinstance(value, dict) else []
        texts.append(f"{name} ({', '.join(switches)})" if switches else name)
    return ", ".join(texts) or "none"
