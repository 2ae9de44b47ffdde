"""Content codings: which can be read, what a client wants to get, and decompression that can't be made to explode.

Specification: RFC 9110, sections 8.4 and 12.5.3; RFC 1950 to 1952. How large a whole body may be is the caller's bound.
"""

import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

READABLE: Final = "gzip, deflate"
"""What may be sent to us, as `Accept-Encoding` has it."""

PIECE_BYTES: Final = 1 << 18
"""The most that is decompressed at once: a few KiB of input can stand for a thousand times as much."""

MAX_MEMBERS: Final = 1024
"""Concatenated gzip members in one body; real bodies have one or a few."""

Coding = Literal["identity", "gzip", "deflate"]


class Malformed(ValueError):
    """The data is not what its coding says, or ends too soon."""


def coding_of(values: Sequence[str]) -> Coding | None:
    """The one coding that `Content-Encoding` names, `identity` without any, None for what can't be read."""
    names = [name for part in ",".join(values).lower().split(",") if (name := part.strip()) not in ("", "identity")]
    if not names:
        return "identity"
    if len(names) > 1:
        return None
    return "gzip" if names[0] in ("gzip", "x-gzip") else "deflate" if names[0] == "deflate" else None


def wanted(values: Sequence[str]) -> Literal["gzip", "deflate"] | None:
    """The coding for an answer by `Accept-Encoding`: one that is asked for by name or by `*`, gzip first."""
    weights: dict[str, float] = {}
    for part in ",".join(values).lower().split(","):
        name, _, parameter = (piece.strip() for piece in part.partition(";"))
        try:
            weights[name] = float(parameter.removeprefix("q=")) if parameter else 1.0
        except ValueError:
            weights[name] = 0.0
    for coding in ("gzip", "deflate"):
        if weights.get(coding, weights.get("*", 0.0)) > 0:
            return "gzip" if coding == "gzip" else "deflate"
    return None


def encode(data: bytes, coding: Literal["gzip", "deflate"]) -> bytes:
    packer = zlib.compressobj(level=5, wbits=31 if coding == "gzip" else 15)
    return packer.compress(data) + packer.flush()


_HEAD: Final = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
"""Of a gzip member without a name or a time, of no known system."""

MAX_REST_BYTES: Final = 0xFFFF
"""The most that one block holds which is not compressed (RFC 1951, section 3.2.4)."""


class Begun(NamedTuple):
    """The beginning of a body in gzip, as it is sent, with the checksum and the size of what it stands for."""

    packed: bytes
    crc: int
    size: int


def begun(data: bytes) -> Begun:
    """A body in gzip that begins with `data`. Many bodies can have the same beginning, compressed once."""
    packer = zlib.compressobj(level=5, wbits=-15)
    packed = packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH)  # ends with a whole byte
    return Begun(_HEAD + packed, zlib.crc32(data), len(data))


def ended(begun: Begun, rest: bytes) -> bytes:
    """The end of that body, which says the `rest`, of at most `MAX_REST_BYTES`: one block as it is, and the trailer."""
    crc, size = zlib.crc32(rest, begun.crc), begun.size + len(rest)
    return b"%b%b%b" % (
        struct.pack("<BHH", 1, len(rest), len(rest) ^ 0xFFFF),
        rest,
        struct.pack("<II", crc, size & 0xFFFFFFFF),
    )


class Decoder:
    """Decompresses a body as it comes."""

    def __init__(self, coding: Literal["gzip", "deflate"]) -> None:
        self._coding = coding
        self._unpacker: zlib._Decompress | None = None
        self._members = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What the next bytes stand for, in pieces of at most `PIECE_BYTES`. Raises `Malformed`."""
        while data:
            if self._unpacker is None or self._unpacker.eof:
                if self._members and (self._coding == "deflate" or self._members >= MAX_MEMBERS):
                    raise Malformed("data after the end")
                self._members += 1
                self._unpacker = zlib.decompressobj(wbits=self._wbits(data[0]))
            try:
                piece = self._unpacker.decompress(data, PIECE_BYTES)
            except zlib.error:
                raise Malformed(f"no {self._coding}") from None
            data = self._unpacker.unconsumed_tail or self._unpacker.unused_data
            if piece:
                yield piece

    @property
    def complete(self) -> bool:
        """Whether the data ends where its coding says, or there was none."""
        return self._unpacker is None or self._unpacker.eof

    def _wbits(self, first: int) -> int:
        if self._coding == "gzip":
            return 31
        return 15 if first & 0x0F == 8 else -15  # deflate is zlib's form; some send it bare
