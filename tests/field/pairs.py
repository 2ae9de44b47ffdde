"""The four pairings of a client's era with an upstream's, as parameters and as one way to ask through any of them."""

from typing import Any

import pytest

from tests.door import Door
from tests.raw_front import Answer, Front, Overrides

PAIRS = [(front, upstream) for front in ("modern", "legacy") for upstream in ("modern", "legacy")]
every_pair = pytest.mark.parametrize(
    ("front_era", "upstream_era"), PAIRS, ids=[f"{front}-over-{upstream}" for front, upstream in PAIRS]
)
either_upstream = pytest.mark.parametrize("upstream_era", ["modern", "legacy"])
either_front = pytest.mark.parametrize("front_era", ["modern", "legacy"])


async def ask(
    front: Front,
    front_era: str,
    method: str,
    params: dict[str, Any] | None = None,
    *,
    ident: Any = 1,
    capabilities: dict[str, Any] | None = None,
    headers: Overrides | None = None,
) -> Answer:
    """One request by a client of this era; a legacy one opens a session for it. `headers`: of the request alone."""
    if front_era == "modern":
        return await front.modern(method, params, ident=ident, capabilities=capabilities, headers=headers)
    session = await front.initialize(capabilities=capabilities)
    return await session.request(method, params, ident=ident, headers=headers)


async def ask_pair(door: Door, pair: tuple[str, str], method: str, params: dict[str, Any], **more: Any) -> Answer:
    """`ask` through the shared gateway."""
    return await ask(door.front(pair[1]), pair[0], method, params, **more)
