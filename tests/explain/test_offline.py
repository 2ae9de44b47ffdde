"""`mcp-front-door explain` as a person runs it: from a configuration alone, with nothing to connect to."""

import asyncio
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from gateway.cli import main
from tests.peers import ModernUpstream
from tests.raw_front import modern_request

CONFIG = """
listen: 127.0.0.1:8080
clients: {desk: {keys: ["sha256:0000000000000000000000000000000000000000000000000000000000000000"], routes: [/mcp]}}
store: {url: "redis://127.0.0.1:1/0"}
keys: ["k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"]
providers: {claude: {dialect: anthropic, url: "https://api.example.com"}}
upstreams:
  weather: {url: "URL", headers: {Authorization: "Bearer planted"}}
  harbour: {url: "http://harbour.example.com/mcp", era: legacy, tools: {"tides_*": {total_s: 7}}}
routes:
  - {path: /mcp, upstream: weather}
  - path: /fleet
    anonymous: true
    rules: [{method: tools/call, name: {prefix: tides_}, upstream: harbour}]
    default: weather
  - {path: /llm, provider: claude, anonymous: true}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "gateway.yaml"
    path.write_text(CONFIG.replace("URL", "http://127.0.0.1:1/mcp?key=planted"))
    return path


def explained(capsys: pytest.CaptureFixture[str], config: Path, *arguments: str) -> dict[str, Any]:
    assert main(["explain", "-c", str(config), "--json", *arguments]) == 0
    out = capsys.readouterr().out
    assert "planted" not in out
    found: dict[str, Any] = json.loads(out)
    return found


def rung(told: dict[str, Any], name: str) -> dict[str, Any]:
    return next(one for one in told["rungs"] if one["rung"] == name)


def test_an_era_that_would_have_to_be_asked_for_is_not_told(capsys: pytest.CaptureFixture[str], config: Path) -> None:
    told = explained(capsys, config, "--client", "desk", "--method", "tools/call", "--name", "forecast")
    assert told["verdict"] == "not told"
    era = "not known without asking; would be detected by server/discover"
    assert rung(told, "upstream")["facts"]["era"] == era
    assert told["asks"] == "weather"


def test_a_rule_and_the_time_outs_of_a_tool_are_told(capsys: pytest.CaptureFixture[str], config: Path) -> None:
    told = explained(capsys, config, "--path", "/fleet", "--method", "tools/call", "--name", "tides_at")
    assert rung(told, "upstream")["said"] == "harbour, by rule 1 of 1"
    assert rung(told, "way")["said"] == "bridge, modern to legacy"
    assert told["holds"]["timeouts"]["total_s"] == 7
    assert "never sent again" in told["holds"]["retry"]


def test_a_session_is_assumed_for_a_request_of_an_earlier_revision(
    capsys: pytest.CaptureFixture[str], config: Path
) -> None:
    asked = ("--path", "/fleet", "--era", "legacy", "--method", "tools/call", "--name", "tides_at")
    told = explained(capsys, config, *asked)
    assert rung(told, "session")["said"].startswith("assumed")
    assert rung(told, "way")["said"] == "exchange, in its own era"


def test_on_a_route_to_an_llm_api_it_is_told_what_may_go_to_the_api(
    capsys: pytest.CaptureFixture[str], config: Path
) -> None:
    told = explained(capsys, config, "--path", "/llm/v1/messages")
    assert (told["verdict"], told["asks"], told["answer"]) == ("not told", "claude", None)
    assert rung(told, "route")["said"] == "/llm"
    assert rung(told, "way")["said"] == "a route to an LLM API (anthropic): bodies are looked at there"
    told = explained(capsys, config, "--path", "/llm/../v1/messages")
    assert (told["asks"], told["answer"]["status"]) == (None, 400)
    assert rung(told, "request")["verdict"] == "refused"


def test_what_is_refused_is_told_with_its_answer(capsys: pytest.CaptureFixture[str], config: Path) -> None:
    told = explained(capsys, config, "--method", "tools/list")
    assert (told["verdict"], told["answer"]["status"]) == ("refused", 401)
    assert rung(told, "upstream")["verdict"] == "not reached"
    told = explained(capsys, config, "--path", "/fleet", "-H", "Mcp-Method:")
    assert told["answer"]["error"]["code"] == -32020


def test_a_body_is_read_from_standard_input(
    capsys: pytest.CaptureFixture[str], config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = json.dumps(modern_request("tools/call", {"name": "tides_at", "arguments": {"of": "planted"}}))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(body.encode())))
    told = explained(capsys, config, "--path", "/fleet", "--body", "-")
    assert rung(told, "agreement")["verdict"] == "passes"


def test_text_has_a_line_for_each_rung(capsys: pytest.CaptureFixture[str], config: Path) -> None:
    assert main(["explain", "-c", str(config), "--path", "/nowhere"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "REFUSED route         no MCP endpoint at this path" in lines
    assert lines[-1] == "answer      HTTP 404, error -32600: no MCP endpoint at this path"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--client", "nobody"], "--client: there is none of that name under clients; known: desk"),
        (["--header", "planted"], "--header: must be 'Name: value', or 'Name:' to leave one out"),
        (["--body", "/nowhere/at/all"], "--body: can't be read: No such file or directory"),
        (["--body", "-", "--name", "x"], "--method and --name: not allowed with --body, which says both"),
        (["--path", "mcp"], "path: string should match pattern '^[/*][!-~]*$'"),
    ],
)
def test_an_option_that_makes_no_sense_is_named(
    capsys: pytest.CaptureFixture[str],
    config: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    says: str,
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"{}")))
    assert main(["explain", "-c", str(config), *arguments]) == 2
    assert capsys.readouterr().err == f"{says}\n"


async def test_no_server_is_connected_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with ModernUpstream() as upstream:
        path = tmp_path / "gateway.yaml"
        path.write_text(CONFIG.replace("URL", upstream.url))
        assert await asyncio.to_thread(main, ["explain", "-c", str(path), "--client", "desk", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["asks"] == "weather"
        assert upstream.connections == 0
