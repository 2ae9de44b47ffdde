"""Field report O1: a name in a header is decoded before it is compared, and encoded anew for the next hop."""

import base64
import re

import pytest

from tests.door import Door
from tests.field.pairs import either_upstream, every_pair
from tests.gateway_process import running
from tests.peers import ModernUpstream
from tests.raw_front import header_value, modern_headers, modern_request, sentinel
from tests.scripted import Seen

# method, the member of params, its value
NAMES = {
    "a plain tool": ("tools/call", "name", "echo"),
    "a tool with umlauts": ("tools/call", "name", "größe"),
    "a tool in kanji and emoji": ("tools/call", "name", "日本😀"),
    "a leading space": ("tools/call", "name", " lead"),
    "a trailing tab": ("tools/call", "name", "trail\t"),
    "a space inside": ("tools/call", "name", "two words"),
    "a tab inside": ("tools/call", "name", "two\twords"),
    "a line break": ("tools/call", "name", "line1\nline2"),
    "a header smuggled in": ("tools/call", "name", "x\r\nX-Smuggled: 1"),
    "a NUL": ("tools/call", "name", "nul\x00"),
    "DEL": ("tools/call", "name", "del\x7f"),
    "the shape of an encoded name": ("tools/call", "name", "=?base64?abc?="),
    "the shape in upper case": ("tools/call", "name", "=?BASE64?abc?="),
    "only the beginning of the shape": ("tools/call", "name", "=?base64?abc"),
    "another encoding's shape": ("tools/call", "name", "=?utf-8?Q?abc?="),
    "a resource with spaces and kanji": ("resources/read", "uri", "notes://日本/ä b"),
    "a resource with percent signs": ("resources/read", "uri", "notes://a%20b?x=1&y=%C3%A4#z"),
    "a prompt with commas and quotes": ("prompts/get", "name", 'say "a, b"; c=d'),
    "an accented prompt": ("prompts/get", "name", "élan"),
    "a decomposed accent": ("prompts/get", "name", "e\u0301lan"),
}


def decoded(value: str) -> str:
    """What a header value means, by the specification's words alone."""
    found = re.fullmatch(r"=\?base64\?(.*)\?=", value)
    return base64.b64decode(found[1], validate=True).decode() if found else value


def agrees(seen: Seen, member: str, name: str) -> None:
    """The upstream got this name in the body, and in the header where its era has one."""
    assert seen.params[member] == name
    if seen.version == "2026-07-28":
        lines = seen.headers.all("Mcp-Name")
        assert [decoded(line) for line in lines] == [name]
        assert all(0x20 <= ord(letter) < 0x7F or letter == "\t" for letter in lines[0])
        assert seen.headers.all("Mcp-Method") == [seen.method]
    assert "X-Smuggled" not in seen.headers


@pytest.mark.field("O1")
@every_pair
@pytest.mark.parametrize("name", NAMES)
async def test_any_name_comes_through_in_body_and_header(
    door: Door, front_era: str, upstream_era: str, name: str
) -> None:
    method, member, value = NAMES[name]
    front = door.front(upstream_era)
    if front_era == "modern":
        answer = await front.modern(method, {member: value})
    else:
        answer = await (await front.initialize()).request(method, {member: value})
    assert "result" in answer.final, repr(answer)
    [seen] = door.upstream(upstream_era).calls(method)
    agrees(seen, member, value)


@pytest.mark.field("O1")
@either_upstream
@pytest.mark.parametrize("value", ["echo", "größe", "notes", "=?BASE64?ZWNobw==?=", "a b"])
async def test_an_encoding_that_was_not_needed_is_accepted(door: Door, upstream_era: str, value: str) -> None:
    message = modern_request("tools/call", {"name": value})
    answer = await door.front(upstream_era).post(message, {**modern_headers(message), "Mcp-Name": sentinel(value)})
    assert "result" in answer.final, repr(answer)
    agrees(door.upstream(upstream_era).calls("tools/call")[0], "name", value)


@pytest.mark.field("O1")
@either_upstream
async def test_the_marker_in_upper_case_is_part_of_the_name(door: Door, upstream_era: str) -> None:
    literal = "=?BASE64?ZWNobw==?="
    message = modern_request("tools/call", {"name": literal})
    answer = await door.front(upstream_era).post(message, {**modern_headers(message), "Mcp-Name": literal})
    assert "result" in answer.final, repr(answer)
    agrees(door.upstream(upstream_era).calls("tools/call")[0], "name", literal)


def encoded(data: bytes) -> str:
    return f"=?base64?{base64.b64encode(data).decode()}?="


WRONG: dict[str, tuple[str, str | bytes]] = {
    "raw UTF-8": ("größe", "größe".encode()),
    "raw latin-1": ("größe", "größe".encode("latin-1")),
    "raw UTF-8 beside ASCII": ("echo", b"echo\xc3\xa4"),
    "letters outside the alphabet": ("echo", "=?base64?ZWN*bw==?="),
    "the URL alphabet": ("~~~~??", "=?base64?fn5-fj8_?="),
    "a space inside": ("echo", "=?base64?ZWNo bw==?="),
    "missing padding": ("echo", "=?base64?ZWNobw?="),
    "half of the padding": ("echo", "=?base64?ZWNobw=?="),
    "too much padding": ("echo", "=?base64?ZWNobw====?="),
    "stray bits at the end": ("echo", "=?base64?ZWNobx==?="),
    "nothing inside": ("echo", "=?base64??="),
    "no UTF-8 inside": ("größe", encoded("größe".encode("latin-1"))),
    "half a letter inside": ("größe", encoded("größe".encode()[:-2] + b"\xc3")),
    "a surrogate inside": ("\ufffd", encoded(b"\xed\xa0\x80")),
    "an overlong form inside": ("/", encoded(b"\xc0\xaf")),
    "another name inside": ("größe", sentinel("grösse")),
    "the other normal form": ("élan", sentinel("e\u0301lan")),
    "the marker in upper case": ("echo", "=?BASE64?ZWNobw==?="),
    "the marker in mixed case": ("echo", "=?Base64?ZWNobw==?="),
    "the shape sent unencoded": ("=?base64?abc?=", "=?base64?abc?="),
    "a decodable shape sent unencoded": ("=?base64?ZWNobw==?=", "=?base64?ZWNobw==?="),
    "encoded twice": ("größe", sentinel(sentinel("größe"))),
    "percent encoding": ("größe", "gr%C3%B6%C3%9Fe"),
}


@pytest.mark.field("O1")
@either_upstream
@pytest.mark.parametrize("name", WRONG)
async def test_a_name_that_is_encoded_wrongly_is_a_header_mismatch(door: Door, upstream_era: str, name: str) -> None:
    value, header = WRONG[name]
    message = modern_request("tools/call", {"name": value}, ident="o-1")
    answer = await door.front(upstream_era).post(message, {**modern_headers(message), "Mcp-Name": header})
    assert (answer.status, answer.code, answer.final["id"]) == (400, -32020, "o-1"), repr(answer)
    assert door.upstream(upstream_era).calls("tools/call") == []


@pytest.mark.field("O1")
@either_upstream
@pytest.mark.parametrize("byte", [b"\x00", b"\x01", b"\x1b", b"\x7f"], ids=repr)
async def test_a_control_character_is_no_http_and_400(door: Door, upstream_era: str, byte: bytes) -> None:
    message = modern_request("tools/call", {"name": "echo"})
    answer = await door.front(upstream_era).post(message, {**modern_headers(message), "Mcp-Name": b"ec" + byte + b"ho"})
    assert answer.status == 400
    assert door.upstream(upstream_era).calls("tools/call") == []


@pytest.mark.field("O1")
@pytest.mark.parametrize("header", ["Mcp-Method", "MCP-Protocol-Version"])
async def test_only_names_are_ever_encoded(door: Door, header: str) -> None:
    message = modern_request("tools/list", ident="o-2")
    headers = modern_headers(message)
    answer = await door.front("modern").post(message, {**headers, header: sentinel(headers[header])})
    assert answer.status == 400
    assert answer.final["id"] == "o-2"
    assert door.modern.calls("tools/list") == []


@pytest.mark.field("O1")
async def test_rules_match_the_decoded_name() -> None:
    async with ModernUpstream() as german, ModernUpstream() as other:
        route = {
            "path": "/mcp",
            "rules": [{"name": {"prefix": "grö"}, "upstream": "german"}],
            "default": "other",
        }
        async with running({"german": german, "other": other}, routes=[route]) as gateway:
            for value in ("größe", "grösse", "echo", "=?base64?Z3LDtg==?="):
                assert "result" in (await gateway.front().modern("tools/call", {"name": value})).final
        assert [seen.params["name"] for seen in german.calls("tools/call")] == ["größe", "grösse"]
        assert [seen.headers.get("Mcp-Name") for seen in other.calls("tools/call")] == [
            "echo",
            header_value("=?base64?Z3LDtg==?="),
        ]
