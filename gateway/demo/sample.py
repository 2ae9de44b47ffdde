"""A sample upstream as a child process of the demo, which ends with its parent (`leash.py`).

    python -m gateway.demo.sample harbour | weather

Prints `listening on http://127.0.0.1:PORT/mcp` once it listens; ends on SIGTERM.
"""

import socket
import sys
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from gateway.demo import harbour, leash, weather
from gateway.demo.one_era import OneEra

SAMPLES: Final[dict[str, ASGIApp]] = {
    "harbour": OneEra(harbour.server.streamable_http_app(), "sessions"),
    "weather": OneEra(weather.server.streamable_http_app(), "stateless"),
}


def serve(name: str) -> None:
    """Serves a sample on a free port of this machine alone."""
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    # A client's open stream would otherwise hold up the end of this process.
    config = uvicorn.Config(SAMPLES[name], log_level="error", timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    leash.hold()
    serve(sys.argv[1])
