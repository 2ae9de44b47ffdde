"""What is owed until it is paid, and that it is never more than a little."""

from policies.cache import EVERY_MARK
from policies.cache_debts import MAX_OWED, Debts

TOOLS, PROMPTS = ("weather", "tools"), ("weather", "prompts")


def test_what_is_owed_is_so_until_it_is_paid() -> None:
    debts = Debts()
    debts.owe([TOOLS])
    assert debts
    assert debts.owes([PROMPTS, TOOLS])
    assert not debts.owes([PROMPTS, ("maps", "tools")])
    debts.paid(debts.due)
    assert not debts
    assert not debts.owes([TOOLS])


def test_what_is_owed_again_while_it_is_paid_is_still_owed() -> None:
    debts = Debts()
    debts.owe([TOOLS, PROMPTS])
    due = debts.due
    debts.owe([TOOLS])
    debts.paid(due)
    assert list(debts.due) == [TOOLS]


def test_many_resources_count_for_all_of_their_server() -> None:
    debts = Debts()
    debts.owe([TOOLS])
    for number in range(10 * MAX_OWED):
        debts.owe([("weather", f"uri-{number}"), ("maps", f"uri-{number}")])
        assert len(debts) <= MAX_OWED
    assert debts.owes([("weather", "resources"), ("weather", "uri-0")])
    assert debts.owes([("maps", "resources")])
    assert debts.owes([TOOLS])


def test_what_was_owed_again_as_a_part_of_everything_is_not_paid_with_it() -> None:
    debts = Debts()
    debts.owe([("weather", "resources"), ("weather", "uri-0")])
    due = debts.due
    debts.owe([("weather", f"uri-{number}") for number in range(MAX_OWED)])
    assert set(debts.due) == {("weather", "resources")}
    debts.paid(due)
    assert debts.owes([("weather", "resources")])


def test_however_many_upstreams_there_are_each_owes_its_few_marks() -> None:
    debts = Debts()
    for number in range(MAX_OWED):
        debts.owe([(f"upstream-{number}", mark) for mark in (*EVERY_MARK, "uri-0")])
    assert len(debts) <= (len(EVERY_MARK) + 1) * MAX_OWED
