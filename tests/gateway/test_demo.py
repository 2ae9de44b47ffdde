"""The demo as a newcomer runs it: what it shows is what happened, what it offers to paste works, and nothing of it
stays behind, however it ends."""

import asyncio
import contextlib
import json
import os
import re
import shlex
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from mcp import Client, MCPError

from gateway.demo.children import running
from gateway.demo.pairings import HARBOUR, MODERN, SAMPLES, WEATHER, seen_at

DEADLINE_S = 60.0
"""Four processes start, one of them four times a client, on a busy machine."""


@asynccontextmanager
async def demo(*arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gateway", "demo", *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(DEADLINE_S):
            yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        async with asyncio.timeout(DEADLINE_S):
            await process.communicate()  # ends when every process that holds the other ends of the pipes has


async def until_serving(process: asyncio.subprocess.Process) -> str:
    """What it prints up to the line that says that it serves."""
    assert process.stdout is not None
    return (await process.stdout.readuntil(b"until Ctrl-C\n")).decode()


def addresses(text: str) -> set[tuple[str, int]]:
    return {(host, int(port)) for host, port in re.findall(r"http://([\d.]+):(\d+)", text)}


async def test_all_four_pairings_get_the_same_answers_and_each_upstream_sees_its_own_era_alone() -> None:
    async with demo("--once", "--listen", "127.0.0.1:0") as process:
        out, err = await process.communicate()
    assert (process.returncode, err.decode()) == (0, "")
    text = out.decode()
    assert "FAILED" not in text
    blocks = re.split(r"^\d\. ", text, flags=re.MULTILINE)[1:]
    assert len(blocks) == 4
    found: dict[str, list[dict[str, str]]] = {sample.name: [] for sample in SAMPLES}
    for block in blocks:
        lines = [re.split(r"\s{2,}", line.strip(), maxsplit=1) for line in block.splitlines()[1:] if line.strip()]
        name = block.partition(" asks ")[2].partition(",")[0]
        found[name].append({what: answer for what, answer in lines if not what.endswith(" saw")})
        saw = "\n".join(answer for what, answer in lines if what.endswith(" saw"))
        if name == "harbour":
            assert "tools/call" in saw
            assert "2026-07-28" not in saw.replace("server/discover (a probe)   (2026-07-28)", "")
        else:
            assert "tools/call" in saw
            assert "2025" not in saw.replace("initialize (a probe)   (2025-11-25)", "")
            assert "session" not in saw
    for name, answers in found.items():
        paired, bridged = (
            {what: answer for what, answer in entry.items() if what not in {"speaks", "without the gateway"}}
            for entry in answers
        )
        assert len(paired) == 5, name
        assert paired == bridged
        assert [entry["speaks"] for entry in answers] == ["2025-11-25", "2026-07-28"]
    assert found["harbour"][1]["without the gateway"].startswith("refused: ")
    assert found["weather"][0]["without the gateway"].startswith("refused: ")


async def test_what_it_offers_to_paste_works_as_pasted() -> None:
    async with demo("--listen", "127.0.0.1:0") as process:
        text = await until_serving(process)
        configs = [json.loads(config) for config in re.findall(r"^\{\n.*?^\}$", text, re.MULTILINE | re.DOTALL)]
        answers = [await pasted(line) for line in re.findall(r"^curl .*?\n(?=\n)", text, re.MULTILINE | re.DOTALL)]
        urls = [entry["url"] for config in configs[:2] for servers in config.values() for entry in servers.values()]
        for url in urls:
            async with Client(url) as client:
                assert (await client.list_tools()).tools
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 0
    assert len(configs) == 3
    assert len(urls) == 4
    assert [entry["args"][-1] for entry in configs[2]["mcpServers"].values()] == urls[:2]
    assert [entry["result"].get("content", [{}])[0].get("text") for entry in answers] == [
        "Lisbon: sunny, 24 °C",
        "09:30",
        None,
    ]
    assert answers[2]["result"]["protocolVersion"] == "2025-11-25"


async def pasted(line: str) -> dict[str, Any]:
    """What a `curl` line with the few options that the demo uses does, and its JSON answer."""
    words = shlex.split(line.replace("\\\n", " "))
    assert words.pop(0) == "curl"
    url, headers, body = "", {}, ""
    while words:
        match words.pop(0):
            case "-sS":
                pass
            case "-w":
                words.pop(0)
            case "-H":
                name, _, value = words.pop(0).partition(": ")
                headers[name] = value
            case "-d":
                body = words.pop(0)
            case word:
                url = word
    async with aiohttp.ClientSession() as http, http.post(url, headers=headers, data=body) as response:
        assert response.status == 200
        text = await response.text()
    if response.content_type == "text/event-stream":
        text = text.rpartition("data:")[2]
    answer: dict[str, Any] = json.loads(text)
    return answer


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
async def test_nothing_of_it_runs_on_however_it_ends(number: signal.Signals) -> None:
    async with demo("--listen", "127.0.0.1:0") as process:
        text = await until_serving(process)
        parts = addresses(text)
        assert len(parts) == 3
        connections = [await asyncio.open_connection(*address) for address in parts]
        process.send_signal(number)
        for reader, writer in connections:  # each ends when the process at its other end does
            with contextlib.suppress(ConnectionResetError):
                assert await reader.read() == b""
            writer.close()
        for address in parts:
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(address)
        assert await process.wait() == (0 if number == signal.SIGTERM else -signal.SIGKILL)


async def test_an_address_that_is_taken_is_told_and_ends_with_3() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        async with demo("--once", "--listen", address) as process:
            out, err = await process.communicate()
    assert (process.returncode, out) == (3, b"")
    assert address in err.decode()
    assert err.count(b"\n") == 1


@pytest.mark.parametrize(
    ("sample", "own", "other", "refusal"),
    [
        (HARBOUR, "legacy", MODERN, "Unsupported protocol version: 2026-07-28"),
        (WEATHER, MODERN, "legacy", "Unsupported protocol version: 2025-11-25"),
    ],
    ids=lambda value: getattr(value, "name", value),
)
async def test_each_sample_speaks_one_era_and_notes_what_it_sees(
    sample: Any, own: str, other: str, refusal: str
) -> None:
    async with running("sample", sample.name) as url:
        async with Client(url, mode=own) as client:
            assert await client.list_tools()
        seen = await seen_at(url.removesuffix("/mcp"))
        assert "tools/list" in [entry.what for entry in seen]
        assert {entry.in_session for entry in seen if entry.what == "tools/list"} == {sample is HARBOUR}
        with pytest.raises((MCPError, ExceptionGroup)) as refused:
            async with Client(url, mode=other) as client:
                await client.list_tools()
        assert refused.group_contains(MCPError, match=refusal) or refusal in str(refused.value)
        assert len(await seen_at(url.removesuffix("/mcp"))) == 1
        async with Client(url, mode="auto") as client:
            assert client.protocol_version == ("2025-11-25" if sample is HARBOUR else "2026-07-28")
