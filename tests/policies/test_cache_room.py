"""What goes first where a bounded room is full, and that nobody takes from others what they have."""

import pytest

from policies.cache_room import Deposits, Holder, Room, holder

PUBLIC, OTHERS = Holder(True, "weather"), Holder(True, "maps")
MINE, YOURS = Holder(False, "aa"), Holder(False, "bb")


def settle(room: Room) -> list[str]:
    """What goes until the rest has room."""
    gone: list[str] = []
    while (first := room.surplus()) is not None:
        room.drop(first)
        gone.append(first)
    return gone


def filled(room: Room, of: Holder, count: int, size: int = 10) -> list[str]:
    """That many things of one holder, each used once; what went for them."""
    gone = []
    for number in range(count):
        room.add(f"{of.name}-{number}", size, of)
        gone += settle(room)
    return gone


def test_nothing_goes_while_there_is_room() -> None:
    room = Room(100)
    assert filled(room, MINE, 10) == []
    assert (room.bytes, len(room)) == (100, 10)


def test_what_was_not_used_for_longest_goes_first() -> None:
    room = Room(100)
    filled(room, MINE, 10)
    room.add("new", 25, MINE)
    assert settle(room) == ["aa-0", "aa-1", "aa-2"]
    assert room.bytes == 95


def test_what_was_used_again_goes_after_what_was_used_once() -> None:
    room = Room(100)
    filled(room, MINE, 5)
    assert room.use("aa-0")
    assert not room.use("aa-0")
    assert not room.use("nothing")
    gone = [key for number in range(1000) for key in _added(room, f"flood-{number}", MINE)]
    assert "aa-0" in room
    assert len(gone) == 1000 - 5
    assert room.bytes == 100


def _added(room: Room, key: str, of: Holder, size: int = 10) -> list[str]:
    room.add(key, size, of)
    return settle(room)


def test_what_was_used_again_keeps_three_quarters_and_no_more() -> None:
    room = Room(100)
    for number in range(100):
        room.add(f"old-{number}", 1, MINE)
        room.use(f"old-{number}")
    gone = [key for number in range(1000) for key in _added(room, f"new-{number}", MINE, 1)]
    assert [key for key in gone if key.startswith("old")] == [f"old-{number}" for number in range(25)]
    assert sum(f"new-{number}" in room for number in range(1000)) == 25


def test_what_came_last_stays_where_anything_else_can_go() -> None:
    room = Room(100)
    room.add("large", 60, MINE)
    room.use("large")
    assert _added(room, "larger", MINE, 90) == ["large"]
    assert _added(room, "too large", MINE, 101) == ["larger", "too large"]
    assert room.bytes == 0


def test_a_callers_own_things_leave_half_of_the_room_to_what_all_share() -> None:
    room = Room(100)
    filled(room, PUBLIC, 10)
    gone = filled(room, MINE, 1000)
    assert sum(key.startswith("weather") for key in gone) == 5
    assert sum(f"weather-{number}" in room for number in range(10)) == 5


def test_what_all_share_leaves_half_to_what_callers_have_for_themselves() -> None:
    room = Room(100)
    filled(room, MINE, 10)
    filled(room, PUBLIC, 1000)
    assert sum(f"aa-{number}" in room for number in range(10)) == 5


@pytest.mark.parametrize(("small", "large"), [(MINE, YOURS), (PUBLIC, OTHERS)])
def test_who_has_most_gives_first(small: Holder, large: Holder) -> None:
    room = Room(100)
    filled(room, small, 3)
    filled(room, large, 1000)
    assert all(f"{small.name}-{number}" in room for number in range(3))


def test_what_grows_and_what_is_replaced_is_counted() -> None:
    room = Room(100)
    room.add("a", 10, MINE)
    room.add("b", 10, MINE)
    room.grow("a", 50)
    room.use("b")
    room.grow("b", 5)
    room.grow("nothing", 1000)
    room.add("a", 20, PUBLIC)
    assert (room.bytes, len(room)) == (35, 2)
    for key in ("a", "b", "b"):
        room.drop(key)
    assert (room.bytes, len(room), room.surplus()) == (0, 0, None)


def test_a_holder_is_an_upstream_for_what_is_shared_and_the_caller_else() -> None:
    one, other = (holder(f"private {digit * 32}", "weather", shared=False) for digit in "ab")
    assert one != other
    assert one == holder(f"private {'a' * 32}", "maps", shared=False)
    assert holder(f"private {'a' * 32}", "weather", shared=True) == PUBLIC


def test_what_was_put_elsewhere_makes_room_by_itself_when_its_time_is_over() -> None:
    deposits = Deposits(100)
    for number in range(10):
        until_s = 5.0 if number % 2 else 1000.0
        assert deposits.add(f"a-{number}", 10, MINE, until_s, now_s=0.0) == ()
    assert deposits.add("b", 10, MINE, 1000.0, now_s=6.0) == ()
    assert deposits.bytes == 60
    for number in range(4):
        assert deposits.add(f"c-{number}", 10, MINE, 7.0, now_s=6.0) == ()
    assert deposits.add("d", 10, MINE, 1000.0, now_s=8.0) == ("a-0",)  # it was looked a moment ago
    assert deposits.add("e", 10, MINE, 1000.0, now_s=17.0) == ()


def test_what_can_have_no_room_elsewhere_is_named_with_what_goes() -> None:
    deposits = Deposits(100)
    assert deposits.add("a", 101, MINE, 1.0, now_s=0.0) == ("a",)
    deposits.add("a", 60, MINE, 1.0, now_s=0.0)
    deposits.use("a")
    deposits.max_bytes = 50
    assert deposits.add("b", 10, MINE, 1.0, now_s=0.5) == ("a",)
    deposits.drop("b")
    assert deposits.bytes == 0
