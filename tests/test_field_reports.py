"""The register of field reports against the tests that claim to answer them, both directions."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

HERE = Path(__file__).parent
_NUMBERS: dict[str, tuple[int, ...]] = {
    "A": (1, 2, 3, 5),
    "B": (1, 3, 5),
    "C": (1, 2),
    "D": (1, 2),
    "E": (1, 3),
    "F": (1, 2, 3, 5, 7),
    "G": (1, 2, 4),
    "H": (1, 3, 4, 5),
    "I": (1, 2, 3, 5, 6, 8, 9, 10, 11, 12),
    "J": (2, 3, 4, 6),
    "K": (1, 2, 4, 5),
    "L": (2, 3, 4, 5, 6, 7, 10, 11, 12),
    "M": (1, 3, 4, 5, 6),
    "N": (1, 2),
    "O": (1,),
    "P": (1, 2, 4),
    "Q": (1,),
    "R": (1, 3, 4, 6),
    "S": (1, 2),
    "T": (1,),
    "U": (1, 4, 5, 6),
    "W": (1, 2),
    "X": (1, 2, 3, 4, 6, 7),
    "Y": (2, 3),
    "Z": (1, 4, 6, 8, 9, 10, 12),
    "AA": (2, 3, 5, 6, 8, 10, 12),
    "AB": (2, 3, 4, 6, 7, 9, 10, 11, 13),
    "AC": (1, 3),
}
IDS = tuple(f"{letter}{number}" for letter, numbers in _NUMBERS.items() for number in numbers)
"""Every report there is."""
DUE = frozenset(
    {
        "A3",
        "A5",
        "AB7",
        "AB9",
        "AB10",
        "AA3",
        "AA5",
        "B1",
        "B5",
        "C1",
        "C2",
        "D1",
        "D2",
        "E1",
        "F3",
        "F5",
        "F1",
        "F2",
        "F7",
        "G1",
        "G2",
        "H1",
        "H3",
        "H4",
        "G4",
        "H5",
        "I1",
        "I2",
    }
    | {"L5", "L6", "M1", "M4", "M6", "N1", "N2", "O1", "Q1", "R1", "R3", "T1", "U1", "U4", "U5", "W1", "W2"}
    | {
        "Z1",
        "Z4",
        "Z6",
        "L2",
        "L3",
        "L4",
        "L7",
        "M3",
        "X1",
        "X2",
        "X3",
        "X4",
        "X6",
        "X7",
        "Y2",
        "Y3",
        "AA2",
        "AA10",
        "AA12",
    }
    | {"AA6", "AA8"}
    | {"J2", "J3", "J4", "J6", "Z10", "Z12"}
    | {"I3", "I5", "I6", "I8", "I9", "I10", "I11", "I12", "Z8", "Z9", "AB2", "AB3", "AB11"}
    | {"A1", "A2", "R4", "R6", "AB4", "AB6", "AC1", "AC3", "L12"}
    | {"B3", "S1", "S2"}
)
"""Reports that must have tests by now; a step that answers more adds them here."""
MEMBERS = {"title", "tests", "later", "rest"}
STEPS = {*(f"step {number}" for number in range(2, 10)), "beyond"}

Register = dict[str, dict[str, object]]
Marks = dict[str, list[str]]


def faults(register: Register, marks: Marks) -> list[str]:
    """One sentence for everything that does not fit between the register and the marks (test node → report ids)."""
    found = [f"{ident} is missing from the register" for ident in IDS if ident not in register]
    claimed: dict[str, set[str]] = {}
    for node, idents in marks.items():
        for ident in idents:
            claimed.setdefault(ident, set()).add(node)
            if ident not in register:
                found.append(f"{node} is marked with {ident}, which the register does not have")
    for ident, entry in register.items():
        found += [f"{ident}: {problem}" for problem in _entry_faults(ident, entry, claimed.get(ident, set()))]
    return found


def _entry_faults(ident: str, entry: dict[str, object], claimed: set[str]) -> list[str]:
    tests, later = entry.get("tests", []), entry.get("later")
    assert isinstance(tests, list)
    found = [f"unknown member {name}" for name in entry.keys() - MEMBERS]
    if ident not in IDS:
        found.append("there is no such report")
    if not entry.get("title"):
        found.append("has no title")
    if bool(tests) == (later is not None):
        found.append("needs either tests or later")
    if later is not None and later not in STEPS:
        found.append(f"later is {later}, none of {', '.join(sorted(STEPS))}")
    rest = entry.get("rest")
    if rest is not None and str(rest).partition(": ")[0] not in STEPS:
        found.append(f"rest is {rest}, which begins with no step")
    if later is not None and ident in DUE:
        found.append("must have tests by now")
    if len(tests) != len(set(tests)):
        found.append("names a test twice")
    found += [f"names {node}, which is not marked with it" for node in sorted(set(tests) - claimed)]
    found += [f"{node} is marked with it and not named" for node in sorted(claimed - set(tests))]
    return found


@pytest.fixture(scope="module")
def register() -> Register:
    return tomllib.loads((HERE / "field_reports.toml").read_text())


def test_register_and_marks_say_the_same(register: Register, tmp_path: Path) -> None:
    marks = tmp_path / "marks.json"
    marked = [str(file) for file in HERE.rglob("test_*.py") if "mark.field(" in file.read_text()]
    collect = ["-m", "pytest", *marked, "--collect-only", "-q", "-p", "no:cacheprovider", "--field-marks", str(marks)]
    run = subprocess.run([sys.executable, *collect], cwd=HERE.parent, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-4000:]
    found = faults(register, json.loads(marks.read_text()))
    assert not found, "\n".join(found)


FULL: Register = {ident: {"title": "t", "later": "step 2"} for ident in IDS if ident not in DUE} | {
    ident: {"title": "t", "tests": [f"tests/t.py::test_{ident}"]} for ident in DUE
}
MARKS: Marks = {f"tests/t.py::test_{ident}": [ident] for ident in DUE}


def test_a_register_that_fits_has_no_fault() -> None:
    assert faults(FULL, MARKS) == []


@pytest.mark.parametrize(
    ("register", "marks", "fault"),
    [
        ({k: v for k, v in FULL.items() if k != "K1"}, MARKS, "K1 is missing from the register"),
        (FULL | {"ZZ1": {"title": "t", "later": "beyond"}}, MARKS, "ZZ1: there is no such report"),
        (FULL, MARKS | {"tests/t.py::test_x": ["ZZ2"]}, "marked with ZZ2, which the register does not have"),
        (FULL, MARKS | {"tests/t.py::test_x": ["C1"]}, "C1: tests/t.py::test_x is marked with it and not named"),
        (FULL, MARKS | {"tests/t.py::test_x": ["K2"]}, "K2: tests/t.py::test_x is marked with it and not named"),
        (FULL, {k: v for k, v in MARKS.items() if "D1" not in k}, "D1: names tests/t.py::test_D1, which is not marked"),
        (FULL | {"K2": {"title": "t", "later": "step 2", "tests": ["x"]}}, MARKS, "K2: needs either tests or later"),
        (FULL | {"K2": {"title": "t"}}, MARKS, "K2: needs either tests or later"),
        (FULL | {"K2": {"later": "step 2"}}, MARKS, "K2: has no title"),
        (FULL | {"K2": {"title": "t", "later": "soon"}}, MARKS, "K2: later is soon"),
        (FULL | {"K2": {"title": "t", "later": "step 2", "rest": "more"}}, MARKS, "K2: rest is more"),
        (FULL | {"C1": {"title": "t", "later": "step 2"}}, MARKS, "C1: must have tests by now"),
        (FULL | {"K2": {"title": "t", "later": "step 2", "x": 1}}, MARKS, "K2: unknown member x"),
        (FULL | {"C1": {"title": "t", "tests": ["tests/t.py::test_C1"] * 2}}, MARKS, "C1: names a test twice"),
    ],
)
def test_whatever_does_not_fit_is_named(register: Register, marks: Marks, fault: str) -> None:
    assert any(fault in sentence for sentence in faults(register, marks)), faults(register, marks)
