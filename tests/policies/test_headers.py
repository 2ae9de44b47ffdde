"""The `Mcp-*` headers: their encoding, what a tool mirrors, and the rungs that compare them with the body."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict, CIMultiDictProxy

from policies import headers, jsonrpc
from policies.headers import InvalidAnnotation, ParamHeader
from policies.jsonrpc import Request

ENCODED = [
    ("us-west1", "us-west1"),
    ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
    (" padded ", "=?base64?IHBhZGRlZCA=?="),
    ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
    ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
    ("=?base64?=", "=?base64?PT9iYXNlNjQ/PQ==?="),
    ("=?base64?open", "=?base64?open"),
    ("closed?=", "closed?="),
    ("=?BASE64?eA==?=", "=?BASE64?eA==?="),
    ("in the middle", "in the middle"),
    ("a\tb", "=?base64?YQli?="),
    ("\x7f", "=?base64?fw==?="),
    ("größe", "=?base64?Z3LDtsOfZQ==?="),
    ("", ""),
]


@pytest.mark.parametrize(("text", "header"), ENCODED)
def test_a_text_that_would_not_arrive_is_encoded(text: str, header: str) -> None:
    assert headers.encode(text) == header
    assert headers.decode(header) == text


@pytest.mark.parametrize(
    ("value", "header"), [(42, "42"), (-7, "-7"), (2**70, str(2**70)), (True, "true"), (False, "false")]
)
def test_numbers_and_truths_have_one_form(value: int, header: str) -> None:
    assert headers.encode(value) == header


@given(st.text(st.characters(codec="utf-8")))
def test_every_text_survives_a_header(text: str) -> None:
    header = headers.encode(text)
    assert header.isascii()
    assert header.isprintable()
    assert headers.decode(f" \t{header}\t ") == text


def test_a_lone_surrogate_has_no_header_form() -> None:
    with pytest.raises(ValueError, match="lone surrogate"):
        headers.encode("\ud800")


@pytest.mark.parametrize(
    ("header", "text"),
    [
        ("=?base64?c2FmZQ==?=", "safe"),  # not needed, allowed
        ("=?base64??=", ""),
        ("=?Base64?c2FmZQ==?=", "=?Base64?c2FmZQ==?="),
        ("SGVsbG8=", "SGVsbG8="),
        ("a\tb", "a\tb"),
    ],
)
def test_a_marker_in_exactly_its_letters_is_decoded(header: str, text: str) -> None:
    assert headers.decode(header) == text


MALFORMED = [
    "=?base64?SGVsbG8?=",  # no padding
    "=?base64?SGVs!!!bG8=?=",
    "=?base64?SGVs bG8=?=",
    "=?base64?SGVsbG9=?=",  # unused bits set
    "=?base64?SGVs-_8=?=",  # url-safe alphabet
    "=?base64?/w==?=",  # no UTF-8 within
    "=?base64?7aCA?=",  # a surrogate within
    "=?base64?=",
    "größe",
    b"gr\xf6\xdfe".decode(errors="surrogateescape"),
    "a\x00b",
    "a\x7f",
    "a\r\nb",
]


@pytest.mark.parametrize("header", MALFORMED, ids=ascii)
def test_a_malformed_header_value_is_refused(header: str) -> None:
    with pytest.raises(ValueError, match="the value"):
        headers.decode(header)


def annotated(name: Any = "Region", kind: Any = "string") -> dict[str, Any]:
    return {"type": kind, "x-mcp-header": name}


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    ("input_schema", "found"),
    [
        (None, ()),
        (True, ()),
        ([annotated()], ()),
        ({}, ()),
        (schema(a={"type": "string"}), ()),
        (schema(a=annotated("Region")), (ParamHeader(("a",), "Region", "string"),)),
        (
            schema(a=annotated("A"), b=annotated("B", "integer"), c=annotated("C", "boolean")),
            (
                ParamHeader(("a",), "A", "string"),
                ParamHeader(("b",), "B", "integer"),
                ParamHeader(("c",), "C", "boolean"),
            ),
        ),
        (schema(a=schema(b=schema(c=annotated()))), (ParamHeader(("a", "b", "c"), "Region", "string"),)),
        # a property of that name is none
        (schema(**{"x-mcp-header": {"type": "string"}}), ()),
        (schema(**{"x-mcp-header": annotated("X")}), (ParamHeader(("x-mcp-header",), "X", "string"),)),
        (schema(properties=annotated("P")), (ParamHeader(("properties",), "P", "string"),)),
        # nor is data
        (schema(a={"type": "object", "default": {"x-mcp-header": "A"}, "const": {"x-mcp-header": "A"}}), ()),
        (schema(a={"enum": [{"x-mcp-header": ""}], "examples": [{"properties": {"x-mcp-header": 1}}]}), ()),
        (schema(a=annotated("!#$%&'*+-.^_`|~09azAZ")), (ParamHeader(("a",), "!#$%&'*+-.^_`|~09azAZ", "string"),)),
    ],
)
def test_a_tool_mirrors_its_annotated_properties(input_schema: Any, found: tuple[ParamHeader, ...]) -> None:
    assert headers.param_headers(input_schema) == found


BROKEN: list[tuple[str, dict[str, Any]]] = [
    ("no header name", schema(a=annotated(""))),
    ("no header name", schema(a=annotated("My Region"))),
    ("no header name", schema(a=annotated("Region:Primary"))),
    ("no header name", schema(a=annotated("Région"))),
    ("no header name", schema(a=annotated("Region\t1"))),
    ("no header name", schema(a=annotated("Region\r\nX: y"))),
    ("no header name", schema(a=annotated("Region\n"))),
    ("no header name", schema(a=annotated(7))),
    ("no header name", schema(a=annotated(None))),
    ("no header name", schema(a=annotated(["A"]))),
    ("needs the type", schema(a=annotated(kind="number"))),
    ("needs the type", schema(a=annotated(kind="object"))),
    ("needs the type", schema(a=annotated(kind="array"))),
    ("needs the type", schema(a=annotated(kind="null"))),
    ("needs the type", schema(a=annotated(kind=["string", "null"]))),
    ("needs the type", schema(a={"x-mcp-header": "A", "$ref": "#/$defs/a"})),
    ("used twice", schema(a=annotated("Region"), b=annotated("Region"))),
    ("used twice", schema(a=annotated("MyField"), b=schema(c=annotated("myfield")))),
    ("no chain of properties", annotated()),
    ("no chain of properties", schema(a={"type": "array", "items": annotated()})),
    ("no chain of properties", schema(a={"type": "array", "items": [{}, annotated()]})),
    ("no chain of properties", schema(a={"type": "array", "prefixItems": [annotated()]})),
    ("no chain of properties", schema(a={"type": "array", "items": schema(b=annotated())})),
    ("no chain of properties", {"$defs": {"a": annotated()}}),
    ("no chain of properties", {"definitions": {"a": schema(b=annotated())}}),
    ("no chain of properties", {"patternProperties": {".": annotated()}}),
    ("no chain of properties", {"dependentSchemas": {"a": annotated()}}),
    ("no chain of properties", {"additionalProperties": annotated()}),
    *[("no chain of properties", schema(a={word: [annotated()]})) for word in ("oneOf", "anyOf", "allOf")],
    *[("no chain of properties", {word: schema(a=annotated())}) for word in ("not", "if", "then", "else")],
]


@pytest.mark.parametrize(("reason", "input_schema"), BROKEN)
def test_an_annotation_that_breaks_a_rule_makes_the_tool_invalid(reason: str, input_schema: dict[str, Any]) -> None:
    with pytest.raises(InvalidAnnotation, match=reason):
        headers.param_headers(input_schema)


def test_a_schema_of_any_depth_is_walked() -> None:
    deep: dict[str, Any] = annotated()
    for _ in range(3000):
        deep = {"not": deep}
    with pytest.raises(InvalidAnnotation):
        headers.param_headers(deep)


SPECS = (
    ParamHeader(("region",), "Region", "string"),
    ParamHeader(("db", "shard"), "Shard", "integer"),
    ParamHeader(("dry",), "Dry-Run", "boolean"),
)


@pytest.mark.parametrize(
    ("arguments", "built"),
    [
        ({"region": "eu", "db": {"shard": 7}, "dry": True}, {"Region": "eu", "Shard": "7", "Dry-Run": "true"}),
        ({"region": "größe", "dry": False}, {"Region": "=?base64?Z3LDtsOfZQ==?=", "Dry-Run": "false"}),
        ({"region": "", "db": {"shard": 42.0}}, {"Region": "", "Shard": "42"}),
        ({"region": None, "db": None}, {}),
        ({"region": ["eu"], "db": 7, "dry": {}}, {}),
        ({"db": {"shard": 2**70}}, {"Shard": str(2**70)}),
        (None, {}),
        ("x", {}),
    ],
)
def test_arguments_are_mirrored_where_there_is_a_value(arguments: Any, built: dict[str, str]) -> None:
    params = {"name": "t", "arguments": arguments}
    head = headers.build("tools/call", params, "2026-07-28", SPECS)
    standard = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "t"}
    assert head == standard | {f"Mcp-Param-{name}": value for name, value in built.items()}
    if isinstance(arguments, dict):
        assert headers.check_params(CIMultiDict(head), arguments, SPECS) is None


@pytest.mark.parametrize(
    ("method", "params", "name"),
    [
        ("tools/call", {"name": "größe"}, "größe"),
        ("prompts/get", {"name": "p", "uri": "x"}, "p"),
        ("resources/read", {"uri": "file:///a b"}, "file:///a b"),
        ("tasks/get", {"taskId": "t1"}, "t1"),
        ("tasks/update", {"taskId": "t1"}, "t1"),
        ("tasks/cancel", {"taskId": "t1"}, "t1"),
        ("tools/call", {"name": 7}, None),
        ("tools/call", {}, None),
        ("tools/list", {"name": "x"}, None),
    ],
)
def test_the_name_is_where_the_method_has_it(method: str, params: dict[str, Any], name: str | None) -> None:
    assert headers.name_of(method, params) == name
    built = headers.build(method, params, "2026-07-28").get("Mcp-Name")
    assert built == (None if name is None else headers.encode(name))


META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
CALL = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "safe"}


def head(*lines: tuple[str, str], **changes: str | None) -> CIMultiDictProxy[str]:
    """The headers of a good call; a change of None leaves a header out, `lines` are added."""
    merged = {**CALL, **{name.replace("_", "-"): value for name, value in changes.items()}}
    return CIMultiDictProxy(CIMultiDict([*((n, v) for n, v in merged.items() if v is not None), *lines]))


def without(*keys: str) -> dict[str, Any]:
    return {key: value for key, value in META.items() if key.split("/")[1] not in keys}


def call(meta: Any = META, method: str = "tools/call", **params: Any) -> Request:
    return Request(1, method, {"name": "safe", **params, **({} if meta is None else {"_meta": meta})})


OTHER = META | {"io.modelcontextprotocol/protocolVersion": "v999.0.0"}
VERSION_HEADER = "MCP_Protocol_Version"

LADDER: list[tuple[str, CIMultiDictProxy[str], Request, tuple[int, int] | None]] = [
    ("all agree", head(), call(), None),
    ("header names in any case", CIMultiDictProxy(CIMultiDict({k.upper(): v for k, v in CALL.items()})), call(), None),
    ("white space around values", head(Mcp_Method=" tools/call\t", Mcp_Name="  safe "), call(), None),
    ("an encoded name", head(Mcp_Name="=?base64?c2FmZQ==?="), call(), None),
    ("the same line twice", head(*CALL.items()), call(), None),
    ("no version header", head(**{VERSION_HEADER: None}), call(None), (-32020, 400)),
    ("no _meta", head(), call(None), (-32602, 400)),
    ("_meta is no object", head(), call([]), (-32602, 400)),
    ("no version in _meta", head(Mcp_Method="x"), call(without("protocolVersion")), (-32602, 400)),
    ("a version that is no string", head(), call(META | {"io.modelcontextprotocol/protocolVersion": 1}), (-32602, 400)),
    ("the version header disagrees", head(), call(OTHER), (-32020, 400)),
    ("the version header disagrees the other way", head(**{VERSION_HEADER: "v999.0.0"}), call(), (-32020, 400)),
    ("two version headers", head(("Mcp-Protocol-Version", "2025-11-25")), call(), (-32020, 400)),
    ("no method header", head(Mcp_Method=None), call(), (-32020, 400)),
    ("the method disagrees", head(Mcp_Method="tools/list"), call(), (-32020, 400)),
    ("the method in other case", head(Mcp_Method="TOOLS/CALL"), call(), (-32020, 400)),
    ("two methods", head(("mcp-method", "tools/list")), call(), (-32020, 400)),
    ("two methods in one line", head(Mcp_Method="tools/call, tools/call"), call(), (-32020, 400)),
    ("a method encoded like a name", head(Mcp_Method="=?base64?dG9vbHMvY2FsbA==?="), call(), (-32020, 400)),
    (
        "no method header beats an unserved version",
        head(Mcp_Method=None, **{VERSION_HEADER: "v999.0.0"}),
        call(OTHER),
        (-32020, 400),
    ),
    ("both say an unserved version", head(**{VERSION_HEADER: "v999.0.0"}), call(OTHER), (-32022, 400)),
    ("no capabilities", head(), call(without("clientCapabilities")), (-32602, 400)),
    (
        "capabilities that are no object",
        head(),
        call(META | {"io.modelcontextprotocol/clientCapabilities": []}),
        (-32602, 400),
    ),
    ("capabilities before the name", head(Mcp_Name=None), call(without("clientCapabilities")), (-32602, 400)),
    ("no name header", head(Mcp_Name=None), call(), (-32020, 400)),
    ("the name disagrees", head(), call(name="danger"), (-32020, 400)),
    ("the name in other case", head(Mcp_Name="Safe"), call(), (-32020, 400)),
    ("two names", head(("mcp-name", "danger")), call(), (-32020, 400)),
    ("a name header for a body without one", head(), call(name=7), (-32020, 400)),
    ("no name anywhere", head(Mcp_Name=None), call(name=None), (-32602, 400)),
    (
        "an absurd name where there is none",
        head(Mcp_Method="tools/list", Mcp_Name="\xff\0"),
        call(method="tools/list"),
        None,
    ),
    ("no name where there is none", head(Mcp_Method="tools/list", Mcp_Name=None), call(method="tools/list"), None),
    ("a uri", head(Mcp_Method="resources/read", Mcp_Name="a:b"), call(method="resources/read", uri="a:b"), None),
    ("a task", head(Mcp_Method="tasks/get", Mcp_Name="t"), call(method="tasks/get", taskId="u"), (-32020, 400)),
    ("a task, no name header", head(Mcp_Method="tasks/get", Mcp_Name=None), call(method="tasks/get", taskId="t"), None),
    (
        "a task of no name",
        head(Mcp_Method="tasks/get", Mcp_Name=None),
        call(method="tasks/get", taskId=5),
        (-32602, 400),
    ),
    *[("a malformed name", head(Mcp_Name=value), call(), (-32020, 400)) for value in MALFORMED],
    ("raw UTF-8 that would match", head(Mcp_Name="größe"), call(name="größe"), (-32020, 400)),
]


@pytest.mark.parametrize(("headers_", "request_", "refused"), [r[1:] for r in LADDER], ids=[r[0] for r in LADDER])
def test_the_first_rung_that_fails_answers(
    headers_: CIMultiDictProxy[str], request_: Request, refused: tuple[int, int] | None
) -> None:
    rejection = headers.check(headers_, request_)
    assert (None if rejection is None else (rejection.code, rejection.status)) == refused


def test_an_unserved_version_is_told_which_ones_are() -> None:
    rejection = headers.check_version(head(**{VERSION_HEADER: "v999.0.0"}), call(OTHER))
    assert rejection is not None
    assert rejection.data == {"supported": ["2026-07-28"], "requested": "v999.0.0"}


@pytest.mark.parametrize(
    "method", ["initialize", "ping", "logging/setLevel", "resources/subscribe", "tasks/list", "x/y", ""]
)
def test_a_method_of_another_revision_is_not_found(method: str) -> None:
    rejection = headers.unknown_method(method)
    assert rejection is not None
    assert (rejection.code, rejection.status) == (-32601, 404)


@pytest.mark.parametrize("method", ["server/discover", "tools/call", "subscriptions/listen", "tasks/get"])
def test_a_method_of_this_revision_is_known(method: str) -> None:
    assert headers.unknown_method(method) is None


PARAMS: list[tuple[dict[str, str], dict[str, Any], bool]] = [
    ({}, {}, True),
    ({}, {"region": None, "db": {}}, True),
    ({"Region": "eu"}, {"region": "eu"}, True),
    ({"Region": "=?base64?ZXU=?="}, {"region": "eu"}, True),
    ({"region": "eu"}, {"region": "eu"}, True),
    ({"Region": "SGVsbG8="}, {"region": "SGVsbG8="}, True),
    ({"Region": "=?base64?SGVsbG8="}, {"region": "=?base64?SGVsbG8="}, True),
    ({"Region": ""}, {"region": ""}, True),
    ({"Shard": "42"}, {"db": {"shard": 42}}, True),
    ({"Shard": "42.0"}, {"db": {"shard": 42}}, True),
    ({"Shard": "42"}, {"db": {"shard": 42.0}}, True),
    ({"Shard": "-7"}, {"db": {"shard": -7}}, True),
    ({"Shard": str(2**70)}, {"db": {"shard": 2**70}}, True),
    ({"Shard": "0.1"}, {"db": {"shard": 0.1}}, True),
    ({"Shard": "1E+999"}, {"db": {"shard": Decimal("1e999")}}, True),
    ({"Dry-Run": "true"}, {"dry": True}, True),
    ({"Dry-Run": "false"}, {"dry": False}, True),
    ({"Unknown": "größe"}, {}, True),
    ({}, {"region": ["eu"], "db": {"shard": {}}}, True),
    ({"Region": "42"}, {"region": 42}, True),
    # disagreement
    ({}, {"region": "eu"}, False),
    ({}, {"region": ""}, False),
    ({}, {"dry": False}, False),
    ({}, {"db": {"shard": 0}}, False),
    ({"Region": "eu"}, {}, False),
    ({"Region": "null"}, {"region": None}, False),
    ({"Region": "eu"}, {"region": ["eu"]}, False),
    ({"Region": "us"}, {"region": "eu"}, False),
    ({"Region": "EU"}, {"region": "eu"}, False),
    ({"Region": "42.0"}, {"region": 42}, False),
    ({"Region": "=?base64?SGVsbG8?="}, {"region": "Hello"}, False),
    ({"Region": "=?base64?SGVs!!!bG8=?="}, {"region": "Hello"}, False),
    ({"Region": "größe"}, {"region": "größe"}, False),
    ({"Shard": "43"}, {"db": {"shard": 42}}, False),
    ({"Shard": "42.5"}, {"db": {"shard": 42}}, False),
    ({"Shard": "4.2e1"}, {"db": {"shard": 42}}, False),
    ({"Shard": "NaN"}, {"db": {"shard": 42}}, False),
    ({"Shard": "1"}, {"db": {"shard": True}}, False),
    ({"Shard": "42.0"}, {"db": {"shard": "42"}}, False),
    ({"Shard": "9007199254740993"}, {"db": {"shard": 9007199254740992}}, False),
    ({"Dry-Run": "True"}, {"dry": True}, False),
    ({"Dry-Run": "1"}, {"dry": True}, False),
]


@pytest.mark.parametrize(("sent", "arguments", "agree"), PARAMS)
def test_a_mirrored_argument_must_agree_with_its_header(
    sent: dict[str, str], arguments: dict[str, Any], agree: bool
) -> None:
    lines = CIMultiDict({f"Mcp-Param-{name}": value for name, value in sent.items()})
    rejection = headers.check_params(lines, arguments, SPECS)
    assert (rejection is None) is agree
    if rejection is not None:
        assert (rejection.code, rejection.status) == (-32020, 400)


def test_two_lines_of_one_parameter_must_both_agree() -> None:
    lines = CIMultiDict([("Mcp-Param-Region", "eu"), ("mcp-param-region", "us")])
    assert headers.check_params(lines, {"region": "eu"}, SPECS) is not None


def test_no_message_repeats_a_value() -> None:
    secret = "s3cret"
    lines = head(("Mcp-Param-Region", secret), Mcp_Name=secret)
    seen = [
        headers.check_params(lines, {"region": "other"}, SPECS),
        headers.check_params(head(), {"region": secret}, SPECS),
        headers.check_name(lines, call()),
        headers.check_name(head(Mcp_Name=f"=?base64?{secret}?="), call(name=secret)),
    ]
    for rejection in seen:
        assert rejection is not None
        assert "Mcp-" in rejection.message
        assert secret not in f"{rejection.message}{rejection.data}"


JSON_ARGUMENT = st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8")) | st.floats(0, 1e300)


@given(JSON_ARGUMENT, JSON_ARGUMENT, JSON_ARGUMENT)
def test_what_is_built_is_accepted_after_the_wire(region: Any, shard: Any, dry: Any) -> None:
    params = {"name": "t", "arguments": {"region": region, "db": {"shard": shard}, "dry": dry}}
    built = headers.build("tools/call", params, "2026-07-28", SPECS)
    again = jsonrpc.parse(jsonrpc.request(1, "tools/call", params))
    assert isinstance(again, Request)
    assert headers.check_params(CIMultiDict(built), again.params["arguments"], SPECS) is None
    assert headers.check_name(CIMultiDict(built), again) is None
