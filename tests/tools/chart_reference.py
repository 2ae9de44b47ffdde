"""Writes the table of values in the chart's README: meanings from values.schema.json, defaults from values.yaml.

python -m tests.tools.chart_reference        (run it after a change; `make chart` fails until it was run)
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

CHART: Final = Path(__file__).parents[2] / "helm" / "mcp-front-door"
README: Final = CHART / "README.md"
NOT_READ: Final = ("global", "enabled")
"""Keys of a parent chart, which have no default here."""


def table(schema: dict[str, Any], values: dict[str, Any]) -> str:
    """All values that `schema` knows, in Markdown, with the defaults of `values`."""
    rows = [f"| `{name}` | {default} | {meaning} |" for name, default, meaning in _rows(schema, schema, values, "")]
    return "\n".join(["| value | default | meaning |", "|---|---|---|", *rows])


def _rows(node: dict[str, Any], schema: dict[str, Any], values: Any, prefix: str) -> Iterator[tuple[str, str, str]]:
    for name, property_ in properties(node, schema).items():
        place, meaning = prefix + name, property_.get("description", "")
        if not prefix and name in NOT_READ:
            yield place, "", meaning
            continue
        inner = properties(property_, schema)
        # The gateway's own file has a reference of its own, and a probe's keys are Kubernetes's.
        if inner and "description" in next(iter(inner.values())) and name != "config":
            yield place, "", meaning
            yield from _rows(property_, schema, values[name], f"{place}.")
        else:
            yield place, _default(values[name]), meaning


def properties(node: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """What an object may hold, with what its references say; empty for anything but an object of known keys."""
    found: dict[str, Any] = {}
    for part in (node, *node.get("allOf", [])):
        if "$ref" in part:
            found |= properties(schema["definitions"][part["$ref"].rpartition("/")[2]], schema)
        found |= {name: found.get(name, {}) | own for name, own in part.get("properties", {}).items()}
    for part in node.get("allOf", []):
        for name in part.get("not", {}).get("required", []):
            found.pop(name, None)
    return found


def _default(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return f"`{text}`"


def render() -> str:
    """The README with its table as it should be."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    block = f"<!-- generated: values -->\n{table(schema, values)}\n<!-- end -->"
    return re.sub(r"<!-- generated: values -->.*?<!-- end -->", lambda _: block, README.read_text(), flags=re.DOTALL)


if __name__ == "__main__":
    README.write_text(render())
