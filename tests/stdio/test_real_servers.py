"""Real stdio servers behind the gateway, and official clients in front of it: by address before `serve -- COMMAND`, and
as hosts that launch `stdio -- COMMAND` themselves. Each sees what a client of the server's own era sees directly."""

import shlex
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.matrix.clients import CLIENTS
from tests.matrix.machinery import HERE, MAIN, NODE, ROOT, drive, running

PACKAGES = ROOT / "tests/node_modules/@modelcontextprotocol"
LISTS = [{"id": "tools", "op": "list", "what": "tools"}]
GRAPH = {"entities": [{"name": "Änn", "entityType": "person", "observations": ["says ☃"]}]}
SERVERS: dict[str, tuple[list[str], list[dict[str, Any]]]] = {
    "everything": (
        [NODE, str(PACKAGES / "server-everything/dist/index.js"), "stdio"],
        [
            *LISTS,
            {"id": "prompts", "op": "list", "what": "prompts"},
            {"id": "resources", "op": "list", "what": "resources"},
            {"id": "echo", "op": "call", "name": "echo", "arguments": {"message": "grüße ☃"}},
            {"id": "sum", "op": "call", "name": "get-sum", "arguments": {"a": 2, "b": 40}},
            {
                "id": "long",
                "op": "call",
                "name": "trigger-long-running-operation",
                "arguments": {"duration": 0.2, "steps": 2},
            },
        ],
    ),
    "memory": (
        [NODE, str(PACKAGES / "server-memory/dist/index.js")],
        [
            *LISTS,
            {"id": "create", "op": "call", "name": "create_entities", "arguments": GRAPH},
            {"id": "read", "op": "call", "name": "read_graph", "arguments": {}},
        ],
    ),
    "modern-only": (
        [NODE, str(HERE / "upstreams/modern_only.mjs"), "stdio"],
        [
            *LISTS,
            {"id": "prompts", "op": "list", "what": "prompts"},
            {"id": "echo", "op": "call", "name": "echo", "arguments": {"a": "grüße ☃"}},
            {"id": "where", "op": "call", "name": "where", "arguments": {"region": "größe"}},
            {"id": "progress", "op": "call", "name": "progress", "arguments": {"held": True}, "then": "go-on"},
        ],
    ),
}
SERVERS["both"] = ([*SERVERS["modern-only"][0], "serve"], SERVERS["modern-only"][1])
DIRECT = {"everything": "py1", "memory": "py1", "modern-only": "ts2-auto", "both": "ts2-auto"}
"""The client of the server's own era that the others are measured by."""
RUNS = [
    ("everything", "serve", "ts2-auto"),
    ("everything", "serve", "ts1"),
    ("everything", "stdio", "ts2-auto"),
    ("everything", "stdio", "py2-auto"),
    ("everything", "stdio", "ts1"),
    ("everything", "stdio", "py1"),
    ("memory", "serve", "ts2-auto"),
    ("memory", "serve", "py1"),
    ("memory", "stdio", "py2-auto"),
    ("memory", "stdio", "ts1"),
    ("modern-only", "serve", "py2-auto"),
    ("modern-only", "serve", "ts1"),
    ("modern-only", "stdio", "ts2-auto"),
    ("modern-only", "stdio", "py1"),
    ("both", "serve", "ts2-auto"),
    ("both", "serve", "py1"),
    ("both", "stdio", "py1"),
]


def command_of(server: str, folder: Path) -> list[str]:
    return ["env", f"MEMORY_FILE_PATH={folder / 'memory.jsonl'}", *SERVERS[server][0]]


@cache
def directly(server: str, folder: Path) -> dict[str, Any]:
    client = CLIENTS[DIRECT[server]]
    return drive(client.driver, command_of(server, folder), client.mode, SERVERS[server][1])


@pytest.mark.parametrize(("server", "way", "name"), RUNS)
def test_a_real_server_is_seen_as_it_is(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, server: str, way: str, name: str
) -> None:
    client, steps = CLIENTS[name], SERVERS[server][1]
    launch = command_of(server, tmp_path)
    if way == "serve":
        serve = [MAIN, "-m", "gateway", "serve", "--listen", "127.0.0.1:0", "--", *launch]
        with running(serve, "listening on ") as gateway:
            seen = drive(client.driver, f"{gateway.said}/mcp", client.mode, steps)
    else:
        # the SDKs launch with a bare environment; the server's is given on its own command line
        seen = drive(client.driver, [MAIN, "-m", "gateway", "stdio", "--", *launch], client.mode, steps)
    wanted = directly(server, tmp_path_factory.getbasetemp())
    said = {"legacy": ("2025-11-25", None), "modern": ("2026-07-28",)}[client.era]  # SDK v1 is not told over stdio
    assert seen["negotiated"] in said, shlex.join(launch)
    assert seen["server"]["name"] == wanted["server"]["name"]
    assert set(seen["steps"]) == {step["id"] for step in steps}
    for step, outcome in seen["steps"].items():
        assert essence(outcome) == essence(wanted["steps"][step]), step
    for step in {"progress", "long"} & set(wanted["steps"]):
        # how many is not the gateway's doing: the TypeScript client drops those that it reads together with the answer,
        # which comes once it has had one
        assert seen["progress"][step], step


def essence(outcome: dict[str, Any]) -> Any:
    """What both eras say of a result."""
    result = outcome.get("ok")
    assert result is not None, outcome
    return result["names"] if "names" in result else (result.get("content"), result.get("structuredContent"))
