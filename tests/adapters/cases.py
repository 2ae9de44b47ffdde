"""Which adapters talk with which provider's API, and the conversations that they have."""

import asyncio
import json
import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.adapters.dialects import Turn
from tests.matrix.machinery import ROOT
from tests.scripted import Json

HERE = Path(__file__).parent / "real"
PYTHON = str(ROOT / ".envs/adapters/bin/python")

DEADLINE_S = 240.0
"""For all conversations of an adapter, on a machine that others use; usually it is half a minute for all adapters."""

UI: Sequence[Turn] = [("chart",), "Drawn.", ("small", "packed", "only", "apart"), "Drawn again."]
PLAIN: Sequence[Turn] = [("look",), "Looked.", ("look",), "Looked again."]
LINKS: Sequence[Turn] = [("point",), "There.", ("point",), "There again."]
LIBRARY: Sequence[Turn] = [
    ("6-html", "6-packed"),
    "Shown.",
    ("6-described", "5-skybridge", "6-html-alone"),
    "Shown again.",
]
PUBLISHED: Sequence[Turn] = [("get-system-info",), "So it is.", ("get-system-info",), "So it is still."]
SCRIPTS = {"ui": UI, "plain": PLAIN, "links": LINKS, "library": LIBRARY, "published": PUBLISHED}
"""By server, what the model does: two questions, each with calls and a text."""

DIRECT, THROUGH, ONCE = "direct", "through", "once"
"""Whether the provider's API is spoken to directly, or through the gateway's provider plane; that is also set to send
one copy of what stands there twice."""
PREFIXES = {DIRECT: "", THROUGH: "/llm/{}", ONCE: "/once/{}"}
"""What stands before an API's own path, by its dialect."""


@dataclass(frozen=True, slots=True)
class Case:
    """One way from MCP to a provider. `holds`: the member of a body that holds the conversation."""

    adapter: str
    client: str
    dialect: str
    stream: bool
    holds: str = "messages"
    base: str = ""

    @property
    def name(self) -> str:
        return f"{self.adapter}-{self.client}{'-stream' if self.stream else ''}"

    @property
    def is_once(self) -> bool:
        """Whether it stands for those that differ from it in being streamed, or is the only one."""
        return not self.stream or (self.adapter == "strands" and self.client != "bedrock")

    def key(self, server: str, way: str) -> str:
        """The API key of a conversation."""
        return f"{self.name}.{way}.{server}"


OPENAI = (("chat", "messages"), ("responses", "input"))


def _cases() -> list[Case]:
    found: list[Case] = []
    for stream in (False, True):
        found += [Case("anthropic", client, "anthropic", stream) for client in ("threads", "whole")]
        for adapter in ("openai", "agents", "langchain"):
            found += [Case(adapter, api, "openai", stream, holds, "/v1") for api, holds in OPENAI]
        found.append(Case("langchain", "anthropic", "anthropic", stream))
        found.append(Case("gemini", "gemini", "gemini", stream, "contents"))
        found.append(Case("strands", "bedrock", "bedrock", stream))
    # these always stream
    found.append(Case("strands", "anthropic", "anthropic", stream=True))
    found.append(Case("strands", "gemini", "gemini", stream=True, holds="contents"))
    found.append(Case("strands", "chat", "openai", stream=True, base="/v1"))
    found.append(Case("strands", "responses", "openai", stream=True, holds="input", base="/v1"))
    return found


CASES = {case.name: case for case in _cases()}
BOTH_FORMS = [CASES[name] for name in ("openai-chat", "openai-responses", "gemini-gemini")]
"""What sends a result's words and its data."""
DATA_ALONE = [Case("agents", f"{api}-structured", "openai", False, holds, "/v1") for api, holds in OPENAI]
"""What sends its data where it has any, and else its words."""
LINKING = [
    *BOTH_FORMS,
    *(CASES[name] for name in ("agents-chat", "agents-responses", "langchain-responses", "langchain-anthropic")),
]
"""What sends a link of a result; the others leave it out, or fail."""
THREADS = [name for name, case in CASES.items() if case.client == "threads"]
"""What sends a provider that keeps the conversation only what is new."""


@dataclass(frozen=True, slots=True)
class Talk:
    """One conversation that is to be had."""

    case: Case
    server: str
    way: str

    @property
    def key(self) -> str:
        return self.case.key(self.server, self.way)


async def had(talks: Sequence[Talk], mcp: str, providers: dict[str, str]) -> dict[str, list[str]]:
    """Has the conversations, those of an adapter in one process; by key, what the model said. `mcp`: the origin of the
    MCP plane; `providers`: base URLs by way, before the dialect's own path."""
    by_adapter: dict[str, list[Talk]] = defaultdict(list)
    for talk in talks:
        by_adapter[talk.case.adapter].append(talk)
    said: dict[str, list[str]] = {}
    for found in await asyncio.gather(*(_had(name, mine, mcp, providers) for name, mine in by_adapter.items())):
        said |= found
    return said


async def _had(adapter: str, talks: Sequence[Talk], mcp: str, providers: dict[str, str]) -> dict[str, list[str]]:
    assert Path(PYTHON).exists(), f"{PYTHON} is missing: run 'make environments'"
    plan: Json = {"mcp": mcp, "conversations": [_told(talk, providers) for talk in talks]}
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        PYTHON, str(HERE / f"with_{adapter}.py"), stdin=pipe, stdout=pipe, stderr=pipe, env=_environment()
    )
    try:
        async with asyncio.timeout(DEADLINE_S):
            out, errors = await process.communicate(json.dumps(plan).encode())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, f"{adapter}: {errors.decode()[-2000:]}"
    return dict(zip([talk.key for talk in talks], json.loads(out), strict=True))


def _told(talk: Talk, providers: dict[str, str]) -> Json:
    case = talk.case
    way = providers[talk.way] + PREFIXES[talk.way].format(case.dialect) + case.base
    told = {"key": talk.key, "provider": way, "server": f"/{talk.server}", "client": case.client}
    return {**told, "stream": case.stream}


def _environment() -> dict[str, str]:
    """Without what the packages would take from it: keys, addresses, proxies, and where to report to."""
    prefixes = ("ANTHROPIC_", "OPENAI_", "GOOGLE_", "GEMINI_", "AWS_", "LANGCHAIN_", "LANGSMITH_", "OTEL_")
    kept = {name: value for name, value in os.environ.items() if not name.upper().startswith(prefixes)}
    return kept | {"NO_PROXY": "127.0.0.1", "AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": os.devnull}
