"""What a failure of redis-py means: whether the store answers, and in which words the log says why not.

No text holds an address or a value: an error of the server is told by its code (its first word) alone.
"""

import re
from collections.abc import Iterator
from ssl import SSLError
from typing import Final

from redis.asyncio.sentinel import MasterNotFoundError
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    ClusterDownError,
    MasterDownError,
    RedisClusterException,
    RedisError,
    ResponseError,
)
from redis.exceptions import ConnectionError as LostError
from redis.exceptions import TimeoutError as LateError

FAILURES: Final = (RedisError, RedisClusterException, OSError, TimeoutError)
"""Everything that an operation raises when the store is to blame."""

_OF_A_SCRIPT: Final = re.compile(r"user_script.*: -([A-Z]+) ")
_REFUSALS: Final = {
    "OOM": "is full (OOM); give it more memory (maxmemory)",
    "READONLY": "takes no writes (READONLY); it leads no longer",
    "MISCONF": "takes no writes (MISCONF); it can't save its data",
    "NOREPLICAS": "takes no writes (NOREPLICAS); too few servers follow it",
    "MOVED": "is a node of a cluster (MOVED); begin store.url with redis+cluster://",
    "NOPERM": "the user may not do this (NOPERM); see docs/configuration.md for its ACL",
}
NO_WRITES: Final = frozenset({"OOM", "READONLY", "MISCONF", "NOREPLICAS"})
"""Codes that say of every write what they say of one; reads work on."""
_OUTAGES: Final = (
    (AuthenticationError, "the credentials are refused; check store.username and store.password"),
    (SSLError, "its certificate is not trusted, or it wants one; check store.tls"),
    (MasterNotFoundError, "the Sentinels name no leader; check the service in store.url and store.sentinel_password"),
    (BusyLoadingError, "is loading its data (LOADING)"),
    (MasterDownError, "has lost its leader (MASTERDOWN)"),
    (ClusterDownError, "the cluster is down (CLUSTERDOWN)"),
    (LateError, "no answer in time"),
    (TimeoutError, "no answer in time"),
    (LostError, "can't be reached"),
    (OSError, "can't be reached"),
    (RedisClusterException, "no node of the cluster can be reached"),
)

_OTHER_KINDS: Final = {
    "Cluster mode is not enabled": "is no cluster; begin store.url with redis:// or redis+sentinel://",
    "unknown command 'SENTINEL": "is no Sentinel; begin store.url with redis:// or redis+cluster://",
    "unknown command `SENTINEL": "is no Sentinel; begin store.url with redis:// or redis+cluster://",
}
"""What an answer says that only something else than what store.url promises would give."""


def refusal(error: Exception) -> str | None:
    """The code with which the store said no although it serves; None where it does not serve."""
    if not isinstance(error, ResponseError) or isinstance(error, ClusterDownError):
        return None
    if any(sign in str(error) for sign in _OTHER_KINDS):
        return None
    found = code(error)
    return None if found == "UNBLOCKED" else found


def refusal_words(found: str) -> str:
    """What a code means, `;` before what an operator can do."""
    return _REFUSALS.get(found, f"refuses an operation ({found})")


def outage(error: BaseException) -> str:
    """Why the store does not serve. What redis-py has wrapped is looked for inside."""
    for sign, words in _OTHER_KINDS.items():
        if sign in str(error):
            return words
    chain = tuple(_chain(error))
    for kind, words in _OUTAGES:
        if any(isinstance(each, kind) for each in chain):
            return words
    found = refusal(error) if isinstance(error, Exception) else None
    return "can't serve" if found is None else refusal_words(found)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def code(error: Exception) -> str:
    """The error's code as the server has it, `ERR` where it has none. Before Redis 7 that of a script is inside
    another: `ERR Error running script (call to f_…): @user_script:1: @user_script: 1: -OOM command not allowed …`"""
    inner = _OF_A_SCRIPT.search(str(error))
    if inner is not None:
        return inner[1]
    word = getattr(error, "status_code", None) or str(error).partition(" ")[0]
    return word if word.isascii() and word.isalpha() and word.isupper() else "ERR"
