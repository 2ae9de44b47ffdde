"""The four layers between a host and an upstream, and what makes each of them what it is."""

from typing import Any

import pytest

from gateway.profiles import built_in
from policies.apps_matrix import Heard, has_interface, layers
from policies.mcp import APPS_EXTENSION, LATEST_LEGACY, LATEST_MODERN, Json
from policies.profiles import Profile

CORE, INTERACTIVE, DESKTOP = built_in()
FORMS = Profile("forms", True)
APPS: Json = {"extensions": {APPS_EXTENSION: {}}}
TOOLS: Json = {"tools": {"listChanged": True}}

N, D, U, S = "negotiated", "degraded", "unavailable", "supported"


def heard(profile: Profile, version: str = LATEST_MODERN, asked: str | None = None, **members: Any) -> Heard:
    said = {"told": profile.capabilities, "capabilities": TOOLS, **members}
    return Heard(asked or (LATEST_MODERN if version == LATEST_MODERN else LATEST_LEGACY), version, **said)


MATRIX: list[tuple[str, Profile, Heard | None, tuple[str, str, str, str]]] = [
    # sentence, profile, what was heard, Protocol Connection, Core Host, Interactive Host, Apps Host
    ("before anything is exchanged, a host has what it has", DESKTOP, None, (S, S, S, S)),
    ("and not what it has not", INTERACTIVE, None, (S, S, S, U)),
    ("a command line has the core alone", CORE, None, (S, S, U, U)),
    (
        "a server that does not answer makes nothing available",
        DESKTOP,
        Heard(LATEST_MODERN, why="refused"),
        (U, U, U, U),
    ),
    ("core against a server of its own era", CORE, heard(CORE), (N, N, U, U)),
    ("interactive against it", INTERACTIVE, heard(INTERACTIVE), (N, N, N, U)),
    ("both speak of Apps", DESKTOP, heard(DESKTOP, capabilities=TOOLS | APPS), (N, N, N, N)),
    ("the server keeps silent about Apps", DESKTOP, heard(DESKTOP), (N, N, N, D)),
    ("also where it lists them", DESKTOP, heard(DESKTOP, lists_apps=True), (N, N, N, D)),
    ("a server that speaks of Apps unasked", INTERACTIVE, heard(INTERACTIVE, capabilities=TOOLS | APPS), (N, N, N, U)),
    ("the newest sessions", DESKTOP, heard(DESKTOP, LATEST_LEGACY, capabilities=TOOLS | APPS), (N, N, N, N)),
    ("a session of 2025-06-18 has no URLs", DESKTOP, heard(DESKTOP, "2025-06-18"), (D, N, D, D)),
    ("but forms", FORMS, heard(FORMS, "2025-06-18"), (D, N, N, U)),
    ("one of 2025-03-26 has neither", FORMS, heard(FORMS, "2025-03-26"), (D, N, D, U)),
    ("which is as asked for where that was asked for", CORE, heard(CORE, "2024-11-05", "2024-11-05"), (N, N, U, U)),
    ("a server that offers nothing", CORE, heard(CORE, capabilities={"logging": {}}), (N, D, U, U)),
    ("odd capabilities are none", CORE, heard(CORE, capabilities={"tools": True}), (N, D, U, U)),
    ("a process that is shared is told of nobody", DESKTOP, heard(DESKTOP, told={}), (N, N, D, D)),
]


@pytest.mark.parametrize(("profile", "what", "states"), [row[1:] for row in MATRIX], ids=[row[0] for row in MATRIX])
def test_each_layer_has_the_state_that_was_lived(
    profile: Profile, what: Heard | None, states: tuple[str, str, str, str]
) -> None:
    found = layers(profile, what)
    assert [layer.name for layer in found] == ["Protocol Connection", "Core Host", "Interactive Host", "Apps Host"]
    assert tuple(layer.state for layer in found) == states
    assert all(layer.detail for layer in found)


@pytest.mark.parametrize(
    ("profile", "what", "layer", "detail"),
    [
        (DESKTOP, heard(DESKTOP, "2025-06-18"), 0, "asked for 2025-11-25, answered in 2025-06-18"),
        (DESKTOP, heard(DESKTOP, "2025-06-18"), 2, "2025-06-18 has no elicitation by url"),
        (DESKTOP, heard(DESKTOP, "2024-11-05"), 2, "2024-11-05 has no elicitation by form or url"),
        (CORE, heard(CORE, capabilities={"tools": {}, "prompts": {}}), 1, "prompts, tools"),
        (CORE, None, 3, "core-v1 shows no Apps"),
        (DESKTOP, heard(DESKTOP, lists_apps=True), 3, "lists tools with an interface, and does not name"),
        (DESKTOP, heard(DESKTOP, lists_apps=False), 3, "the server does not name"),
        (DESKTOP, Heard(LATEST_MODERN, why="no answer"), 0, "no answer"),
    ],
)
def test_a_layer_says_why(profile: Profile, what: Heard | None, layer: int, detail: str) -> None:
    assert detail in layers(profile, what)[layer].detail


@pytest.mark.parametrize(
    ("tool", "is_one"),
    [
        ({"_meta": {"ui": {"resourceUri": "ui://a/b"}}}, True),
        ({"_meta": {"ui/resourceUri": "ui://a/b"}}, True),
        ({"_meta": {"ui": {"visibility": ["app"]}}}, True),
        ({"_meta": {"ui": {}}}, False),
        ({"_meta": {"ui": True}}, False),
        ({"_meta": {"com.example/ui": {}}}, False),
        ({"_meta": None}, False),
        ({}, False),
        ("tool", False),
    ],
)
def test_a_tool_of_apps_names_its_interface_or_for_whom_it_is(tool: Any, is_one: bool) -> None:
    assert has_interface(tool) == is_one


def test_a_server_that_has_met_no_such_host_is_judged_by_what_it_has_said_of_itself() -> None:
    """The two lower layers are the same for every host; of the others, nothing is known yet."""
    profile = Profile("p", elicitation_form=True, apps=("text/html;profile=mcp-app",))
    heard = Heard("2026-07-28", "2026-07-28", None, {"tools": {}, "extensions": {APPS_EXTENSION: {}}})
    assert [(layer.state, layer.detail) for layer in layers(profile, heard)] == [
        ("negotiated", "2026-07-28"),
        ("negotiated", "tools"),
        ("supported", "no such host has come yet"),
        ("supported", "no such host has come yet"),
    ]
