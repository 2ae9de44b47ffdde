"""Sealed tokens open for one purpose, one context and one key ring, unaltered; nothing else opens or raises."""

import base64
import re
import typing
import zlib

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given
from hypothesis import strategies as st

from policies import sealing
from policies.sealing import KeyRing, Purpose, new_key, seal, seal_stably, unseal

NONCE = bytes(range(28))
OLD = new_key("old", bytes(32))
NEW = new_key("new-1", b"k" * 32)
RING = KeyRing.of(NEW, OLD)
PURPOSES = typing.get_args(Purpose)


@given(st.binary(max_size=3000), st.text(st.characters(exclude_categories=())), st.binary(min_size=28, max_size=28))
def test_a_token_opens_where_it_was_sealed_for(payload: bytes, context: str, nonce: bytes) -> None:
    token = seal(RING, "state", context, payload, nonce)
    assert re.fullmatch(r"1new-1\.[A-Za-z0-9_-]+", token)
    assert unseal(RING, "state", context, token) == payload


def test_a_token_opens_for_no_other_purpose() -> None:
    for purpose in PURPOSES:
        token = seal(RING, purpose, "r", b"x", NONCE)
        assert [other for other in PURPOSES if unseal(RING, other, "r", token) == b"x"] == [purpose]


@pytest.mark.parametrize("context", ["", "/b", "/a ", "/A", "/a\0", "/a\0old"])
def test_a_token_opens_in_no_other_context(context: str) -> None:
    assert unseal(RING, "session", context, seal(RING, "session", "/a", b"x", NONCE)) is None


def test_after_a_rotation_old_tokens_open_and_new_ones_use_the_new_key() -> None:
    token = seal(KeyRing.of(OLD), "session", "", b"x", NONCE)
    assert unseal(RING, "session", "", token) == b"x"
    assert seal(RING, "session", "", b"x", NONCE).startswith("1new-1.")
    assert unseal(KeyRing.of(NEW), "session", "", token) is None


def test_a_key_under_another_id_opens_nothing() -> None:
    token = seal(KeyRing((("a", b"k" * 32),)), "session", "", b"x", NONCE)
    assert unseal(KeyRing((("b", b"k" * 32),)), "session", "", "1b" + token[2:]) is None


def test_no_altered_character_and_no_other_spelling_opens() -> None:
    token = seal(RING, "session", "r", b"some payload", NONCE)
    for at in range(len(token)):
        for other in "A_-.=+/é1":
            altered = token[:at] + other + token[at + 1 :]
            assert altered == token or unseal(RING, "session", "r", altered) is None
    for altered in (token + "=", token + "A", token[:-1], f" {token}", f"{token}\n", token.replace(".", "..")):
        assert unseal(RING, "session", "r", altered) is None


GARBAGE = ["", "1", ".", "1new-1", "1new-1.", "1new-1.AAAA", "1new-1." + "A" * 60, "2new-1.AAAA", "1.", "é", "1new-1.é"]


@pytest.mark.parametrize(
    "token", [*GARBAGE, "\ud800", "1new-1.\ud800", "1new-1." + "A" * 3_000_000], ids=lambda t: ascii(t[:20])
)
def test_garbage_opens_to_nothing(token: str) -> None:
    assert unseal(RING, "session", "", token) is None


@given(st.text(st.characters(exclude_categories=())))
def test_no_text_makes_it_raise(text: str) -> None:
    assert unseal(RING, "session", "", text) is None
    assert unseal(RING, "session", "", f"1old.{text}") is None


def test_what_repeats_is_packed_and_what_does_not_is_not_blown_up() -> None:
    assert len(seal(RING, "state", "", b"abcd" * 1000, NONCE)) < 200
    noise = bytes(range(255))  # with nonce, flag and tag 300 bytes, 400 characters
    assert len(seal(RING, "state", "", noise, NONCE)) == len("1new-1.") + 400


def test_the_largest_payload_survives_and_a_larger_one_is_refused() -> None:
    largest = bytes(sealing.MAX_PAYLOAD_BYTES)
    assert unseal(RING, "state", "", seal(RING, "state", "", largest, NONCE)) == largest
    with pytest.raises(ValueError, match="longer than 1048576 bytes"):
        seal(RING, "state", "", largest + b"x", NONCE)


@pytest.mark.parametrize("plain", [b"\1not zlib", b"\1" + zlib.compress(bytes(2 << 20))])
def test_a_plain_text_that_seal_never_writes_gives_no_payload(plain: bytes) -> None:
    key = HKDF(SHA256(), 32, NONCE[:16], b"mcp-front-door token 1").derive(b"k" * 32)
    raw = NONCE + AESGCM(key).encrypt(NONCE[16:], plain, b"session\0\0new-1")
    token = "1new-1." + base64.urlsafe_b64encode(raw).decode().rstrip("=")
    assert unseal(RING, "session", "", token) is None


@pytest.mark.parametrize("length", [0, 12, 27, 29])
def test_a_nonce_of_another_length_is_refused(length: int) -> None:
    with pytest.raises(ValueError, match="28 bytes"):
        seal(RING, "session", "", b"", bytes(length))


@pytest.mark.parametrize(
    ("texts", "fix"),
    [
        ((), "keygen"),
        (("abc",), "ID:BASE64URL"),
        (("a:???",), "is not base64url.*keygen"),
        (("a:" + "A" * 42,), "holds 31 bytes where 32 are needed.*keygen"),
        (("a:" + "A" * 86,), "holds 64 bytes"),
        (("a:",), "holds 0 bytes"),
        ((":" + "A" * 43,), "1 to 16 letters"),
        (("a.b:" + "A" * 43,), "1 to 16 letters"),
        (("x" * 17 + ":" + "A" * 43,), "1 to 16 letters"),
        ((NEW, NEW), "two sealing keys have the id 'new-1'"),
        (tuple(new_key(f"k{n}", bytes(32)) for n in range(9)), "keep at most 8"),
    ],
)
def test_an_unusable_key_ring_names_the_fix(texts: tuple[str, ...], fix: str) -> None:
    with pytest.raises(ValueError, match=fix):
        KeyRing.of(*texts)


def test_no_error_and_no_representation_shows_a_key() -> None:
    assert "kkkk" not in repr(RING)
    for text in ("sEcReTsEcReT", "sEcReT!:sEcReT", "a:sEcReT", "a:sEc ReT"):
        with pytest.raises(ValueError, match="sealing key") as caught:
            KeyRing.of(text)
        assert "sEc" not in str(caught.value)


def test_a_key_may_be_padded_and_end_with_a_line_feed() -> None:
    assert KeyRing.of(NEW + "=\n") == KeyRing((("new-1", b"k" * 32),))


def test_a_ring_of_eight_keys_opens_what_any_of_them_sealed() -> None:
    texts = [new_key(f"k{n}", bytes([n] * 32)) for n in range(8)]
    ring = KeyRing.of(*texts)
    assert all(unseal(ring, "task", "", seal(KeyRing.of(text), "task", "", b"x", NONCE)) == b"x" for text in texts)


@pytest.mark.parametrize(
    ("keys", "fix"), [(("a", bytes(31)), "has 31 bytes instead of 32"), (("é", bytes(32)), "1 to 16 letters")]
)
def test_a_ring_of_ready_keys_is_checked_too(keys: tuple[str, bytes], fix: str) -> None:
    with pytest.raises(ValueError, match=fix):
        KeyRing((keys,))


@pytest.mark.parametrize(("key_id", "chance"), [("", bytes(32)), ("a:b", bytes(32)), ("a", bytes(16))])
def test_a_new_key_is_one_that_a_ring_takes(key_id: str, chance: bytes) -> None:
    with pytest.raises(ValueError, match="sealing key"):
        new_key(key_id, chance)


def test_a_payload_can_be_sealed_so_that_its_token_is_always_the_same() -> None:
    token = seal_stably(RING, "task", "/mcp", b"payload")
    assert seal_stably(RING, "task", "/mcp", b"payload") == token
    assert unseal(RING, "task", "/mcp", token) == b"payload"
    others: list[tuple[Purpose, str, bytes]] = [
        ("task", "/mcp", b"payloae"),
        ("task", "/mcq", b"payload"),
        ("cursor", "/mcp", b"payload"),
    ]
    # a nonce that two payloads shared would give both away; it stands before what is sealed
    nonces = {seal_stably(RING, *other)[:40] for other in others} | {token[:40]}
    assert len(nonces) == 4


def test_bytes_are_sealed_of_any_size_and_open_for_their_purpose_context_and_ring_alone() -> None:
    payload = bytes(sealing.MAX_PAYLOAD_BYTES + 1)
    sealed = sealing.seal_bytes(RING, "cache", "k", payload, NONCE)
    assert sealing.unseal_bytes(RING, "cache", "k", sealed) == payload
    assert sealing.unseal_bytes(KeyRing.of(OLD, NEW), "cache", "k", sealed) == payload
    assert sealing.unseal_bytes(RING, "cache", "other", sealed) is None
    assert sealing.unseal_bytes(RING, "mail", "k", sealed) is None
    assert sealing.unseal_bytes(KeyRing.of(OLD), "cache", "k", sealed) is None


def test_no_altered_or_missing_byte_opens() -> None:
    sealed = sealing.seal_bytes(RING, "cache", "k", b"payload", NONCE)
    for at in range(len(sealed)):
        altered = sealed[:at] + bytes([sealed[at] ^ 1]) + sealed[at + 1 :]
        assert sealing.unseal_bytes(RING, "cache", "k", altered) is None
        assert sealing.unseal_bytes(RING, "cache", "k", sealed[:at]) is None


def test_bytes_are_no_token_and_a_token_is_no_bytes() -> None:
    sealed = sealing.seal_bytes(RING, "cache", "k", b"payload", NONCE)
    head = sealed.partition(b".")[0].decode()
    spelled = f"{head}.{base64.urlsafe_b64encode(sealed[len(head) + 1 :]).decode().rstrip('=')}"
    assert unseal(RING, "cache", "k", spelled) is None
    token = seal(RING, "cache", "k", b"payload", NONCE)
    body = token.partition(".")[2]
    raw = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))
    assert sealing.unseal_bytes(RING, "cache", "k", token.encode()) is None
    assert sealing.unseal_bytes(RING, "cache", "k", f"{head}.".encode() + raw) is None


def test_bytes_are_sealed_with_a_whole_nonce() -> None:
    with pytest.raises(ValueError, match="28 bytes"):
        sealing.seal_bytes(RING, "cache", "k", b"", NONCE[:-1])
