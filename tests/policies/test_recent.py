"""What is kept of the last minutes stays within its bounds, and adds up over processes."""

import pytest

from policies.mcp import Json
from policies.profiles import Profile
from policies.recent import KINDS, MET, SLOT_S, SLOTS, Hosts, Pace, Slot, Trouble, Troubles, curve, latest

NOW_S = 1_800_000_000


def paced(*calls: tuple[float, float, bool]) -> Pace:
    pace = Pace()
    for now_s, seconds, failed in calls:
        pace.note(now_s, seconds, failed=failed)
    return pace


def test_calls_of_one_slot_are_one_point() -> None:
    pace = paced((NOW_S, 0.25, False), (NOW_S + SLOT_S - 0.1, 0.75, True), (NOW_S + SLOT_S, 1.0, False))
    assert pace.slots() == (Slot(NOW_S, 2, 1, 1.0, 0.75), Slot(NOW_S + SLOT_S, 1, 0, 1.0, 1.0))


def test_no_more_points_are_kept_than_fit() -> None:
    pace = paced(*((NOW_S + index * SLOT_S, 0.1, False) for index in range(3 * SLOTS)))
    assert len(pace.slots()) == SLOTS
    assert pace.slots()[-1].at_s == NOW_S + (3 * SLOTS - 1) * SLOT_S


def test_a_curve_has_every_slot_until_now_and_none_that_is_older() -> None:
    old = Slot(NOW_S - SLOTS * SLOT_S, 9, 9, 9.0, 9.0)
    drawn = curve([old, Slot(NOW_S - SLOT_S, 1, 0, 0.5, 0.5)], NOW_S + 1)
    assert [slot.at_s for slot in drawn] == [NOW_S - back * SLOT_S for back in reversed(range(SLOTS))]
    assert [slot.calls for slot in drawn] == [*[0] * (SLOTS - 2), 1, 0]


def test_what_several_processes_have_of_a_slot_is_added_up_and_changes_none_of_them() -> None:
    one, other = Slot(NOW_S, 1, 0, 0.5, 0.5), Slot(NOW_S, 2, 1, 0.2, 0.1)
    assert curve([one, other], NOW_S)[-1] == Slot(NOW_S, 3, 1, 0.7, 0.5)
    assert one == Slot(NOW_S, 1, 0, 0.5, 0.5)


def test_an_error_that_comes_often_pushes_no_other_out() -> None:
    troubles = Troubles()
    troubles.note(1.0, "call", "503", "rare")
    for now_s in range(2, 1000):
        troubles.note(now_s, "refused", "admission 404", route="/mcp")
    assert troubles.all() == (
        Trouble("refused", "admission 404", "", "/mcp", 998, 999.0),
        Trouble("call", "503", "rare", "", 1, 1.0),
    )


def test_of_many_kinds_of_errors_the_last_are_kept() -> None:
    troubles = Troubles()
    for now_s in range(2 * KINDS):
        troubles.note(now_s, "call", "503", f"upstream-{now_s}")
    assert [trouble.at_s for trouble in troubles.all()] == list(range(2 * KINDS - 1, KINDS - 1, -1))


def test_an_error_that_several_processes_have_met_is_one() -> None:
    found = latest([Trouble("call", "503", "a", "", 2, 5.0), Trouble("call", "503", "a", "", 1, 9.0)])
    assert found == (Trouble("call", "503", "a", "", 3, 9.0),)


@pytest.mark.parametrize(("said", "kept"), [(None, {"tools": {}}), ({"prompts": {}}, {"prompts": {}})])
def test_the_last_host_of_a_profile_is_remembered_with_what_the_server_said_last(said: Json | None, kept: Json) -> None:
    hosts = Hosts()
    hosts.note(1.0, Profile("p"), {"elicitation": {}}, {"tools": {}})
    hosts.note(2.0, Profile("p"), {"roots": {}}, said)
    met = hosts.met["p"]
    assert (met.told, met.said, met.at_s) == ({"roots": {}}, kept, 2.0)


def test_no_more_profiles_are_remembered_than_fit() -> None:
    hosts = Hosts()
    for index in range(2 * MET):
        hosts.note(float(index), Profile(f"p{index}"), {})
    assert list(hosts.met) == [f"p{index}" for index in range(MET)]
