"""JSON-RPC messages in and out: what survives, what is refused, and under which id."""

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies import jsonrpc
from policies.errors import Rejection
from policies.jsonrpc import Notification, Request, Response

SURVIVORS = [
    b"18446744073709551616",
    b"-9223372036854775809",
    b"123456789012345678901234567890",
    b"9007199254740993",
    b"9007199254740993.5",
    b"0.1234567890123456789",
    b"1.7976931348623157E+309",
    b"1E-400",
    b'"\\ud800"',
    b'{"\\udfff":1}',
    b'["\\ud800",12345678901234567890123,0.1234567890123456789,1.5,true,null,{},[]]',
    '"日本 \U0001f600 \x7f\u2028"'.encode(),
    b'{"a":[1,2.5,-0.0,true,false,null,"x"],"b":{}}',
]


@pytest.mark.parametrize("raw", SURVIVORS)
def test_a_value_is_written_as_it_was_read(raw: bytes) -> None:
    assert jsonrpc.dumps(jsonrpc.loads(raw)) == raw


@pytest.mark.parametrize("text", ["1.5", "3.141592653589793", "0.30000000000000004", "1.0", "1e100", "2.50"])
def test_a_number_that_a_double_holds_is_a_float(text: str) -> None:
    value = jsonrpc.loads(text.encode())
    assert isinstance(value, float)
    assert Decimal(repr(value)) == Decimal(text)


@pytest.mark.parametrize("text", ["9007199254740993e0", "1234567890123456.7", "1e999", "4e-325", "0.12345678901234567"])
def test_a_number_that_a_double_would_round_keeps_its_value(text: str) -> None:
    assert Decimal(str(jsonrpc.loads(text.encode()))) == Decimal(text)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"nan",
        b"NaN",
        b"[Infinity, 12345678901234567890123]",
        b'["\\ud800", NaN]',
        b'{"a":1}x',
        b'"\xff"',
        b'["\\ud800", "\xff"]',
        b'"\xed\xa0\x80"',
        b"\xef\xbb\xbf{}",
        '{"a":1}'.encode("utf-16"),
        b'"\x01"',
        b'[12345678901234567890123, "\x01"]',
        b'[12345678901234567890123, "\xff"]',
        b'[12345678901234567890123, "\xed\xa0\x80"]',
        b'{"\xff": 12345678901234567890123}',
        b"[12345678901234567890123, 01]",
        b"[12345678901234567890123] x",
        b"[12345678901234567890123, 1.]",
        b"[12345678901234567890123, .1]",
        b"[12345678901234567890123,]",
        b'{"a":12345678901234567890123,}',
        b'[12345678901234567890123, "\\x"]',
        b'["\\ud800\x01"]',
        b"01",
        b"1" * 5000,
        b"1e99999999999999999999999",
        b"[" * 100_000,
        b"[" * 3000 + b'"\\ud800"' + b"]" * 3000,
    ],
    ids=lambda raw: repr(raw[:20]),
)
def test_what_is_no_json_is_a_value_error(raw: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the class is the whole promise
        jsonrpc.loads(raw)


def test_paired_surrogates_are_one_character() -> None:
    assert jsonrpc.loads(b'["\\ud83d\\ude00"]') == ["\U0001f600"]
    assert jsonrpc.loads(b'["\\ud83d\\ude00", 12345678901234567890123]') == ["\U0001f600", 12345678901234567890123]


@pytest.mark.parametrize("depth", [300, 500])
def test_deep_values_are_written_too(depth: int) -> None:
    raw = b"[" * depth + b"]" * depth
    assert jsonrpc.dumps(jsonrpc.loads(raw)) == raw


def test_a_value_too_deep_to_write_is_a_value_error() -> None:
    value: list[Any] = ["\ud800"]
    for _ in range(5000):
        value = [value]
    with pytest.raises(ValueError, match="nested too deeply"):
        jsonrpc.dumps(value)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**40), 10**40)
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(exclude_categories=())), inner),
    max_leaves=12,
)


def exact(value: Any) -> Any:
    """The value with its floats as the decimals that their shortest form says."""
    if isinstance(value, dict):
        return {name: exact(member) for name, member in value.items()}
    if isinstance(value, list):
        return [exact(member) for member in value]
    return Decimal(repr(value)) if isinstance(value, float) else value


@given(JSON)
def test_every_value_survives_a_round_trip(value: Any) -> None:
    written = jsonrpc.dumps(value)
    again = jsonrpc.dumps(jsonrpc.loads(written))
    assert json.loads(again, parse_float=Decimal) == json.loads(written, parse_float=Decimal) == exact(value)


@given(JSON)
def test_a_value_means_the_same_to_a_reader_that_rounds_nothing(value: Any) -> None:
    raw = json.dumps(value, default=float, ensure_ascii=True).encode()
    original = json.loads(raw, parse_float=Decimal)
    assert json.loads(jsonrpc.dumps(jsonrpc.loads(raw)), parse_float=Decimal) == original


@pytest.mark.parametrize(
    ("raw", "max_depth", "exceeds"),
    [
        (b"[[[]]]", 3, False),
        (b"[[[]]]", 2, True),
        (b'{"a":{"b":[{}]}}', 4, False),
        (b'{"a":{"b":[{}]}}', 3, True),
        (b"[[],[],[],[],[]]", 2, False),
        (b'["[[[[[[[[", "]]]"]', 1, False),
        (b'["\\"[[[[", "\\\\", [[]]]', 2, True),
        (b'["\\"[[[[", "\\\\", [[]]]', 3, False),
        (b'["unterminated [[[[[', 1, False),
        (b"]]]]][[[", 2, False),
    ],
)
def test_depth_counts_brackets_outside_strings(raw: bytes, max_depth: int, exceeds: bool) -> None:
    assert jsonrpc.depth_exceeds(raw, max_depth) is exceeds


@given(JSON, st.integers(0, 6))
def test_depth_agrees_with_the_parsed_value(value: Any, max_depth: int) -> None:
    def depth(value: Any) -> int:
        members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
        return 0 if members is None else 1 + max(map(depth, members), default=0)

    assert jsonrpc.depth_exceeds(jsonrpc.dumps(value), max_depth) is (depth(value) > max_depth)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', Request(1, "ping", {})),
        (b'{"jsonrpc":"2.0","id":0,"method":"ping","params":{}}', Request(0, "ping", {})),
        (b'{"jsonrpc":"2.0","id":"","method":"a","params":{"b":1}}', Request("", "a", {"b": 1})),
        (b'{"jsonrpc":"2.0","id":12345678901234567890123,"method":"a"}', Request(12345678901234567890123, "a", {})),
        (b'{"jsonrpc":"2.0","method":"n","x":1}', Notification("n", {})),
        (b'{"jsonrpc":"2.0","id":1,"result":{"a":null}}', Response(1, {"a": None}, None)),
        (
            b'{"jsonrpc":"2.0","id":"1","error":{"code":1,"message":""}}',
            Response("1", None, {"code": 1, "message": ""}),
        ),
        (b'{"jsonrpc":"2.0","error":{}}', Response(None, None, {})),
        (b'{"jsonrpc":"2.0","id":null,"error":{}}', Response(None, None, {})),
    ],
)
def test_a_message_is_what_its_members_say(raw: bytes, expected: jsonrpc.Message) -> None:
    assert jsonrpc.parse(raw) == expected


def test_the_type_of_an_id_is_kept() -> None:
    parsed = jsonrpc.parse(b'{"jsonrpc":"2.0","id":"7","method":"a"}')
    assert isinstance(parsed, Request)
    assert jsonrpc.response(parsed.id, {}) == b'{"jsonrpc":"2.0","id":"7","result":{}}'


@pytest.mark.parametrize(
    ("raw", "code", "answered_as"),
    [
        (b"", -32700, None),
        (b'{"id":1', -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', -32700, None),
        (b"[]", -32600, None),
        (b"1", -32600, None),
        (b"null", -32600, None),
        (b'{"id":1,"method":"a"}', -32600, 1),
        (b'{"jsonrpc":"1.0","id":"x","method":"a"}', -32600, "x"),
        (b'{"jsonrpc":2.0,"id":2,"method":"a"}', -32600, 2),
        (b'{"jsonrpc":"2.0","id":3,"method":4}', -32600, 3),
        (b'{"jsonrpc":"2.0","id":3,"method":null}', -32600, 3),
        (b'{"jsonrpc":"2.0","id":5,"method":"a","params":[]}', -32600, 5),
        (b'{"jsonrpc":"2.0","id":5,"method":"a","params":null}', -32600, 5),
        (b'{"jsonrpc":"2.0","id":5,"method":"a","params":"x"}', -32600, 5),
        (b'{"jsonrpc":"2.0","id":true,"method":"a"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":1.0,"method":"a"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":1e999,"method":"a"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":null,"method":"a"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":{},"method":"a"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":6}', -32600, 6),
        (b'{"jsonrpc":"2.0","id":6,"result":{},"error":{}}', -32600, None),
        (b'{"jsonrpc":"2.0","id":6,"result":[]}', -32600, None),
        (b'{"jsonrpc":"2.0","id":6,"error":"x"}', -32600, None),
        (b'{"jsonrpc":"2.0","result":{}}', -32600, None),
        (b'{"jsonrpc":"2.0","id":8,"method":"a","params":{"x":' + b"[" * 200 + b"]" * 200 + b"}}", -32600, 8),
    ],
    ids=lambda value: repr(value[:60]) if isinstance(value, bytes) else None,
)
def test_a_bad_message_is_refused_with_400_under_the_id_it_shows(raw: bytes, code: int, answered_as: Any) -> None:
    rejection = jsonrpc.parse(raw)
    assert isinstance(rejection, Rejection)
    assert (rejection.code, rejection.status) == (code, 400)
    identity = jsonrpc.readable_id(raw)
    assert (identity, type(identity)) == (answered_as, type(answered_as))


def test_a_batch_is_judged_element_by_element() -> None:
    batch = jsonrpc.parse(b'[{"jsonrpc":"2.0","id":1,"method":"a"},7,{"jsonrpc":"2.0","method":"n"},[]]')
    assert isinstance(batch, list)
    assert [batch[0], batch[2]] == [Request(1, "a", {}), Notification("n", {})]
    assert [element.code for element in (batch[1], batch[3]) if isinstance(element, Rejection)] == [-32600, -32600]


@pytest.mark.parametrize(
    ("raw", "written"),
    [
        (jsonrpc.request("a", "m"), b'{"jsonrpc":"2.0","id":"a","method":"m"}'),
        (jsonrpc.request(0, "m", {"x": 1}), b'{"jsonrpc":"2.0","id":0,"method":"m","params":{"x":1}}'),
        (jsonrpc.notification("n", {}), b'{"jsonrpc":"2.0","method":"n"}'),
        (jsonrpc.notification("n", {"x": 1}), b'{"jsonrpc":"2.0","method":"n","params":{"x":1}}'),
        (jsonrpc.response(0, {}), b'{"jsonrpc":"2.0","id":0,"result":{}}'),
        (jsonrpc.error_response(None, -1, "m", None), b'{"jsonrpc":"2.0","error":{"code":-1,"message":"m"}}'),
        (
            jsonrpc.error_response(0, -1, "m", {"a": 2**70}),
            b'{"jsonrpc":"2.0","id":0,"error":{"code":-1,"message":"m","data":{"a":1180591620717411303424}}}',
        ),
    ],
)
def test_what_is_written_holds_only_what_is_there(raw: bytes, written: bytes) -> None:
    assert raw == written


REPEATED: list[tuple[str, str | None]] = [
    ('{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}', "method"),
    ('{"id":1,"jsonrpc":"2.0","id":1,"method":"a"}', "id"),
    ('{"method":"a","params":{},"params":{}}', "params"),
    ('{"method":"a","m\\u0065thod":"b"}', "method"),
    ('{"method":"a","params":{"name":"safe","name":"danger"}}', "name"),
    ('{"method":"a","params":{"name":"safe","n\\u0061me":"danger"}}', "name"),
    ('{"method":"a","params":{"uri":"a","arguments":{"uri":"a"},"uri":"b"}}', "uri"),
    ('{"params":{"taskId":"a","taskId":"b"}}', "taskId"),
    ('{"params":{"_meta":{},"_meta":{}}}', "_meta"),
    ('{"params":{"arguments":{},"arguments":{}}}', "arguments"),
    ('{"params":{"requestState":"a","requestState":"a"}}', "requestState"),
    ('{"params":{"inputResponses":{},"inputResponses":{}}}', "inputResponses"),
    (
        '{"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"a","io.modelcontextprotocol/protocolVersion":"b"}}}',
        "io.modelcontextprotocol/protocolVersion",
    ),
    (
        '{"params":{"_meta":{"io.modelcontextprotocol/logLevel":"a","io.modelcontextprotocol\\/logLevel":"b"}}}',
        "io.modelcontextprotocol/logLevel",
    ),
    ('[{"method":"a"},{"method":"b","method":"c"}]', "method"),
    ('{"method":"\\ud800","method":"b"}', "method"),
    ('{"method":"a","x":12345678901234567890123,"method":"b"}', "method"),
    ('{"method":"a","x":"\\u0022\\u0022","method":"b"}', "method"),
    # the same names where nobody is misled
    ('[{"method":"a"},{"method":"a"}]', None),
    ('{"method":"a","params":{"name":"a","arguments":{"name":"b","id":1,"method":"c"}}}', None),
    ('{"method":"a","params":{"arguments":{"name":"b","name":"c"}}}', None),
    ('{"method":"a","params":{"name":"name"}}', None),
    ('{"method":"a","params":{"x":1,"x":2}}', None),
    ('{"method":"a","params":{"_meta":{"progressToken":1,"progressToken":2}}}', None),
    ('{"method":"a","params":{"name":"\\"name\\"","arguments":{"t":"\\u0041"}}}', None),
    ('{"method":"a","params":{"_meta":{"io.modelcontextprotocol/a":1,"io.modelcontextprotocol/b":2}}}', None),
    ('{"params":[],"method":"a","arguments":1,"arguments":2}', None),
    ('{"method":"a","method":', None),
    ("[1,2]", None),
]


@pytest.mark.parametrize(("text", "name"), REPEATED)
def test_a_member_given_twice_is_found_where_it_could_mislead(text: str, name: str | None) -> None:
    assert jsonrpc.duplicate_member(text.encode()) == name


@given(st.lists(st.sampled_from(["jsonrpc", "id", "method", "params", "name", "uri", "x"]), max_size=5), JSON)
def test_the_quick_look_never_misses_a_repetition(names: list[str], value: Any) -> None:
    inner = jsonrpc.dumps(value).decode()
    body = "{" + ",".join(f'"{name}":{inner}' for name in names) + "}"
    watched = {"jsonrpc", "id", "method", "params"}
    repeated = any(names.count(name) > 1 for name in watched)
    assert (jsonrpc.duplicate_member(body.encode()) in watched) is repeated
