"""The chart as helm renders it, and what `make chart` has installed to judge it.

Nothing here is collected by `make test`: the files of tests are called `check_*.py`, and `make chart` names that
pattern.
"""

import functools
import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
CHART = ROOT / "helm" / "mcp-front-door"
TOOLS = ROOT / ".envs" / "chart"
VALUES = {path.stem: path for path in sorted((Path(__file__).parent / "values").glob("*.yaml"))}
VERSIONS = ("1.30", "1.33", "1.37")
"""The oldest that Chart.yaml allows, one between, and the newest that the validator knows."""
RELEASE, NAMESPACE = "door", "tools"
NAME = "door-mcp-front-door"

Json = dict[str, Any]


def helm(
    *arguments: str | Path, stdin: str = "", env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    command = [str(TOOLS / "bin" / "helm"), *map(str, arguments)]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, env=env)


def template(values: Json | Path | None, *options: str | Path, chart: Path = CHART) -> subprocess.CompletedProcess[str]:
    """`helm template` with a file of values, or with values as they stand."""
    given = ["--values", "-" if isinstance(values, dict) else values] if values is not None else []
    stdin = json.dumps(values) if isinstance(values, dict) else ""
    return helm("template", RELEASE, chart, "--namespace", NAMESPACE, *given, *options, stdin=stdin)


def render(values: Json | Path, *options: str | Path, chart: Path = CHART) -> list[Json]:
    done = template(values, *options, chart=chart)
    assert done.returncode == 0, done.stderr
    return [found for found in yaml.safe_load_all(done.stdout) if found]


@functools.cache
def rendered(name: str, version: str = "1.33") -> tuple[Json, ...]:
    """What a file of `values/` gives."""
    return tuple(render(VALUES[name], "--kube-version", version))


def only(objects: list[Json] | tuple[Json, ...], kind: str, name: str = "") -> Json:
    """The one object of this kind, and of this name where there are several."""
    (found,) = (one for one in objects if one["kind"] == kind and name in ("", one["metadata"]["name"]))
    return found


def kinds(objects: list[Json] | tuple[Json, ...]) -> set[str]:
    return {one["kind"] for one in objects}


def pods(objects: list[Json] | tuple[Json, ...]) -> Iterator[tuple[str, Json]]:
    """What every workload and bare pod runs, by the object's name."""
    for one in objects:
        if one["kind"] == "Pod":
            yield one["metadata"]["name"], one["spec"]
        elif one["kind"] in ("Deployment", "StatefulSet"):
            yield one["metadata"]["name"], one["spec"]["template"]["spec"]


def gateway(objects: list[Json] | tuple[Json, ...], name: str = NAME) -> Json:
    """The gateway's own container."""
    found: Json = only(objects, "Deployment", name)["spec"]["template"]["spec"]["containers"][0]
    return found


def configuration(objects: list[Json] | tuple[Json, ...], name: str = NAME) -> Json:
    """The gateway's configuration file."""
    found: Json = yaml.safe_load(only(objects, "ConfigMap", name)["data"]["gateway.yaml"])
    return found


def minimal(**more: Any) -> Json:
    """The least that renders, with `more` on top; `config` is merged key by key."""
    config = {
        "upstreams": {"weather": {"url": "http://weather.tools.svc/mcp"}},
        "routes": [{"path": "/mcp", "upstream": "weather"}],
    }
    return {**more, "config": {**config, **more.get("config", {})}}
