"""Field report E1: whatever an upstream puts into a list, a result or a notification arrives, to the last digit.

The documented edits are all that may differ: `resultType`, `ttlMs` and `cacheScope`, `serverInfo` in `_meta`, and the
`execution` of tools, which speaks of tasks of the legacy era.
"""

import json
from collections.abc import Awaitable, Callable
from decimal import Decimal
from typing import Any

import pytest

from tests.door import Door
from tests.field.pairs import ask_pair, every_pair
from tests.field.rich_results import RESULTS
from tests.peers import PREFIX
from tests.scripted import Call, Err, Json


def exact(value: Any) -> Any:
    """The value with every number marked as integer or not: Python finds 1 and 1.0 equal."""
    if isinstance(value, dict):
        return {key: exact(member) for key, member in value.items()}
    if isinstance(value, list):
        return [exact(member) for member in value]
    return (type(value).__name__, value) if isinstance(value, int | Decimal) else value


def parse(text: str | bytes) -> Any:
    return exact(json.loads(text, parse_float=Decimal))


def edited(result: Json, front_era: str, upstream_era: str) -> Json:
    """The result less what the gateway may add or take away."""
    kept = {k: v for k, v in result.items() if k not in ("resultType", "ttlMs", "cacheScope")}
    kept["_meta"] = {k: v for k, v in kept.get("_meta", {}).items() if k != PREFIX + "serverInfo"}
    if front_era != upstream_era and "tools" in kept:
        kept["tools"] = [{k: v for k, v in tool.items() if k != "execution"} for tool in kept["tools"]]
    return kept


def saying(result: str, upstream_era: str) -> Callable[[Call], Awaitable[None]]:
    """Answers with this text as the result, on a stream."""
    added = '"resultType": "complete", "ttlMs": 0, "cacheScope": "private", ' if upstream_era == "modern" else ""

    async def answer(call: Call) -> None:
        ident = json.dumps(call.seen.id)
        line = " ".join(f'{{"jsonrpc": "2.0", "id": {ident}, "result": {{{added}{result[1:]}}}'.split("\n"))
        if call.seen.method == "tools/call":
            await call.stream()
            await call.write(f"data: {line}\n\n".encode())
            await call.end()
        else:
            await call.json(line.encode())

    return answer


@pytest.mark.field("E1")
@every_pair
@pytest.mark.parametrize("method", RESULTS)
async def test_results_arrive_as_they_were_sent(door: Door, front_era: str, upstream_era: str, method: str) -> None:
    sent, params = RESULTS[method]
    door.upstream(upstream_era).on[method] = saying(sent, upstream_era)
    answer = await ask_pair(door, (front_era, upstream_era), method, params)
    assert answer.status == 200, repr(answer)
    text = answer.events[-1].data if answer.events else answer.body
    arrived = parse(text)["result"]
    if front_era == "modern":
        assert arrived["resultType"] == "complete"
    assert edited(arrived, front_era, upstream_era) == edited(parse(sent), front_era, upstream_era)


@pytest.mark.field("E1")
@every_pair
async def test_a_tools_own_failure_is_a_result(door: Door, front_era: str, upstream_era: str) -> None:
    sent = '{"content": [], "isError": true, "structuredContent": {"code": 0}, "_meta": {"com.example/x": false}}'
    door.upstream(upstream_era).on["tools/call"] = saying(sent, upstream_era)
    answer = await ask_pair(door, (front_era, upstream_era), "tools/call", {"name": "rich"})
    assert edited(exact(answer.result), front_era, upstream_era) == edited(parse(sent), front_era, upstream_era)


@pytest.mark.field("E1")
@every_pair
@pytest.mark.parametrize("code", [-32603, -32000, -32050, 42, 0])
async def test_errors_keep_code_message_and_data(door: Door, front_era: str, upstream_era: str, code: int) -> None:
    data = {"x-vendor": [None, 1.5, {"deep": ["größe"]}], "retry": False}
    door.upstream(upstream_era).on["tools/call"] = Err(code, "größe 日本", data)
    answer = await ask_pair(door, (front_era, upstream_era), "tools/call", {"name": "rich"})
    assert answer.error == {"code": code, "message": "größe 日本", "data": data}
    assert answer.status == 200


@pytest.mark.field("E1")
@every_pair
async def test_requests_arrive_as_they_were_sent(door: Door, front_era: str, upstream_era: str) -> None:
    arguments = {
        "strings": ["", "größe 日本 😀", "\u0000\u001f</script>\u2028", '"\\'],
        "numbers": [0, 1.0, 1, 0.1, 1e-7, 9007199254740993, 123456789012345678901234567890],
        "deep": {"null": None, "empty": {}, "none": [], "no": False},
        "_meta": {"io.modelcontextprotocol/protocolVersion": "an argument, not metadata"},
    }
    params = {"name": "rich", "arguments": arguments, "x-vendor": {"k": [None]}}
    await ask_pair(door, (front_era, upstream_era), "tools/call", params)
    seen = door.upstream(upstream_era).calls("tools/call")[0]
    arrived = {key: value for key, value in seen.params.items() if key != "_meta"}
    assert exact(arrived) == exact(params)


@pytest.mark.field("E1")
@every_pair
async def test_notifications_keep_what_nobody_knows(door: Door, front_era: str, upstream_era: str) -> None:
    note = {"level": "warning", "logger": "l", "data": {"a": [None, 1.5]}, "x-vendor": {"k": 1}}

    async def tool(call: Call) -> Json:
        token = call.seen.meta["progressToken"]
        step = {"progressToken": token, "progress": 0.5, "total": 2, "message": "größe", "x-vendor": [1]}
        await call.notify("notifications/progress", step)
        await call.notify("notifications/message", note)
        return {"content": []}

    door.upstream(upstream_era).on["tools/call"] = tool
    meta = {"progressToken": "mine"}
    if front_era == "modern":
        meta[PREFIX + "logLevel"] = "debug"
        answer = await door.front(upstream_era).modern("tools/call", {"name": "rich"}, meta=meta)
    else:
        session = await door.front(upstream_era).initialize()
        assert (await session.request("logging/setLevel", {"level": "debug"})).result == {}
        answer = await session.request("tools/call", {"name": "rich", "_meta": meta})
    step = {"progressToken": "mine", "progress": 0.5, "total": 2, "message": "größe", "x-vendor": [1]}
    got = [(message["method"], without_meta(message["params"])) for message in answer.notes]
    assert got == [("notifications/progress", step), ("notifications/message", note)]


def without_meta(params: Json) -> Json:
    return {key: value for key, value in params.items() if key != "_meta"}
