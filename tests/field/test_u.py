"""Field reports U1, U4, U5: capabilities pass whole, unknown kinds of result stay unknown, one answer is the last."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import pytest_asyncio

from tests.door import Door
from tests.field.pairs import ask_pair, every_pair
from tests.gateway_process import GatewayProcess, running
from tests.peers import PREFIX, LegacyUpstream, ModernUpstream
from tests.scripted import Call, Err, Json, response

SETTINGS = {"deep": {"list": [1, None, 2.5], "on": True}, "empty": {}}
EXTENSIONS = {
    "io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]},
    "com.example/x": SETTINGS,
    "com.example/empty": {},
}
RICH = {
    "tools": {},
    "prompts": {},
    "resources": {},
    "completions": {},
    "logging": {},
    "experimental": {"com.example/try": SETTINGS, "plain": {}},
    "extensions": {**EXTENSIONS, "io.modelcontextprotocol/tasks": {"requests": {}}},
}
DECLARED = {"extensions": EXTENSIONS, "experimental": {"com.example/try": SETTINGS}}

Rich = tuple[GatewayProcess, dict[str, LegacyUpstream | ModernUpstream]]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def rich() -> AsyncIterator[Rich]:
    async with (
        LegacyUpstream(capabilities=RICH, instructions="Ask the legacy one.") as legacy,
        ModernUpstream(capabilities=RICH, instructions="Ask the modern one.") as modern,
        running({"legacy": legacy, "modern": modern}) as gateway,
    ):
        yield gateway, {"legacy": legacy, "modern": modern}


async def described(gateway: GatewayProcess, front_era: str, upstream_era: str, version: str = "2025-11-25") -> Json:
    front = gateway.front(f"/{upstream_era}")
    if front_era == "modern":
        return (await front.modern("server/discover", capabilities=DECLARED)).result
    return (await front.initialize(version, capabilities=DECLARED)).result


@pytest.mark.field("U1")
@every_pair
async def test_extensions_and_experiments_are_announced_with_their_settings(
    rich: Rich, front_era: str, upstream_era: str
) -> None:
    gateway, _ = rich
    said = await described(gateway, front_era, upstream_era)
    capabilities = said["capabilities"]
    assert {name: capabilities["extensions"].get(name) for name in EXTENSIONS} == EXTENSIONS
    assert capabilities["experimental"] == RICH["experimental"]
    assert {name: capabilities.get(name) for name in ("tools", "prompts", "resources", "completions")} == {
        "tools": {},
        "prompts": {},
        "resources": {},
        "completions": {},
    }
    if front_era == upstream_era:
        assert capabilities == RICH
    assert said["instructions"] == f"Ask the {upstream_era} one."
    server = said["_meta"][PREFIX + "serverInfo"] if front_era == "modern" else said["serverInfo"]
    assert server == {"name": "scripted", "version": "1.0", "title": "Scripted peer"}


@pytest.mark.field("U1")
@pytest.mark.parametrize("upstream_era", ["modern", "legacy"])
@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])
async def test_the_version_asked_for_is_the_version_spoken(rich: Rich, upstream_era: str, version: str) -> None:
    gateway, _ = rich
    said = await described(gateway, "legacy", upstream_era, version)
    assert said["protocolVersion"] == version
    assert said["capabilities"]["extensions"]["com.example/x"] == SETTINGS
    assert said["capabilities"]["experimental"] == RICH["experimental"]


@pytest.mark.field("U1")
@pytest.mark.parametrize("upstream_era", ["modern", "legacy"])
async def test_discover_lists_the_versions_that_the_route_serves(rich: Rich, upstream_era: str) -> None:
    said = await described(rich[0], "modern", upstream_era)
    assert "2026-07-28" in said["supportedVersions"]
    assert said["resultType"] == "complete"
    assert isinstance(said["ttlMs"], int)
    assert said["cacheScope"] in ("public", "private")


@pytest.mark.field("U1")
@every_pair
async def test_what_the_client_declares_of_extensions_reaches_the_upstream(
    rich: Rich, front_era: str, upstream_era: str
) -> None:
    gateway, upstreams = rich
    upstream = upstreams[upstream_era]
    upstream.reset()
    front = gateway.front(f"/{upstream_era}")
    if front_era == "modern":
        await front.modern("tools/call", {"name": "echo"}, capabilities=DECLARED)
    else:
        session = await front.initialize(capabilities=DECLARED)
        await session.request("tools/call", {"name": "echo"})
    if upstream_era == "modern":
        told = upstream.calls("tools/call")[0].meta[PREFIX + "clientCapabilities"]
    else:
        told = upstream.calls("initialize")[-1].params["capabilities"]
    assert told["extensions"] == EXTENSIONS
    assert told["experimental"] == DECLARED["experimental"]


# U4

HANDLES = {
    "a task": {"resultType": "task", "task": {"taskId": "t-1", "status": "working", "ttlMs": 60000}},
    "a vendor's": {"resultType": "vendor_x", "x-vendor": {"handle": [1, None]}},
    "a vendor's with content": {"resultType": "vendor_x", "content": [{"type": "text", "text": "not the answer"}]},
}
ASKABLE = [("tools/call", {"name": "t"}), ("prompts/get", {"name": "p"}), ("resources/read", {"uri": "note://1"})]
ask_methods = pytest.mark.parametrize(("method", "params"), ASKABLE, ids=[method for method, _ in ASKABLE])


@pytest.mark.field("U4")
@ask_methods
@pytest.mark.parametrize("name", HANDLES)
async def test_a_result_of_another_type_reaches_a_modern_client_untouched(
    door: Door, name: str, method: str, params: Json
) -> None:
    door.modern.on[method] = plainly(HANDLES[name])
    for _ in range(2):
        answer = await door.front("modern").modern(method, params)
        assert (answer.status, answer.result) == (200, HANDLES[name])
    assert len(door.modern.calls(method)) == 2, "never from a cache"


@pytest.mark.field("U4")
@ask_methods
@pytest.mark.parametrize("name", HANDLES)
async def test_a_result_of_another_type_is_an_error_for_a_legacy_client(
    door: Door, name: str, method: str, params: Json
) -> None:
    door.modern.on[method] = plainly(HANDLES[name])
    answer = await ask_pair(door, ("legacy", "modern"), method, params)
    assert answer.status == 200
    assert answer.error["message"]
    assert len(door.modern.calls(method)) == 1


def plainly(result: Json) -> Callable[[Call], Awaitable[None]]:
    """Answers with this result and not a member more."""

    async def answer(call: Call) -> None:
        await call.json(response(call.seen.id, result))

    return answer


# U5

ASK: Json = {
    "resultType": "input_required",
    "inputRequests": {
        "who": {
            "method": "elicitation/create",
            "params": {
                "message": "Who?",
                "mode": "form",
                "requestedSchema": {"type": "object", "properties": {"name": {"type": "string", "default": "größe"}}},
            },
        }
    },
    "requestState": "größe=+/" + "s" * 2048,
    "x-vendor": [None],
}
ELICITATION = {"elicitation": {"form": {}, "url": {}}, "x-unknown": {"k": 1}}


@pytest.mark.field("U5")
@ask_methods
async def test_a_modern_upstream_asks_a_modern_client(door: Door, method: str, params: Json) -> None:
    async def asks(call: Call) -> Json | None:
        if "inputResponses" in call.seen.params:
            return {"content": [], "messages": [], "contents": [], "got": call.seen.params["inputResponses"]}
        await plainly(ASK)(call)
        return None

    door.modern.on[method] = asks
    front = door.front("modern")
    asked = await front.modern(method, params, capabilities=ELICITATION)
    assert asked.result == ASK
    answers = {"who": {"action": "accept", "content": {"name": "größe", "n": 1.0}}}
    retry = {**params, "inputResponses": answers, "requestState": ASK["requestState"]}
    done = await front.modern(method, retry, ident="again", capabilities=ELICITATION)
    assert (done.final["id"], done.result["got"]) == ("again", answers)
    first, second = door.modern.calls(method)
    for seen in (first, second):
        assert seen.meta[PREFIX + "clientCapabilities"] == ELICITATION
    assert second.params["requestState"] == ASK["requestState"]


@pytest.mark.field("U5")
@ask_methods
async def test_an_ask_of_a_modern_upstream_is_put_to_a_legacy_client_and_its_result_is_the_last(
    door: Door, method: str, params: Json
) -> None:
    answered = {"who": {"action": "accept", "content": {"name": "größe", "n": 1.0}}}

    async def asks(call: Call) -> Json | None:
        if "inputResponses" in call.seen.params:
            return {"content": [], "messages": [], "contents": [], "got": call.seen.params["inputResponses"]}
        await plainly(ASK)(call)
        return None

    door.modern.on[method] = asks
    session = await door.front("modern").initialize(capabilities=ELICITATION)
    async with session.open(method, params, ident="u") as opened:
        ask = await opened.message()
        assert ask is not None
        assert (ask["method"], ask["params"]) == ("elicitation/create", ASK["inputRequests"]["who"]["params"])
        await session.reply(ask["id"], {"result": answered["who"]})
        [final] = await opened.rest()
    assert (final["id"], final["result"]["got"]) == ("u", answered)
    assert "resultType" not in final["result"]
    first, second = door.modern.calls(method)
    assert first.id != second.id
    assert {k: v for k, v in second.params.items() if k != "_meta"} == {
        **params,
        "inputResponses": answered,
        "requestState": ASK["requestState"],
    }


@pytest.mark.field("U5")
@ask_methods
@pytest.mark.parametrize("wants", [{}, {"inputRequests": {}}, {"inputRequests": {"x": {"method": "tools/list"}}}])
async def test_an_ask_that_says_nothing_a_client_could_answer_is_an_error_and_no_empty_success(
    door: Door, method: str, params: Json, wants: Json
) -> None:
    door.modern.on[method] = plainly({"resultType": "input_required", **wants})
    answer = await ask_pair(door, ("legacy", "modern"), method, params, capabilities={"elicitation": {}})
    assert answer.status == 200
    assert answer.error["message"]
    assert len(door.modern.calls(method)) == 1


def after(*messages: Callable[[Call], Json | bytes], end: str = "end") -> Callable[[Call], Awaitable[None]]:
    """Streams these messages (bytes as they are), then ends, closes or resets."""

    async def tool(call: Call) -> None:
        await call.stream()
        for message in messages:
            written = message(call)
            if isinstance(written, bytes):
                await call.write(written)
            else:
                await call.event(written)
        if end == "end":
            await call.end()
        elif end == "close":
            call.close()
        else:
            call.reset()

    return tool


def result(call: Call) -> Json:
    return response(call.seen.id, {"content": [], "resultType": "complete"})


def failure(call: Call) -> Json:
    return response(call.seen.id, Err(-32000, "failed after all"))


def foreign(call: Call) -> Json:
    return response("somebody-else", {"content": [{"type": "text", "text": "not yours"}]})


def progress(call: Call) -> Json:
    params = {"progressToken": call.seen.meta.get("progressToken", 0), "progress": 1}
    return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}


def half(call: Call) -> bytes:
    return b"event: message\ndata: " + json.dumps(result(call)).encode()[:20]


def nonsense(call: Call) -> bytes:
    return b"data: {not json\n\n"


SEQUENCES: dict[str, tuple[Callable[[Call], Awaitable[None]], str]] = {
    "two results": (after(result, result), "result"),
    "a result, then an error": (after(result, failure), "result"),
    "an error, then a result": (after(failure, result), "error"),
    "a result, then progress": (after(result, progress), "result"),
    "a result, then nonsense": (after(result, nonsense), "result"),
    "a result, then half an event and a reset": (after(result, half, end="reset"), "result"),
    "a result, then a reset": (after(progress, result, end="reset"), "result"),
    "a result, then the end of the connection": (after(result, end="close"), "result"),
    "the end of the connection in mid-event": (after(progress, half, end="close"), "error"),
    "a reset in mid-event": (after(progress, half, end="reset"), "error"),
    "a proper end in mid-event": (after(progress, half), "error"),
    "a proper end with nothing said": (after(progress), "error"),
    "a reset with nothing said": (after(end="reset"), "error"),
    "somebody else's answer first": (after(foreign, result), "result"),
    "somebody else's answer only": (after(foreign), "error"),
    "nonsense, then the result": (after(nonsense, result), "result"),
}


@pytest.mark.field("U5")
@every_pair
@pytest.mark.parametrize("name", SEQUENCES)
async def test_a_request_gets_exactly_one_last_message(
    door: Door, front_era: str, upstream_era: str, name: str
) -> None:
    tool, outcome = SEQUENCES[name]
    door.upstream(upstream_era).on["tools/call"] = tool
    answer = await ask_pair(door, (front_era, upstream_era), "tools/call", {"name": "t"}, ident="u")
    assert len(answer.finals) == 1, repr(answer)
    assert answer.final["id"] == "u"
    assert answer.ended
    assert answer.messages[-1] == answer.final, "nothing follows it"
    assert outcome in answer.final, repr(answer)
    assert len(door.upstream(upstream_era).calls("tools/call")) == 1


@pytest.mark.field("U5")
@every_pair
async def test_many_broken_answers_at_once_each_end_their_own_request(
    door: Door, front_era: str, upstream_era: str
) -> None:
    async def tool(call: Call) -> None:
        name = call.seen.params["arguments"]["case"]
        await SEQUENCES[name][0](call)

    door.upstream(upstream_era).on["tools/call"] = tool
    names = [*SEQUENCES] * 3
    asked = [
        ask_pair(door, (front_era, upstream_era), "tools/call", {"name": "t", "arguments": {"case": name}}, ident=n)
        for n, name in enumerate(names)
    ]
    for n, answer in enumerate(await asyncio.gather(*asked)):
        assert answer.final["id"] == n
        assert SEQUENCES[names[n]][1] in answer.final, names[n]
