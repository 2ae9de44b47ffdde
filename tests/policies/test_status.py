"""What several processes see of one gateway, added up and told."""

from typing import Any

import pytest

from policies.apps_matrix import Layer
from policies.recent import Slot, Trouble
from policies.settings import Settings
from policies.status import MAX_CHARS, About, Endpoint, Hosted, Process, Seen, added, told
from policies.status_html import page, parts

NOW_S = 1_800_000_000.0
EVIL = "<script>alert(1)</script>"
SECRET = "s3cret-value-that-nobody-sees"


def configured(**more: Any) -> Settings:
    document = {
        "listen": "127.0.0.1:0",
        "upstreams": {"a": {"url": "http://127.0.0.1:1/mcp"}, "b": {"command": "server", "args": [SECRET]}},
        "routes": [
            {"path": "/a", "upstream": "a"},
            {
                "path": "/both",
                "rules": [
                    {"name": {"glob": EVIL}, "upstream": "b"},
                    {"method": "tools/call", "params": {"Region": {"prefix": "eu"}}, "upstream": "b"},
                ],
                "default": "a",
            },
        ],
    }
    return Settings.model_validate(document | more)


def process(workers: int = 0, answered: int = 0) -> Process:
    return Process("ready", "1.0", NOW_S - 60, workers, answered)


def layered(state: Any) -> tuple[Layer, ...]:
    return (Layer("Protocol Connection", state, "2026-07-28"),)


ONE = About(
    is_up=True,
    eras=("modern",),
    version="2026-07-28",
    name="server",
    release="1.2",
    endpoints=(Endpoint("x:1/mcp", True, 2), Endpoint("y:1/mcp", True, 0)),
    sessions=1,
    leases=0,
    streams=2,
    slots=(Slot(int(NOW_S), 2, 0, 0.4, 0.3),),
    hosts={"core-v1": Hosted(layered("negotiated"), 5.0), "other": Hosted(layered("supported"))},
)
OTHER = About(
    is_up=False,
    eras=("modern", "legacy"),
    endpoints=(Endpoint("x:1/mcp", False, 3),),
    sessions=4,
    leases=1,
    slots=(Slot(int(NOW_S), 1, 1, 0.2, 0.2),),
    hosts={"core-v1": Hosted(layered("degraded"), 4.0), "other": Hosted(layered("negotiated"), 1.0)},
)


def test_what_two_workers_see_is_added_up() -> None:
    seen = added(
        [
            Seen({"a": ONE}, (Trouble("call", "503", "a", "", 1, 1.0),), {"streams": 1}, {"hit": 2}, True),
            Seen({"a": OTHER}, (Trouble("call", "503", "a", "", 1, 2.0),), {"streams": 2}, {"miss": 1}, False),
        ]
    )
    said = told(configured(), process(2, 2), seen, NOW_S)
    assert said["process"] == {"kind": "supervisor", "since": "2027-01-15T07:59:00Z", "workers": 2, "answered": 2}
    assert said["numbers"] == {"streams": 3}
    assert said["cache"] == {"on": True, "requests": {"hit": 2, "miss": 1}}
    assert said["store"] == {"shared": False, "up": False}
    assert said["errors"] == [
        {"kind": "call", "code": "503", "upstream": "a", "route": "", "count": 2, "at": "1970-01-01T00:00:02Z"}
    ]
    a = said["upstreams"][0]
    assert (a["state"], a["eras"], a["version"]) == ("down", ["modern", "legacy"], "2026-07-28")
    assert a["server"] == {"name": "server", "version": "1.2"}
    assert (a["sessions"], a["leases"], a["streams"]) == (5, 1, 2)
    assert a["endpoints"] == [
        {"label": "x:1/mcp", "in_service": False, "requests": 5},
        {"label": "y:1/mcp", "in_service": True, "requests": 0},
    ]
    assert a["calls"] == {"over_s": 60, "calls": 3, "failed": 1, "mean_ms": 200.0, "slowest_ms": 300.0}
    assert len(a["latency"]["points"]) == 60
    states = {profile: [layer["state"] for layer in layers] for profile, layers in a["hosts"].items()}
    assert states == {"core-v1": ["negotiated"], "other": ["negotiated"]}, "the last host of a kind counts"


def test_an_upstream_of_which_no_process_tells_is_not_known() -> None:
    said = told(configured(), process(2, 0), added([]), NOW_S)
    assert [(upstream["name"], upstream["state"]) for upstream in said["upstreams"]] == [
        ("a", "not known"),
        ("b", "not known"),
    ]
    assert "0 have said what follows" in page(said)


def test_routes_are_told_with_their_rules() -> None:
    a, both = told(configured(), process(), Seen(), NOW_S)["routes"]
    assert (a["address"], a["upstream"], a["rules"]) == ("/a", "a", [])
    assert both["rules"] == [
        {"when": f"name is like {EVIL}", "upstream": "b"},
        {"when": "method is tools/call, param Region starts with eu", "upstream": "b"},
    ]


def test_what_a_server_calls_itself_is_cut() -> None:
    long = About(is_up=True, eras=(), name="n" * 1000, release="r" * 1000)
    server = told(configured(), process(), Seen({"a": long}), NOW_S)["upstreams"][0]["server"]
    assert server == {"name": "n" * MAX_CHARS, "version": "r" * MAX_CHARS}


def test_no_secret_of_the_configuration_is_told() -> None:
    settings = configured(
        upstreams={
            "a": {"url": f"http://127.0.0.1:1/mcp?key={SECRET}", "headers": {"X-Key": SECRET}},
            "b": {"command": "server", "args": [SECRET], "env": {"KEY": SECRET}},
        },
        admin_token=SECRET,
        keys=["k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"],
    )
    said = told(settings, process(), Seen({"a": ONE}), NOW_S)
    for text in (str(said), page(said), str(parts(said))):
        assert SECRET not in text
        assert "AAAAAAAA" not in text


@pytest.mark.parametrize("where", ["name", "release", "version", "label", "profile", "layer", "code", "glob"])
def test_text_of_servers_and_of_the_configuration_is_escaped(where: str) -> None:
    def evil(place: str) -> str:
        return EVIL if where == place else "x"

    about = About(
        is_up=True,
        eras=("modern",),
        version=evil("version"),
        name=evil("name"),
        release=evil("release"),
        endpoints=(Endpoint(evil("label"), True, 0),),
        hosts={evil("profile"): Hosted((Layer("Core Host", "negotiated", evil("layer")),))},
    )
    said = told(configured(), process(), Seen({"a": about}, (Trouble("call", evil("code")),)), NOW_S)
    for written in (page(said), *parts(said).values()):
        assert "<script>" not in written
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page(said)


def test_a_curve_breaks_where_nothing_was_called_and_marks_failures() -> None:
    at_s = int(NOW_S)
    slots = (Slot(at_s - 20, 1, 0, 0.1, 0.1), Slot(at_s - 15, 1, 0, 0.2, 0.2), Slot(at_s, 1, 1, 0.1, 0.1))
    drawn = parts(told(configured(), process(), Seen({"a": About(True, (), slots=slots)}), NOW_S))["upstreams"]
    assert drawn.count("<polyline") == 1
    assert drawn.count('class="point"') == 1
    assert drawn.count('class="failed"') == 1
    assert "Mean time of calls to a: at most 200.0 ms, 1 failed" in drawn
