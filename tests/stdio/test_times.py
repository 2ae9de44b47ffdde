"""How long a command may take over a call: as long as it likes, unless its tool's own time-outs say otherwise."""

import asyncio

import pytest

from tests.asks.talk import ACCEPT, ELICIT, FORM, Modern, heard
from tests.gateway_process import running
from tests.peers import text
from tests.scripted import Json
from tests.stdio.puppets import Puppet, Puppets

SHORT_S = 0.5
PROGRESS = "notifications/progress"


def entry(puppets: Puppets, **times: float) -> Json:
    """A command in whose `slow*` tools these times hold; elsewhere short ones that don't count for calls."""
    timeouts = {"idle_s": SHORT_S, "total_s": 60, "first_byte_s": 20}
    return puppets.entry(timeouts=timeouts, tools={"slow*": times}, scope="session")


async def begins(child: Puppet, message: Json) -> None:
    """Says that it has begun, and nothing more."""
    token = message["params"]["_meta"]["progressToken"]
    child.say({"method": PROGRESS, "params": {"progressToken": token, "progress": 1}})


async def never(child: Puppet, message: Json) -> None:
    """Says nothing."""


SILENT: dict[str, tuple[Json, object]] = {
    "before its first word": ({"first_byte_s": SHORT_S}, never),
    "after it": ({"idle_s": SHORT_S}, begins),
}


@pytest.mark.parametrize("name", SILENT)
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_tool_with_times_of_its_own_may_not_be_silent_for_longer(era: str, name: str) -> None:
    times, script = SILENT[name]
    async with Puppets(era) as puppets, running({"p": entry(puppets, **times)}) as gateway:
        puppets.on["tools/call"] = script  # type: ignore[assignment]
        front = gateway.front("/p")
        answer = await front.modern("tools/call", {"name": "slow one"}, meta={"progressToken": "p"})
        assert answer.code == -32603
        assert f"{SHORT_S} s" in answer.error["message"]
        call, cancel = await puppets.call("tools/call"), await puppets.call("notifications/cancelled")
        assert cancel["params"]["requestId"] == call["id"]


@pytest.mark.parametrize("name", ["slow one", "another"])
async def test_other_silences_do_not_count(name: str) -> None:
    """The time to the next word is not that to the first, and other tools have neither."""

    async def slowly(child: Puppet, message: Json) -> Json:
        await asyncio.sleep(3 * SHORT_S)
        return text("done")

    async with Puppets() as puppets, running({"p": entry(puppets, idle_s=SHORT_S)}) as gateway:
        puppets.on["tools/call"] = slowly
        assert (await gateway.front("/p").modern("tools/call", {"name": name})).said == "done"


async def test_a_slow_human_is_no_silence_of_a_command() -> None:
    async def asks(child: Puppet, message: Json) -> Json:
        child.say({"id": "q", "method": ELICIT, "params": FORM})
        answer = await puppets.when(lambda: next((one for one in child.lines if one.get("id") == "q"), None))
        return heard(answer or {})

    async with Puppets() as puppets, running({"p": entry(puppets, idle_s=SHORT_S, first_byte_s=SHORT_S)}) as gateway:
        puppets.on["tools/call"] = asks
        client = Modern(gateway.front("/p"), {"name": "slow one", "arguments": {}})
        asked = await client.call()
        await asyncio.sleep(3 * SHORT_S)  # the human
        done = await client.answer_all(asked, ACCEPT)
        assert done.result["structuredContent"]["heard"] == [{"result": ACCEPT}]
