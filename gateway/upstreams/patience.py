"""How long an upstream may take over one request: decided by who sends it, kept by the transport."""

from collections.abc import Callable
from dataclasses import dataclass

from policies.settings import Timeouts


@dataclass(frozen=True, slots=True)
class Patience:
    """`long_lived`: a stream that may be silent for as long as it likes; retiring the upstream ends it, unless a call
    that may end first has `needed` it. `waited()`: until when, by the loop's clock, the upstream itself has waited for
    an answer of the client's (now, while it does): its silence is none before. `limits`: time-outs other than the
    upstream's own."""

    long_lived: bool = False
    needed: bool = False
    waited: Callable[[], float] | None = None
    limits: Timeouts | None = None


USUAL = Patience()
STREAM = Patience(long_lived=True)
