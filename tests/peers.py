"""Scripted upstreams of either era: what the era demands and no more, every answer open to a test's own script.

How to script them: `tests/scripted.py`.
"""

import asyncio
import json

from tests.http_wire import DEADLINE_S
from tests.scripted import Answer, Call, Err, Json, Seen, Upstream, response

PREFIX = "io.modelcontextprotocol/"
MODERN = "2026-07-28"
LEGACY = "2025-11-25"
LISTEN = "subscriptions/listen"
SERVER_INFO = {"name": "scripted", "version": "1.0", "title": "Scripted peer"}


def text(value: str) -> Json:
    """A tool result of one text block."""
    return {"content": [{"type": "text", "text": value}]}


async def echo(call: Call) -> Json:
    """The default tool: says the name and the arguments it was called with."""
    params = call.seen.params
    return text(json.dumps({"name": params.get("name"), "arguments": params.get("arguments")}))


async def _read(call: Call) -> Json:
    return {"contents": [{"uri": call.seen.params.get("uri"), "text": "the note"}]}


TOOL = {"name": "echo", "description": "Says what it was asked.", "inputSchema": {"type": "object"}}
DEFAULTS: dict[str, Answer] = {
    "tools/list": {"tools": [TOOL]},
    "tools/call": echo,
    "resources/list": {"resources": [{"uri": "note://one", "name": "one"}]},
    "resources/templates/list": {"resourceTemplates": [{"uriTemplate": "note://{id}", "name": "note"}]},
    "resources/read": _read,
    "prompts/list": {"prompts": [{"name": "hello"}]},
    "prompts/get": {"messages": [{"role": "user", "content": {"type": "text", "text": "hello"}}]},
    "completion/complete": {"completion": {"values": ["one", "two"]}},
}
LEGACY_DEFAULTS: dict[str, Answer] = {"ping": {}, "logging/setLevel": {}, "resources/subscribe": {}}
CAPABILITIES = {"tools": {}, "resources": {}, "prompts": {}, "completions": {}, "logging": {}}


class LegacyUpstream(Upstream):
    """2025-11-25 and earlier: `initialize`, sessions unless `sessions=False`, 202, DELETE, an optional GET stream.

    A request without a session is refused as the official Python SDK refuses it, the modern probe among them.
    """

    unknown = Err(-32601, "Method not found")  # with 200: 404 would say that the session is gone

    def __init__(
        self,
        *,
        version: str = LEGACY,
        sessions: bool = True,
        get_stream: bool = False,
        capabilities: Json | None = None,
        instructions: str | None = None,
    ) -> None:
        super().__init__()
        self.version = version
        self.sessions = sessions
        self.get_stream = get_stream
        self.capabilities = CAPABILITIES if capabilities is None else capabilities
        self.instructions = instructions
        self.live: set[str] = set()
        self.opened: dict[str, Seen] = {}
        """The `initialize` that opened each session, ended ones too."""
        self.streams: dict[str | None, Call] = {}

    async def serve(self, call: Call) -> None:
        seen = call.seen
        if seen.method == "initialize":
            await self.dispatch(call, {"initialize": self._initialize})
        elif self.sessions and seen.session not in self.live:
            status, code = (400, -32600) if seen.session is None else (404, -32001)
            await call.json(response("server-error", Err(code, "Session not found")), status)
        elif seen.verb == "GET":
            await self._get(call)
        elif seen.verb == "DELETE":
            self.live.discard(seen.session or "")
            await call.reply(200)
        else:
            await self._post(call)

    async def _initialize(self, call: Call) -> None:
        result: Json = {"protocolVersion": self.version, "capabilities": self.capabilities, "serverInfo": SERVER_INFO}
        if self.instructions is not None:
            result["instructions"] = self.instructions
        headers = []
        if self.sessions:
            session = f"up-{id(self):x}-{next(self.numbers)}"
            self.live.add(session)
            self.opened[session] = call.seen
            headers.append(("Mcp-Session-Id", session))
        await call.json(response(call.seen.id, result), headers=headers)

    async def _get(self, call: Call) -> None:
        if not self.get_stream:
            await call.reply(405, headers=[("Allow", "POST, DELETE")])
            return
        await call.stream()
        self.streams[call.seen.session] = call
        async with self._arrived:
            self._arrived.notify_all()
        await call.stay()
        if self.streams.get(call.seen.session) is call:  # and not one that came after it
            del self.streams[call.seen.session]

    async def _post(self, call: Call) -> None:
        message = call.seen.message
        if not isinstance(message, dict):
            await call.reply(400)
        elif "method" not in message:
            self.replies.append(call.seen)
            waiting = self._waiting.pop(message.get("id"), None)
            await call.reply(202)
            if waiting is not None and not waiting.done():
                waiting.set_result(message)
            async with self._arrived:
                self._arrived.notify_all()
        elif "id" not in message:
            answer = self.on.get(call.seen.method or "")
            if callable(answer):
                await answer(call)
            else:
                await call.reply(202)
        else:
            await self.dispatch(call, DEFAULTS | LEGACY_DEFAULTS)

    async def push(self, message: Json, session: str | None = None) -> None:
        """Writes a message to the GET stream of `session`, or to every open one, once there is one."""
        wanted = await self.when(lambda: [c for s, c in self.streams.items() if session in (s, None)])
        for stream in wanted:
            await stream.event(message)

    async def ask(self, method: str, params: Json, *, session: str | None = None) -> Json:
        """Sends a request of ours on a GET stream and returns the client's response."""
        ident = f"ask-{next(self.numbers)}"
        waiting = self.expect_reply(ident)
        await self.push({"jsonrpc": "2.0", "id": ident, "method": method, "params": params}, session)
        async with asyncio.timeout(DEADLINE_S):
            return await waiting


class ModernUpstream(Upstream):
    """2026-07-28 only: no session, no GET; results get their `resultType` unless the script gave one."""

    def __init__(self, *, capabilities: Json | None = None, instructions: str | None = None) -> None:
        super().__init__()
        self.capabilities = CAPABILITIES if capabilities is None else capabilities
        self.instructions = instructions
        self.listeners: list[Call] = []

    async def serve(self, call: Call) -> None:
        if call.seen.verb != "POST":
            await call.reply(405, headers=[("Allow", "POST")])
        elif not isinstance(call.seen.message, dict) or "id" not in call.seen.message:
            await call.reply(202)
        else:
            await self.dispatch(call, DEFAULTS | {"server/discover": self._discover, LISTEN: self._listen})

    async def _discover(self, call: Call) -> Json:
        result: Json = {
            "resultType": "complete",
            "supportedVersions": [MODERN],
            "capabilities": self.capabilities,
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": {PREFIX + "serverInfo": SERVER_INFO},
        }
        if self.instructions is not None:
            result["instructions"] = self.instructions
        return result

    async def _listen(self, call: Call) -> None:
        agreed = {"notifications": call.seen.params.get("notifications", {})}
        await call.notify("notifications/subscriptions/acknowledged", agreed | subscribed(call))
        self.listeners.append(call)
        async with self._arrived:
            self._arrived.notify_all()
        await call.stay()
        self.listeners.remove(call)
        async with self._arrived:
            self._arrived.notify_all()

    async def push(self, method: str, params: Json) -> None:
        """Tells everybody who listens, once somebody does."""
        for call in await self.when(lambda: list(self.listeners)):
            await call.notify(method, params | subscribed(call))

    async def dispatch(self, call: Call, defaults: dict[str, Answer]) -> None:
        method = call.seen.method or ""
        answer = self.on.get(method, defaults.get(method, self.unknown))
        outcome = await answer(call) if callable(answer) else answer
        if outcome is None:
            return
        if isinstance(outcome, dict):
            outcome = complete(method, outcome)
        await call.answer(outcome)


def subscribed(call: Call) -> Json:
    return {"_meta": {PREFIX + "subscriptionId": call.seen.id}}


def complete(method: str, result: Json) -> Json:
    """The members that 2026-07-28 demands of every result, where the script left them out."""
    members: Json = {"resultType": "complete"}
    if method.endswith("/list") or method == "resources/read":
        members |= {"ttlMs": 0, "cacheScope": "private"}
    meta = {PREFIX + "serverInfo": SERVER_INFO} | result.get("_meta", {})
    return members | result | {"_meta": meta}
