"""A server that speaks 2025-11-25 asks a client whose session has an older revision: in that revision's words.

Specification: client/{elicitation,sampling,roots} of 2025-11-25 and of each revision before it.
"""

import pytest

from tests.asks.talk import ACCEPT, ELICIT, EVERYTHING, FORM, MESSAGES, ROOTS, SAMPLE, TOOL, URL, next_ask
from tests.door import Door
from tests.scripted import Call, Json

V11, V06, V03, V24 = "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"
TEXT, AUDIO = {"type": "text", "text": "x"}, {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}
TITLED: Json = {"type": "string", "oneOf": [{"const": "r", "title": "Rot"}, {"const": "b", "title": "Blau"}]}
MANY: Json = {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}
TOOLS: Json = {"tools": [{"name": "x", "inputSchema": {"type": "object"}}]}


def form(one: Json) -> Json:
    return {"message": "m", "requestedSchema": {"type": "object", "properties": {"c": one}}}


def said(content: object) -> Json:
    return {"messages": [{"role": "user", "content": content, "_meta": {"v/x": 1}}], "maxTokens": 5, "x-vendor": None}


SHOWN: list[tuple[str, str, str, Json, Json]] = [
    ("its own revision as it is", V11, ELICIT, {"mode": "form", **form(TITLED)}, {"mode": "form", **form(TITLED)}),
    ("an address in its own revision", V11, ELICIT, URL | {"elicitationId": "e"}, URL | {"elicitationId": "e"}),
    ("a plain form", V06, ELICIT, FORM | {"x-vendor": 1.5}, FORM | {"x-vendor": 1.5}),
    (
        "titles under the older keyword, neither mode nor task",
        V06,
        ELICIT,
        {"mode": "form", "task": {"ttl": 1}, **form(TITLED)},
        form({"type": "string", "enum": ["r", "b"], "enumNames": ["Rot", "Blau"]}),
    ),
    ("one block without its array, no task", V06, SAMPLE, said([TEXT]) | {"task": {}}, said(TEXT)),
    ("audio where there is audio", V03, SAMPLE, said([AUDIO]), said(AUDIO)),
    ("audio as text before", V24, SAMPLE, said(AUDIO), said({"type": "text", "text": "[audio, audio/wav]"})),
    ("sampling of the oldest", V24, SAMPLE, MESSAGES, MESSAGES),
    ("no context that it has not declared", V06, SAMPLE, MESSAGES | {"includeContext": "allServers"}, MESSAGES),
    ("roots", V24, ROOTS, {}, {}),
]
CANCEL: Json = {"result": {"action": "cancel"}}
UNSUPPORTED = -32601
REFUSED: list[tuple[str, str, Json, str, Json, Json | int]] = [
    ("an address of one that knows no modes", V06, {"elicitation": {}}, ELICIT, URL, UNSUPPORTED),
    ("an address of one that says it knows them", V06, EVERYTHING, ELICIT, URL, CANCEL),
    ("a multiple choice", V06, EVERYTHING, ELICIT, form(MANY), CANCEL),
    ("a form of one that has none", V03, {}, ELICIT, FORM, UNSUPPORTED),
    ("a form of one that says it has them", V03, EVERYTHING, ELICIT, FORM, CANCEL),
    ("a form of the oldest that says so", V24, EVERYTHING, ELICIT, FORM, CANCEL),
    ("tools of one that has none", V06, {"sampling": {}}, SAMPLE, MESSAGES | TOOLS, UNSUPPORTED),
    (
        "a choice of tools of one that has none",
        V03,
        {"sampling": {}},
        SAMPLE,
        MESSAGES | {"toolChoice": {}},
        UNSUPPORTED,
    ),
]
WHERE = pytest.mark.parametrize("on_get", [False, True], ids=["on the call's stream", "on the GET stream"])


def hears(door: Door, method: str, params: Json, on_get: bool) -> list[Json]:
    """Makes the server ask; what it will have heard."""
    got: list[Json] = []

    async def tool(call: Call) -> Json:
        if on_get:
            answer = await door.legacy.ask(method, params, session=call.seen.session)
        else:
            answer = await call.ask(method, params)
        got.append({key: answer[key] for key in ("result", "error") if key in answer})
        return {"content": []}

    door.legacy.on["tools/call"] = tool
    return got


@WHERE
@pytest.mark.parametrize(
    ("version", "method", "params", "shown"), [row[1:] for row in SHOWN], ids=[row[0] for row in SHOWN]
)
async def test_a_client_is_asked_in_the_words_of_its_revision(
    door: Door, version: str, method: str, params: Json, shown: Json, on_get: bool
) -> None:
    got = hears(door, method, params, on_get)
    session = await door.front("legacy").initialize(version, capabilities=EVERYTHING)
    async with session.get() as stream, session.open("tools/call", TOOL) as opened:
        ask = await next_ask(stream if on_get else opened)
        assert (ask["method"], ask.get("params", {})) == (method, shown)
        await session.reply(ask["id"], {"result": ACCEPT})
        await opened.rest()
    assert got == [{"result": ACCEPT}]


@WHERE
@pytest.mark.parametrize(
    ("version", "declared", "method", "params", "told"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
async def test_what_its_revision_cannot_show_is_answered_for_it(
    door: Door, version: str, declared: Json, method: str, params: Json, told: Json | int, on_get: bool
) -> None:
    got = hears(door, method, params, on_get)
    session = await door.front("legacy").initialize(version, capabilities=declared)
    async with session.get() as stream:
        answer = await session.request("tools/call", TOOL)
        assert "result" in answer.final
        assert [one if isinstance(told, dict) else one["error"]["code"] for one in got] == [told]
        await session.delete()
        assert [message for message in await stream.rest() if "id" in message] == []
