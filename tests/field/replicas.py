"""Two replicas before two upstreams of each era, shared by the field-report tests that need no more."""

from dataclasses import dataclass

from tests.fleet import Fleet
from tests.peers import LegacyUpstream, ModernUpstream


@dataclass(frozen=True, slots=True)
class Two:
    """Routes `/legacy1`, `/legacy2`, `/modern1`, `/modern2`; the caller's Authorization says who it is. Requests to
    `fleet.front(...)` change the replica each time."""

    fleet: Fleet
    upstreams: dict[str, LegacyUpstream | ModernUpstream]
