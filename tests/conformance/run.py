"""The official conformance suite, both of its sides, directly and through the gateway in every pairing of eras.

Usage: .venv/bin/python tests/conformance/run.py [--direct] [--cell NAME] [--scenario NAME] [--replicas STORE] [-v]

Fifteen cells: for servers and for clients, two direct, and four of front era and upstream era; for servers with tasks,
one direct, and two. The verdict is a
comparison with expected.json, which names the scenarios that are known to fail and why: exit 1 when any other scenario
fails, or when a scenario appeared or went. README.md in this folder says what each cell proves. Results go to
out/conformance, with every log.
"""

import argparse
import json
import shlex
import shutil
import signal
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import suite
from cells import CELLS, Cell, run
from servers import StartError

HERE = Path(__file__).resolve().parent
OUT = suite.ROOT / "out" / "conformance"
EXPECTED = HERE / "expected.json"
GATEWAY = f"{shlex.quote(sys.executable)} -m gateway serve --upstream {{upstream}} --era {{era}} --listen 127.0.0.1:0"
REPLICAS = f"{shlex.quote(sys.executable)} -m tests.conformance.replicas --upstream {{upstream}} --era {{era}}"
STORES = {"valkey": REPLICAS, "cluster": f"{REPLICAS} --cluster"}
"""In place of one gateway: two on a store of this kind, each request at the other one."""
MESSAGE_LIMIT = 300


def title(cell: Cell) -> str:
    """The cell's name as it is read."""
    return cell.name.replace("client-", "client ")


def print_cell(cell: Cell, outcomes: list[suite.Outcome], known: dict[str, str], verbose: bool) -> None:
    """One line for the cell, then its failing scenarios with their failing checks."""
    passed = sum(outcome.passed for outcome in outcomes)
    warned = sum(len(outcome.warned) for outcome in outcomes)
    checks = sum(outcome.succeeded for outcome in outcomes)
    print(f"{title(cell):<21} {passed:>2}/{len(outcomes):<2} scenarios, {checks} checks, {warned} warnings")
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
    parser.add_argument("--direct", action="store_true", help="only the five direct cells")
    parser.add_argument("--scenario", action="append", default=[], help="only this scenario (repeatable)")
    parser.add_argument("--gateway", default=GATEWAY, help="another command; {upstream} and {era} are filled in")
    parser.add_argument("--replicas", choices=STORES, help="two replicas on such a store in place of one gateway")
    parser.add_argument("--update", action="store_true", help="rewrite expected.json from what this run found")
    parser.add_argument("-v", "--verbose", action="store_true", help="print every warning")
    options = parser.parse_args()
    if options.replicas:
        options.gateway = STORES[options.replicas]
    if options.update and options.scenario:
        parser.error("--update needs all scenarios of a cell")
    every = {name for cell in CELLS for name in cell.scenarios([])}
    for name in options.scenario:
        if name not in every:
            parser.error(f"no cell runs a scenario {name}")
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
    if options.gateway != GATEWAY:  # its own command is that of another gateway
        chosen = [cell for cell in chosen if cell.front != "sealed"]
    expected = json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {"cells": {}}
    began_s = time.monotonic()
    fallen: list[str] = []
    risen: list[str] = []
    results: dict[str, list[dict[str, Any]]] = {}
    print(f"conformance suite {suite.version()}, front era-upstream era:")
    for cell in chosen:
        entry = expected["cells"].get(cell.name)
        if not cell.scenarios(options.scenario):
            continue
        out_dir = OUT / cell.name
        shutil.rmtree(out_dir, ignore_errors=True)
        out_dir.mkdir(parents=True)
        try:
            outcomes = run(cell, options.scenario, options.gateway, out_dir)
        except StartError as error:
            print(f"{title(cell):<21} not run: {error}")
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
