"""Runs official clients of both eras through all four pairings and prints what each got and what each upstream saw."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

import aiohttp
from mcp import Client, MCPError
from mcp_types import TextContent, TextResourceContents

from gateway.demo.one_era import SEEN_PATH, Seen

MODERN: Final = "2026-07-28"


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample upstream and what is asked of it. `probe` is the other era's request that may find out its era."""

    name: str
    speaks: str
    probe: str
    path: str
    call: tuple[str, Mapping[str, Any]]
    slow: tuple[str, Mapping[str, Any]]
    resource: str
    prompt: tuple[str, Mapping[str, str]]


HARBOUR: Final = Sample(
    name="harbour",
    speaks="only sessions (2025-11-25 and earlier)",
    probe="server/discover",
    path="/legacy/mcp",
    call=("ferries", {"port": "Ostend"}),
    slow=("tides", {"days": 3}),
    resource="harbour://board",
    prompt=("crossing", {"port": "Ostend"}),
)
WEATHER: Final = Sample(
    name="weather",
    speaks="only 2026-07-28",
    probe="initialize",
    path="/modern/mcp",
    call=("sky", {"city": "Bergen"}),
    slow=("tour", {}),
    resource="weather://stations",
    prompt=("packing", {"city": "Bergen"}),
)
SAMPLES: Final = (HARBOUR, WEATHER)
CLIENTS: Final = (("a session client", "legacy"), ("a 2026-07-28 client", MODERN))


async def show(number: int, client: tuple[str, str], sample: Sample, front: str, upstream: str) -> bool:
    """Runs one pairing and prints it. `front` and `upstream` are URLs without a path. False where it failed."""
    who, mode = client
    failure = None
    print(f"{number}. {who} asks {sample.name}, which speaks {sample.speaks}")
    if refusal := await _refusal(f"{upstream}/mcp", mode):
        _print("without the gateway", refusal)
    await seen_at(upstream)
    try:
        for what, answer in await _talk(front + sample.path, mode, sample):
            _print(what, answer)
    except* (MCPError, OSError) as group:
        failure = reason(group)
        _print("FAILED", failure)
    for line in told(await seen_at(upstream), sample):
        _print(f"{sample.name} saw", line)
    print(flush=True)
    return failure is None


def _print(what: str, answer: str) -> None:
    print(f"     {what:<24} {answer}")


async def _refusal(url: str, mode: str) -> str | None:
    """What the upstream itself says to such a client, None where it serves it."""
    refusal = None
    try:
        async with Client(url, mode=mode) as client:
            await client.list_tools()
    except* MCPError as group:
        refusal = f"refused: {reason(group).partition('. ')[0]}"
    return refusal


def reason(error: BaseException) -> str:
    """The first message inside an exception or a group of them."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__


async def seen_at(upstream: str) -> list[Seen]:
    """What a sample upstream has seen since it was last asked."""
    async with aiohttp.ClientSession() as http, http.get(upstream + SEEN_PATH) as response:
        return [Seen(**entry) for entry in await response.json()]


async def _talk(url: str, mode: str, sample: Sample) -> list[tuple[str, str]]:
    steps: list[str] = []

    async def progress(progress: float, total: float | None, message: str | None) -> None:
        steps.append(message or f"{progress:g} of {total:g}")

    async with Client(url, mode=mode) as client:
        tools = await client.list_tools()
        call = await client.call_tool(sample.call[0], dict(sample.call[1]))
        slow = await client.call_tool(sample.slow[0], dict(sample.slow[1]), progress_callback=progress)
        read = await client.read_resource(sample.resource)
        prompt = await client.get_prompt(sample.prompt[0], dict(sample.prompt[1]))
        spoken = client.protocol_version
    texts = [entry.text for entry in read.contents if isinstance(entry, TextResourceContents)]
    said = [message.content.text for message in prompt.messages if isinstance(message.content, TextContent)]
    return [
        ("speaks", spoken),
        ("tools", ", ".join(tool.name for tool in tools.tools)),
        (_invocation(*sample.call), _texts(call.content)),
        (_invocation(*sample.slow), f"{_texts(slow.content)}   (progress: {', '.join(steps) or 'none'})"),
        (sample.resource, " | ".join(" ".join(text.split()) for text in "\n".join(texts).splitlines())),
        (f"prompt {sample.prompt[0]}", " ".join(said)),
    ]


def _invocation(name: str, arguments: Mapping[str, Any]) -> str:
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"


def _texts(content: list[Any]) -> str:
    return ", ".join(entry.text for entry in content if isinstance(entry, TextContent))


def told(seen: list[Seen], sample: Sample) -> Iterator[str]:
    """Requests in their order, those in a row that speak alike on one line."""
    for (version, in_session), entries in groupby(seen, key=lambda entry: (entry.version, entry.in_session)):
        where = ", in a session" if in_session else ""
        whats = [f"{entry.what} (a probe)" if entry.what == sample.probe else entry.what for entry in entries]
        yield f"{', '.join(whats)}   ({version or 'no version'}{where})"
