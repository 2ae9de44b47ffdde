"""What a failure of redis-py means: whether the store answers, and in which words the log says why not.

No text holds an address or a value: an error of the server is told by its code (its first word) alone.
"""

from typing import Final

from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    ClusterDownError,
    MasterDownError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisClusterException,
    RedisError,
    ResponseError,
)
from redis.exceptions import ConnectionError as LostError
from redis.exceptions import TimeoutError as LateError

FAILURES: Final = (RedisError, RedisClusterException, OSError, TimeoutError)
"""Everything that an operation raises when the store is to blame."""

_REFUSALS: Final = (
    (OutOfMemoryError, "is full (OOM); give it more memory (maxmemory)"),
    (ReadOnlyError, "takes no writes (READONLY); it leads no longer"),
    (NoPermissionError, "the user may not do this (NOPERM); see docs/configuration.md for its ACL"),
)
_OUTAGES: Final = (
    (AuthenticationError, "the credentials are refused; check store.username and store.password"),
    (BusyLoadingError, "is loading its data (LOADING)"),
    (MasterDownError, "has lost its leader (MASTERDOWN)"),
    (ClusterDownError, "the cluster is down (CLUSTERDOWN)"),
    (LateError, "no answer in time"),
    (TimeoutError, "no answer in time"),
    (LostError, "can't be reached"),
    (OSError, "can't be reached"),
    (RedisClusterException, "no node of the cluster can be reached"),
)


def refusal(error: Exception) -> str | None:
    """Why the store said no although it serves; None where it does not serve."""
    for kind, words in _REFUSALS:
        if isinstance(error, kind):
            return words
    if isinstance(error, ResponseError) and not isinstance(error, ClusterDownError) and code(error) != "UNBLOCKED":
        return f"refuses an operation ({code(error)})"
    return None


def outage(error: Exception) -> str:
    """Why the store does not serve."""
    return next((words for kind, words in _OUTAGES if isinstance(error, kind)), "can't serve")


def code(error: Exception) -> str:
    """The error's code as the server has it, `ERR` where it has none."""
    word = getattr(error, "status_code", None) or str(error).partition(" ")[0]
    return word if word.isascii() and word.isalpha() and word.isupper() else "ERR"
