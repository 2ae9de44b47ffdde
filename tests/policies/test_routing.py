"""Which route and which upstream take a request."""

from typing import Any

import pytest

from policies import routing
from policies.settings_routes import Route


def no_params(name: str) -> None:
    return None


def route(path: str = "/mcp", upstream: str = "u", **more: Any) -> Route:
    return Route.model_validate({"path": path, "upstream": upstream, **more})


ROUTES = (
    route("/", "root"),
    route("/mcp", "any"),
    route("/mcp", "named", host="mcp.example.com"),
    route("/mcp", "six", host="[::1]"),
    route("/fleet/mcp/", "slash"),
    route("/both", "bare"),
    route("/both/", "slashed"),
    route("/named-only", "named-only", host="mcp.example.com"),
)


@pytest.mark.parametrize(
    ("host", "path", "upstream"),
    [
        ("other", "/mcp", "any"),
        ("", "/mcp", "any"),
        ("other:8080", "/mcp/", "any"),
        ("mcp.example.com", "/mcp", "named"),
        ("MCP.Example.COM:8443", "/mcp", "named"),
        ("mcp.example.com.", "/mcp", "named"),
        ("a.mcp.example.com", "/mcp", "any"),
        ("mcp.example.com.evil", "/mcp", "any"),
        ("[::1]:8080", "/mcp", "six"),
        ("[::1]", "/mcp", "six"),
        ("[::2]", "/mcp", "any"),
        ("x", "/fleet/mcp", "slash"),
        ("x", "/fleet/mcp/", "slash"),
        ("x", "/both", "bare"),
        ("x", "/both/", "slashed"),
        ("x", "/", "root"),
        ("x", "", "root"),
        ("x", "/MCP", None),
        ("x", "/mcp/x", None),
        ("x", "/mcp//", None),
        ("x", "//mcp", None),
        ("x", "/fleet", None),
        ("x", "/named-only", None),
        ("mcp.example.com", "/named-only", "named-only"),
    ],
)
def test_a_request_comes_in_by_its_path_and_host(host: str, path: str, upstream: str | None) -> None:
    for routes in (ROUTES, ROUTES[::-1]):
        found = routing.find_route(routes, host, path)
        assert (found and found.upstream) == upstream


def test_no_route_serves_nothing() -> None:
    assert routing.find_route((), "x", "/mcp") is None


WILD = (
    route(upstream="any"),
    route(upstream="wide", host="*.com"),
    route(upstream="wild", host="*.example.com"),
    route(upstream="exact", host="a.example.com"),
)


@pytest.mark.parametrize(
    ("host", "upstream"),
    [
        ("a.example.com", "exact"),
        ("B.Example.com:80", "wild"),
        ("x.y.example.com", "wild"),
        ("example.com", "wide"),
        (".example.com", "wide"),
        ("notexample.com", "wide"),
        ("example.org", "any"),
    ],
)
def test_the_closest_host_wins(host: str, upstream: str) -> None:
    for routes in (WILD, WILD[::-1]):
        found = routing.find_route(routes, host, "/mcp")
        assert found is not None
        assert found.upstream == upstream


APIS = [
    Route.model_validate(given)
    for given in (
        {"path": "/llm", "provider": "all"},
        {"path": "/llm/a", "provider": "a"},
        {"path": "/llm/a/mcp", "upstream": "mcp"},
        {"path": "/llm/b/", "provider": "b"},
        {"path": "/llm", "host": "x.example", "provider": "x"},
    )
]


@pytest.mark.parametrize(
    ("host", "path", "name", "rest"),
    [
        ("h", "/llm", "all", ""),
        ("h", "/llm/", "all", ""),
        ("h", "/llm/v1/models", "all", "/v1/models"),
        ("h", "/llm/a", "a", ""),
        ("h", "/llm/a/v1/x%2Fy:z", "a", "/v1/x%2Fy:z"),
        ("h", "/llm/a//v1/", "a", "//v1/"),
        ("h", "/llm/ab/v1", "all", "/ab/v1"),
        ("h", "/llm/A/v1", "all", "/A/v1"),
        ("h", "/llm/a/mcp", "mcp", ""),
        ("h", "/llm/a/mcp/", "mcp", ""),
        ("h", "/llm/a/mcp/more", "a", "/mcp/more"),
        ("h", "/llm/b", "b", ""),
        ("h", "/llm/b/v1", "b", "/v1"),
        ("h", "/llmx", None, ""),
        ("h", "/", None, ""),
        ("x.example", "/llm/a/v1", "x", "/a/v1"),
    ],
)
def test_what_lies_below_the_path_of_an_api_is_its(host: str, path: str, name: str | None, rest: str) -> None:
    for routes in (APIS, APIS[::-1]):
        found = routing.find_route(routes, host, path)
        assert (found and (found.provider or found.upstream)) == name
        if found is not None and found.provider is not None:
            assert routing.below(found, path) == rest


def test_an_api_at_the_root_has_every_path() -> None:
    root = Route.model_validate({"path": "/", "provider": "a"})
    assert routing.find_route([root], "h", "/v1/x") is root
    assert [routing.below(root, path) for path in ("/", "/v1/x")] == ["", "/v1/x"]


RULED = Route.model_validate(
    {
        "path": "/mcp",
        "default": "rest",
        "rules": [
            {"method": "tools/call", "name": {"prefix": "db_"}, "params": {"Region": "eu"}, "upstream": "eu-db"},
            {"name": {"prefix": "db_"}, "upstream": "db"},
            {"method": "resources/read", "name": {"glob": "file:///*/[a]?.txt"}, "upstream": "files"},
            {"method": {"glob": "tasks/*"}, "upstream": "tasks"},
            {"params": {"Tenant": {"glob": "*"}}, "upstream": "tenants"},
            {"name": "größe", "upstream": "sizes"},
            {"params": {"A": "1", "B": {"prefix": "2"}}, "upstream": "unreachable-without-both"},
        ],
    }
)


@pytest.mark.parametrize(
    ("method", "name", "params", "upstream"),
    [
        ("tools/call", "db_query", {"Region": "eu"}, "eu-db"),
        ("tools/call", "db_query", {"Region": "EU"}, "db"),
        ("tools/call", "db_query", {}, "db"),
        ("prompts/get", "db_help", {"Region": "eu"}, "db"),
        ("tools/call", "DB_query", {}, "rest"),
        ("tools/call", "db", {}, "rest"),
        ("resources/read", "file:///x/y/[a]b.txt", {}, "files"),
        ("resources/read", "file:///x\ny/[a]b.txt", {}, "files"),
        ("resources/read", "file:///x/ab.txt", {}, "rest"),
        ("resources/read", "file:///x/[a].txt", {}, "rest"),
        ("resources/read", "file:///x/[a]b.txt.exe", {}, "rest"),
        ("tools/call", "file:///x/[a]b.txt", {}, "rest"),
        ("tasks/get", "t", {}, "tasks"),
        ("tasks", None, {}, "rest"),
        ("tools/list", None, {}, "rest"),
        ("tools/list", None, {"Tenant": ""}, "tenants"),
        ("tools/call", "größe", {}, "sizes"),
        ("tools/call", "Größe", {}, "rest"),
        ("tools/call", "x", {"A": "1"}, "rest"),
        ("tools/call", "x", {"A": "1", "B": "23"}, "unreachable-without-both"),
    ],
)
def test_the_first_rule_that_matches_takes_the_request(
    method: str, name: str | None, params: dict[str, str], upstream: str
) -> None:
    assert routing.choose_upstream(RULED, method, name, params.get) == upstream


def test_a_route_with_one_upstream_sends_everything_there() -> None:
    assert routing.choose_upstream(route(), "tools/call", "x", no_params) == "u"


def test_a_glob_of_many_stars_is_as_quick_as_any() -> None:
    many = Route.model_validate(
        {"path": "/mcp", "default": "rest", "rules": [{"name": {"glob": "*a" * 30 + "b"}, "upstream": "u"}]}
    )
    assert routing.choose_upstream(many, "tools/call", "a" * 8000, no_params) == "rest"


def test_a_route_has_several_upstreams_where_its_rules_lead_to_another() -> None:
    rule = {"method": "tools/call", "upstream": "one"}
    assert not route().has_several
    assert not Route.model_validate({"path": "/mcp", "rules": [rule], "default": "one"}).has_several
    assert Route.model_validate({"path": "/mcp", "rules": [rule], "default": "two"}).has_several
