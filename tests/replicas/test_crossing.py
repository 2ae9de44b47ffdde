"""A thousand calls of twenty clients that all count from 1, side by side: nothing of one reaches another.

Ten clients of each era, half of each with one key and half with the other, so that upstream sessions are shared within
a principal and never between the two. Every answer, notification and question holds the mark of the call it is of.
"""

import asyncio
import hashlib
import itertools
import random
import re
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, Final

from policies.mcp import LOG_MESSAGE, PROGRESS
from tests.asks.talk import ELICIT, EVERYTHING, FORM
from tests.fleet import Fleet, fleet
from tests.http_wire import DEADLINE_S
from tests.peers import PREFIX, LegacyUpstream, ModernUpstream, text
from tests.raw_front import Session
from tests.scripted import Call, Json

CLIENTS: Final = 20
CALLS: Final = 50
ASKS_EVERY: Final = 5
KEYS_OF: Final = {name: f"mfd_{name[0] * 43}" for name in ("anna", "bert")}
"""Two principals and their keys."""
MARK: Final = re.compile(r"mark-\w+")
ERAS: Final = ("legacy", "modern")


@dataclass(frozen=True, slots=True)
class Client:
    number: int
    era: str
    owner: str

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {KEYS_OF[self.owner]}"}

    def mark(self, turn: int) -> str:
        return f"mark-{self.owner}_{self.number}_{turn}"


class Tools:
    """Of both upstreams. `by_session`: whose calls came in each session."""

    def __init__(self) -> None:
        self.calls = 0
        self.by_session: defaultdict[str | None, set[str]] = defaultdict(set)
        self._chance = random.Random(1)  # which calls overtake which

    async def __call__(self, call: Call) -> Json:
        mark = call.seen.params["arguments"]["mark"]
        asks = call.seen.params["arguments"]["asks"]
        responses = call.seen.params.get("inputResponses")
        self.by_session[call.seen.session].add(mark.split("_")[0])
        self.calls += responses is None
        token = call.seen.meta["progressToken"]
        await self._dawdle()
        await call.notify(PROGRESS, {"progressToken": token, "progress": 1, "message": mark})
        await call.notify(LOG_MESSAGE, {"level": "info", "data": mark})
        await self._dawdle()
        heard = ""
        if asks and isinstance(call.upstream, LegacyUpstream):
            reply = await call.ask(ELICIT, {**FORM, "message": mark})
            heard = reply["result"]["content"]["n"]
        elif asks and responses is None:
            entry = {"method": ELICIT, "params": {**FORM, "message": mark}}
            return {"resultType": "input_required", "inputRequests": {"k": entry}, "requestState": "s"}
        elif asks:
            heard = responses["k"]["content"]["n"]
        await self._dawdle()
        return text(f"{mark} {heard}")

    async def _dawdle(self) -> None:
        for _ in range(self._chance.randrange(60)):
            await asyncio.sleep(0)


def checked(message: Json, mark: str) -> Json:
    """A message that the caller of `mark` got, with its own ids and no other's mark."""
    assert set(MARK.findall(str(message))) == {mark}, message
    if message.get("method") == PROGRESS:
        assert type(message["params"]["progressToken"]) is int
        assert message["params"]["progressToken"] == 1
    if "method" not in message:
        assert type(message["id"]) is int
        assert message["id"] == 1
    return message


def params_of(mark: str, asks: bool) -> Json:
    return {"name": "t", "arguments": {"mark": mark, "asks": asks}}


def complete(messages: list[Json], mark: str, asks: bool) -> None:
    """What the caller got is all that there was for it, once: the answer last, its notifications before it."""
    assert messages[-1]["result"]["content"][0]["text"] == f"{mark} {mark if asks else ''}", messages
    assert [message["method"] for message in messages[:-1]][:2] == [PROGRESS, LOG_MESSAGE], messages


async def modern_call(replicas: Fleet, client: Client, upstream: str, mark: str, asks: bool) -> None:
    more: Json = {
        "ident": 1,
        "headers": client.headers,
        "capabilities": EVERYTHING if asks else {},
        "meta": {"progressToken": 1, PREFIX + "logLevel": "info"},
    }
    front, params = replicas.front(f"/{upstream}"), params_of(mark, asks)
    answer = await front.modern("tools/call", params, **more)
    messages = [message for message in answer.messages if "requestState" not in message.get("result", {})]
    if asks:
        asked = answer.final["result"]
        [(key, entry)] = asked["inputRequests"].items()
        assert entry["params"]["message"] == mark
        said = {key: {"action": "accept", "content": {"n": mark}}}
        again = {**params, "inputResponses": said, "requestState": asked["requestState"]}
        answer = await front.modern("tools/call", again, **more)
        messages += answer.messages
    complete([checked(message, mark) for message in messages], mark, asks)


async def session_call(replicas: Fleet, session: Session, mark: str, asks: bool) -> None:
    params = {**params_of(mark, asks), "_meta": {"progressToken": 1}}
    messages: list[Json] = []
    async with session.open("tools/call", params, ident=1) as stream:
        while (message := await stream.message()) is not None:
            if "method" in message and "id" in message:
                assert message["params"]["message"] == mark
                said = {"action": "accept", "content": {"n": mark}}
                assert (await session.reply(message["id"], {"result": said})).status == 202
            else:
                messages.append(checked(message, mark))
    complete(messages, mark, asks)


async def work(replicas: Fleet, client: Client) -> None:
    sessions: dict[str, Session] = {}
    if client.era == "legacy":
        for upstream in ERAS:
            front = replicas.front(f"/{upstream}")
            sessions[upstream] = await front.initialize(capabilities=EVERYTHING, headers=client.headers)
            await sessions[upstream].request("logging/setLevel", {"level": "info"})
    for turn in range(CALLS):
        upstream, mark, asks = ERAS[turn % 2], client.mark(turn), turn % ASKS_EVERY == 0
        if client.era == "modern":
            await modern_call(replicas, client, upstream, mark, asks)
        else:
            await session_call(replicas, sessions[upstream], mark, asks)


async def test_nothing_of_a_call_reaches_another_client() -> None:
    routes = [{"path": f"/{name}", "upstream": name} for name in ERAS]
    configured: dict[str, Any] = {
        name: {"keys": ["sha256:" + hashlib.sha256(key.encode()).hexdigest()], "routes": ["/legacy", "/modern"]}
        for name, key in KEYS_OF.items()
    }
    kinds = itertools.cycle(itertools.product(ERAS, KEYS_OF))
    clients = [Client(number, *kind) for number, kind in zip(range(CLIENTS), kinds, strict=False)]
    async with LegacyUpstream() as legacy, ModernUpstream() as modern:
        tools = Tools()
        legacy.on["tools/call"] = modern.on["tools/call"] = tools
        behind = {"legacy": legacy, "modern": modern}
        async with fleet(behind, routes=routes, clients=configured, timeout_ms=2000) as replicas:
            async with asyncio.timeout(2 * DEADLINE_S), asyncio.TaskGroup() as group:
                for client in clients:
                    group.create_task(work(replicas, client))
            taken = {target: replicas.hop.taken.count(target) for target in replicas.hop.targets}
    assert tools.calls == CLIENTS * CALLS
    assert min(taken.values()) > 0.4 * sum(taken.values()), "both replicas have served"
    in_sessions = {session: owners for session, owners in tools.by_session.items() if session is not None}
    assert all(len(owners) == 1 for owners in in_sessions.values()), "a session is one principal's alone"
    borrowed = len(in_sessions) - sum(client.era == "legacy" for client in clients)
    assert 0 < borrowed < CLIENTS * CALLS / 20, "sessions are pooled"
