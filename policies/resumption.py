"""Where in a stream a legacy client is: what an event's id says.

Specification: 2025-11-25 basic/transports, Resumability and Redelivery. The id names the stream and the place in it. On
the stream of a call it holds the request's id too, so that a replica that no longer has the stream can still end the
call: clients wait for an answer for ever where they are only refused the rest of the stream.

    EXCHANGE.CURSOR             a standalone stream
    EXCHANGE.REQUEST.CURSOR     a call's: the request's id as JSON, in base64url; empty where it is too long
"""

import base64
from dataclasses import dataclass
from typing import Final

from policies import jsonrpc
from policies.exchange import RequestId

MAX_CHARS: Final = 128
"""Of a request's id, encoded: clients count, or send a UUID."""


@dataclass(frozen=True, slots=True)
class Place:
    """`request`: whom the stream answers, where that is known; `standalone`: nobody."""

    exchange: str
    cursor: int
    standalone: bool
    request: RequestId | None


def event_id(exchange: str, cursor: int, request: RequestId | None) -> str:
    """The id of an event; `request` is None on a standalone stream."""
    if request is None:
        return f"{exchange}.{cursor}"
    named = base64.urlsafe_b64encode(jsonrpc.dumps(request)).rstrip(b"=").decode()
    return f"{exchange}.{named if len(named) <= MAX_CHARS else ''}.{cursor}"


def place_of(last: str) -> Place | None:
    """What a `Last-Event-ID` names; None for what was never an event's id here."""
    place, _, number = last.rpartition(".")
    exchange, dot, named = place.partition(".")
    if not exchange or not (number.isascii() and number.isdigit() and len(number) < 16) or len(named) > MAX_CHARS:
        return None
    if not named:
        return Place(exchange, int(number), not dot, None)
    try:
        request = jsonrpc.loads(base64.b64decode(named + "=" * (-len(named) % 4), b"-_", validate=True))
    except ValueError:
        return None
    if isinstance(request, bool) or not isinstance(request, str | int):
        return None
    return Place(exchange, int(number), standalone=False, request=request)
