"""Whose key a request brings, what a caller without the right one is told, and which callers are one and the same."""

import hashlib

import pytest

from policies.errors import Rejection
from policies.identity import Clients, principal
from policies.settings import Settings
from policies.settings_routes import Route

CI, OPS, OLD = "mfd_" + "a" * 43, "mfd_" + "b" * 43, "mfd_" + "c" * 43


def digest(key: str) -> str:
    return "sha256:" + hashlib.sha256(key.encode()).hexdigest()


SETTINGS = Settings.model_validate(
    {
        "upstreams": {"one": {"url": "http://127.0.0.1:9000/mcp"}},
        "routes": [
            {"path": "/closed", "upstream": "one"},
            {"path": "/open", "upstream": "one", "anonymous": True},
            {"path": "/mcp", "host": "mcp.example.com", "upstream": "one"},
        ],
        "clients": {
            "ci": {"keys": [digest(CI).upper().replace("SHA256", "sha256"), digest(OLD)], "routes": ["/closed"]},
            "ops": {"keys": [digest(OPS)], "routes": ["/open", "mcp.example.com/mcp"]},
        },
    }
)
CLOSED, OPEN, HOSTED = SETTINGS.routes


@pytest.mark.parametrize(
    ("route", "lines", "expected"),
    [
        (CLOSED, [f"Bearer {CI}"], "ci"),
        (CLOSED, [f"bearer {CI}"], "ci"),
        (CLOSED, [f"BEARER   {CI} "], "ci"),
        (CLOSED, [f"Bearer {OLD}"], "ci"),
        (HOSTED, [f"Bearer {OPS}"], "ops"),
        (OPEN, [f"Bearer {OPS}"], "ops"),
        (OPEN, [f"Bearer {CI}"], None),
        (OPEN, [], None),
        (OPEN, ["Bearer something-for-the-upstream"], None),
        (OPEN, ["Basic dXNlcjpwYXNz"], None),
        (CLOSED, [], 401),
        (CLOSED, [""], 401),
        (CLOSED, ["Bearer"], 401),
        (CLOSED, ["Bearer "], 401),
        (CLOSED, [CI], 401),
        (CLOSED, [f"Basic {CI}"], 401),
        (CLOSED, [f"Bearer {CI[:-1]}"], 401),
        (CLOSED, [f"Bearer {CI}a"], 401),
        (CLOSED, [f"Bearer {CI.upper()}"], 401),
        (CLOSED, [f"Bearer {digest(CI)}"], 401),
        (CLOSED, [f"Bearer {digest(CI).removeprefix('sha256:')}"], 401),
        (CLOSED, [f"Bearer {CI}", f"Bearer {CI}"], 401),
        (CLOSED, ["Bearer \udcff\udc80"], 401),
        (CLOSED, [f"Bearer {OPS}"], 403),
        (HOSTED, [f"Bearer {CI}"], 403),
    ],
)
def test_a_key_is_known_by_its_digest_and_good_for_its_routes_alone(
    route: Route, lines: list[str], expected: str | int | None
) -> None:
    found = Clients.of(SETTINGS).identify(route, lines)
    assert (found.http if isinstance(found, Rejection) else found) == expected
    if isinstance(found, Rejection):
        challenge = dict(found.headers).get("WWW-Authenticate")
        assert (challenge is not None and challenge.startswith("Bearer ")) == (expected == 401)


def test_without_any_client_every_route_is_open() -> None:
    settings = Settings.model_validate({**SETTINGS.model_dump(exclude_unset=True), "clients": {}})
    for route in settings.routes:
        assert Clients.of(settings).identify(route, [f"Bearer {CI}"]) is None


def test_callers_are_told_apart_by_client_and_by_what_goes_upstream() -> None:
    sent = [("X-Tenant", "a")]
    callers = [
        principal([]),
        principal(sent),
        principal([("X-Tenant", "b")]),
        principal([], "ci"),
        principal([], "ops"),
        principal(sent, "ci"),
        principal(sent, "ops"),
    ]
    assert len(set(callers)) == len(callers)
    assert principal([("x-tenant", "a")], "ci") == principal(sent, "ci")
