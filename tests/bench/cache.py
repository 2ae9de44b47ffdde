"""What a list of 100 KiB costs from where: this process's memory, the store, the server, nginx passing it through, and
FastMCP's response cache.

    make bench-cache [ARGS="--requests 5000 --rounds 6"]

All of them run at once and are asked in turns, 16 connections each, so that what the machine does meanwhile hits all.
Told is the CPU time of a server's own processes for one request, and its ratio to nginx, which does not depend on the
machine as times do. Nothing is asserted.
"""

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from tests.bench.listing import LISTED
from tests.fleet import KEYS
from tests.http_wire import body_parts, header_bytes, read_head
from tests.raw_front import Buffered, modern_headers, modern_request
from tests.valkey import free_port, started

CONNECTIONS: Final = 16
START_S: Final = 180.0
"""For the slowest of them to start on a busy machine."""
_TICKS: Final = os.sysconf("SC_CLK_TCK")
NGINX: Final = """
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/nginx.err;
events {{ worker_connections 1024; }}
http {{
  access_log off; keepalive_requests 1000000000; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  upstream up {{ server 127.0.0.1:{up}; keepalive 64; keepalive_requests 1000000000; }}
  server {{ listen 127.0.0.1:{port}; location / {{
    proxy_pass http://up; proxy_http_version 1.1; proxy_set_header Connection "";
    proxy_buffers 16 64k; proxy_busy_buffers_size 256k; proxy_max_temp_file_size 0;
  }} }}
}}
"""


@contextmanager
def process(command: Sequence[str], port: int) -> Iterator[int]:
    """Runs a server until the end, and waits until it listens; its process group."""
    env = {**os.environ, "FASTMCP_LOG_LEVEL": "ERROR"}
    child = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True, env=env
    )
    try:
        asyncio.run(_listens(port))
        yield child.pid
    finally:
        os.killpg(child.pid, 15)
        child.wait()


async def _listens(port: int) -> None:
    async with asyncio.timeout(START_S):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return


def cpu_s(group: int) -> float:
    """The CPU time of every process of a group so far."""
    total = 0
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        if int(fields[2]) == group:
            total += int(fields[11]) + int(fields[12])
    return total / _TICKS


async def load(port: int, cursors: Sequence[str], requests: int) -> None:
    """So many lists over `CONNECTIONS` connections, each whole."""
    numbers = iter(range(requests))

    async def one() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
        stream = Buffered(reader)
        for number in numbers:
            cursor = cursors[number % len(cursors)]
            message = modern_request("tools/list", {"cursor": cursor} if cursor else {}, ident=number)
            body = json.dumps(message).encode()
            head = {
                "Host": f"127.0.0.1:{port}",
                "Content-Type": "application/json",
                "Accept": "application/json, text/event-stream",
                "Content-Length": str(len(body)),
                **modern_headers(message),
            }
            writer.write(header_bytes("POST /mcp HTTP/1.1", list(head.items())) + body)
            start, headers = await read_head(stream)
            size = sum([len(part) async for part in body_parts(stream, headers, response=True)])
            assert " 200 " in start, start
            assert size > len(LISTED) / 2, f"{size} bytes are no list"
        writer.close()

    await asyncio.gather(*(one() for _ in range(CONNECTIONS)))


def gateway(folder: Path, name: str, up: int, store: str, **more: Any) -> tuple[list[str], int]:
    port = free_port()
    upstream = {"url": f"http://127.0.0.1:{up}/mcp", "era": "modern", **more.pop("upstream", {})}
    settings = {
        "listen": f"127.0.0.1:{port}",
        "keys": KEYS,
        "store": {"url": store, "prefix": name},
        "upstreams": {"up": upstream},
        "routes": [{"path": "/mcp", "upstream": "up"}],
        "cache": {"max_bytes": 64 << 20},
        **more,
    }
    path = folder / f"{name}.json"
    path.write_text(json.dumps(settings))
    return [sys.executable, "-m", "gateway", "serve", "-c", str(path)], port


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench-cache", description=__doc__)
    parser.add_argument("--requests", type=int, default=2000, help="lists of each in a round")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        store = stack.enter_context(started()).url
        up = free_port()
        stack.enter_context(process([sys.executable, "-m", "tests.bench.listing", str(up)], up))
        rows: dict[str, tuple[int, int, Sequence[str]]] = {}

        def run(name: str, command: list[str], port: int, cursors: Sequence[str] = ("",)) -> None:
            rows[name] = stack.enter_context(process(command, port)), port, cursors

        nginx = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
        if nginx is None:
            print("nginx is missing; install the package nginx-light for what others are held against")
        else:
            port = free_port()
            (folder / "nginx.conf").write_text(NGINX.format(folder=folder, up=up, port=port))
            run("nginx, passed through", [nginx, "-c", str(folder / "nginx.conf"), "-e", "/dev/null"], port)
        run("from memory", *gateway(folder, "memory", up, store))
        # what is held is smaller than one list with its answer, so that none stays
        run("from the store", *gateway(folder, "store", up, store, cache={"max_bytes": 150 * 1024}))
        off = {"cache": {"enabled": False}}
        run("from the server", *gateway(folder, "server", up, store, upstream=off))
        port = free_port()
        fastmcp = [sys.executable, "-m", "tests.bench.fastmcp_cache", str(port), f"http://127.0.0.1:{up}/mcp"]
        run("FastMCP's response cache", fastmcp, port)
        measure(rows, options.requests, options.rounds)
    return 0


def measure(rows: dict[str, tuple[int, int, Sequence[str]]], requests: int, rounds: int) -> None:
    spent: dict[str, list[float]] = {name: [] for name in rows}
    for turn in range(rounds + 1):
        for name, (group, port, cursors) in rows.items():
            count = requests if "FastMCP" not in name else max(CONNECTIONS, requests // 10)  # it takes its time
            before = cpu_s(group)
            asyncio.run(load(port, cursors, count))
            if turn:  # the first one warms up
                spent[name].append((cpu_s(group) - before) / count * 1e6)
    base = next((statistics.median(us) for name, us in spent.items() if name.startswith("nginx")), None)
    print(f"a list of {len(LISTED) / 1024:.0f} KiB, {CONNECTIONS} connections, {rounds} rounds of {requests}")
    print(f"{'':28}{'CPU us/request':>16}{'x nginx':>10}")
    for name, us in spent.items():
        median = statistics.median(us)
        print(f"{name:28}{median:16.0f}{f'{median / base:10.2f}' if base else '':>10}")


if __name__ == "__main__":
    sys.exit(main())
