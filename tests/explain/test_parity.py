"""Whatever `explain` says would happen to a request, happens to it: one table of wire examples, good and bad, of both
eras, each explained first and then sent.
"""

import hashlib
import json
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio

from tests.gateway_process import GatewayProcess, running
from tests.peers import LegacyUpstream, ModernUpstream
from tests.raw_front import Answer, Front, Session, modern_headers, modern_request, notification, request

pytestmark = pytest.mark.asyncio(loop_scope="module")

TOKEN = "planted-admin-token-0123456789"
KEY = "mfd_planted-key-of-a-client"
BOTH = "application/json, text/event-stream"
CALL = modern_request("tools/call", {"name": "echo", "arguments": {"text": "planted-argument"}})
LIST = modern_request("tools/list")
READ = modern_request("resources/read", {"uri": "ui://app/page"})
SESSION = "SESSION"
"""Stands for the id of a session that is open at the route."""


@dataclass(frozen=True)
class Case:
    """One request: `rung` is where it is refused, empty where it is not; `asks` whether an upstream gets it."""

    about: str
    rung: str = ""
    asks: str = ""
    path: str = "/modern"
    body: Any = None
    headers: Mapping[str, str | list[str] | None] = field(default_factory=dict)
    verb: str = "POST"
    base: Mapping[str, str] = field(default_factory=dict)

    @property
    def raw(self) -> str | None:
        return self.body if self.body is None or isinstance(self.body, str) else json.dumps(self.body)


def modern(
    about: str, rung: str = "", asks: str = "", message: Any = CALL, path: str = "/modern", **headers: Any
) -> Case:
    """A request of 2026-07-28; a header that is None is left out."""
    lines = {name.replace("_", "-"): value for name, value in headers.items()}
    return Case(about, rung, asks, path, message, lines, base=modern_headers(message))


def legacy(
    about: str, rung: str = "", asks: str = "", message: Any = None, path: str = "/legacy", **headers: Any
) -> Case:
    """A request in a session of 2025-11-25."""
    lines = {name.replace("_", "-"): value for name, value in headers.items()}
    base = {"Mcp-Session-Id": SESSION, "MCP-Protocol-Version": "2025-11-25"}
    return Case(about, rung, asks, path, message, lines, base=base)


def _without(message: Any, key: str) -> Any:
    meta = {name: value for name, value in message["params"]["_meta"].items() if not name.endswith(key)}
    return {**message, "params": {**message["params"], "_meta": meta}}


INITIALIZE = request("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c"}})
ECHO = request("tools/call", {"name": "echo", "arguments": {"text": "planted-argument"}})
BATCH = [request("ping", ident=1)]

CASES = [
    # heads
    Case("a path that no route has", "route", path="/nowhere", body=CALL, base=modern_headers(CALL)),
    modern("a host that is not served", "host", Host="elsewhere.example.com"),
    modern("a host that is malformed", "host", Host="a b"),
    modern("an origin that is not allowed", "origin", Origin="https://evil.example.com"),
    modern("a loopback origin", asks="modern", Origin="http://localhost:3000"),
    modern("two sessions at once", "head", Mcp_Session_Id=["one", "another"]),
    modern("a body that is not called JSON", "verb", Content_Type="text/plain"),
    modern("a client that reads neither form", "verb", Accept="text/html"),
    modern("a client that reads JSON alone", asks="modern", Accept="application/json"),
    Case("a verb that no revision has", "verb", verb="PUT", body="{}"),
    Case("GET without a session", "verb", verb="GET", path="/legacy"),
    Case("GET of 2026-07-28", "verb", verb="GET", headers={"MCP-Protocol-Version": "2026-07-28"}),
    Case("DELETE without a session", "verb", verb="DELETE", path="/legacy"),
    modern("a coding that is not read", "size", Content_Encoding="snappy"),
    modern("a body that is too large", "size", message=modern_request("tools/list", {"cursor": "x" * 70_000})),
    # identity
    modern("no key where one is needed", "identity", path="/keyed"),
    modern("a key that nobody has", "identity", path="/keyed", Authorization="Bearer mfd_nobody"),
    modern("a key for another route", "identity", path="/closed", Authorization=f"Bearer {KEY}"),
    modern("a key for this route", asks="modern", path="/keyed", Authorization=f"Bearer {KEY}"),
    # messages
    Case("a body that is no JSON", "message", body="{", base=modern_headers(CALL)),
    Case("a message without a version", "message", body={"id": 1, "method": "tools/list"}, base=modern_headers(LIST)),
    Case("an id that is null", "message", body={**LIST, "id": None}, base=modern_headers(LIST)),
    Case("an empty batch", "message", body="[]"),
    # envelopes of 2026-07-28
    modern("a call that is right", asks="modern"),
    modern("a list that is right", asks="modern", message=LIST),
    modern("no version in a header", "agreement", MCP_Protocol_Version=None),
    modern("another version in the header", "agreement", MCP_Protocol_Version="2026-07-29"),
    modern("no method in a header", "agreement", Mcp_Method=None),
    modern("another method in the header", "agreement", Mcp_Method="tools/list"),
    modern("no name in a header", "agreement", Mcp_Name=None),
    modern("another name in the header", "agreement", Mcp_Name="other"),
    modern("a name that is malformed base64", "agreement", Mcp_Name="=?base64?***?="),
    modern("no version in the envelope", "envelope", message=_without(CALL, "protocolVersion")),
    modern("no capabilities in the envelope", "envelope", message=_without(CALL, "clientCapabilities")),
    modern(
        "a version that nobody serves",
        "envelope",
        message=modern_request("tools/list", meta={"io.modelcontextprotocol/protocolVersion": "2027-01-01"}),
        MCP_Protocol_Version="2027-01-01",
    ),
    Case(
        "a member that is given twice", "envelope", body=json.dumps(LIST)[:-1] + ', "id": 2}', base=modern_headers(LIST)
    ),
    modern("a method that this revision has not", "envelope", message=modern_request("ping")),
    modern(
        "a level that is none",
        "envelope",
        message=modern_request("tools/list", meta={"io.modelcontextprotocol/logLevel": "loud"}),
    ),
    modern("a name that is no string", "envelope", message=modern_request("tools/call", {"name": 1})),
    Case(
        "a notification of 2026-07-28",
        body=notification("notifications/x"),
        base={"MCP-Protocol-Version": "2026-07-28"},
    ),
    Case(
        "a response of 2026-07-28",
        "envelope",
        body={"jsonrpc": "2.0", "id": 1, "result": {}},
        base={"MCP-Protocol-Version": "2026-07-28"},
    ),
    # of 2026-07-28, ahead
    modern("an interface that the host does not show", "profile", message=READ),
    modern("a description", message=modern_request("server/discover")),
    modern("a call over a server with sessions", asks="legacy", path="/legacy"),
    modern("what no server with sessions has", "request", path="/legacy", message=modern_request("x/unknown")),
    modern("a call by a rule", asks="legacy", path="/rules"),
    modern("a list that no rule takes", asks="modern", path="/rules", message=LIST),
    modern("a call that is not read here", asks="verifying", path="/verifying"),
    Case("no JSON where it is not read here", asks="verifying", path="/verifying", body="{", base=modern_headers(LIST)),
    # sessions
    Case("an initialize", asks="legacy", path="/legacy", body=INITIALIZE),
    Case(
        "an initialize without capabilities",
        "envelope",
        path="/legacy",
        body=request("initialize", {"protocolVersion": "1"}),
    ),
    Case("a request outside of any session", "session", path="/legacy", body=ECHO),
    legacy("a session that nobody has", "session", message=ECHO, Mcp_Session_Id="planted-session-token"),
    legacy("a session of another route", "session", message=ECHO, path="/modern"),
    legacy("a version that nobody has", "session", message=ECHO, MCP_Protocol_Version="1999-01-01"),
    legacy("a call in a session", asks="legacy", message=ECHO),
    legacy("a list in a session", asks="legacy", message=request("tools/list")),
    legacy("a ping", message=request("ping")),
    legacy("a batch in a session of 2025-11-25", "envelope", message=BATCH),
    legacy("an interface in a session", "profile", message=request("resources/read", {"uri": "ui://app/page"})),
    legacy("a response that nobody waits for", message={"jsonrpc": "2.0", "id": "x.1", "result": {}}),
    legacy("a call in a session over a server without", asks="modern", path="/bridged", message=ECHO),
    legacy(
        "a level in a session over a server without",
        path="/bridged",
        message=request("logging/setLevel", {"level": "info"}),
    ),
    legacy("no level", "request", path="/bridged", message=request("logging/setLevel", {"level": "loud"})),
]


@dataclass
class House:
    gateway: GatewayProcess
    upstreams: dict[str, ModernUpstream | LegacyUpstream]
    sessions: dict[str, Session]

    def calls(self) -> dict[str, int]:
        return {name: len(upstream.requests) for name, upstream in self.upstreams.items()}

    async def explain(self, described: Any, **headers: str) -> Answer:
        front = Front(self.gateway.admin_url).at("/admin/explain")
        return await front.post(described, {"Authorization": f"Bearer {TOKEN}", **headers})

    async def counted(self) -> list[str]:
        """What is counted, but for what grows by itself."""
        front = Front(self.gateway.admin_url).at("/metrics")
        said = await front.send("GET", {"Authorization": f"Bearer {TOKEN}"})
        lines = said.body.decode().splitlines()
        return [one for one in lines if not re.match(r"#|process_|python_|mcp_front_door_tasks", one)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def house() -> AsyncIterator[House]:
    digest = "sha256:" + hashlib.sha256(KEY.encode()).hexdigest()
    async with (
        ModernUpstream() as modern_one,
        LegacyUpstream() as legacy_one,
        ModernUpstream() as verifying,
        running(
            {
                "modern": (modern_one, {"era": "modern"}),
                "legacy": (legacy_one, {"era": "legacy"}),
                "verifying": (verifying, {"era": "modern", "verifies_headers": True, "cache": {"enabled": False}}),
            },
            admin="127.0.0.1:0",
            admin_token=TOKEN,
            limits={"max_body_bytes": 65536},
            clients={
                "desk": {"keys": [digest], "routes": ["/keyed"]},
                "other": {"keys": ["sha256:" + "0" * 64], "routes": ["/closed"]},
            },
            routes=[
                *(
                    {"path": f"/{name}", "upstream": name, "anonymous": True}
                    for name in ("modern", "legacy", "verifying")
                ),
                {"path": "/bridged", "upstream": "modern", "anonymous": True},
                {"path": "/keyed", "upstream": "modern"},
                {"path": "/closed", "upstream": "modern"},
                {
                    "path": "/rules",
                    "anonymous": True,
                    "rules": [{"method": "tools/call", "name": {"prefix": "ec"}, "upstream": "legacy"}],
                    "default": "modern",
                },
            ],
        ) as gateway,
    ):
        upstreams: dict[str, ModernUpstream | LegacyUpstream] = {
            "modern": modern_one,
            "legacy": legacy_one,
            "verifying": verifying,
        }
        sessions = {path: await gateway.front(path).initialize() for path in ("/legacy", "/bridged")}
        for name in ("modern", "verifying"):
            await gateway.front(f"/{name}").modern("tools/list")  # what was asked at the start has been answered
        yield House(gateway, upstreams, sessions)


def _headers(case: Case, house: House) -> dict[str, Any]:
    usual = {"Content-Type": "application/json", "Accept": BOTH} if case.verb == "POST" else {}
    session = house.sessions.get(case.path) or house.sessions["/legacy"]
    lines = {"Host": f"127.0.0.1:{house.gateway.front().port}", **usual, **case.base, **case.headers}
    return {name: session.id if value == SESSION else value for name, value in lines.items() if value is not None}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.about.replace(" ", "-"))
async def test_what_is_explained_is_what_happens(house: House, case: Case) -> None:
    headers = _headers(case, house)
    before, counted = house.calls(), await house.counted()
    described = {"method": case.verb, "path": case.path, "headers": headers}
    explained = await house.explain(described if case.raw is None else {**described, "body": case.raw})
    assert explained.status == 200, repr(explained)
    told = json.loads(explained.body)
    assert house.calls() == before, "nothing is sent"
    assert await house.counted() == counted, "nothing is counted"
    assert not re.search(rb"planted", explained.body), "nothing of the caller's is repeated"
    assert all(one.id not in explained.body.decode() for one in house.sessions.values() if one.id)
    refused = [rung["rung"] for rung in told["rungs"] if rung["verdict"] == "refused"]
    assert refused == ([case.rung] if case.rung else []), told
    assert told["asks"] == (case.asks or None), told

    upstream = house.upstreams.get(case.asks)
    seen = len(upstream.requests) if upstream is not None else 0
    raw = case.raw.encode() if case.raw is not None else None
    answer = await house.gateway.front(case.path).send(case.verb, headers, raw)
    if case.rung:
        assert answer.status == told["answer"]["status"], repr(answer)
        said = json.loads(answer.body)
        assert (said["error"], said.get("id")) == (told["answer"]["error"], told["answer"].get("id"))
        for name, value in told["answer"].get("headers", {}).items():
            assert answer.headers.get(name) == value
        assert house.calls() == before
    elif upstream is not None:
        method = case.body["method"] if isinstance(case.body, dict) else None
        assert any(one.method == method for one in upstream.requests[seen:]), repr(answer)
    else:
        assert answer.status == told["answer"]["status"], repr(answer)


async def test_the_table_has_every_rung_that_refuses() -> None:
    assert {case.rung for case in CASES if case.rung} == {
        *("head", "host", "origin", "route", "verb", "identity", "size", "message", "session", "envelope"),
        *("agreement", "profile", "request"),
    }
