"""Sealed tokens: state that a client carries for us and can neither read, alter, nor use for anything else.

AES-256-GCM under a key derived for each token (HKDF-SHA256 with a salt of its own, so that a ring key may seal more
tokens than 96-bit nonces alone would allow). The purpose, the context (a route, a principal) and the key's id are
authenticated with it: a session id is never a cursor, nor a token of one route good on another. Expiry, and what a
payload means, is not known here. A payload is compressed where that helps, so a token's length tells a little about
what repeats in it: seal nothing that pairs a secret with text chosen by someone who may not know it.
"""

import base64
import binascii
import hashlib
import hmac
import re
import zlib
from dataclasses import dataclass, field
from typing import Final, Literal, Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from policies import wellformed

Purpose = Literal["session", "state", "upstream-state", "cursor", "task", "mail", "http-sse", "cache"]

NONCE_BYTES: Final = 28
"""Fresh random bytes for each token: a salt of 16 and a GCM nonce of 12."""

MAX_PAYLOAD_BYTES: Final = 1024 * 1024
"""More than any request body of default size would carry back; bounds what a token may unpack to."""


_VERSION: Final = "1"
_SALT_BYTES: Final = 16
_KEY_BYTES: Final = 32
_MAX_TOKEN_CHARS: Final = MAX_PAYLOAD_BYTES * 4 // 3 + 128
_KEY_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,16}")
_INFO: Final = b"mcp-front-door token 1"
_NONCE_INFO: Final = b"mcp-front-door nonce 1"
_STORED, _DEFLATED = b"\0", b"\1"
_IN_BYTES: Final = " bytes"
"""Keeps what is sealed as bytes from being opened as a token, and the other way round; no key id has a space."""
_WORTH_PACKING_BYTES: Final = 64
"""Below, zlib gains nothing."""


@dataclass(frozen=True, slots=True)
class KeyRing:
    """Sealing keys as (id, 32 bytes): the first seals, all unseal. Rotate by putting a new one in front.

    Raises ValueError, with the fix and without the key, where one is unusable.
    """

    keys: tuple[tuple[str, bytes], ...] = field(repr=False)

    def __post_init__(self) -> None:
        if not self.keys:
            raise ValueError("there is no sealing key; make one with `mcp-front-door keygen`")
        if len(self.keys) > wellformed.MAX_KEYS:
            raise ValueError(
                f"there are {len(self.keys)} sealing keys; keep at most {wellformed.MAX_KEYS}, the newest first"
            )
        ids = [key_id for key_id, _ in self.keys]
        for key_id, key in self.keys:
            if not _KEY_ID.fullmatch(key_id):
                raise ValueError("a sealing key's id must be 1 to 16 letters, digits, _ or -")
            if len(key) != _KEY_BYTES:
                raise ValueError(
                    f"sealing key {key_id!r} has {len(key)} bytes instead of {_KEY_BYTES};"
                    " make one with `mcp-front-door keygen`"
                )
            if ids.count(key_id) > 1:
                raise ValueError(f"two sealing keys have the id {key_id!r}; give each its own")

    @classmethod
    def of(cls, *texts: str) -> Self:
        """The ring of keys as configured, each `id:base64url`, the sealing one first. Raises ValueError."""
        return cls(tuple(_key(text.strip()) for text in texts))


def _key(text: str) -> tuple[str, bytes]:
    try:
        return wellformed.sealing_key(text.strip())
    except ValueError as error:
        raise ValueError(f"a sealing key {error}") from None


def new_key(key_id: str, chance: bytes) -> str:
    """A key for the configuration, out of 32 random bytes. Raises ValueError for another id or length."""
    KeyRing(((key_id, chance),))
    return f"{key_id}:{_base64(chance)}"


def seal(ring: KeyRing, purpose: Purpose, context: str, payload: bytes, nonce: bytes) -> str:
    """A token of visible, URL-safe ASCII that only `unseal` with the same purpose and context opens.

    `nonce` is NONCE_BYTES fresh random bytes. Raises ValueError for another length or a payload over the bound.
    """
    if len(nonce) != NONCE_BYTES:
        raise ValueError(f"the nonce must be {NONCE_BYTES} bytes")
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise ValueError(f"the payload is longer than {MAX_PAYLOAD_BYTES} bytes")
    plain = _STORED + payload
    if len(payload) >= _WORTH_PACKING_BYTES:
        packed = _DEFLATED + zlib.compress(payload)
        plain = min(plain, packed, key=len)
    key_id, key = ring.keys[0]
    salt, iv = nonce[:_SALT_BYTES], nonce[_SALT_BYTES:]
    sealed = _cipher(key, salt).encrypt(iv, plain, _bound(purpose, context, key_id))
    return f"{_VERSION}{key_id}.{_base64(nonce + sealed)}"


def seal_stably(ring: KeyRing, purpose: Purpose, context: str, payload: bytes) -> str:
    """What `seal` gives, and always the same token for the same payload under one key: for names, which are compared.
    So whoever sees two of them knows whether they stand for one thing. Raises the same ValueError.

    The nonce is a keyed digest of everything that is sealed: two payloads share one no sooner than two random ones do.
    """
    key_id, key = ring.keys[0]
    bound = hashlib.sha256(_bound(purpose, context, key_id)).digest()
    own = HKDF(SHA256(), _KEY_BYTES, None, _NONCE_INFO).derive(key)
    return seal(ring, purpose, context, payload, hmac.digest(own, bound + payload, "sha256")[:NONCE_BYTES])


def unseal(ring: KeyRing, purpose: Purpose, context: str, token: str) -> bytes | None:
    """The payload of a token; None for anything else than what `seal` gave for this purpose, context and ring."""
    if len(token) > _MAX_TOKEN_CHARS or not token.startswith(_VERSION):
        return None
    key_id, _, body = token[1:].partition(".")
    key = next((key for known, key in ring.keys if known == key_id), None)
    raw = _unbase64(body)
    if key is None or raw is None or len(raw) <= NONCE_BYTES:
        return None
    salt, iv, sealed = raw[:_SALT_BYTES], raw[_SALT_BYTES:NONCE_BYTES], raw[NONCE_BYTES:]
    try:
        plain = _cipher(key, salt).decrypt(iv, sealed, _bound(purpose, context, key_id))
    except InvalidTag:
        return None
    return _unpacked(plain)


def seal_bytes(ring: KeyRing, purpose: Purpose, context: str, payload: bytes, nonce: bytes) -> bytes:
    """The same for what is kept in the store and not in text: of any size, and as it is."""
    if len(nonce) != NONCE_BYTES:
        raise ValueError(f"the nonce must be {NONCE_BYTES} bytes")
    key_id, key = ring.keys[0]
    sealed = _cipher(key, nonce[:_SALT_BYTES]).encrypt(
        nonce[_SALT_BYTES:], payload, _bound(purpose, context, key_id + _IN_BYTES)
    )
    return f"{_VERSION}{key_id}.".encode() + nonce + sealed


def unseal_bytes(ring: KeyRing, purpose: Purpose, context: str, sealed: bytes) -> bytes | None:
    """The payload; None for anything else than what `seal_bytes` gave for this purpose, context and ring."""
    head, dot, _ = sealed[:32].partition(b".")
    key_id = head[1:].decode(errors="replace")
    key = next((key for known, key in ring.keys if known == key_id), None)
    start = len(head) + len(dot)
    if head[:1] != _VERSION.encode() or key is None or len(sealed) <= start + NONCE_BYTES:
        return None
    nonce = sealed[start : start + NONCE_BYTES]
    try:
        return _cipher(key, nonce[:_SALT_BYTES]).decrypt(
            nonce[_SALT_BYTES:], sealed[start + NONCE_BYTES :], _bound(purpose, context, key_id + _IN_BYTES)
        )
    except InvalidTag:
        return None


def _unpacked(plain: bytes) -> bytes | None:
    if plain[:1] != _DEFLATED:
        return plain[1:]
    unpacking = zlib.decompressobj()
    try:
        payload = unpacking.decompress(plain[1:], MAX_PAYLOAD_BYTES)
    except zlib.error:
        return None
    return payload if unpacking.eof else None


def _cipher(key: bytes, salt: bytes) -> AESGCM:
    return AESGCM(HKDF(SHA256(), _KEY_BYTES, salt, _INFO).derive(key))


def _bound(purpose: Purpose, context: str, key_id: str) -> bytes:
    # Neither a purpose nor a key id holds NUL, so no two triples read the same.
    return f"{purpose}\0{context}\0{key_id}".encode(errors="surrogatepass")


def _base64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _unbase64(text: str) -> bytes | None:
    """Strict: one text for one value, or a token would have many spellings."""
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    return raw if _base64(raw) == text else None
