"""Holds an application of the official SDK, which speaks both eras, to one of them, and notes what it sees.

The SDK (mcp 2.3) has no switch for this. It chooses the era of a request by its `MCP-Protocol-Version` header alone, so
answering the other era's requests here, as one-era servers in the field do, leaves a true server of one era:

    sessions only    a version it does not know: 400, -32600 (as the SDK 1.x answers)
    2026-07-28 only  any other version or none: 400, -32022 with the versions it has (2026-07-28 basic/versioning)

`GET /seen` is no part of MCP: it tells what came in since it was last asked.
"""

import json
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from mcp_types import UNSUPPORTED_PROTOCOL_VERSION
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SEEN_PATH: Final = "/seen"


@dataclass(frozen=True, slots=True)
class Seen:
    """One request: its JSON-RPC method (or the HTTP one where there is no message), the revision, and whether it was in
    a session."""

    what: str
    version: str | None
    in_session: bool


class OneEra:
    """An ASGI application: `inner` held to `era`."""

    def __init__(self, inner: ASGIApp, era: Literal["sessions", "stateless"]) -> None:
        self._inner = inner
        self._era = era
        self._seen: list[Seen] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        if scope["path"] == SEEN_PATH:
            seen, self._seen = self._seen, []
            await JSONResponse([asdict(entry) for entry in seen])(scope, receive, send)
            return
        body = await _whole(receive)
        message = _message(body)
        headers = Headers(scope=scope)
        version = headers.get("mcp-protocol-version")
        asked = version or _asked_version(message)
        self._seen.append(Seen(message.get("method") or scope["method"], asked, "mcp-session-id" in headers))
        refusal = self._refusal(version, asked, message.get("id"))
        await (refusal or self._inner)(scope, _replay(body, receive), send)

    def _refusal(self, version: str | None, asked: str | None, request_id: Any) -> JSONResponse | None:
        if self._era == "sessions":
            if version is None or version in HANDSHAKE_PROTOCOL_VERSIONS:
                return None
            known = ", ".join(HANDSHAKE_PROTOCOL_VERSIONS)
            text = f"Bad Request: Unsupported protocol version: {version}. Supported versions: {known}"
            return _error("server-error", {"code": -32600, "message": text})
        if version in MODERN_PROTOCOL_VERSIONS:
            return None
        data = {"supported": list(MODERN_PROTOCOL_VERSIONS), "requested": asked or ""}
        text = f"Unsupported protocol version: {asked or 'none'}"
        return _error(request_id, {"code": UNSUPPORTED_PROTOCOL_VERSION, "message": text, "data": data})


def _error(request_id: Any, error: dict[str, Any]) -> JSONResponse:
    return JSONResponse({"jsonrpc": "2.0", "id": request_id, "error": error}, status_code=400)


async def _whole(receive: Receive) -> bytes:
    body = b""
    while True:
        message = await receive()
        body += bytes(message.get("body", b""))
        if not message.get("more_body"):
            return body


def _replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives the body, which has been read already, once more, and then what comes after it."""
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed() -> Message:
        return pending.pop() if pending else await receive()

    return replayed


def _message(body: bytes) -> dict[str, Any]:
    try:
        message = json.loads(body)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}


def _asked_version(message: dict[str, Any]) -> str | None:
    """The revision that `initialize` asks for."""
    params = message.get("params")
    asked = params.get("protocolVersion") if isinstance(params, dict) else None
    return asked if isinstance(asked, str) else None
