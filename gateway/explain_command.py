"""`mcp-front-door explain`: a request described by options, and what a configuration makes of it, offline.

Nothing is connected to: no upstream, and no store. What only the running process knows is told as not known.
"""

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from gateway.app import Gateway
from policies import headers
from policies.explanation import MAX_BODY_CHARS, Described, described
from policies.mcp import (
    HEADER_METHOD,
    HEADER_NAME,
    HEADER_VERSION,
    LATEST_LEGACY,
    LATEST_MODERN,
    META_CLIENT_CAPABILITIES,
    META_CLIENT_INFO,
    META_VERSION,
    NAMED_BY,
    Json,
)
from policies.settings import Settings

_BOTH: Final = "application/json, text/event-stream"
_INFO: Final[Json] = {"name": "mcp-front-door-explain", "version": "0"}


def read_body(source: str | None) -> str | None:
    """The body in a file, of standard input for `-`. Raises ValueError, whose message says what is wrong."""
    if source is None:
        return None
    try:
        raw = sys.stdin.buffer.read(MAX_BODY_CHARS + 1) if source == "-" else Path(source).read_bytes()
        if len(raw) > MAX_BODY_CHARS:
            raise ValueError(f"is larger than {MAX_BODY_CHARS} bytes")
        return raw.decode()
    except OSError as error:
        raise ValueError(f"can't be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError("is not UTF-8 text") from None


def build(
    *,
    method: str | None,
    name: str | None,
    era: str | None,
    body: str | None,
    given: Sequence[tuple[str, str]],
    **more: str | None,
) -> Described:
    """The request that options describe. What a client of its era sends of itself is filled in: capabilities that are
    none, and the headers that repeat the body. A header in `given` replaces that, and an empty one takes it away.

    Raises ValueError, whose message names the member and the fix."""
    whole = body if body is not None else _message(method or "tools/list", name, era or "modern")
    parsed = _parsed(whole)
    lines = {"Content-Type": "application/json", "Accept": _BOTH, **_mirrored(parsed, era)}
    in_session = HEADER_METHOD not in lines and parsed.get("method") != "initialize"
    own = {said.lower() for said, _ in given}
    kept: dict[str, Any] = {said: value for said, value in lines.items() if said.lower() not in own}
    for said, value in given:
        if value:
            kept[said] = [*kept.get(said, []), value]
    described_as = {"headers": kept, "body": whole, **{key: value for key, value in more.items() if value is not None}}
    if in_session and "mcp-session-id" not in own and "method" in parsed:
        described_as.setdefault("session", "assumed")
    return described(described_as)


async def told(settings: Settings, request: Described) -> Json:
    """The explanation of a process with this configuration that has just been started."""
    gateway = Gateway(settings.model_copy(update={"store": None}))
    try:
        return await gateway.explain(request)
    finally:
        await gateway.stop()


def run(settings: Settings, request: Described) -> Json:
    return asyncio.run(told(settings, request))


def _message(method: str, name: str | None, era: str) -> str:
    params: Json = {NAMED_BY[method]: name} if name is not None and method in NAMED_BY else {}
    if method == "tools/call":
        params["arguments"] = {}
    if method == "initialize":
        params = {"protocolVersion": LATEST_LEGACY, "capabilities": {}, "clientInfo": _INFO}
    elif era == "modern":
        params["_meta"] = {META_VERSION: LATEST_MODERN, META_CLIENT_INFO: _INFO, META_CLIENT_CAPABILITIES: {}}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})


def _parsed(body: str) -> Json:
    """The message, as far as headers can be told from it; what is none is for the ladder to refuse."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _mirrored(message: Json, era: str | None) -> dict[str, str]:
    """What a client of 2026-07-28 repeats in headers; nothing for an earlier one."""
    params, method = message.get("params"), message.get("method")
    params = params if isinstance(params, dict) else {}
    meta = params.get("_meta")
    is_modern = era == "modern" or (era is None and isinstance(meta, dict) and META_VERSION in meta)
    if not is_modern or not isinstance(method, str):
        return {HEADER_VERSION: LATEST_LEGACY} if method != "initialize" else {}
    try:
        built = headers.build(method, params, LATEST_MODERN)
    except ValueError:
        return {}
    return {key: built[key] for key in (HEADER_VERSION, HEADER_METHOD, HEADER_NAME) if key in built}
