"""Runs scenarios of the official conformance suite, and tells what each one found.

The suite is `@modelcontextprotocol/conformance`, pinned in tests/node/package.json. A server scenario asks the server
at a URL; a client scenario starts a test server and runs a command that is to use it. Each is a process of its own,
bounded in time. Its verdict is read from the checks.json that it writes, never from its exit code alone: it passed when
at least one check succeeded and none failed. One that was cut off, wrote nothing or only skipped has not passed. Nor
has a client scenario to which the suite says no, as it does at a warning and when the client fails. Knows nothing of
gateways.
"""

import functools
import json
import re
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from servers import run_bounded

ROOT = Path(__file__).resolve().parents[2]
NODE = ROOT / ".envs" / "node" / "bin" / "node"
PACKAGE = ROOT / ".envs" / "node" / "node_modules" / "@modelcontextprotocol" / "conformance"
SUITE = PACKAGE / "dist" / "index.js"

# The longest scenario takes about 8 s; a hang of the thing under test must not hold the run for long.
SCENARIO_LIMIT_S = 60.0
# What the suite itself waits for a client, so that it still writes down what it saw.
CLIENT_LIMIT_S = 45.0
LISTED = re.compile(r"^  - (\S+)", re.MULTILINE)
EXTENSION = re.compile(r"^  - (\S+) \[extension\]$", re.MULTILINE)


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


@functools.cache
def scenarios(side: str, spec_version: str | None) -> tuple[str, ...]:
    """The names of all scenarios of one side (server, client) and a specification version, in the suite's order. None:
    those of extensions, which belong to no version."""
    command = [NODE, SUITE, "list", f"--{side}", *_version(spec_version)]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return tuple((LISTED if spec_version is not None else EXTENSION).findall(listed))


def _version(spec_version: str | None) -> list[str]:
    return [] if spec_version is None else ["--spec-version", spec_version]


def _told(checks: list[dict[str, Any]], status: str) -> Iterator[str]:
    for check in checks:
        if check["status"] == status:
            yield f"{check['id']}: {check.get('errorMessage') or check.get('description')}"


def _read(scenario: str, out_dir: Path, exit_code: int | None) -> Outcome:
    written = sorted(out_dir.rglob("checks.json"))
    if not written:
        why = f"it was cut off after {SCENARIO_LIMIT_S:.0f} s" if exit_code is None else "it threw"
        return Outcome(scenario, 0, (f"(no result): {why}, see {out_dir / 'output.log'}",), ())
    checks = json.loads(written[-1].read_text())
    succeeded = sum(check["status"] == "SUCCESS" for check in checks)
    failed = tuple(_told(checks, "FAILURE"))
    if not succeeded and not failed:
        failed = ("(nothing checked): every check was skipped",)
    return Outcome(scenario, succeeded, failed, tuple(_told(checks, "WARNING")))


def _run(side: str, options: Sequence[str | Path], out_dir: Path) -> int | None:
    out_dir.mkdir(parents=True, exist_ok=True)
    with (out_dir / "output.log").open("w") as log:
        return run_bounded([NODE, SUITE, side, *options, "-o", out_dir], log, SCENARIO_LIMIT_S)


def run_server_scenario(url: str, spec_version: str | None, scenario: str, out_dir: Path) -> Outcome:
    """Runs one scenario against the server at `url`; everything that it writes goes below `out_dir`."""
    exit_code = _run("server", ["--url", url, "--scenario", scenario, *_version(spec_version)], out_dir)
    return _read(scenario, out_dir, exit_code)


def run_client_scenario(
    client: Sequence[str | Path], spec_version: str | None, scenario: str, out_dir: Path
) -> Outcome:
    """Runs one scenario, whose test server is used by `client`: a command, to which the suite adds the server's URL and
    which it tells by the environment what to do. Everything that they write goes below `out_dir`."""
    command = shlex.join(map(str, client))  # the suite hands it to a shell
    limit_ms = f"{CLIENT_LIMIT_S * 1000:.0f}"
    options = ["--command", command, "--scenario", scenario, *_version(spec_version), "--timeout", limit_ms]
    exit_code = _run("client", options, out_dir)
    outcome = _read(scenario, out_dir, exit_code)
    if exit_code == 0 or not outcome.passed:
        return outcome
    return replace(outcome, failed=(f"(the suite says no): a warning, or its client failed: {out_dir / 'output.log'}",))
