"""Field reports N1, N2: progress comes under the client's own token, before the end, and to nobody who did not ask."""

import pytest

from tests.door import Door
from tests.field.pairs import every_pair
from tests.raw_front import Answer
from tests.scripted import Call, Json, response


async def call_with(door: Door, front_era: str, upstream_era: str, meta: Json) -> Answer:
    front = door.front(upstream_era)
    if front_era == "modern":
        return await front.modern("tools/call", {"name": "t"}, ident=1, meta=meta)
    session = await front.initialize()
    return await session.request("tools/call", {"name": "t", "_meta": meta} if meta else {"name": "t"}, ident=1)


def step(token: object, progress: float) -> Json:
    return {"progressToken": token, "progress": progress, "total": 3, "message": f"step {progress}"}


@pytest.mark.field("N1")
@every_pair
@pytest.mark.parametrize("token", ["abc", "7", 7, 0, -1, "", "größe", 2**53], ids=repr)
async def test_progress_carries_the_token_of_the_client(
    door: Door, front_era: str, upstream_era: str, token: object
) -> None:
    async def tool(call: Call) -> Json:
        for progress in (1, 2, 3):
            await call.notify("notifications/progress", step(call.seen.meta["progressToken"], progress))
        return {"content": []}

    door.upstream(upstream_era).on["tools/call"] = tool
    answer = await call_with(door, front_era, upstream_era, {"progressToken": token})
    got = [message["params"] for message in answer.messages[:-1]]
    assert [{k: v for k, v in params.items() if k != "_meta"} for params in got] == [step(token, n) for n in (1, 2, 3)]
    assert all(type(params["progressToken"]) is type(token) for params in got)
    assert "result" in answer.messages[-1], "the answer comes last"


@pytest.mark.field("N1")
@every_pair
async def test_nobody_is_told_of_progress_who_did_not_ask(door: Door, front_era: str, upstream_era: str) -> None:
    tokens: list[object] = []

    async def tool(call: Call) -> Json:
        token = call.seen.meta.get("progressToken")
        tokens.append(token)
        await call.notify("notifications/progress", step(1 if token is None else token, 1))
        return {"content": []}

    door.upstream(upstream_era).on["tools/call"] = tool
    answer = await call_with(door, front_era, upstream_era, {})
    assert answer.notes == []
    assert "result" in answer.final
    assert tokens == [None], "no token is invented"


@pytest.mark.field("N2")
@every_pair
async def test_progress_after_the_end_or_for_somebody_else_is_dropped(
    door: Door, front_era: str, upstream_era: str
) -> None:
    async def tool(call: Call) -> None:
        token = call.seen.meta["progressToken"]
        await call.notify("notifications/progress", step("somebody else's", 1))
        await call.notify("notifications/progress", step(token, 1))
        await call.event(response(call.seen.id, {"content": [], "resultType": "complete"}))
        await call.notify("notifications/progress", step(token, 2))
        await call.end()

    door.upstream(upstream_era).on["tools/call"] = tool
    answer = await call_with(door, front_era, upstream_era, {"progressToken": "mine"})
    assert [note["params"]["progressToken"] for note in answer.notes] == ["mine"]
    assert answer.messages[-1] == answer.final
    assert answer.ended


@pytest.mark.field("N2")
@every_pair
async def test_values_that_stand_still_or_fall_are_passed_as_they_are(
    door: Door, front_era: str, upstream_era: str
) -> None:
    values = [5, 5, 1, 0, 0.1, 100]

    async def tool(call: Call) -> Json:
        for value in values:
            await call.notify("notifications/progress", step(call.seen.meta["progressToken"], value))
        return {"content": []}

    door.upstream(upstream_era).on["tools/call"] = tool
    answer = await call_with(door, front_era, upstream_era, {"progressToken": 7})
    assert [note["params"]["progress"] for note in answer.notes] == values
