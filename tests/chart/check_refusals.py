"""What the chart refuses, with a message that names the value and what to do instead."""

from typing import Any

import pytest

from tests.chart.rendering import Json, minimal, template

DIGEST = "sha256:" + "0" * 64
EXTERNAL = {"mode": "external", "external": {"url": "redis://valkey:6379"}}
REFUSED: dict[str, tuple[Json, str]] = {
    "no upstream": (minimal(config={"upstreams": {}}), "config.upstreams is empty"),
    "no route": (minimal(config={"routes": []}), "config.routes is empty"),
    "several replicas without a store": (minimal(replicaCount=2), "set redis.mode to external or bundled"),
    "an autoscaler without a store": (minimal(autoscaling={"enabled": True}), "set redis.mode to external or bundled"),
    "KEDA without a store": (minimal(keda={"enabled": True}), "set redis.mode to external or bundled"),
    "two autoscalers": (
        minimal(
            redis=EXTERNAL,
            autoscaling={"enabled": True},
            keda={"enabled": True, "prometheus": {"serverAddress": "http://x"}},
        ),
        "enable one",
    ),
    "KEDA with nothing to scale by": (minimal(redis=EXTERNAL, keda={"enabled": True}), "keda.prometheus.serverAddress"),
    "an external store without a URL": (minimal(redis={"mode": "external"}), "set redis.external.url"),
    "a user of the store without a password": (
        minimal(redis={"mode": "external", "external": {"url": "redis://valkey", "username": "gateway"}}),
        "set redis.external.existingSecret",
    ),
    "a store in config alone": (minimal(config={"store": {"prefix": "x"}}), "set redis.mode to external"),
    **{
        f"config.{name}": (minimal(config={name: value}), f"config.{name} is written by the chart")
        for name, value in {"listen": "x", "admin": "x", "admin_token": "x", "keys": ["x"]}.items()
    },
    **{
        f"config.store.{name}": (
            minimal(redis=EXTERNAL, config={"store": {name: "x"}}),
            f"config.store.{name} is written",
        )
        for name in ("url", "username", "password")
    },
    "too little time to drain": (minimal(config={"grace_s": 60.5}), "a pod needs 75.5"),
    "several keys in a Secret of the chart's": (minimal(keys={"secretKeys": ["a", "b"]}), "needs keys.existingSecret"),
    "an Ingress for a host that is not served": (
        minimal(ingress={"enabled": True, "hosts": ["mcp.example.com"]}, config={"public_url": "https://example.com"}),
        "add https://mcp.example.com to config.public_url",
    ),
    "an HTTPRoute for a host that is not served": (
        minimal(httpRoute={"enabled": True, "parentRefs": [{"name": "x"}], "hostnames": ["mcp.example.com"]}),
        "add https://mcp.example.com to config.public_url",
    ),
    "an Ingress without hosts": (minimal(ingress={"enabled": True}), "ingress.hosts is empty"),
    "an HTTPRoute of no Gateway": (minimal(httpRoute={"enabled": True}), "httpRoute.parentRefs is empty"),
    "an unknown value": (minimal(replicas=2), "additional properties 'replicas' not allowed"),
    "an unknown value further in": (minimal(image={"name": "x"}), "additional properties 'name' not allowed"),
    "a mode that is none": (minimal(redis={"mode": "sidecar"}), "at '/redis/mode'"),
    "a password in the store's URL": (
        minimal(redis={"mode": "external", "external": {"url": "redis://:secret@valkey"}}),
        "at '/redis/external/url'",
    ),
    "a privileged port": (minimal(ports={"http": 80}), "at '/ports/http'"),
    "a digest that is none": (minimal(image={"digest": "latest"}), "at '/image/digest'"),
    "a number as an annotation": (minimal(podAnnotations={"x": 1}), "at '/podAnnotations/x'"),
    "no replica": (minimal(replicaCount=0), "at '/replicaCount'"),
}


def rules(*given: Json) -> Json:
    return minimal(httpRoute={"enabled": True, "parentRefs": [{"name": "x"}], "rules": list(given)})


REFUSED_RULES: dict[str, Json] = {
    "an encoded name, which an exact match would take for plain text": {"name": "=?base64?w7w=?="},
    "a prefix of encoded names": {"namePrefix": "=?base64?"},
    "a name that goes encoded": {"name": "übersetzen"},
    "a name with a space before it, which goes encoded": {"name": " x"},
    "a name and a prefix": {"name": "x", "namePrefix": "y"},
    "a rule without a condition": {"timeout": "1s"},
    "a parameter that no header can be called": {"params": {"a b": "x"}},
    "a Service without a port": {"method": "tools/call", "backendRefs": [{"name": "x"}]},
    "an unknown condition": {"method": "tools/call", "tool": "x"},
}


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_with_a_message_that_says_what_to_do(name: str) -> None:
    values, words = REFUSED[name]
    done = template(values)
    assert done.returncode != 0, done.stdout
    assert words in done.stderr


@pytest.mark.parametrize("name", REFUSED_RULES)
def test_a_rule_on_headers_that_could_not_do_what_it_says_is_refused(name: str) -> None:
    done = template(rules(REFUSED_RULES[name]))
    assert done.returncode != 0, done.stdout
    assert "at '/httpRoute/rules/0" in done.stderr


HOSTS: dict[str, dict[str, Any]] = {
    "by a public URL": {"public_url": ["https://other.example.com", "https://mcp.example.com:8443"]},
    "by a route's host": {"routes": [{"path": "/mcp", "host": "mcp.example.com", "upstream": "weather"}]},
    "by a route's pattern": {"routes": [{"path": "/mcp", "host": "*.example.com", "upstream": "weather"}]},
    "any": {"hosts": "any"},
    "by what only the gateway knows": {"public_url": "https://${PUBLIC_HOST}"},
}


@pytest.mark.parametrize("name", HOSTS)
def test_an_ingress_for_a_host_that_is_served_is_taken(name: str) -> None:
    done = template(minimal(ingress={"enabled": True, "hosts": ["mcp.example.com"]}, config=HOSTS[name]))
    assert done.returncode == 0, done.stderr


def test_kubernetes_that_cannot_sleep_before_a_stop_is_refused() -> None:
    done = template(minimal(), "--kube-version", "1.29")
    assert done.returncode != 0
    assert "requires kubeVersion: >=1.30.0-0" in done.stderr


def test_a_chart_without_values_says_what_it_needs() -> None:
    done = template(None)
    assert done.returncode != 0
    assert "config.upstreams is empty: name the MCP servers behind the gateway" in done.stderr
