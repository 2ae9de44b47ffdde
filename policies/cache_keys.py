"""What an answer depends on, as parts of its key; two requests share an answer only where all of them are alike.

Specification: 2026-07-28 server/utilities/caching (Cache Key, Cache Scope). Every part can be shown in a log: whatever
is secret, or a caller's own, is there as a digest.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from policies.exchange import Call
from policies.forwarded import lasting
from policies.jsonrpc import dumps
from policies.request_state import canonical
from policies.settings import Upstream

SCHEMA: Final = 1
"""The version of what is kept under a key; another one never meets it."""


@dataclass(frozen=True, slots=True)
class Key:
    """`shown` has every part but the partition by its name. `private`: the key in the caller's own partition;
    `public`: the one in that of all callers, None where this caller has no part in it."""

    shown: Mapping[str, str]
    partition: str
    private: str
    public: str | None

    def page(self, cursor: str) -> "Key":
        """The key of the page at a cursor, of the list that this is another page of."""
        return _key(
            {**self.shown, "params": digest(canonical({"cursor": cursor}))}, self.partition, self.public is not None
        )

    def parts(self, *, shared: bool) -> dict[str, str]:
        """All parts, for the log."""
        return {**self.shown, "partition": "public" if shared else self.partition}


def key(call: Call, *, upstream: str, config: str, version: str, identity: str) -> Key:
    """The key of what answers `call`, which is as it goes upstream.

    `config`: the digest of how the upstream is configured; `version`: the revision that it is spoken to in; `identity`:
    what the host is told of and shown (`Effective.identity`)."""
    varying = sorted([name.lower(), value] for name, value in lasting(call.forwarded))
    shown = {
        "schema": str(SCHEMA),
        "upstream": upstream,
        "config": config,
        "version": version,
        "identity": identity,
        "method": call.method,
        "params": digest(canonical(call.params)),
        "headers": digest(varying) if varying else "",
    }
    partition = f"private {digest([call.principal, varying])}"
    may_share = all(name == "host" for name, _ in varying)
    return _key(shown, partition, may_share)


def _key(shown: Mapping[str, str], partition: str, may_share: bool) -> Key:
    known = list(shown.values())
    return Key(shown, partition, digest([*known, partition]), digest([*known, "public"]) if may_share else None)


def digest(value: Any) -> str:
    """32 hexadecimal digits of a JSON value."""
    return hashlib.sha256(dumps(value)).hexdigest()[:32]


def config_digest(settings: Upstream) -> str:
    """The digest of everything that is configured for an upstream, its secrets included."""
    plain = settings.model_dump(mode="json", exclude={"headers", "env"})
    return digest([canonical(plain), sorted(map(list, settings.own_headers)), sorted(map(list, settings.own_env))])
