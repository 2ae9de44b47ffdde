"""Entries of the cache: what comes out is what went in, and what is no entry is none."""

import zlib
from typing import Any

import msgspec
import pytest

from policies import cache_entry, jsonrpc
from policies.cache_entry import PLACE_ID, Entry, ready
from policies.delivery import Addressee, deliver
from policies.exchange import Dialect

MODERN, LEGACY = Dialect("modern", "2026-07-28"), Dialect("legacy", "2025-11-25")
MOST = 1 << 20


def entry(result: bytes = b'{"tools":[]}', **members: Any) -> Entry:
    known: dict[str, Any] = {
        "key": "k",
        "received_s": 100.25,
        "ttl_ms": 5000,
        "scope": "public",
        "shared": True,
        "marks": ("", "a1"),
        "era": "modern",
        "version": "2026-07-28",
        "server_info": b"",
        "result": result,
    }
    return Entry(**known | members)


RESULTS = [
    b'{"contents":[{"uri":"a:b","blob":"%b"}]}' % b"AAECAwQ=",
    '{"contents":[{"uri":"a:b","text":"nul \\u0000 und lone \\ud800 und größe"}]}'.encode(),
    b'{"tools":[]}',
    b'{"n":12345678901234567890123,"m":1.00000000000000000000001,"e":1e-400}',
    b'{"structuredContent":0,"x":false,"y":null,"z":""}',
    b"{}",
    b'{"text":"' + b"x" * 50_000 + b'"}',
]


@pytest.mark.parametrize("compress_from", [1, 10**9])
@pytest.mark.parametrize("result", RESULTS)
def test_an_entry_comes_out_as_it_went_in(result: bytes, compress_from: int) -> None:
    kept = entry(result, server_info=b'{"name":"a"}')
    packed = cache_entry.pack(kept, compress_from)
    assert cache_entry.unpack(packed, "k", MOST) == kept
    if compress_from == 1 and len(result) > 1000:
        assert len(packed) < len(result) / 10


@pytest.mark.parametrize("compress_from", [1, 10**9])
def test_what_is_cut_short_anywhere_is_no_entry(compress_from: int) -> None:
    packed = cache_entry.pack(entry(), compress_from)
    for end in range(len(packed)):
        assert cache_entry.unpack(packed[:end], "k", MOST) is None


GOOD = cache_entry.pack(entry(), 10**9)
NO_ENTRIES = {
    "empty": b"",
    "another form": b"\2" + GOOD[1:],
    "another program's": b'{"tools": []}',
    "a pickle": b"\x80\x04K\x01.",
    "no compression": b"\1" + GOOD[1:],
    "another version": b"\0" + msgspec.msgpack.encode([99, msgspec.msgpack.decode(GOOD[1:])[1]]),
    "another version's members": b"\0" + msgspec.msgpack.encode([1, ["k", 1.0]]),
    "members of a wrong type": b"\0" + msgspec.msgpack.encode([1, [1] * 10]),
    "more than may be kept": cache_entry.pack(entry(b'{"x":"' + b"x" * MOST + b'"}'), 10**9),
    "more than may be kept, once unpacked": cache_entry.pack(entry(b'{"x":"' + b"x" * MOST + b'"}'), 1),
    "a bomb": b"\1" + zlib.compress(bytes(100 * MOST)),
    "another key's": cache_entry.pack(entry(key="other"), 10**9),
}


@pytest.mark.parametrize("why", NO_ENTRIES)
def test_what_is_no_entry_of_this_key_is_none(why: str) -> None:
    assert cache_entry.unpack(NO_ENTRIES[why], "k", MOST) is None


def made(kept: Entry, front: Dialect, method: str = "tools/list") -> bytes:
    """What a client of that revision is given of an entry, with 1234 ms left."""
    message = deliver(kept.answer, Addressee(front, PLACE_ID, method, {}))
    assert message is not None
    return ready(message.raw, kept, front.era).response("id", 1234)


@pytest.mark.parametrize("result", RESULTS)
def test_a_client_of_2026_gets_the_result_with_what_is_left_of_its_time(result: bytes) -> None:
    told = {"ttlMs": 1234, "cacheScope": "public"}
    wanted = {"jsonrpc": "2.0", "id": "id", "result": jsonrpc.loads(result) | told}
    for said in ({}, {"ttlMs": 5000, "cacheScope": "public"}, {"ttlMs": "x", "cacheScope": 1}):
        raw = jsonrpc.dumps(jsonrpc.loads(result) | said)
        assert jsonrpc.loads(made(entry(raw), MODERN)) == wanted


def test_a_client_with_a_session_is_told_of_no_time() -> None:
    kept = entry(b'{"resultType":"complete","tools":[],"ttlMs":5000,"cacheScope":"public"}')
    assert made(kept, LEGACY) == b'{"jsonrpc":"2.0","id":"id","result":{"tools":[]}}'


def test_a_list_of_a_server_with_sessions_is_told_with_the_operators_time_and_scope() -> None:
    kept = entry(era="legacy", version="2025-11-25", server_info=b'{"name":"a"}', scope="private")
    told: dict[str, Any] = jsonrpc.loads(made(kept, MODERN))["result"]
    assert told == {
        "tools": [],
        "resultType": "complete",
        "ttlMs": 1234,
        "cacheScope": "private",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "a"}},
    }


@pytest.mark.parametrize("ident", [0, -1, 2**53 + 1, "", "x", 'a"b', "größe", "\ud800"])
def test_the_id_is_the_requests_own(ident: str | int) -> None:
    message = deliver(entry().answer, Addressee(MODERN, PLACE_ID, "tools/list", {}))
    assert message is not None
    found = jsonrpc.loads(ready(message.raw, entry(), "modern").response(ident, 0))["id"]
    assert (found, type(found)) == (ident, type(ident))
