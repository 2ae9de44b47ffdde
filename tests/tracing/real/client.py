"""The official SDK's client, which sends its spans: `client.py COLLECTOR URL MODE TOOL ARGUMENTS`."""

import asyncio
import json
import sys

import traced
from mcp import Client

COLLECTOR, URL, MODE, TOOL, ARGUMENTS = sys.argv[1:]


async def main() -> None:
    async with Client(URL, mode=MODE, read_timeout_seconds=20) as client:  # type: ignore[arg-type]
        await client.list_tools()
        result = await client.call_tool(TOOL, json.loads(ARGUMENTS))
        print(client.protocol_version, result.is_error)


traced.send("host", COLLECTOR)
asyncio.run(main())
