"""Every rendering of the matrix against what judges charts: helm's lint, the strict schemas of Kubernetes by version,
those of custom resources, and policies; the rules by a parser of their queries, and hadolint for the image."""

import copy
import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.chart.rendering import CHART, ROOT, TOOLS, VALUES, VERSIONS, Json, helm, rendered, template

CUSTOM = ("gateway.networking.k8s.io", "monitoring.coreos.com", "keda.sh")
RULES = sorted((CHART / "files" / "rules").glob("*.yaml"))
PARSE = "import json, sys, promql_parser as p; print(json.dumps([str(p.parse(q)) for q in json.load(sys.stdin)]))"


def run(*command: str | Path, stdin: str = "") -> str:
    done = subprocess.run([*map(str, command)], input=stdin, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("name", VALUES)
def test_helm_finds_nothing_to_say_of_it(name: str) -> None:
    done = helm("lint", "--strict", CHART, "--values", VALUES[name])
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("version", VERSIONS)
def test_kubernetes_takes_every_object_by_its_strict_schema(version: str, tmp_path: Path) -> None:
    files = []
    for name in VALUES:
        own = [one for one in rendered(name, version) if not one["apiVersion"].startswith(CUSTOM)]
        files.append(tmp_path / f"{name}.yaml")
        files[-1].write_text(yaml.safe_dump_all(own))
    said = run(TOOLS / "bin" / "kubernetes-validate", "-k", version, "--strict", *files)
    assert "WARN" not in said, said  # what has no schema is not judged
    assert said.count("INFO") > 10 * len(files)


def wrong(objects: list[Json]) -> list[list[str]]:
    """What the schemas of custom resources say of each."""
    node, script = TOOLS / "crd" / "bin" / "node", Path(__file__).parent / "crd" / "validate.mjs"
    found: list[list[str]] = json.loads(run(node, script, TOOLS / "crd", stdin=json.dumps(objects)))
    return found


def test_custom_resources_are_what_their_makers_types_say() -> None:
    custom = [one for name in VALUES for one in rendered(name) if one["apiVersion"].startswith(CUSTOM)]
    assert {one["kind"] for one in custom} == {
        *("HTTPRoute", "ScaledObject", "ServiceMonitor", "PodMonitor", "PrometheusRule")
    }
    assert [(one["kind"], what) for one, what in zip(custom, wrong(custom), strict=True) if what] == []


def test_a_custom_resource_with_a_wrong_key_or_value_is_found() -> None:
    route = next(one for one in rendered("httproute") if one["kind"] == "HTTPRoute")
    unknown, misspelt, long = copy.deepcopy(route), copy.deepcopy(route), copy.deepcopy(route)
    unknown["spec"]["rules"][0]["matches"][0]["headers"][0]["nmae"] = "x"
    misspelt["spec"]["rules"][0]["matches"][0]["path"]["type"] = "Prefix"
    long["spec"]["rules"][0]["timeouts"]["request"] = "soon"
    assert all(wrong([unknown, misspelt, long]))


def test_policies_for_deployed_objects_hold_with_hardened_values(tmp_path: Path) -> None:
    done = template(VALUES["hardened"], "--output-dir", tmp_path)
    assert done.returncode == 0, done.stderr
    said = run(TOOLS / "bin" / "checkov", "--config-file", Path(__file__).parent / "checkov.yaml", "-d", tmp_path)
    summary = json.loads(said)["summary"]
    assert summary["failed"] == 0, said
    assert summary["passed"] > 100


def test_queries_of_rules_parse_and_ask_for_metrics_that_exist() -> None:
    rules = [rule for file in RULES for group in yaml.safe_load(file.read_text())["groups"] for rule in group["rules"]]
    assert rules
    asked = set()
    for query in json.loads(run(TOOLS / "bin" / "python", "-c", PARSE, stdin=json.dumps([r["expr"] for r in rules]))):
        asked |= set(re.findall(r"([a-zA-Z_:][a-zA-Z0-9_:]*)\{", query))
    known = set(re.findall(r"`([a-z_]+)`", (ROOT / "docs" / "metrics.md").read_text()))
    assert len(asked) > 4
    known |= {rule["record"] for rule in rules if "record" in rule}
    known |= {"up", "process_open_fds", "process_max_fds"}  # Prometheus's own, and its client library's
    assert {re.sub(r"_(count|sum|bucket)$", "", name) for name in asked} <= known


@pytest.mark.parametrize("file", RULES, ids=lambda file: file.stem)
def test_every_alert_says_how_bad_it_is_and_what_to_do(file: Path) -> None:
    for group in yaml.safe_load(file.read_text())["groups"]:
        for rule in group["rules"]:
            if "alert" in rule:
                assert rule["labels"]["severity"] in ("critical", "warning", "info"), rule["alert"]
                assert {"summary", "description", "runbook"} <= rule["annotations"].keys(), rule["alert"]


def test_the_containerfile_is_as_hadolint_would_have_it() -> None:
    run(TOOLS / "bin" / "hadolint", ROOT / "Containerfile")
