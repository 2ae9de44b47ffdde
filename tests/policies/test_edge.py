"""Time-outs by tool, forwarded headers and codings, by value."""

import gzip
import zlib

import pytest
from multidict import CIMultiDict

from policies import coding, forwarded
from policies.errors import Rejection
from policies.forwarded import Caller, caller_of, networks, prefix_of
from policies.routing import timeouts_for
from policies.settings import Upstream

UPSTREAM = Upstream.model_validate(
    {
        "url": "http://127.0.0.1:1/mcp",
        "timeouts": {"first_byte_s": 10, "total_s": 20},
        "tools": {"slow_*": {"total_s": 600, "first_byte_s": 300}, "slow_but_?": {"total_s": 1}, "*": {"idle_s": 7}},
    }
)


@pytest.mark.parametrize(
    ("method", "name", "first_byte_s", "idle_s", "total_s"),
    [
        ("tools/call", "slow_report", 300, 300, 600),
        ("tools/call", "slow_but_x", 300, 300, 600),
        ("tools/call", "quick", 10, 7, 20),
        ("tools/call", None, 10, 300, 20),
        ("prompts/get", "slow_report", 10, 300, 20),
        ("tools/list", None, 10, 300, 20),
    ],
)
def test_the_first_pattern_that_fits_a_tool_has_its_time_outs(
    method: str, name: str | None, first_byte_s: float, idle_s: float, total_s: float
) -> None:
    found = timeouts_for(UPSTREAM, method, name)
    assert (found.first_byte_s, found.idle_s, found.total_s) == (first_byte_s, idle_s, total_s)
    assert found.connect_s == UPSTREAM.timeouts.connect_s


TRUSTED = networks(["10.0.0.0/8", "fd00::/8"])


@pytest.mark.parametrize(
    ("peer", "lines", "caller"),
    [
        ("192.0.2.1", {"X-Forwarded-For": "1.2.3.4", "X-Forwarded-Host": "b"}, Caller(("192.0.2.1",), "a", "http")),
        ("10.0.0.1", {}, Caller(("10.0.0.1",), "a", "http")),
        ("10.0.0.1", {"X-Forwarded-For": "1.2.3.4"}, Caller(("1.2.3.4", "10.0.0.1"), "a", "http")),
        ("10.0.0.1", {"X-Forwarded-For": "9.9.9.9, 1.2.3.4"}, Caller(("1.2.3.4", "10.0.0.1"), "a", "http")),
        (
            "10.0.0.1",
            {"X-Forwarded-For": "1.2.3.4, 10.2.2.2"},
            Caller(("1.2.3.4", "10.2.2.2", "10.0.0.1"), "a", "http"),
        ),
        ("10.0.0.1", {"X-Forwarded-For": "unknown, x"}, Caller(("10.0.0.1",), "a", "http")),
        ("10.0.0.1", {"X-Forwarded-Host": "c, b", "X-Forwarded-Proto": "HTTPS"}, Caller(("10.0.0.1",), "b", "https")),
        (
            "fd00::1",
            {"Forwarded": 'for="[2001:db8::7]:4711";host=b;proto=https'},
            Caller(("2001:db8::7", "fd00::1"), "b", "https"),
        ),
        ("::ffff:10.0.0.1", {"X-Forwarded-Host": "b"}, Caller(("::ffff:10.0.0.1",), "b", "http")),
        ("10.0.0.1", {"Forwarded": "host=b", "X-Forwarded-Host": "c"}, None),
        ("10.0.0.1", {"Forwarded": "proto=http", "X-Forwarded-Proto": "https"}, None),
        ("10.0.0.1", {"Forwarded": "for=1.2.3.4 host=b"}, None),
        ("10.0.0.1", {"X-Forwarded-Proto": "ftp"}, None),
    ],
)
def test_only_trusted_proxies_say_how_a_request_came_in(
    peer: str, lines: dict[str, str], caller: Caller | None
) -> None:
    found = caller_of(peer, "http", CIMultiDict({"Host": "a", **lines}), TRUSTED)
    assert found == caller if caller is not None else isinstance(found, Rejection)


PREFIXES = {
    "none": ({}, ""),
    "one": ({"X-Forwarded-Prefix": "/tools"}, "/tools"),
    "one with a final slash": ({"X-Forwarded-Prefix": "/tools/"}, "/tools"),
    "the root": ({"X-Forwarded-Prefix": "/"}, ""),
    "those of two proxies, the outer one first": ({"X-Forwarded-Prefix": "/a, /b/c"}, "/a/b/c"),
    "beyond ASCII, encoded": ({"X-Forwarded-Prefix": "/%E6%97%A5"}, "/%E6%97%A5"),
    "another host": ({"X-Forwarded-Prefix": "//evil.example"}, None),
    "a URL": ({"X-Forwarded-Prefix": "https://evil.example"}, None),
    "no slash": ({"X-Forwarded-Prefix": "tools"}, None),
    "a query": ({"X-Forwarded-Prefix": "/tools?a=b"}, None),
    "a backslash": ({"X-Forwarded-Prefix": "/\\evil.example"}, None),
    "a line of its own": ({"X-Forwarded-Prefix": "/a\ndata: b"}, None),
}


@pytest.mark.parametrize("name", PREFIXES)
def test_a_trusted_proxy_says_what_it_took_off_the_path(name: str) -> None:
    lines, prefix = PREFIXES[name]
    found, stranger = (caller_of(peer, "http", CIMultiDict(lines), TRUSTED) for peer in ("10.0.0.1", "192.0.2.1"))
    assert isinstance(found, Caller)
    assert isinstance(stranger, Caller)
    said = prefix_of(found)
    assert said == prefix if prefix is not None else isinstance(said, Rejection)
    assert prefix_of(stranger) == ""


def test_what_callers_share_is_without_one_requests_way_in() -> None:
    sent = (("X-Tenant", "acme"), *Caller(("1.2.3.4",), "a", "http").headers())
    assert forwarded.lasting(sent) == (("X-Tenant", "acme"),)


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        ("gzip", "gzip"),
        ("deflate", "deflate"),
        ("deflate, gzip", "gzip"),
        ("gzip;q=0, deflate;q=0.1", "deflate"),
        ("*;q=0.5", "gzip"),
        ("*;q=0, br", None),
        ("gzip;q=x", None),
        ("GZIP", "gzip"),
        ("br, zstd", None),
        ("", None),
    ],
)
def test_an_answer_has_a_coding_that_was_asked_for(accept: str, wanted: str | None) -> None:
    assert coding.wanted([accept]) == wanted


@pytest.mark.parametrize("step", [1, 7, 100_000])
@pytest.mark.parametrize("form", ["gzip", "gzip twice", "deflate"])
def test_a_body_is_decompressed_in_any_pieces(form: str, step: int) -> None:
    text = bytes(range(256)) * 40
    packed = zlib.compress(text) if form == "deflate" else gzip.compress(text)
    if form == "gzip twice":
        packed, text = packed * 2, text * 2
    decoder = coding.Decoder("deflate" if form == "deflate" else "gzip")
    found = [piece for at in range(0, len(packed), step) for piece in decoder.feed(packed[at : at + step])]
    assert b"".join(found) == text
    assert decoder.complete


def test_a_bomb_goes_off_piece_by_piece() -> None:
    pieces = coding.Decoder("gzip").feed(gzip.compress(bytes(10_000_000)))
    assert all(len(piece) <= coding.PIECE_BYTES for piece in pieces)
