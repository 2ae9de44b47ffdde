"""What a host can show: the built-in profiles, ceilings, and what is left of what a client declares."""

import itertools
import re
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.profiles import built_in
from policies import wellformed
from policies.mcp import APPS_EXTENSION, TASKS_EXTENSION, Json
from policies.profiles import CORE, Profile, Profiles, parse
from policies.settings_profiles import BUILT_IN, BuiltIn, ProfileSettings
from tests.policies.test_settings import document, faults

HTML = "text/html;profile=mcp-app"
CORE_V1, INTERACTIVE, DESKTOP = BUILT_IN
FORMS, SKYBRIDGE = "forms", "skybridge"
OWN = {
    FORMS: ProfileSettings(elicitation=("form",)),
    SKYBRIDGE: ProfileSettings(elicitation=("url", "form"), apps=("text/html+skybridge", HTML)),
    "core-again": ProfileSettings(),
}
PROFILES = Profiles.of(built_in(), OWN)


def ui(*types: Any, **more: Any) -> Json:
    return {"extensions": {APPS_EXTENSION: {"mimeTypes": list(types), **more}}}


BOTH: Json = {"elicitation": {"form": {}, "url": {}}}
ALL: Json = {
    **BOTH,
    **ui(HTML),
    "sampling": {"tools": {}, "context": {}},
    "roots": {"listChanged": True},
    "experimental": {"e": {"x": 1}},
    "x-unknown": [1],
}
RIDES: Json = {key: ALL[key] for key in ("sampling", "roots", "experimental", "x-unknown")}


def test_three_profiles_are_built_in() -> None:
    assert built_in() == (
        CORE,
        Profile("interactive-v1", True, True),
        Profile("desktop-apps-2026-01-26-v1", True, True, (HTML,)),
    )
    assert tuple(profile.name for profile in built_in()) == BUILT_IN == get_args(BuiltIn)
    assert [profile.shows_apps for profile in built_in()] == [False, False, True]
    assert built_in()[-1].capabilities == BOTH | ui(HTML)
    assert CORE.capabilities == {}


@pytest.mark.parametrize(
    "text",
    ["[a]\nelicitation = ['phone']", "[a]\napps = ['html']", "[a]\nurl = true", "[a", "a = 1"],
)
def test_a_table_that_is_no_profile_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse(text)


EFFECTIVE: list[tuple[str, str | None, Json, str, Json]] = [
    # sentence, ceiling, declared, profile, what the upstream is told
    ("a client that declares nothing shows the plain surface", None, {}, "core-v1", {}),
    ("without a ceiling, what a client declares decides", None, ALL, DESKTOP, ALL),
    ("forms and URLs", None, BOTH, INTERACTIVE, BOTH),
    ("an empty capability means forms", None, {"elicitation": {}}, FORMS, {"elicitation": {}}),
    ("forms alone", None, {"elicitation": {"form": {}}}, FORMS, {"elicitation": {"form": {}}}),
    ("URLs alone have no name", None, {"elicitation": {"url": {}}}, "core-v1+url", {"elicitation": {"url": {}}}),
    ("Apps alone have no name", None, ui(HTML), "core-v1+apps", ui(HTML)),
    ("what is not known of elicitation passes", None, {"elicitation": {"form": {"a": 1}, "x": {}}}, FORMS, ...),
    ("odd elicitation is none", None, {"elicitation": True}, "core-v1", {}),
    ("nor is a null", None, {"elicitation": None}, "core-v1", {"elicitation": None}),
    ("core: all that is display goes, the rest rides along", CORE_V1, ALL, CORE_V1, RIDES),
    ("core from the smallest", CORE_V1, {"elicitation": {}}, CORE_V1, {}),
    ("interactive: Apps go", INTERACTIVE, ALL, INTERACTIVE, BOTH | RIDES),
    ("interactive does not make a client ask", INTERACTIVE, ui(HTML), CORE_V1, {}),
    ("desktop: everything stays", DESKTOP, ALL, DESKTOP, ALL),
    ("a ceiling of forms: the URL goes", FORMS, BOTH, FORMS, {"elicitation": {"form": {}}}),
    (
        "with their settings",
        FORMS,
        {"elicitation": {"form": {"a": 1}, "url": {}}},
        FORMS,
        {"elicitation": {"form": {"a": 1}}},
    ),
    ("as they were declared", FORMS, {"elicitation": {}}, FORMS, {"elicitation": {}}),
    ("without what nobody knows", FORMS, {"elicitation": {"form": {}, "x": {}}}, FORMS, {"elicitation": {"form": {}}}),
    ("URLs alone under forms alone are nothing", FORMS, {"elicitation": {"url": {}}}, CORE_V1, {}),
    (
        "another extension stays",
        CORE_V1,
        {"extensions": {APPS_EXTENSION: {}, "a/b": {}}},
        CORE_V1,
        {"extensions": {"a/b": {}}},
    ),
    (
        "Apps in another spelling get the canonical one",
        DESKTOP,
        ui('Text/HTML ; Profile="mcp-app"; charset=utf-8'),
        "core-v1+apps",
        ui(HTML),
    ),
    ("types beyond the ceiling go", DESKTOP, ui("text/html+skybridge", HTML), "core-v1+apps", ui(HTML)),
    ("and settings that the revision has not", DESKTOP, ui(HTML, features=["x"]), "core-v1+apps", ui(HTML)),
    ("another type alone is no Apps", DESKTOP, ui("text/html"), CORE_V1, {}),
    ("no type is none", DESKTOP, ui(), CORE_V1, {}),
    ("odd types are none", DESKTOP, ui(None, 7, "html", ";", "text/html;profile"), CORE_V1, {}),
    ("nor a type longer than any", DESKTOP, ui(f"{HTML};x={'x' * 255}"), CORE_V1, {}),
    ("odd settings are none", DESKTOP, {"extensions": {APPS_EXTENSION: True}}, CORE_V1, {}),
    ("types that are no list are none", DESKTOP, {"extensions": {APPS_EXTENSION: {"mimeTypes": HTML}}}, CORE_V1, {}),
    (
        "without mimeTypes the standard one is meant",
        DESKTOP,
        {"extensions": {APPS_EXTENSION: {}}},
        "core-v1+apps",
        ui(HTML),
    ),
    ("odd extensions are left alone", DESKTOP, {"extensions": [1]}, CORE_V1, {"extensions": [1]}),
    (
        "an operator's profile may be wider",
        SKYBRIDGE,
        BOTH | ui(HTML, "text/html+skybridge"),
        SKYBRIDGE,
        BOTH | ui("text/html+skybridge", HTML),
    ),
    ("and what is left of it may be a built-in one", SKYBRIDGE, BOTH | ui(HTML), DESKTOP, BOTH | ui(HTML)),
    (
        "or have no name",
        SKYBRIDGE,
        ui("text/html+skybridge"),
        "core-v1+apps(text/html+skybridge)",
        ui("text/html+skybridge"),
    ),
    ("a built-in name comes before its like", "core-again", ALL, CORE_V1, RIDES),
]


@pytest.mark.parametrize(
    ("ceiling", "declared", "name", "told"), [r[1:] for r in EFFECTIVE], ids=[r[0] for r in EFFECTIVE]
)
def test_the_effective_profile_is_the_smaller_of_ceiling_and_claim(
    ceiling: str | None, declared: Json, name: str, told: Json
) -> None:
    found = PROFILES.effective(PROFILES.ceiling(ceiling, None), declared)
    assert (found.profile.name, found.capabilities) == (name, declared if told is ... else told)
    assert (found.capabilities is declared) == (found.capabilities == declared)


@pytest.mark.parametrize(
    ("route", "credential", "name"),
    [
        (None, None, None),
        (DESKTOP, None, DESKTOP),
        (None, CORE_V1, CORE_V1),
        (DESKTOP, INTERACTIVE, INTERACTIVE),
        (INTERACTIVE, DESKTOP, INTERACTIVE),
        (FORMS, INTERACTIVE, FORMS),
        (SKYBRIDGE, DESKTOP, DESKTOP),
        ("core-again", DESKTOP, CORE_V1),
    ],
)
def test_of_the_ceilings_of_route_and_credential_the_smaller_holds(
    route: str | None, credential: str | None, name: str | None
) -> None:
    found = PROFILES.ceiling(route, credential)
    assert (found.name if found is not None else None) == name
    assert PROFILES.ceiling(credential, route) == found


@pytest.mark.parametrize(
    ("ceiling", "name", "told"),
    [(None, CORE_V1, {}), (DESKTOP, DESKTOP, BOTH | ui(HTML)), (FORMS, FORMS, {"elicitation": {"form": {}}})],
)
def test_a_client_of_unknown_claims_gets_the_ceiling_itself(ceiling: str | None, name: str, told: Json) -> None:
    found = PROFILES.effective(PROFILES.ceiling(ceiling, None), None)
    assert (found.profile.name, found.capabilities) == (name, told)


IDENTITIES: list[tuple[Json, str]] = [
    ({}, "core-v1"),
    (BOTH, "interactive-v1"),
    ({"elicitation": {}}, "core-v1+form"),
    ({"elicitation": {"form": {}}}, "core-v1+form"),
    (BOTH | ui('TEXT/html; profile="mcp-app"'), DESKTOP),
    ({"sampling": {}}, "core-v1 sampling"),
    (
        {"roots": {"listChanged": True}, "sampling": {"tools": {}}},
        "core-v1 roots roots.listChanged sampling sampling.tools",
    ),
    ({"extensions": {TASKS_EXTENSION: {}, APPS_EXTENSION: {}}}, "core-v1+apps tasks"),
    ({"extensions": {}}, "core-v1"),
    ({"extensions": {TASKS_EXTENSION: {"a": 1}}}, "core-v1 #"),
    ({"roots": {"listChanged": 1}}, "core-v1 #"),
    ({"roots": {"listChanged": False}}, "core-v1 #"),
    ({"sampling": True}, "core-v1 #"),
    ({"extensions": []}, "core-v1 #"),
    ({"elicitation": None}, "core-v1 #"),
    ({"elicitation": {"form": {"x": 1}}}, "core-v1+form #"),
    ({"tasks": {}, "experimental": {"a": {}}}, "core-v1 #"),
]


@pytest.mark.parametrize(("declared", "identity"), IDENTITIES)
def test_what_an_answer_is_shared_by_is_the_profile_and_the_flags_beside_it(declared: Json, identity: str) -> None:
    found = PROFILES.effective(None, declared).identity
    assert re.sub(r" [0-9a-f]{32}$", " #", found) == identity


def test_an_operators_name_is_no_part_of_what_an_answer_is_shared_by() -> None:
    found = PROFILES.effective(PROFILES.by_name[FORMS], BOTH)
    assert (found.profile.name, found.identity) == ("forms", "core-v1+form")


MEMBERS = st.dictionaries(
    st.sampled_from(["form", "url", "tools", "context", "listChanged", "x"]),
    st.sampled_from([{}, True, 1, {"a": 1}]),
    max_size=3,
)
DECLARED = st.fixed_dictionaries(
    {},
    optional={
        "elicitation": MEMBERS,
        "sampling": MEMBERS,
        "roots": MEMBERS,
        "experimental": MEMBERS,
        "extensions": st.dictionaries(st.sampled_from([TASKS_EXTENSION, "a/b"]), MEMBERS, max_size=2),
        "apps": st.lists(st.sampled_from([HTML, "text/html+skybridge", "text/html; profile=MCP-app", "x"]), max_size=3),
    },
)


def declared_of(drawn: Json) -> Json:
    apps = drawn.pop("apps", None)
    return (
        drawn if apps is None else {**drawn, "extensions": {**drawn.get("extensions", {}), **ui(*apps)["extensions"]}}
    )


@given(DECLARED, st.sampled_from([None, *PROFILES.by_name]))
def test_what_is_left_is_left_when_it_is_looked_at_again(drawn: Json, ceiling: str | None) -> None:
    """A session keeps its effective capabilities, and each of its requests is judged by them."""
    allowed = PROFILES.ceiling(ceiling, None)
    once = PROFILES.effective(allowed, declared_of(drawn))
    again = PROFILES.effective(allowed, once.capabilities)
    assert again == once
    assert again.capabilities is once.capabilities
    if allowed is not None:
        assert once.profile.elicitation_form <= allowed.elicitation_form
        assert once.profile.elicitation_url <= allowed.elicitation_url
        assert set(once.profile.apps) <= set(allowed.apps)


def same_meaning(capabilities: Json) -> Any:
    """What a server can make of it, in one spelling."""
    said = {key: value for key, value in capabilities.items() if (key, value) != ("extensions", {})}
    if said.get("elicitation") == {}:
        said["elicitation"] = {"form": {}}
    return wellformed_json(said)


def wellformed_json(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple(sorted((key, wellformed_json(member)) for key, member in value.items()))
    return tuple(value) if isinstance(value, list) else (type(value).__name__, value)


@given(st.lists(DECLARED, min_size=2, max_size=6))
def test_two_have_an_identity_in_common_exactly_where_their_upstream_is_told_the_same(drawn: list[Json]) -> None:
    found = [PROFILES.effective(None, declared_of(one)) for one in drawn]
    for one, other in itertools.combinations(found, 2):
        assert (one.identity == other.identity) == (same_meaning(one.capabilities) == same_meaning(other.capabilities))


# in the configuration

PLAIN = {"path": "/mcp", "upstream": "weather"}
KEY = {"keys": ["sha256:" + "0a" * 32], "routes": ["/mcp"]}


@pytest.mark.parametrize(
    ("value", "place", "complaint"),
    [
        (document(profiles={"core-v1": {}}), "profiles.core-v1", "is built in, and means the same"),
        (document(profiles={"A b": {}}), "profiles.A b.[key]", "should match pattern"),
        (document(profiles={"a": {"elicitation": ["phone"]}}), "profiles.a.elicitation.0", "'form' or 'url'"),
        (document(profiles={"a": {"elicitation": ["form", "form"]}}), "profiles.a.elicitation.1", "keep one"),
        (document(profiles={"a": {"apps": ["html"]}}), "profiles.a.apps.0", "write for example text/html;profile"),
        (document(profiles={"a": {"apps": [f"text/a{n}" for n in range(17)]}}), "profiles.a.apps", "keep the 16"),
        (document(profiles={"a": {"apps": [HTML, "Text/html; profile=mcp-app"]}}), "profiles.a.apps.1", "keep one"),
        (document(profiles={"a": {"app": []}}), "profiles.a.app", "Extra inputs"),
        (
            document(routes=[{**PLAIN, "profile": "core"}]),
            "routes.0.profile",
            'unknown profile "core"; did you mean "core-v1"?',
        ),
        (
            document(clients={"ci": {**KEY, "profile": "kiosks"}}, profiles={"kiosk": {}}),
            "clients.ci.profile",
            'unknown profile "kiosks"; did you mean "kiosk"?',
        ),
    ],
)
def test_a_profile_that_does_not_fit_names_the_field_and_the_fix(
    value: dict[str, Any], place: str, complaint: str
) -> None:
    found = faults(value)
    assert complaint in found[place], found


@pytest.mark.parametrize("shows", [None, "desktop-apps-2026-01-26-v1", "shows"])
def test_apps_are_advertised_where_they_are_shown(shows: str | None) -> None:
    own = {"shows": {"apps": [HTML]}, "kiosk": {"elicitation": ["form"]}}
    advertising = {**PLAIN, "apps": "advertise"}
    assert faults(document(profiles=own, routes=[{**advertising, "profile": shows}])) == {}
    for hides in ("interactive-v1", "kiosk"):
        found = faults(document(profiles=own, routes=[{**advertising, "profile": hides}]))
        assert found == {"routes.0.apps": f"does nothing under profile {hides}, which shows no Apps; remove it"}


def test_routes_and_clients_name_profiles_that_are_built_in_or_the_operators() -> None:
    value = document(
        profiles={"kiosk": {"elicitation": ["url"], "apps": ["Text/HTML; profile=mcp-app"]}},
        routes=[{**PLAIN, "profile": "kiosk"}],
        clients={"ci": {**KEY, "profile": "interactive-v1"}},
    )
    assert faults(value) == {}


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("text/html;profile=mcp-app", HTML),
        ("TEXT/HTML ;  profile = mcp-app", None),
        ('text/html; Profile="MCP-App" ;', HTML),
        ("text/html; charset=utf-8; profile=mcp-app", HTML),
        ("text/html; b=2; a=1", "text/html;a=1;b=2"),
        ("application/vnd.mcp-ui.remote-dom+javascript", "application/vnd.mcp-ui.remote-dom+javascript"),
        ("text", None),
        ("text/", None),
        ("text/html/x", None),
        ('text/html;a="b c"', None),
        ("text/html;a", None),
        ("", None),
    ],
)
def test_a_mime_type_has_one_spelling(text: str, spelled: str | None) -> None:
    if spelled is not None:
        assert wellformed.media_type(text) == spelled
        return
    with pytest.raises(ValueError, match=r"write for example text/html;profile=mcp-app"):
        wellformed.media_type(text)
