"""Real clients of tasks, of either era: what they get of a task through the gateway is what they get of it directly,
and a task that has failed, was called off, has expired or never was is never a success.

Specification: 2025-11-25 basic/utilities/tasks; for 2026-07-28 io.modelcontextprotocol/tasks (ext-tasks, draft).
"""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.gateway_process import running
from tests.matrix import machinery
from tests.scripted import Json

HERE = Path(__file__).parent
TASKS = str(machinery.ROOT / ".envs/tasks/bin/python")
CLIENTS = {
    "Python 1.x": [machinery.SDK1, str(HERE / "real/client_py1.py")],
    "TypeScript 1.x": [machinery.NODE, str(HERE / "real/client_ts1.mjs")],
    "FastMCP": [TASKS, str(HERE / "real/client_fastmcp.py")],
}
SERVERS: dict[str, tuple[list[str], str]] = {
    # and what they print before the rest of their URL when they are ready
    "Python 1.x": ([machinery.SDK1, str(HERE / "tools.py")], "http://"),
    "TypeScript 1.x": ([machinery.NODE, str(HERE / "tools.mjs")], "http://"),
    "FastMCP": ([TASKS, str(HERE / "real/server_fastmcp.py")], "http://"),
    "TypeScript 2.x": (
        [machinery.NODE, str(machinery.ROOT / "tests/conformance/upstream_tasks.mjs")],
        "listening on http://",
    ),
}


SUCCEED = ("work", "ask", "slow_compute", "confirm_delete", "multi_input")


def step(tool: str, do: str, **arguments: Any) -> Json:
    return {"tool": tool, "do": do, "arguments": arguments}


SESSIONS = [
    step("work", "result"),
    step("ask", "result"),
    step("fail", "result"),
    step("endless", "cancel"),
    step("work", "expire"),
    step("", "unknown"),
]
FASTMCP = [
    step("work", "call", number=1),
    step("work", "result", number=2),
    step("fail", "result"),
    step("endless", "cancel"),
    step("work", "unknown", number=3),
]
TYPESCRIPT_2 = [
    step("slow_compute", "call", seconds=0.3, label="größe"),
    step("slow_compute", "result", label="größe"),
    step("confirm_delete", "result", filename="größe"),
    step("multi_input", "result"),
    step("failing_job", "result"),
    step("protocol_error_job", "result"),
    step("slow_compute", "cancel", seconds=60),
    step("slow_compute", "unknown"),
]
CASES = [
    *((client, server, SESSIONS) for client in ("Python 1.x", "TypeScript 1.x") for server in tuple(SERVERS)[:2]),
    ("FastMCP", "FastMCP", FASTMCP),
    ("FastMCP", "TypeScript 2.x", TYPESCRIPT_2),
]
SEALING: Json = {"path": "/sealed", "default": "up", "rules": [{"name": "another's", "upstream": "other"}]}
ROUTES: list[Json] = [{"path": "/as-it-is", "upstream": "up"}, SEALING]


REFUSED, HEADER_MISMATCH = ("FastMCP", "TypeScript 2.x"), -32020
"""FastMCP's client leaves out `Mcp-Name`, and the TypeScript SDK's server insists on it: the gateway adds it."""


async def told(client: str, url: str, steps: list[Json]) -> list[Json]:
    """What a client has to say of each step."""
    command = CLIENTS[client]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=machinery.ROOT)
    try:
        async with asyncio.timeout(machinery.DRIVER_DEADLINE_S):
            plan = json.dumps({"url": url, "steps": steps}).encode()
            out, errors = await process.communicate(plan)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, errors.decode()[-6000:]
    said: list[Json] = json.loads(out)
    return said


async def served(client: str, server: str, way: str, steps: list[Json]) -> list[Json]:
    """The same before a server of its own, directly or on a route of the gateway. The Python SDK 1.x's server has one
    group of tasks for all its sessions: a task that fails ends its session, and takes the group away from the rest."""
    command, ready = SERVERS[server]
    with machinery.running(command, ready) as process:
        url = f"http://{process.said}"
        if not way:
            return await told(client, url, steps)
        async with running({"up": {"url": url}, "other": {"url": url}}, routes=ROUTES) as gateway:
            return await told(client, gateway.url + way, steps)


@pytest.mark.parametrize(("client", "server", "steps"), CASES, ids=[f"{one[0]} at {one[1]}" for one in CASES])
async def test_a_client_of_tasks_is_told_the_same_through_the_gateway(
    client: str, server: str, steps: list[Json]
) -> None:
    directly, as_it_is, sealed = [await served(client, server, way, steps) for way in ("", "/as-it-is", "/sealed")]
    if (client, server) == REFUSED:
        assert {said["error"]["code"] for said in directly} == {HEADER_MISMATCH}
    else:
        assert as_it_is == directly
    assert list(map(without_words, sealed)) == list(map(without_words, as_it_is))
    for one, said in zip(steps, sealed, strict=True):
        assert succeeded(said) == (one["tool"] in SUCCEED and one["do"] in ("call", "result")), (one, said)


def without_words(said: Json) -> Json:
    """Without the words of an error, which may name the task, as the upstream calls it."""
    code = said.get("error", {}).get("code")
    return said if code is None else {**said, "error": {"code": code}}


def succeeded(said: Json) -> bool:
    """Whether a client that looks at a task's status, and at what it has, takes it for a success."""
    result = said.get("result")
    is_error = isinstance(result, dict) and result.get("isError") is True
    return result is not None and not is_error and said.get("status") not in ("failed", "cancelled")
