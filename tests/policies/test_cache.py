"""What may be kept of answers, for how long, for whom, and what ends it."""

from decimal import Decimal
from typing import Any

import pytest

from policies import cache, jsonrpc
from policies.cache import Kept
from policies.mcp import Json
from policies.settings_cache import UpstreamCache

DEFAULT = UpstreamCache()
TRUSTING = UpstreamCache(trust_public=True)
OPERATORS = UpstreamCache(lists_ttl_s=30, reads_ttl_s=5)
READ = "resources/read"


@pytest.mark.parametrize(
    ("why", "params", "meta", "is_shareable"),
    [
        ("a plain list", {}, {}, True),
        ("a parameter that nobody here knows", {"x": 1}, {}, False),
        ("a page", {"cursor": "a"}, {}, True),
        ("trace context is one request's own", {}, {"traceparent": "00-1", "baggage": "a=b"}, True),
        ("what the protocol itself puts there", {}, {"io.modelcontextprotocol/clientInfo": {"name": "a"}}, True),
        ("a wish to be told of progress", {}, {"progressToken": 0, "io.modelcontextprotocol/logLevel": "info"}, True),
        ("members that nobody here knows", {}, {"com.example/tenant": "a"}, False),
        ("a retry with answers", {"inputResponses": {}}, {}, False),
        ("a retry with state alone", {"requestState": "s"}, {}, False),
    ],
)
def test_a_request_may_share_an_answer_that_depends_on_its_key_alone(
    why: str, params: Json, meta: Json, is_shareable: bool
) -> None:
    assert cache.is_shareable("tools/list", params, meta) is is_shareable, why


@pytest.mark.parametrize(
    ("said", "ttl_ms"),
    [
        ("0", 0),
        ("1", 1),
        ("60000", 60_000),
        ("1500.9", 1500),
        ("0.5", 0),
        ("-1", 0),
        ("-0.0", 0),
        ("100000", 100_000),
        ("100001", 100_000),
        ("1e308", 100_000),
        ("1e400", 100_000),
        ("-1e400", 0),
        ("1e-400", 0),
        ("12345678901234567890123", 100_000),
        ('"60000"', 0),
        ("true", 0),
        ("null", 0),
        ("[60000]", 0),
        ("{}", 0),
    ],
)
def test_a_ttl_is_whole_milliseconds_within_the_bound_whatever_was_sent(said: str, ttl_ms: int) -> None:
    found = cache.ttl_of(jsonrpc.loads(said.encode()), 100_000)
    assert (found, type(found)) == (ttl_ms, int)


def test_a_ttl_with_more_digits_than_a_double_has_is_read_as_well() -> None:
    assert cache.ttl_of(Decimal("1.00000000000000000000001"), 10) == 1


KEPT: list[tuple[str, str, Json, UpstreamCache, bool, Kept | None]] = [
    ("nothing without a word", "tools/list", {}, DEFAULT, True, None),
    ("nothing that is stale at once", "tools/list", {"ttlMs": 0, "cacheScope": "public"}, TRUSTING, True, None),
    ("private without a scope", "tools/list", {"ttlMs": 9}, TRUSTING, True, Kept(9, "private", False)),
    ("private", READ, {"ttlMs": 9, "cacheScope": "private"}, TRUSTING, True, Kept(9, "private", False)),
    (
        "a scope that nobody knows",
        READ,
        {"ttlMs": 9, "cacheScope": "PUBLIC"},
        TRUSTING,
        True,
        Kept(9, "private", False),
    ),
    ("public, untrusted", READ, {"ttlMs": 9, "cacheScope": "public"}, DEFAULT, True, Kept(9, "public", False)),
    ("public, trusted", READ, {"ttlMs": 9, "cacheScope": "public"}, TRUSTING, True, Kept(9, "public", True)),
    ("public, of one caller", READ, {"ttlMs": 9, "cacheScope": "public"}, TRUSTING, False, Kept(9, "public", False)),
    ("a question", READ, {"resultType": "input_required", "ttlMs": 9}, DEFAULT, True, None),
    ("a kind that nobody knows", READ, {"resultType": "vendor_x", "ttlMs": 9}, DEFAULT, True, None),
    ("a kind of a wrong type", READ, {"resultType": None, "ttlMs": 9}, DEFAULT, True, None),
    ("complete", READ, {"resultType": "complete", "ttlMs": 9}, DEFAULT, True, Kept(9, "private", False)),
    ("a very long time", READ, {"ttlMs": 10**9}, UpstreamCache(max_ttl_s=2), True, Kept(2000, "private", False)),
    ("an operator's time for lists", "prompts/list", {}, OPERATORS, True, Kept(30_000, "private", False)),
    ("an operator's time for reads", READ, {}, OPERATORS, True, Kept(5000, "private", False)),
    ("no operator's time for a description", "server/discover", {}, OPERATORS, True, None),
    ("the upstream's word before the operator's", "tools/list", {"ttlMs": 0}, OPERATORS, True, None),
    ("also a word that is none", "tools/list", {"ttlMs": "9"}, OPERATORS, True, None),
]


@pytest.mark.parametrize(("why", "method", "result", "settings", "may_share", "kept"), KEPT, ids=[k[0] for k in KEPT])
def test_what_a_server_of_2026_says_is_kept(
    why: str, method: str, result: Json, settings: UpstreamCache, may_share: bool, kept: Kept | None
) -> None:
    assert cache.keep(method, result, "modern", settings, may_share=may_share) == kept, why


@pytest.mark.parametrize(
    ("why", "method", "result", "settings", "kept"),
    [
        ("nothing, whatever it says", "tools/list", {"ttlMs": 9, "cacheScope": "public"}, TRUSTING, None),
        ("by the operator", "tools/list", {"ttlMs": 9, "resultType": "x"}, OPERATORS, Kept(30_000, "private", False)),
        (
            "for all, by the operator",
            "tools/list",
            {},
            UpstreamCache(lists_ttl_s=1, scope="public"),
            Kept(1000, "public", True),
        ),
        ("lists alone", READ, {}, UpstreamCache(lists_ttl_s=1), None),
        ("reads alone", "tools/list", {}, UpstreamCache(reads_ttl_s=1), None),
    ],
)
def test_what_a_server_with_sessions_says_is_kept_by_the_operators_word_alone(
    why: str, method: str, result: Json, settings: UpstreamCache, kept: Kept | None
) -> None:
    assert cache.keep(method, result, "legacy", settings, may_share=True) == kept, why


GRACE = UpstreamCache(stale_while_revalidate_s=5, stale_if_error_s=20)


@pytest.mark.parametrize(
    ("now_s", "settings", "state", "remaining_ms"),
    [
        (100.0, GRACE, "fresh", 10_000),
        (100.0001, GRACE, "fresh", 9999),
        (104.0, GRACE, "fresh", 6000),
        (109.9999, GRACE, "fresh", 0),
        (110.0, GRACE, "revalidate", 0),
        (114.999, GRACE, "revalidate", 0),
        (115.0, GRACE, "on_error", 0),
        (129.999, GRACE, "on_error", 0),
        (130.0, GRACE, "over", 0),
        (110.0, UpstreamCache(stale_if_error_s=0), "over", 0),
        (110.0, UpstreamCache(stale_if_error_s=1), "on_error", 0),
        (60.0, GRACE, "fresh", 10_000),
        (39.0, GRACE, "over", 10_000),
    ],
)
def test_an_entry_of_ten_seconds_is_given_out_by_its_age(
    now_s: float, settings: UpstreamCache, state: str, remaining_ms: int
) -> None:
    assert cache.state(100.0, 10_000, now_s, settings) == state
    assert cache.remaining_ms(100.0, 10_000, now_s) == remaining_ms


@pytest.mark.parametrize(
    ("now_s", "settings", "may"),
    [
        (112.0, GRACE, True),
        (129.999, GRACE, True),
        (130.0, GRACE, False),
        (112.0, UpstreamCache(stale_while_revalidate_s=5, stale_if_error_s=0), False),
        (39.0, GRACE, False),
    ],
)
def test_an_entry_stands_in_for_a_server_that_fails_for_its_own_time(
    now_s: float, settings: UpstreamCache, may: bool
) -> None:
    assert cache.may_stand_in(100.0, 10_000, now_s, settings) is may


def test_an_entry_lasts_as_long_as_it_is_good_for_anything() -> None:
    assert cache.lasts_s(100.0, 10_000, 104.0, GRACE) == 26.0
    assert cache.lasts_s(100.0, 10_000, 104.0, UpstreamCache(stale_if_error_s=0)) == 6.0


LISTS = {
    "tools/list": "notifications/tools/list_changed",
    "prompts/list": "notifications/prompts/list_changed",
    "resources/list": "notifications/resources/list_changed",
    "resources/templates/list": "notifications/resources/list_changed",
}
UPDATED = "notifications/resources/updated"


@pytest.mark.parametrize("told", sorted(set(LISTS.values())))
@pytest.mark.parametrize("method", [*LISTS, READ, "server/discover"])
def test_a_changed_list_ends_what_belongs_to_it_and_reads_with_the_list_of_resources(method: str, told: str) -> None:
    params = {"uri": "note://1"} if method == READ else {}
    ends = set(cache.marks_of(method, params)) & set(cache.renewed_by(told, {}))
    wanted = LISTS.get(method) == told or (method == READ and told == LISTS["resources/list"])
    assert bool(ends) is wanted


@pytest.mark.parametrize(
    ("updated", "read", "ends"),
    [
        ("note://1", "note://1", True),
        ("note://1", "note://2", False),
        ("note://1", "note://11", False),
        ("file:///a/b/c", "file:///a/b/c", True),
        ("file:///a/b/c", "file:///a/b", True),
        ("file:///a/b/c", "file:///a/b/", True),
        ("file:///a/b/c", "file:///a", True),
        ("file:///a/b/c", "file:///a/b/c/d", False),
        ("file:///a/b/c", "file:///a/bc", False),
        ("a/" * 40, "anything:else", True),
        (None, "anything:else", True),
        (7, "anything:else", True),
        ("\ud800/a", "\ud800", True),
    ],
)
def test_an_updated_resource_ends_what_was_read_of_it_and_of_what_it_is_a_part_of(
    updated: Any, read: str, ends: bool
) -> None:
    assert bool(set(cache.marks_of(READ, {"uri": read})) & set(cache.renewed_by(UPDATED, {"uri": updated}))) is ends


def test_an_update_ends_no_list() -> None:
    assert not set(cache.marks_of("resources/list", {})) & set(cache.renewed_by(UPDATED, {"uri": "note://1"}))


@pytest.mark.parametrize("told", ["notifications/message", "notifications/progress", "notifications/cancelled", "x"])
def test_other_notifications_end_nothing(told: str) -> None:
    assert cache.renewed_by(told, {"uri": "note://1"}) == ()


ALL = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
}
EVERY_LIST = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}


@pytest.mark.parametrize(
    ("method", "params", "capabilities", "wanted"),
    [
        ("tools/list", {}, ALL, EVERY_LIST),
        ("resources/templates/list", {"cursor": "2"}, ALL, EVERY_LIST),
        (READ, {"uri": "note://1"}, ALL, {"resourceSubscriptions": ["note://1"]}),
        (READ, {"uri": 7}, ALL, {}),
        ("tools/list", {}, {"tools": {}, "prompts": {"listChanged": True}}, {}),
        ("prompts/list", {}, {"tools": {}, "prompts": {"listChanged": True}}, {"promptsListChanged": True}),
        (READ, {"uri": "note://1"}, {"resources": {"listChanged": True}}, {}),
        ("tools/list", {}, {"tools": True}, {}),
        ("server/discover", {}, ALL, {}),
    ],
)
def test_what_is_kept_is_listened_for_where_the_server_tells_of_it(
    method: str, params: Json, capabilities: Json, wanted: Json
) -> None:
    assert cache.filter_for(method, params, capabilities) == wanted


def test_a_stream_ends_what_its_agreed_filter_has() -> None:
    heard = cache.marks_heard({"toolsListChanged": True, "resourceSubscriptions": ["note://1", 7]})
    assert heard == ("tools", *cache.renewed_by(UPDATED, {"uri": "note://1"})[-1:])
    assert cache.marks_heard({}) == ()


def test_however_many_resources_are_read_they_have_a_bounded_number_of_marks() -> None:
    marks = {mark for number in range(50_000) for mark in cache.marks_of(READ, {"uri": f"note://{number}"})}
    assert len(marks) == 4096 + 1
    assert {cache.whole_of(mark) for mark in marks} == {"resources"}
    assert [cache.whole_of(mark) for mark in cache.EVERY_MARK] == list(cache.EVERY_MARK)
