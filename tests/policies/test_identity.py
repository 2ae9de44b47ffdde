"""Who calls: one name for each set of credentials that goes upstream."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies import identity
from policies.identity import ANONYMOUS, principal

Credentials = list[tuple[str, str]]
ALICE = ("Authorization", "Bearer alice")
KEY = ("X-Api-Key", "k1")


def test_who_brings_nothing_is_anonymous() -> None:
    assert principal([]) == ANONYMOUS == "anonymous"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([ALICE], [("authorization", "Bearer alice")]),
        ([ALICE, KEY], [KEY, ALICE]),
        ([ALICE, ALICE], [ALICE]),
        ([ALICE, ("AUTHORIZATION", "Bearer alice")], [ALICE]),
        ([("B", "1"), ("a", "2")], [("b", "1"), ("a", "2")]),
        ([("X-Odd", "\udcf6")], [("x-odd", "\udcf6")]),
    ],
    ids=[
        "names ignore case",
        "in any order",
        "twice is once",
        "twice in other letters is once",
        "case has no say in the order",
        "bytes that are no UTF-8",
    ],
)
def test_the_same_credentials_are_the_same_caller(one: Credentials, other: Credentials) -> None:
    assert principal(one) == principal(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([ALICE], [("Authorization", "Bearer bob")]),
        ([ALICE], [("Authorization", "bearer alice")]),
        ([ALICE], [("Proxy-Authorization", "Bearer alice")]),
        ([ALICE], [ALICE, KEY]),
        ([("a", "")], []),
        ([("a", "bc")], [("ab", "c")]),
        ([("a", "1"), ("b", "2")], [("a", "2"), ("b", "1")]),
        ([("a", '","b')], [("a", ""), ("b", "")]),
        ([("a", "\udcf6")], [("a", "\\udcf6")]),
    ],
    ids=[
        "another value",
        "a value in other letters",
        "another header",
        "one more header",
        "an empty value is not nothing",
        "name and value do not run together",
        "values do not change places",
        "quotes do not make two of one",
        "an escape is not what it stands for",
    ],
)
def test_other_credentials_are_another_caller(one: Credentials, other: Credentials) -> None:
    assert principal(one) != principal(other)


@given(st.lists(st.tuples(st.text(min_size=1), st.text(min_size=1)), min_size=1))
def test_a_name_is_a_digest_that_shows_no_credential(credentials: Credentials) -> None:
    assert re.fullmatch("[0-9a-f]{64}", identity.principal(credentials))
