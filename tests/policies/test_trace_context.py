"""Trace context is read as W3C has it, decides as it is set to, and goes on as it came."""

from typing import Any

import pytest
from multidict import CIMultiDict
from pydantic import ValidationError

from policies.mcp import Json
from policies.settings_observing import Tracing
from policies.trace_context import Context, brought, is_traced, named, read, sent_on, span_name, went

TRACE, SPAN = 0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
OTHER = PARENT.replace("0af7", "1af7")


@pytest.mark.parametrize(
    ("parent", "sampled"),
    [
        (PARENT, True),
        (PARENT[:-2] + "00", False),
        (PARENT[:-2] + "03", True),
        (PARENT[:-2] + "02", False),
        ("cc" + PARENT[2:] + "-what-comes-later", True),
        ("cc" + PARENT[2:], True),
        (PARENT + "-more", None),
        ("ff" + PARENT[2:], None),
        (PARENT.upper(), None),
        (PARENT + " ", None),
        (PARENT[:-1], None),
        ("00-" + "0" * 32 + "-b7ad6b7169203331-01", None),
        ("00-0af7651916cd43dd8448eb211c80319c-" + "0" * 16 + "-01", None),
        ("", None),
        (None, None),
        (7, None),
    ],
)
def test_a_traceparent_is_read_or_is_none(parent: Any, sampled: bool | None) -> None:
    assert read(parent) == (None if sampled is None else Context(TRACE, SPAN, sampled))
    if sampled is not None and parent.startswith("00"):
        assert read(parent).parent[:-2] == parent[:-2]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("state", "kept"),
    [
        ("vendor=1", "vendor=1"),
        ("a=1, t@v=2,,z/*-_9=x y", "a=1, t@v=2,,z/*-_9=x y"),
        ("a=" + "x" * 256, "a=" + "x" * 256),
        ("a=" + "x" * 257, ""),
        (f"a={'x' * 250},b={'x' * 250},c=1", f"a={'x' * 250},b={'x' * 250},c=1"),
        (f"a={'x' * 250},b={'x' * 250},c=11111", ""),
        (",".join(f"k{number}=1" for number in range(32)), ",".join(f"k{number}=1" for number in range(32))),
        (",".join(f"k{number}=1" for number in range(33)), ""),
        ("a=1,a=2", ""),
        ("a=1,odd", ""),
        ("=", ""),
        ("A=1", ""),
        ("a=b=c", ""),
        ("a=1\nb", ""),
        ("a=é", ""),
        (3, ""),
        (None, ""),
    ],
)
def test_a_tracestate_goes_with_it_where_it_fits(state: Any, kept: str) -> None:
    found = read(PARENT, state)
    assert found is not None
    assert found.state == kept


@pytest.mark.parametrize(
    ("header", "meta", "trace"),
    [
        (PARENT, {}, "0"),
        (None, {"traceparent": PARENT}, "0"),
        (OTHER, {"traceparent": PARENT}, "0"),
        (PARENT, {"traceparent": "odd"}, "0"),
        (PARENT, {"traceparent": 1}, "0"),
        ("odd", {"traceparent": "odd"}, None),
        (None, {}, None),
    ],
)
def test_a_message_counts_before_the_headers_that_it_came_with(header: str | None, meta: Json, trace: str) -> None:
    headers = CIMultiDict({"traceparent": header} if header is not None else {})
    found = brought(headers, meta)
    assert (found is None) == (trace is None)
    assert found is None or found.trace_id == TRACE


@pytest.mark.parametrize(
    ("sampled", "follow", "ratio", "chance", "traced"),
    [
        (None, True, 0.5, 0.49, True),
        (None, True, 0.5, 0.5, False),
        (None, True, 1.0, 0.999, True),
        (None, True, 0.0, 0.0, False),
        (True, True, 0.0, 0.9, True),
        (False, True, 1.0, 0.0, False),
        (True, False, 0.0, 0.0, False),
        (False, False, 1.0, 0.9, True),
    ],
)
def test_a_client_decides_where_it_may_and_chance_where_not(
    sampled: bool | None, follow: bool, ratio: float, chance: float, traced: bool
) -> None:
    settings = Tracing(endpoint="http://c:4318/v1/traces", follow=follow, ratio=ratio)
    context = Context(TRACE, SPAN, sampled) if sampled is not None else None
    assert is_traced(context, settings, chance) == traced


SENT: dict[str, tuple[Json, Json, bool, Json, Json]] = {
    "nothing": ({}, {"x": 1}, False, {}, {"x": 1}),
    "in a header": ({"traceparent": PARENT}, {"x": 1}, False, {"traceparent": PARENT}, {"x": 1, "traceparent": PARENT}),
    "in _meta": ({}, {"traceparent": PARENT}, False, {"traceparent": PARENT}, {"traceparent": PARENT}),
    "in both, each of its own": (
        {"traceparent": OTHER},
        {"traceparent": PARENT},
        False,
        {"traceparent": OTHER},
        {"traceparent": PARENT},
    ),
    "malformed in a header": ({"traceparent": "odd"}, {}, False, {}, {}),
    "malformed in _meta": ({}, {"traceparent": "odd\r\nx: y"}, False, {}, {"traceparent": "odd\r\nx: y"}),
    "a state that is no header": (
        {},
        {"traceparent": PARENT, "tracestate": "a\r\nb: c"},
        False,
        {"traceparent": PARENT},
        {"traceparent": PARENT, "tracestate": "a\r\nb: c"},
    ),
    "baggage that is not wanted": (
        {"traceparent": PARENT, "baggage": "a=b"},
        {"baggage": "a=b"},
        False,
        {"traceparent": PARENT},
        {"traceparent": PARENT},
    ),
    "baggage that is wanted": (
        {"traceparent": PARENT, "baggage": "a=b"},
        {},
        True,
        {"traceparent": PARENT, "baggage": "a=b"},
        {"traceparent": PARENT, "baggage": "a=b"},
    ),
}


@pytest.mark.parametrize("name", SENT)
def test_what_came_goes_on_and_each_says_what_the_other_does(name: str) -> None:
    headers, meta, baggage, to_headers, to_meta = SENT[name]
    got_headers, got_meta = sent_on(CIMultiDict(headers), meta, baggage=baggage)
    assert (dict(got_headers), got_meta) == (to_headers, to_meta)


def test_a_span_is_named_after_what_its_server_lists() -> None:
    assert span_name("tools/call", "echo") == "tools/call echo"
    assert span_name("tools/call", "_OTHER") == "tools/call"
    assert span_name("", "") == "message"
    assert named("tools/call", "echo") == {"gen_ai.tool.name": "echo", "gen_ai.operation.name": "execute_tool"}
    assert named("prompts/get", "hello") == {"gen_ai.prompt.name": "hello"}
    assert named("tools/list", "") == {}
    assert went("") == {}
    assert went("-32602") == {"error.type": "-32602", "rpc.response.status_code": "-32602"}
    assert went("tool_error") == {"error.type": "tool_error"}


@pytest.mark.parametrize(
    ("settings", "field", "words"),
    [
        ({"ratio": 0.5}, "ratio", "does nothing without endpoint"),
        ({"headers": {"X-Token": "t"}}, "headers", "does nothing without endpoint"),
        ({"endpoint": "collector:4318"}, "endpoint", "must be an http or https URL"),
        ({"endpoint": "http://c/v1/traces", "ratio": 1.5}, "ratio", "less than or equal to 1"),
        ({"endpoint": "http://c/v1/traces", "headers": {"X": "a\nb"}}, "headers", "X"),
    ],
)
def test_a_wrong_setting_is_named(settings: Json, field: str, words: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Tracing.model_validate(settings)
    assert field in str(refused.value)
    assert words in str(refused.value)
