"""An entry of the cache: an upstream's result as it came, and what must be known to give it out; and its form in the
store, which other replicas read, of other versions too.

What is cut short, of another version, of another key, or larger than may be kept is no entry, and never an error.
"""

import zlib
from typing import Final

import msgspec

from policies import coding
from policies.cache import Scope
from policies.exchange import Answer, Dialect
from policies.jsonrpc import dumps, loads
from policies.mcp import Era

_VERSION: Final = 1
_PLAIN, _PACKED = b"\0", b"\1"
PLACE_ID: Final = 0
"""The id in a response of which only the result is wanted."""
_BEFORE: Final = b'{"jsonrpc":"2.0","id":0,"result":'
_WITHOUT_ID: Final = b'{"jsonrpc":"2.0","result":'


class Entry(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """`result` is JSON in the words of the upstream's own revision, `version`. `received_s`: seconds since the epoch.
    `marks`: the values of the marks that it stands under, in their order. `server_info` is JSON, empty where the result
    has it. `shared`: all callers may be given it. `next`: of a page of a list, the key of the one that it names as the
    next, for whom it was made; empty where none."""

    key: str
    received_s: float
    ttl_ms: int
    scope: Scope
    shared: bool
    marks: tuple[str, ...]
    era: Era
    version: str
    server_info: bytes
    result: bytes
    next: str = ""

    @property
    def answer(self) -> Answer:
        info = loads(self.server_info) if self.server_info else None
        return Answer(loads(self.result), Dialect(self.era, self.version), info)

    @property
    def size(self) -> int:
        return len(self.result) + len(self.server_info)


class _Stored(msgspec.Struct, array_like=True):
    version: int
    entry: msgspec.Raw


_stored = msgspec.msgpack.Decoder(_Stored)
_entry = msgspec.msgpack.Decoder(Entry)


def pack(entry: Entry, compress_from_bytes: int) -> bytes:
    raw = msgspec.msgpack.encode(_Stored(_VERSION, msgspec.Raw(msgspec.msgpack.encode(entry))))
    return _PACKED + zlib.compress(raw, 1) if len(raw) >= compress_from_bytes else _PLAIN + raw


def unpack(raw: bytes, key: str, max_bytes: int) -> Entry | None:
    """The entry of this key; None for anything else."""
    form, body = raw[:1], raw[1:]
    try:
        if form == _PACKED:
            unpacking = zlib.decompressobj()
            body = unpacking.decompress(body, max_bytes + 4096)
            if not unpacking.eof:
                return None
        elif form != _PLAIN:
            return None
        stored = _stored.decode(body)
        if stored.version != _VERSION:
            return None
        found = _entry.decode(stored.entry)
    except (zlib.error, msgspec.MsgspecError):
        return None
    return found if found.key == key and found.size <= max_bytes else None


class Ready(msgspec.Struct, frozen=True):
    """An answer as one kind of client reads it, but for its id and the freshness that is left. `result` is JSON without
    its last brace."""

    result: bytes
    scope: Scope | None

    def response(self, request_id: str | int, ttl_ms: int) -> bytes:
        """The whole response."""
        return b"%b%b%b}" % (opening(dumps(request_id)), self.result, self.rest(ttl_ms))

    def rest(self, ttl_ms: int) -> bytes:
        """What comes after `result`, with its last brace."""
        if self.scope is None:
            return b"}"
        comma = b"" if self.result.endswith(b"{") else b","
        return b'%b"ttlMs":%d,"cacheScope":"%b"}' % (comma, ttl_ms, self.scope.encode())


class Packed(Ready, frozen=True):
    """The same in gzip: `result` is all that comes before what is not the same for all, which there is said last, so
    that of the 100 KiB of a list none is compressed twice."""

    crc: int
    size: int

    def ended(self, rest: bytes) -> bytes:
        """The end of the body, which says `rest`."""
        return coding.ended(coding.Begun(self.result, self.crc, self.size), rest)


def opening(token: bytes) -> bytes:
    """A response up to its result; `token` is its id as JSON."""
    return b'{"jsonrpc":"2.0","id":%b,"result":' % token


def packed(plain: Ready) -> Packed:
    begun = coding.begun(_WITHOUT_ID + plain.result)
    return Packed(begun.packed, plain.scope, begun.crc, begun.size)


def ready(delivered: bytes, entry: Entry, front: Era, *, is_narrowed: bool = False) -> Ready:
    """`delivered`: the response that delivery makes of the entry's answer for that kind of client, to a request with
    the id `PLACE_ID`; `is_narrowed` where it is not all of it, which nobody is told to share."""
    if front == "legacy":
        return Ready(delivered[len(_BEFORE) : -2], None)
    result = loads(delivered)["result"]
    plain = {name: member for name, member in result.items() if name not in ("ttlMs", "cacheScope")}
    return Ready(dumps(plain)[:-1], "private" if is_narrowed else entry.scope)
