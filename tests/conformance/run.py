"""The official conformance suite, against the reference upstreams alone and through the gateway before each of them.

Usage: .venv/bin/python tests/conformance/run.py [--direct] [--cell NAME] [--scenario NAME] [--update] [-v]

Six cells: two direct, and four of front era and upstream era. The verdict is a comparison with expected.json, which
names the scenarios that are known to fail and why: exit 1 when any other scenario fails, or when a scenario appeared or
went. README.md in this folder says what each cell proves. Results go to out/conformance, with every log.
"""

import argparse
import json
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import suite
from servers import StartError, running

HERE = Path(__file__).resolve().parent
OUT = suite.ROOT / "out" / "conformance"
EXPECTED = HERE / "expected.json"
SPEC_VERSIONS = {"modern": "2026-07-28", "legacy": "2025-11-25"}
GATEWAY = f"{shlex.quote(sys.executable)} -m gateway serve --upstream {{upstream}} --listen 127.0.0.1:0"
MESSAGE_LIMIT = 300


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination: the era that the scenarios speak, and the era of the upstream. Direct without a gateway."""

    name: str
    front: str
    upstream: str

    @property
    def direct(self) -> bool:
        return self.name.startswith("direct")


CELLS = (
    Cell("direct-modern", "modern", "modern"),
    Cell("direct-legacy", "legacy", "legacy"),
    Cell("modern-modern", "modern", "modern"),
    Cell("legacy-legacy", "legacy", "legacy"),
    Cell("legacy-modern", "legacy", "modern"),
    Cell("modern-legacy", "modern", "legacy"),
)


@contextmanager
def served(cell: Cell, gateway: str, out_dir: Path) -> Iterator[str]:
    """The URL that a cell's scenarios are to use, while its programs run."""
    upstream = [suite.NODE, HERE / f"upstream_{cell.upstream}.mjs"]
    with running(upstream, out_dir / "upstream.log") as upstream_url:
        if cell.direct:
            yield upstream_url
            return
        command = shlex.split(gateway.format(upstream=upstream_url))
        with running(command, out_dir / "gateway.log") as gateway_url:
            yield f"{gateway_url.rstrip('/')}/mcp"


def scenarios_of(cell: Cell, only: list[str]) -> list[str]:
    """The scenarios of the cell's front era, or those of them that are in `only`."""
    return [name for name in suite.scenarios(SPEC_VERSIONS[cell.front]) if not only or name in only]


def run_cell(cell: Cell, only: list[str], gateway: str) -> list[suite.Outcome]:
    """Runs the cell's scenarios, one at a time: some judge what happens within half a second."""
    out_dir = OUT / cell.name
    shutil.rmtree(out_dir, ignore_errors=True)
    out_dir.mkdir(parents=True)
    with served(cell, gateway, out_dir) as url:
        return [
            suite.run_scenario(url, SPEC_VERSIONS[cell.front], name, out_dir / name)
            for name in scenarios_of(cell, only)
        ]


def print_cell(cell: Cell, outcomes: list[suite.Outcome], known: dict[str, str], verbose: bool) -> None:
    """One line for the cell, then its failing scenarios with their failing checks."""
    passed = sum(outcome.passed for outcome in outcomes)
    warned = sum(len(outcome.warned) for outcome in outcomes)
    checks = sum(outcome.succeeded for outcome in outcomes)
    print(f"{cell.name:<14} {passed:>2}/{len(outcomes):<2} scenarios, {checks} checks, {warned} warnings")
    for outcome in outcomes:
        if not outcome.passed:
            print(f"    {'known ' if outcome.scenario in known else ''}FAIL {outcome.scenario}")
        for told in outcome.failed:
            print(f"        x {told[:MESSAGE_LIMIT]}")
        for told in outcome.warned if verbose or not outcome.passed else ():
            print(f"        ! {outcome.scenario}: {told[:MESSAGE_LIMIT]}")
    sys.stdout.flush()


def compare(
    outcomes: list[suite.Outcome], expected: dict[str, Any] | None, complete: bool
) -> tuple[list[str], list[str]]:
    """What is worse than expected and what is better, as sentences. A cell that nobody wrote down is worse."""
    if expected is None:
        return ["expected.json does not name this cell"], []
    known = expected["failing"]
    worse = [f"{o.scenario} fails" for o in outcomes if not o.passed and o.scenario not in known]
    better = [f"{o.scenario} passes now" for o in outcomes if o.passed and o.scenario in known]
    if complete:
        if len(outcomes) != expected["scenarios"]:
            worse.append(f"{len(outcomes)} scenarios where {expected['scenarios']} are expected")
        gone = known.keys() - {outcome.scenario for outcome in outcomes}
        worse.extend(f"{name} is gone" for name in sorted(gone))
    return worse, better


def updated(outcomes: list[suite.Outcome], expected: dict[str, Any] | None) -> dict[str, Any]:
    """The cell's entry as it is now. Reasons that were written down stay; a new one names the failing checks."""
    reasons = (expected or {"failing": {}})["failing"]
    failing = {o.scenario: reasons.get(o.scenario, "; ".join(o.failed)) for o in outcomes if not o.passed}
    return {"scenarios": len(outcomes), "failing": failing}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run the official conformance suite.")
    names = [cell.name for cell in CELLS]
    parser.add_argument("--cell", action="append", choices=names, default=[], help="only this cell (repeatable)")
    parser.add_argument("--direct", action="store_true", help="only the two direct cells")
    parser.add_argument("--scenario", action="append", default=[], help="only this scenario (repeatable)")
    parser.add_argument("--gateway", default=GATEWAY, help="another command to test; {upstream} stands for the URL")
    parser.add_argument("--update", action="store_true", help="rewrite expected.json from what this run found")
    parser.add_argument("-v", "--verbose", action="store_true", help="print every warning")
    options = parser.parse_args()
    if options.update and options.scenario:
        parser.error("--update needs all scenarios of a cell")
    every = {name for version in SPEC_VERSIONS.values() for name in suite.scenarios(version)}
    for name in options.scenario:
        if name not in every:
            parser.error(f"the suite has no scenario {name}")
    return options


def main() -> int:
    for piece in (suite.NODE, suite.SUITE):
        if not piece.exists():
            print(f"{piece} is missing: run 'make environments'", file=sys.stderr)
            return 1
    # Without this a SIGTERM would leave the programs of the cell behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options = arguments()
    chosen = [c for c in CELLS if (c.name in options.cell or not options.cell) and (c.direct or not options.direct)]
    expected = json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {"cells": {}}
    began_s = time.monotonic()
    fallen: list[str] = []
    risen: list[str] = []
    results: dict[str, list[dict[str, Any]]] = {}
    print(f"conformance suite {suite.version()}, front era-upstream era:")
    for cell in chosen:
        entry = expected["cells"].get(cell.name)
        if not scenarios_of(cell, options.scenario):
            continue
        try:
            outcomes = run_cell(cell, options.scenario, options.gateway)
        except StartError as error:
            print(f"{cell.name:<14} not run: {error}")
            fallen.append(f"{cell.name}: not run")
            continue
        print_cell(cell, outcomes, (entry or {}).get("failing", {}), options.verbose)
        results[cell.name] = [{"passed": outcome.passed, **asdict(outcome)} for outcome in outcomes]
        worse, better = compare(outcomes, entry, complete=not options.scenario)
        fallen.extend(f"{cell.name}: {sentence}" for sentence in worse)
        risen.extend(f"{cell.name}: {sentence}" for sentence in better)
        if options.update:
            expected["cells"][cell.name] = updated(outcomes, entry)
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "results.json").write_text(json.dumps({"suite": suite.version(), "cells": results}, indent=2) + "\n")
    print(f"{time.monotonic() - began_s:.0f} s; results and logs in {OUT.relative_to(suite.ROOT)}")
    if options.update:
        in_order = {cell.name: expected["cells"][cell.name] for cell in CELLS if cell.name in expected["cells"]}
        EXPECTED.write_text(json.dumps({"suite": suite.version(), "cells": in_order}, indent=2) + "\n")
        return 0
    for sentence in risen:
        print(f"BETTER  {sentence}: raise expected.json (--update)")
    for sentence in fallen:
        print(f"WORSE   {sentence}")
    return 1 if fallen else 0


if __name__ == "__main__":
    sys.exit(main())
