"""Field report E3: a result in words and as data reaches a model once where that is wanted, as any adapter sends it.

`keep_structured: false` of a provider.
"""

import pytest

from tests.adapters.cases import BOTH_FORMS, DATA_ALONE, DIRECT, ONCE, THROUGH, Case
from tests.adapters.conftest import Records
from tests.adapters.looks import held
from tests.adapters.real.marks import PLANTED, PNG, kept

WORDS, DATA, BOTH = kept("chart"), kept("structured"), kept("apart")
"""Said in the words of a result; in its data; and the same in either."""

sends_both = pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in BOTH_FORMS])
sends_data = pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in DATA_ALONE])


def arrived(records: Records, case: Case, way: str) -> bytes:
    """The last request of a conversation, which holds all of it."""
    return records.turns(case, "ui", way)[-1].body


@pytest.mark.field("E3")
@sends_both
async def test_one_copy_of_a_result_arrives_where_that_is_wanted(records: Records, case: Case) -> None:
    for way, data, copies in ((DIRECT, {DATA}, 2), (THROUGH, {DATA}, 2), (ONCE, set[str](), 1)):
        body = arrived(records, case, way)
        assert held(body, (WORDS, DATA)) == {WORDS} | data, way
        assert body.count(BOTH.encode()) == copies, way


@pytest.mark.field("E3")
@sends_both
async def test_its_images_stay_and_nothing_that_was_only_to_be_shown(records: Records, case: Case) -> None:
    body = arrived(records, case, ONCE)
    assert held(body, (PNG, *PLANTED)) == {PNG}


@pytest.mark.field("E3")
@sends_data
async def test_the_only_copy_stays_whichever_it_is(records: Records, case: Case) -> None:
    for way in (DIRECT, ONCE):
        body = arrived(records, case, way)
        assert held(body, (WORDS, DATA)) == {DATA}, way
        assert body.count(BOTH.encode()) == 1, way
        assert kept("small").encode() in body, "which has no data"
    assert held(arrived(records, case, ONCE), PLANTED) == set()
