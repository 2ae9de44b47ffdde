"""Who calls. Without authentication at the gateway, callers are told apart by the credentials that go upstream.

The principal keys sessions, shared upstream sessions and what is remembered per caller; it is a digest, so that no
credential is kept or shown.
"""

import hashlib
from collections.abc import Sequence

from policies.jsonrpc import dumps

ANONYMOUS = "anonymous"


def principal(credentials: Sequence[tuple[str, str]]) -> str:
    """The name of a caller: one for each set of header values that are passed on, `anonymous` where there is none."""
    if not credentials:
        return ANONYMOUS
    known = sorted({(name.lower(), value) for name, value in credentials})
    return hashlib.sha256(dumps([list(pair) for pair in known])).hexdigest()
