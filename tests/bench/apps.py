"""What a host without Apps costs: the scan for marks of an interface, beside the decoding that it spares.

`python -m tests.bench.apps` (make bench-apps). Each line has the scan's time as a multiple of `orjson.loads` of the
same body in the same run, which is what a slower machine does not change; then what `strip_message` takes where there
is something to take out. The least of many short batches counts: whatever else runs on the machine only ever adds.
"""

import argparse
import base64
import random
import time
from collections.abc import Callable

import orjson

from policies import apps
from policies.apps_marks import might_show
from policies.mcp import Json

SIZES = {"300 B": 300, "10 KiB": 10 << 10, "1 MiB": 1 << 20}
TEXT = "Get current weather information for a location. It tells the model when to use the tool. "
QUOTED = 'He said "yes", and\nwent on: C:\\temp\n'


def tool(number: int) -> Json:
    properties = {"city": {"type": "string", "description": "City name"}, "days": {"type": "integer", "minimum": 1}}
    schema = {"type": "object", "properties": properties, "required": ["city"]}
    return {"name": f"tool_{number:04d}", "title": f"Tool {number}", "description": TEXT, "inputSchema": schema}


def body(result: Json) -> bytes:
    return orjson.dumps({"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete", **result}})


def block(text: str) -> bytes:
    return body({"content": [{"type": "text", "text": text}]})


def image(size: int) -> bytes:
    data = base64.b64encode(random.Random(1).randbytes(size * 3 // 4)).decode()
    return body({"content": [{"type": "image", "mimeType": "image/png", "data": data}]})


BODIES: dict[str, Callable[[int], bytes]] = {
    # kinds of a body of about so many bytes, none with anything of an interface
    "text": lambda size: block((TEXT * (size // len(TEXT) + 1))[: max(1, size - 100)]),
    "text, quoted": lambda size: block((QUOTED * (size // len(QUOTED) + 1))[: max(1, size - 100)]),
    "image": lambda size: image(max(60, size - 130)),
    "list of tools": lambda size: body({"tools": [tool(number) for number in range(max(1, size // 330))]}),
}


def with_interface(raw: bytes) -> bytes:
    """The same with one thing to take out, at its end."""
    message = orjson.loads(raw)
    message["result"]["_meta"] = {"ui": {"resourceUri": "ui://a"}}
    return orjson.dumps(message)


def least_us(run: Callable[[], object], seconds: float) -> float:
    """The time of one run in microseconds: that of the quickest batch of about a millisecond."""
    began = time.perf_counter()
    run()
    number = max(1, int(1e-3 / max(time.perf_counter() - began, 1e-7)))
    best, end = float("inf"), began + seconds
    while time.perf_counter() < end:
        began = time.perf_counter()
        for _ in range(number):
            run()
        best = min(best, time.perf_counter() - began)
    return best / number * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures the scan for marks of MCP Apps.")
    parser.add_argument("--seconds", type=float, default=0.5, help="how long each is measured (default: %(default)s)")
    seconds = parser.parse_args().seconds
    print(f"{'body':24} {'bytes':>8} {'loads us':>10} {'scan us':>10} {'ratio':>6} {'strip us':>10} {'ratio':>6}")
    for kind, make in BODIES.items():
        for name, size in SIZES.items():
            raw = make(size)
            marked = with_interface(raw)
            assert not might_show(raw), "a body without marks would be decoded"
            assert apps.strip_message(marked, "tools/call") != marked
            loads = least_us(lambda raw=raw: orjson.loads(raw), seconds)
            scan = least_us(lambda raw=raw: might_show(raw), seconds)
            strip = least_us(lambda raw=marked: apps.strip_message(raw, "tools/call"), seconds)
            ratios = f"{scan:10.2f} {scan / loads:6.2f} {strip:10.2f} {strip / loads:6.2f}"
            print(f"{kind + ', ' + name:24} {len(raw):8} {loads:10.2f} {ratios}")


if __name__ == "__main__":
    main()
