"""What an event's id says, and what is none."""

import pytest

from policies.resumption import Place, event_id, place_of

IDS = {
    "a standalone stream's": (Place("e1", 3, standalone=True, request=None), "e1.3"),
    "a call's with a number": (Place("e1", 0, standalone=False, request=1), "e1.MQ.0"),
    "a call's with text": (Place("e1", 12, standalone=False, request="1"), "e1.IjEi.12"),
    "a call's with any text": (Place("e1", 7, standalone=False, request='."ü\n'), "e1.Ii5cIsO8XG4i.7"),
}


@pytest.mark.parametrize("place", IDS)
def test_an_id_says_what_it_was_made_of(place: str) -> None:
    said, text = IDS[place]
    assert event_id(said.exchange, said.cursor, said.request) == text
    assert place_of(text) == said


def test_a_request_whose_id_is_too_long_is_not_named() -> None:
    text = event_id("e1", 3, "x" * 200)
    assert text == "e1..3"
    assert place_of(text) == Place("e1", 3, standalone=False, request=None)


NONE = ["", "0", "e1", "e1.", ".3", "e1.x", "e1.-1", "e1.²", "e1.1" + "0" * 20, "e1.MQ", "e1.M.1", "e1.MQ.", "e1.*.1"]


@pytest.mark.parametrize("text", [*NONE, "e1.dHJ1ZQ.1", "e1.W10.1", "e1.MS41.1", "e1.IjEi.MQ.1", f"e1.{'M' * 129}.1"])
def test_what_is_no_id_of_an_event_names_nothing(text: str) -> None:
    assert place_of(text) is None
