"""A server on the official Python SDK 2.x, of both eras, that writes each execution of its tool into a file.

python -m tests.gateway.marking_server FILE [PORT]
"""

import socket
import sys
from pathlib import Path

import uvicorn
from mcp.server.mcpserver import MCPServer


def main() -> None:
    file, port = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    listener = socket.create_server(("127.0.0.1", port))
    server = MCPServer("marks", log_level="WARNING")

    @server.tool()
    def mark(key: str) -> str:
        with file.open("a") as marks:
            marks.write(f"{key}\n")
        return key

    print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    config = uvicorn.Config(server.streamable_http_app(), log_level="error", timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
