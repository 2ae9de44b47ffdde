"""What the tests of asks say and hear: the asks themselves, tools that ask, and a modern client's retries."""

from collections.abc import Awaitable, Callable
from typing import Any

from tests.raw_front import Answer, Front, Open
from tests.scripted import Call, Json

ELICIT, SAMPLE, ROOTS = "elicitation/create", "sampling/createMessage", "roots/list"
EVERYTHING: Json = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}}
"""What a client declares that may be asked anything."""

FORM: Json = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"n": {"type": "string"}}}}
MESSAGES: Json = {"messages": [{"role": "user", "content": {"type": "text", "text": "x"}}], "maxTokens": 1}
URL: Json = {"mode": "url", "message": "Go there", "url": "https://example.com/connect?to=größe"}
ACCEPT: Json = {"action": "accept", "content": {"n": "größe", "f": 1.0}}
TOOL: Json = {"name": "t", "arguments": {"a": 1}}
FOREIGN_STATE = -32602

Tool = Callable[[Call], Awaitable[Json | None]]


def heard(*answers: Json) -> Json:
    """A result that shows the client's responses to a server's requests."""
    seen = [{key: answer[key] for key in ("result", "error") if key in answer} for answer in answers]
    return {"content": [], "structuredContent": {"heard": seen}}


def asking(method: str = ELICIT, params: Json | None = None) -> Tool:
    """A legacy tool that asks on its own stream and says what it heard."""

    async def tool(call: Call) -> Json:
        return heard(await call.ask(method, FORM if params is None else params))

    return tool


def entries(answer: Answer) -> Json:
    """The asks of an `InputRequiredResult`, by key."""
    assert answer.status == 200, repr(answer)
    assert answer.result["resultType"] == "input_required", repr(answer)
    found: Json = answer.result["inputRequests"]
    return found


def only(answer: Answer) -> str:
    """The key of its one ask."""
    [key] = entries(answer)
    return key


class Modern:
    """A modern client that makes one call, over and over until it is done."""

    def __init__(self, front: Front, params: Json = TOOL, method: str = "tools/call", **more: Any) -> None:
        self.front = front
        self.method = method
        self.params = params
        self.more = {"capabilities": EVERYTHING, **more}

    async def call(self, ident: Any = 1, **more: Any) -> Answer:
        return await self.front.modern(self.method, self.params, ident=ident, **{**self.more, **more})

    async def retry(self, asked: Answer, answers: Json, ident: Any = 2, **more: Any) -> Answer:
        """Goes on from `asked` with these answers by key."""
        return await self.front.modern(self.method, self.again(asked, answers), ident=ident, **{**self.more, **more})

    def again(self, asked: Answer, answers: Json) -> Json:
        return {**self.params, "inputResponses": answers, "requestState": asked.result["requestState"]}

    async def answer_all(self, asked: Answer, *results: Json, ident: Any = 2) -> Answer:
        """Answers every ask, in their order; the last result repeats."""
        keys = list(entries(asked))
        told = [results[min(n, len(results) - 1)] for n in range(len(keys))]
        return await self.retry(asked, dict(zip(keys, told, strict=True)), ident)


async def next_ask(stream: Open) -> Json:
    """The next request of the server's on a legacy client's stream."""
    while (message := await stream.message()) is not None:
        if "id" in message and "method" in message:
            return message
    raise AssertionError("the stream ended without an ask")
