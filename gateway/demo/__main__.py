"""`mcp-front-door demo`: sample upstreams, the gateway, the four pairings, then serving until Ctrl-C.

    sample upstreams    harbour (sessions only), weather (2026-07-28 only), a process each
    the gateway         a process too, started as an operator would, from a configuration file
    this process        starts and ends them, runs official clients through all four pairings, prints

Needs the extra `demo`, that is the official SDK; only this package imports it.
"""

import argparse
import asyncio
import contextlib
import importlib.metadata
import json
import signal
import socket
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from gateway import exit_codes
from gateway.demo import paste
from gateway.demo.children import ChildFailed, running
from gateway.demo.pairings import CLIENTS, SAMPLES, show

DEFAULT_PORT: Final = 8080


async def demonstrate(listen: str, once: bool) -> bool:
    """The whole demo. Ends by itself only if `once`, and then says whether every pairing worked; cancelled, it takes
    everything down with it."""
    _cancel_on_sigterm()
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mcp-front-door-")))
        upstreams = {sample.name: await stack.enter_async_context(running("sample", sample.name)) for sample in SAMPLES}
        config = folder / "demo.yaml"
        config.write_text(_config(listen, upstreams), encoding="utf-8")
        base = await stack.enter_async_context(running("front", "-c", str(config)))
        print(f"mcp-front-door {importlib.metadata.version('mcp-front-door')} at {base}")
        for sample in SAMPLES:
            print(f"  {base}{sample.path:<12} -> {sample.name}, {upstreams[sample.name]}, which speaks {sample.speaks}")
        print(f"clients and sample servers: the official SDK, mcp {importlib.metadata.version('mcp')}\n", flush=True)
        pairings = [(client, sample) for sample in SAMPLES for client in CLIENTS]
        works = True
        for number, (client, sample) in enumerate(pairings, start=1):
            works &= await show(number, client, sample, base, upstreams[sample.name].removesuffix("/mcp"))
        if once:
            return works
        print(paste.hosts(base, {sample.name: sample.path for sample in SAMPLES}))
        for about, line in paste.curls(base):
            print(f"\n# {about}\n{line}")
        print(f"\nserving on {base} until Ctrl-C", flush=True)
        return await asyncio.Event().wait()


def _config(listen: str, upstreams: dict[str, str]) -> str:
    """The gateway's configuration file (JSON is YAML)."""
    document = {
        "listen": listen,
        "upstreams": {name: {"url": url} for name, url in upstreams.items()},
        "routes": [{"path": sample.path, "upstream": sample.name} for sample in SAMPLES],
    }
    return json.dumps(document, indent=2)


def _cancel_on_sigterm() -> None:
    """Lets SIGTERM end the demo as Ctrl-C does; Windows has no such signal."""
    task = asyncio.current_task()
    assert task is not None
    with contextlib.suppress(NotImplementedError):
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)


def _free_address() -> str:
    """The default address, or a free port where it is taken."""
    try:
        socket.create_server(("127.0.0.1", DEFAULT_PORT)).close()
    except OSError:
        print(f"127.0.0.1:{DEFAULT_PORT} is taken; any free port will do (choose one with --listen)")
        return "127.0.0.1:0"
    return f"127.0.0.1:{DEFAULT_PORT}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="mcp-front-door demo")
    parser.add_argument("--listen")
    parser.add_argument("--once", action="store_true")
    options = parser.parse_args()
    try:
        works = asyncio.run(demonstrate(options.listen or _free_address(), options.once))
    except (KeyboardInterrupt, asyncio.CancelledError):
        return exit_codes.OK
    except ChildFailed as error:
        if error.code is None:  # else the child has said why
            print(error, file=sys.stderr)
        return error.code or exit_codes.FAILED
    return exit_codes.OK if works else exit_codes.UPSTREAM_FAILED


if __name__ == "__main__":
    sys.exit(main())
