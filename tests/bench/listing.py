"""An upstream of 2026-07-28 whose list of tools takes 100 KiB, answered in the microseconds that a canned answer takes.

python -m tests.bench.listing PORT
"""

import asyncio
import json
import re
import sys
from typing import cast

import uvloop

KIB = 100
_ID = re.compile(rb'"id": ?("[^"]*"|[0-9]+)')
_LENGTH = re.compile(rb"content-length: ?([0-9]+)", re.IGNORECASE)
CAPABILITIES = {"tools": {}}


def tools() -> list[dict[str, object]]:
    """So many tools that their list takes `KIB`."""
    schema = {"type": "object", "properties": {f"field{n}": {"type": "string"} for n in range(6)}}
    one = {"name": "tool000", "description": "Says what it was asked. " * 6, "inputSchema": schema}
    count = KIB * 1024 // (len(json.dumps(one)) + 2)
    return [{**one, "name": f"tool{n:03}"} for n in range(count)]


def _body(result: dict[str, object]) -> bytes:
    hints = {"resultType": "complete", "ttlMs": 3_600_000, "cacheScope": "public"}
    return json.dumps({**hints, **result}, separators=(",", ":")).encode()


DISCOVERED = _body({"supportedVersions": ["2026-07-28"], "capabilities": CAPABILITIES})
LISTED = _body({"tools": tools()})
ANSWERS = {b'"server/discover"': b'"result":' + DISCOVERED, b'"tools/list"': b'"result":' + LISTED}
UNKNOWN = b'"error":{"code":-32601,"message":"Method not found"}'


class Canned(asyncio.Protocol):
    def __init__(self) -> None:
        self._read = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)

    def data_received(self, data: bytes) -> None:
        self._read += data
        while b"\r\n\r\n" in self._read:
            head, _, rest = self._read.partition(b"\r\n\r\n")
            length = _LENGTH.search(head)
            size = int(length[1]) if length is not None else 0
            if len(rest) < size:
                return
            self._read = rest[size:]
            self._answer(rest[:size])

    def _answer(self, body: bytes) -> None:
        ident = _ID.search(body)
        outcome = next((said for method, said in ANSWERS.items() if method in body), UNKNOWN)
        said = b'{"jsonrpc":"2.0","id":%b,%b}' % (ident[1] if ident is not None else b"0", outcome)
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(said)
        self._transport.write(head + said)


async def main(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Canned, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1])))
