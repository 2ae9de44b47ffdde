"""What stripping a request to an LLM provider costs, beside the decoding of it.

`python -m tests.bench.provider` (make bench-provider). Each line has the time of `candidates` and `strip` together as a
multiple of `orjson.loads` of the same body in the same run, which is what a slower machine does not change, and by
byte, which is what shows that it is linear in size. Without and with a ledger, and with an App: in one of 20 results,
or in each where they are JSON in strings. It is the processor's time that counts, and the least of many runs: whatever
else runs on the machine only ever adds.
"""

import argparse
import base64
import random
import time
from collections.abc import Callable

import orjson

from policies import provider
from policies.mcp import Json
from tests.bench.apps import QUOTED, TEXT

SIZES = {"10 KiB": 10 << 10, "1 MiB": 1 << 20, "20 MiB": 20 << 20}
APP: Json = {
    "type": "resource",
    "resource": {"uri": "ui://a/view.html", "mimeType": "text/html;profile=mcp-app", "text": "<!doctype html>"},
}


def rows(size: int) -> list[Json]:
    row = {"id": 12345, "name": "Ada Lovelace", "tags": ["a", "b"], "score": 0.75, "address": {"city": "London"}}
    return [row] * max(1, size // len(orjson.dumps(row)))


def text(size: int, app: list[Json]) -> list[Json]:
    return [{"type": "text", "text": (TEXT * (size // len(TEXT) + 1))[:size]}, *app]


def quoted(size: int, app: list[Json]) -> list[Json]:
    return [{"type": "text", "text": (QUOTED * (size // len(QUOTED) + 1))[:size]}, *app]


def document(size: int, app: list[Json]) -> list[Json]:
    result = {"content": [{"type": "text", "text": "hi"}, *app], "structuredContent": {"rows": rows(size)}}
    return [{"type": "text", "text": orjson.dumps(result).decode()}]


def image(size: int, app: list[Json]) -> list[Json]:
    data = base64.b64encode(random.Random(1).randbytes(size * 3 // 4)).decode()
    return [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}, *app]


RESULTS: dict[str, Callable[[int, list[Json]], list[Json]]] = {
    "text": text,
    "text, quoted": quoted,
    "JSON in strings": document,
    "images": image,
}


def body(make: Callable[[int, list[Json]], list[Json]], size: int, *, has_app: bool = False) -> bytes:
    """A conversation of 20 calls of about so many bytes."""
    messages: list[Json] = []
    for number in range(20):
        use = {"type": "tool_use", "id": f"c{number}", "name": "look", "input": {"number": number}}
        content = make(size // 20, [APP] if has_app and (number == 10 or make is document) else [])
        result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": content}
        messages += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    schema = {"type": "object", "properties": {"number": {"type": "integer"}}}
    tools = [{"name": "look", "description": TEXT, "input_schema": schema}]
    return orjson.dumps({"model": "m", "max_tokens": 100, "tools": tools, "messages": messages})


def stripped(raw: bytes, *, has_ledger: bool) -> provider.Stripped:
    return provider.strip(provider.candidates("anthropic", raw, "/v1/messages", has_ledger=has_ledger))


def least_us(run: Callable[[], object], seconds: float) -> float:
    """The processor's time of one run in microseconds: that of the quickest batch of about a millisecond."""
    run()
    number = max(1, int(1e-3 / max(_took_s(run, 1), 1e-6)))
    took, end = [_took_s(run, number)], time.monotonic() + seconds
    while time.monotonic() < end:
        took.append(_took_s(run, number))
    return min(took) / number * 1e6


def _took_s(run: Callable[[], object], number: int) -> float:
    began = time.process_time()
    for _ in range(number):
        run()
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures the stripping of requests to LLM providers.")
    parser.add_argument("--seconds", type=float, default=0.3, help="how long each is measured (default: %(default)s)")
    seconds = parser.parse_args().seconds
    print(f"{'results':16} {'size':7} {'loads us':>10} {'without ledger':>17} {'with one':>17} {'with an App':>17}")
    print(f"{'':35} " + " ".join([f"{'x loads':>8} {'ns/byte':>8}"] * 3))
    for kind, make in RESULTS.items():
        for name, size in SIZES.items():
            raw, marked = body(make, size), body(make, size, has_app=True)
            assert stripped(raw, has_ledger=True).body is raw
            assert stripped(marked, has_ledger=True).removed == {"resource": 20 if make is document else 1}
            loads = least_us(lambda raw=raw: orjson.loads(raw), seconds)
            columns = []
            for given, has_ledger in ((raw, False), (raw, True), (marked, True)):
                took = least_us(lambda given=given, ledger=has_ledger: stripped(given, has_ledger=ledger), seconds)
                columns.append(f"{took / loads:8.2f} {took * 1000 / len(given):8.3f}")
            print(f"{kind:16} {name:7} {loads:10.1f} {' '.join(columns)}")


if __name__ == "__main__":
    main()
