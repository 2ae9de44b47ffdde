"""The matrix's own equipment, where a fault of it would let a test pass: comparison, event decoding, era law."""

from typing import Any

import pytest

from tests.matrix.compare import differences
from tests.matrix.eras import PREFIX, offences
from tests.matrix.tap import Exchange, event_data


@pytest.mark.parametrize(
    ("wanted", "got", "where"),
    [
        ({"a": 1}, {"a": 1.0}, "$.a"),
        ({"a": 1}, {"a": True}, "$.a"),
        ({"a": None}, {}, "$.a"),
        ({}, {"a": None}, "$.a"),
        ([1, 2], [2, 1], "$[0]"),
        ([[]], [[], []], "$"),
        ({"a": [{"b": 2**53 + 1}]}, {"a": [{"b": 2**53}]}, "$.a[0].b"),
        ({"a": ""}, {"a": None}, "$.a"),
    ],
)
def test_a_difference_is_found_where_it_is(wanted: Any, got: Any, where: str) -> None:
    assert differences(wanted, wanted) == []
    assert differences(wanted, got)[0].startswith(f"{where}: ")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_events_are_read_with_every_line_ending(end: str) -> None:
    text = end.join(
        ["id: 1", "data: ", "retry: 5", "", ": ping", "", "event: message", 'data: {"a":', "data:1}", "", ""]
    )
    assert event_data(text) == ["", '{"a":\n1}']
    assert event_data(f"data: 1{end}") == []


MODERN = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list"}
LEGACY = {"mcp-protocol-version": "2025-11-25", "mcp-session-id": "s"}
META = {"_meta": {PREFIX + "protocolVersion": "2026-07-28"}}


def seen(method: str, headers: dict[str, str], params: dict[str, Any] | None = None) -> Exchange:
    return Exchange("POST", headers, {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}, 200)


def opened() -> Exchange:
    exchange = seen("initialize", {})
    exchange.response_headers["mcp-session-id"] = "s"
    return exchange


PROBE = seen("server/discover", {**MODERN, "mcp-method": "server/discover"}, META)


@pytest.mark.parametrize(
    ("upstream", "exchanges"),
    [
        ("modern-only", [seen("tools/list", MODERN, META), seen("initialize", {})]),
        ("sessions-only", [PROBE, opened(), seen("tools/list", LEGACY)]),
        ("sessionless", [PROBE, seen("initialize", {}), seen("tools/list", {"mcp-protocol-version": "2025-11-25"})]),
    ],
)
def test_a_faultless_row_offends_nobody(upstream: str, exchanges: list[Exchange]) -> None:
    assert offences(upstream, exchanges) == []


@pytest.mark.parametrize(
    ("upstream", "exchanges"),
    [
        ("modern-only", [seen("initialize", {}), seen("initialize", {})]),
        ("modern-only", [seen("tools/list", {**MODERN, "mcp-session-id": "s"}, META)]),
        ("modern-only", [seen("tools/list", MODERN)]),
        ("modern-only", [seen("tools/list", LEGACY)]),
        ("modern-only", [Exchange("GET", {}, None)]),
        ("sessions-only", [PROBE, PROBE, opened()]),
        ("sessions-only", [opened(), seen("tools/list", MODERN, META)]),
        ("sessions-only", [opened(), seen("tools/list", LEGACY, META)]),
        ("sessions-only", [opened(), seen("tools/call", {**LEGACY, "mcp-name": "a"})]),
        ("sessions-only", [opened(), seen("tools/list", {"mcp-protocol-version": "2025-11-25"})]),
        ("sessions-only", [opened(), seen("tools/list", {**LEGACY, "mcp-session-id": "another"})]),
        ("sessions-only", [opened(), seen("tools/list", {**LEGACY, "mcp-protocol-version": "2025-06-18"})]),
        ("sessionless", [seen("tools/list", LEGACY)]),
    ],
)
def test_each_offence_is_told(upstream: str, exchanges: list[Exchange]) -> None:
    assert offences(upstream, exchanges) != []
