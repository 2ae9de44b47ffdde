"""Calls at every moment of their lives, for faults to strike at: a table's cell each.

A cell is a client's era, its upstream's, and a moment. Its call runs at the first of two replicas, the owner; what the
client sends later comes to the other. The tools of both upstreams do what the call's arguments say, wait to be
released, and count their work by the call's label.
"""

import asyncio
import contextlib
import copy
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

from tests.asks.talk import ACCEPT, ELICIT, EVERYTHING, FORM
from tests.fleet import Fleet
from tests.http_wire import DEADLINE_S, header_bytes
from tests.peers import LegacyUpstream, ModernUpstream, text
from tests.raw_front import NO_STREAM, Answer, Front, Session, modern_headers, modern_request, reset
from tests.scripted import Call, Json

BEFORE, RUNS, PARKED, RETRY = MOMENTS = ("before the call", "while it runs", "while parked", "during the retry")
"""`PARKED`: the client has been asked and has not answered; `RETRY`: its answer has arrived, and the tool goes on."""

PAIRS: Final = tuple((client, upstream) for client in ("modern", "legacy") for upstream in ("modern", "legacy"))
DOES: Final = {BEFORE: "work", RUNS: "work", PARKED: "ask", RETRY: "ask"}
GONE: Final = (ConnectionError, EOFError)


class House:
    """The two upstreams, what their tools do, and what they have done."""

    def __init__(self, legacy: LegacyUpstream, modern: ModernUpstream) -> None:
        self.legacy, self.modern = legacy, modern
        self.began: Counter[str] = Counter()
        """Calls that have arrived, by label; over a modern upstream, each of its rounds."""
        self.worked: Counter[str] = Counter()
        """How often the work of a call was done: it is what must not be done twice."""
        self.running: set[str] = set()
        self.called_off: set[str] = set()
        self.released: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._changed = asyncio.Condition()
        legacy.on["tools/call"] = self._legacy_tool
        modern.on["tools/call"] = self._modern_tool

    async def when(self, true: Callable[[], bool]) -> None:
        async with asyncio.timeout(DEADLINE_S), self._changed:
            await self._changed.wait_for(true)

    async def _legacy_tool(self, call: Call) -> Json | None:
        async def work() -> Json:
            if call.seen.params["arguments"]["does"] == "ask":
                await call.ask(ELICIT, FORM)
            return await self._work(call)

        return await self._unless_gone(call, work())

    async def _modern_tool(self, call: Call) -> Json | None:
        async def work() -> Json:
            if call.seen.params["arguments"]["does"] == "ask" and "inputResponses" not in call.seen.params:
                asks = {"k": {"method": ELICIT, "params": FORM}}
                return {"resultType": "input_required", "inputRequests": asks, "requestState": "s"}
            return await self._work(call)

        return await self._unless_gone(call, work())

    async def _work(self, call: Call) -> Json:
        label = call.seen.params["arguments"]["label"]
        async with self._changed:
            self.worked[label] += 1
            self._changed.notify_all()
        await self.released[label].wait()
        return text(label)

    async def _unless_gone(self, call: Call, work: Awaitable[Json]) -> Json | None:
        """What a tool says, or nothing where its caller has gone: then it stops."""
        label = call.seen.params["arguments"]["label"]
        self.began[label] += 1
        self.running.add(label)
        working, gone = asyncio.ensure_future(work), asyncio.ensure_future(call.stay())
        try:
            await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return working.result()
            self.called_off.add(label)
            call.close()
            return None
        finally:
            working.cancel()
            gone.cancel()
            self.running.discard(label)
            async with self._changed:
                self._changed.notify_all()


@dataclass
class Cell:
    """One call of one client. `outcome` is what its client has seen at last."""

    fleet: Fleet
    house: House
    moment: str
    client: str
    upstream: str
    session: Session | None = None
    calling: "asyncio.Task[str] | None" = None
    asked: "asyncio.Future[Any]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    last_id: str = ""
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the stream of a call in a session has an id by which it can be resumed."""

    @property
    def label(self) -> str:
        return f"{self.moment}: {self.client} client, {self.upstream} server"

    @property
    def params(self) -> Json:
        return {"name": "t", "arguments": {"label": self.label, "does": DOES[self.moment]}}

    def at(self, index: int | None) -> Front:
        """A replica's front, or for None that of the hop before them."""
        where = self.fleet if index is None else self.fleet.replicas[index]
        return where.front(f"/{self.upstream}")

    def through(self, index: int | None) -> Session:
        """The client's session, its next request at that replica."""
        session = copy.copy(self.session)
        assert session is not None
        session.front = self.at(index)
        return session

    # up to the moment

    async def prepare(self) -> None:
        """Brings the call to its moment."""
        if self.client == "legacy":
            self.session = await self.at(0).initialize(capabilities=EVERYTHING)
        if self.moment == BEFORE:
            return
        self.calling = asyncio.create_task(self.call(0))
        if self.moment in (PARKED, RETRY):
            async with asyncio.timeout(DEADLINE_S):
                await asyncio.wait({self.asked, self.calling}, return_when=asyncio.FIRST_COMPLETED)
            assert self.asked.done(), self.calling.result()
        if self.moment == RETRY:
            answered = await self.answer(1) if self.client == "legacy" else ""
            assert answered in ("", "202"), answered
            if self.client == "modern":
                self.calling = asyncio.create_task(self.answer(1))
        if self.moment in (RUNS, RETRY):
            await self.house.when(lambda: self.house.worked[self.label] > 0)
        if self.client == "legacy":
            async with asyncio.timeout(DEADLINE_S):
                await self.opened.wait()

    async def call(self, index: int | None) -> str:
        """Calls the tool; what came of it, up to the final response or the question."""
        try:
            if self.client == "modern":
                answer = await self.at(index).modern("tools/call", self.params, capabilities=EVERYTHING)
                if answer.ended and answer.finals and "inputRequests" in answer.final.get("result", {}):
                    self.asked.set_result(answer)
                    return "asked"
                return said(answer)
            if self.moment == BEFORE:
                return said(await self.through(index).request("tools/call", self.params, headers=NO_STREAM))
            async with self.through(index).open("tools/call", self.params) as opened:
                return await self._hear(opened)
        except GONE:
            return "cut"

    async def answer(self, index: int | None) -> str:
        """Answers what was asked, and what that brings: over sessions only whether it was taken."""
        asked = self.asked.result()
        try:
            if self.client == "legacy":
                answer = await self.through(index).reply(asked["id"], {"result": ACCEPT})
                return str(answer.status) if answer.ended else "cut"
            [key] = asked.result["inputRequests"]
            again = {**self.params, "inputResponses": {key: ACCEPT}, "requestState": asked.result["requestState"]}
            front = self.at(index)
            return said(await front.modern("tools/call", again, ident=2, capabilities=EVERYTHING))
        except GONE:
            return "cut"

    async def resume(self, index: int | None) -> str:
        """A client with a session reads on where its stream was cut."""
        try:
            async with self.through(index).get({"Last-Event-ID": self.last_id}) as opened:
                return await self._hear(opened) if opened.status == 200 else str(opened.status)
        except GONE:
            return "cut"

    async def half(self, index: int) -> None:
        """Sends the head of a call and the half of its body, and hangs up."""
        message = modern_request("tools/call", self.params, capabilities=EVERYTHING)
        head = modern_headers(message) if self.session is None else self.session.headers
        front = self.at(index)
        lines = {"Host": front.host, **front.posting(head), "Content-Length": "1000"}
        async with front.connected() as (_, writer):
            writer.write(header_bytes(f"POST {front.path} HTTP/1.1", [*lines.items()]) + b'{"jsonrpc": "2.0"')
            await writer.drain()
            reset(writer)

    async def hang_up(self) -> None:
        if self.calling is not None:
            self.calling.cancel()
            await asyncio.wait({self.calling})

    async def _hear(self, opened: Any) -> str:
        try:
            while (event := await opened.event()) is not None:
                if event.id is not None:
                    self.last_id = event.id
                    self.opened.set()
                message = event.json if event.data else {}
                if "method" in message and "id" in message and not self.asked.done():
                    self.asked.set_result(message)
                elif "result" in message or "error" in message:
                    return outcome(opened.status, message)
        except GONE:
            pass
        return "cut"


def said(answer: Answer) -> str:
    if not answer.ended or not answer.finals:
        return "cut" if not answer.ended else str(answer.status)
    return outcome(answer.status, answer.final)


def outcome(status: int, final: Json) -> str:
    return "answered" if "result" in final else f"{status} {final['error']['code']}"


async def every(work: list[Awaitable[str]]) -> list[str]:
    """The outcomes of all; "hangs" for what takes too long."""

    async def one(each: Awaitable[str]) -> str:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DEADLINE_S):
                return await each
        return "hangs"

    return await asyncio.gather(*(one(each) for each in work))
