"""Whatever tools answer, however it is wrapped, nested and broken: no mark that was planted where an interface stands
is in what a provider gets, and every mark that was planted elsewhere is. What plants marks and what looks for them
knows nothing of the code under test.
"""

import json
import random
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from policies import provider
from policies.mcp import Json
from tests.policies.conversations import APIS, Api

UI_MIMES = (
    "text/html;profile=mcp-app",
    "Text/Html ; charset=utf-8; Profile=MCP-App",
    'text/html;profile="mcp-app"',
    "text/html+skybridge",
    "application/vnd.mcp-ui.remote-dom+javascript; framework=react",
)
PLAIN_MIMES = ("text/html", "text/html;charset=utf-8", "text/plain", "image/svg+xml", "application/json")
UI_SCHEMES = ("ui://", "UI://", "uI:/", "ui:", " ui://", "\tui://", "u\ni://")
PLAIN_SCHEMES = ("https://a/ui://", "file:///ui/", "gui://", "ui.x:")
QUOTES = (
    "",
    "ui://",
    '{"_meta":{"ui":',
    "[",
    '"',
    "text/html;profile=mcp-app ",
    "\u00e9\u4e2d\U0001f600\n\\",
    "<html>",
)


class Planting:
    """Makes parts of results, and plants a mark at each place of each. `shown`: whether a provider gets what the part
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

    def meta(self) -> Json:
        """The `_meta` of something of MCP's, or none: none of it is a provider's business."""
        members = [
            {"ui": {"resourceUri": f"ui://{self.drop()}"}},
            {"ui/resourceUri": f"ui://{self.drop()}"},
            {"io.modelcontextprotocol/x": {"name": self.drop()}},
            {"traceparent": self.drop(), "viewUUID": self.drop()},
        ]
        return self.one({}, {"_meta": self.one(*members)})

    def presentation(self) -> Json:
        app = {"server": self.drop(), "resourceUri": f"ui://{self.drop()}", "rawResult": {"content": [self.drop()]}}
        return self.one({}, {}, {"mcp_app": app})

    # content

    def ui_resource(self) -> Json:
        uri, mime = self.one(
            (self.one(*UI_SCHEMES), {}),
            (self.one(*UI_SCHEMES), {"mimeType": self.one(*PLAIN_MIMES)}),
            (self.one(*PLAIN_SCHEMES), {"mimeType": self.one(*UI_MIMES)}),
        )
        return {"uri": uri + self.drop(), **mime, self.one("text", "blob"): self.drop(), **self.meta()}

    def plain_resource(self) -> Json:
        uri, mime = self.one(*PLAIN_SCHEMES) + self.keep(), self.one({}, {"mimeType": self.one(*PLAIN_MIMES)})
        return {"uri": uri, **mime, "text": self.keep(), **self.meta()}

    def block(self, depth: int) -> Json:
        def resource(inner: Json) -> Json:
            return {"type": "resource", "resource": inner, **self.meta()}

        return self.one(
            lambda: {"type": "text", "text": self.text(depth), **self.meta(), **self.presentation()},
            lambda: {"type": "image", "data": self.keep() + "A" * self.one(0, 5000), "mimeType": "image/png"},
            lambda: resource(self.plain_resource()),
            lambda: {"type": "resource_link", "name": self.keep(), **self.plain_resource()},
            lambda: resource(self.ui_resource()),
            lambda: {"type": "resource_link", "name": self.drop(), **self.ui_resource()},
            lambda: {"type": "audio", "data": self.drop(), "mimeType": "audio/wav", **self.meta()},
            lambda: resource({"uri": f"file:///{self.drop()}", "blob": self.drop() + "A" * 4096}),
        )()

    def text(self, depth: int) -> str:
        if depth < 4 and self.chance.random() < 0.3:
            return self.wrapped(depth)
        return str(self.one(*QUOTES)) + self.keep()

    def wrapped(self, depth: int) -> str:
        """A value as JSON in a string, in any of the forms that writers have for it."""
        return self.written(self.value(depth + 1))

    def written(self, value: Any) -> str:
        how = {"indent": self.one(None, None, 1, "\t"), "ensure_ascii": self.one(True, False)}
        text = json.dumps(value, separators=self.one(None, (",", ":"), (" ,", "  : ")), **how)
        if self.chance.random() < 0.2:
            text = text.replace("/", "\\/")
        if self.chance.random() < 0.2:
            letter = self.one(*"i_mop")  # of no literal
            text = text.replace(letter, f"\\u{ord(letter):04x}") if "\\" not in text else text
        return self.one("", " ", "\n") + text + self.one("", "\n")

    def result(self, depth: int) -> Json:
        return {
            "content": [self.block(depth) for _ in range(self.chance.randint(1, 3))],
            **self.one({}, {"structuredContent": self.document(depth)}),
            **self.one({}, {"isError": True}),
            **self.meta(),
            **self.presentation(),
        }

    def document(self, depth: int) -> Json:
        """A user's own data, in which there may be a result."""
        document: Json = {
            "_meta": {"ui": {"resourceUri": f"ui://{self.keep()}"}},
            "uri": f"ui://{self.keep()}",
            "data": self.keep() + "A" * self.one(0, 5000),
            "rows": [[self.keep(), 2**53 + 1], {"type": "video", "url": self.keep()}, 1.5, None],
        }
        if depth < 4:
            document |= self.one({}, {"result": self.value(depth + 1)}, {"said": self.text(depth + 1)})
        return document | self.presentation()

    def value(self, depth: int) -> Any:
        return self.one(
            lambda: self.result(depth),
            lambda: [self.block(depth) for _ in range(self.chance.randint(1, 3))],
            lambda: self.document(depth),
            lambda: {"jsonrpc": "2.0", "id": 1, "result": self.result(depth)},
        )()

    # conversations

    def answer(self, api: str) -> Any:
        """A result in a form that the API takes."""
        if api in ("gemini", "bedrock") and self.chance.random() < 0.5:
            return self.value(0) if api == "gemini" else [{"json": self.value(0)}, {"text": self.text(0)}]
        if api in ("anthropic", "chat") and self.chance.random() < 0.5:
            return [self.block(0) for _ in range(self.chance.randint(1, 3))]
        return APIS[api].text(self.one(self.text(0), self.wrapped(0)))

    def hidden(self, one: Api) -> Json:
        visibility = self.one(["app"], [], "app", ["other"])
        meta = self.one({"ui": {"visibility": visibility}}, {"ui/visibility": visibility})
        return {**one.tool("poll"), "_meta": {**meta, "vendor": self.drop()}}

    def body(self, api: str) -> Json:
        one = APIS[api]
        tools = [{**one.tool(f"look{self.keep()}"), **self.one({}, {"_meta": {"vendor": self.drop()}})}]
        calls = [(f"look{self.keep()}", self.answer(api)) for _ in range(self.chance.randint(1, 3))]
        if self.chance.random() < 0.5:
            tools.append(self.hidden(one))
            calls.append(("poll", one.text(self.drop())))
        return one.body(tools, calls)


def strings(value: Any) -> Iterator[str]:
    """All that a reader finds in a body: names and texts, those of JSON in texts too, every one of doubled members."""
    if isinstance(value, str):
        yield value
        if value.lstrip()[:1] in ("{", "[", '"'):
            try:
                yield from strings(json.loads(value, object_pairs_hook=list))
            except ValueError:
                return
    elif isinstance(value, list | tuple):
        for one in value:
            yield from strings(one)
    elif isinstance(value, dict):
        yield from strings(list(value.items()))


def pairs_of(api: str, body: Json) -> int:
    """How many calls have their result."""
    text = json.dumps(body)
    call, result = {
        "anthropic": ('"type": "tool_use"', '"type": "tool_result"'),
        "chat": ('"tool_calls"', '"role": "tool"'),
        "responses": ('"type": "function_call"', '"type": "function_call_output"'),
        "gemini": ('"functionCall":', '"functionResponse":'),
        "bedrock": ('"toolUse":', '"toolResult":'),
    }[api]
    assert text.count(call) == text.count(result)
    return text.count(call)


def sent(api: str, body: Json | bytes, *, has_ledger: bool = True) -> provider.Stripped:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    one = APIS[api]
    return provider.strip(provider.candidates(one.dialect, raw, one.path, has_ledger=has_ledger))


@settings(max_examples=400, deadline=None)
@given(st.integers(0, 2**64), st.sampled_from(list(APIS)), st.booleans())
def test_no_planted_mark_of_an_interface_arrives_and_every_other_does(seed: int, api: str, has_ledger: bool) -> None:
    planting = Planting(random.Random(seed))
    body = planting.body(api)
    before = "\0".join(strings(body))
    keeps = [mark for mark in planting.keeps if mark in before]
    done = sent(api, body, has_ledger=has_ledger)
    after = json.loads(done.body)
    seen = "\0".join(strings(after))
    assert not [mark for mark in planting.drops if mark in seen]
    assert not [mark for mark in keeps if mark not in seen]
    assert pairs_of(api, after) == pairs_of(api, body)
    assert sent(api, done.body, has_ledger=has_ledger).body is done.body, "there is nothing more to take out"
    assert bool(done.removed) == (done.body != json.dumps(body).encode())


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**64), st.sampled_from(list(APIS)))
def test_a_turn_becomes_the_same_wherever_it_stands(seed: int, api: str) -> None:
    one, planting = APIS[api], Planting(random.Random(seed))
    answers = [("look", planting.answer(api)) for _ in range(3)]
    alone = [json.loads(sent(api, one.body([], [answer])).body) for answer in answers]
    together = json.loads(sent(api, one.body([], answers)).body)
    turns = [next(turn[key] for key in ("messages", "input", "contents") if key in turn)[1:] for turn in alone]
    numbered = json.dumps(turns).replace('"c0"', '"c"')
    whole = next(together[key] for key in ("messages", "input", "contents") if key in together)[1:]
    again = [whole[2 * number : 2 * number + 2] for number in range(3)]
    text = json.dumps(again)
    for number in range(3):
        text = text.replace(f'"c{number}"', '"c"')
    assert text == numbered


def interfaces(value: Any) -> Iterator[Json]:
    """The interfaces that a reader finds in a result, looked for by nothing but MCP's own form of them."""
    for text in [value] if isinstance(value, str) else []:
        if text.lstrip()[:1] in ("{", "["):
            try:
                yield from interfaces(json.loads(text))
            except (ValueError, RecursionError):
                return
    if isinstance(value, list):
        for one in value:
            yield from interfaces(one)
    if isinstance(value, dict):
        resource = value.get("resource")
        uri = resource.get("uri") if isinstance(resource, dict) else None
        if value.get("type") == "resource" and isinstance(uri, str) and uri.lower().startswith("ui:"):
            yield value
        for one in value.values():
            yield from interfaces(one)


def broken(text: str, chance: random.Random) -> str:
    """A text with something wrong in it."""
    for _ in range(chance.randint(1, 4)):
        at, end = chance.randint(0, len(text)), chance.randint(0, len(text))
        text = chance.choice(
            [
                text[:at],
                text[: min(at, end)] + text[max(at, end) :] if chance.random() < 0.3 else text[:at] + text[at + 1 :],
                text[:at]
                + chance.choice(['"', "{", "}", "[", "]", ",", ":", "\\", "\0", "\ud800", "1e999", " "])
                + text[at:],
                text[:at] + text[at : at + 40] * 2 + text[at + 40 :],
            ]
        )
    return text


@settings(max_examples=400, deadline=None)
@given(st.integers(0, 2**64), st.sampled_from(list(APIS)))
def test_broken_json_in_strings_breaks_nothing_and_hides_nothing_that_can_be_read(seed: int, api: str) -> None:
    chance = random.Random(seed)
    one, planting = APIS[api], Planting(chance)
    text = broken(planting.written(planting.value(1)), chance)
    if chance.random() < 0.3:
        text = planting.written({"said": text})
    done = sent(api, one.body([], [("look", one.text(text)), ("look", one.text("KEEP"))]))
    after = json.loads(done.body)
    assert not list(interfaces(after))
    assert pairs_of(api, after) == 2
    assert "KEEP" in done.body.decode()
    again = sent(api, done.body)
    assert again.body is done.body


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**64), st.sampled_from(list(APIS)))
def test_a_broken_body_is_refused_or_sent_as_json(seed: int, api: str) -> None:
    chance = random.Random(seed)
    text = broken(json.dumps(Planting(chance).body(api)), chance)
    raw = text.encode("utf-8", "surrogatepass")
    try:
        done = sent(api, raw)
    except provider.Unreadable:
        return
    if done.body is not raw:
        json.loads(done.body)
