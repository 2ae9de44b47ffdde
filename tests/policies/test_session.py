"""What a session id says, to whom, and when it says nothing."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies import jsonrpc, sealing, session
from policies.errors import ClientFault
from policies.exchange import FrontSession, UpstreamSession
from policies.sealing import KeyRing
from policies.settings_routes import Route

RING = KeyRing((("k1", b"1" * 32),))
OTHER = KeyRing((("k1", b"2" * 32),))
ROTATED = KeyRing((("k2", b"2" * 32), ("k1", b"1" * 32)))
NONCE = bytes(range(28))
ROUTE = "*/mcp"
OPENED = FrontSession(
    id="5e55",
    route=ROUTE,
    version="2025-11-25",
    client_info={"name": "größe", "version": "1"},
    capabilities={"elicitation": {"form": {}}, "x-unknown": [None, 1.5, "日本"]},
    principal="anonymous",
    issued_s=1_800_000_000,
    expires_s=1_800_086_400,
    upstreams={"weather": UpstreamSession("abc", "2025-06-18"), "bare": UpstreamSession(None, "2024-11-05")},
)


def content(**changed: Any) -> bytes:
    """The inside of a token, as the gateway writes it."""
    inside = {"i": "5e55", "v": "2025-11-25", "n": {}, "c": {}, "p": "anonymous", "t": 1, "e": 2, "u": {}}
    return jsonrpc.dumps({k: v for k, v in {**inside, **changed}.items() if v is not ...})


def sealed(raw: bytes, purpose: sealing.Purpose = "session", route: str = ROUTE) -> str:
    return sealing.seal(RING, purpose, route, raw, NONCE)


def test_a_token_says_all_that_was_sealed() -> None:
    assert session.unseal(RING, ROUTE, session.seal(RING, OPENED, NONCE)) == OPENED


def test_a_token_is_visible_ascii() -> None:
    token = session.seal(RING, OPENED, NONCE)
    assert all(0x21 <= ord(letter) <= 0x7E for letter in token)
    assert len(token) < 1024


def test_a_token_shows_nothing_of_what_it_says() -> None:
    token = session.seal(RING, OPENED, NONCE)
    assert "5e55" not in token
    assert "weather" not in token


def test_the_nonce_alone_makes_another_token() -> None:
    assert session.seal(RING, OPENED, NONCE) != session.seal(RING, OPENED, NONCE[::-1])


def test_expiry_is_inside_and_not_judged_here() -> None:
    ended = replace(OPENED, issued_s=1, expires_s=0)
    assert session.unseal(RING, ROUTE, session.seal(RING, ended, NONCE)) == ended


def test_a_token_outlives_a_new_key() -> None:
    assert session.unseal(ROTATED, ROUTE, session.seal(RING, OPENED, NONCE)) == OPENED


def test_the_content_is_read_as_it_is_written() -> None:
    found = session.unseal(RING, ROUTE, sealed(content(u={"a": ["x", "2025-11-25"], "b": [None, "2024-11-05"]})))
    assert found == FrontSession(
        "5e55", ROUTE, "2025-11-25", {}, {}, "anonymous", 1, 2,
        {"a": UpstreamSession("x", "2025-11-25"), "b": UpstreamSession(None, "2024-11-05")},
    )  # fmt: skip


def test_where_a_session_was_opened_is_read_as_it_is_written() -> None:
    where = UpstreamSession("x", "2025-11-25", "0a1b2c3d", "AWSALB=abc; b=1")
    opened = replace(OPENED, upstreams={"a": where, "b": UpstreamSession(None, "2024-11-05", "", "c=1")})
    assert session.unseal(RING, ROUTE, session.seal(RING, opened, NONCE)) == opened
    found = session.unseal(RING, ROUTE, sealed(content(u={"a": where.members})))
    assert found is not None
    assert found.upstreams == {"a": where}


GENUINE = session.seal(RING, OPENED, NONCE)
NOT_OURS = {
    "an empty text": "",
    "garbage": "garbage",
    "another kind of id": "9f1c7c52-2c9f-4c0e-8d62-2f7a1a0c0001",
    "not ASCII": "größe",
    "a lone surrogate": "\udcf6",
    "too long to be one": "1k1." + "A" * 2_000_000,
    "a letter more": GENUINE + "A",
    "a letter less": GENUINE[:-1],
    "other letters": GENUINE.swapcase(),
    "an altered letter": GENUINE[:60] + ("A" if GENUINE[60] != "A" else "B") + GENUINE[61:],
    "a key that is not there": GENUINE.replace("k1.", "k9."),
    "another key of that name": session.seal(OTHER, OPENED, NONCE),
    "another route's": session.seal(RING, replace(OPENED, route="*/other"), NONCE),
    "a token of another purpose": sealed(content(), "cursor"),
    "no JSON": sealed(b"{"),
    "not UTF-8": sealed(b"\xff"),
    "nothing": sealed(b""),
    "an array": sealed(b"[]"),
    "a number": sealed(b"1"),
    "JSON nested for ever": sealed(b"[" * 100_000),
    "a member missing": sealed(content(p=...)),
    "a member too many": sealed(content(x=1)),
    "an id of a wrong type": sealed(content(i=5)),
    "a time of a wrong type": sealed(content(e="2")),
    "a time that is a float": sealed(content(e=2.5)),
    "a time that is a truth": sealed(content(e=True)),
    "capabilities of a wrong type": sealed(content(c=[])),
    "an upstream of a wrong type": sealed(content(u={"a": "x"})),
    "an upstream without its version": sealed(content(u={"a": ["x"]})),
    "an upstream with an endpoint alone": sealed(content(u={"a": ["x", "2025-11-25", "0a1b2c3d"]})),
    "an upstream with a cookie of a wrong type": sealed(content(u={"a": ["x", "2025-11-25", "", None]})),
    "an upstream with a version of a wrong type": sealed(content(u={"a": ["x", None]})),
}


@pytest.mark.parametrize("token", NOT_OURS.values(), ids=NOT_OURS)
def test_anything_else_is_no_session(token: str) -> None:
    assert session.unseal(RING, ROUTE, token) is None


@pytest.mark.parametrize(
    "raw",
    [
        rb'{"experimental":{"x":1e400}}',
        rb'{"experimental":{"x":123456789012345678901234567890}}',
        rb'{"experimental":{"x":0.12345678901234567890123}}',
        rb'{"experimental":{"x":"\ud800"}}',
        rb'{"\udfff":{}}',
        rb'{"experimental":{"x":[true,null,-0.0,"\u0000"]}}',
    ],
)
def test_capabilities_keep_every_number_and_string(raw: bytes) -> None:
    declared = replace(OPENED, capabilities=jsonrpc.loads(raw))
    found = session.unseal(RING, ROUTE, session.seal(RING, declared, NONCE))
    assert found is not None
    assert jsonrpc.dumps(found.capabilities) == jsonrpc.dumps(declared.capabilities)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), json_values, max_size=4))
def test_whatever_is_declared_comes_back(declared: dict[str, Any]) -> None:
    opened = replace(OPENED, capabilities=declared)
    assert session.unseal(RING, ROUTE, session.seal(RING, opened, NONCE)) == opened


def incompressible(chars: int) -> str:
    """Hex digits without a pattern."""
    state, digits = 1, []
    while len(digits) < chars:
        state = state * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
        digits.append(f"{state >> 60:x}")
    return "".join(digits)


@pytest.mark.parametrize("text", [incompressible(7_000), "a" * 1_100_000], ids=["for a token", "for any sealing"])
def test_capabilities_that_do_not_fit_are_refused_with_the_bound(text: str) -> None:
    with pytest.raises(ClientFault) as caught:
        session.seal(RING, replace(OPENED, capabilities={"experimental": {"x": text}}), NONCE)
    rejection = caught.value.rejection()
    assert (rejection.code, rejection.status) == (-32602, 400)
    assert "capabilities" in rejection.message
    assert "4096" in rejection.message
    assert text[:100] not in rejection.message


def test_capabilities_that_just_fit_are_kept() -> None:
    opened = replace(OPENED, capabilities={"experimental": {"x": incompressible(4_000)}})
    token = session.seal(RING, opened, NONCE)
    assert len(token) <= session.MAX_TOKEN
    assert session.unseal(RING, ROUTE, token) == opened


@pytest.mark.parametrize(
    ("route", "key"),
    [
        ({"path": "/mcp"}, "*/mcp"),
        ({"path": "/mcp", "host": "mcp.example.com"}, "mcp.example.com/mcp"),
        ({"path": "/mcp", "host": "*.example.com"}, "*.example.com/mcp"),
        ({"path": "/a/b"}, "*/a/b"),
    ],
)
def test_a_route_is_told_by_its_address(route: dict[str, Any], key: str) -> None:
    assert session.route_key(Route.model_validate({"upstream": "u", **route})) == key
    assert session.route_key(Route.model_validate({"upstream": "another", **route})) == key


@pytest.mark.parametrize(
    ("info", "kept"),
    [
        ({"name": "n", "version": "1"}, {"name": "n", "version": "1"}),
        ({"version": "1", "title": "T", "name": "n"}, {"name": "n", "title": "T", "version": "1"}),
        ({"name": "n", "icons": [{"src": "x"}], "websiteUrl": "https://x"}, {"name": "n"}),
        ({"name": "ü" * 200, "version": ""}, {"name": "ü" * 128, "version": ""}),
        ({"name": 5, "version": None, "title": ["T"]}, {}),
        ({}, {}),
    ],
)
def test_of_a_client_its_names_are_kept_and_bounded(info: dict[str, Any], kept: dict[str, str]) -> None:
    assert session.bounded_info(info) == kept


def test_there_is_one_answer_for_every_token_that_is_no_session() -> None:
    assert (session.NOT_FOUND.code, session.NOT_FOUND.status) == (-32001, 404)
