"""The sample servers, directly and through one gateway, asked by a raw client of either era."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from tests.apps.real.servers import SAMPLES, with_document
from tests.gateway_process import GatewayProcess
from tests.matrix.edits import SERVER_INFO, Call, edited
from tests.raw_front import Answer, Front, Session
from tests.scripted import Json

UI = "io.modelcontextprotocol/ui"
MIME = "text/html;profile=mcp-app"
APPS: Json = {"extensions": {UI: {"mimeTypes": [MIME]}}}
ASKS: Json = {"elicitation": {"form": {}, "url": {}}}
ALL: Json = {**ASKS, **APPS}
LISTS = ("tools/list", "resources/list", "resources/templates/list")


@dataclass(frozen=True, slots=True)
class Host:
    """A client that declares these capabilities at the route of this ceiling. `effective`: what of them is left."""

    ceiling: str | None
    declares: Json
    effective: Json

    @property
    def shows_apps(self) -> bool:
        return "extensions" in self.effective


CORE, INTERACTIVE, DESKTOP = "core-v1", "interactive-v1", "desktop-apps-2026-01-26-v1"
HOSTS = {
    "core": Host(None, {}, {}),
    "core-by-ceiling": Host(CORE, ALL, {}),
    "interactive": Host(None, ASKS, ASKS),
    "interactive-by-ceiling": Host(INTERACTIVE, ALL, ASKS),
    "desktop": Host(None, ALL, ALL),
    "desktop-by-ceiling": Host(DESKTOP, ALL, ALL),
}
"""By what they are called here: each profile once by what the host declares, once by what its route allows."""
CEILINGS = (None, CORE, INTERACTIVE, DESKTOP)


def path_of(name: str, ceiling: str | None) -> str:
    return f"/{name}" if ceiling is None else f"/{name}/{ceiling}"


def routes() -> list[Json]:
    """One route to each server for each ceiling, and one without; `/<name>/advertised` says that it has Apps."""
    found: list[Json] = []
    for name in SAMPLES:
        for ceiling in CEILINGS:
            profile = {"profile": ceiling} if ceiling else {}
            found.append({"path": path_of(name, ceiling), "upstream": name, **profile})
        found.append({"path": f"/{name}/advertised", "upstream": name, "apps": "advertise"})
    return found + [{"path": f"/{name}", "upstream": name} for name in as_children()]


CHILDREN = ("basic-react", "system-monitor", "budget-allocator")
"""Published servers that are run as the gateway's children too."""


def as_children() -> dict[str, Json]:
    """Their upstreams: `<name>-stdio`."""
    commands = {name: SAMPLES[name].command for name in CHILDREN}
    return {f"{name}-stdio": {"command": run, "args": [*rest, "--stdio"]} for name, (run, *rest) in commands.items()}


class Ask(Protocol):
    """Sends one request and gives the answer to it."""

    async def __call__(self, method: str, params: Json | None = None) -> Answer: ...


@dataclass(frozen=True, slots=True)
class Stage:
    """`direct`: the servers' own URLs by name; `path`: of the PDF server's document."""

    direct: dict[str, str]
    path: str
    gateway: GatewayProcess
    _sessions: dict[str, Session] = field(default_factory=dict)
    _own: dict[str, Json] = field(default_factory=dict)

    def questions(self, name: str) -> Iterator[tuple[str, Json]]:
        """Every request whose answers are compared: lists, reads of views and of what is none, calls of all tools."""
        sample = SAMPLES[name]
        yield from ((method, {}) for method in LISTS)
        yield from (("resources/read", {"uri": uri}) for uri in sample.views)
        for tool, arguments in {**sample.calls, **sample.hidden}.items():
            yield "tools/call", {"name": tool, "arguments": with_document(arguments, self.path)}
        if name.startswith("chart"):
            yield "resources/read", {"uri": "note://one"}
            yield "prompts/list", {}
            yield "prompts/get", {"name": "show"}

    async def speaker(self, url: str, era: str, capabilities: Json) -> Ask:
        """A client of that era with these capabilities; its session is opened once."""
        front = Front(url)
        if era == "legacy":
            key = json.dumps([url, capabilities])
            if key not in self._sessions:
                self._sessions[key] = await front.initialize(capabilities=capabilities)
            return self._sessions[key].request

        async def ask(method: str, params: Json | None = None) -> Answer:
            return await front.modern(method, params, capabilities=capabilities)

        return ask

    async def through(self, name: str, host: Host, era: str) -> Ask:
        """A host of that era before a server, at the gateway."""
        return await self.speaker(self.gateway.url + path_of(name, host.ceiling), era, host.declares)

    async def through_child(self, name: str, host: Host, era: str) -> Ask:
        """A host of that era before a server that is the gateway's child."""
        return await self.speaker(f"{self.gateway.url}/{name}-stdio", era, host.declares)

    async def own(
        self, name: str, method: str, params: Json, capabilities: Json | None = None, era: str | None = None
    ) -> Json:
        """The server's own answer, without the gateway, in its newer era or the given one. Asked once."""
        era = era or SAMPLES[name].eras[0]
        key = json.dumps([name, method, params, capabilities or {}, era])
        if key not in self._own:
            ask = await self.speaker(self.direct[name], era, capabilities or {})
            self._own[key] = outcome(await ask(method, params))
        return self._own[key]

    async def translated(self, name: str, method: str, params: Json, capabilities: Json, era: str) -> Json:
        """The server's own answer as it must come to a client of `era`, but for what is about Apps. A server of both
        eras is spoken to in the newer one."""
        upstream = SAMPLES[name].eras[0]
        answer = await self.own(name, method, params, capabilities)
        return edited(answer, Call(method, params, await self._server_info(name)), (upstream, era))

    async def hidden(self, name: str) -> set[str]:
        """The tools that the server has for its views alone."""
        tools = (await self.own(name, "tools/list", {}))["result"]["tools"]
        return {tool["name"] for tool in tools if tool.get("_meta", {}).get("ui", {}).get("visibility") == ["app"]}

    async def _server_info(self, name: str) -> Json:
        front, era = Front(self.direct[name]), SAMPLES[name].eras[0]
        if era == "legacy":
            await self.speaker(self.direct[name], era, {})
            return self._sessions[json.dumps([self.direct[name], {}])].result["serverInfo"]
        found: Json = (await front.modern("server/discover")).result["_meta"][SERVER_INFO]
        return found


def outcome(answer: Answer) -> Json:
    """What a response says, without its envelope."""
    return {key: answer.final[key] for key in ("result", "error") if key in answer.final}


def body_of(result: Json) -> bytes:
    """The one body of a read resource, as it stands in its message."""
    [content] = result["contents"]
    body: Any = content.get("text", content.get("blob"))
    assert isinstance(body, str)
    return body.encode()
