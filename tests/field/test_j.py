"""Field reports J: user interfaces of MCP Apps through the gateway, to hosts that show them and to others.

Specification: MCP Apps 2026-01-26 (UI Resource Format, Resource Discovery, Visibility, Client<>Server Capability
Negotiation).
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio

from tests.door import Door
from tests.field.pairs import ask, ask_pair, every_pair
from tests.gateway_process import GatewayProcess, running
from tests.matrix.compare import differences
from tests.peers import LegacyUpstream, ModernUpstream
from tests.raw_front import Front, Session
from tests.scripted import Err, Json, Upstream

UI = "io.modelcontextprotocol/ui"
MIME = "text/html;profile=mcp-app"
DESKTOP: Json = {"extensions": {UI: {"mimeTypes": [MIME]}}}
INTERACTIVE: Json = {"elicitation": {"form": {}, "url": {}}}
VIEW = "ui://charts/view.html"
NOT_FOUND = {"legacy": -32002, "modern": -32602}

either_host_without = pytest.mark.parametrize("without", [{}, INTERACTIVE], ids=["core", "interactive"])

WILD: Json = {
    "csp": {"connectDomains": ["*"], "resourceDomains": ["https://*.example.com", "'self'"], "frameDomains": []},
    "permissions": {"camera": {}, "geolocation": {}, "clipboardWrite": {}},
    "domain": "a904.example.com",
    "prefersBorder": False,
    "sandbox": "",
    "com.example/unknown": [None],
}
LISTED: Json = {
    "uri": VIEW,
    "name": "view",
    "mimeType": MIME,
    "_meta": {"ui": {**WILD, "prefersBorder": True}, "com.example/l": 1},
}
CONTENT: Json = {
    "uri": VIEW,
    "mimeType": MIME,
    "text": "<!doctype html>\r\n<title>Größe ☃ 𝄞</title>\u2028<script>'\\u0000'</script>",
    "_meta": {"ui": WILD, "com.example/c": {"deep": [1, None, "ä"]}},
}
LINKED: Json = {"name": "draw", "inputSchema": {"type": "object"}, "_meta": {"ui": {"resourceUri": VIEW}}}
HIDDEN: Json = {"name": "refresh", "inputSchema": {"type": "object"}, "_meta": {"ui": {"visibility": ["app"]}}}
RESULT: Json = {
    "content": [{"type": "text", "text": "three rows"}, {"type": "resource", "resource": CONTENT}],
    "structuredContent": {"rows": 3},
    "_meta": {"viewUUID": "7", "ui": {"resourceUri": VIEW}, "com.example/r": {"for": "the view"}},
}


def members(result: Json, *names: str) -> Json:
    """These members of a result, its `_meta` without the server's name."""
    found = {name: result[name] for name in names if name in result}
    if "_meta" in found:
        found["_meta"] = {key: value for key, value in found["_meta"].items() if not key.endswith("/serverInfo")}
    return found


@pytest.mark.field("J2")
@every_pair
async def test_a_ui_resource_that_no_list_names_is_read(door: Door, front_era: str, upstream_era: str) -> None:
    upstream = door.upstream(upstream_era)
    upstream.on["tools/list"] = {"tools": [LINKED]}
    upstream.on["resources/list"] = Err(-32601, "Method not found", status=404 if upstream_era == "modern" else 200)
    upstream.on["resources/read"] = {"contents": [CONTENT]}
    answer = await ask_pair(door, (front_era, upstream_era), "resources/read", {"uri": VIEW}, capabilities=DESKTOP)
    assert differences([CONTENT], answer.result["contents"]) == []
    [read] = upstream.calls("resources/read")
    assert read.params["uri"] == VIEW


@pytest.mark.field("J3", "J6")
@every_pair
async def test_a_host_with_apps_loses_nothing_of_resources_tools_and_results(
    door: Door, front_era: str, upstream_era: str
) -> None:
    upstream = door.upstream(upstream_era)
    answers: list[tuple[str, Json, Json]] = [
        ("tools/list", {}, {"tools": [LINKED, HIDDEN]}),
        ("resources/list", {}, {"resources": [LISTED]}),
        ("resources/read", {"uri": VIEW}, {"contents": [CONTENT], "_meta": {"com.example/x": 1}}),
        ("tools/call", {"name": "draw", "arguments": {}}, RESULT),
    ]
    for method, params, result in answers:
        upstream.on[method] = result
        for _ in range(2):  # the second might come from what was kept of the first
            got = await ask_pair(door, (front_era, upstream_era), method, params, capabilities=DESKTOP)
            assert differences(result, members(got.result, *result)) == []


@pytest.mark.field("J4", "J6")
@every_pair
async def test_a_tool_for_views_alone_is_called_by_hosts_with_views(
    door: Door, front_era: str, upstream_era: str
) -> None:
    pair = (front_era, upstream_era)
    upstream = door.upstream(upstream_era)
    upstream.on["tools/list"] = {"tools": [LINKED, HIDDEN]}
    listed = await ask_pair(door, pair, "tools/list", {}, capabilities=DESKTOP)
    assert [tool["name"] for tool in listed.result["tools"]] == ["draw", "refresh"]
    called = await ask_pair(door, pair, "tools/call", {"name": "refresh", "arguments": {}}, capabilities=DESKTOP)
    assert '"refresh"' in called.said


@pytest.mark.field("J4", "J6")
@every_pair
@either_host_without
async def test_a_tool_for_views_alone_is_no_tool_for_other_hosts_and_never_called(
    door: Door, front_era: str, upstream_era: str, without: Json
) -> None:
    pair = (front_era, upstream_era)
    upstream = door.upstream(upstream_era)
    upstream.on["tools/list"] = {"tools": [LINKED, HIDDEN]}
    listed = await ask_pair(door, pair, "tools/list", {}, capabilities=without)
    assert [tool["name"] for tool in listed.result["tools"]] == ["draw"]
    refused = [
        (await ask_pair(door, pair, "tools/call", {"name": name, "arguments": {}}, capabilities=without)).error
        for name in ("refresh", "no-such")
    ]
    assert [error["code"] for error in refused] == [-32602] * 2
    assert str(refused[0]).replace("refresh", "no-such") == str(refused[1])
    assert upstream.calls("tools/call") == []


@pytest.mark.field("J4")
@every_pair
async def test_which_tools_are_for_views_alone_is_as_a_host_was_last_told(
    door: Door, front_era: str, upstream_era: str
) -> None:
    """Whether or not the server tells that its list has changed."""
    front, upstream = door.front(upstream_era), door.upstream(upstream_era)
    shown = {"name": "refresh", "inputSchema": {"type": "object"}}
    client: Session | Front = await front.initialize() if front_era == "legacy" else front
    ask = client.request if isinstance(client, Session) else client.modern
    for tool, is_shown in [(shown, True), (HIDDEN, False), (shown, True), (HIDDEN, False)]:
        upstream.on["tools/list"] = {"tools": [LINKED, tool]}
        listed = await ask("tools/list", {})
        assert [one["name"] for one in listed.result["tools"]] == ["draw", *(["refresh"] if is_shown else [])]
        called = await ask("tools/call", {"name": "refresh", "arguments": {}})
        assert ("result" in called.final) is is_shown


@pytest.mark.field("J4")
@every_pair
@either_host_without
@pytest.mark.parametrize("uri", [VIEW, "UI://charts/view.html", "ui:/charts", "ui://../other", "Ui:x"])
async def test_a_ui_resource_is_no_resource_for_a_host_without_apps(
    door: Door, front_era: str, upstream_era: str, without: Json, uri: str
) -> None:
    upstream = door.upstream(upstream_era)
    upstream.on["resources/read"] = {"contents": [{**CONTENT, "uri": uri}]}
    answer = await ask_pair(door, (front_era, upstream_era), "resources/read", {"uri": uri}, capabilities=without)
    assert answer.code == NOT_FOUND[front_era]
    assert upstream.calls("resources/read") == []


@pytest.mark.field("J4")
@every_pair
async def test_what_a_host_may_read_is_not_widened_by_apps(door: Door, front_era: str, upstream_era: str) -> None:
    """A read is a read, by whomever: it goes to the server as it stands, which refuses it as it would without Apps."""
    upstream = door.upstream(upstream_era)
    refusal = {"modern": Err(-32602, "Resource not found", {"uri": "file:///etc/passwd"}), "legacy": Err(-32002)}
    upstream.on["resources/read"] = refusal[upstream_era]
    codes = []
    for capabilities in ({}, DESKTOP):
        answer = await ask_pair(
            door,
            (front_era, upstream_era),
            "resources/read",
            {"uri": "file:///etc/passwd"},
            capabilities=capabilities,
        )
        codes.append(answer.code)
    assert codes == [NOT_FOUND[front_era]] * 2
    assert [read.params["uri"] for read in upstream.calls("resources/read")] == ["file:///etc/passwd"] * 2


OFFERED: dict[str, Json] = {"with": DESKTOP, "without": {}, "other": {"extensions": {"com.example/x": {}}}}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def offering() -> AsyncIterator[GatewayProcess]:
    """A gateway before servers of either era that offer the extension, none, or another: `/modern-with` and so on."""
    async with AsyncExitStack() as stack:
        behind: dict[str, Upstream] = {}
        for name, offered in OFFERED.items():
            capabilities = {"tools": {}, "resources": {}, **offered}
            behind[f"legacy-{name}"] = await stack.enter_async_context(LegacyUpstream(capabilities=capabilities))
            behind[f"modern-{name}"] = await stack.enter_async_context(ModernUpstream(capabilities=capabilities))
        yield await stack.enter_async_context(running(behind))


@pytest.mark.field("J6")
@every_pair
@pytest.mark.parametrize(
    ("host", "offered", "told"),
    [
        (DESKTOP, "with", True),
        (DESKTOP, "without", False),
        (DESKTOP, "other", False),
        ({}, "with", False),
        (INTERACTIVE, "with", False),
        (INTERACTIVE, "other", False),
    ],
)
async def test_the_extension_is_described_where_the_host_declares_and_the_server_offers_it(
    offering: GatewayProcess, front_era: str, upstream_era: str, host: Json, offered: str, told: bool
) -> None:
    front = offering.front(f"/{upstream_era}-{offered}")
    if front_era == "legacy":
        described: Json = (await front.initialize(capabilities=host)).result
    else:
        described = (await front.modern("server/discover", capabilities=host)).result
    extensions = dict(described["capabilities"].get("extensions", {}))
    assert extensions.pop(UI, None) == (DESKTOP["extensions"][UI] if told else None)
    assert extensions == ({"com.example/x": {}} if offered == "other" else {})


@pytest.mark.field("J6")
@every_pair
async def test_the_extension_goes_to_a_server_as_the_specification_has_it(
    door: Door, front_era: str, upstream_era: str
) -> None:
    upstream = door.upstream(upstream_era)
    own = {"extensions": {UI: {"mimeTypes": [MIME], "com.example/theme": "dark", "version": 9}}}
    await ask(door.front(upstream_era), front_era, "tools/list", {}, capabilities=own)
    if upstream_era == "legacy":
        seen = door.legacy.opened[upstream.calls("tools/list")[-1].session or ""].params["capabilities"]
    else:
        seen = upstream.calls("tools/list")[-1].meta["io.modelcontextprotocol/clientCapabilities"]
    assert seen["extensions"][UI] == {"mimeTypes": [MIME]}
