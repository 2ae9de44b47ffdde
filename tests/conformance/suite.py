"""Runs scenarios of the official conformance suite against a URL and tells what each one found.

The suite is `@modelcontextprotocol/conformance`, pinned in tests/node/package.json. A scenario is a process of its own,
bounded in time. Its verdict is read from the checks.json that it writes, never from its exit code: it passed when
at least one check succeeded and none failed. One that was cut off, wrote nothing or only skipped has not passed.
Knows nothing of gateways.
"""

import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from servers import run_bounded

ROOT = Path(__file__).resolve().parents[2]
NODE = ROOT / ".envs" / "node" / "bin" / "node"
PACKAGE = ROOT / ".envs" / "node" / "node_modules" / "@modelcontextprotocol" / "conformance"
SUITE = PACKAGE / "dist" / "index.js"

# The longest scenario takes about 8 s; a hang of the thing under test must not hold the run for long.
SCENARIO_LIMIT_S = 60.0
LISTED = re.compile(r"^  - (\S+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one scenario found: how many checks succeeded, and which failed or warned, as `id: message`."""

    scenario: str
    succeeded: int
    failed: tuple[str, ...]
    warned: tuple[str, ...]

    @property
    def passed(self) -> bool:
        return self.succeeded > 0 and not self.failed


def version() -> str:
    """The suite's own version."""
    return str(json.loads((PACKAGE / "package.json").read_text())["version"])


def scenarios(spec_version: str) -> tuple[str, ...]:
    """The names of all server scenarios of a specification version, in the suite's order."""
    command = [NODE, SUITE, "list", "--server", "--spec-version", spec_version]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return tuple(LISTED.findall(listed))


def _told(checks: list[dict[str, Any]], status: str) -> Iterator[str]:
    for check in checks:
        if check["status"] == status:
            yield f"{check['id']}: {check.get('errorMessage') or check.get('description')}"


def _read(scenario: str, out_dir: Path, in_time: bool) -> Outcome:
    written = sorted(out_dir.rglob("checks.json"))
    if not written:
        why = "it threw" if in_time else f"it was cut off after {SCENARIO_LIMIT_S:.0f} s"
        return Outcome(scenario, 0, (f"(no result): {why}, see {out_dir / 'output.log'}",), ())
    checks = json.loads(written[-1].read_text())
    succeeded = sum(check["status"] == "SUCCESS" for check in checks)
    failed = tuple(_told(checks, "FAILURE"))
    if not succeeded and not failed:
        failed = ("(nothing checked): every check was skipped",)
    return Outcome(scenario, succeeded, failed, tuple(_told(checks, "WARNING")))


def run_scenario(url: str, spec_version: str, scenario: str, out_dir: Path) -> Outcome:
    """Runs one scenario against the server at `url`; everything that it writes goes below `out_dir`."""
    out_dir.mkdir(parents=True, exist_ok=True)
    options = ["--url", url, "--scenario", scenario, "--spec-version", spec_version, "-o", out_dir]
    with (out_dir / "output.log").open("w") as log:
        in_time = run_bounded([NODE, SUITE, "server", *options], log, SCENARIO_LIMIT_S)
    return _read(scenario, out_dir, in_time)
