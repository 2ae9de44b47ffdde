"""Texts to paste: host configuration and `curl` lines for a gateway that runs at a given address."""

import json
import shlex
from collections.abc import Iterable
from typing import Any, Final

MODERN: Final = "2026-07-28"
META: Final = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "curl", "version": "8"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
BOTH_TYPES: Final = "application/json, text/event-stream"


def hosts(base: str, routes: dict[str, str]) -> str:
    """Configuration for hosts that connect by URL; `routes` are names and paths."""
    urls = {name: base + path for name, path in routes.items()}
    by_url = {"mcpServers": {name: {"url": url} for name, url in urls.items()}}
    vs_code = {"servers": {name: {"type": "http", "url": url} for name, url in urls.items()}}
    by_command = {
        "mcpServers": {name: {"command": "npx", "args": ["-y", "mcp-remote", url]} for name, url in urls.items()}
    }
    return "\n\n".join(
        f"{title}\n{json.dumps(config, indent=2)}"
        for title, config in (
            ("Cursor (~/.cursor/mcp.json) and other hosts that take a URL:", by_url),
            ("VS Code (.vscode/mcp.json):", vs_code),
            ("Claude Desktop (claude_desktop_config.json), which starts a command for a local URL:", by_command),
        )
    )


def curls(base: str) -> list[tuple[str, str]]:
    """What each does, and the line."""
    sky = {"name": "sky", "arguments": {"city": "Lisbon"}, "_meta": META}
    ferries = {"name": "ferries", "arguments": {"port": "Texel"}, "_meta": META}
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "curl", "version": "8"}}
    return [
        ("2026-07-28, answered by the server that speaks it", _modern(f"{base}/modern/mcp", "tools/call", sky, "sky")),
        (
            "2026-07-28, answered by the server that knows only sessions",
            _modern(f"{base}/legacy/mcp", "tools/call", ferries, "ferries"),
        ),
        (
            "a session client's first request, to the server that knows none",
            _post(f"{base}/modern/mcp", "initialize", hello),
        ),
    ]


def _modern(url: str, method: str, params: dict[str, Any], name: str) -> str:
    return _post(url, method, params, (f"MCP-Protocol-Version: {MODERN}", f"Mcp-Method: {method}", f"Mcp-Name: {name}"))


def _post(url: str, method: str, params: dict[str, Any], headers: Iterable[str] = ()) -> str:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    lines = [f"curl -sS -w '\\n' {url}"]
    lines += [f"-H '{header}'" for header in ("Content-Type: application/json", f"Accept: {BOTH_TYPES}", *headers)]
    return " \\\n  ".join([*lines, f"-d {shlex.quote(body)}"])
