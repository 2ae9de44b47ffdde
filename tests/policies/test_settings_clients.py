"""What `clients` and `admin_token` may be, and what does not fit together with routes and upstreams."""

from typing import Any

import pytest

from policies.settings import Settings
from tests.policies.test_settings import document, faults

DIGEST, OTHER = "sha256:" + "0a" * 32, "sha256:" + "0b" * 32
CLIENT = {"keys": [DIGEST], "routes": ["/mcp"]}
TOKEN = "0123456789abcdef"


def clients(**members: Any) -> dict[str, Any]:
    return document(clients={"ci": {**CLIENT, **members}})


def test_a_client_is_a_name_with_digests_and_routes() -> None:
    settings = Settings.model_validate(clients(keys=[DIGEST.upper().replace("SHA", "sha"), OTHER]))
    assert settings.clients["ci"].keys == (DIGEST, OTHER)


@pytest.mark.parametrize(
    ("value", "place", "complaint"),
    [
        (clients(keys=[]), "clients.ci.keys", "must hold 1 to 8 digests"),
        (clients(keys=[f"sha256:{n:064x}" for n in range(9)]), "clients.ci.keys", "must hold 1 to 8 digests"),
        (clients(keys=["mfd_planted"]), "clients.ci.keys.0", "make a key and its digest with"),
        (clients(keys=["sha256:" + "g" * 64]), "clients.ci.keys.0", "64 hex digits"),
        (clients(keys=[DIGEST, DIGEST]), "clients.ci.keys.1", "is a key of clients.ci already"),
        (clients(routes=[]), "clients.ci.routes", "remove a client that may use none"),
        (clients(routes=["/mpc", "/mcp"]), "clients.ci.routes.0", 'unknown route "/mpc"; did you mean "/mcp"?'),
        (
            document(clients={"ci": CLIENT, "ops": CLIENT}),
            "clients.ops.keys.0",
            "is a key of clients.ci already; give each client its own",
        ),
        (document(clients={"C I": CLIENT}), "clients.C I.[key]", "should match pattern"),
        (document(admin="0.0.0.0:9090"), "admin_token", "admin is open to other machines"),
        (document(admin="[::]:9090"), "admin_token", "admin is open to other machines"),
        (document(admin="127.0.0.1:9090", admin_token="short"), "admin_token", "16 or more"),
        (document(admin="127.0.0.1:9090", admin_token=f"{TOKEN} {TOKEN}"), "admin_token", "16 or more"),
    ],
)
def test_what_does_not_fit_is_refused_and_no_secret_is_quoted(
    value: dict[str, Any], place: str, complaint: str
) -> None:
    found = faults(value)
    assert complaint in found[place], found
    assert "planted" not in "".join(found.values())


def test_an_admin_address_of_other_machines_is_served_with_a_token() -> None:
    assert faults(document(admin="0.0.0.0:9090", admin_token=TOKEN)) == {}
    assert faults(document(admin="[::1]:9090")) == {}
    assert TOKEN not in repr(Settings.model_validate(document(admin_token=TOKEN)))


def test_a_route_that_no_client_may_use_says_so_or_is_anonymous() -> None:
    routes = [{"path": "/mcp", "upstream": "weather"}, {"path": "/other", "upstream": "weather"}]
    found = faults(document(routes=routes, clients={"ci": CLIENT}))
    assert "set anonymous: true" in found["routes.1"]
    assert list(found) == ["routes.1"]
    routes[1]["anonymous"] = True  # type: ignore[assignment]
    assert faults(document(routes=routes, clients={"ci": CLIENT})) == {}


def test_a_clients_key_is_not_to_be_forwarded() -> None:
    upstreams = {
        name: {"url": "http://127.0.0.1:9000/mcp", "forward_headers": ["X-Tenant", "authorization"]}
        for name in ("behind", "by-rule", "elsewhere")
    }
    routes = [
        {"path": "/mcp", "rules": [{"method": "tools/call", "upstream": "by-rule"}], "default": "behind"},
        {"path": "/open", "upstream": "elsewhere", "anonymous": True},
    ]
    found = faults({"upstreams": upstreams, "routes": routes, "clients": {"ci": CLIENT}})
    assert set(found) == {"upstreams.behind.forward_headers.1", "upstreams.by-rule.forward_headers.1"}
    assert all("would pass on the keys that /mcp asks its clients for" in why for why in found.values())
    assert faults({"upstreams": upstreams, "routes": [*routes]}) == {}
