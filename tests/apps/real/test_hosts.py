"""Real MCP Apps servers under each profile and both client eras: an Apps host gets all of it, byte for byte, others get
what the same server gives a plain client but for the documented edits (`plain.py`).

Specification: MCP Apps 2026-01-26 (Resource Discovery, Visibility, Graceful Degradation).
"""

import json
from typing import Any

import pytest

from tests.apps.real.plain import HIDDEN, SOMETHING, UNREADABLE, shown
from tests.apps.real.servers import PACKAGES, SAMPLES, settled
from tests.apps.real.stage import ALL, CHILDREN, HOSTS, UI, Host, Stage, body_of, outcome
from tests.matrix.compare import differences
from tests.raw_front import Front
from tests.scripted import Json

NO_TOOL, NO_VIEW = "no-such-tool", "ui://no/such/view.html"
NOT_FOUND = {"legacy": -32002, "modern": -32602}
TRACES = ("ui://", "mcp-app", "ui/resourceUri", '"ui"', "<script")
"""What nothing that a host without Apps is told has in it."""

BEHIND_CEILINGS = ("system-monitor", "chart-modern", "chart-legacy")
"""Servers whose hosts can declare more than they are allowed: what a ceiling does depends on no server."""

every_server = pytest.mark.parametrize("name", SAMPLES)
every_era = pytest.mark.parametrize("era", ["legacy", "modern"])
declaring = pytest.mark.parametrize(
    "host", [pytest.param(one, id=name) for name, one in HOSTS.items() if not one.ceiling]
)


def hosts(*, show_apps: bool) -> pytest.MarkDecorator:
    """Servers, and before each the hosts that show Apps or those that show none."""
    cells = [
        pytest.param(server, host, id=f"{server}-{name}")
        for name, host in HOSTS.items()
        for server in SAMPLES
        if host.shows_apps is show_apps and (not host.ceiling or server in BEHIND_CEILINGS)
    ]
    return pytest.mark.parametrize(("name", "host"), cells)


@every_era
@hosts(show_apps=True)
async def test_an_apps_host_gets_every_answer_as_the_server_gave_it(
    stage: Stage, name: str, era: str, host: Host
) -> None:
    ask = await stage.through(name, host, era)
    for method, params in stage.questions(name):
        own = await stage.translated(name, method, params, host.effective, era)
        got = outcome(await ask(method, params))
        assert differences(settled(own), settled(got)) == [], (method, params)
        if method == "resources/read":
            assert body_of(got["result"]) == body_of(own["result"])


@pytest.mark.parametrize("name", [name for name, sample in SAMPLES.items() if "--require" in sample.command])
@every_era
async def test_the_view_that_an_apps_host_reads_is_the_file_in_the_package(stage: Stage, name: str, era: str) -> None:
    [uri] = SAMPLES[name].views
    ask = await stage.through(name, HOSTS["desktop"], era)
    view = (PACKAGES / f"server-{name}" / "dist/mcp-app.html").read_bytes()
    assert body_of((await ask("resources/read", {"uri": uri})).result) == view


@every_era
@hosts(show_apps=False)
async def test_another_host_gets_every_answer_but_for_the_documented_edits(
    stage: Stage, name: str, era: str, host: Host
) -> None:
    ask = await stage.through(name, host, era)
    hidden = await stage.hidden(name)
    no_tool = anonymous(outcome(await ask("tools/call", {"name": NO_TOOL, "arguments": {}})), NO_TOOL)
    no_view = anonymous(outcome(await ask("resources/read", {"uri": NO_VIEW})), NO_VIEW)
    assert no_tool["error"]["code"] == -32602
    assert no_view["error"]["code"] == NOT_FOUND[era]
    for method, params in stage.questions(name):
        own = await stage.translated(name, method, params, host.effective, era)
        wanted = settled(shown(method, params, own, hidden))
        got = outcome(await ask(method, params))
        if wanted == HIDDEN:
            assert anonymous(got, params["name"]) == no_tool
        elif wanted == UNREADABLE:
            assert anonymous(got, params["uri"]) == no_view
        else:
            assert differences(wanted, stood_for(settled(got), wanted)) == [], (method, params)
            said = json.dumps(got)
            assert [trace for trace in TRACES if trace in said] == [], (method, params)


@pytest.mark.parametrize("name", CHILDREN)
@every_era
@pytest.mark.parametrize("host", ["core", "desktop"])
async def test_a_server_on_standard_input_and_output_is_shown_as_by_its_address(
    stage: Stage, name: str, era: str, host: str
) -> None:
    by_address = await stage.through(name, HOSTS[host], era)
    as_child = await stage.through_child(name, HOSTS[host], era)
    for method, params in stage.questions(name):
        wanted, got = [outcome(await ask(method, params)) for ask in (by_address, as_child)]
        assert differences(settled(wanted), settled(got)) == [], (method, params)


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
@pytest.mark.parametrize("host", ["core", "desktop"])
async def test_a_host_of_any_older_version_gets_what_it_can_show(stage: Stage, version: str, host: str) -> None:
    """`extensions` is a member of no older schema, and goes with every version."""
    front = Front(f"{stage.gateway.url}/chart-modern")
    session = await front.initialize(version, capabilities=HOSTS[host].declares)
    [draw, *_] = (await session.request("tools/list", {})).result["tools"]
    read = await session.request("resources/read", {"uri": "ui://chart/view.html"})
    assert (await session.delete()).status == 200
    shows = HOSTS[host].shows_apps
    assert ("ui" in draw["_meta"], "ui/resourceUri" in draw["_meta"]) == (shows, shows)
    assert draw["_meta"]["com.example/t"] == {"kept": True}
    assert ("result" in read.final) is shows
    assert shows or read.code == NOT_FOUND["legacy"]


def anonymous(answer: Json, name: str) -> Json:
    """An answer without the name of what was asked for, which it may say."""
    anonymized: Json = json.loads(json.dumps(answer).replace(json.dumps(name)[1:-1], "…"))
    return anonymized


def stood_for(answer: Any, wanted: Any) -> Any:
    """An answer with the stand-in for what is not shown, any one text block, where the stand-in is wanted."""
    if wanted == SOMETHING[0]:
        assert answer["type"] == "text"
        assert answer["text"]
        return wanted
    if isinstance(wanted, dict) and isinstance(answer, dict):
        return {key: stood_for(value, wanted.get(key)) for key, value in answer.items()}
    if isinstance(wanted, list) and isinstance(answer, list) and len(wanted) == len(answer):
        return [stood_for(*pair) for pair in zip(answer, wanted, strict=True)]
    return answer


@every_server
@declaring
async def test_a_host_hears_of_the_extension_where_the_server_or_the_operator_says_so(
    stage: Stage, name: str, host: Host
) -> None:
    """None of these servers says so, though all but one link tools to views."""
    assert await described(Front(f"{stage.gateway.url}/{name}"), host) == [None, None]
    wanted = ALL["extensions"][UI] if host.shows_apps and SAMPLES[name].views else None
    assert await described(Front(f"{stage.gateway.url}/{name}/advertised"), host) == [wanted, wanted]


async def described(front: Front, host: Host) -> list[Any]:
    """What hosts of either era hear of the extension."""
    session = await front.initialize(capabilities=host.declares)
    found = [session.result, (await front.modern("server/discover", capabilities=host.declares)).result]
    assert (await session.delete()).status == 200
    assert all("tools" in one["capabilities"] for one in found)
    return [one["capabilities"].get("extensions", {}).get(UI) for one in found]


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("host", HOSTS.values(), ids=HOSTS)
async def test_a_modern_server_is_told_what_the_host_can_show_and_no_more(stage: Stage, era: str, host: Host) -> None:
    ask = await stage.through("chart-modern", host, era)
    said = json.loads((await ask("tools/call", {"name": "host", "arguments": {}})).said)
    assert said == (ALL["extensions"][UI] if host.shows_apps else None)
