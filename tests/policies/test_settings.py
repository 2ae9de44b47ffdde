"""What may be configured, and what is refused with which words. Files, variables and the form of errors:
`tests/gateway/test_config.py`."""

import base64
from typing import Any

import pytest
from pydantic import ValidationError

from policies.settings import Listen, Settings
from policies.settings_base import PROBLEMS
from policies.settings_routes import Match

KEY = "k1:" + base64.urlsafe_b64encode(bytes(range(32))).decode().rstrip("=")
OTHER_KEY = "k2:" + base64.urlsafe_b64encode(bytes(32)).decode()


def document(**members: Any) -> dict[str, Any]:
    """A right document, with members replaced."""
    upstreams = {"weather": {"url": "http://127.0.0.1:9000/mcp"}}
    return {"upstreams": upstreams, "routes": [{"path": "/mcp", "upstream": "weather"}], **members}


def upstream(**members: Any) -> dict[str, Any]:
    return document(upstreams={"weather": {"url": "http://127.0.0.1:9000/mcp", **members}})


def route(**members: Any) -> dict[str, Any]:
    return document(routes=[{"path": "/mcp", **members}])


def rule(**members: Any) -> dict[str, Any]:
    return route(rules=[{"upstream": "weather", **members}], default="weather")


def faults(value: dict[str, Any]) -> dict[str, str]:
    """Every fault of a document, by its dotted place."""
    try:
        Settings.model_validate(value)
    except ValidationError as error:
        found = {}
        for details in error.errors():
            if details["type"] == PROBLEMS:
                found |= {(*details["loc"], *place): message for place, message in details["ctx"]["problems"]}
            else:
                found[details["loc"]] = details["msg"]
        return {".".join(map(str, place)): message for place, message in found.items()}
    return {}


def test_the_smallest_document_serves_one_upstream_on_this_machine_alone() -> None:
    settings = Settings.model_validate(document())
    assert str(settings.listen) == "127.0.0.1:8080"
    assert settings.admin is None
    assert settings.sealing_keys == ()
    assert settings.upstreams["weather"].era == "auto"
    assert settings.routes[0].fallback == "weather"


@pytest.mark.parametrize(
    ("written", "host", "port", "shown"),
    [
        ("127.0.0.1:8080", "127.0.0.1", 8080, "127.0.0.1:8080"),
        ("[::1]:0", "::1", 0, "[::1]:0"),
        ("[0:0:0:0:0:0:0:1]:65535", "::1", 65535, "[::1]:65535"),
        ("LocalHost:80", "localhost", 80, "localhost:80"),
        ("0.0.0.0:1", "0.0.0.0", 1, "0.0.0.0:1"),
    ],
)
def test_an_address_to_listen_on_is_host_and_port(written: str, host: str, port: int, shown: str) -> None:
    listen = Settings.model_validate(document(listen=written, hosts="any")).listen
    assert (listen.host, listen.port, str(listen)) == (host, port, shown)


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        (8080, "must be host:port"),
        ("8080", "must be host:port"),
        ("localhost", "must be host:port"),
        ("127.0.0.1:65536", "port from 0 to 65535"),
        ("127.0.0.1:-1", "port from 0 to 65535"),
        ("127.0.0.1:٣", "port from 0 to 65535"),
        (":8080", "names no host"),
        ("*:8080", "must name an address"),
        ("::1:8080", "IPv6 address in brackets"),
        ("[::g]:8080", "no IPv6 address"),
        ("256.0.0.1:8080", "no IPv4 address"),
        ("http://127.0.0.1:8080", "leave scheme"),
        ("a b:8080", "no host name"),
    ],
)
def test_an_address_that_is_none_is_refused(written: Any, complaint: str) -> None:
    assert complaint in faults(document(listen=written))["listen"]


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("http://127.0.0.1:9000", "http://127.0.0.1:9000/"),
        ("HTTPS://MCP.Example.com/a?tenant=B", "https://mcp.example.com/a?tenant=B"),
        ("http://[0::1]:9000/mcp", "http://[::1]:9000/mcp"),
        ("http://a_b.internal/mcp/", "http://a_b.internal/mcp/"),
    ],
)
def test_an_upstream_url_is_kept_in_one_form(written: str, normal: str) -> None:
    assert Settings.model_validate(upstream(url=written)).upstreams["weather"].url == normal


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ("127.0.0.1:9000", "must be an http or https URL"),
        ("ftp://a/mcp", "must be an http or https URL"),
        ("http:///mcp", "with a host"),
        ("http://user:pass-word@a/mcp", "put the credential into headers"),
        ("http://user@a/mcp", "must not hold a user"),
        ("http://a/mcp#part", "must not hold a fragment"),
        ("http://a/mcp#", "must not hold a fragment"),
        ("http://a/m cp", "without spaces"),
        ("http://a/mcp\n", "without spaces"),
        ("http://a/ä", "printable ASCII"),
        ("http://a:99999/", "is no URL"),
        ("http://a:0/", "names port 0"),
        ("http://[::1/", "is no URL"),
    ],
)
def test_an_upstream_url_that_cannot_be_called_is_refused_without_being_quoted(written: str, complaint: str) -> None:
    found = faults(upstream(url=written))["upstreams.weather.url"]
    assert complaint in found
    assert "pass-word" not in found


@pytest.mark.parametrize(
    ("members", "place", "complaint"),
    [
        ({"headers": {"Mcp-Name": "x"}}, "headers.Mcp-Name.[key]", "protocol's own"),
        ({"headers": {"mcp-protocol-version": "x"}}, "headers.mcp-protocol-version.[key]", "protocol's own"),
        ({"headers": {"Connection": "x"}}, "headers.Connection.[key]", "hop-by-hop"),
        ({"headers": {"Transfer-Encoding": "x"}}, "headers.Transfer-Encoding.[key]", "hop-by-hop"),
        ({"headers": {"content-length": "1"}}, "headers.content-length.[key]", "written by the gateway"),
        ({"headers": {"Accept": "x"}}, "headers.Accept.[key]", "written by the gateway"),
        ({"headers": {"X Tenant": "x"}}, "headers.X Tenant.[key]", "no header name"),
        ({"headers": {"X-A:": "x"}}, "headers.X-A:.[key]", "no header name"),
        ({"headers": {"X": "a\r\nY: b"}}, "headers.X", "would start another header"),
        ({"headers": {"X": ""}}, "headers.X", "is empty"),
        ({"headers": {"X": "Bearer "}}, "headers.X", "blanks at its ends"),
        ({"headers": {"X": "ä"}}, "headers.X", "printable ASCII"),
        ({"headers": {"X": "1", "x": "2"}}, "headers.x", "set twice"),
        ({"forward_headers": ["Mcp-Param-Region"]}, "forward_headers.0", "protocol's own"),
        ({"forward_headers": ["Cookie"]}, "forward_headers.0", "send cookies unasked"),
        ({"forward_headers": ["X-A", "x-a"]}, "forward_headers.1", "named twice"),
        ({"headers": {"X-A": "1"}, "forward_headers": ["x-a"]}, "forward_headers.0", "under headers as well"),
        ({"era": "modern", "heal": True}, "heal", "does nothing"),
        ({"era": "legacy", "verifies_headers": True}, "verifies_headers", "does nothing"),
        ({"transport": "http_sse", "verifies_headers": True}, "verifies_headers", "does nothing"),
        ({"transport": "http_sse", "era": "modern"}, "transport", "one of sessions"),
        ({"command": "npx"}, "command", "beside url; keep one"),
        ({"args": ["x"]}, "args", "does nothing without command"),
        ({"env": {"A": "x"}}, "env", "does nothing without command"),
        ({"scope": "shared"}, "scope", "does nothing without command"),
        ({"urls": ["http://b/"]}, "urls", "beside url; keep one"),
        ({"balance": "round_robin"}, "balance", "does nothing without urls"),
        ({"health": {"interval_s": 5}}, "health", "does nothing without urls"),
        ({"ejection": {"failures": 1}}, "ejection", "does nothing without urls"),
        ({"timeouts": {"first_byte_s": 7200}}, "timeouts", "must not exceed total_s"),
        ({"timeouts": {"connect_s": 0}}, "timeouts.connect_s", "greater than 0"),
        ({"timeouts": {"total_s": float("inf")}}, "timeouts.total_s", "finite"),
        ({"timeouts": {"idle_s": 86401}}, "timeouts.idle_s", "less than or equal to 86400"),
    ],
)
def test_an_upstream_setting_that_would_break_or_do_nothing_is_refused(
    members: dict[str, Any], place: str, complaint: str
) -> None:
    found = faults(upstream(**members))
    assert complaint in found[f"upstreams.weather.{place}"]
    assert len(found) == 1


@pytest.mark.parametrize(
    ("members", "place", "complaint"),
    [
        ({}, "url", "is missing; add it, or command: the program to run"),
        ({"command": ""}, "url", "is missing; add it, or command"),
        ({"urls": []}, "url", "is missing; add it, or command"),
        ({"urls": ["http://a/"], "command": "a"}, "command", "beside urls; keep one"),
        ({"urls": ["http://a/", "b"]}, "urls.1", "must be an http or https URL"),
        ({"urls": ["http://a/", "http://b/", "http://A/?k=planted"]}, "urls.2", "endpoint of an earlier one"),
        ({"urls": [f"http://a/{n}" for n in range(65)]}, "urls", "keep 64, or put a load balancer before them"),
        ({"urls": ["http://a/"], "balance": "random"}, "balance", "'least_requests' or 'round_robin'"),
        ({"urls": ["http://a/"], "health": {"path": "healthz"}}, "health.path", 'must start with "/"'),
        ({"urls": ["http://a/"], "health": {"interval_s": 0}}, "health.interval_s", "greater than or equal to 0.1"),
        ({"urls": ["http://a/"], "ejection": {"failures": 0}}, "ejection.failures", "greater than or equal to 1"),
        ({"urls": ["http://a/"], "ejection": {"max_share": 2}}, "ejection.max_share", "less than or equal to 1"),
        ({"urls": ["http://a/"], "tls": {"server_name": "a"}}, "tls", "does nothing for an http url"),
        ({"urls": ["http://a/"], "args": ["x"]}, "args", "does nothing without command"),
        ({"command": "a\0b"}, "command", "null byte"),
        ({"command": "a", "args": ["a\0b"]}, "args.0", "null byte"),
        ({"command": "a", "env": {"A=B": "planted"}}, "env.A=B.[key]", "no name of a variable"),
        ({"command": "a", "env": {"1A": "planted"}}, "env.1A.[key]", "no name of a variable"),
        ({"command": "a", "headers": {"X": "planted"}}, "headers", "does nothing for a command"),
        ({"command": "a", "forward_headers": ["X"]}, "forward_headers", "does nothing for a command"),
        ({"command": "a", "verifies_headers": True}, "verifies_headers", "does nothing for a command"),
        ({"command": "a", "transport": "http_sse"}, "transport", "does nothing for a command"),
        ({"command": "a", "max_streams": 3}, "max_streams", "does nothing for a command"),
        ({"command": "a", "scope": "mine"}, "scope", "'shared' or 'session'"),
        ({"command": "a", "max_children": 0}, "max_children", "greater than or equal to 1"),
    ],
)
def test_an_upstream_that_cannot_be_reached_or_run_or_a_setting_that_it_cannot_have_is_refused(
    members: dict[str, Any], place: str, complaint: str
) -> None:
    found = faults(document(upstreams={"weather": members}))
    assert complaint in found[f"upstreams.weather.{place}"]
    assert len(found) == 1
    assert "planted" not in str(found)


@pytest.mark.parametrize(
    ("members", "addresses"),
    [
        ({"url": "http://a"}, ("http://a/",)),
        ({"urls": ["http://a", "HTTP://B:1/mcp"]}, ("http://a/", "http://b:1/mcp")),
        ({"urls": ["http://a", "https://b"], "tls": {"server_name": "c"}}, ("http://a/", "https://b/")),
        ({"command": "a"}, ()),
    ],
)
def test_an_upstream_is_at_one_address_at_several_or_at_none(
    members: dict[str, Any], addresses: tuple[str, ...]
) -> None:
    weather = Settings.model_validate(document(upstreams={"weather": members})).upstreams["weather"]
    assert weather.addresses == addresses


def test_a_commands_variables_are_shown_to_its_process_alone() -> None:
    members = {"command": "npx", "args": ["server"], "env": {"TOKEN": "planted"}, "cwd": "/srv", "scope": "session"}
    weather = Settings.model_validate(document(upstreams={"weather": members})).upstreams["weather"]
    assert dict(weather.own_env) == {"TOKEN": "planted"}
    assert "planted" not in repr(weather)


def test_header_values_and_keys_are_shown_to_the_connector_alone() -> None:
    value = upstream(headers={"Authorization": "Bearer planted"}) | {"keys": [KEY, OTHER_KEY]}
    settings = Settings.model_validate(value)
    assert settings.upstreams["weather"].own_headers == (("Authorization", "Bearer planted"),)
    assert settings.sealing_keys == (("k1", bytes(range(32))), ("k2", bytes(32)))
    for text in (repr(settings), str(settings), settings.model_dump_json()):
        assert "planted" not in text
        assert KEY[3:] not in text


@pytest.mark.parametrize(
    ("keys", "place", "complaint"),
    [
        (["planted"], "keys.0", "must be ID:BASE64URL"),
        (["an id that is planted:AAAA"], "keys.0", "must be ID:BASE64URL"),
        (["k1:planted!"], "keys.0", "is not base64url"),
        (["k1:plantedAA"], "keys.0", "is not base64url"),
        (["k1:plantedA"], "keys.0", "holds 6 bytes where 32 are needed"),
        ([KEY, OTHER_KEY, KEY], "keys.2", "has the id of an earlier key"),
        ([KEY] * 9, "keys", "keep the newest 8"),
    ],
)
def test_a_key_that_cannot_seal_is_refused_without_being_quoted(keys: list[str], place: str, complaint: str) -> None:
    found = faults(document(keys=keys))[place]
    assert complaint in found
    assert "planted" not in found


@pytest.mark.parametrize(
    ("value", "place", "complaint"),
    [
        (route(path="mcp", upstream="weather"), "routes.0.path", 'must start with "/"'),
        (route(path="", upstream="weather"), "routes.0.path", 'must start with "/"'),
        (route(path="/a//b", upstream="weather"), "routes.0.path", "plain segments"),
        (route(path="/a/../b", upstream="weather"), "routes.0.path", "plain segments"),
        (route(path="/a%2Fb", upstream="weather"), "routes.0.path", "plain segments"),
        (route(path="/a b", upstream="weather"), "routes.0.path", "plain segments"),
        (route(path="/a?b", upstream="weather"), "routes.0.path", "must be a path alone"),
        (route(upstream="weather", host="a:8080"), "routes.0.host", "leave scheme and port out"),
        (route(upstream="weather", host="münchen.de"), "routes.0.host", "xn--"),
        (route(upstream="weather", host="mcp.*.com"), "routes.0.host", "no host name"),
        (route(upstream="wether"), "routes.0.upstream", 'unknown upstream "wether"; did you mean "weather"?'),
        (route(upstream="zzz"), "routes.0.upstream", 'unknown upstream "zzz"; known: weather'),
        (document(routes=[]), "routes", "at least one route"),
        (route(), "routes.0", "leads nowhere; add upstream"),
        (route(default="weather"), "routes.0", "write it as upstream"),
        (route(upstream="weather", http_sse="/mcp/"), "routes.0", "give http_sse another path"),
        (route(upstream="weather", default="weather"), "routes.0", "has both upstream and rules or default"),
        (route(rules=[{"method": "ping", "upstream": "weather"}]), "routes.0", "add default"),
        (rule(), "routes.0.rules.0", "has no condition"),
        (rule(method={}), "routes.0.rules.0.method", "exactly one of value, prefix, glob"),
        (rule(name={"value": "a", "glob": "b"}), "routes.0.rules.0.name", "exactly one of value, prefix, glob"),
        (rule(params={"Mcp-Param-Region": "eu"}), "routes.0.rules.0.params.Mcp-Param-Region", "without its Mcp-Param-"),
        (rule(params={"Re gion": "eu"}), "routes.0.rules.0.params.Re gion", "no part of a header name"),
        (rule(params={"Region": "eu", "REGION": "us"}), "routes.0.rules.0.params.REGION", "named twice"),
        (rule(method="ping", upstream="wether"), "routes.0.rules.0.upstream", 'did you mean "weather"?'),
    ],
)
def test_a_route_that_leads_nowhere_or_two_ways_is_refused(value: dict[str, Any], place: str, complaint: str) -> None:
    found = faults(value)
    assert complaint in found[place]
    assert len(found) == 1


def test_two_routes_may_share_a_path_on_different_hosts_only() -> None:
    def routes(*hosts: str | None) -> dict[str, Any]:
        return document(routes=[{"path": "/mcp", "host": host, "upstream": "weather"} for host in hosts])

    assert faults(routes("a.example.com", "b.example.com", None)) == {}
    assert "is served by routes[0] already" in faults(routes("a.example.com", "A.example.com."))["routes.1.path"]
    assert "is served by routes[1] already" in faults(routes("a", None, None))["routes.2.path"]
    both = [{"path": "/a", "http_sse": "/sse", "upstream": "weather"}, {"path": "/sse", "upstream": "weather"}]
    assert "is served by routes[0] already" in faults(document(routes=both))["routes.1.path"]
    assert "change http_sse or host" in faults(document(routes=both[::-1]))["routes.1.http_sse"]


def test_a_rule_written_as_a_string_compares_the_whole_value() -> None:
    settings = Settings.model_validate(rule(method="tools/call", params={"Region": {"glob": "us-*"}}))
    assert settings.routes[0].rules[0].method == Match(value="tools/call")
    assert settings.routes[0].rules[0].params == {"Region": Match(glob="us-*")}
    assert [name for _, name in settings.routes[0].references()] == ["weather", "weather"]


def test_health_is_not_served_where_clients_connect() -> None:
    same = document(listen="127.0.0.1:8080", admin="127.0.0.1:8080")
    assert "choose another port" in faults(same)["admin"]
    assert faults(document(listen="127.0.0.1:0", admin="127.0.0.1:0")) == {}


@pytest.mark.parametrize("name", ["Weather", "a_b", "-a", "a-", "", "a" * 64])
def test_an_upstream_name_is_lower_case_letters_digits_and_hyphens(name: str) -> None:
    value = document(upstreams={name: {"url": "http://a/"}}, routes=[{"path": "/", "upstream": name}])
    assert list(faults(value)) == [f"upstreams.{name}.[key]"]


def test_a_file_without_upstreams_is_refused() -> None:
    assert "at least one upstream" in faults(document(upstreams={}))["upstreams"]


def test_settings_cannot_be_changed_once_made() -> None:
    settings = Settings.model_validate(document())
    with pytest.raises(ValidationError, match="frozen"):
        settings.listen = Listen(host="0.0.0.0", port=1)  # type: ignore[misc]


def test_every_setting_says_what_it_does() -> None:
    models = [Settings.model_json_schema(), *Settings.model_json_schema()["$defs"].values()]
    fields = {id(field): (name, field) for model in models for name, field in model.get("properties", {}).items()}
    assert len(fields) > 30
    assert [name for name, field in fields.values() if not ("description" in field or "$ref" in field)] == []
