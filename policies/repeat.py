"""Where the id of a request is found in its bytes: by what stands around it, a request is known that is like another,
without being read.

Specification: 2026-07-28 basic (Requests). Only ids are found that go back as they came whoever writes them: strings of
plain ASCII, and integers of up to fifteen digits. What a request means, and whether it may be answered as another was,
is not known here.
"""

import re
from typing import Final

from policies.jsonrpc import loads

ID: Final = re.compile(rb'"id"[ \t]?:[ \t]?(?:"([ !#-\[\]-~]{0,64})"|(0|-?[1-9][0-9]{0,14})(?=[,}\s]))')
"""The first member that is called so, wherever it stands, its value as the one group that matched: of a string
(`STRING`) what is between the quotes, so that strings and numbers have different surroundings. Neither a quote nor a
backslash is in it: whatever matches can stand in another's place."""

STRING: Final = 1
_PROBES: Final = (1, 2)


def is_of_message(before: bytes, after: bytes) -> bool:
    """Whether what was found between these parts of a body is the message's own id: it is then what is put there."""
    for probe in _PROBES:
        try:
            value = loads(b"%b%d%b" % (before, probe, after))
        except ValueError:
            return False
        if not isinstance(value, dict) or str(value.get("id")) != str(probe):
            return False
    return True
