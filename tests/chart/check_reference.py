"""Every value has a default, a schema and a sentence in the README."""

import json
from typing import Any

import yaml

from tests.chart.rendering import CHART
from tests.tools import chart_reference

SCHEMA = json.loads((CHART / "values.schema.json").read_text())
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())


def leaves(node: dict[str, Any], values: Any, place: str = "") -> set[str]:
    """Where the schema and the defaults have different keys, or a key has no sentence."""
    own = chart_reference.properties(node, SCHEMA)
    found = set()
    if own and isinstance(values, dict):
        known = set(own) - (set(chart_reference.NOT_READ) if not place else set())
        free = node.get("additionalProperties") is not False and "config" in place
        found |= {f"{place}{name}: not in both" for name in known ^ set(values) if not free}
        for name in known & set(values):
            found |= leaves(own[name], values[name], f"{place}{name}.")
    return found


def test_every_value_has_a_default_and_a_schema() -> None:
    probes = {f"{kind}Probe." for kind in ("startup", "liveness", "readiness")}
    resources = ("resources.", "redis.bundled.resources.")
    found = {each for each in leaves(SCHEMA, VALUES) if not each.startswith((*probes, *resources))}
    assert not found


def test_every_value_has_a_sentence() -> None:
    rows = [line.split(" | ") for line in chart_reference.table(SCHEMA, VALUES).splitlines()[2:]]
    assert len(rows) > 100
    assert [row[0] for row in rows if not row[2].strip(" |").endswith(".")] == []


def test_the_readme_has_the_values_as_they_are() -> None:
    """`python -m tests.tools.chart_reference` writes it."""
    assert chart_reference.README.read_text() == chart_reference.render()
