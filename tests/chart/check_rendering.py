"""What the values make of the chart: each behaviour that an operator relies on, by a sentence."""

import base64
import itertools
import re
import tomllib
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
import yaml

from tests.chart.rendering import (
    CHART,
    NAME,
    ROOT,
    VALUES,
    Json,
    configuration,
    gateway,
    helm,
    kinds,
    minimal,
    only,
    pods,
    render,
    rendered,
)

MODERN = {"name": "MCP-Protocol-Version", "type": "Exact", "value": "2026-07-28"}


def spec(name: str, kind: str, of: str = "") -> Json:
    found: Json = only(rendered(name), kind, of)["spec"]
    return found


@pytest.mark.parametrize("name", VALUES)
def test_every_container_runs_without_root_and_without_anything_to_gain(name: str) -> None:
    for owner, pod in pods(rendered(name)):
        assert pod["securityContext"]["runAsNonRoot"] is True, owner
        assert pod["securityContext"]["runAsUser"] > 10000, owner
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, owner
        assert pod["automountServiceAccountToken"] is False, owner
        for container in pod["containers"]:
            if container["name"] == "proxy":  # the operator's own, as it is given
                continue
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }, owner
            assert "memory" in container["resources"]["limits"], owner


@pytest.mark.parametrize("name", VALUES)
def test_what_selects_pods_selects_the_gateways_and_nothing_else(name: str) -> None:
    objects = rendered(name)
    workloads = [one for one in objects if one["kind"] in ("Deployment", "StatefulSet")]
    labels = {one["metadata"]["name"]: one["spec"]["template"]["metadata"]["labels"] for one in workloads}
    labels |= {one["metadata"]["name"]: one["metadata"]["labels"] for one in objects if one["kind"] == "Pod"}

    def selected(selector: Json) -> set[str]:
        return {owner for owner, has in labels.items() if selector.items() <= has.items()}

    (own,) = (one["metadata"]["name"] for one in objects if one["kind"] == "Deployment")
    for one in objects:
        if one["kind"] == "Service":
            assert len(selected(one["spec"]["selector"])) == 1, one["metadata"]["name"]
        elif one["kind"] in ("PodDisruptionBudget", "Deployment", "PodMonitor"):
            assert selected(one["spec"]["selector"]["matchLabels"]) == {own}
        elif one["kind"] == "ServiceMonitor":
            (service,) = (
                other["metadata"]["name"]
                for other in objects
                if other["kind"] == "Service"
                and one["spec"]["selector"]["matchLabels"].items() <= other["metadata"]["labels"].items()
            )
            assert service == f"{own}-admin"


@pytest.mark.parametrize("name", VALUES)
def test_ports_are_the_same_in_the_configuration_the_pod_and_the_services(name: str) -> None:
    objects = rendered(name)
    (own,) = (one["metadata"]["name"] for one in objects if one["kind"] == "Deployment")
    ports = {port["name"]: port["containerPort"] for port in gateway(objects, own)["ports"]}
    settings = configuration(objects, own)
    assert settings["listen"] == f"0.0.0.0:{ports['http']}"
    assert settings["admin"] == f"0.0.0.0:{ports['admin']}"
    assert only(objects, "Service", own)["spec"]["ports"][0]["targetPort"] == "http"
    assert only(objects, "Service", f"{own}-admin")["spec"]["ports"][0]["port"] == ports["admin"]


def test_probes_ask_the_admin_listener_which_wants_no_token_for_them() -> None:
    container = gateway(rendered("minimal"))
    asked = {kind: container[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")}
    assert asked == {
        "startup": {"path": "/healthz", "port": "admin"},
        "liveness": {"path": "/healthz", "port": "admin"},
        "readiness": {"path": "/readyz", "port": "admin"},
    }


@pytest.mark.parametrize(("name", "sleeps", "grace", "total"), [("minimal", 10, 60, 75), ("extras", 20, 95, 120)])
def test_a_pod_has_the_time_to_be_forgotten_by_proxies_and_then_to_drain(
    name: str, sleeps: int, grace: int, total: int
) -> None:
    own = "door" if name == "extras" else NAME
    pod = spec(name, "Deployment")["template"]["spec"]
    assert gateway(rendered(name), own)["lifecycle"] == {"preStop": {"sleep": {"seconds": sleeps}}}
    assert configuration(rendered(name), own)["grace_s"] == grace
    assert pod["terminationGracePeriodSeconds"] == total == sleeps + grace + 5


def test_pods_are_rolled_by_a_changed_configuration_and_by_nothing_else() -> None:
    def checksum(**more: Any) -> str | None:
        annotations = only(render(minimal(**more)), "Deployment")["spec"]["template"]["metadata"]["annotations"]
        found: str | None = annotations.get("checksum/config")
        return found

    assert checksum() == checksum(service={"port": 81})  # secrets are made anew by each of these
    assert checksum() != checksum(config={"grace_s": 1})
    assert checksum(rollOnConfigChange=False) is None


def test_the_configuration_is_mounted_as_a_folder_so_that_a_change_reaches_the_gateway() -> None:
    (mount,) = (one for one in gateway(rendered("bundled"))["volumeMounts"] if one["name"] == "config")
    assert mount == {"name": "config", "mountPath": "/etc/mcp-front-door", "readOnly": True}


def test_secrets_that_are_given_are_used_and_none_is_made() -> None:
    objects = rendered("external")
    assert "Secret" not in kinds(objects)
    (volume,) = (
        one for one in spec("external", "Deployment")["template"]["spec"]["volumes"] if one["name"] == "secrets"
    )
    names = {source["secret"]["name"]: source["secret"]["items"] for source in volume["projected"]["sources"]}
    assert names == {
        "door-keys": [{"key": "new", "path": "keys/new"}, {"key": "old", "path": "keys/old"}],
        "door-admin": [{"key": "token", "path": "admin/token"}],
        "door-redis": [{"key": "password", "path": "store/password"}],
    }
    at = "file:/run/secrets/mcp-front-door"
    assert configuration(objects)["keys"] == [f"{at}/keys/new", f"{at}/keys/old"]
    assert configuration(objects)["store"] == {
        "url": "rediss+sentinel://sentinel-0:26379,sentinel-1:26379/mymaster",
        "username": "gateway",
        "password": f"{at}/store/password",
        "prefix": "door",
        "timeout_ms": 500,
        "tls": {"ca": "/run/secrets/store-ca/ca.crt"},
    }


def test_no_secret_is_in_the_environment_the_arguments_or_a_configmap() -> None:
    objects = rendered("bundled")
    encoded = [value for one in objects if one["kind"] == "Secret" for value in one["data"].values()]
    others = str([one for one in objects if one["kind"] != "Secret"])
    assert len(encoded) == 3
    for value in encoded:
        assert value not in others
        assert base64.b64decode(value).decode() not in others
    assert "env" not in gateway(objects)


def test_what_stands_in_config_goes_into_the_file_untouched() -> None:
    settings = configuration(rendered("extras"), "door")
    assert settings["upstreams"]["notes"]["args"][1] == "{{ not.a.template }}"
    assert settings["hosts"] == "any"
    assert "public_url" not in settings
    assert configuration(rendered("external"))["cache"] == {"max_bytes": 67108864}


def test_the_services_names_are_served_beside_the_public_ones() -> None:
    assert configuration(rendered("ingress"))["public_url"] == [
        "https://mcp.example.com",
        *(f"https://{NAME}{rest}" for rest in ("", ".tools", ".tools.svc", ".tools.svc.cluster.local")),
    ]


def test_an_ingress_leads_each_host_to_the_service_and_not_to_health_and_metrics() -> None:
    found = spec("ingress", "Ingress")
    assert [rule["host"] for rule in found["rules"]] == ["mcp.example.com", "eu.tools.example.com"]
    backends = [path["backend"] for rule in found["rules"] for path in rule["http"]["paths"]]
    assert backends == [{"service": {"name": NAME, "port": {"name": "http"}}}] * 2


def test_rules_on_headers_want_the_revision_that_has_them() -> None:
    rules = spec("httproute", "HTTPRoute")["rules"]
    assert [rule["matches"][0].get("headers", [None])[0] for rule in rules] == [MODERN] * 4 + [None]
    headers = [[(one["name"], one["type"], one["value"]) for one in r["matches"][0]["headers"][1:]] for r in rules[:4]]
    assert headers == [
        [("Mcp-Method", "Exact", "tools/call"), ("Mcp-Name", "Exact", "tides_today")],
        [("Mcp-Method", "Exact", "tools/call"), ("Mcp-Name", "RegularExpression", r"^report\..*$")],
        [("Mcp-Method", "Exact", "tools/call"), ("Mcp-Param-Region", "Exact", "eu-west-1")],
        [("Mcp-Name", "RegularExpression", "^file:///.*$")],
    ]


def test_the_last_rule_takes_the_rest_encoded_names_among_it_and_streams_have_no_end() -> None:
    rules = spec("httproute", "HTTPRoute")["rules"]
    assert rules[-1] == {
        "matches": [{"path": {"type": "PathPrefix", "value": "/"}}],
        "backendRefs": [{"name": NAME, "port": 80}],
        "timeouts": {"request": "0s"},
    }
    patterns = [
        header for rule in rules[:-1] for header in rule["matches"][0]["headers"] if header["name"] == "Mcp-Name"
    ]
    encoded = "=?base64?w7xiZXJzZXR6ZW4=?="
    for header in patterns:
        regex = header["value"] if header["type"] == "RegularExpression" else re.escape(header["value"])
        assert re.fullmatch(regex, encoded) is None
    assert [rule["timeouts"]["request"] for rule in rules] == ["30s", "0s", "0s", "0s", "0s"]


def test_rules_lead_to_other_releases_or_to_this_one() -> None:
    rules = spec("httproute", "HTTPRoute")["rules"]
    names = [[backend["name"] for backend in rule["backendRefs"]] for rule in rules]
    assert names[:4] == [
        [NAME],
        ["door-heavy-mcp-front-door"],
        ["door-eu-mcp-front-door", "door-us-mcp-front-door"],
        [NAME],
    ]


@pytest.mark.parametrize(("name", "kind"), [("autoscaling", "HorizontalPodAutoscaler"), ("keda", "ScaledObject")])
def test_an_autoscaler_alone_says_how_many_replicas_there_are(name: str, kind: str) -> None:
    assert "replicas" not in spec(name, "Deployment")
    assert spec(name, kind)["scaleTargetRef"]["name"] == NAME
    assert spec("minimal", "Deployment")["replicas"] == 1


def test_pods_are_spread_over_nodes_and_zones_by_their_own_labels() -> None:
    selector = {"matchLabels": spec("minimal", "Deployment")["selector"]["matchLabels"]}
    for name in ("minimal", "autoscaling"):
        constraints = spec(name, "Deployment")["template"]["spec"]["topologySpreadConstraints"]
        assert all(constraint["labelSelector"] == selector for constraint in constraints)


def test_prometheus_is_shown_the_token_and_gets_one_job_whatever_the_release_is_called() -> None:
    token = {"credentials": {"name": f"{NAME}-admin", "key": "admin-token"}}
    for kind, endpoints in (("ServiceMonitor", "endpoints"), ("PodMonitor", "podMetricsEndpoints")):
        found = spec("monitoring", kind)
        assert found[endpoints][0]["authorization"] == token
        assert found["jobLabel"] == "app.kubernetes.io/part-of"
    for owner in (
        only(rendered("monitoring"), "Service", f"{NAME}-admin"),
        spec("monitoring", "Deployment")["template"],
    ):
        assert owner["metadata"]["labels"]["app.kubernetes.io/part-of"] == "mcp-front-door"


def test_rules_come_out_of_their_files_as_they_are_with_the_operators_after_them() -> None:
    files = [yaml.safe_load(path.read_text())["groups"] for path in sorted((CHART / "files" / "rules").glob("*.yaml"))]
    groups = spec("monitoring", "PrometheusRule")["groups"]
    assert groups[:-1] == list(itertools.chain.from_iterable(files))
    assert groups[-1]["name"] == "ours"


def test_each_dashboard_is_a_configmap_with_the_label_that_grafana_looks_for(tmp_path: Path) -> None:
    chart = copytree(CHART, tmp_path / "chart")
    text = '{"title": "{{ $labels.x }} \\u00fc", "panels": []}\n'
    (chart / "files" / "dashboards" / "made-here.json").write_text(text)
    found = only(render(VALUES["monitoring"], chart=chart), "ConfigMap", f"{NAME}-dashboard-made-here")
    assert found["data"] == {"made-here.json": text}
    assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert found["metadata"]["namespace"] == "monitoring"
    assert found["metadata"]["annotations"] == {"grafana_folder": "MCP"}


def test_a_network_policy_keeps_others_from_the_admin_port_and_from_the_store() -> None:
    public, admin, test = spec("hardened", "NetworkPolicy", NAME)["ingress"]
    assert [port["port"] for port in public["ports"]] == ["http"]
    assert [port["port"] for port in admin["ports"]] == ["admin"]
    assert "monitoring" in str(admin["from"])
    assert test["from"][0]["podSelector"]["matchLabels"]["app.kubernetes.io/name"] == "mcp-front-door-test"
    store = spec("hardened", "NetworkPolicy", f"{NAME}-valkey")
    selector = spec("hardened", "Deployment")["selector"]["matchLabels"]
    assert store["ingress"][0]["from"] == [{"podSelector": {"matchLabels": selector}}]
    assert store["policyTypes"] == ["Ingress", "Egress"]
    assert not store["egress"]


def test_extra_objects_are_templates() -> None:
    assert only(rendered("extras"), "ConfigMap", "door-more")["data"] == {"namespace": "tools"}
    assert only(rendered("extras"), "ConfigMap", "as-text")


def test_helm_test_asks_for_readiness_and_probes_what_it_is_told() -> None:
    ready, probe = only(rendered("extras"), "Pod")["spec"]["containers"]
    assert '"http://door-admin:9191/readyz"' in ready["command"][2]
    compile(ready["command"][2], "ready", "exec")
    assert probe["args"] == ["probe", "http://door:80/notes/mcp"]


def test_a_digest_wins_and_the_tag_is_the_charts_version_where_there_is_none() -> None:
    assert gateway(rendered("minimal"))["image"] == "mcp-front-door:0.1.0"
    assert gateway(rendered("hardened"))["image"].startswith("registry.example.com/mcp-front-door:0.1.0@sha256:0123")


def test_the_chart_has_the_version_of_the_gateway() -> None:
    about = yaml.safe_load((CHART / "Chart.yaml").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {about["version"], about["appVersion"]} == {project["version"]}


@pytest.mark.parametrize("name", VALUES)
def test_notes_after_an_installation_say_where_it_is_and_how_to_ask_it(name: str) -> None:
    done = helm("install", "door", CHART, "--namespace", "tools", "--dry-run=client", "--values", VALUES[name])
    assert done.returncode == 0, done.stderr
    notes = done.stdout.partition("NOTES:")[2]
    own = "http://door.tools/notes/mcp" if name == "extras" else f"://{NAME}.tools"
    assert own in notes
    assert "helm test door --namespace tools" in notes
    assert not re.search(r"%!|<nil>|map\[", notes)


def test_what_is_off_is_not_there() -> None:
    assert kinds(rendered("minimal")) == {
        *("ConfigMap", "Deployment", "Pod", "PodDisruptionBudget", "Secret", "Service", "ServiceAccount")
    }
