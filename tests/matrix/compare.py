"""JSON for JSON: where two values differ, as paths. Numbers differ by type too (1 is not 1.0, true is not 1)."""

from typing import Any

LONGEST = 200


def differences(wanted: Any, got: Any, path: str = "$") -> list[str]:
    """One line for each place where `got` is not `wanted`; empty where they are the same JSON."""
    if type(wanted) is not type(got):
        return [f"{path}: wanted {_short(wanted)}, got {_short(got)}"]
    if isinstance(wanted, dict):
        lines = [f"{path}.{key}: lost, was {_short(wanted[key])}" for key in wanted.keys() - got.keys()]
        lines += [f"{path}.{key}: added {_short(got[key])}" for key in got.keys() - wanted.keys()]
        for key in wanted.keys() & got.keys():
            lines += differences(wanted[key], got[key], f"{path}.{key}")
        return sorted(lines)
    if isinstance(wanted, list):
        if len(wanted) != len(got):
            return [f"{path}: wanted {len(wanted)} entries, got {len(got)}: {_short(got)}"]
        return [
            line for i, pair in enumerate(zip(wanted, got, strict=True)) for line in differences(*pair, f"{path}[{i}]")
        ]
    return [] if wanted == got else [f"{path}: wanted {_short(wanted)}, got {_short(got)}"]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
