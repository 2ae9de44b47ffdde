"""How LLM APIs and the routes to them are configured: what is wrong is told by field, with the fix."""

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.config import ConfigError, load
from gateway.summary import settings_lines
from tests.gateway.test_keys import CI, digest

RIGHT: dict[str, Any] = {
    "upstreams": {"mcp": {"url": "http://127.0.0.1:9/mcp"}},
    "providers": {"claude": {"dialect": "anthropic", "url": "https://api.anthropic.com/"}},
    "routes": [{"path": "/mcp", "upstream": "mcp"}, {"path": "/llm/claude", "provider": "claude"}],
}
CLIENTS = {"ci": {"keys": [digest(CI)], "routes": ["/mcp", "/llm/claude"]}}


def complaints(folder: Path, change: dict[str, Any]) -> list[str]:
    file = folder / "gateway.yaml"
    file.write_text(json.dumps(RIGHT | change))
    try:
        load(file, {"EMPTY": ""})
    except ConfigError as error:
        return [line.removeprefix(f"{file}: ") for line in error.lines]
    return []


def provider(**members: Any) -> dict[str, Any]:
    return {"providers": {"claude": {**RIGHT["providers"]["claude"], **members}}}


def route(**members: Any) -> dict[str, Any]:
    return {"routes": [RIGHT["routes"][0], {"path": "/llm/claude", "provider": "claude", **members}]}


WRONG: dict[str, tuple[dict[str, Any], list[str]]] = {
    "an unknown dialect": (
        provider(dialect="antropic"),
        ["providers.claude.dialect: must be anthropic, openai, gemini or bedrock"],
    ),
    "an unknown member": (provider(kye="x"), ['providers.claude.kye: unknown key; did you mean "key"?']),
    "no url": (
        {"providers": {"claude": {"dialect": "openai"}}},
        ["providers.claude.url: is missing"],
    ),
    "a url with a key in it": (
        provider(url="https://a.example/?key=PLANTED"),
        ['providers.claude.url: must not hold a query; leave out "?" and what follows, and put a key into key'],
    ),
    "a key that no header can hold": (provider(key="PLANTED\nx"), ["providers.claude.key: holds a line break"]),
    "an empty key": (provider(key="${EMPTY}"), ["providers.claude.key: is empty"]),
    "a key beside a header of its place": (
        provider(key="k", headers={"X-API-Key": "PLANTED"}),
        ["providers.claude.key: is sent as x-api-key, which headers set as well; keep one of the two"],
    ),
    "a header twice": (
        provider(headers={"a": "1", "A": "2"}),
        ["providers.claude.headers.A: is set twice (header names ignore case); keep one"],
    ),
    "TLS for http": (
        provider(url="http://a.example", tls={"server_name": "b"}),
        ["providers.claude.tls: does nothing for an http url; write https, or remove it"],
    ),
    "a file of TLS that is not there": (provider(tls={"ca": "absent.pem"}), ["providers.claude.tls: "]),
    "time-outs that exclude each other": (
        provider(timeouts={"first_byte_s": 10, "total_s": 5}),
        ["providers.claude.timeouts: first_byte_s must not exceed total_s"],
    ),
    "a provider that is not there": (
        route(provider="cluade"),
        ['routes[1].provider: unknown provider "cluade"; did you mean "claude"?'],
    ),
    "no providers at all": (
        {"providers": {}},
        ['routes[1].provider: unknown provider "claude"; add it under providers'],
    ),
    "what belongs to MCP": (
        route(upstream="mcp", profile="core-v1", cache=False),
        [
            "routes[1].cache: does nothing beside provider; remove it",
            "routes[1].profile: does nothing beside provider; remove it",
            "routes[1].upstream: does nothing beside provider; remove it",
        ],
    ),
    "a principal without provider": (
        {"routes": [{"path": "/mcp", "upstream": "mcp", "principal": "ci"}]},
        ["routes[0]: has a principal and no provider; remove principal"],
    ),
    "a principal that is not there": (
        {**route(principal="cii", anonymous=True), "clients": CLIENTS},
        ['routes[1].principal: unknown client "cii"; did you mean "ci"?'],
    ),
    "a principal where there are no clients": (
        route(principal="ci", anonymous=True),
        ['routes[1].principal: unknown client "ci"; add it under clients, or remove principal'],
    ),
    "a principal where callers have keys": (
        {**route(principal="ci"), "clients": CLIENTS},
        ["routes[1].principal: does nothing where callers have keys"],
    ),
    "the path of another route": (
        route(path="/mcp"),
        ["routes[1].path: is served by routes[0] already; change path or host"],
    ),
    "a route that leads nowhere": (
        {"routes": [{"path": "/mcp"}]},
        ["routes[0]: leads nowhere; add upstream, or provider"],
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_told_by_field(tmp_path: Path, case: str) -> None:
    change, said = WRONG[case]
    found = complaints(tmp_path, change)
    assert len(found) == len(said), found
    for line, beginning in zip(found, said, strict=True):
        assert line.startswith(beginning)
        assert "PLANTED" not in line


def test_what_is_right_is_loaded_and_described(tmp_path: Path) -> None:
    secret = tmp_path / "key"
    secret.write_text("PLANTED-key\n")
    file = tmp_path / "gateway.yaml"
    providers = {
        "claude": {"dialect": "anthropic", "url": "https://API.anthropic.com/", "key": "file:key"},
        "spare": {"dialect": "openai", "url": "http://127.0.0.1:8000/v1/"},
    }
    open_to_all = {"path": "/open/", "provider": "claude", "anonymous": True, "principal": "ci"}
    routes = [*RIGHT["routes"], open_to_all]
    file.write_text(json.dumps({**RIGHT, "providers": providers, "routes": routes, "clients": CLIENTS}))
    settings = load(file, {})
    assert settings.providers["claude"].url == "https://api.anthropic.com"
    assert settings.providers["spare"].url == "http://127.0.0.1:8000/v1"
    assert settings.providers["claude"].own_headers == (("x-api-key", "PLANTED-key"),)
    lines = list(settings_lines(settings))
    api = "provider claude: https://api.anthropic.com, anthropic, with the gateway's key"
    assert f"/llm/claude/... -> {api}" in lines
    assert f"/open/... -> {api}, Apps of client ci" in lines
    assert "note: providers.spare: no route leads to it" in lines
    assert "note: routes[2]: whoever reaches it spends the key of providers.claude" in lines
    assert "PLANTED" not in "".join(lines) + repr(settings)
