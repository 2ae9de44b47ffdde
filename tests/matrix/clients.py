"""The official clients of the matrix: which driver in which mode, and what each must speak with the gateway."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Client:
    """`sdk` is the package whose version is asserted to start with `version`."""

    driver: str
    mode: str
    era: str
    sdk: str
    version: str


CLIENTS = {
    "py2-auto": Client("py2", "auto", "modern", "mcp", "2.3."),
    "py2-pinned": Client("py2", "2026-07-28", "modern", "mcp", "2.3."),
    "py2-legacy": Client("py2", "legacy", "legacy", "mcp", "2.3."),
    "py1": Client("py1", "legacy", "legacy", "mcp", "1.30."),
    "fastmcp4": Client("fastmcp4", "auto", "modern", "fastmcp", "4.2."),
    "ts1": Client("ts1", "legacy", "legacy", "@modelcontextprotocol/sdk", "1.32."),
    "ts2-legacy": Client("ts2", "legacy", "legacy", "@modelcontextprotocol/client", "2.4."),
    "ts2-auto": Client("ts2", "auto", "modern", "@modelcontextprotocol/client", "2.4."),
}
