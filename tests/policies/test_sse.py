"""Event streams: the same events whatever the line ends, the fields around them and the cuts between chunks."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies import sse
from policies.sse import Decoder, Event, Splitter

STREAMS: list[tuple[str, bytes, list[Event]]] = [
    ("LF", b"data: a\n\ndata: b\n\n", [Event(b"a"), Event(b"b")]),
    ("CRLF", b"data: a\r\n\r\ndata: b\r\n\r\n", [Event(b"a"), Event(b"b")]),
    ("CR", b"data: a\r\rdata: b\r\r", [Event(b"a"), Event(b"b")]),
    ("mixed line ends", b"data: a\r\n\rdata: b\n\r\ndata: c\r\n\n", [Event(b"a"), Event(b"b"), Event(b"c")]),
    ("no space after the colon", b"data:a\n\n", [Event(b"a")]),
    ("only one space is removed", b"data:  a \n\n", [Event(b" a ")]),
    ("several data lines", b"data: {\ndata: 1\ndata\ndata: }\n\n", [Event(b"{\n1\n\n}")]),
    ("an empty data line", b"data:\n\n", [Event(b"")]),
    ("data without a colon", b"data\n\n", [Event(b"")]),
    ("a byte order mark at the start", b"\xef\xbb\xbfdata: a\n\n", [Event(b"a")]),
    ("a byte order mark later is part of a name", b"data: a\n\n\xef\xbb\xbfdata: b\n\n", [Event(b"a")]),
    ("a colon in the data", b'data: {"a":1}\n\n', [Event(b'{"a":1}')]),
    ("an event name", b"event: ping\ndata: a\n\n", [Event(b"a", "ping")]),
    ("an empty event name", b"event: ping\nevent\ndata: a\n\n", [Event(b"a")]),
    ("a priming event", b"id: 7\ndata:\n\n", [Event(b"", id="7")]),
    ("an id alone", b"id: 7\n\n", [Event(None, id="7")]),
    ("an empty id", b"id\ndata: a\n\n", [Event(b"a", id="")]),
    ("an id with NUL", b"id: 7\x008\ndata: a\n\n", [Event(b"a")]),
    ("an id that is not UTF-8", b"id: \xff\ndata: a\n\n", [Event(b"a", id="�")]),
    ("a retry alone", b"retry: 1500\n\n", [Event(None, retry_ms=1500)]),
    ("a retry that is no number", b"retry: 1.5\nretry: -1\nretry:\nretry: \xd9\xa1\ndata: a\n\n", [Event(b"a")]),
    ("a retry of many digits", b"retry: " + b"9" * 5000 + b"\ndata: a\n\n", [Event(b"a")]),
    ("comments", b": hello\n\n:\n\ndata: a\n\n", [Event(b"a")]),
    ("comments inside an event", b"data: a\n: b\n:\ndata: c\n\n", [Event(b"a\nc")]),
    ("a comment line that nothing ends", b":\r\n:\r\ndata: a\r\n\r\n:\r\n", [Event(b"a")]),
    ("unknown fields", b"foo: bar\nDATA: x\n data: y\ndata: a\n\n", [Event(b"a")]),
    ("only unknown fields", b"foo: bar\n\n", []),
    ("an event name alone", b"event: ping\n\ndata: a\n\n", [Event(b"a")]),
    ("multibyte data", "data: 日本\U0001f600\n\n".encode(), [Event("日本\U0001f600".encode())]),
    ("other line separators are data", "data: \x0b\x0c\x85\u2028\n\n".encode(), [Event("\x0b\x0c\x85\u2028".encode())]),
    ("blank lines", b"\n\r\n\r\n\ndata: a\n\n\n\n", [Event(b"a")]),
    ("no blank line at the end", b"data: a\n\ndata: b\n", [Event(b"a")]),
    ("no line end at the end", b"data: a\n\ndata: b", [Event(b"a")]),
]


def decoded(chunks: list[bytes], max_event_bytes: int = 10_000) -> list[Event]:
    decoder = Decoder(max_event_bytes)
    return [event for chunk in chunks for event in decoder.feed(chunk)]


@pytest.mark.parametrize(("raw", "events"), [stream[1:] for stream in STREAMS], ids=[stream[0] for stream in STREAMS])
def test_every_cut_gives_the_same_events(raw: bytes, events: list[Event]) -> None:
    assert decoded([raw]) == events
    for at in range(len(raw) + 1):
        assert decoded([raw[:at], raw[at:]]) == events
    for size in (1, 2, 3, 7):
        assert decoded([raw[at : at + size] for at in range(0, len(raw), size)]) == events


@given(
    st.lists(st.sampled_from([b"data", b"id", b":", b": ", b"a", b"\n", b"\r", b"\r\n", b"\n\n", b"\xef\xbb\xbf"])),
    st.lists(st.integers(0, 60)),
)
def test_no_cut_changes_an_event_or_loses_a_byte(parts: list[bytes], cuts: list[int]) -> None:
    raw = b"".join(parts)
    chunks = [raw[at:to] for at, to in itertools.pairwise(sorted({0, len(raw), *(c for c in cuts if c < len(raw))}))]
    assert decoded(chunks) == decoded([raw])
    splitter = Splitter(10_000)
    blocks = [block for chunk in chunks for block, _ in splitter.feed(chunk)]
    whole = b"".join(blocks)
    assert raw.startswith(whole)
    assert splitter.pending or raw[len(whole) :].startswith(b":") or raw == whole


@pytest.mark.parametrize(
    ("raw", "blocks"),
    [
        (b"data: a\n\n", [(b"data: a\n\n", Event(b"a"))]),
        (
            b"\xef\xbb\xbf: hi\r\n\r\nid: 1\r\n: x\r\ndata:b\r\n\r\n:\n\n",
            [
                (b"\xef\xbb\xbf: hi\r\n\r\n", None),
                (b"id: 1\r\n: x\r\ndata:b\r\n\r\n", Event(b"b", id="1")),
                (b":\n\n", None),
            ],
        ),
        (b":\n", [(b":\n", None)]),
        (b"foo: 1\n\nid: 2\n\n", [(b"foo: 1\n\n", None), (b"id: 2\n\n", Event(None, id="2"))]),
        (b"data: a\n\ndata: b\n", [(b"data: a\n\n", Event(b"a"))]),
    ],
)
def test_a_block_comes_with_its_exact_bytes(raw: bytes, blocks: list[tuple[bytes, Event | None]]) -> None:
    assert Splitter(1000).feed(raw) == blocks


def test_an_event_is_given_out_before_the_line_feed_of_its_last_crlf_has_come() -> None:
    splitter = Splitter(1000)
    assert splitter.feed(b"data: a\r\n\r") == [(b"data: a\r\n\r", Event(b"a"))]
    assert not splitter.pending
    assert splitter.feed(b"\ndata: b\r\n\r\n") == [(b"\n", None), (b"data: b\r\n\r\n", Event(b"b"))]


def test_a_keep_alive_is_passed_on_at_once_and_is_nothing_pending() -> None:
    splitter = Splitter(1000)
    assert splitter.feed(b":\r\n") == [(b":\r\n", None)]
    assert splitter.feed(b": half a com") == []
    assert not splitter.pending
    assert splitter.feed(b"ment\n\n") == [(b": half a comment\n\n", None)]


@pytest.mark.parametrize(
    ("raw", "pending"), [(b"", False), (b"da", True), (b"data: a\n", True), (b"data: a\n\n", False), (b"\r", False)]
)
def test_an_unfinished_event_is_pending_until_the_stream_ends(raw: bytes, pending: bool) -> None:
    decoder = Decoder(1000)
    decoder.feed(raw)
    assert decoder.pending is pending
    decoder.end()
    assert not decoder.pending
    assert decoder.feed(b"data: new\n\n") == [Event(b"new")]


@pytest.mark.parametrize("size", [1, 3, 64])
@pytest.mark.parametrize(
    "raw", [b"data: 0123456789", b"data: 01\ndata: 34\n\n", b": a long comment", b"data: 1\n" + b":\n" * 5]
)
def test_an_event_over_the_bound_is_refused_wherever_it_is_cut(raw: bytes, size: int) -> None:
    with pytest.raises(sse.EventTooLarge):
        decoded([raw[at : at + size] for at in range(0, len(raw), size)], max_event_bytes=15)


def test_events_before_one_that_is_too_large_are_given_out_first() -> None:
    decoder = Decoder(15)
    assert decoder.feed(b"data: a\n\ndata: 0123456789") == [Event(b"a")]
    for chunk in (b"", b"\n\ndata: b\n\n"):
        with pytest.raises(sse.EventTooLarge, match="longer than 15 bytes"):
            decoder.feed(chunk)


def test_the_bound_is_for_one_event_not_for_the_stream() -> None:
    decoder = Decoder(15)
    assert decoder.feed(b"data: 1234567\n\n" * 50 + b":0123456789\n" * 50) == [Event(b"1234567")] * 50


@given(
    st.binary(),
    st.none() | st.text(st.characters(exclude_characters="\r\n\0", codec="utf-8")),
    st.none() | st.integers(0, 10**9),
)
def test_what_is_encoded_is_decoded_again(data: bytes, identity: str | None, retry_ms: int | None) -> None:
    raw = sse.encode(data, event=identity, id=identity, retry_ms=retry_ms)
    lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    assert Decoder(10_000).feed(raw) == [Event(lines, identity or "message", identity, retry_ms)]


@pytest.mark.parametrize(
    ("raw", "written"),
    [
        (sse.encode(b"{}"), b"data: {}\n\n"),
        (sse.encode(b"a\nb\n"), b"data: a\ndata: b\ndata: \n\n"),
        (sse.encode(b"", id="1", retry_ms=5), b"id: 1\nretry: 5\ndata: \n\n"),
        (sse.encode(None, retry_ms=5), b"retry: 5\n\n"),
        (sse.encode(b"x", event="endpoint"), b"event: endpoint\ndata: x\n\n"),
    ],
)
def test_an_event_is_written_line_by_line(raw: bytes, written: bytes) -> None:
    assert raw == written


@pytest.mark.parametrize("text", ["a\nb", "a\rb", "a\0b"])
def test_a_name_or_id_can_not_smuggle_a_line(text: str) -> None:
    with pytest.raises(ValueError, match="line ends"):
        sse.encode(b"", id=text)
    with pytest.raises(ValueError, match="line ends"):
        sse.encode(b"", event=text)


def test_the_keep_alive_holds_no_event() -> None:
    assert decoded([sse.KEEP_ALIVE * 3]) == []
