"""The MCP Apps servers of the tests: the official SDK's published samples, and one of our own on the SDK of both eras.

Each is a process on loopback (`loopback.cjs`), started once for a session of tests. What differs from call to call in
a sample's answers (`settled`) is named here, so that two answers can be compared.
"""

import re
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.matrix.machinery import NODE, ROOT
from tests.scripted import Json
from tests.sse.peers import served

HERE = Path(__file__).parent
PACKAGES = ROOT / "tests/node_modules/@modelcontextprotocol"


@dataclass(frozen=True, slots=True)
class Sample:
    """`eras`: those that it speaks. `calls`: tools that can be called by anybody, with their arguments, and `hidden`,
    those that only a view may call. `views`: its `ui://` resources. `settings`: more of what the gateway is told."""

    command: tuple[str, ...]
    views: tuple[str, ...]
    calls: dict[str, Json]
    hidden: dict[str, Json]
    eras: tuple[str, ...] = ("legacy",)
    settings: Json = field(default_factory=dict)


def _published(name: str, views: tuple[str, ...], calls: dict[str, Json], hidden: dict[str, Json]) -> Sample:
    script = PACKAGES / f"server-{name}" / "dist/index.js"
    more = ("--enable-interact", "PDF") if name == "pdf" else ()
    return Sample((NODE, "--require", str(HERE / "loopback.cjs"), str(script), *more), views, calls, hidden)


def _chart(speaks: str, **settings: Any) -> Sample:
    views = ("ui://chart/view.html", "ui://chart/packed.html", "ui://chart/by/7")
    calls: dict[str, Json] = {name: {} for name in ("draw", "embed", "only", "plain", "host")}
    eras = {"dual": ("modern", "legacy"), "legacy": ("legacy",)}.get(speaks, ("modern",))
    return Sample((NODE, str(HERE / "chart.mjs"), speaks), views, calls, {"refresh": {}}, eras, settings)


def _mcp_ui() -> Sample:
    kinds = ("html", "packed", "page", "dom", "skybridge", "adapted", "described")
    lines = [(5, kind) for kind in kinds] + [(6, kind) for kind in kinds if kind != "dom"]
    calls: dict[str, Json] = {f"{line}-{kind}{end}": {} for line, kind in lines for end in ("", "-alone")}
    return Sample((NODE, str(HERE / "mcp_ui.mjs")), (), calls, {}, ("modern",))


PDF = "PDF"
"""Stands for the path of the document that the PDF server was given."""
_BYTES: Json = {"url": PDF, "offset": 0, "byteCount": 524288}

SAMPLES = {
    "basic-react": _published("basic-react", ("ui://get-time/mcp-app.html",), {"get-time": {}}, {}),
    "map": _published("map", ("ui://cesium-map/mcp-app.html",), {"show-map": {"west": 9.5, "label": "Zürich"}}, {}),
    "system-monitor": _published(
        "system-monitor", ("ui://system-monitor/mcp-app.html",), {"get-system-info": {}}, {"poll-system-stats": {}}
    ),
    "budget-allocator": _published(
        "budget-allocator", ("ui://budget-allocator/mcp-app.html",), {"get-budget-data": {}}, {}
    ),
    "pdf": _published(
        "pdf",
        ("ui://pdf-viewer/mcp-app.html",),
        {"list_pdfs": {}, "display_pdf": {"url": PDF, "page": 1}},
        {"read_pdf_bytes": _BYTES},
    ),
    "chart-modern": _chart("modern"),
    "chart-sse": _chart("sse", verifies_headers=True),
    "chart-dual": _chart("dual"),
    "chart-legacy": _chart("legacy"),
    "mcp-ui": _mcp_ui(),
}


def document(folder: Path) -> Path:
    """A PDF of one page whose Base64 is large: a stream of 600 kB that nothing needs."""
    filler = b"%" + bytes(33 + n % 94 for n in range(600_000))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 72 72] >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(filler), filler),
    ]
    whole = bytearray(b"%PDF-1.4\n")
    places = []
    for number, body in enumerate(objects, 1):
        places.append(len(whole))
        whole += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    whole += b"xref\n0 %d\n0000000000 65535 f \n%strailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (
        size,
        table,
        size,
        len(whole),
    )
    file = folder / "sample.pdf"
    file.write_bytes(bytes(whole))
    return file


def with_document(value: Any, path: str) -> Any:
    """Arguments or a command with the path of the document in them."""
    if isinstance(value, dict):
        return {key: with_document(member, path) for key, member in value.items()}
    return path if value == PDF else value


def started(name: str, path: str) -> AbstractAsyncContextManager[str]:
    """Runs the server of that name; its URL. `path`: of the document."""
    return served([with_document(word, path) for word in SAMPLES[name].command])


_VARIES = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", re.IGNORECASE)


LONG = 10_000
"""Characters of a string in which nothing is looked for: what varies is short."""


def settled(value: Any) -> Any:
    """An answer with every UUID and instant in it replaced by what kind of thing it is, and each measurement of the
    system monitor's polling by its type."""
    if isinstance(value, dict):
        polled = {"cpu", "memory", "uptime", "timestamp"} <= value.keys()
        return {key: _typed(member) if polled else settled(member) for key, member in value.items()}
    if isinstance(value, list):
        return [settled(member) for member in value]
    if isinstance(value, str) and len(value) < LONG:
        if value.startswith("{") and '"uptime"' in value:
            return "measured"
        return _VARIES.sub(lambda found: "uuid" if "T" not in found[0].upper() else "instant", value)
    return value


def _typed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _typed(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_typed(member) for member in value]
    return "number" if isinstance(value, int | float) else type(value).__name__
