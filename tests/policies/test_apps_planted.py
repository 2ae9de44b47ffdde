"""Whatever a server says: no mark that was planted where an interface stands is in what its host gets, and every mark
that was planted elsewhere is. What plants marks and what looks for them knows nothing of the code under test.
"""

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies import apps, sse
from policies.delivery import Addressee, deliver
from policies.exchange import Answer, Ask, Dialect, Event, Notify
from policies.mcp import Json

UI_MIMES = (
    "text/html;profile=mcp-app",
    "Text/Html ; charset=utf-8; Profile=MCP-App",
    'text/html;profile="mcp-app"',
    "text/html+skybridge",
    "application/vnd.mcp-ui.remote-dom+javascript; framework=react",
)
PLAIN_MIMES = ("text/html", "text/html;charset=utf-8", "text/plain", "image/svg+xml", "application/json")
UI_SCHEMES = ("ui://", "UI://", "uI:/", "ui:", " ui://", "\tui://")
PLAIN_SCHEMES = ("https://a/ui://", "file:///ui/", "gui://", "ui.x:", "data:ui:")
MODERN, LEGACY = Dialect("modern", "2026-07-28"), Dialect("legacy", "2025-11-25")


class Planting:
    """Makes parts of messages, and plants a mark at each place of each. `shown`: whether the host gets what the part
    belongs to."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.drops: list[str] = []
        self.keeps: list[str] = []

    def mark(self, shown: bool) -> str:
        marks, name = (self.keeps, "KEEP") if shown else (self.drops, "DROP")
        marks.append(f"{name}{len(marks)}.")
        return marks[-1]

    def keep(self) -> str:
        return self.mark(True)

    def drop(self) -> str:
        return self.mark(False)

    def one(self, *of: Any) -> Any:
        return self.chance.choice(of)

    def some(self, *makers: Any) -> list[Any]:
        return [self.one(*makers)() for _ in range(self.chance.randint(0, 3))]

    def meta(self, shown: bool = True, *, of_tool: bool = False) -> Json:
        """The `_meta` of something, or none."""
        members: list[Json] = [
            {"ui": {"resourceUri": f"ui://{self.drop()}", "csp": {"connectDomains": [self.drop()]}}},
            {"ui/resourceUri": f"ui://{self.drop()}"},
            {"ui/anything": {"deep": [{"er": self.drop()}]}},
            {"openai/outputTemplate": self.drop()},
            {"mcpui.dev/ui-preferred-frame-size": self.drop()},
            {"modernjs.dev/mcp-app": self.drop()},
            self.one({"resourceUri": f"Ui://{self.drop()}"}, {"resourceUri": f"https://{self.mark(shown)}"}),
            {"vendor.example/ui": {"_meta": {"ui": self.mark(shown)}}},
            {"traceparent": self.mark(shown)},
            {"io.modelcontextprotocol/x": {"name": self.mark(shown)}},
            {"UI": self.mark(shown)},
            {"openai" + self.mark(shown): 1},
        ]
        if not of_tool:  # it would say that the tool is hidden
            members.append({"visibility": [self.mark(shown)]})
        meta: Json = {}
        for member in members:
            meta |= self.one({}, member)
        return {"_meta": meta} if meta else {}

    def extra(self, shown: bool = True) -> Json:
        return self.one({}, {"x": {"unknown": [self.mark(shown)], "n": 2**53 + 1}})

    # content

    def ui_resource(self) -> Json:
        uri, mime = self.one(
            (self.one(*UI_SCHEMES), {}),
            (self.one(*UI_SCHEMES), {"mimeType": self.one(*PLAIN_MIMES)}),
            (self.one(*PLAIN_SCHEMES), {"mimeType": self.one(*UI_MIMES)}),
        )
        body = {self.one("text", "blob"): self.drop()}
        return {"uri": uri + self.drop(), **mime, **body, **self.meta(False), **self.extra(False)}

    def plain_resource(self) -> Json:
        uri, mime = self.one(*PLAIN_SCHEMES) + self.keep(), self.one({}, {"mimeType": self.one(*PLAIN_MIMES)})
        return {"uri": uri, **mime, "text": self.keep(), **self.meta(), **self.extra()}

    def block(self, depth: int = 0) -> Json:
        text = self.one("", "ui://", '{"_meta":{"ui":', "text/html;profile=mcp-app ", "\u00e9\u4e2d\U0001f600\n")
        makers = [
            lambda: {"type": "text", "text": text + self.keep(), **self.meta(), **self.extra()},
            lambda: {"type": self.one("image", "audio"), "data": self.keep(), "mimeType": "x/y", **self.meta()},
            lambda: {"type": "resource", "resource": self.plain_resource(), **self.meta(), **self.extra()},
            lambda: {"type": "resource_link", "name": self.keep(), **self.plain_resource()},
            lambda: {"type": "resource", "resource": self.ui_resource(), **self.meta(False), **self.extra(False)},
            lambda: {"type": "resource_link", "name": self.drop(), **self.ui_resource()},
            lambda: {"type": "tool_use", "name": self.keep(), "input": {"uri": f"ui://{self.keep()}"}, **self.meta()},
            lambda: {"type": "later", "uri": f"file:///{self.keep()}", **self.meta(), **self.extra()},
        ]
        if depth < 4:
            makers += [lambda: {"type": "tool_result", "toolUseId": self.keep(), **self.call_result(depth + 1)}] * 2
        made: Json = self.one(*makers)()
        return made

    def call_result(self, depth: int = 0) -> Json:
        structured = {"_meta": {"ui": self.keep()}, "uri": f"ui://{self.keep()}", "tools": [self.keep()]}
        return {
            "content": self.some(lambda: self.block(depth)),
            **self.one({}, {"structuredContent": structured}),
            **self.one({}, {"isError": True}),
            **self.meta(),
            **self.extra(),
        }

    def message(self) -> Json:
        content = self.one(self.block, lambda: self.some(self.block))()
        return {"role": "user", "content": content, **self.meta(), **self.extra()}

    # entries of lists

    def tool(self) -> Json:
        schema = {"type": "object", "properties": {"ui": {"description": f"ui://{self.keep()}"}}}
        return {"name": self.keep(), "inputSchema": schema, **self.meta(of_tool=True), **self.extra()}

    def app_tool(self) -> Json:
        hidden = self.one(["app"], ["app", "app"], [], "app", ["other"])
        visible = {"ui/visibility": ["model", "app"]}
        meta = self.one({"ui": {"visibility": hidden}, **self.one({}, visible)}, {"ui/visibility": hidden})
        schema = {"type": "object", "description": self.drop()}
        meta = {**meta, "vendor": self.drop()}
        return {"name": self.drop(), "inputSchema": schema, "_meta": meta, **self.extra(False)}

    def template(self) -> Json:
        resource: Json = self.one(self.plain_resource, self.ui_resource)()
        return {"uriTemplate": resource.pop("uri") + "{x}", **resource}

    def ask(self) -> Json:
        made: Json = self.one(
            lambda: {
                "method": "sampling/createMessage",
                "params": {
                    "messages": self.some(self.message),
                    "tools": self.some(self.tool, self.app_tool),
                    **self.meta(),
                },
            },
            lambda: {"method": "elicitation/create", "params": {"message": self.keep(), **self.meta(), **self.extra()}},
            lambda: {"method": "roots/list", "params": {**self.meta()}},
        )()
        return made

    # whole ones

    def result(self, method: str) -> Json:
        """The result of a request of this method."""
        top = {**self.meta(), **self.extra()}
        page = {**top, **self.one({}, {"nextCursor": self.keep()})}
        makers: dict[str, Any] = {
            "tools/list": lambda: {"tools": self.some(self.tool, self.app_tool), **page},
            "resources/list": lambda: {"resources": self.some(self.plain_resource, self.ui_resource), **page},
            "resources/templates/list": lambda: {"resourceTemplates": self.some(self.template), **page},
            "resources/read": lambda: {
                "contents": [self.plain_resource(), *self.some(self.plain_resource, self.ui_resource)],
                **top,
            },
            "prompts/get": lambda: {"messages": self.some(self.message), "description": self.keep(), **top},
            "prompts/list": lambda: {"prompts": self.some(lambda: {"name": self.keep(), **self.meta()}), **page},
            "completion/complete": lambda: {
                "completion": {
                    "values": self.some(lambda: "ui://" + self.drop(), lambda: "a:" + self.keep()),
                    "total": 9,
                },
                **top,
            },
            "tasks/get": lambda: {
                "taskId": self.keep(),
                **self.one({"result": self.call_result()}, {"inputRequests": {self.keep(): self.ask()}}),
                **top,
            },
            "tasks/result": self.call_result,
            "tools/call": self.one(self.call_result, self.input_required),
        }
        made: Json = makers[method]()
        return made

    def input_required(self) -> Json:
        asks = {self.keep(): self.ask() for _ in range(self.chance.randint(1, 3))}
        return {
            "resultType": "input_required",
            "inputRequests": asks,
            "requestState": f"ui://{self.keep()}",
            **self.meta(),
        }

    def notification(self) -> tuple[str, Json]:
        made: tuple[str, Json] = self.one(
            lambda: ("notifications/tasks", self.result("tasks/get")),
            lambda: ("notifications/message", {"data": {"_meta": {"ui": self.keep()}}, "level": "info", **self.meta()}),
            lambda: ("notifications/resources/updated", {"uri": f"file:///{self.keep()}", **self.meta()}),
            lambda: ("notifications/resources/updated", {"uri": f"UI://{self.drop()}", **self.meta(False)}),
        )()
        return made


METHODS = ["tools/list", "resources/list", "resources/templates/list", "resources/read", "prompts/get", "prompts/list"]
METHODS += ["completion/complete", "tasks/get", "tasks/result", "tools/call"]


# encoding, framing, and what is found again


def written(value: Any, chance: random.Random) -> str:
    """JSON with blanks and escapes wherever they may stand."""
    blank = chance.choice(["", "", " ", "\n", "\t "])
    if isinstance(value, dict):
        members = (f"{blank}{written(k, chance)}{blank}:{blank}{written(v, chance)}" for k, v in value.items())
        return "{" + ",".join(members) + blank + "}"
    if isinstance(value, list):
        return "[" + f",{blank}".join(written(one, chance) for one in value) + blank + "]"
    if isinstance(value, str):
        share = chance.choice([0.0, 0.0, 0.1, 1.0])
        return '"' + "".join(spelled(char, chance.random() < share, chance) for char in value) + '"'
    return json.dumps(value)


def spelled(char: str, escaped: bool, chance: random.Random) -> str:
    if char == "/" and chance.random() < 0.3:
        return "\\/"
    if not escaped:
        return char if char.isprintable() and char not in '"\\' else json.dumps(char)[1:-1]
    units = char.encode("utf-16-be").hex()
    pairs = [units[at : at + 4] for at in range(0, len(units), 4)]
    return "".join("\\u" + (pair.upper() if chance.random() < 0.5 else pair) for pair in pairs)


def framed(raw: bytes, chance: random.Random) -> bytes:
    """What is read from an event stream after it was written there, a line of the text in a line of the event."""
    lines = b"".join(b"data: " + line + chance.choice([b"\n", b"\r\n"]) for line in raw.split(b"\n"))
    (event,) = sse.Decoder(1 << 20).feed(lines + b"\n")
    assert event.data is not None
    return event.data


def strings(value: Any) -> str:
    """Every key and every string, decoded."""
    if isinstance(value, dict):
        return "\0".join(f"{key}\0{strings(member)}" for key, member in value.items())
    if isinstance(value, list):
        return "\0".join(map(strings, value))
    return value if isinstance(value, str) else json.dumps(value)


def judge(planted: Planting, before: Json, after: bytes | None) -> None:
    asked, said = strings(before), "" if after is None else strings(json.loads(after))
    assert [mark for mark in planted.drops if mark in said] == []
    assert [mark for mark in planted.keeps if mark in asked and mark not in said] == []


CHANCES = st.randoms(use_true_random=True)  # from a seed: each choice drawn on its own is too much for large trees


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=40, deadline=None)
@given(chance=CHANCES)
def test_answers_that_are_passed_on_lose_every_interface_and_nothing_else(method: str, chance: random.Random) -> None:
    planted = Planting(chance)
    message = {"jsonrpc": "2.0", "id": 1, "result": planted.result(method)}
    raw = written(message, chance).encode()
    judge(planted, message, apps.strip_message(chance.choice([raw, framed(raw, chance)]), method))


@settings(max_examples=60, deadline=None)
@given(chance=CHANCES)
def test_so_do_notifications(chance: random.Random) -> None:
    planted = Planting(chance)
    method, params = planted.notification()
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    raw = written(message, chance).encode()
    judge(planted, message, apps.strip_message(chance.choice([raw, framed(raw, chance)]), "tools/call"))


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=30, deadline=None)
@given(chance=CHANCES, eras=st.sampled_from([(MODERN, MODERN), (LEGACY, LEGACY), (LEGACY, MODERN), (MODERN, LEGACY)]))
def test_so_do_answers_that_are_delivered(method: str, chance: random.Random, eras: tuple[Dialect, Dialect]) -> None:
    there, here = eras
    planted = Planting(chance)
    result = planted.result(method)
    while here is LEGACY and "resultType" in result:  # a session has no form for it
        planted = Planting(chance)
        result = planted.result(method)
    if there is LEGACY and method == "tools/list":
        for tool in result["tools"]:
            tool["execution"] = {"taskSupport": "optional"}
    delivered(planted, {"result": result}, Answer(result, there), Addressee(here, 1, method, {}))


@settings(max_examples=50, deadline=None)
@given(chance=CHANCES, dialect=st.sampled_from([MODERN, LEGACY]))
def test_so_do_questions_and_notifications_that_are_delivered(chance: random.Random, dialect: Dialect) -> None:
    to = Addressee(dialect, 1, "tools/call", {})
    planted = Planting(chance)
    asked = planted.ask()
    delivered(planted, asked, Ask("k", asked["method"], asked["params"], dialect), to)
    planted = Planting(chance)
    method, params = planted.notification()
    delivered(planted, params, Notify(method, params, dialect), to)


def delivered(planted: Planting, said: Json, event: Event, to: Addressee) -> None:
    message = deliver(event, to)
    judge(planted, said, None if message is None else message.raw)


@settings(max_examples=50, deadline=None)
@given(chance=CHANCES, method=st.sampled_from(METHODS))
def test_a_host_that_shows_apps_gets_every_mark(chance: random.Random, method: str) -> None:
    planted = Planting(chance)
    result = planted.result(method)
    message = deliver(Answer(result, MODERN), Addressee(MODERN, 1, method, {}, shows_apps=True))
    assert message is not None
    assert json.loads(message.raw)["result"] == result
