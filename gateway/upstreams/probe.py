"""Finds out which eras an upstream speaks: `server/discover` first, never a tool call.

Specification: 2026-07-28 basic/versioning and basic/transports/streamable-http (Backward Compatibility). Judging the
answers is `policies/era.py`'s business.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

import aiohttp

from gateway.upstreams.apps import any_app
from gateway.upstreams.base import OWN_INFO, Ids
from gateway.upstreams.http_sse import EitherTransport
from gateway.upstreams.patience import Patience, within
from gateway.upstreams.transport import Transport
from gateway.upstreams.wire import BOTH, Wire
from policies import era, headers, jsonrpc
from policies.apps_matrix import Heard, Layer, layers
from policies.errors import UpstreamFault
from policies.mcp import (
    HEADER_METHOD,
    HEADER_SESSION,
    HEADER_VERSION,
    LATEST_LEGACY,
    LATEST_MODERN,
    LEGACY_VERSIONS,
    META_CLIENT_CAPABILITIES,
    META_CLIENT_INFO,
    META_VERSION,
    Era,
    Json,
)
from policies.profiles import Profile
from policies.settings import Limits, Timeouts
from policies.settings import Upstream as UpstreamSettings
from policies.translation.discover import Description, of_discover, of_initialize

_REQUESTS = 4
"""A description, and a list of a few pages: so many times as long as one request may take."""

Credentials = tuple[tuple[str, str], ...]
"""Headers of the caller's with which to ask: where the upstream wants its own, the gateway has none."""


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """What `mcp-front-door probe` shows. `versions`: newest first. `detail`: one sentence on what was heard. `layers`:
    how far it carries for a host of each profile, by the profile's name."""

    eras: frozenset[Era]
    versions: tuple[str, ...]
    capabilities: Json = field(default_factory=dict)
    extensions: Json = field(default_factory=dict)
    server_info: Json | None = None
    instructions: str | None = None
    detail: str = ""
    layers: Mapping[str, tuple[Layer, ...]] = field(default_factory=dict)


async def discover(wire: Transport, ids: Ids, credentials: Credentials = ()) -> era.Verdict:
    """Asks `server/discover`, once more where the upstream names a version that we share.

    No answer, in time or at all, is for an HTTP upstream no verdict: it is then judged by `initialize`. Raises
    `UpstreamFault` where the upstream cannot be reached.
    """
    version = LATEST_MODERN
    for _ in range(2):
        try:
            async with within(wire.settings.timeouts.probe_s, wire.name):
                verdict = await _discover_once(wire, ids, version, credentials, {})
        except UpstreamFault as fault:
            if fault.executed:
                return era.Verdict("legacy")
            raise
        if verdict.kind != "retry":
            return verdict
        version = verdict.versions[0]
    return era.Verdict("incompatible", verdict.versions)


async def speaks_legacy(wire: Transport, ids: Ids, credentials: Credentials = ()) -> tuple[bool, Description | None]:
    """Asks a modern upstream whether it has sessions too. One that issues no session id adds nothing to a legacy
    client that the bridge does not. The session is deleted again."""
    async with _session(wire, ids, {}, credentials) as (head, described):
        return HEADER_SESSION in head, described


@asynccontextmanager
async def _session(
    wire: Transport, ids: Ids, capabilities: Json, credentials: Credentials = ()
) -> AsyncIterator[tuple[dict[str, str], Description | None]]:
    """A session for as long as it is needed: the head of its requests, and how the server describes itself; None where
    it opens none. Nobody but its opener has told it anything yet."""
    params = {"protocolVersion": LATEST_LEGACY, "capabilities": capabilities, "clientInfo": OWN_INFO}
    body = jsonrpc.request(ids.next(), "initialize", params)
    async with (
        within(wire.settings.timeouts.probe_s, wire.name),
        # with the method header: a dual-era server may route on it
        wire.request("POST", {**dict(credentials), **BOTH, HEADER_METHOD: "initialize"}, body) as reception,
    ):
        if reception.status >= 500:
            raise reception.refusal()
        session = reception.headers.get(HEADER_SESSION)
        try:
            result = (await reception.response()).get("result")
        except UpstreamFault:
            result = None
    if not isinstance(result, dict) or result.get("protocolVersion") not in LEGACY_VERSIONS:
        yield {}, None
        return
    version = str(result["protocolVersion"])
    head = {**dict(credentials), HEADER_VERSION: version}
    head |= ({HEADER_SESSION: session} if session is not None else {}) | (
        {"Cookie": reception.cookie} if reception.cookie else {}
    )
    try:
        yield head, of_initialize(result, version)
    finally:
        if session is not None:
            await _delete(wire, head, reception.endpoint)


async def probe(url: str, *, headers: Mapping[str, str], timeout_s: float, profiles: Sequence[Profile]) -> ProbeReport:
    """Both eras of the server at `url`, and what hosts of these profiles get of it, for an operator's eyes. Raises
    `UpstreamFault`."""
    settings = UpstreamSettings.model_validate(
        {"url": url, "headers": dict(headers), "timeouts": Timeouts(probe_s=timeout_s)}
    )
    async with aiohttp.ClientSession(auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar()) as http:
        wire, ids = Wire(urlsplit(url).netloc, settings, Limits(), http), Ids()
        verdict = await discover(wire, ids)
        if verdict.kind == "unauthorized":
            raise UpstreamFault("the server refuses these credentials; give it some with --header", http=401)
        if verdict.kind == "unavailable":
            raise UpstreamFault("the server is out of order: it answers server/discover with a 5xx status", http=503)
        either = EitherTransport(wire, ids)
        try:
            has_sessions, legacy = await speaks_legacy(either, ids)
            modern = of_discover(verdict.discover, verdict.versions[0]) if verdict.discover is not None else None
            how = ("with" if has_sessions else "without") + " a session"
            report = _report(verdict, modern, legacy, how, over_sse=either.is_sse)
            lived = {
                profile.name: layers(profile, await _heard(either, ids, profile, modern is not None))
                for profile in profiles
            }
            return replace(report, layers=lived)
        finally:
            await either.close()


def _report(
    verdict: era.Verdict, modern: Description | None, legacy: Description | None, how: str, *, over_sse: bool
) -> ProbeReport:
    eras: set[Era] = set()
    versions: list[str] = []
    if verdict.kind in ("modern", "incompatible"):
        eras.add("modern")
        versions += verdict.versions
    if legacy is not None:
        eras.add("legacy")
        versions.append(legacy.dialect.version)
    said = modern or legacy
    if said is None and verdict.kind == "legacy":
        raise UpstreamFault("this is no MCP endpoint: it answers neither server/discover nor initialize")
    detail = {
        "modern": "answers server/discover",
        "incompatible": "speaks only modern versions that this gateway does not know",
        "legacy": "does not answer server/discover",
    }.get(verdict.kind, verdict.kind)
    if legacy is not None:
        detail += f", answers initialize {'over HTTP+SSE' if over_sse else how}"
    capabilities = said.capabilities if said is not None else {}
    extensions = capabilities.get("extensions")
    return ProbeReport(
        frozenset(eras),
        tuple(dict.fromkeys(versions)),
        capabilities,
        extensions if isinstance(extensions, dict) else {},
        said.server_info if said is not None else None,
        said.instructions if said is not None else None,
        detail,
    )


async def _heard(wire: Transport, ids: Ids, profile: Profile, is_modern: bool) -> Heard:
    """What comes of asking in the name of a host of this profile: descriptions and lists, no call."""
    asked = LATEST_MODERN if is_modern else LATEST_LEGACY
    try:
        async with within(_REQUESTS * wire.settings.timeouts.probe_s, wire.name):
            return await (_heard_modern if is_modern else _heard_in_session)(wire, ids, profile)
    except UpstreamFault as fault:
        return Heard(asked, why=fault.message)


async def _heard_modern(wire: Transport, ids: Ids, profile: Profile) -> Heard:
    told = profile.capabilities
    verdict = await _discover_once(wire, ids, LATEST_MODERN, (), told)
    if verdict.discover is None:
        return Heard(LATEST_MODERN, why="does not describe itself to such a host")
    meta = {META_VERSION: LATEST_MODERN, META_CLIENT_INFO: OWN_INFO, META_CLIENT_CAPABILITIES: told}

    async def page(params: Json) -> Json:
        head = headers.build("tools/list", params, LATEST_MODERN) | BOTH
        return await _asked(wire, head, jsonrpc.request(ids.next(), "tools/list", {**params, "_meta": meta}))

    said = of_discover(verdict.discover, LATEST_MODERN).capabilities
    return Heard(LATEST_MODERN, LATEST_MODERN, told, said, await _lists_apps(profile, said, page))


async def _heard_in_session(wire: Transport, ids: Ids, profile: Profile) -> Heard:
    told = profile.capabilities
    async with _session(wire, ids, told) as (head, described):
        if described is None:
            return Heard(LATEST_LEGACY, why="refuses to initialize for such a host")

        async def page(params: Json) -> Json:
            return await _asked(wire, head | BOTH, jsonrpc.request(ids.next(), "tools/list", params))

        async with wire.request("POST", head | BOTH, jsonrpc.notification("notifications/initialized")):
            said = described.capabilities  # nothing of the answer matters
        lists_apps = await _lists_apps(profile, said, page)
        return Heard(LATEST_LEGACY, described.dialect.version, told, said, lists_apps)


async def _lists_apps(profile: Profile, said: Json, page: Callable[[Json], Awaitable[Json]]) -> bool | None:
    if not profile.shows_apps or not isinstance(said.get("tools"), dict):
        return None
    try:
        return await any_app(page)
    except UpstreamFault:
        return None


async def _asked(wire: Transport, head: dict[str, str], body: bytes) -> Json:
    async with wire.request("POST", head, body, Patience(repeatable=True)) as reception:
        result = (await reception.response()).get("result")
    if not isinstance(result, dict):
        raise UpstreamFault("the server refuses to list its tools")
    return result


async def _discover_once(
    wire: Transport, ids: Ids, version: str, credentials: Credentials, capabilities: Json
) -> era.Verdict:
    meta = {META_VERSION: version, META_CLIENT_INFO: OWN_INFO, META_CLIENT_CAPABILITIES: capabilities}
    body = jsonrpc.request(ids.next(), "server/discover", {"_meta": meta})
    head = dict(credentials) | headers.build("server/discover", {}, version) | BOTH
    async with wire.request("POST", head, body, Patience(repeatable=True)) as reception:
        if reception.status in (401, 403) or reception.status >= 500:
            verdict = era.judge(reception.status, None)
            return replace(verdict, status=reception.status, challenge=reception.headers.get("WWW-Authenticate"))
        try:
            return era.judge(reception.status, await reception.response())
        except UpstreamFault as fault:
            if fault.http == 504:
                raise
            return era.judge(reception.status, None)  # HTML, an empty body, a 202: no modern answer


async def _delete(wire: Transport, head: dict[str, str], endpoint: str) -> None:
    try:
        async with wire.request("DELETE", head, None, Patience(endpoint=endpoint)):
            pass
    except UpstreamFault:
        return  # it will expire there
