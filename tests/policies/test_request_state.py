"""The gateway's own `requestState`: whom and what it is good for.

Specification: 2026-07-28 basic/patterns/mrtr, Server Requirements.
"""

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies import request_state
from policies.jsonrpc import loads
from policies.request_state import Bond, State, canonical, fingerprint
from policies.sealing import NONCE_BYTES, KeyRing, new_key, seal

Json = dict[str, Any]

RING = KeyRing.of(new_key("one", b"1" * 32))
OTHER_RING = KeyRing.of(new_key("one", b"2" * 32))
ROUTE, NONCE = "/mcp", b"n" * NONCE_BYTES
STATE = State(exchange="e1", round=3, principal="p", request="f", expires_s=1000)


def sealed(state: State = STATE, ring: KeyRing = RING, route: str = ROUTE) -> str:
    return request_state.seal(ring, route, state, NONCE)


def test_a_state_comes_back_as_it_was() -> None:
    assert request_state.unseal(RING, ROUTE, sealed(), 999.9) == STATE


def test_a_state_is_opaque() -> None:
    token = sealed(State(exchange="e-mark", round=0, principal="p-mark", request="r-mark", expires_s=1))
    assert token.isascii()
    assert token.isprintable()
    padded = token.rpartition(".")[2] + "=="
    for mark in ("e-mark", "p-mark", "r-mark"):
        assert mark not in token
        assert mark.encode() not in base64.urlsafe_b64decode(padded)


REFUSED: list[tuple[str, Any, str, float]] = [
    ("at its expiry", sealed(), ROUTE, 1000.0),
    ("after its expiry", sealed(), ROUTE, 5000.0),
    ("on another route", sealed(), "/other", 0.0),
    ("under another key of the same name", sealed(ring=OTHER_RING), ROUTE, 0.0),
    ("with a character more", sealed() + "A", ROUTE, 0.0),
    ("with a character less", sealed()[:-1], ROUTE, 0.0),
    ("empty", "", ROUTE, 0.0),
    ("some text", "größe=+/", ROUTE, 0.0),
    ("a number", 5, ROUTE, 0.0),
    ("null", None, ROUTE, 0.0),
    ("an object", {"a": 1}, ROUTE, 0.0),
    ("sealed for another purpose", seal(RING, "session", ROUTE, STATE.model_dump_json().encode(), NONCE), ROUTE, 0.0),
    ("sealed, and no state", seal(RING, "state", ROUTE, b"[]", NONCE), ROUTE, 0.0),
    ("sealed, and not JSON", seal(RING, "state", ROUTE, b"\xff", NONCE), ROUTE, 0.0),
    (
        "sealed, and of a later form",
        seal(RING, "state", ROUTE, STATE.model_dump_json().encode()[:-1] + b',"x":1}', NONCE),
        ROUTE,
        0.0,
    ),
]


@pytest.mark.parametrize(("token", "route", "now_s"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_a_state_is_refused(token: Any, route: str, now_s: float) -> None:
    assert request_state.unseal(RING, route, token, now_s) is None


def test_no_character_of_a_state_may_change() -> None:
    token = sealed()
    for place, character in enumerate(token):
        other = "A" if character != "A" else "Q"
        assert request_state.unseal(RING, ROUTE, token[:place] + other + token[place + 1 :], 0.0) is None, place


CALL: Json = {"name": "t", "arguments": {"a": 1, "b": {"c": [1, {"d": None}], "e": "ä"}}}

SAME: list[tuple[str, Json]] = [
    ("the same", CALL),
    ("members in another order", {"arguments": {"b": {"e": "ä", "c": [1, {"d": None}]}, "a": 1}, "name": "t"}),
    ("its answers", {**CALL, "inputResponses": {"k": {"action": "accept"}}, "requestState": "s"}),
    ("a progress token and the like", {**CALL, "_meta": {"progressToken": 5}}),
]
DIFFERENT: list[tuple[str, Json]] = [
    ("another name", {**CALL, "name": "T"}),
    ("another argument", {**CALL, "arguments": {**CALL["arguments"], "a": 2}}),
    ("an argument more", {**CALL, "arguments": {**CALL["arguments"], "z": None}}),
    ("an argument less", {**CALL, "arguments": {"a": 1}}),
    ("an argument of another type", {**CALL, "arguments": {**CALL["arguments"], "a": "1"}}),
    ("true for one", {**CALL, "arguments": {**CALL["arguments"], "a": True}}),
    ("an array in another order", {"name": "t", "arguments": {"a": 1, "b": {"c": [{"d": None}, 1], "e": "ä"}}}),
    ("no arguments", {"name": "t"}),
    ("an unknown member", {**CALL, "x-vendor": 1}),
]


@pytest.mark.parametrize("params", [row[1] for row in SAME], ids=[row[0] for row in SAME])
def test_a_retry_is_the_same_request_with(params: Json) -> None:
    assert fingerprint("tools/call", params) == fingerprint("tools/call", CALL)


@pytest.mark.parametrize("params", [row[1] for row in DIFFERENT], ids=[row[0] for row in DIFFERENT])
def test_a_retry_is_another_request_with(params: Json) -> None:
    assert fingerprint("tools/call", params) != fingerprint("tools/call", CALL)


def test_another_method_is_another_request() -> None:
    assert fingerprint("prompts/get", {"name": "x"}) != fingerprint("tools/call", {"name": "x"})


def test_odd_strings_have_a_fingerprint() -> None:
    assert fingerprint("tools/call", {"name": "\ud800"}) != fingerprint("tools/call", {"name": "\ud801"})


def test_the_deepest_arguments_that_can_be_configured_have_a_fingerprint() -> None:
    deep: Any = 1
    for _ in range(256):
        deep = [{"a": deep}]
    assert fingerprint("tools/call", {"arguments": deep}) == fingerprint("tools/call", {"arguments": deep})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_the_canonical_form_is_the_same_json(value: Any) -> None:
    assert canonical(value) == value
    assert canonical(canonical(value)) == canonical(value)


BOND = Bond(RING, "*/mcp", "one", "client:ci")
ASKED = {
    "resultType": "input_required",
    "inputRequests": {"k": {"method": "roots/list"}},
    "requestState": "their's",
    "x": 1,
}


def test_an_upstreams_own_state_comes_back_as_it_was_and_is_opaque_meanwhile() -> None:
    result = BOND.to_client(ASKED, NONCE)
    assert {**result, "requestState": "their's"} == ASKED
    assert "their" not in result["requestState"]
    retry = {"name": "t", "requestState": result["requestState"], "inputResponses": {}, "x": [1]}
    assert BOND.to_upstream(retry) == {**retry, "requestState": "their's"}


@pytest.mark.parametrize("state", ["", "é\ud800\\u0000", {"a": 1}, None, 7, "s" * 300_000], ids=repr)
def test_whatever_an_upstream_calls_its_state_comes_back(state: Any) -> None:
    result = BOND.to_client({**ASKED, "requestState": state}, NONCE)
    assert BOND.to_upstream({"requestState": result["requestState"]}) == {"requestState": state}


@pytest.mark.parametrize(
    "other",
    [
        Bond(OTHER_RING, BOND.route, BOND.upstream, BOND.principal),
        Bond(RING, "*/other", BOND.upstream, BOND.principal),
        Bond(RING, BOND.route, "two", BOND.principal),
        Bond(RING, BOND.route, BOND.upstream, "client:ops"),
    ],
    ids=["key", "route", "upstream", "principal"],
)
def test_an_upstreams_state_is_good_for_one_caller_route_and_upstream(other: Bond) -> None:
    token = BOND.to_client(ASKED, NONCE)["requestState"]
    assert other.to_upstream({"requestState": token}) == request_state.FOREIGN


@pytest.mark.parametrize("token", ["", "their's", 5, {}, [], False, sealed()], ids=repr)
def test_a_state_that_was_not_sealed_here_is_refused(token: Any) -> None:
    assert BOND.to_upstream({"requestState": token}) == request_state.FOREIGN


@pytest.mark.parametrize("name", ["requestState", r"request\u0053tate", r"\u0072equestState"])
def test_a_states_name_is_known_in_every_spelling(name: str) -> None:
    raw = b'{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","%s":"a","n":1.10}}' % name.encode()
    sealed_raw = BOND.response(raw, NONCE)
    token = loads(sealed_raw)["result"]["requestState"]
    request = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"%s":"%s"}}' % (name.encode(), token.encode())
    sent = BOND.request(request)
    assert isinstance(sent, bytes)
    assert loads(sent)["params"] == {"requestState": "a"}
    other = Bond(RING, BOND.route, BOND.upstream, "client:ops")
    assert other.request(request) == request_state.FOREIGN


UNTOUCHED = [
    b'{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[]}}',
    b'{ "jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"a requestState is\\u00e9"}]}}',
    b'{"jsonrpc":"2.0", "id":1,"result":{"resultType":"input_required","inputRequests":{"requestState":{}}}}',
    b'{"jsonrpc":"2.0", "id":1,"error":{"code":-32602,"message":"requestState is old"}}',
]


@pytest.mark.parametrize("raw", UNTOUCHED)
def test_a_response_without_a_state_goes_on_byte_for_byte(raw: bytes) -> None:
    assert BOND.response(raw, NONCE) is raw


@pytest.mark.parametrize(
    "params", [b"{}", b'{"arguments":{"requestState":"mine"}}', b'{"requestState":null}', b'{"name":"\\u00e9"}']
)
def test_a_request_without_a_state_goes_on_byte_for_byte(params: bytes) -> None:
    raw = b'{"jsonrpc":"2.0",  "id":1,"method":"tools/call","params":' + params + b"}"
    assert BOND.request(raw) is raw
