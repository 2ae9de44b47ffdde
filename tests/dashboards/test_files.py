"""The dashboards and rules hold together, as far as no Prometheus is needed to see that: `run.py` asks a real one."""

import re
from typing import Any

import pytest

from gateway.metrics import Metrics
from tests.dashboards.files import DASHBOARDS, ROOT, RULES, dashboards, panel_queries, rule_queries, rules

METRICS = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
ALERTS = (ROOT / "docs" / "alerts.md").read_text(encoding="utf-8")
RECORDED = {rule["record"] for rule in rules() if "record" in rule}


def test_there_are_four_dashboards_and_rules() -> None:
    assert [path.stem for path in DASHBOARDS] == ["bridging", "cache", "overview", "upstreams"]
    assert RULES


@pytest.mark.parametrize(
    ("name", "dashboard"), list(dashboards()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_dashboard_can_be_imported_anywhere(name: str, dashboard: dict[str, Any]) -> None:
    assert dashboard["uid"] == f"mcp-front-door-{name.removesuffix('.json')}"
    variables = {variable["name"] for variable in dashboard["templating"]["list"]}
    assert "datasource" in variables
    places: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}, panel["title"]
        for target in panel["targets"]:
            used = set(re.findall(r"\$(?!__)(\w+)", target["expr"]))
            assert used <= variables, panel["title"]
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24
        assert not cells & places, f"{panel['title']} lies over another panel"
        places |= cells
    for what in ("id", "title"):
        seen = [panel[what] for panel in dashboard["panels"]]
        assert len(set(seen)) == len(seen)


def test_every_metric_that_is_asked_for_is_described() -> None:
    for query in [*panel_queries(), *rule_queries()]:
        assert query.metrics(), query
        for metric in query.metrics() - RECORDED:
            name = re.sub(r"_(bucket|count)$", "", metric) if "duration" in metric else metric
            assert f"`{name}`" in METRICS or name.startswith("process_"), f"{query.where}: {metric}"


async def test_every_metric_that_is_counted_is_described() -> None:
    for family in Metrics().collect():
        name = family.name + ("_total" if family.type == "counter" else "")
        assert f"`{name}`" in METRICS, name


def test_every_alert_says_what_to_do_and_where_more_stands() -> None:
    headings = set(re.findall(r"^## (\w+)$", ALERTS, re.MULTILINE))
    alerts = [rule for rule in rules() if "alert" in rule]
    assert headings == {rule["alert"] for rule in alerts}
    for rule in alerts:
        assert rule["labels"]["severity"] in {"warning", "critical"}
        assert rule["annotations"]["runbook"].startswith(f"docs/alerts.md#{rule['alert'].lower()}: ")
        assert {"summary", "description"} <= set(rule["annotations"])
