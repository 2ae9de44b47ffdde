"""Two requests share an answer only where everything that it depends on is alike, and no key shows a secret."""

import json
from dataclasses import replace
from typing import Any

import pytest

from policies import cache_keys
from policies.cache_keys import Key
from policies.exchange import Call, Dialect
from policies.settings import Upstream

CALL = Call("tools/list", {"cursor": "a"}, {}, {}, None, "anonymous", Dialect("modern", "2026-07-28"))
GIVEN = {"upstream": "weather", "config": "c1", "version": "2026-07-28", "identity": "core-v1"}


def key(call: Call = CALL, **changed: str) -> Key:
    return cache_keys.key(call, **GIVEN | changed)


DIFFERENT: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "method": ({"method": "prompts/list"}, {}),
    "cursor": ({"params": {"cursor": "b"}}, {}),
    "a cursor that is a number": ({"params": {"cursor": 1}}, {}),
    "no cursor": ({"params": {}}, {}),
    "an empty cursor": ({"params": {"cursor": ""}}, {}),
    "a parameter that nobody knows": ({"params": {"cursor": "a", "x": 1}}, {}),
    "upstream": ({}, {"upstream": "harbour"}),
    "configuration": ({}, {"config": "c2"}),
    "version": ({}, {"version": "2025-11-25"}),
    "profile": ({}, {"identity": "desktop-apps-2026-01-26-v1"}),
    "a header of the caller's": ({"forwarded": (("X-Tenant", "a"),)}, {}),
    "the Host it came by": ({"forwarded": (("Host", "a.example.com"),)}, {}),
}


@pytest.mark.parametrize("why", DIFFERENT)
def test_each_part_makes_another_key(why: str) -> None:
    members, changed = DIFFERENT[why]
    one, other = key(), key(replace(CALL, **members), **changed)
    assert one.private != other.private
    assert one.public != other.public


def test_no_two_of_them_are_alike() -> None:
    keys = [key(replace(CALL, **members), **changed) for members, changed in DIFFERENT.values()]
    assert len({one.private for one in keys}) == len(keys)


@pytest.mark.parametrize("cursor", ["b", "", "\ud800", "ä"])
def test_the_key_of_another_page_is_that_of_a_request_for_it(cursor: str) -> None:
    assert key().page(cursor) == key(replace(CALL, params={"cursor": cursor}))
    assert key(replace(CALL, params={})).page(cursor) == key().page(cursor)
    mine = replace(CALL, forwarded=(("X-Tenant", "a"),))
    assert key(mine).page(cursor) == key(replace(mine, params={"cursor": cursor}))


def test_a_principal_has_a_partition_of_its_own_and_a_part_in_the_common_one() -> None:
    one, other = key(), key(replace(CALL, principal="client:ci"))
    assert one.private != other.private
    assert one.public == other.public != one.private


@pytest.mark.parametrize(
    ("forwarded", "shares"),
    [
        ((), True),
        ((("X-Forwarded-For", "10.0.0.1"), ("Forwarded", "for=10.0.0.1")), True),
        ((("Host", "a.example.com"),), True),
        ((("Authorization", "Bearer t1"),), False),
        ((("Accept-Language", "de"),), False),
        ((("Host", "a"), ("X-Tenant", "b")), False),
    ],
)
def test_who_shows_the_upstream_a_header_of_its_own_has_no_part_in_the_common_partition(
    forwarded: tuple[tuple[str, str], ...], shares: bool
) -> None:
    assert (key(replace(CALL, forwarded=forwarded)).public is not None) is shares


def test_what_is_one_requests_own_and_the_order_of_members_make_no_other_key() -> None:
    one = key(replace(CALL, params={"a": {"x": 1, "y": 2}, "b": 1}))
    same = replace(CALL, params={"b": 1, "a": {"y": 2, "x": 1}}, forwarded=(("X-Forwarded-For", "10.0.0.1"),))
    assert key(same) == one


def test_two_credentials_of_one_name_are_two_callers() -> None:
    of = [key(replace(CALL, forwarded=(("Authorization", f"Bearer {token}"),))) for token in ("t1", "t2")]
    assert of[0].private != of[1].private


def test_every_part_can_be_shown_and_none_tells_a_secret() -> None:
    call = replace(
        CALL,
        method="resources/read",
        params={"uri": "file:///secret-plan"},
        principal="client:ci:digest",
        forwarded=(("Authorization", "Bearer hunter2"),),
    )
    shown = key(call).parts(shared=False)
    assert list(shown) == [
        *("schema", "upstream", "config", "version", "identity", "method", "params", "headers", "partition")
    ]
    assert not any(secret in json.dumps(shown) for secret in ("secret-plan", "hunter2", "client:ci"))
    assert key().parts(shared=True)["partition"] == "public"


UPSTREAM = {"url": "http://127.0.0.1:9000/mcp", "headers": {"X-Key": "k"}, "forward_headers": ["X-Tenant"]}


@pytest.mark.parametrize(
    "changed",
    [
        {"url": "http://127.0.0.1:9001/mcp"},
        {"headers": {"X-Key": "other"}},
        {"headers": {"X-Other": "k"}},
        {"forward_headers": []},
        {"era": "modern"},
        {"cache": {"trust_public": True}},
    ],
)
def test_whatever_is_changed_of_an_upstream_makes_another_digest(changed: dict[str, Any]) -> None:
    one, other = (cache_keys.config_digest(Upstream.model_validate(UPSTREAM | more)) for more in ({}, changed))
    assert one != other
    assert one == cache_keys.config_digest(Upstream.model_validate(UPSTREAM))


def test_the_environment_of_a_command_counts_as_well() -> None:
    of = [cache_keys.config_digest(Upstream.model_validate({"command": "a", "env": {"K": v}})) for v in ("1", "2")]
    assert of[0] != of[1]
