"""The dashboards and rules as they are committed: their queries, and the metrics that these name."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
FILES = ROOT / "helm" / "mcp-front-door" / "files"
DASHBOARDS = sorted((FILES / "dashboards").glob("*.json"))
RULES = sorted((FILES / "rules").glob("*.yaml"))

_METRIC = re.compile(r"\b(mcp_[a-z0-9_:]+|process_[a-z_]+)\b")
_LABELLED = re.compile(r"\b(?:by|on|without|group_left|group_right)\s*\([^)]*\)")


@dataclass(frozen=True, slots=True)
class Query:
    """One query: of which panel or rule, and in PromQL. Of an alert, `condition` is what it compares."""

    where: str
    expr: str

    def metrics(self) -> set[str]:
        """The series that it names, those of histograms by their own names."""
        return set(_METRIC.findall(_LABELLED.sub(" ", re.sub(r"\{[^}]*\}", "", self.expr))))


def dashboards() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in DASHBOARDS:
        yield path.name, json.loads(path.read_text(encoding="utf-8"))


def rules() -> Iterator[dict[str, Any]]:
    for path in RULES:
        for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]:
            yield from group["rules"]


def panel_queries() -> list[Query]:
    return [
        Query(f"{name}: {panel['title']}", target["expr"])
        for name, dashboard in dashboards()
        for panel in dashboard["panels"]
        for target in panel["targets"]
    ]


def rule_queries() -> list[Query]:
    return [Query(rule.get("alert") or rule["record"], rule["expr"]) for rule in rules()]
