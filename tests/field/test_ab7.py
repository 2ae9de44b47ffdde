"""Field report AB7: whatever clients send, the number of series in `/metrics` stays what the configuration makes it."""

import asyncio
import json
import random

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.gateway_process import running
from tests.http_wire import Buffered, header_bytes, read_body, read_head
from tests.peers import LegacyUpstream, ModernUpstream
from tests.raw_front import BOTH_TYPES, LEGACY, MODERN, Front, modern_request
from tests.scripted import Call, Err

REQUESTS = 3000
"""Each with names of its own: a series for any of them would show, and a hundred times as many say no more."""
CONNECTIONS = 8
MARK = "planted"


async def series(front: Front) -> set[tuple[str, tuple[tuple[str, str], ...]]]:
    answer = await front.send("GET", {})
    assert answer.status == 200
    assert MARK not in answer.body.decode()
    families = text_string_to_metric_families(answer.body.decode())
    return {(sample.name, tuple(sorted(sample.labels.items()))) for family in families for sample in family.samples}


def odd_request(chance: random.Random, number: int) -> tuple[str, str, dict[str, str], bytes]:
    """A request of one of twelve kinds, everything in it that a client chooses being new."""
    word = f"{MARK}{number}-{chance.randrange(2**32)}"
    kind = number % 12
    method = "tools/call" if kind % 2 else word
    message = modern_request(method, {"name": word, "arguments": {}})
    message["params"]["_meta"]["io.modelcontextprotocol/clientInfo"] = {"name": word, "version": word}
    headers = {"Mcp-Method": method, "Mcp-Name": word, "MCP-Protocol-Version": MODERN, "User-Agent": word}
    verb, path = "POST", ("/modern", "/legacy")[number % 2]
    match kind:
        case 2:
            path = f"/{word}"
        case 3:
            headers["MCP-Protocol-Version"] = word
        case 4:
            headers |= {"Mcp-Session-Id": word, "MCP-Protocol-Version": LEGACY}
        case 5:
            headers["Mcp-Method"] = word
        case 6:
            verb = chance.choice(["PUT", "PATCH", "OPTIONS", "PROPFIND"])
        case 7:
            headers["Host"] = word
        case 8:
            headers["Authorization"] = f"Bearer {word}"
    return verb, path, headers, json.dumps(message).encode()


async def flood(front: Front, numbers: range, seed: int) -> int:
    """Sends these requests one after another; how many were answered."""
    chance, answered = random.Random(seed), 0
    for batch in _batches(numbers, 50):
        reader, writer = await asyncio.open_connection(front.host, front.port)
        stream = Buffered(reader)
        for number in batch:
            verb, path, headers, body = odd_request(chance, number)
            every = {"Host": f"127.0.0.1:{front.port}", "Content-Type": "application/json", "Accept": BOTH_TYPES}
            lines = [*{**every, **headers}.items(), ("Content-Length", str(len(body)))]
            writer.write(header_bytes(f"{verb} {path} HTTP/1.1", lines) + body)
            _, got = await read_head(stream)
            await read_body(stream, got, response=True)
            answered += 1
            if (got.get("Connection") or "").lower() == "close":
                writer.close()
                reader, writer = await asyncio.open_connection(front.host, front.port)
                stream = Buffered(reader)
        writer.close()
    return answered


async def odd_error(call: Call) -> Err:
    """An error with a code of the server's own, another one for each call."""
    return Err(-30000 - next(call.upstream.numbers))


def _batches(numbers: range, size: int) -> list[range]:
    return [numbers[at : at + size] for at in range(0, len(numbers), size)]


@pytest.mark.field("AB7")
async def test_metrics_do_not_grow_with_what_clients_send() -> None:
    async with LegacyUpstream() as legacy, ModernUpstream() as modern:
        for upstream in (legacy, modern):
            upstream.on["tools/call"] = odd_error
        async with running({"legacy": legacy, "modern": modern}, admin="127.0.0.1:0") as gateway:
            front, admin = gateway.front("/modern"), Front(gateway.admin_url + "/metrics")
            assert await flood(front, range(24 * 4), 1) == 96
            before = await series(admin)
            share = REQUESTS // CONNECTIONS
            answered = await asyncio.gather(
                *(flood(front, range(1000 + at * share, 1000 + (at + 1) * share), at) for at in range(CONNECTIONS))
            )
            assert sum(answered) == share * CONNECTIONS
            assert await series(admin) == before
            assert MARK not in gateway.stderr()
