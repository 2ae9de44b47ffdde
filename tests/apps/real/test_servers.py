"""What the sample servers are, without the gateway: the shapes that the tests through it rely on."""

import json

import pytest

from tests.apps.real.servers import PACKAGES, SAMPLES
from tests.apps.real.stage import APPS, MIME, Stage, body_of
from tests.raw_front import Front

SIZES = {
    "basic-react": 413_619,
    "map": 225_958,
    "system-monitor": 428_408,
    "budget-allocator": 437_281,
    "pdf": 4_336_789,
}
"""Bytes of each published view."""
VERSIONS = {**dict.fromkeys(SIZES, "2.0.3"), "pdf": "2.0.4"}


@pytest.mark.parametrize("name", SIZES)
async def test_a_published_server_serves_the_view_that_is_in_its_package(stage: Stage, name: str) -> None:
    package = PACKAGES / f"server-{name}"
    assert json.loads((package / "package.json").read_text())["version"] == VERSIONS[name]
    view = (package / "dist/mcp-app.html").read_bytes()
    assert len(view) == SIZES[name]
    [uri] = SAMPLES[name].views
    read = await stage.own(name, "resources/read", {"uri": uri})
    assert body_of(read["result"]) == view
    assert read["result"]["contents"][0]["mimeType"] == MIME


@pytest.mark.parametrize("name", [name for name, sample in SAMPLES.items() if sample.eras == ("legacy",)])
async def test_a_legacy_server_knows_no_sessions_no_extension_and_no_newer_era(stage: Stage, name: str) -> None:
    front = Front(stage.direct[name])
    session = await front.initialize(capabilities=APPS)
    assert session.id is None
    assert "extensions" not in session.result["capabilities"]
    assert (await front.modern("server/discover")).status == 400


@pytest.mark.parametrize("name", SAMPLES)
async def test_a_server_has_the_tools_and_views_that_the_tests_know(stage: Stage, name: str) -> None:
    sample = SAMPLES[name]
    tools = (await stage.own(name, "tools/list", {}))["result"]["tools"]
    hidden = {tool["name"] for tool in tools if tool.get("_meta", {}).get("ui", {}).get("visibility") == ["app"]}
    assert hidden >= sample.hidden.keys()
    assert {tool["name"] for tool in tools} - hidden >= sample.calls.keys()
    listed = {entry["uri"] for entry in (await stage.own(name, "resources/list", {}))["result"]["resources"]}
    assert {uri for uri in sample.views if "/by/" not in uri} == {uri for uri in listed if uri.startswith("ui://")}


async def test_the_pdf_server_gives_its_views_much_base64(stage: Stage) -> None:
    params = next(params for method, params in stage.questions("pdf") if params.get("name") == "read_pdf_bytes")
    answer = await stage.own("pdf", "tools/call", params)
    assert len(answer["result"]["structuredContent"]["bytes"]) == 699_052
    assert len(json.dumps(answer)) > 699_183
