"""Traffic of all kinds, for as long as it is watched: both eras over both, what works, fails, asks, and is refused."""

import asyncio
import contextlib
from typing import Any

from tests.peers import LegacyUpstream, ModernUpstream, text
from tests.raw_front import Front, Session
from tests.scripted import Call, Err, Json

ASKING = {"elicitation": {"form": {}}, "roots": {}}
FORM = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}
APP = {"name": "cart", "inputSchema": {"type": "object"}, "_meta": {"ui": {"resourceUri": "ui://cart"}}}
TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("echo", "fails", "refuses", "asks")]


async def _tool(call: Call) -> Json | Err:
    name = call.seen.params["name"]
    if name == "refuses":
        return Err(-32602)
    if name == "asks" and isinstance(call.upstream, LegacyUpstream):
        with contextlib.suppress(TimeoutError):  # its client was cut off when the store was killed
            await call.ask("elicitation/create", FORM)
    elif name == "asks" and "inputResponses" not in call.seen.params:
        entry = {"method": "elicitation/create", "params": FORM}
        return {"resultType": "input_required", "inputRequests": {"k": entry}}
    return {**text("said"), "isError": name == "fails"}


def script(upstream: ModernUpstream | LegacyUpstream) -> None:
    upstream.on["tools/call"] = _tool
    upstream.on["tools/list"] = {"tools": [*TOOLS, APP], "ttlMs": 2_000, "cacheScope": "private"}


class Traffic:
    """`routes` lead to the servers of which one may be away: no failure of a request ends the traffic."""

    def __init__(self, front: Front, routes: tuple[str, ...]) -> None:
        self._front = front
        self._routes = routes
        self.rounds = 0

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            for route in self._routes:
                group.create_task(self._again(self._modern(self._front.at(route))))
                group.create_task(self._again(self._legacy(self._front.at(route))))
            group.create_task(self._again(self._strangers()))

    async def _again(self, work: Any) -> None:
        async for _ in work:
            self.rounds += 1
            await asyncio.sleep(0.1)

    async def _modern(self, front: Front) -> Any:
        while True:
            with contextlib.suppress(ConnectionError, AssertionError, TimeoutError):
                for method in ("server/discover", "tools/list", "prompts/list", "resources/list"):
                    await front.modern(method)
                for name in ("echo", "fails", "refuses", "unheard of"):
                    await front.modern("tools/call", {"name": name})
                await front.modern("resources/read", {"uri": "note://one"})
                asked = (await front.modern("tools/call", {"name": "asks"}, capabilities=ASKING)).result
                back: Json = {"inputResponses": {key: {"action": "accept"} for key in asked["inputRequests"]}}
                if "requestState" in asked:
                    back["requestState"] = asked["requestState"]
                await front.modern("tools/call", {"name": "asks", **back}, capabilities=ASKING)
                listen = {"notifications": {"toolsListChanged": True}}
                async with front.modern_open("subscriptions/listen", listen) as stream:
                    await stream.message()
            yield

    async def _legacy(self, front: Front) -> Any:
        while True:
            with contextlib.suppress(ConnectionError, AssertionError, TimeoutError):
                session = await front.initialize(capabilities=ASKING)
                for name in ("echo", "fails"):
                    await session.request("tools/call", {"name": name})
                await session.request("tools/list")
                await self._asked(session)
                await session.delete()
            yield

    async def _asked(self, session: Session) -> None:
        async with session.open("tools/call", {"name": "asks"}) as stream:
            while (message := await stream.message()) is not None and "id" in message:
                if "method" not in message:
                    return
                await session.reply(message["id"], {"result": {"action": "decline"}})

    async def _strangers(self) -> Any:
        front = self._front
        while True:
            with contextlib.suppress(ConnectionError, AssertionError, TimeoutError):
                await front.at("/nowhere").modern("tools/list")
                await front.at(self._routes[0]).modern("tools/list", headers={"Host": "elsewhere.example"})
                await front.at(self._routes[0]).post(b"{")
                await front.at("/several").modern("prompts/list")
            yield
