"""Finds out which eras an upstream speaks: `server/discover` first, never a tool call.

Specification: 2026-07-28 basic/versioning and basic/transports/streamable-http (Backward Compatibility). Judging the
answers is `policies/era.py`'s business.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

import aiohttp

from gateway.upstreams.base import OWN_INFO, Ids
from gateway.upstreams.http_sse import EitherTransport
from gateway.upstreams.patience import Patience, within
from gateway.upstreams.transport import Transport
from gateway.upstreams.wire import BOTH, Wire
from policies import era, headers, jsonrpc
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
from policies.settings import Limits, Timeouts
from policies.settings import Upstream as UpstreamSettings
from policies.translation.discover import Description, of_discover, of_initialize

Credentials = tuple[tuple[str, str], ...]
"""Headers of the caller's with which to ask: where the upstream wants its own, the gateway has none."""


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """What `mcp-front-door probe` shows. `versions`: newest first. `detail`: one sentence on what was heard."""

    eras: frozenset[Era]
    versions: tuple[str, ...]
    capabilities: Json = field(default_factory=dict)
    extensions: Json = field(default_factory=dict)
    server_info: Json | None = None
    instructions: str | None = None
    detail: str = ""


async def discover(wire: Transport, ids: Ids, credentials: Credentials = ()) -> era.Verdict:
    """Asks `server/discover`, once more where the upstream names a version that we share.

    No answer, in time or at all, is for an HTTP upstream no verdict: it is then judged by `initialize`. Raises
    `UpstreamFault` where the upstream cannot be reached.
    """
    version = LATEST_MODERN
    for _ in range(2):
        try:
            async with within(wire.settings.timeouts.probe_s, wire.name):
                verdict = await _discover_once(wire, ids, version, credentials)
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
    params = {"protocolVersion": LATEST_LEGACY, "capabilities": {}, "clientInfo": OWN_INFO}
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
            return False, None
    if not isinstance(result, dict) or result.get("protocolVersion") not in LEGACY_VERSIONS:
        return False, None
    version = str(result["protocolVersion"])
    if session is not None:
        head = {**dict(credentials), HEADER_SESSION: session, HEADER_VERSION: version}
        await _delete(wire, head | ({"Cookie": reception.cookie} if reception.cookie else {}), reception.endpoint)
    return session is not None, of_initialize(result, version)


async def probe(url: str, *, headers: Mapping[str, str], timeout_s: float) -> ProbeReport:
    """Both eras of the server at `url`, for an operator's eyes. Raises `UpstreamFault`."""
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
        finally:
            await either.close()
    modern = of_discover(verdict.discover, verdict.versions[0]) if verdict.discover is not None else None
    return _report(
        verdict, modern, legacy, ("with" if has_sessions else "without") + " a session", over_sse=either.is_sse
    )


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


async def _discover_once(wire: Transport, ids: Ids, version: str, credentials: Credentials) -> era.Verdict:
    meta = {META_VERSION: version, META_CLIENT_INFO: OWN_INFO, META_CLIENT_CAPABILITIES: {}}
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
