"""Requests as bytes: malformed, truncated, oversized, slow, smuggled, pipelined; and what each must be answered with.

A case is what is sent, in pieces, and the statuses of the answers that must come, in order. After the last answer of a
case that breaks HTTP the gateway closes the connection.
"""

import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.raw_front import MODERN, modern_request

BODY = json.dumps(modern_request("tools/list")).encode()
HEAD_LINES = [
    b"Host: {host}",
    b"Content-Type: application/json",
    b"Accept: application/json, text/event-stream",
    b"MCP-Protocol-Version: " + MODERN.encode(),
    b"Mcp-Method: tools/list",
]


@dataclass(frozen=True, slots=True)
class Case:
    """`pieces`: bytes, `{host}` standing for the gateway's authority. `ends`: whether the sender then sends a FIN.
    `answers`: the statuses, each a set of those that are right.
    `stays`: whether the connection must stay open. `waits`: whether each piece waits for the answer before it."""

    name: str
    pieces: tuple[bytes, ...]
    answers: tuple[frozenset[int], ...]
    ends: bool = False
    stays: bool = False
    code: int | None = None
    waits: bool = False


def head(*lines: bytes, start: bytes = b"POST /modern HTTP/1.1", without: tuple[bytes, ...] = ()) -> bytes:
    """A head with the usual lines and these, those of the names in `without` left out."""
    kept = [line for line in HEAD_LINES if line.split(b":")[0].lower() not in without]
    return b"\r\n".join([start, *kept, *lines, b"", b""])


def post(*lines: bytes, body: bytes = BODY, **more: Any) -> bytes:
    """A whole request of the usual kind, its length declared."""
    return head(*lines, b"Content-Length: %d" % len(body), **more) + body


def one(name: str, data: bytes, *statuses: int, **more: Any) -> Case:
    return Case(name, (data,), (frozenset(statuses),), **more)


def request_lines() -> Iterator[Case]:
    """The request line: what is no HTTP/1.1, what no client sends, what another protocol opens with."""
    rest = post(start=b"").removeprefix(b"\r\n")
    wrong = {
        "no version": b"POST /modern",
        "no target": b"POST HTTP/1.1",
        "a tab for a blank": b"POST\t/modern\tHTTP/1.1",
        "a blank before the method": b" POST /modern HTTP/1.1",
        "a method in lower case": b"post /modern HTTP/1.1",
        "an unknown method": b"FROB /modern HTTP/1.1",
        "a method with a line in it": b"PO\rST /modern HTTP/1.1",
        "a method with a NUL": b"PO\x00ST /modern HTTP/1.1",
        "a method of 9000 letters": b"A" * 9000 + b" /modern HTTP/1.1",
        "version 0.9": b"POST /modern HTTP/0.9",
        "version 1.2": b"POST /modern HTTP/1.2",
        "version 1.10": b"POST /modern HTTP/1.10",
        "version 2.0": b"POST /modern HTTP/2.0",
        "version 9.9": b"POST /modern HTTP/9.9",
        "version x.y": b"POST /modern HTTP/x.y",
        "version with a sign": b"POST /modern HTTP/+1.1",
        "version in lower case": b"POST /modern http/1.1",
        "another protocol's name": b"POST /modern ICY/1.1",
        "something after the version": b"POST /modern HTTP/1.1 x",
        "a blank in the target": b"POST /mod ern HTTP/1.1",
        "a NUL in the target": b"POST /mod\x00ern HTTP/1.1",
        "a bare CR in the target": b"POST /mod\rern HTTP/1.1",
        "a DEL in the target": b"POST /mod\x7fern HTTP/1.1",
        "a target without a slash": b"POST modern HTTP/1.1",
        "an empty absolute target": b"POST http:// HTTP/1.1",
        "an absolute target of another host": b"POST http://evil.example/modern HTTP/1.1",
        "an absolute target with a user": b"POST http://user@{host}/modern HTTP/1.1",
        "another scheme's target": b"POST file:///etc/passwd HTTP/1.1",
        "CONNECT": b"CONNECT {host} HTTP/1.1",
        "CONNECT to elsewhere": b"CONNECT evil.example:443 HTTP/1.1",
        "an HTTP/2 preface": b"PRI * HTTP/2.0",
        "an RTSP request": b"OPTIONS * RTSP/1.0",
        "a SIP request": b"INVITE sip:bob@example.com SIP/2.0",
    }
    for name, line in wrong.items():
        yield one(name, line + b"\r\n" + rest, 400, 404, 405, 431)
    yield one("a target of 9000 bytes", post(start=b"POST /" + b"m" * 9000 + b" HTTP/1.1"), 431)
    yield one("a query of 9000 bytes", post(start=b"POST /modern?" + b"m" * 9000 + b" HTTP/1.1"), 431)
    unserved = {
        "": 404,
        "modern/x": 404,
        "x": 404,
        "%6dodern": 404,
        "modern//": 404,
        "./modern": 404,
        "x/../modern": 404,
    }
    for path, status in {**unserved, "modern%00": 404, "modern%2f": 404, "MODERN": 404, "modern;x": 404}.items():
        yield one(f"the path /{path}", post(start=b"POST /%s HTTP/1.1" % path.encode()), status, stays=True)
    yield one("a target with bytes beyond ASCII", post(start=b"POST /m\xc3\xb6dern HTTP/1.1"), 400, 404)
    yield one("a target with bytes that are no UTF-8", post(start=b"POST /m\xffdern HTTP/1.1"), 400, 404)
    yield one("a fragment in the target", post(start=b"POST /modern#x HTTP/1.1"), 200, 400)
    for name, start in {
        "a query": b"POST /modern?a=b HTTP/1.1",
        "two blanks before the target": b"POST  /modern HTTP/1.1",
        "two blanks before the version": b"POST /modern  HTTP/1.1",
        "a final slash": b"POST /modern/ HTTP/1.1",
        "an absolute target": b"POST http://{host}/modern HTTP/1.1",
    }.items():
        yield one(f"{name} is served", post(start=start), 200, stays=True)
    for method in (b"PUT", b"PATCH", b"HEAD", b"TRACE", b"OPTIONS", b"GET", b"DELETE"):
        yield one(f"{method.decode()} of a modern endpoint", head(start=method + b" /modern HTTP/1.1"), 405, stays=True)
    yield one("HTTP/1.0", post(start=b"POST /modern HTTP/1.0"), 200)
    yield one("HTTP/1.0 without a Host", post(start=b"POST /modern HTTP/1.0", without=(b"host",)), 400)
    yield one("empty lines before the request", b"\r\n\r\n" + post(), 200, stays=True)


def not_http() -> Iterator[Case]:
    """What other programs say to an open port."""
    openings = {
        "a TLS hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),
        "an SSH banner": b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        "an SMTP greeting": b"EHLO example.com\r\n\r\n",
        "a Redis command": b"*1\r\n$4\r\nPING\r\n\r\n",
        "a PROXY line": b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n" + post(),
        "a PROXY v2 header": b"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c" + bytes(12) + post(),
        "NUL bytes": bytes(512),
        "0xff bytes": b"\xff" * 512,
        "JSON alone": BODY + b"\r\n\r\n",
        "an LDAP bind": b"\x30\x0c\x02\x01\x01\x60\x07\x02\x01\x03\x04\x00\x80\x00\r\n\r\n",
        "an HTTP response": b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        "a shell word": b"help\r\n\r\n",
    }
    for name, data in openings.items():
        yield one(name, data, 400)


def header_lines() -> Iterator[Case]:
    """Header lines: names, values, folding, number and size."""
    for name, line in {
        "no colon": b"X-Foo bar",
        "an empty name": b": bar",
        "a blank before the colon": b"X-Foo : bar",
        "a tab before the colon": b"X-Foo\t: bar",
        "a blank in the name": b"X Foo: bar",
        "a folded line": b"X-Foo: bar\r\n baz",
        "a line folded by a tab": b"X-Foo: bar\r\n\tbaz",
        "a NUL in the name": b"X-\x00Foo: bar",
        "a NUL in the value": b"X-Foo: b\x00r",
        "a bare CR in the value": b"X-Foo: b\rr",
        "a bare LF before another line": b"X-Foo: bar\nX-Bar: baz",
        "a control character in the value": b"X-Foo: b\x01r",
        "a DEL in the value": b"X-Foo: b\x7fr",
        "a control character in the name": b"X-\x01Foo: bar",
        "brackets in the name": b"X[Foo]: bar",
        "a slash in the name": b"X/Foo: bar",
        "an at sign in the name": b"X@Foo: bar",
        "bytes beyond ASCII in the name": b"X-F\xc3\xb6o: bar",
        "quotes in the name": b'"X-Foo": bar',
        "a comma in the name": b"X,Foo: bar",
    }.items():
        yield one(f"a header with {name}", post(line), 400)
    yield one("a first header line that is folded", b"POST /modern HTTP/1.1\r\n Host: {host}\r\n\r\n", 400)
    yield one("bytes beyond ASCII in a value", post(b"X-Foo: b\xc3\xa4r"), 200, stays=True)
    yield one("an empty value", post(b"X-Foo:"), 200, stays=True)
    yield one("tabs around a value", post(b"X-Foo:\t bar \t"), 200, stays=True)
    yield one("a header line of 9000 bytes", post(b"X-Foo: " + b"a" * 9000), 431)
    yield one("a header name of 9000 bytes", post(b"X" * 9000 + b": a"), 431)
    yield one("a header line of 8000 bytes", post(b"X-Foo: " + b"a" * 8000), 200, stays=True)
    yield one("200 header lines", post(*(b"X-%d: a" % number for number in range(200))), 431)
    yield one("100 header lines", post(*(b"X-%d: a" % number for number in range(100))), 200, stays=True)
    yield one("a head of 40 KiB", post(*(b"X-%d: %s" % (number, b"a" * 4000) for number in range(10))), 431)
    endless = b"".join(b"X-%d: %s\r\n" % (number, b"a" * 4000) for number in range(100))
    yield one("a head of 400 KiB without an end", b"POST /modern HTTP/1.1\r\n" + endless, 431)
    yield one("a line of 400 KiB without an end", b"POST /" + b"a" * 400_000, 431)
    yield one("a header line of 400 KiB without an end", b"POST /modern HTTP/1.1\r\nX-Foo: " + b"a" * 400_000, 431)


def contradictions() -> Iterator[Case]:
    """Lines that say two things, and Hosts."""
    for first, second in (
        (b"Host: {host}", b"Host: evil.example"),
        (b"Content-Type: application/json", b"Content-Type: text/plain"),
        (b"Authorization: Bearer a", b"Authorization: Bearer b"),
        (b"Authorization: Bearer a", b"authorization: Basic YTpi"),
        (b"Mcp-Session-Id: a", b"Mcp-Session-Id: b"),
        (b"Mcp-Session-Id: a", b"MCP-SESSION-ID: b"),
        (b"Last-Event-ID: a", b"Last-Event-ID: b"),
        (b"Content-Encoding: gzip", b"Content-Encoding: deflate"),
        (b"MCP-Protocol-Version: 2026-07-28", b"MCP-Protocol-Version: 2025-11-25"),
        (b"Mcp-Method: tools/list", b"Mcp-Method: tools/call"),
    ):
        names = (first.split(b":")[0].lower(),)
        stays = first.startswith((b"MCP-P", b"Mcp-Me"))  # one request's mistake, and no doubt about where it ends
        label = f"{first.split(b':')[0].decode()} twice"
        yield one(f"{label}: {second.decode()}", post(first, second, without=names), 400, stays=stays)
        yield one(f"{label}: {second.decode()} before", post(second, first, without=names), 400, stays=stays)
    for name, line in {
        "no Host": None,
        "an empty Host": b"Host:",
        "a Host of blanks": b"Host:   ",
        "two names in Host": b"Host: {host}, {host}",
        "a user in Host": b"Host: user@{host}",
        "a path in Host": b"Host: {host}/modern",
        "a port beyond all ports": b"Host: 127.0.0.1:999999",
        "a port that is none": b"Host: 127.0.0.1:http",
        "an unclosed bracket in Host": b"Host: [::1",
        "a scheme in Host": b"Host: http://{host}",
        "a blank in Host": b"Host: 127.0.0.1 evil.example",
        "a letter beyond ASCII in Host": b"Host: \xc3\xb6.example",
    }.items():
        yield one(name, post(*([line] if line else []), without=(b"host",)), 400)
    for host in (
        b"evil.example",
        b"localhost.evil.example",
        b"127.0.0.1.evil.example",
        b"10.0.0.1",
        b"0x7f000001",
        b"2130706433",
    ):
        yield one(f"the Host {host.decode()}", post(b"Host: " + host, without=(b"host",)), 403, stays=True)
    for host in (b"localhost", b"LOCALHOST:1", b"127.0.0.1", b"[::1]:80", b"localhost."):
        yield one(f"the Host {host.decode()}", post(b"Host: " + host, without=(b"host",)), 200, stays=True)
    for option in (b"Mcp-Method", b"Authorization", b"Host", b"close, Mcp-Name", b"Content-Type", b"mcp-session-id"):
        yield one(f"Connection: {option.decode()}", post(b"Connection: " + option), 400)
    for option in (b"X-Foo", b"keep-alive", b"TE", b"keep-alive, X-Foo", b"", b","):
        yield one(f"Connection: {option.decode()} is served", post(b"Connection: " + option, b"X-Foo: a"), 200)
    yield one("Expect: 100-continue", post(b"Expect: 100-continue"), 200, stays=True)
    yield one("another Expect", post(b"Expect: tea"), 417)
    yield one("Upgrade: websocket", post(b"Upgrade: websocket", b"Connection: upgrade"), 200)
    yield one(
        "Upgrade: h2c", post(b"Upgrade: h2c", b"Connection: upgrade, http2-settings", b"HTTP2-Settings: AAMAAABk"), 200
    )


def framing() -> Iterator[Case]:
    """Where a body ends: lengths, transfer codings, both, and what smuggling makes of them."""
    hidden = post()
    for name, line in {
        "negative": b"-1",
        "signed": b"+5",
        "hexadecimal": b"0x10",
        "a list": b"5, 5",
        "a list of two": b"5, 6",
        "a fraction": b"5.0",
        "a word": b"five",
        "empty": b"",
        "with a blank inside": b"1 0",
        "beyond 64 bits": b"99999999999999999999999999",
        "with an exponent": b"1e3",
        "in other digits": b"\xd9\xa3",
        "underscored": b"1_0",
    }.items():
        yield one(f"a Content-Length that is {name}", head(b"Content-Length: " + line) + BODY, 400, 413)
    length = b"Content-Length: %d" % len(BODY)
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
    for name, lines in {
        "two different lengths": [length, b"Content-Length: 0"],
        "two different lengths, the small one first": [b"Content-Length: 0", length],
        "the same length twice": [length, length],
        "a length and chunks": [length, b"Transfer-Encoding: chunked"],
        "chunks and a length": [b"Transfer-Encoding: chunked", length],
        "chunks and no length": [b"Transfer-Encoding: chunked", b"Content-Length: 0"],
        "chunked twice": [b"Transfer-Encoding: chunked, chunked"],
        "two Transfer-Encoding lines": [b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked"],
        "chunked, then identity": [b"Transfer-Encoding: chunked, identity"],
        "identity, then chunked on two lines": [b"Transfer-Encoding: identity", b"Transfer-Encoding: chunked"],
        "chunked, misspelt": [b"Transfer-Encoding: xchunked"],
        "chunked, cut": [b"Transfer-Encoding: chunke"],
        "chunked with a control character": [b"Transfer-Encoding: \x0bchunked"],
        "chunked with a blank before the colon": [b"Transfer-Encoding : chunked"],
        "chunked, folded": [b"Transfer-Encoding:\r\n chunked"],
        "chunked in quotes": [b'Transfer-Encoding: "chunked"'],
        "chunked with a parameter": [b"Transfer-Encoding: chunked;a=b"],
        "gzip as transfer coding": [b"Transfer-Encoding: gzip"],
        "chunked before gzip": [b"Transfer-Encoding: chunked, gzip"],
        "a header that hides chunks": [b"X: y\rTransfer-Encoding: chunked"],
    }.items():
        yield one(f"{name}: nothing is smuggled", head(*lines) + chunked + hidden, 400)
    yield one("gzip before chunked", head(b"Transfer-Encoding: gzip, chunked") + chunked, 501)
    yield one("identity as transfer coding", head(b"Transfer-Encoding: identity", length) + BODY, 400)
    yield one("chunks", head(b"Transfer-Encoding: chunked") + chunked, 200, stays=True)
    yield one("Chunks in another case", head(b"Transfer-Encoding: Chunked") + chunked, 200, stays=True)
    yield one(
        "chunks in HTTP/1.0", head(b"Transfer-Encoding: chunked", start=b"POST /modern HTTP/1.0") + chunked, 200, 400
    )
    yield one("no body at all", head(), 400, stays=True)
    yield one("a body of no bytes", head(b"Content-Length: 0"), 400, stays=True)
    yield one("a body that is declared too large", head(b"Content-Length: 70000"), 413)
    yield one("a body that is too large", post(body=b" " * 70_000), 413)
    big = b"".join(b"1000\r\n" + b" " * 4096 + b"\r\n" for _ in range(20)) + b"0\r\n\r\n"
    yield one("chunks that are too large together", head(b"Transfer-Encoding: chunked") + big, 413)
    yield one("a body of exactly the limit", post(body=BODY + b" " * (65_536 - len(BODY))), 200, stays=True)
    yield one("a body one byte above the limit", post(body=BODY + b" " * (65_537 - len(BODY))), 413)
    get = head(b"Content-Length: 5", start=b"GET /modern HTTP/1.1") + b"hello"
    yield Case("a GET with a body, then a request", (get + post(),), (frozenset({405}), frozenset({200})), stays=True)


def chunks() -> Iterator[Case]:
    """The chunked coding."""
    size = b"%x" % len(BODY)
    whole = BODY + b"\r\n0\r\n\r\n"
    for name, body in {
        "no size": b"\r\n" + whole,
        "a size that is no number": b"zz\r\n" + whole,
        "a negative size": b"-" + size + b"\r\n" + whole,
        "a size with 0x": b"0x" + size + b"\r\n" + whole,
        "a signed size": b"+" + size + b"\r\n" + whole,
        "a size of 17 digits": b"1" + b"0" * 16 + b"\r\n" + whole,
        "a size of 100 digits": b"f" * 100 + b"\r\n" + whole,
        "a size with a blank before it": b" " + size + b"\r\n" + whole,
        "a size with a blank after it": size + b" \r\n" + whole,
        "a bare LF after the size": size + b"\n" + whole,
        "a bare CR after the size": size + b"\r" + whole,
        "a size that is too small": b"5\r\n" + whole,
        "no line end after the data": size + b"\r\n" + BODY + b"0\r\n\r\n",
        "a bare LF after the data": size + b"\r\n" + BODY + b"\n0\r\n\r\n",
        "underscores in the size": b"1_0\r\n" + whole,
        "a NUL in the size": size + b"\x00\r\n" + whole,
        "an extension with a NUL": size + b";a=\x00\r\n" + whole,
        "an extension with a bare LF": size + b";a\nb\r\n" + whole,
        "an extension with a bare CR": size + b";a\rb\r\n" + whole,
        "a trailer that is no header": size + b"\r\n" + BODY + b"\r\n0\r\nnonsense\r\n\r\n",
        "a trailer with a blank before the colon": size + b"\r\n" + BODY + b"\r\n0\r\nX-Foo : a\r\n\r\n",
    }.items():
        yield one(f"chunks with {name}", head(b"Transfer-Encoding: chunked") + body, 400)
    for name, body in {
        "leading zeros": b"0000" + size + b"\r\n" + whole,
        "an extension": size + b";a=b\r\n" + whole,
        "a quoted extension": size + b';a="b"\r\n' + whole,
        "upper-case digits": size.upper() + b"\r\n" + whole,
        "a trailer": size + b"\r\n" + BODY + b"\r\n0\r\nX-Foo: a\r\n\r\n",
        "one byte each": b"".join(b"1\r\n%c\r\n" % byte for byte in BODY) + b"0\r\n\r\n",
    }.items():
        yield one(f"chunks with {name} are served", head(b"Transfer-Encoding: chunked") + body, 200, stays=True)


def truncated() -> Iterator[Case]:
    """Requests that end too soon: each is told so, on the half that is still open."""
    request = post()
    start = request.index(b"\r\n\r\n") + 4
    for at in sorted({1, 3, 5, 10, 20, 22, 23, 30, 50, 80, 120, 150, start - 3, start - 2, start - 1}):
        yield one(f"a head that ends after {at} bytes", request[:at], 400, ends=True)
    for at in sorted({start, start + 1, start + 2, start + 50, len(request) - 2, len(request) - 1}):
        yield one(f"a body that ends after {at - start} bytes", request[:at], 400, ends=True)
    body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
    before = head(b"Transfer-Encoding: chunked")
    for at in (0, 1, 3, 5, 60, len(body) - 6, len(body) - 4, len(body) - 3, len(body) - 1):
        yield one(f"chunks that end after {at} bytes", before + body[:at], 400, ends=True)


def slow() -> Iterator[Case]:
    """Senders that stop and stay."""
    request = post()
    start = request.index(b"\r\n\r\n") + 4
    for at in (1, 4, 13, 22, 23, 60, 150, start - 2, start - 1):
        yield one(f"a head that stops after {at} bytes", request[:at], 408)
    for at in (start, start + 1, start + 60, len(request) - 1):
        yield one(f"a body that stops after {at - start} bytes", request[:at], 408)
    before = head(b"Transfer-Encoding: chunked")
    for body in (b"", b"5", b"5\r\n", b"5\r\nabc", b"5\r\nabcde", b"5\r\nabcde\r\n", b"5\r\nabcde\r\n0\r\n"):
        yield one(f"chunks that stop after {body!r}", before + body, 408)
    yield one("Expect: 100-continue without a body", head(b"Expect: 100-continue", b"Content-Length: 10"), 408)
    served = (frozenset({200}), frozenset({408}))
    yield Case("a second request that stops in its head", (request, request[:30]), served, waits=True)
    yield Case("a second request that stops in its body", (request, request[:-5]), served, waits=True)
    yield Case("byte by byte", tuple(bytes([byte]) for byte in request), (frozenset({200}),), stays=True)


def pipelined() -> Iterator[Case]:
    """Requests that don't wait for answers."""
    ok, bad = frozenset({200}), frozenset({400})
    good = post()
    wrong = b"POST /modern HTTP/9.9\r\n\r\n"
    for count in (2, 5, 20, 100):
        yield Case(f"{count} requests at once", (good * count,), (ok,) * count, stays=True)
    yield Case("a good request and a broken one", (good + wrong,), (ok, bad))
    yield Case("five good requests and a broken one", (good * 5 + wrong,), (ok,) * 5 + (bad,))
    yield Case("a broken request and a good one", (wrong + good,), (bad,))
    yield Case("a good request and garbage", (good + b"\x00\xff" * 50 + b"\r\n\r\n",), (ok, bad))
    yield Case("a body with more than it declares", (good + b"extra\r\n\r\n" + good,), (ok, bad))
    yield Case("a request after one that closes", (post(b"Connection: close") + good,), (ok,))
    missing = post(start=b"POST /nowhere HTTP/1.1")
    yield Case("a good one after one that is not found", (missing + good,), (frozenset({404}), ok), stays=True)
    text = post(b"Content-Type: text/plain", without=(b"content-type",))
    yield Case("a good one after one of another type", (text + good,), (frozenset({415}), ok), stays=True)
    large = head(b"Content-Length: 70000") + b" " * 70_000
    yield Case("a good one after one that is too large", (large + good,), (frozenset({413}), ok))
    halves = good * 3
    for at in (7, len(good) - 3, len(good) + 1, len(good) + 40, 2 * len(good) - 1):
        yield Case(f"three requests cut after {at} bytes", (halves[:at], halves[at:]), (ok, ok, ok), stays=True)


def bodies() -> Iterator[Case]:
    """Bodies that are whole and wrong."""
    deep = b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":' + b'{"a":' * 200 + b"1" + b"}" * 201
    wrong = {
        "nothing but blanks": (b"  \r\n", -32700),
        "cut JSON": (BODY[:-1], -32700),
        "two values": (BODY + BODY, -32700),
        "a trailing comma": (BODY[:-1] + b",}", -32700),
        "single quotes": (BODY.replace(b'"', b"'"), -32700),
        "a comment": (b"/**/" + BODY, -32700),
        "NaN": (b'{"jsonrpc":"2.0","id":NaN,"method":"tools/list"}', -32700),
        "Infinity": (b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"a":Infinity}}', -32700),
        "a BOM": (b"\xef\xbb\xbf" + BODY, None),
        "UTF-16": (BODY.decode().encode("utf-16"), -32700),
        "bytes that are no UTF-8": (BODY[:-2] + b',"x":"\xff"}}', -32700),
        "an overlong form": (BODY[:-2] + b',"x":"\xc0\xaf"}}', -32700),
        "a surrogate in UTF-8": (BODY[:-2] + b',"x":"\xed\xa0\x80"}}', -32700),
        "a control character in a string": (BODY[:-2] + b',"x":"\x01"}}', -32700),
        "a NUL": (BODY + b"\x00", -32700),
        "a number with leading zeros": (b'{"jsonrpc":"2.0","id":01,"method":"tools/list"}', -32700),
        "a form": (b"a=b&c=d", -32700),
        "an HTML page": (b"<!doctype html><p>hello", -32700),
        "a string": (b'"hello"', -32600),
        "a number": (b"1", -32600),
        "null": (b"null", -32600),
        "an empty object": (b"{}", -32600),
        "an empty array": (b"[]", -32600),
        "no jsonrpc": (b'{"id":1,"method":"tools/list"}', -32600),
        "jsonrpc 1.0": (b'{"jsonrpc":"1.0","id":1,"method":"tools/list"}', -32600),
        "jsonrpc as a number": (b'{"jsonrpc":2.0,"id":1,"method":"tools/list"}', -32600),
        "no method": (b'{"jsonrpc":"2.0","id":1}', -32600),
        "a method that is a number": (b'{"jsonrpc":"2.0","id":1,"method":1}', -32600),
        "an id that is null": (b'{"jsonrpc":"2.0","id":null,"method":"tools/list"}', -32600),
        "an id that is an object": (b'{"jsonrpc":"2.0","id":{},"method":"tools/list"}', -32600),
        "an id that is true": (b'{"jsonrpc":"2.0","id":true,"method":"tools/list"}', -32600),
        "params that are a string": (b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":"x"}', -32600),
        "params that are an array": (b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[1]}', None),
        "a result and an error": (b'{"jsonrpc":"2.0","id":1,"result":{},"error":{}}', -32600),
        "a member twice": (BODY[:-1] + b',"method":"tools/call"}', -32600),
        "nested 200 deep": (deep, -32600),
        "30000 brackets": (b"[" * 30_000, -32600),
        "an integer of 5000 digits": (b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"tools/list"}', None),
    }
    for name, (body, code) in wrong.items():
        yield one(f"a body with {name}", post(body=body), 400, stays=True, code=code)
    for kind in (
        b"text/plain",
        b"application/x-www-form-urlencoded",
        b"multipart/form-data; boundary=x",
        b"*/*",
        b"",
        b";",
    ):
        line = b"Content-Type: " + kind
        yield one(f"the type {kind.decode()!r}", post(line, without=(b"content-type",)), 415, stays=True)
    yield one("no type", post(without=(b"content-type",)), 415, stays=True)
    yield one(
        "the charset latin-1", post(b"Content-Type: application/json; charset=latin-1", without=(b"content-type",)), 415
    )
    yield one("an Accept that fits nothing", post(b"Accept: text/html", without=(b"accept",)), 406, stays=True)


def coded() -> Iterator[Case]:
    """Compressed bodies, whole and broken."""
    packed = gzip.compress(BODY)
    bomb = gzip.compress(bytes(50_000_000))
    bare = zlib.compress(BODY)[2:-4]
    for name, coding, body, status in (
        ("gzip", b"gzip", packed, 200),
        ("x-gzip", b"x-gzip", packed, 200),
        ("GZIP in capitals", b"GZIP", packed, 200),
        ("deflate", b"deflate", zlib.compress(BODY), 200),
        ("bare deflate", b"deflate", bare, 200),
        ("identity", b"identity", BODY, 200),
        ("two members of gzip", b"gzip", gzip.compress(BODY[:40]) + gzip.compress(BODY[40:]), 200),
        ("cut gzip", b"gzip", packed[:-5], 400),
        ("gzip of nothing", b"gzip", gzip.compress(b""), 400),
        ("gzip that is none", b"gzip", BODY, 400),
        ("deflate that is none", b"deflate", BODY, 400),
        ("gzip with a wrong checksum", b"gzip", packed[:-8] + bytes(8), 400),
        ("gzip with garbage after it", b"gzip", packed + b"garbage", 400),
        ("2000 members of gzip", b"gzip", gzip.compress(b" ") * 2000, 400),
        ("a bomb", b"gzip", bomb, 413),
        ("a bomb of 48 KiB that unpacks to 50 MB", b"gzip", bomb[:48_000], 413),
        ("br", b"br", BODY, 415),
        ("zstd", b"zstd", BODY, 415),
        ("compress", b"compress", BODY, 415),
        ("an unknown coding", b"rot13", BODY, 415),
        ("gzip twice", b"gzip, gzip", gzip.compress(packed), 415),
        ("a coding beyond ASCII", b"gz\xc3\xafp", BODY, 415),
    ):
        data = head(b"Content-Encoding: " + coding, b"Content-Length: %d" % len(body)) + body
        yield one(f"a body in {name}", data, status, stays=status != 413)


GROUPS: tuple[Callable[[], Iterator[Case]], ...] = (
    *(request_lines, not_http, header_lines, contradictions, framing, chunks),
    *(truncated, slow, pipelined, bodies, coded),
)
CASES = [case for group in GROUPS for case in group()]
