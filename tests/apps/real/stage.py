"""The sample servers, directly and through the gateway, asked by a raw client of either era."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from tests.apps.real.servers import SAMPLES, settled, with_document
from tests.raw_front import Answer, Front, Session
from tests.scripted import Json

UI = "io.modelcontextprotocol/ui"
MIME = "text/html;profile=mcp-app"
APPS: Json = {"extensions": {UI: {"mimeTypes": [MIME]}}}
ASKS: Json = {"elicitation": {"form": {}, "url": {}}}
NO_VIEW = "ui://no/such/view.html"
LISTS = {"tools/list": "tools", "resources/list": "resources", "resources/templates/list": "resourceTemplates"}


class Ask(Protocol):
    """Sends one request and gives the answer to it."""

    async def __call__(self, method: str, params: Json | None = None) -> Answer: ...


@dataclass(frozen=True, slots=True)
class Stage:
    """`direct`: the servers' own URLs by name; `path`: of the PDF server's document."""

    direct: dict[str, str]
    path: str
    _sessions: dict[tuple[str, str, str], Session] = field(default_factory=dict)
    _wanted: dict[str, dict[str, Json]] = field(default_factory=dict)

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
            key = (url, era, repr(capabilities))
            if key not in self._sessions:
                self._sessions[key] = await front.initialize(capabilities=capabilities)
            return self._sessions[key].request

        async def ask(method: str, params: Json | None = None) -> Answer:
            return await front.modern(method, params, capabilities=capabilities)

        return ask

    async def own(self, name: str, method: str, params: Json, capabilities: Json | None = None) -> Json:
        """The server's own answer, without the gateway, to a client of its era."""
        ask = await self.speaker(self.direct[name], SAMPLES[name].era, capabilities or {})
        return outcome(await ask(method, params))


def outcome(answer: Answer) -> Json:
    """What a response says, without its envelope."""
    return {key: answer.final[key] for key in ("result", "error") if key in answer.final}


def text_of(result: Json) -> bytes:
    """The one body of a read resource, as it stands in its message."""
    [content] = result["contents"]
    body: Any = content.get("text", content.get("blob"))
    assert isinstance(body, str)
    return body.encode()


__all__ = ["APPS", "ASKS", "LISTS", "MIME", "NO_VIEW", "UI", "Ask", "Stage", "outcome", "settled", "text_of"]
