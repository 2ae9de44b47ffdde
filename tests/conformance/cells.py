"""The cells: which scenarios of the suite run against what.

A server cell's scenarios ask a reference upstream, through the gateway or directly. A client cell's scenarios bring
test servers of their own, which an official client uses, through the gateway or directly. README.md in this folder says
what each cell proves.
"""

import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import suite
from servers import gateway_before, running

HERE = Path(__file__).resolve().parent
SPEC_VERSIONS = {"modern": "2026-07-28", "legacy": "2025-11-25"}
# Scenarios that judge the first request of all, which is a probe unless the gateway is told the upstream's era.
ERA_TOLD = ("request-metadata",)


def _meaningful(scenario: str) -> bool:
    """Whether a scenario says anything about a gateway; README.md tells why the others don't."""
    return not scenario.startswith("auth/") and scenario != "json-schema-ref-no-deref"


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination: whose scenarios (server, client), the era in front and the era of the upstream. Direct without a
    gateway. The upstream `tasks` is a modern one with that extension, to which the extension's scenarios are put; it is
    `sealed` behind a route with several upstreams."""

    side: str
    front: str
    upstream: str
    direct: bool = False

    @property
    def name(self) -> str:
        eras = f"direct-{self.upstream}" if self.direct else f"{self.front}-{self.upstream}"
        return f"client-{eras}" if self.side == "client" else eras

    @property
    def spec_version(self) -> str | None:
        """What the suite's scenarios speak: as clients in a server cell, as servers in a client cell."""
        if self.upstream == "tasks":
            return None
        return SPEC_VERSIONS[self.upstream if self.side == "client" else self.front]

    def scenarios(self, only: list[str]) -> list[str]:
        """The cell's scenarios, or those of them that are in `only`."""
        names = suite.scenarios(self.side, self.spec_version)
        wanted = "tasks-" if self.upstream == "tasks" else ""
        return [n for n in names if (not only or n in only) and n.startswith(wanted) and _meaningful(n)]


CELLS = (
    Cell("server", "modern", "modern", direct=True),
    Cell("server", "legacy", "legacy", direct=True),
    Cell("server", "modern", "modern"),
    Cell("server", "legacy", "legacy"),
    Cell("server", "legacy", "modern"),
    Cell("server", "modern", "legacy"),
    Cell("server", "modern", "tasks", direct=True),
    Cell("server", "modern", "tasks"),
    Cell("server", "sealed", "tasks"),
    Cell("client", "modern", "modern", direct=True),
    Cell("client", "legacy", "legacy", direct=True),
    Cell("client", "modern", "modern"),
    Cell("client", "legacy", "legacy"),
    Cell("client", "legacy", "modern"),
    Cell("client", "modern", "legacy"),
)


def _before_two(upstream_url: str, file: Path) -> str:
    """The command of a gateway with two upstreams behind its route, which therefore seals the ids of their tasks. Both
    are the same server, so every scenario finds what it needs."""
    upstream = {"url": upstream_url}
    rule = {"method": "tools/call", "name": {"prefix": "other_"}, "upstream": "other"}
    settings = {
        "listen": "127.0.0.1:0",
        "upstreams": {"suite": upstream, "other": upstream},
        "routes": [{"path": "/mcp", "rules": [rule], "default": "suite"}],
    }
    file.write_text(json.dumps(settings))  # JSON is YAML
    return shlex.join([sys.executable, "-m", "gateway", "serve", "-c", str(file)])


@contextmanager
def _served(cell: Cell, gateway: str, out_dir: Path) -> Iterator[str]:
    """The URL that a server cell's scenarios are to use, while its programs run."""
    upstream = [suite.NODE, HERE / f"upstream_{cell.upstream}.mjs"]
    with running(upstream, out_dir / "upstream.log") as upstream_url:
        if cell.direct:
            yield upstream_url
            return
        if cell.front == "sealed":
            gateway = _before_two(upstream_url, out_dir / "gateway.yaml")
        with gateway_before(upstream_url, gateway.replace("{era}", "auto"), out_dir / "gateway.log") as url:
            yield url


def _run_client(cell: Cell, scenario: str, gateway: str, out_dir: Path) -> suite.Outcome:
    era = cell.upstream if scenario in ERA_TOLD else "auto"
    through = [] if cell.direct else ["--gateway", gateway.replace("{era}", era)]
    hop = [sys.executable, HERE / "hop.py", cell.front, out_dir / "gateway.log", *through]
    return suite.run_client_scenario(hop, cell.spec_version, scenario, out_dir)


def run(cell: Cell, only: list[str], gateway: str, out_dir: Path) -> list[suite.Outcome]:
    """Runs the cell's scenarios, one at a time: some judge what happens within half a second.

    Raises StartError where the programs of a server cell do not start.
    """
    names = cell.scenarios(only)
    if cell.side == "client":
        return [_run_client(cell, name, gateway, out_dir / name) for name in names]
    with _served(cell, gateway, out_dir) as url:
        return [suite.run_server_scenario(url, cell.spec_version, name, out_dir / name) for name in names]
