"""FastMCP's proxy with its response cache, on one shared client, which is its fastest set-up.

python -m tests.bench.fastmcp_cache PORT URL
"""

import sys

import uvicorn
import uvloop
from fastmcp import Client
from fastmcp.server import create_proxy
from fastmcp.server.middleware.caching import ResponseCachingMiddleware


async def main(port: int, url: str) -> None:
    async with Client(url) as client:
        proxy = create_proxy(client, name="cached")
        proxy.add_middleware(ResponseCachingMiddleware())
        app = proxy.http_app(path="/mcp", stateless_http=True, json_response=True)
        config = uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error", access_log=False)
        await uvicorn.Server(config).serve()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]), sys.argv[2]))
